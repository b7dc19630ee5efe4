#!/bin/sh
# The quality hash again by other means: the same eight prompts through hone tokenize,
# hone run and hone logits, hashed by sha256sum as docs/RECORDS.md says; and the
# long prompt behind it. The texts are written out here too: they must never change under the name q1.
. tests/e2e/lib.sh

M=$TINY
data=../shared/data/stories260K
if [ ! -f "$M" ] && [ -f "$data/stories260K.bin" ]; then
    "$HONE" convert "$data/stories260K.bin" --tokenizer "$data/tok512.bin" -o "$T/model.gguf" >/dev/null 2>&1 && M=$T/model.gguf
fi
if [ ! -f "$M" ]; then
    skip "the quality hash by other means" "neither $TINY nor the stories260K data is here"
    finish
fi
command -v sha256sum >/dev/null 2>&1 || { skip "the quality hash by other means" "no sha256sum"; finish; }

prompt() {
    case $1 in
    0) printf 'Once upon a time there was a little boat that was afraid of deep water. One morning' ;;
    1) printf 'Question: Why does a kettle begin to sing a while before it boils?\nAnswer:' ;;
    2) printf '/* Length of the longest run of equal bytes. */\nsize_t longest_run(const unsigned char *p, size_t n)\n{\n' ;;
    3) printf 'def moving_average(values, width):\n    """Mean of the last `width` values, for each place."""\n' ;;
    4) printf '{"order": 1047, "items": [{"name": "lamp", "price": 39.5}, {"name": "chair",' ;;
    5) printf '2 3 5 7 11 13 17 19 23 29 31 37 41 43 47 53 59 61 67' ;;
    6) printf 'Der Zug fährt um acht Uhr ab. Le train part à huit heures. 火车八点出发。Поезд отправляется' ;;
    7) printf 'Things to check before a measurement:\n1. nothing else is running\n2. the file is in memory\n3.' ;;
    esac
}
le32() { # ids as u32, little-endian
    for id; do
        printf "\\$(printf %03o $((id & 255)))\\$(printf %03o $((id >> 8 & 255)))\\$(printf %03o $((id >> 16 & 255)))\\$(printf %03o $((id >> 24)))"
    done
}
: >"$T/ids"
: >"$T/bits"
for p in 0 1 2 3 4 5 6 7; do
    prompt $p >"$T/text"
    "$HONE" tokenize -m "$M" --no-special -f "$T/text" >"$T/prompt" 2>"$T/err" </dev/null || not_ok "tokenize, prompt $p" "$T/err"
    head=$(tr ' ' ',' <"$T/prompt")
    "$HONE" run -m "$M" --ids "$head" -n 64 --temp 0 --ignore-eos --json >"$T/out" 2>"$T/err" </dev/null || not_ok "run, prompt $p" "$T/err"
    made=$(sed 's/.*"tokens":\[\([0-9,]*\)\].*/\1/' "$T/out")
    le32 $(echo "$made" | tr ',' ' ') >>"$T/ids"
    "$HONE" logits -m "$M" --ids "$head,$made" --all >"$T/logits" 2>"$T/err" </dev/null || not_ok "logits, prompt $p" "$T/err"
    n_prompt=$(wc -w <"$T/prompt")
    row=$(($(wc -c <"$T/logits") / (n_prompt + 64)))
    for step in 0 1 16 63; do
        tail -c +$(((n_prompt - 1 + step) * row + 1)) "$T/logits" | head -c $row >>"$T/bits"
    done
done
t=$(sha256sum <"$T/ids" | cut -c 1-8)
l=$(sha256sum <"$T/bits" | cut -c 1-8)
digest() { # SHA-256 of a file, as bytes
    printf "$(for h in $(sha256sum <"$1" | cut -c 1-64 | sed 's/../& /g'); do printf '\\%03o' 0x$h; done)"
}
# the long prompt: 1100 ids of the fixed text, 8 ids generated behind them
head -c 13200 src/lab/quality/corpus_t1.txt >"$T/text"
"$HONE" tokenize -m "$M" --no-special -f "$T/text" 2>"$T/err" </dev/null | cut -d ' ' -f 1-1100 >"$T/prompt"
long=$(tr ' ' ',' <"$T/prompt")
"$HONE" run -m "$M" --ids "$long" -n 8 -c 1108 --temp 0 --ignore-eos --json >"$T/out" 2>"$T/err" </dev/null || not_ok "run, the long prompt" "$T/err"
made=$(sed 's/.*"tokens":\[\([0-9,]*\)\].*/\1/' "$T/out")
"$HONE" logits -m "$M" -c 1108 --ids "$long,$made" --all >"$T/logits" 2>"$T/err" </dev/null || not_ok "logits, the long prompt" "$T/err"
{
    for p in 0 1 2 3 4 5 6 7; do
        prompt $p >"$T/text"
        le32 $("$HONE" tokenize -m "$M" --no-special -f "$T/text" 2>/dev/null </dev/null)
    done
    digest "$T/ids"
    le32 $(cat "$T/prompt") $(echo "$made" | tr ',' ' ')
} >"$T/ids2"
{
    for at in 599 1099 1100 1101 1102 1103 1104 1105 1106 1107; do tail -c +$((at * row + 1)) "$T/logits" | head -c $row; done
    digest "$T/bits"
} >"$T/bits2"
t2=$(sha256sum <"$T/ids2" | cut -c 1-8)
l2=$(sha256sum <"$T/bits2" | cut -c 1-8)
run "$HONE" bench -m "$M" -p 8 -n 4 -r 1 --json
seen=$(sed -n 's/.*"quality":"\([^"]*\)".*/\1/p' "$T/out" | head -n 1)
[ "$(wc -c <"$T/ids")" -eq 2048 ] && ok "8 x 64 ids" || not_ok "8 x 64 ids"
says "the eight prompts by other means" "\"q1\":\"q1-$t-$l\"" "$T/out"
if [ "$seen" = "q2-$t2-$l2" ]; then ok "hone bench says $seen, and so do its parts"; else
    echo "# hone bench: $seen   by other means: q2-$t2-$l2"
    not_ok "the quality hash by other means" "$T/err"
fi
finish
