#!/bin/sh
# hone bench and benchmark.sh: shapes, the quality hash, invalid results, the history.
. tests/e2e/lib.sh

root=$(pwd)
if [ ! -f "$TINY" ]; then
    skip "hone bench" "$TINY is not here"
    finish
fi
M=$T/model.gguf
small_model "$M"
small="-p 32 -n 24"
# value KEY [FILE]: a top-level value of one line of compact JSON
value() { sed -n 's/^{\(.*,\)\{0,1\}"'"$1"'":\("[^"]*"\|[^,}]*\).*/\2/p' "${2:-$T/out}" | head -n 1; }
check() { # check WHAT SEEN EXPECTED
    if [ "$2" = "$3" ]; then ok "$1"; else
        echo "# seen: $2   expected: $3"
        not_ok "$1"
    fi
}
top() { # top KEY: as value, but only before the first nested object
    sed 's/,"notes":.*//' "$T/out" >"$T/top"
    value "$1" "$T/top"
}

expect 0 "bench --json" "$HONE" bench -m "$M" --quality quick $small -r 2 --json
check "one line of JSON" "$(wc -l <"$T/out" | tr -d ' ')" 1
check "schema" "$(top schema)" '"hone.bench/1"'
check "valid" "$(top valid)" true
for key in load_ms ttft_ms prefill_tok_s decode_tok_s peak_anon_mb; do
    v=$(top $key)
    case $v in
    [0-9]*) ok "$key is a number" ;;
    *) echo "# $key: $v"; not_ok "$key is a number" ;;
    esac
done
says "quality hash" '"quality":"q2q?-[0-9a-f]{8}-[0-9a-f]{8}"' "$T/out"
check "two samples" "$(grep -o '"gaps_ms":\[' "$T/out" | wc -l | tr -d ' ')" 2
check "the plain run is e2e" "$(top id)" '"e2e"'
says "and each run has a number of its own" '"record":"[0-9a-f]{12}"' "$T/out"
hash=$(top quality)
says "how much of the model is in memory, and in huge pages" '"model_resident_mb":[0-9.]+.*"model_huge_mb":(null|[0-9.]+)' "$T/out"
check "no more in huge pages than in memory" "$(sed -n 's/.*"model_resident_mb":\([0-9.]*\).*"model_huge_mb":\([0-9.]*\).*/\1 \2/p' "$T/out" | awk '{ print ($2 + 0 <= $1) }')" 1

# the same answer, whatever the setting
for setting in "-t 1" "-t 3" "--chunk 7" "--cpu scalar"; do
    run "$HONE" bench -m "$M" --quality quick $small -r 1 --json $setting
    check "same quality hash with $setting" "$(top quality)" "$hash"
done
run "$HONE" bench -m "$M" --quality quick $small -r 1 --json --kv f32
case $(top quality) in
"$hash") not_ok "another KV cache type gives other logits" "$T/out" ;;
*) ok "another KV cache type gives other logits" ;;
esac

expect 0 "no prompt, some depth" "$HONE" bench -m "$M" -p 0 -n 8 -d 16 -r 1 --json --no-quality
check "no prompt, no prefill rate" "$(top prefill_tok_s)" null
check "not checked is neither valid nor invalid" "$(top valid)" null
check "and says so" "$(top invalid_reason)" '"quality not checked (--no-quality)"'
check "no hash" "$(top quality)" null
expect 0 "nothing generated" "$HONE" bench -m "$M" -p 8 -n 0 -r 1 --json --no-quality
check "nothing generated, no decode rate" "$(top decode_tok_s)" null
expect 0 "the table" "$HONE" bench -m "$M" --quality quick $small -r 2
says "a verdict for people" '^verdict  valid' "$T/out"
says "medians for people" '^decode tok/s +[0-9]' "$T/out"

