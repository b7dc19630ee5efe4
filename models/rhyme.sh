#!/bin/sh
# Trains hone-tiny's adapter for verse: writes the poems of make_rhymes.py and teaches them to BASE.
#
#   ./models/rhyme.sh BASE.gguf OUT.lora.gguf [HONE]
#
# HONE: the binary (default: build/release/hone). HONE_THREADS: threads (default: all cores); the
# adapter does not depend on them. Minutes on two cores.
set -eu
case ${1:-} in
-h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -ge 2 ] && [ $# -le 3 ] || { echo "usage: $0 BASE.gguf OUT.lora.gguf [HONE]" >&2; exit 2; }
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
hone=${3:-$here/../build/release/hone}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
python3 "$here/make_rhymes.py" "$tmp/rhymes.jsonl"
"$hone" train -m "$1" -d "$tmp/rhymes.jsonl" -o "$tmp/out.gguf" --targets all -r 8 --alpha 16 --bf16 \
    --seq 256 -b 4 --steps "${STEPS:-800}" --lr "${LR:-4e-3}" --warmup 20 --weight-decay 0 --beta2 0.99 --seed 1 --save-every 0 --log "$tmp/log.jsonl" </dev/null
mv "$tmp/out.gguf" "$2"
