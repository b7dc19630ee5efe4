#!/bin/sh
# hone run and hone logits with a real model: the JSON contract, ways to stop, ways to
# give a prompt, sessions on disk, and what the errors say.
. tests/e2e/lib.sh

M=$TINY
ckpt=../shared/data/stories260K/stories260K.bin
if [ ! -f "$M" ] && [ -f "$ckpt" ]; then
    M=$T/stories.gguf
    "$HONE" convert "$ckpt" --tokenizer "${ckpt%/*}/tok512.bin" -o "$M" >/dev/null 2>&1
fi
if [ ! -f "$M" ]; then
    skip "everything" "no model: $TINY is not there, nor is $ckpt"
    finish
fi
field() { # field NAME FILE: the array or word of a top-level JSON field
    grep -oE "\"$1\":(\[[0-9,]*\]|\"([^\"\\\\]|\\\\.)*\"|-?[0-9.]+)" "$2" | head -n 1 | sed "s/^\"$1\"://"
}
count() { field "$1" "$2" | tr -d '[]' | tr ',' '\n' | grep -c '[0-9]'; }
is() { # is WHAT SEEN WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else
        echo "# seen $2, expected $3"
        not_ok "$1"
    fi
}
P="Once upon a time"

# the JSON shape, exactly
num='-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?'
expect 0 "run --json" "$HONE" run -m "$M" -p "$P" -n 20 --temp 0 --ignore-eos --json -t 2
cp "$T/out" "$T/base"
says "… is the object of the contract" "^\{\"schema\":\"hone\.run/1\",\"prompt_tokens\":\[[0-9,]+\],\"tokens\":\[[0-9,]+\],\"text\":\"([^\"\\\\]|\\\\.)*\",\"stop\":\"length\",\"timings\":\{\"load_ms\":$num,\"ttft_ms\":$num,\"prefill_tok_s\":$num,\"decode_tok_s\":$num\},\"seed\":[0-9]+,\"cpu\":\"(scalar|avx2|avx_vnni|avx512|neon[a-z0-9_]*)\",\"threads\":2,\"threads_batch\":2,\"weights\":\"plain\",\"weights_note\":\"[^\"]*\"\}\$" "$T/out"
is "… on one line" "$(wc -l <"$T/out" | tr -d ' ')" 1
is "… with nothing on stderr" "$(wc -c <"$T/err" | tr -d ' ')" 0
is "-n 20 gives 20 tokens" "$(count tokens "$T/out")" 20
prompt=$(field prompt_tokens "$T/base" | tr -d '[]')
tokens=$(field tokens "$T/base" | tr -d '[]')
text=$(field text "$T/base")

# the same in other words
run "$HONE" run --model="$M" --prompt "$P" --predict 20 --temperature=0.0 --ignore-eos --json -ub 3 -c 64
is "long spellings, small chunks, small context: the same ids" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
run "$HONE" run -m "$M" --ids "$prompt" -n 20 --temp 0 --ignore-eos --json
is "--ids takes ids as given" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
is "… and adds none" "$(field prompt_tokens "$T/out" | tr -d '[]')" "$prompt"
echo "$prompt" | tr ',' '\n' >"$T/ids.txt"
run "$HONE" run -m "$M" --ids "@$T/ids.txt" -n 20 --temp 0 --ignore-eos --json
is "--ids @FILE" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
printf '%s' "$P" >"$T/prompt.txt"
run "$HONE" run -m "$M" -f "$T/prompt.txt" -n 20 --temp 0 --ignore-eos --json
is "-f FILE" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
"$HONE" run -m "$M" -f - -n 20 --temp 0 --ignore-eos --json <"$T/prompt.txt" >"$T/out" 2>"$T/err"
is "-f - reads stdin" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
run "$HONE" run -m "$M" -p "$P" -n 20 --top-k 1 -s 5 --ignore-eos --json
is "--top-k 1 is greedy" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
is "… and the seed is told" "$(field seed "$T/out")" 5
run "$HONE" run -m "$M" -p "$P" -n 20 --top-p 0 -s 6 --ignore-eos --json
is "--top-p 0 is greedy" "$(field tokens "$T/out" | tr -d '[]')" "$tokens"
run "$HONE" run -m "$M" -p "$P" -n 0 --json
is "-n 0 gives no token" "$(count tokens "$T/out")" 0
says "… and null where nothing was measured" '"ttft_ms":null.*"decode_tok_s":null' "$T/out"

