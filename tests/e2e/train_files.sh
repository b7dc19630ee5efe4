#!/bin/sh
# hone train and its files: none is read and written, what is written last can be written, and a
# mistake costs nothing: no step in vain, no checkpoint of an earlier run, no data.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ]; then
    skip "train and its files" "$TINY is not here"
    finish
fi
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"text\": \"The red fox $i ran to the sea, and the sea was $i miles away.\"}"
done >"$T/d.jsonl"
cp "$T/d.jsonl" "$T/chat.jsonl"
cp "$T/d.jsonl" "$T/keep"
cp "$TINY" "$T/base.gguf"
cp "$TINY" "$T/base.keep"
ln -s base.gguf "$T/link.gguf"
SMALL="--seq 32 --pack off --targets q --rank 2 --layers 1 --steps 2"

# 1. what is read is not written
expect 2 "the output is the base" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/base.gguf"
says "says so" 'base.gguf would be the output and is the model; nothing was touched; expected another name \(-o\)'
expect 2 "the output is the base under another name" "$HONE" train -m "$T/link.gguf" --data "$T/d.jsonl" $SMALL -o "$T/base.gguf"
expect 2 "the log is the base" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --log "$T/base.gguf"
same "the base is as it was" "$T/base.gguf" "$T/base.keep"
expect 2 "the log would be the data: -o NAME beside NAME.jsonl" "$HONE" train -m "$T/base.gguf" --data "$T/chat.jsonl" $SMALL -o "$T/chat"
says "says so" 'chat.jsonl would be the log and is the data.*--log'
expect 2 "the output is the data" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/d.jsonl"
expect 2 "the log is the data to validate with" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" --val-data "$T/chat.jsonl" $SMALL -o "$T/x.gguf" --log "$T/chat.jsonl"
mkdir -p "$T/all/sub" && cp "$T/d.jsonl" "$T/all/d.jsonl"
expect 2 "the log would be read by the next run: it lies in the folder of the data" "$HONE" train -m "$T/base.gguf" --data "$T/all" $SMALL -o "$T/all/sub/x.gguf"
says "says so" 'sub/x.gguf.jsonl would be the log and is the data .*--log'
same "the data are as they were" "$T/chat.jsonl" "$T/keep"

echo '{"mine": 1}' >"$T/notes.jsonl" && cp "$T/notes.jsonl" "$T/notes.keep"
expect 2 "the log would be a file of something else: -o NAME beside NAME.jsonl" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/notes"
says "says so" 'notes.jsonl would be the log, and is no log of hone train.*--log FILE'
same "which is as it was" "$T/notes.jsonl" "$T/notes.keep"
mkdir "$T/whole" && echo '{}' >"$T/whole/config.json" && echo mine >"$T/whole/chat_template.jinja"
expect 2 "the PEFT folder is that of a model" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --peft "$T/whole"
says "says so" 'has a config.json and no adapter_config.json'
expect 2 "nor does hone convert write an adapter there" "$HONE" convert models/hone-tiny-rhyme.lora.gguf --base models/hone-tiny.gguf -o "$T/whole/"
says "says so" 'it is the folder of a model'
[ "$(cat "$T/whole/chat_template.jinja")" = mine ] && ok "whose template is as it was" || not_ok "whose template is as it was"
expect 2 "a constant rate has no least one" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --schedule constant --min-lr 1e-6

# 2. nothing is written twice, and all can be
expect 2 "the log is the output" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --log "$T/./x.gguf"
expect 2 "the PEFT folder is that of the checkpoints" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --peft "$T/x.gguf.ckpt/"
expect 1 "no folder for the output" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/none/x.gguf" --log "$T/l.jsonl" --checkpoints "$T/ck"
says "says so" 'none/x.gguf: cannot create: the folder .*/none is not there'
expect 1 "no folder for the PEFT folder" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --peft "$T/none/peft"
expect 1 "a file where the PEFT folder would be" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --peft "$T/keep"
expect 1 "a file where the checkpoints would be" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/x.gguf" --checkpoints "$T/keep"
expect 2 "a type that is none" "$HONE" train -m "$T/base.gguf" --full --data "$T/d.jsonl" --seq 32 --steps 2 --type Q4_Z -o "$T/x.gguf"
expect 2 "a type that hone cannot write, before the first step" "$HONE" train -m "$T/base.gguf" --full --data "$T/d.jsonl" --seq 32 --steps 2 --type IQ2_XXS -o "$T/x.gguf"
expect 2 "validation without data for it" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --eval-every 1 -o "$T/x.gguf"
expect 2 "early stop without validations" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --val-share 0.3 --early-stop 2 -o "$T/x.gguf"
ls "$T" | grep -q '^x' && not_ok "nothing was written" || ok "nothing was written"

