#!/bin/sh
# hone lab ab and hone lab selftest: verdicts and exit codes of commands whose difference is
# known, quality before timing, records, interruption. Short: statistics are tested by
# test_compare, and measured for good by `hone lab selftest`.
. tests/e2e/lib.sh
few="--rounds 8 --runs 1"
more="--rounds 20 --runs 1" # ten pairs of A and A

# ---- commands that print a number: the verdict does not depend on the machine's mood ----
echo 'n=$(od -An -N1 -tu1 /dev/urandom); echo "speed $(( $1 * 1000 + n )) ms"' >"$T/say.sh"
say="sh $T/say.sh"
expect 0 "the same" "$HONE" lab ab --cmd "$say 100" "$say 100" --metric 'number:speed ([0-9]+)' $few --file "$T/r"
says "SAME" '^verdict +SAME' "$T/out"
says "margin, floor, rounds are shown" '^number .* \[0?\.?[0-9.]+, [0-9.]+\] +2 % +n/a +8 +[0-9]+ ' "$T/out"
run "$HONE" lab ab --cmd "$say 100" "$say 106" --metric 'number:speed ([0-9]+)' $more --file "$T/r" --seed 5
[ "$rc" -eq 10 ] && ok "6 % longer: exit 10" || not_ok "6 % longer: exit $rc" "$T/out" "$T/err"
says "REGRESSED" '^number .*\[0\.94[0-9]*, 0\.94[0-9]*\] +2 % +0?\.[0-9]+ % +20 +[0-9]+ +REGRESSED' "$T/out"
says "which is said in words" '^ +B needs [56]\.[0-9]+ % more \([56]\.[0-9]+ to 6\.[0-9]+\)' "$T/out"
expect 0 "more is better with --higher" "$HONE" lab ab --cmd "$say 100" "$say 106" --metric 'number:speed ([0-9]+)' --higher $few --no-store --json
says "IMPROVED" '"verdict": ?"IMPROVED"' "$T/out"
check=$(wc -l <"$T/r.jsonl" | tr -d ' ')
[ "$check" = 2 ] && ok "one record each, none with --no-store" || not_ok "one record each, none with --no-store: $check"
for key in '"schema":"hone.ab/1"' '"seed":5' '"rounds":\[\{"order":"(AB|BA)","a":1' '"ci95":\[0\.94' '"aa_half_width":0\.0' '"env":\{"hash"' '"what":"command"' '"comparison":"[0-9a-f]{12}","first_rounds":20'; do
    says "the record has $key" "$key" "$T/r.jsonl"
done
# 0 to 30 % more, as a series has it that is the same each time: by chance a difference would be seen in it now and then
echo 'n=$((($(cat "$2") * 1103515245 + 12345) % 2147483648)); echo $n >"$2"; echo "speed $(($1 * 1000 + 30 * (n / 65536 % 1000)))"' >"$T/wild.sh"
echo 1 >"$T/n"
run "$HONE" lab ab --cmd "sh $T/wild.sh 100 $T/n" "sh $T/wild.sh 101 $T/n" --metric 'number:([0-9]+)' $few --seed 5 --no-store
[ "$rc" -eq 11 ] && ok "what noise hides is inconclusive: exit 11" || not_ok "what noise hides is inconclusive: exit $rc" "$T/out"
says "four looks" 'looks 4 of 4' "$T/out"
says "the noise is named" 'tells it from itself only within' "$T/out"
says "and the difference in words" '^ +B needs from [0-9.]+ % less to [0-9.]+ % more' "$T/out"
run "$HONE" lab ab --cmd "sh $T/wild.sh 1000000 $T/n" "sh $T/wild.sh 100 $T/n" --metric 'number:([0-9]+)' $few --seed 5 --no-store
says "sides that differ by far: each with its own digits" '^number +1000000000 +1[0-9]{5} ' "$T/out"
# every second run as long as it is, the others by chance down to a fifth: the best of a few is never the same, but runs side by side are often both undisturbed
cat >"$T/modes.sh" <<'EOF'
n=$((($(cat "$2") * 1103515245 + 12345) % 2147483648)); echo $n >"$2"
n=$((n / 65536)); [ $((n % 2)) -eq 0 ] && share=1000 || share=$((200 + n / 2 % 800))
echo "speed $(($1 * share))"
EOF
run "$HONE" lab ab --cmd "sh $T/modes.sh 1000 $T/n" "sh $T/modes.sh 1060 $T/n" --metric 'number:([0-9]+)' --rounds 8 --seed 5 --file "$T/modes"
[ "$rc" -eq 10 ] && ok "most runs disturbed, each in its own way: 6 % longer is seen" || not_ok "most runs disturbed, each in its own way: exit $rc" "$T/out" "$T/err"
says "by single runs" '^rounds +1 run of each side' "$T/out"
run "$HONE" lab ab --cmd "sleep 0.02" "true" $few --no-store
case $rc in 0 | 11) ok "wall time with CPU time beside it" ;; *) not_ok "wall time with CPU time beside it: exit $rc" "$T/err" ;; esac
says "a sleep of 20 ms takes as long as that, or longer" '^wall_ms +([2-9][0-9]|[0-9]{3,})[.0-9]* ' "$T/out"
expect 13 "code of others in the processes, and --strict" env LD_PRELOAD="$T/none.so" "$HONE" lab ab --cmd true true $few --no-store --strict
says "it is named" 'code of others.*none\.so'
expect 1 "a command that fails" "$HONE" lab ab --cmd "true" "echo oops >&2; false" $few --no-store
says "says so" 'exit code 1: oops'
expect 1 "no such number" "$HONE" lab ab --cmd "echo a" "echo b" --metric 'number:([0-9]+)' $few --no-store
expect 2 "an unknown metric" "$HONE" lab ab --cmd true true --metric beauty $few --no-store
says "the known ones" 'wall_ms, cpu_ms'
expect 2 "a record that is not kept" "$HONE" lab ab --cmd true true $few --no-store --file "$T/none"
says "is named" 'contradict each other'
expect 2 "nothing to measure" "$HONE" lab ab threads=1 threads=2
expect 2 "one side" "$HONE" lab ab --cmd true
expect 2 "too few rounds" "$HONE" lab ab --cmd true true --rounds 7
expect 2 "a command and an id" "$HONE" lab ab --cmd true true kern.norm.96