# as text
run "$HONE" run -m "$M" -p "$P" -n 20 --temp 0 --ignore-eos
is "text starts with the prompt" "$(head -c ${#P} "$T/out")" "$P"
tail -c +$((${#P} + 1)) "$T/out" >"$T/rest"
run "$HONE" run -m "$M" -p "$P" -n 20 --temp 0 --ignore-eos --no-echo
same "--no-echo leaves it out" "$T/out" "$T/rest"
case $text in
*\\*) skip "text and JSON agree" "the text needs escapes" ;;
*) is "text and JSON agree" "\"$(cat "$T/rest")\"" "$text" ;;
esac

expect 0 "--ids with a lone BOS" "$HONE" run -m "$M" --ids "${prompt%%,*}" -n 6 --temp 0 --ignore-eos --json
if field text "$T/out" | grep -q '^" '; then not_ok "… whose text does not begin with a blank" "$T/out"; else ok "… whose text does not begin with a blank"; fi

# seeds
for i in 1 2 3; do
    s=11
    [ $i -eq 3 ] && s=12
    run "$HONE" run -m "$M" -p "$P" -n 40 -s $s --temp 1 --ignore-eos --json -t $i
    field tokens "$T/out" >"$T/seed$i"
done
same "one seed, one text, whatever the threads" "$T/seed1" "$T/seed2"
if cmp -s "$T/seed1" "$T/seed3"; then not_ok "another seed, another text"; else ok "another seed, another text"; fi
run "$HONE" run -m "$M" -p "$P" -n 1 --json
s1=$(field seed "$T/out")
run "$HONE" run -m "$M" -p "$P" -n 1 --json -s -1
if [ "$s1" != "$(field seed "$T/out")" ]; then ok "no seed: a new one each time"; else not_ok "no seed: a new one each time"; fi

# ways to stop
word=$(printf '%s' "$text" | tr -d '"' | grep -oE '[a-z]{3,}' | sed -n 3p)
if [ -n "$word" ]; then
    run "$HONE" run -m "$M" -p "$P" -n 20 --temp 0 --ignore-eos --json --stop "never seen" --stop "$word"
    is "--stop stops" "$(field stop "$T/out")" '"stop"'
    if field text "$T/out" | grep -q "$word"; then not_ok "… before the word" "$T/out"; else ok "… before the word"; fi
else
    skip "--stop" "no word in the text"
fi
run "$HONE" run -m "$M" -p "$P" -n -1 -c 40 --temp 0 --ignore-eos --json
is "-n -1 goes on to the end of the context" "$(($(count prompt_tokens "$T/out") + $(count tokens "$T/out")))" 41
is "… which is a length" "$(field stop "$T/out")" '"length"'
says "… with a note" 'context of 40 positions is full'

# sessions on disk: 8 tokens, then 12 more from the saved state, are the 20
first=$(echo "$tokens" | cut -d, -f1-8) next=$(echo "$tokens" | cut -d, -f9) rest=$(echo "$tokens" | cut -d, -f10-20)
expect 0 "run --state-out" "$HONE" run -m "$M" -p "$P" -n 8 --temp 0 --ignore-eos --json --state-out "$T/state"
is "… the first 8" "$(field tokens "$T/out" | tr -d '[]')" "$first"
expect 0 "run --state-in" "$HONE" run -m "$M" --ids "$next" -n 11 --temp 0 --ignore-eos --json --state-in "$T/state"
is "… goes on as if never stopped" "$(field tokens "$T/out" | tr -d '[]')" "$rest"
expect 0 "logits of the whole" "$HONE" logits -m "$M" --ids "$prompt,$first,$next"
cp "$T/out" "$T/whole"
expect 0 "logits after a restored state" "$HONE" logits -m "$M" --ids "$next" --state-in "$T/state"
same "… the same bytes" "$T/out" "$T/whole"
expect 0 "logits --state-out" "$HONE" logits -m "$M" --ids "$prompt,$first" --state-out "$T/state2"
expect 0 "logits --state-in of it" "$HONE" logits -m "$M" --ids "$next" --state-in "$T/state2"
same "… the same bytes" "$T/out" "$T/whole"
run "$HONE" run -m "$M" -p x -n 1 --state-in "$T/no-such-state"
if [ "$rc" -ne 0 ]; then ok "a missing state fails"; else not_ok "a missing state fails"; fi
says "… by name" 'no-such-state'
head -c 100 "$T/state" >"$T/cut-state"
run "$HONE" run -m "$M" -p x -n 1 --state-in "$T/cut-state"
if [ "$rc" -ne 0 ]; then ok "a cut state fails"; else not_ok "a cut state fails"; fi
says "… by name" 'cut-state'

expect 1 "a state into a folder that is not there" "$HONE" run -m "$M" -p x -n 1 --state-out "$T/none/state"
echo "my notes" >"$T/notes"
cp "$T/notes" "$T/notes.before"
for command in run logits; do
    expect 2 "$command: a state over what is none" "$HONE" $command -m "$M" -p x --state-out "$T/notes"
    says "… is told" 'notes is there, and no session file; expected another name, or a session file .--state-out.'
    is "… before the work" "$(cat "$T/out")" ""
    same "… and stays" "$T/notes" "$T/notes.before"
done
cp "$T/state" "$T/older"
expect 0 "a state over one" "$HONE" run -m "$M" -p x -n 1 --state-out "$T/older"
mkfifo "$T/pipe"
expect 1 "a state over a pipe" "$HONE" run -m "$M" -p x -n 1 --state-out "$T/pipe"
says "… which would be replaced" 'is a device or pipe'
if [ -p "$T/pipe" ]; then ok "… and is still there"; else not_ok "… and is still there"; fi

# logits: --all, the last row, neighbours, text
expect 0 "logits --all" "$HONE" logits -m "$M" --ids "$prompt,$tokens" --all
cp "$T/out" "$T/all"
n=$(echo "$prompt,$tokens" | tr ',' '\n' | wc -l)
size=$(wc -c <"$T/all")
run "$HONE" logits -m "$M" --ids "$prompt,$tokens"
tail -c $((size / n)) "$T/all" >"$T/last"
same "… ends with the row of logits" "$T/last" "$T/out"
for nb in 1 3; do
    for chunk in 1 7 512; do
        run "$HONE" logits -m "$M" --ids "$prompt,$tokens" --all --neighbours $nb --chunk $chunk
        same "$nb neighbours, chunk $chunk: the same bytes" "$T/out" "$T/all"
    done
done
run "$HONE" logits -m "$M" -p "$P"
cp "$T/out" "$T/a"
run "$HONE" logits -m "$M" --ids "$prompt"
same "logits of text are those of its ids" "$T/out" "$T/a"
run "$HONE" logits -m "$M" --ids "$prompt" --kv f32
if cmp -s "$T/out" "$T/a"; then not_ok "--kv f32 is another cache"; else ok "--kv f32 is another cache"; fi
run "$HONE" logits -m "$M" --ids 1 --json
says "logits as JSON" '^\{"schema":"hone\.logits/1","prompt_tokens":\[1\],"n_vocab":[0-9]+,"logits":\[\[-?[0-9]' "$T/out"

# refusals
expect 2 "an id outside the vocabulary" "$HONE" logits -m "$M" --ids 1,99999999
says "… id, place and range" 'token id 99999999 \(item 2\).*expected 0 to [0-9]+'
expect 2 "a broken list" "$HONE" run -m "$M" --ids 1,2,,3
expect 2 "no prompt" "$HONE" run -m "$M"
says "… says how" 'expected -p TEXT, -f FILE or --ids LIST'
expect 2 "an empty prompt without BOS" "$HONE" run -m "$M" -p '' --no-bos
expect 1 "a prompt beyond the context" "$HONE" run -m "$M" --ids "$prompt,$tokens" -c 5
says "… both counts" "$n tokens.*holds 5"
expect 1 "an unreadable prompt file" "$HONE" run -m "$M" -f "$T/no-such-file"
says "… by name" 'no-such-file: cannot open: No such file'
expect 1 "a directory as prompt" "$HONE" run -m "$M" -f "$T"
expect 0 "MODEL and PROMPT as arguments" "$HONE" run "$M" Once -n 2 --temp 0
cp "$T/out" "$T/as-args"
expect 0 "… without a command" "$HONE" "$M" Once -n 2 --temp 0
same "… the same" "$T/out" "$T/as-args"
for options in "-t 1" "--temp 0" "--no-echo"; do # what takes a value, and what takes none
    # shellcheck disable=SC2086
    expect 0 "… behind $options" "$HONE" "$M" $options Once -n 2
done
printf Once | "$HONE" run "$M" -n 2 --temp 0 >"$T/out" 2>"$T/err"
same "… from a pipe, too" "$T/out" "$T/as-args"
expect 0 "-n beyond the model's context" "$HONE" run -m "$M" -p Once -n 100000 --stop e
says "… is told" 'note: -n 100000: the context of [0-9]+ positions has room for [0-9]+ tokens'
mkdir "$T/hf" && echo '{"architectures": ["LlamaForCausalLM"]}' >"$T/hf/config.json"
expect 3 "a Hugging Face folder" "$HONE" run -m "$T/hf" -p x
says "… what it is, and what to do" 'is a Hugging Face checkpoint \(LlamaForCausalLM\)'
says "… " 'try: hone convert .*/hf -o'
cp "$M" "$T/hf/a.gguf"
expect 3 "a missing model beside others" "$HONE" run -m "$T/hf/b.gguf" -p x
says "… which are named" 'try: a model that is there: .*/hf/a.gguf'
expect 2 "an empty stop string" "$HONE" run -m "$M" -p x --stop ''
expect 3 "a missing model" "$HONE" run -m "$T/no.gguf" -p x
says "… by name" 'no\.gguf'

# a file without a tokenizer works with ids
if [ -f "$ckpt" ]; then
    "$HONE" convert "$ckpt" -o "$T/mute.gguf" >/dev/null 2>&1
    expect 0 "no tokenizer, --ids" "$HONE" run -m "$T/mute.gguf" --ids 1 -n 4 --temp 0 --json
    says "… ids and an empty text" '"tokens":\[403,407,261,378\],"text":"","stop":"length"' "$T/out"
    expect 0 "… not as JSON" "$HONE" run -m "$T/mute.gguf" --ids 1 -n 4 --temp 0
    is "… shows the ids" "$(cat "$T/out")" "403 407 261 378"
    expect 3 "no tokenizer, -p" "$HONE" run -m "$T/mute.gguf" -p x
    says "… says so" 'has no tokenizer.*--ids'
else
    skip "no tokenizer" "$ckpt is not there"
fi

# the line end of echo is no part of the prompt, in a conversation or not
for _how in "" "--chat --chat-template chatml"; do
    # shellcheck disable=SC2086
    echo "Hi there" | "$HONE" run -m "$M" $_how -n 1 --temp 0 --json 2>"$T/err" | grep -o '"prompt_tokens":[^]]*' >"$T/piped"
    # shellcheck disable=SC2086
    "$HONE" run -m "$M" $_how -p "Hi there" -n 1 --temp 0 --json 2>"$T/err" | grep -o '"prompt_tokens":[^]]*' >"$T/given"
    same "a text that is piped in is the one of -p${_how:+, $_how}" "$T/piped" "$T/given"
done

# what is piped in beside -p is not read, and that is said
mkfifo "$T/told"
exec 3<>"$T/told"
"$HONE" run -m "$M" -p x -n 1 --temp 0 <"$T/told" >"$T/out" 2>"$T/err"
grep -q "piped" "$T/err" && not_ok "an empty pipe beside -p: nothing is said" "$T/err" || ok "an empty pipe beside -p: nothing is said"
echo "what nobody reads" >&3
for _with in "-p x" "--ids 1,2" "-p x --chat --chat-template chatml"; do
    # shellcheck disable=SC2086
    "$HONE" run -m "$M" $_with -n 1 --temp 0 <"$T/told" >"$T/out" 2>"$T/err"
    says "a pipe beside $_with: a note" 'note: what is piped in is not read' "$T/err"
done
exec 3>&-

# a model that computes NaN is an error, never a text
if [ -f "$ckpt" ]; then
    "$HONE" convert "$ckpt" --tokenizer "${ckpt%/*}/tok512.bin" -o "$T/nan.gguf" >/dev/null 2>&1
    i=0
    while [ $i -lt 64 ]; do
        printf '\000\000\300\177'
        i=$((i + 1))
    done | dd of="$T/nan.gguf" bs=1 seek=$(($(wc -c <"$T/nan.gguf") - 256)) conv=notrunc 2>/dev/null
    expect 1 "NaN weights" "$HONE" run -m "$T/nan.gguf" -p Once -n 5 --json
    says "… are named" 'the logit of token [0-9]+ after position [0-9]+ .* is NaN'
    says "… and the tensor that has one" "nan.gguf: tensor '[a-z_.0-9]+' \\([A-Z0-9]+\\): element [0-9]+ is nan"
    expect 1 "NaN weights, logits" "$HONE" logits -m "$T/nan.gguf" --ids 1,2
    says "… name the tensor, too" "tensor '[a-z_.0-9]+' .* is nan.*; so the logit of token"
    expect 1 "NaN weights, run as JSON" "$HONE" run -m "$T/nan.gguf" -p Once -n 5 --json
    says "… and no result but the error" '^\{"schema":"hone.error/1","code":1,"message":"[^"]*NaN' "$T/out"
else
    skip "NaN weights" "$ckpt is not there"
fi

# interruption: what is there is shown
for pause in 0.1 0.5 2 8 32; do # until it is at work
    "$HONE" run -m "$M" -p "$P" -n -1 -c 4096 --ignore-eos --json >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    await listening $pid
    sleep $pause
    kill -TERM $pid 2>/dev/null
    wait $pid
    rc=$?
    [ -s "$T/out" ] && break
done
case $rc in
6) says "SIGTERM: exit 6 and the result so far" '"stop":"interrupted"' "$T/out" ;;
0) skip "SIGTERM" "the context was full before it came" ;;
*) not_ok "SIGTERM: exit 6 (seen $rc)" "$T/err" ;;
esac
# the context grows with the saved session, and never to all a model was trained for: that may not fit memory
echo '{"arch":"llama","n_layer":2,"n_embd":64,"n_head":4,"n_head_kv":4,"head_dim":64,"n_ff":64,"n_vocab":600,"n_ctx_train":60000000}' >"$T/long.json"
expect 0 "a model trained for 60 M positions" "$HONE" synth --config "$T/long.json" --type F32 -o "$T/long.gguf"
expect 0 "… -n -1 after a long prompt" "$HONE" run -m "$T/long.gguf" --ids "$(awk 'BEGIN { for (i = 0; i < 4200; i++) printf "%s%d", i ? "," : "", i % 200 }')" -n -1 --temp 0 --stop a --stop e --stop i --stop o --json --state-out "$T/long.state"
expect 0 "… logits after the saved session" "$HONE" logits -m "$T/long.gguf" --ids 3 --state-in "$T/long.state"
expect 0 "… run after the saved session" "$HONE" run -m "$T/long.gguf" --ids 3 -n 9 --temp 0 --ignore-eos --json --state-in "$T/long.state"
is "… has room for its tokens" "$(count tokens "$T/out")" 9

