#!/bin/sh
# Can lint.sh still see a breach? Feeds it a small clean tree, then the same tree with
# one breach at a time; every breach must be named and fail, the clean tree must pass.
set -u
lint=$(cd "$(dirname "$0")" && pwd)/lint.sh
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0

tree() { # a clean tree in $tmp/t
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/include" "$tmp/t/src/base" "$tmp/t/src/gguf" "$tmp/t/src/quant" "$tmp/t/src/lab" "$tmp/t/src/cli"
    cd "$tmp/t" || exit 1
    cat >include/hone.h <<'C'
/* api */
#ifndef HONE_H
#define HONE_H
#include <stdint.h>
#define HONE_API
HONE_API int hone_x(void);
#endif
C
    printf '/* base */\n#include "hone.h"\n' >src/base/base.h
    printf '/* quant */\n#include "base/base.h"\n' >src/quant/quant.h
    printf '/* gguf: does not exit(1) */\n#include "quant/quant.h"\nchar *s = "abort()"; // printf("x")\n' >src/gguf/gguf.c
    printf '/* lab */\n#include "base/base.h"\n#include <stdio.h>\nvoid f(void) { printf("x"); }\n' >src/lab/lab.c
    printf '/* os: the place for it */\n#include <sys/prctl.h>\nlong g(void) { return getauxval(16); }\nchar *p = "/proc/x";\n' >src/base/os.c
    printf '/* cli */\n#include "hone.h"\n#include "base/base.h"\nint main(void) { return 0; }\n' >src/cli/main.c
    echo 'HN_CFLAGS = -ffp-contract=off' >Makefile
}
edit() { sed "$1" "$2" >"$tmp/edited" && cat "$tmp/edited" >"$2"; }
run() { sh "$lint" "$tmp/t" >"$tmp/out" 2>&1; }
expect() { # expect WHAT PATTERN: the tree as it is now has that breach
    n=$((n + 1))
    if run; then
        echo "lint-selftest: not seen: $1"
        bad=$((bad + 1))
    elif ! grep -q -- "$2" "$tmp/out"; then
        echo "lint-selftest: $1: expected a line with '$2', got:"
        cat "$tmp/out"
        bad=$((bad + 1))
    fi
    tree
}

tree
n=$((n + 1))
run || { echo "lint-selftest: the clean tree fails:"; cat "$tmp/out"; bad=$((bad + 1)); }

echo '#include "gguf/gguf.h"' >>src/quant/quant.h;   expect "arrow against the list" "quant/ may not include gguf/gguf.h"
echo '#include "lab/lab.h"' >>src/gguf/gguf.c;       expect "library includes the laboratory" "gguf/ may not include lab/lab.h"
echo '#include "gguf/gguf.h"' >>src/cli/main.c;      expect "cli looks behind the public API" "cli/ may not include gguf/gguf.h"
echo '#include "quant/quant.h"' >>src/lab/lab.c;     expect "lab looks behind the public API" "lab/ may not include quant/quant.h"
echo '#  include "../gguf/gguf.h"' >>src/base/base.h; expect "relative include" "name it from src/"
echo '#include "other.h"' >>src/base/base.h;         expect "header of nowhere" "not in this room"
mkdir src/attic; echo '/* x */' >src/attic/x.c;      expect "unknown room" "not a room"
echo '/* x */' >src/lab/gguf.c;                      expect "basename twice" "same basename"
yes '/* long */' | head -n 1501 >src/gguf/long.c;    expect "long file" "1501 lines"
: >src/gguf/empty.c;                                expect "empty file" "empty.c:1: does not open with a comment"
echo 'int x;' >src/gguf/bare.c;                      expect "no opening comment" "does not open with a comment"
echo 'void g(void) { exit(1); }' >>src/gguf/gguf.c;  expect "exit in the library" "never exits"
echo 'void g(void) { abort(); }' >>src/gguf/gguf.c;  expect "abort in the library" "never exits"
echo 'void g(void) { printf("x"); }' >>src/quant/quant.h; expect "print in the library" "never exits"
echo 'void g(void) { fputs("x", stderr); }' >>src/gguf/gguf.c; expect "stderr in the library" "only hn_log"
echo 'void g(void) { fprintf(stderr, "x"); }' >>src/cli/main.c; expect "text past the sink" "hn_err_printf"
echo 'void *g(void) { return mmap(0, 1, 1, 1, 1, 0); }' >>src/gguf/gguf.c; expect "a mapping nobody can name" "hn_mapped_open"
echo 'void g(char *p) { strcpy(p, "x"); }' >>src/cli/main.c; expect "strcpy" "unbounded"
echo 'HN_CFLAGS += -ffast-math' >>Makefile;          expect "fast math in the build" "changes results"
echo '__attribute__((optimize("fast-math"))) void g(void);' >>src/gguf/gguf.c; expect "fast math in a file" "changes results"
echo "/* TO""DO later */" >>src/gguf/gguf.c;         expect "a promise" "write an issue"
printf 'int y;\t\n' >>src/gguf/gguf.c;               expect "tab" "tab or trailing blank"
echo 'long g(void) { return getauxval(16); }' >>src/gguf/gguf.c;           expect "a call of one system" "base/os.c is the place"
echo 'void g(void *p) { qsort_r(p, 1, 1, 0, 0); }' >>src/cli/main.c;       expect "a call with two meanings" "base/os.c is the place"
echo 'int g = MAP_PRIVATE | MAP_POPULATE;' >>src/gguf/gguf.c;              expect "a flag of one system" "base/os.c is the place"
echo 'long g(struct stat *s) { return s->st_mtim.tv_sec; }' >>src/lab/lab.c; expect "a field of one system" "base/os.c is the place"
echo '#include <sys/prctl.h>' >>src/lab/lab.c;                             expect "a header of one system" "base/os.c is the place"
echo 'void g(void) __attribute__((alias("f")));' >>src/lab/lab.c;          expect "an alias" "ELF only"
echo 'const char *g = "/proc/self/maps";' >>src/gguf/gguf.c;               expect "a file of Linux" "files of Linux"
echo 'json_t *g(char *s) { return json_loads(s, 0, 0); }' >>src/lab/lab.c;  expect "jansson's reader" "is the reader of JSON"
echo 'json_t *g(FILE *f) { return json_loadf (f, 0, 0); }' >>src/gguf/gguf.c; expect "jansson's reader in the library" "is the reader of JSON"
edit 's/#include <stdint.h>/uint64_t hone_y(void);/' include/hone.h; expect "header does not stand alone" "does not compile alone"
edit 's/#include <stdint.h>/#include <stdio.h>/' include/hone.h;     expect "header drags stdio in" "needs only stdbool"
edit 's/hone_x/other_x/' include/hone.h;           expect "public name" "public names start"
rm include/hone.h;                                   expect "no public header" "missing"

echo "lint-selftest: $n trees, $bad wrong"
[ "$bad" -eq 0 ]
