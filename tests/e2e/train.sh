#!/bin/sh
# hone train: learns, says what it does, and goes on after anything that stops it as if nothing
# had: kill -9 at many moments, Ctrl-C, a disk that is full, a damaged checkpoint.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ]; then
    skip "train" "$TINY is not here"
    finish
fi
value() { sed -n "s/.*\"$1\":\\([-0-9.e+]*\\)[,}].*/\\1/p" "${2:-$T/out}" | head -n 1; }
less() { # less WHAT A B: A < B, both numbers
    if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }'; then ok "$1"; else
        echo "# $2, expected less than $3"
        not_ok "$1"
    fi
}
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"text\": \"The red fox $i ran to the sea, and the sea was $i miles away.\"}"
done >"$T/d.jsonl"
SMALL="--data $T/d.jsonl --seq 32 --pack off --accum 1 --targets q --rank 2 --alpha 4 --layers 1 --dropout 0.1 --lr 5e-3"

# 1. it learns, and says so
expect 0 "training" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --seq 64 --accum 1 --steps 12 --lr 1e-2 --val-share 0.2 --eval-every 6 -o "$T/a.gguf" --json
less "the loss falls" "$(sed -n 's/.*"loss":{"first":[0-9.]*,"last":\([0-9.]*\).*/\1/p' "$T/out")" "$(sed -n 's/.*"loss":{"first":\([0-9.]*\),.*/\1/p' "$T/out")"
says "a summary" '"schema":"hone.train/1","kind":"summary","why":"done".*"output":"[^"]*a.gguf"' "$T/out"
[ "$(grep -c '"kind":"step"' "$T/a.gguf.jsonl")" = 12 ] && ok "a record of every step" || not_ok "a record of every step" "$T/a.gguf.jsonl"
says "first record: what is trained" '^\{"schema":"hone.train/1","kind":"run","ts":"[^"]*","base":\{.*"hash":"[0-9a-f]{16}".*"settings":\{.*"lr":0.01' "$T/a.gguf.jsonl"
says "the files it learns from" '"files":\{"data":\["[^"]*d.jsonl"\],"validation":\[\]\}' "$T/a.gguf.jsonl"
says "with all that decides it" '"epochs":null,"val_share":0.2,"eval_every":6,"early_stop":null,"chat_template":null,"split":"auto","special":false' "$T/a.gguf.jsonl"
says "a step" '"step":6,"epoch":[0-9.]+,"loss":[0-9.]+,"val_loss":[0-9.]+,"lr":[0-9.e-]+,"grad_norm":[0-9.]+,"n_tok":[0-9]+,"n_target":[0-9]+,"tok_s":[0-9.]+,"ms":\{' "$T/a.gguf.jsonl"
expect 0 "the adapter is a GGUF file" "$HONE" inspect "$T/a.gguf"
expect 2 "checkpoints of an earlier run are not overwritten" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --steps 2 -o "$T/a.gguf"
says "says what to do" 'a.gguf.ckpt holds checkpoints .* step 12; --resume goes on, --fresh removes them'

expect 2 "sequences beyond the model's context" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --seq 513 --steps 2 -o "$T/long.gguf"
says "both are named" '513 tokens.* 512 positions'

expect 0 "a report on the log" "$HONE" lab report "$T/a.gguf.jsonl" --html "$T/r.html" --json
says "with its runs" '"training":\[\{"file":"a.gguf.jsonl","run":\{.*"best_val":[0-9.]+.*"steps":\[\{' "$T/out"
for what in 'section id="training"' '<figcaption>Loss, nats per token; dashed: validation<' '<figcaption>Learning rate, in units of 1e-2<' '<figcaption>Norm of the gradient' '<figcaption>Speed'; do
    says "the page has $what" "$what" "$T/r.html"