# degenerate models: recorded as invalid, however fast
bytes=$(wc -c <"$M" | tr -d ' ')
keep=$((bytes / 5)) # well behind the metadata of a small vocabulary
damage() { # damage OCTAL FILE: from `keep` on every byte is this one
    { head -c $keep "$M"; head -c $((bytes - keep)) /dev/zero | tr '\000' "\\$1"; } >"$2"
}
damage 377 "$T/nan.gguf"
run "$HONE" bench -m "$T/nan.gguf" $small -r 1 --json --file "$T/bad/hist" --title "not a number"
check "NaN: exit code" "$rc" 1
check "NaN: invalid" "$(top valid)" false
case $(top invalid_reason) in *NaN*) ok "NaN: named" ;; *) not_ok "NaN: named" "$T/out" ;; esac
says "NaN: in the history, struck through" '~~.*INVALID: .*NaN' "$T/bad/hist.md"
says "NaN: in the record" '"title":"not a number".*"valid":false' "$T/bad/hist.jsonl"
damage 000 "$T/zero.gguf"
run "$HONE" bench -m "$T/zero.gguf" $small -r 1 --json --file "$T/bad/hist"
check "zero weights: exit code" "$rc" 1
check "zero weights: invalid" "$(top valid)" false
check "two records" "$(wc -l <"$T/bad/hist.jsonl" | tr -d ' ')" 2
run "$HONE" bench -m "$T/zero.gguf" $small -r 1 --json --no-quality
check "zero weights without quality run: invalid all the same" "$(top valid)" false

# errors
expect 2 "no model" "$HONE" bench
expect 3 "a model that is not there" "$HONE" bench -m "$T/none.gguf"
says "it is named" 'none\.gguf'
expect 3 "a folder as model" "$HONE" bench -m "$T"
expect 2 "a bad count" "$HONE" bench -m "$M" --quality quick -p x
expect 2 "no samples" "$HONE" bench -m "$M" --quality quick -r 0
expect 2 "an argument" "$HONE" bench -m "$M" --quality quick extra
expect 2 "the hidden mode is not for people" "$HONE" bench -m "$M" --quality quick _sample now
expect 2 "a history without a name" "$HONE" bench -m "$M" --quality quick --file x/
expect 2 "an unknown level" "$HONE" bench -m "$M" --quality quick --cpu abacus
echo x >"$T/plain"
expect 1 "a history that cannot be written" "$HONE" bench -m "$M" -p 4 -n 4 -r 1 --no-quality --file "$T/plain/h"
says "its path is named" 'plain'

# a measured process that is killed
"$HONE" bench -m "$M" -p 8 -n 100000 -r 1 --no-quality --json --file "$T/killed" >"$T/out" 2>"$T/err" </dev/null &
parent=$!
child=
await children_seen $parent "$T/child" 1
child=$(grep . "$T/child" | tail -n 1)
if [ -z "$child" ]; then
    kill $parent 2>/dev/null
    wait $parent
    skip "a killed process" "its number cannot be found here"
else
    kill -9 "$child"
    wait $parent
    check "killed: exit code" "$?" 1
    check "killed: invalid" "$(top valid)" false
    case $(top invalid_reason) in *"killed by signal 9"*) ok "killed: named" ;; *) not_ok "killed: named" "$T/out" "$T/err" ;; esac
    says "killed: recorded" '"valid":false' "$T/killed.jsonl"
fi

# interrupted: no record, and no process left behind
"$HONE" bench -m "$M" -p 8 -n 100000 -r 3 --no-quality --file "$T/stopped" >"$T/out" 2>"$T/err" </dev/null &
parent=$!
rm -f "$T/child"
await children_seen $parent "$T/child" 1
child=$(grep . "$T/child" | tail -n 1)
kill -TERM $parent
wait $parent
check "SIGTERM: exit code" "$?" 6
if [ -f "$T/stopped.jsonl" ]; then not_ok "SIGTERM: no record"; else ok "SIGTERM: no record"; fi
if [ -n "$child" ] && kill -0 "$child" 2>/dev/null; then not_ok "SIGTERM: no process left"; else ok "SIGTERM: no process left"; fi

# interrupted with samples: those are shown and kept, the exit code says that there are not all
rm -f "$T/child"
"$HONE" bench -m "$M" -p 8 -n 8 -r 5000 --no-quality --json --file "$T/part" >"$T/out" 2>"$T/err" </dev/null &
parent=$!
await children_seen $parent "$T/child" 8 # each is a sample, or a warm-up
kill -INT $parent
wait $parent
rc=$?
check "stopped with samples: exit code" "$rc" 6
says "stopped: a note says after how many" 'interrupted after [0-9]+ of 5000' "$T/out"
check "stopped: one record" "$(wc -l <"$T/part.jsonl" | tr -d ' ')" 1

