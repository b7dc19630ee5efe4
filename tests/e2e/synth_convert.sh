#!/bin/sh
# synth and convert through the program: files, messages, exit codes, nothing left behind.
# Usage: synth_convert.sh [HONE]; from the repository root. Exit 77: skipped.
set -u
hone=${1:-${HONE:-build/release/hone}}
[ -x "$hone" ] || { echo "SKIP: no program at $hone"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n_fail=0
fail() { echo "FAIL: $*"; n_fail=$((n_fail + 1)); }

# check CODE TEXT ARGS…: exit code, and TEXT in what is printed
check() {
    want=$1 text=$2
    shift 2
    out=$("$hone" "$@" 2>&1 </dev/null)
    code=$?
    [ $code -eq "$want" ] || fail "hone $*: exit $code, expected $want: $out"
    case $out in *"$text"*) ;; *) fail "hone $*: '$text' not in: $out" ;; esac
}
left() { # files in $dir besides those named
    for f in "$dir"/* "$dir"/.[!.]*; do
        [ -e "$f" ] || continue
        case " $* " in *" ${f##*/} "*) ;; *) fail "left behind: $f" ;; esac
    done
}

cat >"$dir/s.json" <<'X'
{"arch":"llama","n_layer":2,"n_embd":256,"n_head":4,"n_head_kv":2,"n_ff":768,"n_vocab":2000,"n_ctx_train":512,"tied":false}
X

check 0 "llama-3.2-1b" synth --list
check 0 '"schema":"hone.synth.list/1"' synth --list --json
check 0 "Q6_K" synth --config "$dir/s.json" -o "$dir/a.gguf"
check 0 '"schema":"hone.synth/1"' synth --config "$dir/s.json" -o "$dir/b.gguf" --json -t 1
cmp "$dir/a.gguf" "$dir/b.gguf" || fail "threads change the file"
check 0 "Q8_0" synth --config "$dir/s.json" --type q8_0 --seed 7 -o "$dir/b.gguf"
for t in F32 F16 BF16 Q4_0 Q5_K_M Q6_K; do check 0 "MB" synth --config "$dir/s.json" --type $t -o "$dir/b.gguf"; done
rm -f "$dir/b.gguf"

echo '{"arch":"qwen2","n_layer":2,"n_embd":64,"n_head":4,"n_ff":64}' >"$dir/bad.json"
check 2 "hone synth --list" synth
check 2 "llama-9b" synth llama-9b -o "$dir/x.gguf"
check 2 "-o FILE" synth llama-1b
check 2 "Q9" synth llama-1b --type Q9 -o "$dir/x.gguf"
check 2 "n_vocab is missing" synth --config "$dir/bad.json" -o "$dir/x.gguf"
check 1 "no-such" synth --config "$dir/no-such.json" -o "$dir/x.gguf"
check 1 "no-such" synth --config "$dir/s.json" -o "$dir/no-such/x.gguf"
rm -f "$dir/bad.json"
free=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
if [ "$free" -lt 280000000 ]; then check 1 "bytes" synth llama-70b --type F32 -o "$dir/x.gguf"; else echo "SKIP: the disk has room for 282 GB"; fi
left a.gguf s.json

# Interrupted in the middle: 130, and no file.
if [ "$free" -gt 6000000 ]; then
    "$hone" synth llama-3-8b -o "$dir/int.gguf" >/dev/null 2>"$dir/log" &
    pid=$!
    i=0 # some of the file is there, under whatever name
    while [ -z "$(find "$dir" -name '*int.gguf*' -size +0)" ] && kill -0 $pid 2>/dev/null && [ $i -lt 3000 ]; do
        i=$((i + 1))
        sleep 0.1
    done
    kill -INT $pid
    wait $pid
    code=$?
    [ $code -eq 130 ] || fail "interrupted synth: exit $code, expected 130: $(cat "$dir/log")"
    grep -q interrupted "$dir/log" || fail "interrupted synth says: $(cat "$dir/log")"
    rm -f "$dir/log"
    left a.gguf s.json
else
    echo "SKIP: too little disk for the interruption"
fi

check 2 "SRC" convert -o "$dir/x.gguf"
check 3 "absent.bin" convert "$dir/absent.bin" -o "$dir/x.gguf"
check 3 "already GGUF" convert "$dir/a.gguf" -o "$dir/x.gguf"
check 3 "folder" convert "$dir" -o "$dir/x.gguf"
stories=../shared/data/stories260K
if [ -e $stories/stories260K.bin ]; then
    check 0 "F32 47" convert $stories/stories260K.bin --tokenizer $stories/tok512.bin -o "$dir/c.gguf"
    check 0 "has no tokenizer" convert $stories/stories260K.bin --type Q8_0 -o "$dir/d.gguf"
    check 0 '"schema":"hone.convert/1"' convert $stories/stories260K.bin --tokenizer $stories/tok512.bin --json -o "$dir/d.gguf"
    cmp "$dir/c.gguf" "$dir/d.gguf" || fail "two conversions differ"
    head -c 100000 $stories/stories260K.bin >"$dir/cut.bin"
    check 3 "1056540" convert "$dir/cut.bin" -o "$dir/x.gguf"
    rm -f "$dir/cut.bin"
    left a.gguf s.json c.gguf d.gguf
else
    echo "SKIP: $stories is absent"
fi

[ $n_fail -eq 0 ] && echo "synth_convert: ok"
[ $n_fail -eq 0 ]
