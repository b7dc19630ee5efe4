#!/bin/sh
# Can lint.sh still see a breach? Feeds it a small clean tree, then the same tree with breaches that have nothing to do with
# each other; each must be named in a line of its own and fail, the clean tree must pass.
set -u
lint=$(cd "$(dirname "$0")" && pwd)/lint.sh
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0

tree() { # a clean tree in $tmp/t
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/include" "$tmp/t/src/base" "$tmp/t/src/gguf" "$tmp/t/src/quant" "$tmp/t/src/lab/stats" "$tmp/t/src/lab/bench" "$tmp/t/src/lab/inside" "$tmp/t/src/cli" "$tmp/t/docs" "$tmp/t/tests/e2e"
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
    printf '/* lab */\n#include "base/base.h"\n#include <stdio.h>\nvoid f(void) { printf("x"); }\n' >src/lab/stats/stats.c
    printf '/* inside */\n#include "gguf/gguf.c"\n#include "lab/stats/stats.c"\n' >src/lab/inside/inside.c
    printf '/* os: the place for it */\n#include <sys/prctl.h>\nlong g(void) { return getauxval(16); }\nchar *p = "/proc/x";\n' >src/base/os.c
    printf '/* cli */\n#include "hone.h"\n#include "base/base.h"\n#include "lab/inside/inside.c"\nint main(void) { return 0; }\n' >src/cli/main.c
    cat >src/cli/cmd_one.c <<'C'
/* one: reads one option itself, one in a table, and hands one on */
static const hn_opt opts[] = {
    HN_OPT("read", 0, FLAG, 0, ""),
    HN_OPT("listed", 0, FLAG, 0, ""),
    HN_OPT("passed", 0, FLAG, 0, "", .forward = 1),
};
static const hn_opt_group group = { "One", opts };
static const struct {
    const char *name;
} names[] = {
    { "listed" },
};
static int reads(const hn_cli *cli) { return flag(cli, "read") + flag(cli, names[0].name) + hn_opts_forward(cli); }
static int run(const hn_cli *cli) { return reads(cli); }
static const hn_opt_group *const groups[] = { &group, NULL };
const hn_command hn_command_one = { .groups = groups, .run = run };
C
    cat >src/cli/cmd_two.c <<'C'
/* two: reads another of the same name */
static const hn_opt opts[] = {
    HN_OPT("deaf", 0, FLAG, 0, ""),
};
static const hn_opt_group group = { "Two", opts };
static int run(const hn_cli *cli)
{
    return flag(cli, "deaf");
}
static const hn_opt_group *const groups[] = { &group, NULL };
const hn_command hn_command_two = { .groups = groups, .run = run };
C
    printf '# x\nsee [the other](docs/A.md#two-words-here), `lab/stats/stats.c`, `src/*/os.c`, tests/e2e/NAME.sh and a/src/that/is/elsewhere\n' >README.md
    printf '# a\n## Two words, here\nback [up](../README.md), src/base/os.c.\n' >docs/A.md
    printf '# map\n*.c lint\nsrc/* e2e/all\ninclude/* e2e/all\n' >tests/map.txt
    echo '. lib.sh' >tests/e2e/all.sh
    echo 'HN_CFLAGS = -ffp-contract=off' >Makefile
}
edit() { sed "$1" "$2" >"$tmp/edited" && cat "$tmp/edited" >"$2"; }
run() { sh "$lint" "$tmp/t" >"$tmp/out" 2>&1; }
# also WHAT PATTERN: the tree as it is now has that breach, and more will be put beside it
also() {
    n=$((n + 1))
    printf '%s\t%s\n' "$1" "$2" >>"$tmp/breaches"
}
# look: each of them has a line of its own in what lint says of the tree
look() {
    if run; then
        echo "lint-selftest: passes with:"
        cut -f 1 "$tmp/breaches"
        bad=$((bad + 1))
    fi
    while IFS="$tab" read -r what pattern; do
        of_all=$(cut -f 2 "$tmp/breaches" | grep -cFx -- "$pattern")
        seen=$(grep -c -- "$pattern" "$tmp/out")
        [ "$seen" -ne "$of_all" ] || continue
        [ "$seen" -eq 0 ] || [ "$(wc -l <"$tmp/breaches")" -gt 1 ] || continue # alone it may have several
        echo "lint-selftest: $what: expected $of_all lines with '$pattern', got $seen:"
        cat "$tmp/out"
        bad=$((bad + 1))
    done <"$tmp/breaches"
    : >"$tmp/breaches"
    n_trees=$((n_trees + 1))
    tree
}
expect() { # expect WHAT PATTERN: alone
    also "$@"
    look
}
tab=$(printf '\t')
n_trees=0
: >"$tmp/breaches"

tree
n=$((n + 1))
run || { echo "lint-selftest: the clean tree fails:"; cat "$tmp/out"; bad=$((bad + 1)); }