# answers of a given form: whatever the model and the temperature
cat >"$T/form.json" <<'END'
{"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 12}, "ok": {"type": "boolean"}}, "required": ["n", "ok"]}
END
printf 'root ::= "<" [a-c]{3} ">"\n' >"$T/form.gbnf"
for seed in 1 2 3; do
    expect 0 "--json-schema, seed $seed" "$HONE" run -m "$M" -p "$P" -n 200 --temp 2 -s $seed --json --json-schema "$T/form.json"
    says "… is such an object" '"text":"\{[ \\n]*\\"n\\"[ \\n]*:[ \\n]*1[012][ \\n]*,[ \\n]*\\"ok\\"[ \\n]*:[ \\n]*(true|false)[ \\n]*\}","stop":"eos"' "$T/out"
done
expect 0 "--grammar" "$HONE" run -m "$M" -p "$P" -n 50 -s 1 --json --grammar "$T/form.gbnf"
says "… is what it says" '"text":"<[abc][abc][abc]>","stop":"eos"' "$T/out"
expect 0 "--regex" "$HONE" run -m "$M" -p "$P" -n 50 --temp 0 --json --regex '[xyz]{4}'
says "… matches all of it" '"text":"[xyz][xyz][xyz][xyz]","stop":"eos"' "$T/out"
expect 0 "--choice" "$HONE" run -m "$M" -p "$P" -n 50 -s 5 --json --choice maybe --choice perhaps
says "… is one of them" '"text":"(maybe|perhaps)","stop":"eos"' "$T/out"
for seed in 1 2 3; do
    expect 0 "a form that is cut, seed $seed" "$HONE" run -m "$M" -p "$P" -n 20 --temp 2 -s $seed --json --regex 'a[ -}]{3,1000}~'
    says "… is" '"stop":"length"' "$T/out"
    expect 0 "… with --finish-json" "$HONE" run -m "$M" -p "$P" -n 20 --temp 2 -s $seed --json --regex 'a[ -}]{3,1000}~' --finish-json
    says "… is whole" '"text":"a.+~","stop":"eos"' "$T/out"
done
expect 2 "--finish-json without a form" "$HONE" run -m "$M" -p "$P" -n 30 --finish-json
says "… says what it goes with" 'expected --json-schema, --grammar, --regex or --choice beside it' "$T/err"
expect 2 "… and without an end" "$HONE" run -m "$M" -p "$P" -n -1 --regex a+ --finish-json
echo '{"type": "array", "uniqueItems": true}' >"$T/form.json"
expect 2 "a word that is not enforced" "$HONE" run -m "$M" -p "$P" --json-schema "$T/form.json"
says "… is named by its place" '/uniqueItems: hone does not enforce this word' "$T/err"
expect 2 "two forms" "$HONE" run -m "$M" -p "$P" --regex a --choice b
expect 2 "a form without an end" "$HONE" run -m "$M" -p "$P" --regex a --ignore-eos
expect 1 "no such schema" "$HONE" run -m "$M" -p "$P" --json-schema "$T/none.json"

# a prompt cut off: no rate for tokens that were not computed
awk 'BEGIN { for (i = 0; i < 40000; i++) print i % 200 }' >"$T/ids"
for pause in 0.1 0.5 2 8 32; do # until the prompt is at work
    "$HONE" run -m "$M" --ids "@$T/ids" -c 50000 -n 1 --json >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    await listening $pid
    sleep $pause
    kill -TERM $pid 2>/dev/null
    wait $pid
    [ -s "$T/out" ] && break
done
if grep -q '"stop":"interrupted"' "$T/out"; then
    says "SIGTERM in the prompt: no prefill rate" '"tokens":\[\],.*"prefill_tok_s":null' "$T/out"
else
    skip "SIGTERM in the prompt" "the prompt was done before it came"
fi
{
    "$HONE" run -m "$M" -p "$P" -n -1 -c 4096 --ignore-eos -s 1 2>"$T/err" </dev/null
    echo $? >"$T/rc"
} | head -c 5 >/dev/null
is "a closed pipe: exit 1" "$(cat "$T/rc")" 1
is "… without a word" "$(grep -cv 'note: -c' "$T/err")" 0
# tools
echo '[{"type":"function","function":{"name":"get_weather","description":"Weather of a place","parameters":
    {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]' >"$T/tools.json"
set -- --chat -m "$CHAT" --tools "$T/tools.json" -p "What is the weather in Paris?" --temp 0 -n 60 -t 1
"$HONE" run "$@" >"$T/said" 2>"$T/err"
if [ "$(cat "$T/said")" = '{"name":"get_weather","arguments":{"city":"Paris"}}' ]; then ok "a call is a line of JSON"
else not_ok "a call is a line of JSON" "$T/said" "$T/err"; fi
"$HONE" run "$@" --json >"$T/said" 2>"$T/err"
if grep -q '"tool_calls":\[{"id":"call_[A-Za-z0-9]*","name":"get_weather","arguments":"{' "$T/said"; then ok "and stands in --json"
else not_ok "and stands in --json" "$T/said" "$T/err"; fi
"$HONE" run "$@" --json -n 14 >"$T/said" 2>"$T/err"
if grep -q '"stop":"length"' "$T/said" && grep -q '"tool_calls":\[' "$T/said"; then ok "one that was cut, too"
else not_ok "one that was cut, too" "$T/said" "$T/err"; fi
expect 2 "tools are for conversations" "$HONE" run -m "$CHAT" --tools "$T/tools.json" -p x
says "and it says so" 'tools is for --chat'
expect 2 "calls have an end" "$HONE" run "$@" --ignore-eos
echo '{"no":"array"}' >"$T/tools.json"
"$HONE" run "$@" >"$T/said" 2>"$T/err"
if [ $? -ne 0 ] && grep -q tools "$T/err"; then ok "tools that are none are told"
else not_ok "tools that are none are told" "$T/said" "$T/err"; fi

# a file that ends whole texts (add_eos_token, a byte behind its name) ends no prompt
cp "$M" "$T/ends.gguf"
key=$(grep -abo tokenizer.ggml.add_eos_token "$M" | head -n 1 | cut -d: -f1)
if [ -n "$key" ]; then
    printf '\001' | dd of="$T/ends.gguf" bs=1 seek=$((key + 32)) conv=notrunc 2>/dev/null
    run "$HONE" run -m "$T/ends.gguf" -p "$P" -n 0 --json
    is "a prompt has no end" "$(field prompt_tokens "$T/out" | tr -d '[]')" "$prompt"
    run "$HONE" tokenize -m "$T/ends.gguf" -p "$P" --json
    is "… a whole text has one" "$(count ids "$T/out")" $(($(echo "$prompt" | tr ',' '\n' | grep -c .) + 1))
else
    skip "a prompt has no end" "$M has no add_eos_token"
fi
finish
