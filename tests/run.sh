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
#   clang     a warning-free build with clang, which is not run: -O0 will do; of the tests the warnings alone
#   quick     alone: build, lint and programs, of a build that compiles in a third of the time (FLAVOUR=quick)
#   check     what $CHECK names, as scripts/check.sh calls it
# No stage: all of the suite. A test is a cmocka case, a line "ok"/"not ok" of a script, or a
# program that says neither. Exit 77 or a line "SKIP: reason" means skipped.
# The last line is: N passed, N failed, N skipped.
# LIMIT, LIMIT_BUILD: seconds for a test program, for a build; whoever takes longer has failed.
# SIDE_BY_SIDE: so many test programs at once (one more than processors: some wait); 1 is one after the other.
# Each writes its log to build/test-logs. What each took is in times.tsv there: its name, seconds that passed, seconds of
# processors (of its children too), seconds after which it began; those that took most of processors are named at the end.
set -u
case ${1:-} in
-h | --help) sed -n '2,22s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
cd "$(dirname "$0")/.." || exit 1
if [ "$*" = quick ]; then
    FLAVOUR=${FLAVOUR:-quick}
    set -- build lint programs
fi
FLAVOUR=${FLAVOUR:-release}
B=${B:-build/$FLAVOUR}
MAKE=${MAKE:-make}
CC=${CC:-gcc}
LIMIT=${LIMIT:-1800}
LIMIT_BUILD=${LIMIT_BUILD:-1800}
unset MAKEFLAGS MAKELEVEL MFLAGS
LC_ALL=C.UTF-8
CMOCKA_MESSAGE_OUTPUT=TAP
export LC_ALL CC CMOCKA_MESSAGE_OUTPUT
jobs=$(nproc 2>/dev/null || echo 2)
SIDE_BY_SIDE=${SIDE_BY_SIDE:-$((jobs + 1))}
logs=build/test-logs
mkdir -p "$logs"
XDG_STATE_HOME=$(pwd)/$logs/state # what tests make hone remember of files
export XDG_STATE_HOME
q=$logs/queue.$$
passed=0 failed=0 skipped=0 queued=0
failures=
times=$logs/times.tsv
: >"$times"

now() { date +%s; }
started=$(now)

# descendants PID: what it started, and what that started, in whatever process group
descendants() {
    { cat /proc/[0-9]*/stat || ps -A -o pid= -o nice= -o ppid=; } 2>/dev/null |
        awk -v root="$1" '{ pid = $1; sub(/.*\)/, pid); parent[pid] = $3 }
            END { for (p in parent) { for (k = parent[p]; k > 1 && k != root; ) k = parent[k]; if (k == root) print p } }'
}
# A driver that is stopped takes with it what it started.
stopped() { # stopped STATUS SIGNAL
    trap '' INT TERM HUP
    left=$(descendants $$)
    kill -TERM $left 2>/dev/null
    sleep 1
    kill -KILL $left 2>/dev/null
    rm -rf "$q"
    echo "tests/run.sh: stopped by $2"
    exit "$1"
}
trap 'stopped 129 SIGHUP' HUP
trap 'stopped 130 SIGINT' INT
trap 'stopped 143 SIGTERM' TERM

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
        case $2 in
        124) printf ' (stopped after %s s)' "$limit" ;;
        137) printf ' (killed: %s s and ten more, or memory)' "$limit" ;;
        esac
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
# timed NAME COMMAND…: as the command; a line of times.tsv: name, seconds that passed, seconds of processors, when it began
timed() {
    _name=$1 _clock=$(log_of "$1") _began=$(($(now) - started)) _from=$(date +%s%N)
    _clock=${_clock%.log}.clock
    shift
    times >"$_clock" # of this shell and of the children it has waited for
    "$@"
    _rc=$?
    times >>"$_clock"
    # a date that knows no nanoseconds ends in letters
    awk -v name="$_name" -v from="$_from" -v to="$(date +%s%N)" -v began="$_began" '
        { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); cpu += (NR > 2 ? 1 : -1) * (t[1] * 60 + t[2]) } }
        END { printf "%s\t%s\t%.1f\t%s\n", name, from to ~ /[^0-9]/ ? "?" : sprintf("%.1f", (to - from) / 1e9), cpu, began }
    ' "$_clock" >>"$times"
    rm -f "$_clock"
    return $_rc
}
slowest() {
    [ -s "$times" ] || return
    tab=$(printf '\t')
    echo "most processor time:"
    sort -t "$tab" -k 3 -rn "$times" | head -n 10 |
        while IFS=$tab read -r name s cpu _; do printf '  %7s s of processors, %7s s  %s\n' "$cpu" "$s" "$name"; done
    awk -F "$tab" '{ cpu += $3 } END { printf "%.0f seconds of processors\n", cpu }' "$times"
}
log_of() { echo "$logs/$(echo "$1" | tr ' /:' '___').log"; }
limit=$LIMIT
# limited LOG COMMAND…: does not return. timeout(1) also gives back SIGINT, which a shell
# lets everything ignore that it starts with &.
limited() {
    exec >"$1" 2>&1 </dev/null
    shift
    exec timeout -k 10 "$limit" "$@"
}
# check NAME COMMAND…: one test, or as many as the command reports
check() {
    name=$1
    shift
    log=$(log_of "$name")
    timed "$name" limited_here "$log" "$@"
    tally "$name" $? "$log"
}
limited_here() {
    limited "$@" &
    wait $! # a signal ends this; it would wait for a command in the foreground
}
built() { # built NAME COMMAND…: as check, where compilers are at work
    limit=$LIMIT_BUILD
    check "$@"
    limit=$LIMIT
}
skip() { # skip NAME REASON
    skipped=$((skipped + 1))
    printf 'skip  %-34s %s\n' "$1" "$2"
}

