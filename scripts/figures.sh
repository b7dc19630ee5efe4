#!/bin/sh
# Measures the figures of README.md and docs/PERFORMANCE.md on this machine, so that each has its record.
# Usage: scripts/figures.sh NAME [ROW]…
#   NAME   records go to benchmarks/NAME.jsonl, lines to benchmarks/NAME.md; what is there already is not measured again
#   ROW    of tiny half half-f16 llama llama-1 llama-q8 llama-f16 rwkv train text (all): models of hone synth, made in FOLDER
# FOLDER=build/figures has them (8 GB). A machine that hone doctor warns of is refused; FORCE=1 measures all the same.
# Half an hour on two quiet cores. At the end the Markdown for the tables is printed.
set -eu
cd "$(dirname "$0")/.."
usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }
case ${1:-} in '' | -*) usage; exit 2 ;; esac
name=$1
shift
rows=${*:-tiny half half-f16 llama llama-1 llama-q8 llama-f16 rwkv train text}
hone=${HONE:-build/release/hone}
folder=${FOLDER:-build/figures}
change=$(git log -1 --format=%s 2>/dev/null || echo unknown)
mkdir -p "$folder"

"$hone" lab peaks --force || [ -n "${FORCE:-}" ] # the roof of today
if ! "$hone" doctor --strict >"$folder/doctor" 2>&1; then
    cat "$folder/doctor"
    [ -n "${FORCE:-}" ] || { echo "figures.sh: this machine is not fit for figures now (above); FORCE=1 measures all the same" >&2; exit 13; }
fi
# model PRESET TYPE: its file, in $file
model() {
    file=$folder/$1-$2.gguf
    [ -f "$file" ] || "$hone" synth "$1" --type "$2" -o "$file"
}
# measured TITLE OPTION…: once
measured() {
    named=$1
    shift
    if grep -qF "\"title\":\"$named\"" "benchmarks/$name.jsonl" 2>/dev/null; then
        echo "there already: $named"
        return
    fi
    "$hone" bench "$@" --file "$name" --title "$named" --change "$change"
}
# request TITLE OPTION…: of $file plain, then packed
request() {
    title=$1
    shift
    measured "$title, plain" -m "$file" --packed off -r 6 --quality quick "$@"
    [ -f "$file.hpack" ] || "$hone" pack -m "$file"
    measured "$title, packed" -m "$file" --packed "$file.hpack" -r 6 --quality quick "$@"
}

for row in $rows; do
    case $row in
    tiny) measured "the bundled model" -m models/hone-tiny.gguf -p 448 -n 64 -t 2 -r 8 ;;
    half) model qwen2.5-0.5b Q4_K_M && request "Qwen2.5-0.5B shape Q4_K_M, 2 threads" -p 512 -n 64 -t 2 ;;
    half-f16) model qwen2.5-0.5b F16 && request "Qwen2.5-0.5B shape F16, 2 threads" -p 512 -n 64 -t 2 ;;
    llama) model llama-3.2-1b Q4_K_M && request "Llama-3.2-1B shape Q4_K_M, 2 threads" -p 512 -n 64 -t 2 ;;
    llama-1) model llama-3.2-1b Q4_K_M && request "Llama-3.2-1B shape Q4_K_M, 1 thread" -p 512 -n 64 -t 1 ;;
    llama-q8) model llama-3.2-1b Q8_0 && request "Llama-3.2-1B shape Q8_0, 2 threads" -p 512 -n 64 -t 2 ;;
    llama-f16) model llama-3.2-1b F16 && request "Llama-3.2-1B shape F16, 2 threads" -p 512 -n 64 -t 2 ;;
    rwkv) model rwkv7-2.9b Q4_K_M && request "RWKV-7 2.9B shape Q4_K_M, 2 threads" -p 256 -n 64 -t 2 ;;
    train)
        model qwen2.5-0.5b F16
        measured "LoRA of the Qwen2.5-0.5B shape, F16" train.lora train.lora.bf16 -m "$file" -r 6
        measured "LoRA of the bundled model" train.lora train.lora.bf16 -m models/hone-tiny.gguf -r 6
        ;;
    text)
        model qwen2.5-0.5b Q4_K_M
        measured "opening and tokenizing, Qwen2.5-0.5B shape" tok.encode tok.decode load.parse load.config load.total load.memory -m "$file" -r 6
        ;;
    *) usage; exit 2 ;;
    esac
done
"$hone" lab report "benchmarks/$name.jsonl" --md -
