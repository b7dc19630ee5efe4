#!/bin/sh
# make install puts everything where it belongs and uninstall leaves nothing; the shared
# library exports the names of hone.h and no others; a stranger's program builds against
# the installed hone.pc, header and libraries. Environment: B, MAKE, CC.
. tests/e2e/lib.sh
B=${B:-build/release}
MAKE=${MAKE:-make}
CC=${CC:-gcc}
D=$T/dest

expect 0 "make install" "$MAKE" B="$B" DESTDIR="$D" PREFIX=/opt/hone install
for f in bin/hone lib/libhone.so include/hone.h lib/pkgconfig/hone.pc share/doc/hone/LICENSE; do
    if [ -e "$D/opt/hone/$f" ]; then ok "installed: $f"; else not_ok "installed: $f"; fi
done
for f in share/man/man1/hone.1.gz share/man/man1/hone-run.1.gz share/man/man1/hone-lab.1.gz share/bash-completion/completions/hone \
    share/zsh/site-functions/_hone share/fish/vendor_completions.d/hone.fish share/doc/hone/docs/TRAIN.md; do
    if [ -s "$D/opt/hone/$f" ]; then ok "installed: $f"; else not_ok "installed: $f"; fi
done
# the README's links lead somewhere there, too
for f in $(grep -o '](\(docs/\|models/\|CHANGELOG\)[^)#]*' "$D/opt/hone/share/doc/hone/README.md" | sed 's/^](//'); do
    [ -e "$D/opt/hone/share/doc/hone/$f" ] || not_ok "the installed README names $f, which is not there"
done
size=$(du -sk "$D/opt/hone" | cut -f1)
[ "$size" -lt 12288 ] && ok "all of it is below 12 MB" || not_ok "all of it is below 12 MB: $size kB"
# nothing outside the prefix, nothing of the build folder inside
(cd "$D" && find . -type f | grep -v '^\./opt/hone/') >"$T/stray"
if [ -s "$T/stray" ]; then not_ok "nothing outside PREFIX" "$T/stray"; else ok "nothing outside PREFIX"; fi

# exported names = declared names
if command -v nm >/dev/null 2>&1; then
    nm -D --defined-only "$B/libhone.so" | awk '{ print $3 }' | grep -vE '^(_init|_fini|__bss_start|_edata|_end)$' | sort -u >"$T/exported"
    sed -n '/^HONE_API/p' include/hone.h | grep -oE 'hone_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$T/declared"
    if [ "$(wc -l <"$T/declared")" -ge 40 ]; then ok "hone.h declares functions"; else not_ok "hone.h declares functions" "$T/declared"; fi
    comm -13 "$T/declared" "$T/exported" >"$T/extra"
    comm -23 "$T/declared" "$T/exported" >"$T/lacking"
    if [ -s "$T/extra" ]; then not_ok "libhone.so exports nothing else" "$T/extra"; else ok "libhone.so exports nothing else"; fi
    if [ -s "$T/lacking" ]; then not_ok "libhone.so exports all of hone.h" "$T/lacking"; else ok "libhone.so exports all of hone.h"; fi
    # crtfastmath.o would switch subnormals off in the host program
    if nm "$B/libhone.so" "$B/hone" 2>/dev/null | grep -q set_fast_math; then not_ok "no crtfastmath"; else ok "no crtfastmath"; fi
else
    skip "exported names" "no nm"
fi
if command -v readelf >/dev/null 2>&1; then
    readelf -d "$B/libhone.so" >"$T/dyn"
    says "soname has the major version" "SONAME.*libhone\.so\.[0-9]+\]" "$T/dyn"
    if grep -q 'NEEDED.*libevent\|NEEDED.*libedit' "$T/dyn"; then
        not_ok "the library links nothing that only the program uses" "$T/dyn"
    else
        ok "the library links nothing that only the program uses"
    fi
else
    skip "soname" "no readelf"
fi

# a stranger's program
cat >"$T/hello.c" <<'C'
#include <hone.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    hone_error err;
    hone_model *m = (hone_model *)1;
    hone_status st = hone_model_open(&m, "/nonexistent/model.gguf", NULL, &err);
    if (st == HONE_OK || m) return 1;
    printf("%s %s: %s\n", hone_version(), hone_status_name(st), err.message);
    return strcmp(hone_version(), HONE_VERSION) || !strstr(err.message, "/nonexistent/model.gguf");
}
C
if command -v pkg-config >/dev/null 2>&1; then
    PKG_CONFIG_PATH=$D/opt/hone/lib/pkgconfig
    PKG_CONFIG_SYSROOT_DIR=$D
    export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
    run pkg-config --cflags --libs hone
    shared=$(cat "$T/out")
    run pkg-config --modversion hone
    says "hone.pc has the version of hone.h" "^$(sed -n 's/^.define HONE_VERSION "\(.*\)"/\1/p' include/hone.h)\$" "$T/out"
    expect 0 "builds against libhone.so" "$CC" "$T/hello.c" -o "$T/hello" $shared
    expect 0 "runs with libhone.so" env LD_LIBRARY_PATH="$D/opt/hone/lib" "$T/hello"
    unset PKG_CONFIG_SYSROOT_DIR
    run pkg-config --static --libs-only-l hone
    libs=$(sed 's/-lhone//' "$T/out")
    expect 0 "make install STATIC=1" "$MAKE" B="$B" DESTDIR="$D" PREFIX=/opt/hone STATIC=1 install
    expect 0 "builds against libhone.a" "$CC" "$T/hello.c" -o "$T/hello-static" "-I$D/opt/hone/include" "$D/opt/hone/lib/libhone.a" $libs
    expect 0 "runs with libhone.a" "$T/hello-static"
    unset PKG_CONFIG_PATH
else
    skip "a program built against hone.pc" "no pkg-config"
fi

# a conversation needs no model's name; without a model the name is asked for
printf 'Who are you?\n' >"$T/in"
run sh -c '"$1" chat --temp 0 <"$2"' x "$D/opt/hone/bin/hone" "$T/in"
says "installed: hone chat answers" "^I am hone-chat" "$T/out"
says "and says which model that is" "share/hone/hone-chat.gguf" "$T/err"
size=$(du -sk "$D/opt/hone/share/hone" | cut -f1)
[ "$size" -lt 4096 ] && ok "the model is below 4 MB" || not_ok "the model is below 4 MB: $size kB"
expect 0 "make install MODEL=0" "$MAKE" B="$B" DESTDIR="$T/bare" PREFIX=/opt/hone MODEL=0 install
run sh -c '"$1" chat --temp 0 <"$2"' x "$T/bare/opt/hone/bin/hone" "$T/in"
says "no model installed: hone chat asks for one" "no model; expected -m" "$T/err"

expect 0 "make uninstall" "$MAKE" B="$B" DESTDIR="$D" PREFIX=/opt/hone uninstall
(cd "$D" && find . -type f -o -type l) >"$T/left"
if [ -s "$T/left" ]; then not_ok "uninstall leaves nothing" "$T/left"; else ok "uninstall leaves nothing"; fi
# flags that change results are refused
expect 2 "CFLAGS=-Ofast is refused" "$MAKE" B="$T/b" CFLAGS=-Ofast all
says "and the flag is named" "-Ofast" "$T/err"
finish
