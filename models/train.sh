#!/bin/sh
# Makes hone-tiny.gguf from nothing: writes its stories, and trains tokenizer and weights with hone.
#
#   ./models/train.sh OUT.gguf [HONE]
#
# HONE is the binary (default: build/release/hone). In the environment: STEPS (16000), and HONE_THREADS
# (default: all cores; the file is the same bytes with any number, on any CPU level). Forty minutes on two
# cores. Interrupted, it goes on where it was when called again with the same OUT: checkpoints and log lie
# in OUT.run, which stays.
set -eu
case ${1:-} in
-h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: $0 OUT.gguf [HONE]" >&2; exit 2; }
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
hone=${2:-$here/../build/release/hone}
run=$1.run
mkdir -p "$run"

python3 "$here/make_corpus.py" --jsonl "$run/stories.jsonl"
"$hone" train --from-config "$here/hone-tiny.json" --vocab 1536 --name hone-tiny --type F16 \
    --data "$run/stories.jsonl" --mask none --val-share 0.02 -o "$run/hone-tiny.gguf" --bf16 \
    --steps "${STEPS:-16000}" --batch 4 --lr 2e-3 --min-lr 2e-5 --warmup 150 --weight-decay 0.1 --beta2 0.98 \
    --seed 20240607 --eval-every 500 --save-every 500 --resume --log "$run/log.jsonl" </dev/null
mv "$run/hone-tiny.gguf" "$1"
