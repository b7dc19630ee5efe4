#!/bin/sh
# hone tokenize and detokenize on files that hold only a vocabulary.
. tests/e2e/lib.sh
V=tests/fuzz/corpus/vocab

printf 'hello\n\n <t>aa a<|end|>' >"$T/text"
expect 0 "ids on one line" "$HONE" tokenize -m $V/bpe_gpt-2.gguf -p 'hell a'
printf '97 98 99\n' >"$T/want"
same "… and the right ones" "$T/want" "$T/out"
expect 0 "special tokens in a text" "$HONE" tokenize -m $V/bpe_gpt-2.gguf -p 'a<|end|><t>'
printf '64 102 103\n' >"$T/want"
same "… are recognised" "$T/want" "$T/out"
expect 0 "--no-special" "$HONE" tokenize -m $V/bpe_gpt-2.gguf -p '|<t>' --no-special
printf '91 103\n' >"$T/want" # an added token stays one, whatever is asked
same "… leaves control tokens as text" "$T/want" "$T/out"
expect 0 "bos" "$HONE" tokenize -m $V/spm.gguf -p 'a'
printf '1 16\n' >"$T/want"
same "… is added" "$T/want" "$T/out"
expect 0 "--no-bos" "$HONE" tokenize -m $V/spm.gguf -p 'a' --no-bos
printf '16\n' >"$T/want"
same "… is not" "$T/want" "$T/out"
expect 0 "an empty text" "$HONE" tokenize -m $V/bpe_gpt-2.gguf -p ''
printf '\n' >"$T/want"
same "… gives an empty line" "$T/want" "$T/out"

# every byte, NUL and the last newline included, goes through and comes back
awk 'BEGIN { for (i = 0; i < 256; i++) printf "%c", i }' >"$T/bytes" 2>/dev/null
printf 'a\0b\377\303 \342\202\n' >>"$T/bytes"
for f in text bytes; do
    "$HONE" tokenize -m $V/rwkv.gguf -f "$T/$f" >"$T/ids" && "$HONE" detokenize -m $V/rwkv.gguf <"$T/ids" >"$T/back"
    same "$f: file to ids to standard output" "$T/$f" "$T/back"
    "$HONE" tokenize -m $V/rwkv.gguf <"$T/$f" >"$T/ids2"
    same "$f: from standard input" "$T/ids" "$T/ids2"
    expect 0 "$f: --ids @FILE" "$HONE" detokenize -m $V/rwkv.gguf --ids "@$T/ids"
    same "$f: … the same bytes" "$T/$f" "$T/out"
done
expect 0 "JSON" "$HONE" tokenize -m $V/rwkv.gguf -p 'ab' --json
says "… has ids and pieces" '^\{"schema":"hone.tokenize/1","ids":\[257\],"pieces":\[\{"id":257,"offset":0,"end":2,"text":"ab"\}\]\}$' "$T/out"
expect 0 "JSON with an added token" "$HONE" tokenize -m $V/spm.gguf -p 'ab' --json
says "… which has no place in the text" '"pieces":\[\{"id":1,"offset":0,"end":0,"text":"<s>"\},\{"id":[0-9]+,"offset":0,"end":[01],"text":" ?[^"]+"\}' "$T/out"
expect 0 "JSON of half a character" "$HONE" detokenize -m $V/rwkv.gguf --ids 196 --json
says "… has the bytes" '^\{"schema":"hone.detokenize/1","ids":\[196\],"text":".*","bytes_hex":"c3"\}$' "$T/out"
expect 0 "special tokens" "$HONE" detokenize -m $V/bpe_gpt-2.gguf --ids 64,102
printf 'a<|end|>' >"$T/want"
same "… are shown" "$T/want" "$T/out"
expect 0 "--no-special" "$HONE" detokenize -m $V/bpe_gpt-2.gguf --ids 64,102 --no-special
printf 'a' >"$T/want"
same "… hides them" "$T/want" "$T/out"

expect 2 "an id beyond the vocabulary" "$HONE" detokenize -m $V/spm.gguf --ids 1,99
says "… is named" '99 .*expected 0 to 21'
expect 2 "no number" "$HONE" detokenize -m $V/spm.gguf --ids 1,x
says "… is named" "'x'"
expect 2 "an unknown pre-tokenizer" "$HONE" tokenize -m $V/bpe_gpt-2.gguf --pre nope -p x
says "… with those that exist" 'nope.*qwen2'
expect 2 "a pre-tokenizer where none applies" "$HONE" tokenize -m $V/spm.gguf --pre qwen2 -p x
expect 1 "a missing text file" "$HONE" tokenize -m $V/spm.gguf -f "$T/nothing"
says "… is named" nothing
expect 3 "a missing model" "$HONE" tokenize -m "$T/nothing.gguf" -p x
head -c 300 $V/spm.gguf >"$T/cut.gguf"
expect 3 "a truncated model" "$HONE" tokenize -m "$T/cut.gguf" -p x
finish