done
[ "$(grep -o '<circle class="dot"' "$T/r.html" | wc -l)" = 2 ] && ok "a dot for each validation" || not_ok "a dot for each validation"
sed -n '1p;3p' "$T/a.gguf.jsonl" >"$T/short.jsonl"
sed -n '4p;5p' "$T/a.gguf.jsonl" >"$T/headless.jsonl"
expect 0 "a report on one step, and on a log without its beginning" "$HONE" lab report "$T/short.jsonl" "$T/headless.jsonl" --html "$T/r2.html"
grep -A99 'id="training"' "$T/r2.html" | grep -qiE '[^a-z](nan|inf)[^a-z]|text-anchor="middle">[0-9]*\.[0-9]|1 steps' && not_ok "no nan, no fraction of a step" "$T/r2.html" || ok "no nan, no fraction of a step"
says "unknown settings are unknown" 'headless.jsonl: settings unknown. 2 steps' "$T/r2.html"
if command -v xmllint >/dev/null 2>&1; then expect 0 "the page is well-formed" xmllint --noout --nonet "$T/r.html"; else skip "the page is well-formed" "no xmllint"; fi

# eight samples by heart, prompts masked; the adapter says them, as GGUF and as a PEFT folder
i=0
for w in red blue green pink black white brown grey; do
    i=$((i + 1))
    a=$(echo "cat dog hen cow pig fox bee ant" | cut -d ' ' -f $i)
    echo "{\"prompt\": \"Who lives in the $w house?\", \"completion\": \" A $a lives there with her $a friends.\"}"
done >"$T/houses.jsonl"
expect 0 "learning by heart" "$HONE" train -m "$TINY" --data "$T/houses.jsonl" --seq 128 --batch 4 --accum 1 --steps 80 --lr 5e-3 -o "$T/houses.gguf" --peft "$T/houses.peft" --json
less "the loss ends near 0" "$(sed -n 's/.*"loss":{"first":[0-9.]*,"last":\([0-9.]*\).*/\1/p' "$T/out")" 0.05
less "prompts are masked" 0.4 "$(value masked_share)"
for a in gguf peft; do
    run "$HONE" run -m "$TINY" --lora "$T/houses.$a" -p "Who lives in the pink house?" --temp 0 -n 12
    says "the adapter ($a) has learnt it" 'A cow lives there with her cow friends' "$T/out"
done

# a format in place of the model's, which has none: what it writes is what is learnt
echo '{"messages": [{"role": "user", "content": "The red fox "}, {"role": "assistant", "content": "ran to the sea."}]}' >"$T/m.jsonl"
echo '{"text": "Tale: The red fox ran to the sea."}' >"$T/m-text.jsonl"
printf '%s' '{{ bos_token }}Tale: {% for m in messages %}{{ m.content }}{% endfor %}' >"$T/tale.jinja"
ONE="--seq 64 --steps 1 --mask none --rank 2 --targets q"
expect 3 "no format in the model" "$HONE" train -m "$TINY" --data "$T/m.jsonl" $ONE -o "$T/m.gguf"
expect 0 "--chat-template @FILE" "$HONE" train -m "$TINY" --data "$T/m.jsonl" $ONE -o "$T/m.gguf" --chat-template "@$T/tale.jinja"
expect 0 "its text" "$HONE" train -m "$TINY" --data "$T/m-text.jsonl" $ONE -o "$T/m-text.gguf"
for f in m m-text; do "$HONE" inspect "$T/$f.gguf" --tensor blk.3.attn_q.weight.lora_b --f32 >"$T/$f.f32"; done
same "the same weights" "$T/m.f32" "$T/m-text.f32"
expect 0 "--chat-template NAME" "$HONE" train -m "$TINY" --data "$T/m.jsonl" $ONE -o "$T/m2.gguf" --chat-template chatml
# the adapter keeps it: the model alone cannot chat, with the adapter it can, and so can the two merged
echo Hello | "$HONE" run --chat -m "$TINY" -f - -n 4 >"$T/out" 2>"$T/err"
says "a model without a template" 'has no chat template'
for with in "chat -m $TINY --lora $T/m2.gguf" "run --chat -f - -m $TINY --lora $T/m2.gguf"; do
    echo Hello | "$HONE" $with --temp 0 -n 4 >"$T/out" 2>"$T/err" && ok "${with%% *}: the template of the adapter" || not_ok "${with%% *}: the template of the adapter" "$T/err"
