#!/bin/sh
# Fuzzes the targets of tests/fuzz: with libFuzzer where clang is installed, else with the plain driver under gcc's
# sanitizers. TARGET is a name with or without fuzz_; without any: all of them.
#
#   fuzz.sh [SECONDS] [TARGET…]          each for so long (60)
#   fuzz.sh --minutes N [TARGET…]        in turns of ten minutes, until each has had N minutes of processor time, those of
#                                        earlier runs counted in (build/fuzz-log); can be stopped and started again
#   fuzz.sh --minimize [TARGET…]         what was found becomes seeds: the fewest inputs that reach as much
#   fuzz.sh --coverage [TARGET…]         replays all inputs; lines reached of each file that a target says it covers,
#                                        and those that were not, in build/fuzz-coverage
#   fuzz.sh --replay [TARGET…]           every seed once, with libFuzzer's sanitizers
#
# New finds land in build/fuzz-corpus/TARGET, crashes in build/fuzz-crashes/TARGET-*, where the log of a run that ended
# badly is too.
set -u
here=$(pwd)
mode=seconds
amount=60
case ${1-} in
--minutes) mode=minutes amount=${2:?minutes are missing} && shift 2 ;;
--minimize | --coverage | --replay) mode=${1#--} && shift ;;
[0-9]*) amount=$1 && shift ;;
esac
wanted=" $* "
jobs=$(nproc 2>/dev/null || echo 2)

clang=
for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
    command -v $c >/dev/null 2>&1 && { clang=$c; break; }
done
if [ -n "$clang" ]; then
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' |
        $clang -x c -w -fsanitize=fuzzer - -o /dev/null 2>/dev/null || clang=
fi
# llvm-cov of the same version, which may have a name with a number
tool() {
    v=$("$clang" -dumpversion | sed 's/\..*//')
    for t in "$1-$v" "$1" "/usr/lib/llvm-$v/bin/$1"; do
        command -v "$t" 2>/dev/null && return
    done
    echo "fuzz: no $1 (package llvm)" >&2
    return 1
}

# Names without fuzz_, those that were asked for.
targets() {
    for t in tests/fuzz/fuzz_*.c; do
        name=$(basename "$t" .c)
        name=${name#fuzz_}
        case $wanted in "  " | *" $name "* | *" fuzz_$name "*) echo "$name" ;; esac
    done
}
list=$(targets)
[ -n "$list" ] || { echo "fuzz: no such target under tests/fuzz:$wanted" >&2; exit 1; }

# ---- coverage ------------------------------------------------------------------------------------------

coverage() {
    [ -n "$clang" ] || { echo "fuzz: coverage needs clang" >&2; exit 1; }
    profdata=$(tool llvm-profdata) && cov=$(tool llvm-cov) || exit 1
    ${MAKE:-make} --no-print-directory -j"$jobs" FLAVOUR=fuzzcov CC="$clang" fuzz-programs || exit 1
    out=build/fuzz-coverage
    mkdir -p $out
    for name in $list; do
        inputs=
        for d in "tests/fuzz/corpus/$name" "build/fuzz-corpus/$name"; do
            [ -d "$d" ] && inputs="$inputs $d"
        done
        LLVM_PROFILE_FILE=$out/$name.raw build/fuzzcov/tests/fuzz/fuzz_"$name" -timeout=60 $inputs \
            >$out/"$name".log 2>&1 || echo "fuzz: $name: $(tail -n 1 $out/"$name".log)"
        "$profdata" merge -o $out/"$name".prof $out/"$name".raw && rm -f $out/"$name".raw
    done
    rm -f $out/table
    files=$(for name in $list; do
        sed -n 's|^ \* covers: \([^*]*\).*|\1|p' "tests/fuzz/fuzz_$name.c" | tr ' ' '\n'
    done | sed '/^$/d' | sort -u)
    for f in $files; do
        by= profs= first=
        for name in $list; do
            grep -q "^ \* covers:.*[ ]$f\( \|\$\)" "tests/fuzz/fuzz_$name.c" || continue
            by="$by $name" profs="$profs $out/$name.prof" first=${first:-$name}
        done
        "$profdata" merge -o $out/file.prof $profs
        program=build/fuzzcov/tests/fuzz/fuzz_$first
        "$cov" export -summary-only -instr-profile=$out/file.prof "$program" "$f" 2>/dev/null |
            sed -n 's/.*"totals":.*"lines":{"count":\([0-9]*\),"covered":\([0-9]*\).*/\1 \2/p' |
            awk -v f="$f" -v by="$by" '
                { printf "%5.1f %% of %4d lines  %-30s %s\n", $1 ? 100 * $2 / $1 : 0, $1, f, by }' >>$out/table
        "$cov" show -instr-profile=$out/file.prof "$program" "$f" 2>/dev/null |
            grep -E '^ +[0-9]+\| +0\|' >$out/"$(basename "$f")".missed
    done
    rm -f $out/file.prof
    sort -n $out/table
    echo "lines that were not reached: $out/*.missed"
}
[ $mode != coverage ] || { coverage; exit 0; }

# ---- programs ----------------------------------------------------------------------------------------------

