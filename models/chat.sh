#!/bin/sh
# Makes hone-chat.gguf: writes its conversations, and teaches them to hone-tiny with hone, in two parts: all kinds of
# them, then mostly questions about texts.
#
#   ./models/chat.sh OUT.gguf [HONE]
#
# HONE is the binary (default: build/release/hone). In the environment: STEPS1 (2564), STEPS2 (1600), and HONE_THREADS
# (default: all cores; the file is the same bytes with any number, on any CPU level). Interrupted, it goes on where
# it was when called again with the same OUT: checkpoints and logs lie in OUT.run, which stays.
set -eu
case ${1:-} in
-h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: $0 OUT.gguf [HONE]" >&2; exit 2; }
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
hone=${2:-$here/../build/release/hone}
run=$1.run
mkdir -p "$run"

part() { # part NAME FROM STEPS ARG…
    name=$1 from=$2 steps=$3
    shift 3
    "$hone" train -m "$from" --full --name hone-chat --chat-template "@$here/hone-chat.jinja" --data "$run/$name.jsonl" \
        --mask prompt --val-share 0.005 -o "$run/$name.gguf" --bf16 --seq 512 --batch 2 --steps "$steps" \
        --lr 1e-3 --min-lr 1e-5 --warmup 100 --weight-decay 0.1 --beta2 0.98 --seed 20240711 \
        --eval-every 500 --save-every 250 --resume --log "$run/$name.log.jsonl" "$@" </dev/null
}
python3 "$here/make_dialogues.py" "$run/first.jsonl"
part first "$here/hone-tiny.gguf" 3500 --stop-after "${STEPS1:-2564}"
python3 "$here/make_dialogues.py" --texts --seed 20240712 --n 30000 "$run/second.jsonl"
part second "$run/first.gguf" "${STEPS2:-1600}" --type Q8_0
mv "$run/second.gguf" "$1"
