#!/bin/sh
# Runs tests and counts them. Usage: [B=build/release] [FLAVOUR=release] tests/run.sh [STAGE…]
#   build     the program, the libraries and the tests, warnings as errors
#   lint      the rules of the house, and whether lint can still see a breach
#   programs  every test program of this flavour (tests/unit, property, golden, fault)
#   e2e       tests/e2e/*.sh with the built program, as its users run it
#   install   make install and uninstall, the exported names, a program built against hone.pc
#   asan      the test programs under AddressSanitizer and UBSan, and the fuzz corpus
#   tsan      the test programs that use threads, under ThreadSanitizer
#   cross     the same outputs from an aarch64 build under emulation
#   clang     a warning-free build with clang
# No stage: all of them. A test is a cmocka case, a line "ok"/"not ok" of a script, or a
# program that says neither. Exit 77 or a line "SKIP: reason" means skipped.
# The last line is: N passed, N failed, N skipped.
set -u
case ${1:-} in
-h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
cd "$(dirname "$0")/.." || exit 1
FLAVOUR=${FLAVOUR:-release}
B=${B:-build/$FLAVOUR}
MAKE=${MAKE:-make}
CC=${CC:-gcc}
LIMIT=${LIMIT:-900} # seconds for one test program
unset MAKEFLAGS MAKELEVEL MFLAGS
LC_ALL=C.UTF-8
export LC_ALL CC
jobs=$(nproc 2>/dev/null || echo 2)
logs=build/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=

now() { date +%s; }
started=$(now)