# 3. --fresh gives up the old run when the new one begins
expect 0 "a run" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/f.gguf"
expect 1 "--fresh, and data that are not there" "$HONE" train -m "$T/base.gguf" --data "$T/nope.jsonl" $SMALL -o "$T/f.gguf" --fresh
[ -f "$T/f.gguf.ckpt/step-00000002.ckpt" ] && ok "the old checkpoint is still there" || not_ok "the old checkpoint is still there"
expect 0 "--fresh" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL -o "$T/f.gguf" --fresh --save-every 0
[ -f "$T/f.gguf.ckpt/step-00000002.ckpt" ] && not_ok "the old checkpoint is gone" || ok "the old checkpoint is gone"

# 4. a batch larger than the data takes no more room than the data
expect 0 "65536 sequences a batch" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --batch 65536 -o "$T/b.gguf" --json
[ "$(sed -n 's/.*"work":\([0-9]*\).*/\1/p' "$T/out")" -lt 100000000 ] && ok "less than 100 MB" || not_ok "less than 100 MB" "$T/out"

# 5. the output cannot be written in the end: what was learnt is kept, also without checkpoints on the way
(
    ulimit -f 16 # of 512 bytes: room for the log, none for a rank of 16
    "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" --seq 32 --targets q --rank 16 --layers 1 --steps 2 --save-every 0 -o "$T/w.gguf" >"$T/out" 2>"$T/err"
    echo $? >"$T/rc"
)
[ "$(cat "$T/rc")" = 1 ] && ok "no room for the adapter: exit 1" || not_ok "no room for the adapter: exit $(cat "$T/rc")" "$T/err"
"$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --steps 30 --save-every 0 -o "$T/w2.gguf" --peft "$T/w2.peft" >"$T/out" 2>"$T/err" &
pid=$!
await grep -q '"step":1,' "$T/w2.gguf.jsonl"
touch "$T/w2.peft" # in the way
wait $pid
rc=$?
[ "$rc" = 1 ] && ok "a file has come where the PEFT folder should be: exit 1" || not_ok "a file has come where the PEFT folder should be: exit $rc" "$T/err"
says "says where the work is" 'what was learnt is in .*w2.gguf.ckpt; --resume writes it again'
rm "$T/w2.peft"
expect 0 "--resume writes it" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --steps 30 --save-every 0 -o "$T/w2.gguf" --peft "$T/w2.peft" --resume
[ -f "$T/w2.peft/adapter_model.safetensors" ] && ok "the PEFT folder" || not_ok "the PEFT folder"