if [ -n "$clang" ]; then
    ${MAKE:-make} --no-print-directory -j"$jobs" FLAVOUR=fuzz CC="$clang" fuzz-programs || exit 1
    b=build/fuzz
else
    echo "fuzz: no clang with libFuzzer; using the plain driver"
    ${MAKE:-make} --no-print-directory -j"$jobs" FLAVOUR=asan fuzz-programs || exit 1
    b=build/asan
fi
# A fuzzer that does not see the ends of our own blocks finds nothing in them.
$b/tests/unit/test_base >build/test_base.log 2>&1 || {
    cat build/test_base.log
    echo "fuzz: $b/tests/unit/test_base fails" >&2
    exit 1
}
mkdir -p build/fuzz-crashes
bad=0

# One target for $2 seconds; what it did becomes a line of build/fuzz-log: target, CPU seconds, runs, edges reached.
fuzz_one() {
    name=$1
    seeds=$here/tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=
    log=build/fuzz-crashes/$name.log
    times >build/fuzz-times # not in a subshell, which has no children yet
    was=$(sed -n 2p build/fuzz-times)
    ok=0
    if [ -n "$clang" ]; then
        mkdir -p "build/fuzz-corpus/$name"
        "$b/tests/fuzz/fuzz_$name" -max_total_time="$2" -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 \
            -max_len=70000 -len_control=20 -artifact_prefix="build/fuzz-crashes/$name-" \
            "build/fuzz-corpus/$name" $seeds >"$log" 2>&1 || ok=1
    else
        end=$(($(date +%s) + $2)) seed=$(date +%s)
        while [ "$(date +%s)" -lt "$end" ] && [ $ok = 0 ]; do
            (cd build/fuzz-crashes && "$here/$b/tests/fuzz/fuzz_$name" -seed="$seed" -runs=5000 $seeds) \
                >"$log" 2>&1 || ok=1
            seed=$((seed + 1))
        done
    fi
    times >build/fuzz-times
    used=$({ echo "$was"; sed -n 2p build/fuzz-times; } | sed 's/[ms]/ /g' | awk '
        { t = 60 * ($1 + $3) + $2 + $4; if (NR > 1) printf "%d\n", t - was; was = t }')
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    echo "$name ${used:-0} ${runs:-0} ${edges:-0}" >>build/fuzz-log
    echo "fuzz: $name: ${used:-0} s of processor time, ${runs:-?} runs, ${edges:-?} edges"
    if [ $ok = 1 ]; then
        grep -E 'ERROR|SUMMARY|runtime error|broken|Test unit written|kept as' "$log" | head -n 8
        cp "$log" "build/fuzz-crashes/$name.$(date +%s).failed"
        bad=1
    else
        rm -f "$log"
    fi
    return $ok
}
spent() { awk -v t="$1" '$1 == t { s += $2 } END { print s + 0 }' build/fuzz-log 2>/dev/null || echo 0; }

case $mode in
seconds)
    for name in $list; do fuzz_one "$name" "$amount" || bad=1; done
    ;;
minutes)
    touch build/fuzz-log
    failed=" "
    more=1
    while [ $more = 1 ]; do
        more=0
        for name in $list; do
            case $failed in *" $name "*) continue ;; esac
            left=$((60 * amount - $(spent "$name")))
            [ "$left" -gt 0 ] || continue
            more=1
            # (to read what it found before takes some targets a minute)
            [ "$left" -ge 60 ] || left=60
            [ "$left" -le 600 ] || left=600
            fuzz_one "$name" "$left" || failed="$failed$name "
        done
    done
    [ "$failed" = " " ] || echo "fuzz: not finished, as they crash:$failed"
    ;;
replay)
    for name in $list; do
        log=build/fuzz-crashes/$name.log
        if "$b/tests/fuzz/fuzz_$name" -runs=0 -timeout=60 "tests/fuzz/corpus/$name" >"$log" 2>&1; then
            rm -f "$log"
        else
            echo "fuzz: $name fails: $log"
            bad=1
        fi
    done
    ;;
minimize)
    [ -n "$clang" ] || { echo "fuzz: minimizing needs clang" >&2; exit 1; }
    for name in $list; do
        [ -d "build/fuzz-corpus/$name" ] || continue
        # seeds with names are kept; what was found joins them where it reaches more
        mkdir -p "tests/fuzz/corpus/$name"
        log=build/fuzz-crashes/$name.log
        "$b/tests/fuzz/fuzz_$name" -merge=1 -use_counters=0 -timeout=60 -max_len=16384 "tests/fuzz/corpus/$name" \
            "build/fuzz-corpus/$name" >"$log" 2>&1 || bad=1
        rm -f "$log"
        echo "$name: $(ls "tests/fuzz/corpus/$name" | wc -l) inputs, $(cat "tests/fuzz/corpus/$name"/* | wc -c) bytes"
    done
    ;;
esac
[ ! -s build/fuzz-log ] || awk '{ cpu[$1] += $2; runs[$1] += $3; if ($4 > e[$1]) e[$1] = $4 }
    END { for (t in cpu) printf "%-12s %6.1f CPU minutes %12d runs %8.0f /s %7d edges\n",
              t, cpu[t] / 60, runs[t], cpu[t] ? runs[t] / cpu[t] : 0, e[t] }' build/fuzz-log | sort
exit $bad