# options of other harnesses
case $HONE in /*) ;; *) HONE=$root/$HONE ;; esac
expect 0 "--warmup, --iterations, --timing" "$HONE" bench -m "$M" $small --iterations 2 --warmup 1 --timing --no-quality
says "a row for each process" '^2 +[0-9.]+ +[0-9.]+ ' "$T/out"
says "the gaps" '^gaps +46: median' "$T/out"
expect 0 "--measurement-time" "$HONE" bench -m "$M" -p 4 -n 4 -r 1 --no-quality --measurement-time 2 --warm-up-time 0.1 --json
many=$(grep -o '"gaps_ms"' "$T/out" | wc -l)
[ "$many" -gt 1 ] && ok "more samples than -r when there is time" || not_ok "more samples than -r when there is time" "$T/out"
says "warm-ups are counted" '"warmups":[1-9]' "$T/out"
expect 0 "--framework hone" "$HONE" bench -m "$M" -p 4 -n 4 -r 1 --no-quality --framework hone --shard 1
for option in "--framework llama.cpp" "--fair-comparison" "--strategies hybrid" "--shard 2"; do
    expect 2 "$option" "$HONE" bench -m "$M" --quality quick $option
    says "$option: what is missing" 'not in this build: needs '
done
expect 2 "--framework nobody" "$HONE" bench -m "$M" --quality quick --framework nobody
expect 2 "--counts without an entry" "$HONE" bench -m "$M" --quality quick --counts 1,2
says "names the entry" 'disp\.call'
expect 2 "--warmup less than none" "$HONE" bench -m "$M" --quality quick --warmup -1
expect 2 "--measurement-time without a number" "$HONE" bench -m "$M" --quality quick --measurement-time soon

mkdir "$T/b"
full=$(realpath "$M")
cd "$T/b" || exit 1
expect 0 "--save-baseline" "$HONE" bench -m "$full" $small -r 3 --save-baseline one
if [ -f benchmarks/baselines/one.json ]; then ok "the baseline is there"; else not_ok "the baseline is there" "$T/out"; fi
check "its record is in the history" "$(wc -l <benchmarks/local.jsonl | tr -d ' ')" 1
run "$HONE" bench -m "$full" $small -r 3 --baseline one --save-baseline two
says "--baseline: compared with it" '^baseline one: ' "$T/out"
says "answers first" '^quality +q2q?-[^ ]*, as in the baseline' "$T/out"
expect 2 "a baseline of entries needs a file" "$HONE" bench load.parse -m "$full" --save-baseline three
expect 0 "a baseline of entries" "$HONE" bench load.parse e2e.clean -m "$full" -r 3 --file here --save-baseline three
if [ -f benchmarks/baselines/three.json ]; then ok "it is there"; else not_ok "it is there" "$T/out" "$T/err"; fi
run "$HONE" bench -m "$full" $small -r 1 --no-quality --baseline nobody
[ "$rc" -ne 0 ] && ok "a baseline that is not there" || not_ok "a baseline that is not there" "$T/out"
cd "$root" || exit 1
run "$HONE" bench -m "$M" $small -r 1 --no-quality --profile
says "--profile: operations" '^ +attn_qkv ' "$T/out"
expect 2 "--profile and --json" "$HONE" bench -m "$M" --quality quick --profile --json

# benchmark.sh
expect 0 "benchmark.sh -h" ./benchmark.sh -h
says "help names every option" '-m MODEL' "$T/out"
export HONE
expect 0 "benchmark.sh asks nothing without a terminal" ./benchmark.sh -m "$M" -f "$T/h/my" -- --quality quick $small -r 2
says "row on stdout" '^\| [0-9-]+ [0-9:]+ \| untitled \| ' "$T/out"
expect 0 "benchmark.sh with title and change" ./benchmark.sh -m "$M" -f "$T/h/my" -t "a | title" -c "a change" -- --quality quick $small -r 2
says "they are in the row" 'a \\\| title \| a change \|' "$T/h/my.md"
check "one header" "$(grep -c '^| Date | Title' "$T/h/my.md")" 1
check "two rows" "$(grep -c '^| 2' "$T/h/my.md")" 2
check "two records" "$(grep -c '"schema":"hone.bench/1"' "$T/h/my.jsonl")" 2
printf '{"schema":"hone.bench/1","cut' >>"$T/h/my.jsonl"
(cd "$T" && "$root/benchmark.sh" -m "$(cd "$root" && realpath "$M")" -f h/my -t x -c y -- --quality quick $small -r 1 >"$T/out" 2>"$T/err" </dev/null)
check "from another folder" "$?" 0
check "a cut line does not swallow the next record" "$(grep -c '^{"schema":"hone.bench/1","id"' "$T/h/my.jsonl")" 3
expect 0 "benchmark.sh passes long options on" ./benchmark.sh --iterations 2 -m "$M" --no-quality -f "$T/h/long" --warmup 1 --title="given so" --measurement-time=0.1 -- -p 4 -n 4
says "they arrived" '"warmups":1,' "$T/h/long.jsonl"
says "and the title" '"title":"given so"' "$T/h/long.jsonl"
expect 0 "benchmark.sh measures entries" ./benchmark.sh -m "$M" -f "$T/h/ids" -t x -c y load.parse --iterations 1
says "into the same file" '"id":"load.parse"' "$T/h/ids.jsonl"
printf '#!/bin/sh\ncase " $* " in *" --help "*) exec "%s" "$@" ;; esac\necho "$@"\n' "$HONE" >"$T/told" # what it is told
chmod +x "$T/told"
expect 0 "benchmark.sh takes an option's value for no id" env HONE="$T/told" ./benchmark.sh -t x -c y --save-baseline kern-opt
says "the model is measured" '--model=[^ ]*hone-tiny.gguf .* --save-baseline kern-opt$' "$T/out"
expect 0 "benchmark.sh knows what measures no model" env HONE="$T/told" ./benchmark.sh -t x -c y --seed -1 --quick kern.norm.256
says "and passes a value on that begins with a line" '^bench --samples=6 .* --seed -1 --quick kern.norm.256$' "$T/out"
expect 2 "benchmark.sh refuses what hone bench refuses" ./benchmark.sh -m "$M" -t x -c y --framework pytorch
expect 2 "benchmark.sh with an unknown option" ./benchmark.sh -x
expect 2 "benchmark.sh without a value" ./benchmark.sh -m
expect 3 "benchmark.sh with a model that is not there" ./benchmark.sh -m "$T/none.gguf" -f "$T/h/my"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    printf 'typed title\ntyped change\n' | timeout 120 script -qec "./benchmark.sh -m $M -f $T/h/tty -- --quality quick $small -r 1" /dev/null >"$T/out" 2>&1
    says "asked on a terminal" 'typed title \| typed change' "$T/h/tty.md"
else
    skip "asking on a terminal" "script(1) finds no pseudo-terminal here"
fi
# ---- lists: every combination ----
expect 0 "a grid" "$HONE" bench -m "$TINY" -p 8,16 --n-gen=4,5 -t 1 -r 1 --no-quality
grep '^==\|^config' "$T/out" | tr '\n' ' ' >"$T/cells"
says "each combination, named" '^== -p 8 --n-gen=4 config +prompt 8, generate 4,.* == -p 8 --n-gen=5 config +prompt 8, generate 5,.* == -p 16 --n-gen=4 .* == -p 16 --n-gen=5 config +prompt 16, generate 5,' "$T/cells"
expect 0 "a grid as JSON" "$HONE" bench -m "$TINY" -p 8-16*2 -n 0 -r 1 --no-quality --json
[ "$(grep -c '^{"schema":"hone.bench/1"' "$T/out")" = 2 ] && ok "a record a line" || not_ok "a record a line" "$T/out"
expect 2 "no list of numbers" "$HONE" bench -m "$TINY" -p 8,x -r 1
says "is one value, and wrong" "'8,x' is not a whole number"

# ---- as a table ----
expect 0 "CSV" "$HONE" bench -m "$TINY" -p 8,16 -n 8 -t 1 -r 1 --no-quality --format csv
[ "$(grep -c '^kind,record,id,' "$T/out")" = 1 ] && [ "$(grep -c . "$T/out")" = 23 ] &&
    ok "one head, and a line of each of 11 metrics of both" || not_ok "one head, and a line of each of 11 metrics of both" "$T/out"
tr -d '\r' <"$T/out" | awk -F, 'NR == 1 { n = NF } NF != n && !/"[^"]*,[^"]*"/ { bad = 1 } END { exit bad }' &&
    ok "all lines have its columns" || not_ok "all lines have its columns" "$T/out"
says "what a token allocates" '"decode_tok_s","tok/s".*,"token",0,0,0' "$T/out"
expect 0 "the same of a file" "$HONE" bench -m "$TINY" -p 8 -n 8 -t 1 -r 1 --no-quality --format csv --file "$T/table"
cp "$T/out" "$T/printed"
expect 0 "as the report has it" "$HONE" lab report "$T/table.jsonl" --csv -
cmp -s "$T/out" "$T/printed" && ok "byte for byte" || not_ok "byte for byte" "$T/printed" "$T/out"
expect 0 "Markdown" "$HONE" bench tok.decode sample.greedy -m "$TINY" --quick --format md
says "a table" '^\| What \| Configuration \| Metric \| Median \| Unit \| Allocations ' "$T/out"
says "a row" '^\| tok.decode \| .* \| ns \| 0 \| 6 \| valid(; target &lt; 100 ns: (not )?met)? \|$' "$T/out"
[ "$(grep -vc '^|' "$T/out")" = 0 ] && ok "and nothing else" || not_ok "and nothing else" "$T/out"
expect 0 "JSON by another name" "$HONE" bench tok.decode -m "$TINY" --quick --format json
says "is the same" '^\{"schema":"hone.suite/1".*\}$' "$T/out"
expect 2 "two formats" "$HONE" bench tok.decode -m "$TINY" --json --format md
expect 2 "a table and something behind it" "$HONE" bench -m "$TINY" --profile --format md

# ---- a result beside the last one like it, and beside what is required of it ----
quick="-m $TINY -p 8 -n 4 -t 1 --quality quick --file $T/beside"
expect 0 "a first run" "$HONE" bench $quick -r 6 --title first
if grep -q '^last  *20' "$T/out"; then not_ok "is compared with nothing" "$T/out"; else ok "is compared with nothing"; fi
expect 0 "a second, and what must hold" "$HONE" bench $quick -r 6 --require 'decode>=0.001' --require 'load_ms<1e9'
says "is compared with the first" '^last +20[0-9TZ:-]+, first: another time' "$T/out"
says "a verdict of each rate" '^ +decode_tok_s +[0-9.]+ -> +[0-9.]+ tok/s +[0-9.e+-]+ to [0-9.e+-]+ times as fast +(SAME|INCONCLUSIVE|REGRESSED|IMPROVED)' "$T/out"
expect 10 "what does not hold" "$HONE" bench $quick -r 1 --require 'decode_tok_s>=1e9'
says "is said" 'required decode_tok_s >= 1e\+09, measured [0-9.]+ '
says "one sample is no comparison" 'too few samples to say' "$T/out"
says "and no interval" '1 sample: no interval, which needs six' "$T/out"
expect 10 "another length is another measurement" "$HONE" bench $quick -n 5 -r 1 --require 'decode_tok_s>=1e9'
if grep -q '^last  *20' "$T/out"; then not_ok "and compared with nothing" "$T/out"; else ok "and compared with nothing"; fi
expect 2 "a metric that is not measured" "$HONE" bench load.total -m "$TINY" --require 'decode_tok_s>=1'
says "what there is" 'there are load.total'
expect 1 "what was left out is not met" "$HONE" bench memory.state memory.load -m "$TINY" -r 1 --quick --require 'memory.state<=1e9'
says "and why" 'required memory.state <= 1e\+09, but it was not measured: .*recurrent'
expect 2 "no requirement" "$HONE" bench -m "$TINY" --require 'decode=1'
expect 0 "an entry with a wish" "$HONE" bench load.parse -m "$TINY" -r 6 --quick --require 'load.parse<1e6'
says "is held against it" '< 1 ms: (met|not met|open)' "$T/out"

finish