# later NAME COMMAND…: as check, but when side_by_side comes, and with others beside it; alone: behind these
later() {
    mkdir -p "$q"
    queued=$((queued + 1))
    printf '%s\n' "$@" >"$q/$(printf %04d "$queued").job"
}
alone() {
    mkdir -p "$q"
    queued=$((queued + 1))
    printf '%s\n' "$@" >"$q/$(printf %04d "$queued").alone"
}
# Takes one job after the other until there is none, builds and those of $LONG first, so that none of
# them is left alone at the end. mkdir is the claim: it succeeds for one worker only.
worker() {
    for job in $(grep -lxE -e 'build .*' "$q"/*.job) $(grep -lE -e "$LONG" "$q"/*.job) "$q"/*.job; do
        kill -0 $$ 2>/dev/null || exit # the driver was killed
        job=${job%.job}
        mkdir "$job.taken" 2>/dev/null || continue
        set --
        while IFS= read -r word; do set -- "$@" "$word"; done <"$job.job"
        name=$1
        log=$(log_of "$1")
        shift
        timed "$name" in_shell limited "$log" "$@"
        echo $? >"$job.new"
        mv "$job.new" "$job.rc"
    done
}
in_shell() { ("$@"); }
at_work() {
    for pid in $workers; do kill -0 "$pid" 2>/dev/null && return; done
    return 1
}
# side_by_side: runs what `later` has gathered, $SIDE_BY_SIDE at a time, and tells the
# results in the order in which they were gathered
side_by_side() {
    [ "$queued" -gt 0 ] || return
    workers=
    n=0
    while [ "$n" -lt "$SIDE_BY_SIDE" ] && [ "$n" -lt "$queued" ]; do
        worker &
        workers="$workers $!"
        n=$((n + 1))
    done
    for job in "$q"/*.job; do
        [ -f "$job" ] || continue
        while [ ! -f "${job%.job}.rc" ] && at_work; do sleep 0.2; done
        name=$(head -n 1 "$job")
        log=$(log_of "$name")
        rc=1
        if [ -f "${job%.job}.rc" ]; then
            read -r rc <"${job%.job}.rc"
        else
            echo "not ok 1 - its end is unknown: the worker was killed" >>"$log"
        fi
        tally "$name" "$rc" "$log"
    done
    wait
    for job in "$q"/*.alone; do
        [ -f "$job" ] || continue
        set --
        while IFS= read -r word; do set -- "$@" "$word"; done <"$job"
        check "$@"
    done
    rm -rf "$q"
    queued=0
}

# run_programs FOLDER-OF-FLAVOUR LABEL [NAME-PATTERN]
run_programs() {
    found=
    for t in "$1"/tests/unit/* "$1"/tests/property/* "$1"/tests/golden/* "$1"/tests/fault/*; do
        [ -f "$t" ] && [ -x "$t" ] || continue
        # a program whose source is gone is a left-over
        [ -f "${t#"$1"/}.c" ] || continue
        name=$(basename "$t")
        echo "$name" | grep -qE -e "${3:-.}" || continue
        found=1
        when=later
        echo "$name" | grep -qxE -e "$ALONE" && when=alone
        $when "$2${t#"$1"/tests/}" $runner "$t"
    done
    [ -n "$found" ] || { echo "FAIL  $2: no test program found under $1/tests"; failed=$((failed + 1)); }
}
# Programs that measure with every processor have the machine for themselves: none fails beside others, but they
# would take the longer. No test asks how fast a machine is.
ALONE='test_(bench_entries|lab_peaks)'
# Those that take longest begin first.
LONG='e2e.(mutants|train|faults|bench|perplexity|one_answer)|tests.cross|test_(grad|pack_file|session|text_vectors|rwkv|adapter|dataset)$|fuzz_|mutate_'
runner=

stage_build() {
    built "build" "$MAKE" -j"$jobs" B="$B" FLAVOUR="$FLAVOUR" WERROR=1 all run-programs
}
stage_lint() {
    later "lint" sh scripts/lint.sh .
    if [ "$FLAVOUR" != quick ]; then # who changes these scripts runs make check, and everything sees them
        later "lint can fail" sh scripts/lint-selftest.sh
        later "the driver can fail" sh tests/run-selftest.sh
    fi
    for f in test.sh demo.sh benchmark.sh scripts/*.sh tests/run.sh tests/e2e/*.sh tests/cross/*.sh; do
        [ -f "$f" ] || continue
        case $(head -n 1 "$f") in
        *bash*) later "syntax of $f" bash -n "$f" ;;
        *) later "syntax of $f" sh -n "$f" ;;
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
        name=$(basename "$t" .sh)
        case " $SOLO " in *" $name "*) when=alone ;; *) when=later ;; esac
        case $name in
        lib) ;;
        mutants) for part in 1 2; do later "e2e mutants, part $part of 2" sh "$t" $part/2; done ;;
        *) $when "e2e $name" sh "$t" ;;
        esac
    done
}
# Scripts that compare speeds measured by turns: beside others they would need more rounds.
SOLO="ab gate"
stage_install() { check "install" env B="$B" MAKE="$MAKE" sh tests/install.sh; }
stage_asan() {
    # (of who allocated, six calls are noted: thirty cost a sixth of the time of all these tests)
    ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:handle_sigill=1:allocator_may_return_null=1:malloc_context_size=6}
    UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export ASAN_OPTIONS UBSAN_OPTIONS
    prepare built asan
    run_programs build/asan "asan "
    for t in build/asan/tests/fuzz/fuzz_* build/asan/tests/fuzz/mutate_*; do
        [ -f "$t" ] && [ -x "$t" ] && [ -f "${t#build/asan/}.c" ] || continue
        name=$(basename "$t")
        corpus=tests/fuzz/corpus/${name#*_}
        [ -d "$corpus" ] || corpus=
        case $name in # mutants of format-aware programs reach deeper: more of them
        mutate_*) set -- "${MUTANTS:-20000}" ;;
        fuzz_history | fuzz_peaks | fuzz_grammar | fuzz_packrun) set -- -runs="${FUZZ_RUNS:-500}" ;; # each takes milliseconds
        *) set -- -runs="${FUZZ_RUNS:-2000}" ;;
        esac
        later "asan $name" "$t" "$@" $corpus
    done
    later "asan mutated models, opened and run" build/asan/tests/fuzz/mutate_gguf -model "${MUTANTS:-20000}" tests/fuzz/corpus/model
    later "asan mutated families, opened and run" build/asan/tests/fuzz/mutate_gguf -model "${MUTANTS_FAMILIES:-4000}" tests/golden/families
}
stage_tsan() {
    # address space layout randomisation with many bits confuses older ThreadSanitizers
    if setarch -R true 2>/dev/null; then runner="setarch -R"; fi
    if ! tsan_runs; then
        skip "tsan" "ThreadSanitizer does not run here"
        runner=
        return
    fi
    prepare built tsan
    run_programs build/tsan "tsan " "$threads"
    runner=
}
tsan_runs() {
    probe=$logs/tsan-probe
    echo 'int main(void) { return 0; }' >"$probe.c"
    $CC -fsanitize=thread "$probe.c" -o "$probe" 2>/dev/null && { "./$probe" || setarch -R "./$probe"; } >/dev/null 2>&1
}
threads=${TSAN_TESTS:-test_(pool|thread|session|engine|batch|serve|synth|backend|file|known|mapped|http)}
# Of the rooms in sources.mk those that these programs enter, half of all files. Who enters another is not linked.
TSAN_LIB="base quant gguf kernels backend template text model engine forge"
TSAN_APP="lab/stats lab/machine serve"
tsan_programs() { # only what will run
    for t in tests/unit/*.c tests/property/*.c tests/golden/*.c tests/fault/*.c; do
        [ -f "$t" ] && basename "$t" .c | grep -qE -e "$threads" && echo "build/tsan/${t%.c}"
    done
}
stage_cross() {
    if [ "$(uname -m)" != x86_64 ]; then skip "cross aarch64" "this machine is $(uname -m), not x86_64"; return; fi
    for tool in $CROSS_TOOLS; do
        command -v $tool >/dev/null 2>&1 || { skip "cross aarch64" "no $tool"; return; }
    done
    prepare built cross
    later "cross aarch64" sh tests/cross/compare.sh build/release build/aarch64
    later "cross instructions" sh tests/cross/instructions.sh build/release build/aarch64
}
CROSS_TOOLS="aarch64-linux-gnu-gcc qemu-aarch64"
stage_clang() {
    clang=$(clang_here)
    if [ -z "$clang" ]; then skip "clang" "no clang"; return; fi
    prepare built clang
}
clang_here() {
    for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
        command -v $c >/dev/null 2>&1 && echo $c && return
    done
}

# prepare HOW STAGE: builds what a stage runs: built, now, or later, beside the tests of an earlier stage and behind them
# wherever both want a processor. Once.
prepared=
prepare() {
    case " $prepared " in *" $2 "*) return ;; esac
    prepared="$prepared $2"
    behind=
    [ "$1" = built ] || behind="nice -n 19"
    case $2 in
    asan) $1 "build asan" $behind "$MAKE" -j"$jobs" FLAVOUR=asan B=build/asan test-programs ;;
    tsan) $1 "build tsan" $behind "$MAKE" -j"$jobs" FLAVOUR=tsan B=build/tsan "LIB_ROOMS=$TSAN_LIB" "APP_ROOMS=$TSAN_APP" $(tsan_programs) ;;
    cross) $1 "build aarch64" $behind "$MAKE" -j"$jobs" WERROR=1 cross-programs ;;
    clang) $1 "build with $clang" $behind "$MAKE" -j"$jobs" CC="$clang" CFLAGS=-O0 B=build/clang WERROR=1 READ_TESTS=1 all test-objects ;;
    esac
}
# prepare_ahead STAGE…: those of which the tools are here
prepare_ahead() {
    for ahead in "$@"; do
        case " $stages " in *" $ahead "*) ;; *) continue ;; esac
        case $ahead in
        tsan) tsan_runs || continue ;;
        cross)
            [ "$(uname -m)" = x86_64 ] || continue
            for tool in $CROSS_TOOLS; do command -v $tool >/dev/null 2>&1 || continue 2; done
            ;;
        clang) clang=$(clang_here) && [ -n "$clang" ] || continue ;;
        esac
        prepare later "$ahead"
    done
}

stage_check() { # CHECK: names as in tests/map.txt
    HONE=$(pwd)/$B/hone
    HONE_B=$(pwd)/$B
    export HONE HONE_B
    for name in $CHECK; do
        case " $SOLO " in *" ${name#e2e/} "*) when=alone ;; *) when=later ;; esac
        echo "${name##*/}" | grep -qxE -e "$ALONE" && when=alone
        corpus=tests/fuzz/corpus/${name#*/*_}
        [ -d "$corpus" ] || corpus=
        case $name in
        e2e/*) $when "e2e ${name#e2e/}" sh "tests/$name.sh" ;;
        lint) $when "lint" sh scripts/lint.sh . ;;
        lint-selftest) $when "lint can fail" sh scripts/lint-selftest.sh ;;
        run-selftest) $when "the driver can fail" sh tests/run-selftest.sh ;;
        install) $when "install" env B="$B" MAKE="$MAKE" sh tests/install.sh ;;
        fuzz/mutate_*) $when "$name" "$B/tests/$name" 500 $corpus ;;
        fuzz/*) $when "$name" "$B/tests/$name" -runs=50 $corpus ;;
        *) $when "$name" "$B/tests/$name" ;;
        esac
    done
}

[ $# -gt 0 ] || set -- build lint programs e2e install asan tsan cross clang
for stage in "$@"; do
    case $stage in
    build | lint | programs | e2e | install | asan | tsan | cross | clang | check) ;;
    *) echo "tests/run.sh: unknown stage $stage (see --help)"; exit 2 ;;
    esac
done
# What stages side by side have queued is run when one comes that must wait for it, so that no processor waits for the last
# program of a stage. asan and tsan run the same programs, which would write the same files.
group_of() {
    case $1 in
    lint | programs | e2e) echo 1 ;;
    tsan | cross | clang) echo 2 ;;
    *) echo "$1" ;;
    esac
}
# Compilers leave no processor idle and tests do, at the end of a group and where they wait: what a group runs is built
# beside the tests of the group before it.
stages="$*"
end_of_group() {
    case $group in
    1) prepare_ahead asan ;;
    asan) prepare_ahead tsan cross clang ;;
    esac
    side_by_side
}
group=
for stage in "$@"; do
    [ "$group" = "$(group_of "$stage")" ] || end_of_group
    group=$(group_of "$stage")
    echo "== $stage ($(($(now) - started)) s)"
    "stage_$stage"
done
end_of_group
slowest
[ -z "$failures" ] || echo "failed (logs):$failures"
echo "$(($(now) - started)) seconds"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
