#!/bin/sh
# Every command with one failure in it: each system call and allocation in turn (faults.c says what must hold then).
# A row per command in faults.table. Here a few places of each; `sh tests/e2e/faults.sh --all [ROW]…` tries them all,
# which takes hours, of allocations (`--all --only alloc`) a quarter of one; `--only KIND` one kind of failure, `--calls`
# no allocations.
. tests/e2e/lib.sh
places= rows= kind= no_alloc=
while [ $# -gt 0 ]; do
    case $1 in
    --all) places=-all ;;
    -v) places="$places -v" ;;
    --only) kind=$2; shift ;;
    --calls) no_alloc=1 ;;
    *) rows="$rows $1" ;;
    esac
    shift
done
if ! ${CC:-cc} -O1 -o "$T/faults" tests/e2e/faults.c tests/e2e/faults_files.c tests/e2e/faults_trace.c 2>"$T/err"; then
    skip "failures" "no compiler for tests/e2e/faults.c"
    finish
fi
alloc=
case $no_alloc$("$HONE" version) in
1*) ;;
*sanitize*) ;; # it has an allocator of its own
*) ${CC:-cc} -shared -fPIC -O1 -o "$T/alloc.so" tests/e2e/faults_alloc.c 2>"$T/err" && alloc="-alloc $T/alloc.so" ;;
esac

# ---- inputs ----
I=$T/in
mkdir -p "$I/hf" "$I/state"
XDG_STATE_HOME=$I/state HOME=$I TMPDIR=$T/tmp
export XDG_STATE_HOME HOME TMPDIR
mkdir -p "$TMPDIR"
unset HONE_CPU HONE_PACKED HONE_THREADS
for i in 1 2 3 4 5 6; do echo "{\"text\": \"The red fox $i ran to the sea, and the sea was $i miles away.\"}"; done >"$I/d.jsonl"
sed 's/.*"text": "//; s/"}//' "$I/d.jsonl" >"$I/text"
echo '{"arch": "llama", "n_layer": 1, "n_embd": 32, "n_head": 2, "n_head_kv": 1, "n_ff": 48, "n_ctx_train": 1024}' >"$I/c.json"
echo '{"arch": "llama", "n_layer": 1, "n_embd": 32, "n_head": 2, "n_head_kv": 1, "n_ff": 32, "n_vocab": 64, "n_ctx_train": 64}' >"$I/shape.json"
echo '{"arch": "llama", "n_layer": 1, "n_embd": 256, "n_head": 4, "n_head_kv": 2, "n_ff": 256, "n_vocab": 64, "n_ctx_train": 64}' >"$I/wide.json"
echo '{"messages": [{"role": "user", "content": "fox"}]}' >"$I/context.json"
echo '{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}' >"$I/chat.jinja"
printf 'fox\nsea\n' >"$I/chat.txt"
printf 'fox\n/save talk.json\n' >"$I/save.txt"
made() { # made WHAT COMMAND…
    _made=$1
    shift
    run "$@"
    [ "$rc" -eq 0 ] || not_ok "$_made" "$T/err"
}
train="--seq 16 --pack off --targets q --rank 2 --steps 2 -t 1 -b 1"
made "a model" "$HONE" train --from-config "$I/c.json" --vocab 300 --data "$I/d.jsonl" --seq 32 --steps 100 --lr 1e-2 -t 1 -o "$T/m.gguf"
cp "$T/m.gguf" "$I/m.gguf"
made "an adapter" "$HONE" train -m "$I/m.gguf" --data "$I/d.jsonl" $train -o "$T/a.gguf"
cp "$T/a.gguf" "$I/a.gguf"
for i in 1 2 3 4 5 6; do echo '{"messages": [{"role": "user", "content": "fox '$i'"}, {"role": "assistant", "content": "the red fox ran to the sea"}]}'; done >"$I/talks.jsonl"
made "an adapter of conversations" "$HONE" train -m "$I/m.gguf" --data "$I/talks.jsonl" --chat-template chatml --seq 64 --pack off --targets q --rank 2 --steps 2 -t 1 -b 1 -o "$T/t.gguf"
cp "$T/t.gguf" "$I/t.gguf"
made "a PEFT folder" "$HONE" convert "$I/a.gguf" --base "$I/m.gguf" -o "$I/peft"
made "a model with blocks" "$HONE" synth --config "$I/wide.json" --type Q8_0 -o "$I/q.gguf"
cp "$I/m.gguf" "$I/p.gguf"
made "a packed one" "$HONE" pack -m "$I/p.gguf"
cp tests/fuzz/corpus/convert/v7.bin "$I/v7.bin"
cp tests/fuzz/corpus/convert/v7.safetensors "$I/hf/model.safetensors"
printf "1 'x' 1\n" >"$I/hf/rwkv_vocab_v20230424.txt"
cp models/hone-chat.gguf "$I/talk.gguf"
echo '[{"type": "function", "function": {"name": "far", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}]' >"$I/tools.json"
echo '{"type": "boolean"}' >"$I/schema.json"
hf_folder "$I/folder"
echo '{"top_k": 20}' >"$I/folder/generation_config.json"
(cd "$I" && "$HONE" chat -m m.gguf --chat-template chatml --temp 0 -n 3 -t 1 --commands <save.txt >/dev/null 2>&1)
made "a history" "$HONE" bench -m "$I/m.gguf" -p 4 -n 4 -r 6 -t 1 --file "$I/h"
made "and more of it" "$HONE" bench kern.norm.96 -r 2 -t 1 --quick --file "$I/h"
# a cache of the hub, links and a hole in it, and ollama's store
C=0123456789abcdef0123456789abcdef01234567 H=$I/.cache/huggingface/hub/models--o--n
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME OLLAMA_MODELS HONE_MODELS
mkdir -p "$H/refs" "$H/blobs" "$H/snapshots/$C" "$I/.ollama/models/manifests/registry.ollama.ai/library/talk" "$I/.ollama/models/blobs"
printf %s $C >"$H/refs/main"
cp "$I/m.gguf" "$H/blobs/$C"
ln -s ../../blobs/$C "$H/snapshots/$C/m-F32.gguf"
ln -s ../../blobs/none "$H/snapshots/$C/m-Q8_0-00001-of-00002.gguf"
S=$(sha256sum "$I/m.gguf" | cut -c 1-64)
cp "$I/m.gguf" "$I/.ollama/models/blobs/sha256-$S"
printf '{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%s}]}' "$S" \
    "$(wc -c <"$I/m.gguf" | tr -d ' ')" >"$I/.ollama/models/manifests/registry.ollama.ai/library/talk/latest"

