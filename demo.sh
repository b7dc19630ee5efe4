#!/bin/sh
# hone in two minutes: installs what is missing, builds, talks with the bundled model, writes
# a story, measures that on this machine and shows the row that went into the history.
# Asks nothing. Usage: ./demo.sh
set -eu
cd "$(dirname "$0")"
case ${1:-} in
-h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
'') ;;
*) echo "demo.sh: $1: no such option; it takes none" >&2; exit 2 ;;
esac
model=models/hone-tiny.gguf
step() { printf '\n== %s\n' "$*"; }

step "what hone needs"
sh scripts/setup.sh build </dev/null
echo "all there"

step "building build/release/hone"
make -j"$(nproc 2>/dev/null || echo 2)" </dev/null
hone=build/release/hone
$hone version </dev/null

for f in "$model" models/hone-chat.gguf; do
    [ -f "$f" ] || { echo "demo.sh: $f is missing; models/README.md says how it is made" >&2; exit 1; }
done

question="Jacob has a dog called Tansy. Greta has a green umbrella. What colour is Greta's umbrella?"
step "a question to the model that converses (3 MB):  hone run --chat -p \"$question\" --temp 0"
$hone run --chat -p "$question" --temp 0 </dev/null
echo

step "a story:  hone run -m $model -p \"Once upon a time\" -n 400 --temp 0.4 -s 3"
$hone run -m "$model" -p "Once upon a time" -n 400 --temp 0.4 -s 3 </dev/null
echo

step "the same model with an adapter of half a megabyte:  hone run --lora models/hone-tiny-rhyme.lora.gguf"
$hone run -m "$model" --lora models/hone-tiny-rhyme.lora.gguf -p "Once upon a time" -n 200 --temp 0.4 -s 3 </dev/null
echo

step "how fast is that here?  ./benchmark.sh -m $model -f demo -t \"demo\" -c \"as built by demo.sh\" -- -p 256"
./benchmark.sh -m "$model" -f demo -t "demo" -c "as built by demo.sh" -- -p 256 </dev/null

step "the history, benchmarks/demo.md (newest row last)"
awk '/^\|/ { row[++n] = $0 } END { for (i = 1; i <= n; i++) if (i <= 2 || i == n) print row[i] }' benchmarks/demo.md

step "what next"
cat <<'NEXT'
./build/release/hone models/hone-tiny.gguf "Lily had a"       another story
./build/release/hone train -m models/hone-tiny.gguf --data my.txt --epochs 12 --lr 1e-3 --targets all -o mine.gguf
                                                              teach it yours: a text file, an empty line between two
./build/release/hone chat                                     talk with the bundled model, which knows very little
./build/release/hone pull qwen2.5-0.5b                        get another from the hub (0.5 GB): then hone chat -m qwen2.5-0.5b
./build/release/hone serve                                    answer programs, and a page at http://127.0.0.1:8080/
NEXT