done
expect 0 "merged" "$HONE" merge -m "$TINY" --lora "$T/m2.gguf" -o "$T/m2-merged.gguf"
expect 0 "all weights" "$HONE" train -m "$TINY" --data "$T/m.jsonl" --full --seq 64 --steps 1 -o "$T/m2-full.gguf" --chat-template chatml
for f in merged full; do
    "$HONE" inspect "$T/m2-$f.gguf" --json >"$T/out"
    says "$f: the model has it" '"tokenizer.chat_template"' "$T/out"
done
expect 2 "a template without conversations" "$HONE" train -m "$TINY" --data "$T/m-text.jsonl" $ONE -o "$T/m3.gguf" --chat-template chatml
says "changes nothing" '--chat-template changes nothing: no record of .*m-text.jsonl is a conversation'
expect 2 "a division of records" "$HONE" train -m "$TINY" --data "$T/m-text.jsonl" $ONE -o "$T/m3.gguf" --split line
says "changes nothing" '--split changes nothing: .*m-text.jsonl is no file of text'
expect 2 "the last answer of texts" "$HONE" train -m "$TINY" --data "$T/m-text.jsonl" --seq 64 --steps 1 -o "$T/m3.gguf" --mask last
says "changes nothing" '--mask last changes nothing: of texts, as in .*m-text.jsonl, all counts'
expect 2 "special tokens of conversations" "$HONE" train -m "$TINY" --data "$T/m.jsonl" $ONE -o "$T/m3.gguf" --chat-template chatml --special
says "changes nothing" '--special changes nothing: .*m.jsonl is of conversations'
expect 0 "where some of the data heeds them" "$HONE" train -m "$TINY" --val-data "$T/m.jsonl" --data "$T/m-text.jsonl" --data "$T/houses.jsonl" --seq 64 --steps 1 -o "$T/m3.gguf" --mask last --special \
    --chat-template chatml --dry-run
expect 2 "a pre-tokenizer of what is begun" "$HONE" train --from-config "$T/m.jsonl" --tokenizer "$TINY" --pre gpt-2 --data "$T/m-text.jsonl" -o "$T/m3.gguf"
says "is that of -m" '--pre belongs to -m'
expect 2 "a format that is none, also for texts" "$HONE" train -m "$TINY" --data "$T/m-text.jsonl" $ONE -o "$T/m3.gguf" --chat-template chatmll
says "names them" "'chatmll' is neither a known format nor Jinja source; expected one of chatml"

# 2. a plan
expect 0 "--dry-run" "$HONE" train -m "$TINY" $SMALL --steps 5 --dry-run
says "what it takes: memory" '^memory .* MB to work in$'
says "and time that was tried" '^time +about [0-9.]+ (s|min|h) here: [0-9]+ tokens took [0-9]+ ms$'
says "what would be trained" 'trained +[0-9]+ weights: rank 2, alpha 4, q'
says "samples, and how much of them is learnt" 'data +8 samples of 8 records: [0-9]+ tokens, [0-9.]+ % of them learnt'
run "$HONE" train -m "$TINY" $SMALL --steps 5 --dry-run --json
[ "$(value trainable)" = $((2 * (256 + 256))) ] && ok "trainable weights are counted" || not_ok "trainable weights are counted" "$T/out"

mkdir -p "$T/hub/data"
echo "# A set" >"$T/hub/README.md"
printf 'PAR1....' >"$T/hub/data/train.parquet"
expect 2 "a folder with a README and data of another form" "$HONE" train -m "$TINY" --data "$T/hub" --steps 1 --dry-run
says "what it has, and what to do" 'hub: a folder without files but what tells about it.*train.parquet is a Parquet table; try: python3'
cp "$T/d.jsonl" "$T/hub/data"
expect 0 "with data, too" "$HONE" train -m "$TINY" --data "$T/hub" --steps 1 --dry-run
says "its files" '^ +2 files: .*hub/README.md, .*hub/data/d.jsonl$'
says "what was passed over" '^ +1 file passed over, in forms that are not read: .*train.parquet$'
echo '{"text": "<|endoftext|>A tale."}' >"$T/spelt.jsonl"
expect 0 "a special token by its letters" "$HONE" train -m "$TINY" --data "$T/spelt.jsonl" --steps 1 --dry-run
says "is told" 'note: texts that begin with <\|endoftext\|>: 1; .*try: --special'
expect 0 "numbers beyond all" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --layers 99 --steps 5 --stop-after 6 --dry-run
says "layers" 'note: --layers 99: the model has 4; all get adapters'
says "steps" 'note: --stop-after 6: the run has 5 steps'

