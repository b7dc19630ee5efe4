# What every end-to-end script begins with: . tests/e2e/lib.sh
# Runs from the repository root with HONE set to the program. Prints one line "ok N - …"
# or "not ok N - …" per check; `finish` ends the script with the right status.
HONE=${HONE:-$(pwd)/build/release/hone}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
XDG_STATE_HOME=$T/.state # what hone remembers of files and of the machine: nothing of other runs
export XDG_STATE_HOME
HF_ENDPOINT=http://127.0.0.1:1 # no test asks anybody beyond this machine, and here nobody listens
export HF_ENDPOINT
n_check=0
n_bad=0
TINY=models/hone-tiny.gguf
CHAT=models/hone-chat.gguf

ok() { # ok WHAT
    n_check=$((n_check + 1))
    echo "ok $n_check - $1"
}
not_ok() { # not_ok WHAT [FILE WITH WHY]…
    n_check=$((n_check + 1))
    n_bad=$((n_bad + 1))
    echo "not ok $n_check - $1"
    shift
    for _f; do
        # (awk ends the last line too, where the cut has left it open: the next "ok" is to stand on its own)
        [ -f "$_f" ] && head -c 2000 "$_f" | head -n 12 | awk -v name="${_f##*/}" '{ print "#   " name ": " $0 }'
    done
}
skip() { # skip WHAT REASON
    n_check=$((n_check + 1))
    echo "ok $n_check # SKIP $1: $2"
}
# await COMMAND…: until it succeeds; false after five minutes, which only a hang takes
await() {
    _n=0
    until "$@" 2>/dev/null; do
        _n=$((_n + 1))
        [ $_n -lt 15000 ] || return 1
        sleep 0.02
    done
}
gone() { ! kill -0 "$1" 2>/dev/null; }
# listening PID: it catches SIGTERM, so a signal no longer just kills it; or it has ended
listening() {
    gone "$1" && return
    if [ ! -r "/proc/$1/status" ]; then
        sleep 3 # there is no asking here
        return
    fi
    _caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
    [ -z "$_caught" ] || [ $((0x${_caught#????????} & 0x4000)) -ne 0 ]
}
# children_seen PID FILE N: N different children have been seen, which FILE keeps; or it has ended
children_seen() {
    gone "$1" && return
    tr ' ' '\n' <"/proc/$1/task/$1/children" >>"$2" || sleep 1
    [ "$(grep . "$2" | sort -u | wc -l)" -ge "$3" ]
}
# small_model FILE: trained for a third of a second, so that it has a tokenizer and does not repeat itself; its queries, keys
# and values have something added. Asked in a fifth of the time of the bundled one.
small_model() {
    echo '{"arch": "qwen2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_head_kv": 2, "n_ff": 96, "n_ctx_train": 2048}' >"$T/small.json"
    expect 0 "a small model" "$HONE" train --from-config "$T/small.json" --vocab 512 --data src/lab/quality/corpus_t1.txt \
        --seq 32 --steps 300 --lr 1e-2 --type Q8_0 -o "$1"
}
# hf_folder FOLDER: a model of one layer as transformers saves it: zeros
hf_folder() {
    mkdir -p "$1"
    echo '{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":8,"intermediate_size":8,"vocab_size":16,"num_hidden_layers":1,"num_attention_heads":2,"max_position_embeddings":32,"rms_norm_eps":1e-5}' >"$1/config.json"
    _l=model.layers.0
    printf '%s\n' "lm_head 16,8" "model.embed_tokens 16,8" "model.norm 8" "$_l.input_layernorm 8" \
        "$_l.post_attention_layernorm 8" "$_l.self_attn.q_proj 8,8" "$_l.self_attn.k_proj 8,8" "$_l.self_attn.v_proj 8,8" \
        "$_l.self_attn.o_proj 8,8" "$_l.mlp.gate_proj 8,8" "$_l.mlp.up_proj 8,8" "$_l.mlp.down_proj 8,8" |
        awk '{ split($2, d, ","); n = 4 * d[1] * (d[2] ? d[2] : 1)
               h = h sprintf("%s\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", h ? "," : "", $1, $2, at, at + n)
               at += n }
             END { h = "{" h "}"; while (length(h) % 8) h = h " "; print h; print at > "/dev/stderr" }' >"$1/head" 2>"$1/size"
    _n=$(($(wc -c <"$1/head") - 1))
    {
        printf "\\$(printf %03o $((_n % 256)))\\$(printf %03o $((_n / 256)))\\0\\0\\0\\0\\0\\0"
        head -c $_n "$1/head"
        head -c "$(cat "$1/size")" /dev/zero
    } >"$1/model.safetensors"
    rm "$1/head" "$1/size"
}
# run COMMAND…: leaves status in $rc, output in $T/out, errors in $T/err
run() {
    timeout "${RUN_LIMIT:-600}" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
# expect RC WHAT COMMAND…: the exit code, and an error on stderr exactly when it is not 0
expect() {
    _want=$1 _what=$2
    shift 2
    run "$@"
    if [ "$rc" -ne "$_want" ]; then
        echo "# $*: exit $rc, expected $_want"
        not_ok "$_what" "$T/out" "$T/err"
    elif [ "$_want" -ne 0 ] && [ ! -s "$T/err" ]; then
        echo "# $*: exit $rc without a word on stderr"
        not_ok "$_what"
    elif grep -qiE 'sanitizer|assertion|core dumped' "$T/err"; then
        not_ok "$_what" "$T/err"
    else
        ok "$_what"
    fi
}
# says WHAT PATTERN [FILE]: the last run's errors (or FILE) match
says() {
    if grep -qE -- "$2" "${3:-$T/err}"; then ok "$1"; else
        echo "# expected: $2"
        not_ok "$1" "${3:-$T/err}"
    fi
}
same() { # same WHAT FILE FILE
    if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1" "$2" "$3"; fi
}
finish() {
    echo "1..$n_check"
    [ "$n_bad" -eq 0 ] || exit 1
    [ "$n_check" -gt 0 ] || exit 1
    exit 0
}
