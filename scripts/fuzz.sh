#!/bin/sh
# Fuzzes every target for some seconds: with libFuzzer where clang is installed, else
# with the plain driver under gcc's sanitizers. Usage: fuzz.sh [SECONDS] [TARGET…]
# New finds land in build/fuzz-corpus/TARGET, crashes in build/fuzz-crashes.
set -u
seconds=${1:-60}
[ $# -eq 0 ] || shift
clang=
for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
    command -v $c >/dev/null 2>&1 && { clang=$c; break; }
done
if [ -n "$clang" ] && echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' |
    $clang -x c -w -fsanitize=fuzzer - -o /dev/null 2>/dev/null; then
    ${MAKE:-make} --no-print-directory -j"$(nproc 2>/dev/null || echo 2)" FLAVOUR=fuzz CC="$clang" tests || exit 1
    b=build/fuzz
else
    echo "fuzz: no clang with libFuzzer; using the plain driver"
    clang=
    ${MAKE:-make} --no-print-directory -j"$(nproc 2>/dev/null || echo 2)" FLAVOUR=asan tests || exit 1
    b=build/asan
fi
mkdir -p build/fuzz-crashes
here=$(pwd)
bad=0
found=
for t in "$b"/tests/fuzz/fuzz_*; do
    [ -f "$t" ] && [ -x "$t" ] || continue
    name=$(basename "$t")
    [ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
    found=1
    seeds=$here/tests/fuzz/corpus/${name#fuzz_}
    [ -d "$seeds" ] || seeds=
    echo "fuzz: $name, $seconds s"
    if [ -n "$clang" ]; then
        mkdir -p "build/fuzz-corpus/$name"
        "$t" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix=build/fuzz-crashes/"$name"- "build/fuzz-corpus/$name" $seeds || bad=1
    else
        end=$(($(date +%s) + seconds))
        seed=$(date +%s)
        while [ "$(date +%s)" -lt "$end" ]; do
            (cd build/fuzz-crashes && "$here/$t" -seed="$seed" -runs=20000 $seeds) || { bad=1; break; }
            seed=$((seed + 1))
        done
    fi
done
[ -n "$found" ] || { echo "fuzz: no target under tests/fuzz" >&2; exit 1; }
exit $bad
