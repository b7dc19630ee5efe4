#!/bin/sh
# Trains hone-tiny's adapter for verse: writes the poems of make_rhymes.py and teaches them to BASE.
#
#   ./models/rhyme.sh BASE.gguf OUT.lora.gguf [HONE]
#
# HONE is the binary (default: build/release/hone). In the environment: STEPS (800), LR (4e-3), and
# HONE_THREADS (default: all cores; the adapter does not depend on it). One to two minutes on two idle
# cores. tests/dev/check_rhymes.py counts how much of what comes out rhymes.
set -eu
case ${1:-} in
-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -ge 2 ] && [ $# -le 3 ] || { echo "usage: $0 BASE.gguf OUT.lora.gguf [HONE]" >&2; exit 2; }
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
hone=${3:-$here/../build/release/hone}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

python3 "$here/make_rhymes.py" "$tmp/rhymes.jsonl"
# A large rate and a step of some 900 tokens: what is learnt is a few hundred lines, each seen dozens of
# times, and the base is not to be kept. One poem has about 125 tokens; 256 hold two.
"$hone" train -m "$1" -d "$tmp/rhymes.jsonl" -o "$tmp/rhyme.lora.gguf" --targets all -r 8 --alpha 16 --bf16 \
    --seq 256 -b 4 --steps "${STEPS:-800}" --lr "${LR:-4e-3}" --warmup 20 --weight-decay 0 --beta2 0.99 --seed 1 \
    --save-every 0 --log "$tmp/log.jsonl" </dev/null
mv "$tmp/rhyme.lora.gguf" "$2"