# ---- interrupted: what was measured is kept ----
"$HONE" lab ab --cmd "echo >>$T/ran; sleep 0.02" "echo >>$T/ran; sleep 0.02" --rounds 5000 --runs 1 --file "$T/i" --metric wall --margin 0.5 >"$T/out" 2>"$T/err" &
pid=$!
ran() { [ "$(wc -l <"$T/ran")" -ge 60 ]; }
await ran # warm-ups, and rounds
kill -INT $pid
wait $pid
rc=$?
[ "$rc" -eq 6 ] && ok "interrupted: exit 6" || not_ok "interrupted: exit $rc" "$T/out" "$T/err"
says "and says so" '^note +interrupted' "$T/out"
says "its rounds are kept" '"rounds":\[\{"order".*"interrupted":true' "$T/i.jsonl"

# ---- sides of a model ----
if [ -f "$TINY" ]; then
    small="-m $TINY -p 8 -n 4 -t 1 $few --margin 0.5 --no-store --quality quick"
    run "$HONE" lab ab this chunk=64 $small --json
    case $rc in 0 | 11) ok "two configurations" ;; *) not_ok "two configurations: exit $rc" "$T/err" ;; esac
    says "the same quality" '"quality": ?\["(q2q?-[0-9a-f-]*)", ?"\1"\]' "$T/out"
    says "both rates" '"metric": ?"decode_tok_s".*"metric": ?"prefill_tok_s"' "$T/out"
    expect 12 "other answers: nothing is timed" "$HONE" lab ab this kv=q8_0 $small
    says "both hashes" 'quality of b \(kv=q8_0\): q2q?-'
    says "the way on" 'allow-different'
    run "$HONE" lab ab this kv=q8_0 $small --allow-different --metric decode
    case $rc in 0 | 10 | 11) ok "accepted: measured" ;; *) not_ok "accepted: exit $rc" "$T/err" ;; esac
    says "and shown" 'THE SIDES ANSWER DIFFERENTLY|THE SAME WORDS, BY OTHER NUMBERS' "$T/out"
    if grep -qE "verdict +(IMPROVED|SAME)" "$T/out"; then not_ok "other answers are not called better" "$T/out"; else ok "other answers are not called better"; fi
    expect 2 "a setting that bench does not know" "$HONE" lab ab this colour=red $small
    says "names it" 'colour'
    small_model "$T/small.gguf"
    run timeout 100 "$HONE" lab selftest -m "$T/small.gguf" --quick --json
    case $rc in 0 | 13) ok "selftest: what must be noticed is noticed" ;; *) not_ok "selftest: exit $rc" "$T/out" "$T/err" ;; esac
    for check in aa constant nan block roof claims ways; do says "selftest: $check" '"'$check'": ?\{[^}]*"exercised": ?true, ?"passed": ?true' "$T/out"; done
    says "the odds" '"right": ?[0-9]+, ?"tries": ?[0-9]+, ?"interval": ?\[' "$T/out"
else
    skip "sides of a model" "$TINY is not here"
fi
expect 2 "selftest without a model" "$HONE" lab selftest -m "$T/none.gguf"

# ---- kernels that stay in this process ----
run "$HONE" lab ab layout=plain layout=packed kern.gemv.Q8_0.64x256 -t 1 $few --no-store
case $rc in 0 | 10 | 11) ok "two layouts of a kernel" ;; *) not_ok "two layouts of a kernel: exit $rc" "$T/err" ;; esac
says "microseconds" '^us +[0-9.]+ +[0-9.]+ us' "$T/out"
expect 2 "a row of many kernels" "$HONE" lab ab cpu=scalar cpu=avx2 kern.quant --no-store
says "names one of them" 'as in kern\.quant\.decode\.Q4_K\.65536' "$T/err"
expect 2 "no such kernel" "$HONE" lab ab cpu=scalar cpu=avx2 kern.sort.5 --no-store
expect 2 "no such layout" "$HONE" lab ab layout=plain layout=odd kern.gemv.Q8_0.64x256 $few --no-store

finish