# 6. a model from nothing: the file it begins from goes with the run, also where the run fails
echo '{"arch": "qwen3", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_ff": 32, "n_ctx_train": 32}' >"$T/c.json"
expect 0 "a model from nothing" "$HONE" train --from-config "$T/c.json" --vocab 5000 --data "$T/d.jsonl" --steps 1 -o "$T/n.gguf"
says "a tokenizer smaller than asked for is said" 'note: the tokenizer has [0-9]+ tokens in place of 5000'
expect 2 "and one that fails" "$HONE" train --from-config "$T/c.json" --vocab 300 --data "$T/d.jsonl" --seq 33 --steps 1 -o "$T/n2.gguf"
# special tokens of one's own, for a template of one's own
printf '%s\n' '{"messages": [{"role": "user", "content": "Who is there? Who is it?"}, {"role": "assistant", "content": "It is me, it is me."}]}' >"$T/talk.jsonl"
for i in 1 2 3 4; do cat "$T/talk.jsonl" "$T/talk.jsonl" >"$T/talks.jsonl" && mv "$T/talks.jsonl" "$T/talk.jsonl"; done
new="--from-config $T/c.json --vocab 270 --data $T/talk.jsonl --chat-template chatml --seq 32 --steps 2"
expect 0 "--special-tokens" "$HONE" train $new --special-tokens "<|im_start|>,<|im_end|>" -o "$T/special.gguf"
run "$HONE" tokenize -m "$T/special.gguf" -p "<|im_end|><|im_start|>" --no-bos
says "each is one token, behind the two of its own" '^3 2$' "$T/out"
run "$HONE" tokenize -m "$T/special.gguf" -p "<|im_end|>" --no-bos --no-special
says "that text does not become" '^[0-9]+ [0-9]+ .*$' "$T/out"
expect 2 "an empty one" "$HONE" train $new --special-tokens "<|a|>,,<|b|>" -o "$T/x.gguf"
says "is named" "token 2 is empty"
expect 2 "the same twice" "$HONE" train $new --special-tokens "<|a|>,<|a|>" -o "$T/x.gguf"
says "is named" 'special token "<.a.>": expected distinct ones'
expect 2 "with another model's tokenizer" "$HONE" train --from-config "$T/c.json" --tokenizer "$T/special.gguf" --special-tokens "<|a|>" --data "$T/talk.jsonl" -o "$T/x.gguf"
says "contradicts it" 'contradict each other'
expect 2 "without --from-config" "$HONE" train -m "$T/special.gguf" --special-tokens "<|a|>" --data "$T/talk.jsonl" -o "$T/x.gguf"
says "is said" 'belongs to --from-config'
# an end before that of the schedule: what is written is what was learnt by then, and it can go on
full="-m $T/special.gguf --full --data $T/talk.jsonl --seq 32 --batch 1 --lr 1e-2 --steps 6"
expect 0 "six steps at once" "$HONE" train $full -o "$T/six.gguf"
expect 0 "--stop-after" "$HONE" train $full --stop-after 3 -o "$T/cut.gguf"
[ "$(tail -n 2 "$T/cut.gguf.jsonl" | grep -c '"step":3,.*\|"why":"stopped"')" = 2 ] && ok "ends with step 3, and says why" || not_ok "ends with step 3, and says why" "$T/cut.gguf.jsonl"
if cmp -s "$T/cut.gguf" "$T/six.gguf"; then not_ok "its output is another"; else ok "its output is another"; fi
expect 0 "and --resume goes on" "$HONE" train $full --resume -o "$T/cut.gguf"
same "to the same bytes" "$T/cut.gguf" "$T/six.gguf"
expect 2 "--stop-after 0" "$HONE" train $full --stop-after 0 -o "$T/x.gguf"
# a whole model's name
expect 0 "--full --name" "$HONE" train -m "$T/special.gguf" --full --name "of its own" --data "$T/talk.jsonl" --seq 32 --steps 1 -o "$T/named.gguf"
run "$HONE" inspect "$T/named.gguf"
says "the file says it" 'of its own' "$T/out"
expect 2 "--name of an adapter" "$HONE" train -m "$T/special.gguf" --name x --data "$T/talk.jsonl" --steps 1 -o "$T/x.gguf"
says "is refused" '.-name belongs to --full'
ls "$T" | grep -q 'begin' && not_ok "neither leaves its beginning" || ok "neither leaves its beginning"

# 7. two at once would take each other's files
"$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --steps 1000000 -o "$T/two.gguf" >"$T/out" 2>"$T/err" &
pid=$!
await grep -q '"step":1,' "$T/two.gguf.jsonl"
for how in --fresh --resume ""; do
    expect 1 "a second run of the same output is refused ($how)" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --steps 1000000 --checkpoints "$T/two.ck" -o "$T/two.gguf" $how
    says "says why" 'two.gguf.jsonl: another hone train is writing it'
done
kill -INT $pid # a shell's background job may ignore it
kill -TERM $pid
wait $pid
expect 0 "afterwards it goes on" "$HONE" train -m "$T/base.gguf" --data "$T/d.jsonl" $SMALL --steps 2 -o "$T/two.gguf" --fresh
finish