# a hub, whose file is fetched again and again
mkdir -p "$T/hub/plain" "$T/hub/repos/o/n"
cp "$I/m.gguf" "$T/hub/plain/m.gguf"
cp "$I/m.gguf" "$T/hub/repos/o/n/m-F32.gguf"
plain=
if ${CC:-cc} -O1 -pthread -w -o "$T/serve-hub" tests/e2e/hub.c 2>"$T/err" && ! "$HONE" pull a/b --retries 1 2>&1 | grep -q libcurl; then
    "$T/serve-hub" "$T/hub" >"$T/ports" &
    HUB=$!
    trap 'kill $HUB 2>/dev/null; rm -rf "$T"' EXIT
    await test -s "$T/ports"
    read -r port cdn <"$T/ports"
    HF_ENDPOINT=http://127.0.0.1:$port
    plain=http://127.0.0.1:$cdn/plain
fi
few="--retries 1 --retry-wait 0.001 --timeout 5"
net="$few --connections 1"

# A library that cannot tell allocations apart would try next to none of them. The program is as it is installed: without
# tables for unwinding.
if [ -n "$alloc" ]; then
    HONE_ALLOC_FILE=$T/sites LD_PRELOAD=$T/alloc.so "$HONE" inspect "$I/m.gguf" >"$T/out" 2>"$T/err"
    n=$(grep -c '^site' "$T/sites")
    if [ "$n" -ge 25 ]; then ok "allocations are told apart: $n places in hone inspect"; else not_ok "only $n places that allocate in hone inspect" "$T/err"; fi
fi

# ---- failures ----
sed "s|@train|$train|g; s|@net|$net|g; s|@few|$few|g; s|@plain|$plain|g" tests/e2e/faults.table >"$T/table"
[ -n "$plain" ] || { grep -v '^pull-list\|^pull ' "$T/table" >"$T/short"; mv "$T/short" "$T/table"; }
[ -n "$places" ] || { grep -v '|[^|]*\<long\>' "$T/table" >"$T/short"; mv "$T/short" "$T/table"; }
{
    "$T/faults" $places ${kind:+-only "$kind"} $alloc -inputs "$I" -work "$T/work" "$HONE" "$T/table" $rows
    echo $? >"$T/rc"
} | tee "$T/said"
rc=$(cat "$T/rc")
if [ $rc -eq 77 ]; then
    skip "failures" "no process may be traced here"
elif [ $rc -eq 0 ]; then
    ok "$(tail -n 1 "$T/said")"
else
    not_ok "$(tail -n 1 "$T/said")"
fi
[ -z "$(ls -A "$TMPDIR")" ] && ok "nothing stays in TMPDIR" || { ls "$TMPDIR" >"$T/left"; not_ok "nothing stays in TMPDIR" "$T/left"; }
finish
