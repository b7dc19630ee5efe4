#!/bin/sh
# Folders of transformers through the program: what is written, what is told, what is refused.
. tests/e2e/lib.sh

hf_folder "$T/hf"
expect 0 "a folder converts" "$HONE" convert "$T/hf" -o "$T/a.gguf"
says "it has no vocabulary, and says so" "has no tokenizer"
expect 0 "the file is sound" "$HONE" inspect --check "$T/a.gguf"
expect 0 "it runs" "$HONE" run -m "$T/a.gguf" --ids 1,2 -n 2 --temp 0 --ignore-eos
expect 0 "as JSON" "$HONE" convert "$T/hf/" --type F16 --json -o "$T/j.gguf"
says "schema" '"schema":"hone.convert/1"' "$T/out"
says "types" '"F16":9' "$T/out"
run "$HONE" inspect "$T/a.gguf"
says "its name is the folder's" 'hf' "$T/out"
expect 0 "again" "$HONE" convert "$T/hf" -o "$T/b.gguf"
same "the same bytes" "$T/a.gguf" "$T/b.gguf"

mkdir -p "$T/models--org--Nice-1B/snapshots" && cp -r "$T/hf" "$T/models--org--Nice-1B/snapshots/0123abc"
expect 0 "a cache of the hub" "$HONE" convert "$T/models--org--Nice-1B/snapshots/0123abc" -o "$T/n.gguf"
run "$HONE" inspect "$T/n.gguf"
says "has its model's name" 'Nice-1B' "$T/out"

expect 0 "and back" "$HONE" convert "$T/a.gguf" -o "$T/back/hf/"
expect 0 "as JSON" "$HONE" convert "$T/a.gguf" --type BF16 --json -o "$T/j"
says "schema" '"schema":"hone.convert/1"' "$T/out"
expect 0 "and there again" "$HONE" convert "$T/back/hf" -o "$T/again.gguf"
expect 0 "and back" "$HONE" convert "$T/again.gguf" -o "$T/back2/hf/"
expect 0 "and there" "$HONE" convert "$T/back2/hf" -o "$T/again2.gguf"
same "the same bytes" "$T/again.gguf" "$T/again2.gguf"
run "$HONE" run -m "$T/a.gguf" --ids 1,2 -n 4 --temp 0 --ignore-eos && cp "$T/out" "$T/one"
run "$HONE" run -m "$T/again.gguf" --ids 1,2 -n 4 --temp 0 --ignore-eos
same "it says the same" "$T/one" "$T/out"
expect 2 "a folder with files is left alone" "$HONE" convert "$T/a.gguf" -o "$T/back/hf"
says "and named" 'there are files in it'
expect 3 "blocks are no type of a folder" "$HONE" convert "$T/a.gguf" -o "$T/x.gguf"
says "is told" 'already GGUF'
expect 0 "the model that comes with hone" "$HONE" convert "$TINY" -o "$T/hone-tiny"
expect 0 "with its tokenizer" "$HONE" convert "$T/hone-tiny" -o "$T/tiny.gguf"
run "$HONE" run -m "$TINY" -p "Once upon" -n 12 --temp 0 && cp "$T/out" "$T/one"
run "$HONE" run -m "$T/tiny.gguf" -p "Once upon" -n 12 --temp 0
same "says the same" "$T/one" "$T/out"

sed 's/"rms_norm_eps"/"mystery":1,"rms_norm_eps"/' "$T/hf/config.json" >"$T/c" && cp "$T/c" "$T/hf/config.json"
expect 3 "a member that hone does not know" "$HONE" convert "$T/hf" -o "$T/x.gguf"
says "is named, with a way around it" '"mystery": 1 is unknown .*HONE_IGNORE_KEYS=mystery'
expect 0 "which works" env HONE_IGNORE_KEYS=mystery "$HONE" convert "$T/hf" -o "$T/c.gguf"
same "and changes nothing" "$T/a.gguf" "$T/c.gguf"
head -c 900 "$T/hf/model.safetensors" >"$T/cut" && cp "$T/cut" "$T/hf/model.safetensors"
expect 3 "a cut file" "$HONE" convert "$T/hf" -o "$T/x.gguf"
rm "$T/hf/model.safetensors"
expect 3 "no tensors" "$HONE" convert "$T/hf" -o "$T/x.gguf"
says "is told" 'has no model.safetensors'
if ls "$T"/x.gguf* >/dev/null 2>&1; then not_ok "nothing is left behind"; else ok "nothing is left behind"; fi
finish