# 3. what is refused
expect 2 "a rate that would rise" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --lr 1e-4 --min-lr 1e-3 --steps 2 -o "$T/x.gguf"
expect 2 "no data" "$HONE" train -m "$TINY" -o "$T/x.gguf"
expect 2 "no output" "$HONE" train -m "$TINY" $SMALL
expect 2 "targets that are none" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --targets qx -o "$T/x.gguf"
says "names them" "'qx': expected qv, attn, all"
expect 2 "early stop without validation" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --early-stop 2 -o "$T/x.gguf"
expect 2 "a bad early stop" "$HONE" train -m "$TINY" --data "$T/d.jsonl" --early-stop 2, --val-share 0.2 -o "$T/x.gguf"
(cat "$T/d.jsonl"; echo '{"text": 3}') >"$T/bad.jsonl"
(cat "$T/d.jsonl"; echo "no JSON") >"$T/torn.jsonl"
echo '{"arch":"llama","n_layer":1,"n_embd":32,"n_head":2,"n_head_kv":2,"n_ff":32,"n_ctx_train":64}' >"$T/small.json"
expect 1 "a bad line is an error, and not of the model" "$HONE" train -m "$TINY" --data "$T/bad.jsonl" --steps 1 -o "$T/x.gguf"
says "with its number, and what to do" 'bad.jsonl:9: .*\(hone train --max-bad-lines N leaves such lines out\)'
expect 1 "also where a tokenizer is made" "$HONE" train --from-config "$T/small.json" --vocab 300 --data "$T/torn.jsonl" --steps 1 -o "$T/x.gguf"
expect 0 "or is left out there" "$HONE" train --from-config "$T/small.json" --vocab 300 --data "$T/torn.jsonl" --max-bad-lines 1 --steps 1 --dry-run -o "$T/x.gguf"
expect 0 "or is left out" "$HONE" train -m "$TINY" --data "$T/bad.jsonl" --max-bad-lines 1 --steps 1 --dry-run
says "and counted" '1 bad line left out; the first: .*bad.jsonl:9'
[ -e "$T/x.gguf" ] || [ -e "$T/x.gguf.ckpt" ] && not_ok "nothing is written then" || ok "nothing is written then"

# 4. the same bits on any number of threads, and whether the run was stopped or not
STEPS=20
expect 0 "one run" "$HONE" train -m "$TINY" $SMALL --steps $STEPS -o "$T/whole.gguf" -t 2
for how in "-t 1" "-t 3 --recompute"; do
    expect 0 "with $how" "$HONE" train -m "$TINY" $SMALL --steps $STEPS -o "$T/other.gguf" --fresh $how
    same "the same adapter with $how" "$T/whole.gguf" "$T/other.gguf"
done
# (a level without vectors takes long)
expect 0 "a few steps" "$HONE" train -m "$TINY" $SMALL --steps 5 -o "$T/few.gguf" --fresh
expect 0 "with --cpu scalar" "$HONE" train -m "$TINY" $SMALL --steps 5 -o "$T/other.gguf" --fresh --cpu scalar
same "the same adapter with --cpu scalar" "$T/few.gguf" "$T/other.gguf"

# kill -9 at many moments, others every time: each run is continued until it ends, then a new one begins
kills=${KILLS:-12}
seed=${SEED:-$(date +%s)}
echo "# moments of KILLS=$kills SEED=$seed"
n=0
runs=0
bad=0
fresh=--fresh
while [ "$n" -lt "$kills" ] && [ "$bad" -eq 0 ] && [ "$runs" -lt 200 ]; do
    "$HONE" train -m "$TINY" $SMALL --steps $STEPS -o "$T/killed.gguf" --save-every 1 $fresh >"$T/out" 2>"$T/err" &
    pid=$!
    sleep "$(awk -v n="$((seed + 97 * n + 7919 * runs))" 'BEGIN { srand(n); printf "%.3f", 0.02 + 0.4 * rand() }')"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    case $? in
    137) n=$((n + 1)) fresh=--resume ;;
    0)
        runs=$((runs + 1)) fresh=--fresh
        cmp -s "$T/whole.gguf" "$T/killed.gguf" || bad=1
        ;;
    *) bad=2 ;;
    esac