# tally NAME RC LOG: counts what a test printed, shows it when something failed
tally() {
    counts=$(awk -v rc="$2" '
        /^1\.\.[0-9]+/ { plan += substr($0, 4) }
        /^SKIP:/ { pending = 1; reasons++ }
        /^(not )?ok [0-9]+ # SKIP/ { s++; pending = 0; next }
        /^not ok [0-9]+/ { f++; pending = 0; next }
        /^ok [0-9]+/ { if (pending) s++; else p++; pending = 0; next }
        END {
            seen = p + f + s
            if (rc == 77) { if (!seen) s = 1 }
            else if (!seen && !plan) { if (rc != 0) f = 1; else if (reasons) s = 1; else p = 1 }
            else {
                if (plan > seen) f += plan - seen   # died on the way
                if (rc != 0 && !f) f = 1            # a leak, a sanitizer at exit
            }
            print p + 0, f + 0, s + 0
        }' "$3")
    set -- "$1" "$2" "$3" $counts
    passed=$((passed + $4)) failed=$((failed + $5)) skipped=$((skipped + $6))
    if [ "$5" -gt 0 ]; then
        printf 'FAIL  %-34s %d passed, %d failed, %d skipped' "$1" "$4" "$5" "$6"
        [ "$2" -eq 124 ] && printf ' (stopped after %s s)' "$LIMIT"
        echo " (exit $2); its output:"
        grep -n -B 1 -A 8 '^not ok' "$3" | head -n 60 | sed 's/^/    | /'
        echo "    | its end:"
        tail -n 30 "$3" | sed 's/^/    | /'
        failures="$failures
  $1 ($3)"
    elif [ "$6" -gt 0 ]; then
        printf 'skip  %-34s %d passed, %d skipped: %s\n' "$1" "$4" "$6" \
            "$(sed -n 's/^SKIP: *//p; s/^\(not \)\{0,1\}ok [0-9]* # SKIP *//p' "$3" | sort -u | head -n 3 | paste -sd ';' - | cut -c 1-150)"
    else
        printf 'ok    %-34s %d passed\n' "$1" "$4"
    fi
}
# check NAME COMMAND…: one test, or as many as the command reports
check() {
    name=$1
    shift
    log=$logs/$(echo "$name" | tr ' /:' '___').log
    CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 "$LIMIT" "$@" >"$log" 2>&1 </dev/null
    tally "$name" $? "$log"
}
skip() { # skip NAME REASON
    skipped=$((skipped + 1))
    printf 'skip  %-34s %s\n' "$1" "$2"
}

# programs FOLDER-OF-FLAVOUR LABEL [NAME-PATTERN]
run_programs() {
    found=
    for t in "$1"/tests/unit/* "$1"/tests/property/* "$1"/tests/golden/* "$1"/tests/fault/*; do
        [ -f "$t" ] && [ -x "$t" ] || continue
        # a program whose source is gone is a left-over
        [ -f "${t#"$1"/}.c" ] || continue
        if [ -n "${3:-}" ]; then
            basename "$t" | grep -qE "$3" || continue
        fi
        found=1
        check "$2$(basename "$t")" $runner "$t"
    done
    [ -n "$found" ] || { echo "FAIL  $2: no test program found under $1/tests"; failed=$((failed + 1)); }
}
runner=

stage_build() {
    check "build" "$MAKE" -j"$jobs" B="$B" FLAVOUR="$FLAVOUR" WERROR=1 all tests
}
stage_lint() {
    check "lint" sh scripts/lint.sh .
    check "lint can fail" sh scripts/lint-selftest.sh
    check "the driver can fail" sh tests/run-selftest.sh
    for f in test.sh demo.sh benchmark.sh scripts/*.sh tests/run.sh tests/e2e/*.sh tests/cross/*.sh; do
        [ -f "$f" ] || continue
        case $(head -n 1 "$f") in
        *bash*) check "syntax of $f" bash -n "$f" ;;
        *) check "syntax of $f" sh -n "$f" ;;
        esac
    done
}
stage_programs() { run_programs "$B" ""; }
stage_e2e() {
    if [ ! -x "$B/hone" ]; then
        echo "FAIL  e2e: $B/hone is not built"
        failed=$((failed + 1))
        return
    fi
    HONE=$(pwd)/$B/hone
    HONE_B=$(pwd)/$B
    export HONE HONE_B
    for t in tests/e2e/*.sh; do
        [ "$t" = tests/e2e/lib.sh ] && continue
        check "e2e $(basename "$t" .sh)" sh "$t"
    done
}
stage_install() { check "install" env B="$B" MAKE="$MAKE" sh tests/install.sh; }
stage_asan() {
    ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:allocator_may_return_null=1}
    UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export ASAN_OPTIONS UBSAN_OPTIONS
    check "build asan" "$MAKE" -j"$jobs" FLAVOUR=asan B=build/asan tests
    run_programs build/asan "asan "
    for t in build/asan/tests/fuzz/fuzz_* build/asan/tests/fuzz/mutate_*; do
        [ -f "$t" ] && [ -x "$t" ] && [ -f "${t#build/asan/}.c" ] || continue
        name=$(basename "$t")
        corpus=tests/fuzz/corpus/${name#*_}
        [ -d "$corpus" ] || corpus=
        case $name in # mutants of format-aware programs reach deeper: more of them
        mutate_*) set -- "${MUTANTS:-20000}" ;;
        *) set -- -runs="${FUZZ_RUNS:-2000}" ;;
        esac
        check "asan $name" "$t" "$@" $corpus
    done
    check "asan mutated models, opened and run" build/asan/tests/fuzz/mutate_gguf -model "${MUTANTS:-20000}" tests/fuzz/corpus/model
}
stage_tsan() {
    # address space layout randomisation with many bits confuses older ThreadSanitizers
    if setarch -R true 2>/dev/null; then runner="setarch -R"; fi
    probe=$logs/tsan-probe
    echo 'int main(void) { return 0; }' >"$probe.c"
    if ! $CC -fsanitize=thread "$probe.c" -o "$probe" 2>/dev/null || ! $runner "./$probe" >/dev/null 2>&1; then
        skip "tsan" "ThreadSanitizer does not run here"
        runner=
        return
    fi
    check "build tsan" "$MAKE" -j"$jobs" FLAVOUR=tsan B=build/tsan tests
    run_programs build/tsan "tsan " "${TSAN_TESTS:-test_(pool|thread|session|engine|batch|server|synth|backend)}"
    runner=
}
stage_cross() {
    if [ "$(uname -m)" != x86_64 ]; then skip "cross aarch64" "this machine is $(uname -m), not x86_64"; return; fi
    for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
        command -v $tool >/dev/null 2>&1 || { skip "cross aarch64" "no $tool"; return; }
    done
    check "cross aarch64" "$MAKE" -j"$jobs" WERROR=1 cross
}
stage_clang() {
    clang=
    for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
        command -v $c >/dev/null 2>&1 && { clang=$c; break; }
    done
    if [ -z "$clang" ]; then skip "clang" "no clang"; return; fi
    check "build with $clang" "$MAKE" -j"$jobs" CC="$clang" B=build/clang WERROR=1 all tests
}

[ $# -gt 0 ] || set -- build lint programs e2e install asan tsan cross clang
for stage in "$@"; do
    case $stage in
    build | lint | programs | e2e | install | asan | tsan | cross | clang) ;;
    *) echo "tests/run.sh: unknown stage $stage (see --help)"; exit 2 ;;
    esac
done
for stage in "$@"; do
    echo "== $stage ($(($(now) - started)) s)"
    "stage_$stage"
done
[ -z "$failures" ] || echo "failed (logs):$failures"
echo "$(($(now) - started)) seconds"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