echo x >numpy-2.whl;                                 also "an archive" "numpy-2.whl: a program, an archive"
echo x >crash-1f;                                    also "what a fuzzer left" "crash-1f: a program, an archive"
echo '#include "gguf/gguf.h"' >>src/quant/quant.h;   also "arrow against the list" "quant/ may not include gguf/gguf.h"
echo '#include "lab/lab.h"' >>src/gguf/gguf.c;       also "library includes the laboratory" "gguf/ may not include lab/lab.h"
echo '#include "gguf/gguf.h"' >>src/cli/main.c;      also "cli looks behind the public API" "cli/ may not include gguf/gguf.h"
echo '#include "quant/quant.h"' >>src/lab/stats/stats.c;     also "lab looks behind the public API" "lab/stats/ may not include quant/quant.h"
echo '#include "lab/bench/bench.h"' >>src/lab/stats/stats.c; also "a room of the lab includes one to its right" "lab/stats/ may not include lab/bench/bench.h"
printf '/* x */\n#include "gguf/gguf.h"\n' >src/lab/bench/x.c; also "only inside/ sees the library" "lab/bench/ may not include gguf/gguf.h"
echo '/* x */' >src/lab/x.c;                         also "a file of no room of the lab" "lab/ has rooms"
look
echo 'typedef struct { int x; } hn_two;' | tee -a src/gguf/gguf.c >>src/lab/stats/stats.c; also "a type defined twice" "hn_two: defined in src/gguf/gguf.c too"
printf 'typedef struct hn_a {\n    int x;\n} hn_a;\n' | tee -a src/gguf/gguf.c >>src/quant/quant.h; also "the same, in lines" "hn_a: defined in"
edit 's/flag(cli, "read")/0/' src/cli/cmd_one.c;          also "an option that nobody reads" "--read is accepted by hn_command_one, and not read"
edit 's/HN_OPT("read"/HN_OPT("deaf", 0, FLAG, 0, ""), HN_OPT("read"/' src/cli/cmd_one.c; also "an option that another command reads" "cmd_one.c:3: --deaf is accepted by hn_command_one"
edit 's/names\[0\]\.name/0/' src/cli/cmd_one.c;           also "an option of a table that nobody uses" "--listed is accepted by hn_command_one"
edit 's/hn_opts_forward(cli)/0/' src/cli/cmd_one.c;        also "an option that is not handed on" "--passed is accepted by hn_command_one"
edit 's/return flag/return hn_cli_without_effect/' src/cli/cmd_two.c; also "refused is not read" "--deaf is accepted by hn_command_two"
look
edit 's/return reads(cli)/return 0/' src/cli/cmd_one.c;    expect "a function that run does not reach" "--read is accepted by hn_command_one"
echo 'int g(void *s) { return hone_prefill(s, 0, 1, 0, 0); }' >>src/lab/stats/stats.c; also "a name of an older version" "hone_append, hone_run_batch"
echo '#  include "../gguf/gguf.h"' >>src/base/base.h; also "relative include" "name it from src/"
echo '#include "other.h"' >>src/base/base.h;         also "header of nowhere" "not in this room"
mkdir src/attic; echo '/* x */' >src/attic/x.c;      also "unknown room" "not a room"
echo '/* x */' >src/lab/stats/gguf.c;                      also "basename twice" "same basename"
yes '/* long */' | head -n 1501 >src/gguf/long.c;    also "long file" "1501 lines"
: >src/gguf/empty.c;                                also "empty file" "empty.c:1: does not open with a comment"
printf '/* x */\n%0121d\n' 0 >src/cli/x.js;          also "a long line of a script of the page" "x.js:2: 121 columns"
echo 'p { }' >src/cli/x.css;                         also "a style without a word" "x.css:1: does not open with a comment"
echo 'int x;' >src/gguf/bare.c;                      also "no opening comment" "bare.c:1: does not open with a comment"
look
echo 'void g(void) { exit(1); }' >>src/gguf/gguf.c;  also "exit in the library" "never exits"
echo 'void g(void) { abort(); }' >>src/gguf/gguf.c;  also "abort in the library" "never exits"
echo 'void g(void) { printf("x"); }' >>src/quant/quant.h; also "print in the library" "never exits"
echo 'void g(void) { fputs("x", stderr); }' >>src/gguf/gguf.c; also "stderr in the library" "only hn_log"
echo 'void g(void) { fprintf(stderr, "x"); }' >>src/cli/main.c; also "text past the sink" "hn_err_printf"
echo 'void *g(void) { return mmap(0, 1, 1, 1, 1, 0); }' >>src/gguf/gguf.c; also "a mapping nobody can name" "hn_mapped_open"
echo 'void g(char *p) { strcpy(p, "x"); }' >>src/cli/main.c; also "strcpy" "unbounded"
echo 'HN_CFLAGS += -ffast-math' >>Makefile;          also "fast math in the build" "changes results"
echo '__attribute__((optimize("fast-math"))) void g(void);' >>src/gguf/gguf.c; also "fast math in a file" "changes results"
echo "/* TO""DO later */" >>src/gguf/gguf.c;         also "a promise" "write an issue"
printf 'int y;\t\n' >>src/gguf/gguf.c;               also "tab" "tab or trailing blank"
look
echo 'long g(void) { return getauxval(16); }' >>src/gguf/gguf.c;           also "a call of one system" "base/os.c is the place"
echo 'void g(void *p) { qsort_r(p, 1, 1, 0, 0); }' >>src/cli/main.c;       also "a call with two meanings" "base/os.c is the place"
echo 'int g = MAP_PRIVATE | MAP_POPULATE;' >>src/gguf/gguf.c;              also "a flag of one system" "base/os.c is the place"
echo 'long g(struct stat *s) { return s->st_mtim.tv_sec; }' >>src/lab/stats/stats.c; also "a field of one system" "base/os.c is the place"
echo '#include <sys/prctl.h>' >>src/lab/stats/stats.c;                             also "a header of one system" "base/os.c is the place"
echo 'void g(void) __attribute__((alias("f")));' >>src/lab/stats/stats.c;          also "an alias" "ELF only"
echo 'const char *g = "/proc/self/maps";' >>src/gguf/gguf.c;               also "a file of Linux" "files of Linux"
look
printf 'int check_out(void)\n{\n    return rename("a", "b");\n}\nint g(int a,\n      int b)\n{\n    return rename("a", "b");\n}\n' >>src/lab/stats/stats.c
also "rename, but in the one function that may" "stats.c:12: rename in g()"
echo 'json_t *g(char *s) { return json_loads(s, 0, 0); }' >>src/lab/stats/stats.c;  also "jansson's reader" "is the reader of JSON"
echo 'json_t *g(FILE *f) { return json_loadf (f, 0, 0); }' >>src/gguf/gguf.c; also "jansson's reader in the library" "is the reader of JSON"
echo 'void g(void) { fopen("x", "wb"); }' >>src/lab/stats/stats.c;                  also "fopen for writing" 'fopen("x", "wb").*written by base/file.h'
echo 'void g(const char *m) { fopen("x", m); }' >>src/cli/main.c;            also "fopen for who knows what" 'fopen("x", m).*written by base/file.h'
echo 'int g(void) { return open("x", O_WRONLY | O_CREAT, 0666); }' >>src/gguf/gguf.c; also "a file made past the writer" "O_CREAT in g()"
echo 'int g(void) { return open("x", O_RDWR|O_TRUNC); }' >>src/lab/stats/stats.c;    also "a file cut" "O_TRUNC in g()"
look
edit 's/#include <stdint.h>/uint64_t hone_y(void);/' include/hone.h; expect "header does not stand alone" "does not compile alone"
edit 's/#include <stdint.h>/#include <stdio.h>/' include/hone.h;     expect "header drags stdio in" "needs only stdbool"
edit 's/hone_x/other_x/' include/hone.h;           expect "public name" "public names start"
echo 'as `src/base/gone.c` says' >>README.md;         also "a path that is gone" "README.md:3: src/base/gone.c: no such file"
echo '| `src/gguf/gone.c` | 12 | 99 % |' >>docs/A.md;      also "a row of a file that is gone" "A.md:4: src/gguf/gone.c: no such file"
mkdir -p tests/fuzz; printf '/* f\n * covers: src/gguf/gone.c */\n' >tests/fuzz/fuzz_f.c; also "a fuzz target of a file that is gone" "covers src/gguf/gone.c"
echo 'as `base/gone.h` says' >>docs/A.md;             also "a header that is gone" "docs/A.md:5: src/base/gone.h: no such file"
echo 'in tests/support' >>docs/A.md;                  also "a folder that is gone" "tests/support: no such file"
echo 'see [b](B.md)' >>docs/A.md;                     also "a link to nothing" "link to B.md: no such file"
printf '\n## M\n| m | tok/s |\n|---|---|\n| a | 12 |\nRecord: `benchmarks/gone.jsonl`: hone bench -m M\n' >>README.md; also "a record that is gone" "benchmarks/gone.jsonl: no such file"
echo 'see [b](docs/A.md#three)' >>README.md;          also "a link to no section" "A.md#three: no such section"
look
echo 'src/gone/* e2e/all' >>tests/map.txt;            also "a pattern of nothing" "map.txt:5: src/gone/\*: matches no file"
echo 'src/gguf/* e2e/gone' >>tests/map.txt;           also "a check that is gone" "e2e/gone: there is no tests/e2e/gone.sh"
edit 's|^src/\*|src/[bgql]*|' tests/map.txt;          also "a source without a check" "src/cli/main.c: no line of tests/map.txt"
: >tests/e2e/other.sh;                               also "a script that nothing names" "tests/e2e/other.sh: no line"
look
printf '\n## M\n| m | tok/s |\n|---|---|\n| a | 12 |\n' >>README.md; expect "figures without a record" "README.md:7: a table of figures without \"Record"
printf '\n## M\n| m | tok/s |\n|---|---|\n| a | 12 |\nNo record: commit `0123abc`.\n' >>README.md; expect "figures without a command" "README.md:7: a table of figures without a command"
rm include/hone.h;                                   expect "no public header" "missing"

echo "lint-selftest: $n breaches in $n_trees trees, $bad wrong"
[ "$bad" -eq 0 ]
