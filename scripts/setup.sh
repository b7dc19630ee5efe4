#!/bin/sh
# Makes sure that what hone needs is on this machine. Usage: setup.sh build|test
#   build  compiler, make and the libraries of the program
#   test   these, and what the tests use; parts that only widen the tests (another
#          architecture, a second compiler) may be missing: their checks are skipped
# Looks for each thing itself first: nothing missing, nothing done, no network. On
# Debian and its relatives the missing packages are installed by apt-get, as root or
# with sudo; elsewhere they are named.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-build}
CC=${CC:-gcc}

header_of() { # header_of HEADER [DEFINE]
    printf '%s\n#include <%s>\n' "${2:+#define $2}" "$1" | $CC -E -x c - >/dev/null 2>&1
}
have() { command -v "$1" >/dev/null 2>&1; }

missing=
want() { # want PACKAGE TEST…: PACKAGE is missing unless TEST succeeds
    package=$1
    shift
    "$@" || missing="$missing $package"
}

case $CC in
gcc) want gcc have gcc ;;
*) have "${CC%% *}" || { echo "setup: CC=$CC: no such compiler" >&2; exit 1; } ;;
esac
want make have make
want libc6-dev header_of stdio.h
# libraries: those whose headers the sources, and for tests also the tests, include
sources=$(echo src/*/*.[ch] src/*/*/*.[ch])
[ "$what" = test ] && sources="$sources $(echo tests/*/*.[ch])"
for lib in libjansson-dev:jansson.h libutf8proc-dev:utf8proc.h libedit-dev:histedit.h libevent-dev:event2/event.h \
    "libpcre2-dev:pcre2.h:PCRE2_CODE_UNIT_WIDTH 8"; do
    package=${lib%%:*}
    h=${lib#*:}
    define=
    case $h in *:*) define=${h#*:} h=${h%%:*} ;; esac
    if grep -qs "^#include <$h>" $sources; then want "$package" header_of "$h" "$define"; fi
done
if [ "$what" = test ]; then
    # cmocka.h wants its own includes first
    cmocka() { printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' | $CC -E -x c - >/dev/null 2>&1; }
    want libcmocka-dev cmocka
fi
required=$missing

missing=
# hone pull: without them hone is built all the same, and says what it lacks
want pkg-config have pkg-config
want libcurl4-openssl-dev header_of curl/curl.h
if [ "$what" = test ]; then
    want g++ have g++
    if [ "$(uname -m)" = x86_64 ]; then
        want gcc-aarch64-linux-gnu have aarch64-linux-gnu-gcc
        want libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdio.h
        want qemu-user have qemu-aarch64
    fi
fi
optional=$missing

required=${required# }
optional=${optional# }
[ -n "$required$optional" ] || exit 0

give_up() { # says what is missing; only required things are a failure
    if [ -n "$required" ]; then
        echo "setup: missing: $required (Debian 12 names)" >&2
        echo "setup: $1; install these and run this again" >&2
        [ -z "$optional" ] || echo "setup: hone pull or wider tests also want: $optional" >&2
        exit 1
    fi
    echo "setup: not installed, so hone pull or some checks will be missing: $optional ($1)" >&2
    exit 0
}

have apt-get && have dpkg || give_up "this system has no apt-get"
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif have sudo && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
elif have sudo && [ -n "$required" ] && [ -t 0 ] && [ -t 2 ]; then
    as_root=sudo # asks for the password, on the terminal
else
    give_up "not root, and sudo is missing or wants a password"
fi

apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null; }
install() { apt install -y --no-install-recommends "$@"; }

echo "setup: installing with apt-get: $required${optional:+ (and, where they can be had: $optional)}"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
apt update >"$log" 2>&1 || { tail -n 3 "$log" >&2; echo "setup: apt-get update failed; trying with the package lists there are" >&2; }
if [ -n "$required" ]; then
    if ! install $required >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        give_up "apt-get could not install them"
    fi
fi
if [ -n "$optional" ] && ! install $optional >"$log" 2>&1; then
    # one of them may not exist here; the others are still worth having
    for p in $optional; do
        install "$p" >"$log" 2>&1 || echo "setup: $p: cannot be installed here; hone pull, or checks that need it, will be missing" >&2
    done
fi
echo "setup: done"