done
if [ "$bad" -eq 0 ]; then
    expect 0 "the last one is finished" "$HONE" train -m "$TINY" $SMALL --steps $STEPS -o "$T/killed.gguf" --save-every 1 $fresh
    same "killed $n times, in $((runs + 1)) runs: the same adapter as without" "$T/whole.gguf" "$T/killed.gguf"
    [ "$(grep -c '"kind":"step"' "$T/killed.gguf.jsonl")" = $STEPS ] && ok "each step stands in the log once" || not_ok "each step stands in the log once" "$T/killed.gguf.jsonl"
else
    not_ok "killed and resumed ($bad after $n)" "$T/err"
fi

# Ctrl-C: the step is finished and saved
"$HONE" train -m "$TINY" $SMALL --steps 100000 --schedule constant --warmup 0 -o "$T/int.gguf" >"$T/out" 2>"$T/err" &
pid=$!
await grep -q '"step":2,' "$T/int.gguf.jsonl"
kill -TERM $pid
wait $pid
rc=$?
[ "$rc" = 6 ] && ok "interrupted: exit 6" || not_ok "interrupted: exit $rc, expected 6" "$T/err"
says "says where it is" 'interrupted after step [0-9]+ of 100000, which is saved in .*int.gguf.ckpt; --resume goes on'
[ -f "$T"/int.gguf.ckpt/step-*.ckpt ] && [ -f "$T/int.gguf" ] && ok "a checkpoint, and an adapter of what was learnt" || not_ok "a checkpoint, and an adapter of what was learnt"
says "both are named" 'int.gguf has what was learnt so far'
expect 0 "which can be used" "$HONE" run -m "$TINY" --lora "$T/int.gguf" -p "The red fox" -n 4

"$HONE" train -m "$TINY" $SMALL --steps 100000 --schedule constant --warmup 0 -o "$T/hup.gguf" >"$T/out" 2>"$T/err" &
pid=$!
await grep -q '"step":2,' "$T/hup.gguf.jsonl"
kill -HUP $pid
wait $pid
rc=$?
[ "$rc" = 6 ] && [ -f "$T"/hup.gguf.ckpt/step-*.ckpt ] && ok "the terminal goes away: the same" || not_ok "the terminal goes away: exit $rc, expected 6" "$T/err"
for i in 1 2 3 4; do cat "$T/d.jsonl" "$T/d.jsonl" "$T/d.jsonl" "$T/d.jsonl"; done >"$T/more.jsonl"
for i in 1 2 3 4 5 6 7 8; do cat "$T/more.jsonl" "$T/more.jsonl" "$T/more.jsonl" "$T/more.jsonl"; done >"$T/many.jsonl"
timeout -s INT 0.01 "$HONE" train -m "$TINY" --data "$T/many.jsonl" --seq 32 --steps 100000 -o "$T/soon.gguf" >"$T/out" 2>"$T/err"
if grep -q 'before the first step\|nothing was trained' "$T/err"; then
    ok "interrupted before the first step: nothing is said to be saved"
elif grep -q 'interrupted after step [1-9]' "$T/err"; then
    skip "interrupted before the first step" "this machine is too fast for it"
elif [ -s "$T/err" ]; then
    not_ok "interrupted before the first step" "$T/err"
else
    skip "interrupted before the first step" "the signal came before hone listened"
fi
# data that are read for half a minute: the first signal ends it
awk '{ for (i = 0; i < 4000; i++) print }' "$T/more.jsonl" >"$T/huge.jsonl"
many=
for i in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
    ln "$T/huge.jsonl" "$T/huge$i.jsonl"
    many="$many --data $T/huge$i.jsonl"
