#!/bin/sh
# hone inspect: what it shows, what it writes, what it refuses.
. tests/e2e/lib.sh
C=tests/fuzz/corpus/gguf

expect 0 "a file" "$HONE" inspect $C/py_kinds.gguf
says "… its architecture" "^architecture +llama\$" "$T/out"
says "… its parameters" "^parameters +17 " "$T/out"
says "… an array, abbreviated" "k\.a_str +string\[4\] +\"a\", \"\", \"bcd\", " "$T/out"
says "… a tensor" "t\.f16 +F16 +\[2, 2, 2\] +16 bytes" "$T/out"

expect 0 "JSON" "$HONE" inspect $C/py_kinds.gguf --json
says "… schema, size" '^\{"schema":"hone\.inspect/1".*"version":3,"size":864,"n_parts":1,' "$T/out"
says "… a number" '"k\.i32":\{"type":"i32","value":-2000000000\}' "$T/out"
says "… an integer beyond JSON's" '"k\.u64":\{"type":"u64","value":"9223372036854775813"\}' "$T/out"
says "… an array" '"k\.a_i32":\{"type":"array","elem_type":"i32","count":3,"head":\[1,-1,7\]\}' "$T/out"
says "… a tensor" '\{"name":"t\.f32","type":"F32","shape":\[2,3\],"n_elements":6,"bytes":24,"offset":0,' "$T/out"

for m in 1 2 3; do
    expect 0 "a split set from member $m" "$HONE" inspect $C/py_split-0000$m-of-00003.gguf --json
    says "… is the whole set" '"size":736,"n_parts":3,.*"n_params":20,' "$T/out"
done

expect 0 "one tensor" "$HONE" inspect $C/py_kinds.gguf --tensor t.f32
says "… its range" "^max +5\$" "$T/out"
says "… its mean" "^mean +2\.5\$" "$T/out"
expect 0 "one tensor, raw" "$HONE" inspect $C/py_kinds.gguf --tensor t.i8 --f32
printf '\000\000\200\277\000\000\000\100\000\000\100\100' >"$T/want" # -1, 2, 3
same "… is little-endian f32" "$T/out" "$T/want"
if [ -e /dev/full ]; then
    "$HONE" inspect $C/py_kinds.gguf --tensor t.f32 --f32 >/dev/full 2>"$T/err" </dev/null
    if [ $? -eq 1 ]; then ok "… on a full disk: exit 1"; else not_ok "… on a full disk: exit 1" "$T/err"; fi
    says "… and why" "No space left"
fi
expect 0 "sound data" "$HONE" inspect $C/py_kinds.gguf --check

expect 1 "a tensor that is not there" "$HONE" inspect $C/py_kinds.gguf --tensor t.f3
says "… with the nearest" "'t\.f3'.*'t\.f32'"
expect 2 "--f32 alone" "$HONE" inspect $C/py_kinds.gguf --f32
expect 2 "--f32 with --json" "$HONE" inspect $C/py_kinds.gguf --tensor t.f32 --f32 --json
expect 2 "no file" "$HONE" inspect

# a model of one layer, and a block behind it that drafts
u32() { printf "\\$(printf %03o "$1")\000\000\000"; }
u64() { u32 "$1"; printf '\000\000\000\000'; }
str() { u64 ${#1}; printf %s "$1"; }
drafts() {
    printf GGUF; u32 3; u64 3; u64 3
    str general.architecture; u32 8; str glm4moe
    str glm4moe.block_count; u32 4; u32 2
    str glm4moe.nextn_predict_layers; u32 4; u32 1
    at=0
    for name in blk.0.a blk.1.a blk.1.nextn.b; do
        str $name; u32 1; u64 2; u32 0; u64 $at
        at=$((at + 32))
    done
}
drafts >"$T/drafts.gguf"
{ drafts; head -c $(((32 - $(wc -c <"$T/drafts.gguf") % 32) % 32 + 96)) /dev/zero; } >"$T/drafts2.gguf"
expect 0 "blocks that draft" "$HONE" inspect "$T/drafts2.gguf"
says "… are told" "^not run +the last 1 of 2 blocks, which draft further tokens: 2 tensors, " "$T/out"
expect 0 "blocks that draft, as JSON" "$HONE" inspect "$T/drafts2.gguf" --json
says "… too" '"not_run":\{"blocks":1,"tensors":2,"bytes":16\}' "$T/out"
expect 0 "none" "$HONE" inspect $C/py_kinds.gguf --json
says "… is none" '"not_run":\{"blocks":0,"tensors":0,"bytes":0\}' "$T/out"

# strangers' text: example.gguf with its architecture and its tensor's name spoilt
{ head -c 64 $C/example.gguf; printf '\033[31m'; tail -c +70 $C/example.gguf; } >"$T/steer.gguf"
expect 0 "a value with an escape sequence" "$HONE" inspect "$T/steer.gguf"
says "… shown, not obeyed" '^architecture +\\x1b\[31m$' "$T/out"
if LC_ALL=C grep -q "$(printf '\033')" "$T/out"; then not_ok "… no escape byte" "$T/out"; else ok "… no escape byte"; fi
{ head -c 64 $C/example.gguf; printf 'll\377ma'; tail -c +70 $C/example.gguf; } >"$T/bytes.gguf"
expect 0 "a value that is not UTF-8, as JSON" "$HONE" inspect "$T/bytes.gguf" --json
says "… escaped" '"architecture":"ll\\\\xffma"' "$T/out"

# not finite: the last float of example.gguf
{ head -c 212 $C/example.gguf; printf '\000\000\300\177'; tail -c +217 $C/example.gguf; } >"$T/nan.gguf"
expect 0 "a NaN is not looked for unasked" "$HONE" inspect "$T/nan.gguf"
expect 3 "--check finds it" "$HONE" inspect "$T/nan.gguf" --check
says "… and says where" "'t\.weight'.*element 5"
expect 0 "one tensor with a NaN" "$HONE" inspect "$T/nan.gguf" --tensor t.weight
says "… counts it" "1 NaN" "$T/out"

head -c 200 $C/example.gguf >"$T/short.gguf"
expect 3 "a file cut short" "$HONE" inspect "$T/short.gguf"
says "… how much is missing" "'t\.weight'.*24 bytes, 16 of them missing"
finish