done
for how in "-m $TINY" "--from-config ${TINY%.gguf}.json --vocab 4000"; do
    for pause in 0.02 0.1 0.3 1 3 9 27 81; do # until reading has begun, and not all is read
        "$HONE" train $how $many --seq 32 --steps 100000 -o "$T/never.gguf" >"$T/out" 2>"$T/err" &
        pid=$!
        await listening $pid
        sleep $pause
        kill -TERM $pid
        wait $pid
        grep -q 'interrupted while .*huge[0-9]*.jsonl was read; nothing was trained' "$T/err" && break
    done
    grep -q 'interrupted while .*huge[0-9]*.jsonl was read; nothing was trained' "$T/err" && ! grep -q 'huge20.jsonl' "$T/err" && [ ! -e "$T/never.gguf" ] &&
        ok "interrupted while data are read: before all are ($how)" || not_ok "interrupted while data are read ($how)" "$T/err"
done
rm -f "$T"/huge*.jsonl

# 5. a damaged checkpoint, another run, a full disk
"$HONE" train -m "$TINY" $SMALL --steps $STEPS --save-every 4 --keep 5 -o "$T/dam.gguf" --fresh >"$T/out" 2>"$T/err"
head -c 3000 "$T/dam.gguf.ckpt/step-00000020.ckpt" >"$T/cut" && mv "$T/cut" "$T/dam.gguf.ckpt/step-00000020.ckpt"
rm -f "$T/dam.gguf"
expect 0 "the newest checkpoint is cut off" "$HONE" train -m "$TINY" $SMALL --steps $STEPS --save-every 4 --keep 5 -o "$T/dam.gguf" --resume
says "a warning, and the one before" 'note: .*step-00000020.ckpt: 3000 bytes, expected [0-9]+: cut off or damaged; going on from step 16'
same "the same adapter" "$T/whole.gguf" "$T/dam.gguf"
mkdir "$T/only.gguf.ckpt"
head -c 3000 "$T/dam.gguf.ckpt/step-00000016.ckpt" >"$T/only.gguf.ckpt/step-00000016.ckpt"
expect 1 "no checkpoint is whole: not the model's fault" "$HONE" train -m "$TINY" $SMALL --steps $STEPS -o "$T/only.gguf" --resume
expect 2 "another rank" "$HONE" train -m "$TINY" $SMALL --rank 3 --steps $STEPS -o "$T/dam.gguf" --resume
says "is named" 'rank is 2 there and 3 now'
sed 's/fox/hen/' "$T/d.jsonl" >"$T/hens.jsonl"
expect 2 "other data" "$HONE" train -m "$TINY" $SMALL --data "$T/hens.jsonl" --steps $STEPS -o "$T/dam.gguf" --resume
says "are named" 'data is [0-9a-f]+ there and [0-9a-f]+ now'
cp "$TINY" "$T/other.base"
printf '\001\002\003\004' | dd of="$T/other.base" bs=1 seek=1000000 conv=notrunc 2>"$T/err"
expect 2 "another base, by four bytes" "$HONE" train -m "$T/other.base" $SMALL --steps $STEPS -o "$T/dam.gguf" --resume
says "is named" 'base is [0-9a-f]+ there and [0-9a-f]+ now'
(
    ulimit -f 8 # of 512 bytes: room for the log, none for a checkpoint
    "$HONE" train -m "$TINY" $SMALL --steps $STEPS --save-every 4 -o "$T/disk.gguf" >"$T/out" 2>"$T/err"
    echo $? >"$T/rc"
)
[ "$(cat "$T/rc")" = 1 ] && ok "no room for a checkpoint: exit 1" || not_ok "no room for a checkpoint: exit $(cat "$T/rc")" "$T/err"
says "says what and why" 'cannot write the checkpoint of step 4 \([0-9]+ bytes\): .*the file size limit .ulimit -f. is 4096; older ones are untouched'
ls "$T/disk.gguf.ckpt"/*tmp* >/dev/null 2>&1 && not_ok "nothing half-written stays" || ok "nothing half-written stays"
expect 0 "with room again" "$HONE" train -m "$TINY" $SMALL --steps $STEPS --save-every 4 -o "$T/disk.gguf" --resume
same "the same adapter after all" "$T/whole.gguf" "$T/disk.gguf"
finish
