#!/bin/sh
# The first hours with hone, typed at a terminal as a newcomer would: a first answer, a first conversation, texts of
# one's own, a measurement of one's own, mistakes. Each scene looks for what helps to go on.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ]; then
    skip "the first hours" "$TINY is not here"
    finish
fi
if ! ${CC:-cc} -O1 -o "$T/pty" tests/e2e/pty.c -lutil 2>"$T/err" || ! "$T/pty" -t 60 /bin/true </dev/null >/dev/null 2>&1; then
    skip "the first hours" "no terminals, or no compiler for tests/e2e/pty.c"
    finish
fi
# typed ARG…: hone at a terminal of 80 columns; steps on stdin, the screen in $T/screen, status in $rc
typed() {
    timeout 600 "$T/pty" -t 300 -w "${columns:-80}" "$HONE" "$@" >"$T/raw" 2>"$T/err"
    rc=$?
    sed 's/\r/\n/g; s/\x1b\[[0-9;?]*[a-zA-Z]//g' "$T/raw" >"$T/screen"
}
ends() { # ends WHAT STATUS
    if [ "$rc" = "$2" ]; then ok "$1"; else not_ok "$1: exit $rc, expected $2" "$T/screen" "$T/err"; fi
}
sees() { says "$1" "$2" "$T/screen"; }
narrow() { # narrow WHAT COLUMNS: no line of the screen is longer
    if awk -v n="$2" '{ gsub(/[\200-\277]/, ""); if (length($0) > n) { print; bad = 1 } } END { exit bad }' "$T/screen" >"$T/long"; then
        ok "$1"
    else
        not_ok "$1" "$T/long"
    fi
}
mkdir "$T/home" && cp "$TINY" "$T/home/hone-tiny.gguf"
M=$T/home/hone-tiny.gguf

# 1. what is this?
typed </dev/null
ends "no command" 2
sees "the shortest way in is shown" 'hone MODEL.gguf \[PROMPT\]'
columns=60 typed run --help </dev/null
narrow "help folds to the terminal" 60
for c in '' run chat train bench lab 'lab ab' 'lab gate' synth doctor; do "$HONE" $c --help; done >"$T/screen"
narrow "help fits 80 columns" 80

# 2. a first answer
typed "$M" "Once upon a time" -n 8 --temp 0 </dev/null
ends "hone MODEL PROMPT" 0
sees "a story begins" '^Once upon a time, there was'

# 3. a first conversation
typed run -m "$M" --chat-template chatml -n 6 --temp 0 <<X
wait >
send Hello\n
wait >
send /bye\n
X
ends "hone run without a prompt is a conversation; /bye leaves" 0
sees "which is said" 'no prompt, so this is hone chat'
typed "$M" </dev/null
ends "a model that cannot chat" 3
sees "what to do" 'try: --chat-template chatml, or hone run'

# 4. as others are used
echo "One day" | "$HONE" run "$M" -n 4 --temp 0 >"$T/screen" 2>"$T/err"
sees "a pipe is the prompt" '^One day, '
typed run llama3.2 </dev/null
ends "a name in place of a file" 3
sees "a name that is not here" 'hone pull bartowski/Llama-3.2-3B-Instruct-GGUF'
typed run -m "$T/home/tiny.gguf" -p x </dev/null
sees "the files that are there are named" 'hone-tiny.gguf'
typed server </dev/null
sees "server" 'programs are answered by: hone serve'
typed run -m "$M" -ngl 99 -p x </dev/null
sees "-ngl" 'unknown option -ngl: hone runs on the CPU; leave it out'

# 5. a long prompt shows how far it is
awk 'BEGIN { for (i = 0; i < 30; i++) print "The little dog ran to the big tree and sat down." }' >"$T/long.txt"
typed run -m "$M" -f "$T/long.txt" -n 1 --cpu scalar -t 1 --chunk 32 <<X
wait tokens,
wait s left
X
ends "a long prompt" 0
sees "rate and what is left" 'prompt: [0-9]+ of [0-9]+ tokens, [0-9]+ tok/s, [0-9]+ s left'

# 6. texts of one's own: 300 little stories
awk 'BEGIN {
    split("Lily Tom Mia Ben Sam Zoe", name); split("blue red tiny big old", colour); split("dog cat bird fish duck frog", pet)
    split("kind happy brave quiet", way); srand(1)
    for (i = 0; i < 300; i++) {
        n = name[1 + int(6 * rand())]; p = pet[1 + int(6 * rand())]
        print n " had a " colour[1 + int(5 * rand())] " " p ". The " p " was " way[1 + int(4 * rand())] ". " n " loved the " p ".\n"
    }
}' >"$T/my.txt"
typed train -m "$M" --data "$T/my.txt" -o "$T/mine.gguf" --dry-run </dev/null
ends "what would it take?" 0
sees "300 stories, not one text" 'data +300 samples of 300 records'
sees "memory" 'memory .* MB to work in'
sees "time" 'time +about [0-9]'
sees "with the defaults it will not show, and what would" 'steps with a learning rate of 0.0001 will hardly move the model; try: --epochs [0-9]+ --lr 0.001 --targets all'
for row in "64 1" "90 0"; do # of seven matrices fewer steps show than of two
    "$HONE" train -m "$M" --data "$T/my.txt" -o "$T/mine.gguf" --dry-run --targets all --steps ${row% *} >"$T/out" 2>&1
    if [ "$(grep -c 'will hardly move' "$T/out")" = "${row#* }" ]; then ok "all targets, ${row% *} steps: told where it will not show"; else
        not_ok "all targets, ${row% *} steps" "$T/out"
    fi
done
typed train -m "$M" --data "$T/my.txt" -o "$T/mine.gguf" --steps 20 --batch 1 --lr 3e-3 --targets all </dev/null
ends "training" 0
sees "the next step" 'try: hone run -m .*hone-tiny.gguf --lora .*mine.gguf -p'
"$HONE" run "$M" "Lily had a" --temp 0 -n 24 >"$T/before" 2>"$T/err"
"$HONE" run "$M" "Lily had a" --temp 0 -n 24 --lora "$T/mine.gguf" >"$T/screen" 2>"$T/err"
sees "the new style is there" '^Lily had a [a-z]+ [a-z]+\. The [a-z]+ was [a-z]+\. Lily loved the [a-z]+\.'
if cmp -s "$T/before" "$T/screen"; then not_ok "and was not before" "$T/before"; else ok "and was not before"; fi

# 7. stopped on the way: what was learnt is there
typed train -m "$M" --data "$T/my.txt" -o "$T/part.gguf" --steps 100000 --batch 1 --seq 32 <<X
wait loss
send \cC
X
ends "Ctrl-C in a training" 130
sees "says what there is" 'interrupted after step [0-9]+ of 100000.*--resume goes on, and'
expect 0 "an adapter that works" "$HONE" run "$M" "Lily" --lora "$T/part.gguf" -n 2

# 8. how fast is it?
typed bench -m "$M" -r 1 </dev/null
ends "a measurement" 0
sees "of a prompt that the model was made for" '^config +prompt 448, generate 64'
if grep -q 'but the model was trained for' "$T/screen"; then not_ok "no word of a context too long" "$T/screen"; else ok "no word of a context too long"; fi

# 9. did it get faster? measured twice, kept, looked at
small="-p 16 -n 8 -r 2 --quality quick"
typed bench -m "$M" $small --file "$T/h" --title "as it was" </dev/null
ends "kept" 0
typed bench -m "$M" $small --file "$T/h" --title "with a change" </dev/null
sees "beside the last one" '^last +[0-9-]+T[0-9:]+Z, as it was'
sees "nothing is claimed of two samples" 'too few samples to say .*hone lab ab'
typed lab history "$T/h.jsonl" </dev/null
sees "before and now" 'decode_tok_s .*2 runs, before [0-9.]+, now [0-9.]+ tok/s'
typed lab report "$T/h.jsonl" --html "$T/h.html" </dev/null
ends "a page" 0
tr '\n' ' ' <"$T/h.html" >"$T/one-page"
says "which names both" 'with a change.*as it was' "$T/one-page"

# 10. mistakes
typed run -m "$M" -p a -p b </dev/null
ends "two prompts" 2
typed run -m "$M" -p a --state-out "$T/none/x" </dev/null
ends "an output that cannot be" 1
sees "before the work" 'the folder .*/none is not there'
if grep -q '^a' "$T/screen"; then not_ok "nothing was generated" "$T/screen"; else ok "nothing was generated"; fi
run "$HONE" run -m "$T/none.gguf" -p a --json
says "JSON stays JSON" '^\{"schema":"hone.error/1","code":3,"message":"' "$T/out"
typed train -m "$M" -d "$T/nothing.txt" -o "$T/x.gguf" </dev/null
sees "data that are not there" 'nothing.txt: cannot open'

# 11. out of the box: no model named, no download
if [ -f "$CHAT" ]; then
    typed chat --temp 0 <<X
wait >
send Hello\n
wait >
send What is your name?\n
wait >
send ?\n
wait /quit
send \cD
X
    ends "hone chat alone" 0
    sees "whose model it is" 'the bundled model, .*hone-chat.gguf'
    sees "a greeting" '^Hello[.!]'
    sees "its name" 'I am hone-chat'
    columns=40 typed chat --temp 0 -n 24 <<X
wait >
send Tell me a story about a dog.\n
wait cut after
send \cD
X
    sees "lines end between words" '^Once upon a time there was a small dog$'
    typed run --chat -p "Greta has a green umbrella. What colour is Greta's umbrella?" --temp 0 </dev/null
    sees "README's first example" '[Gg]reen'
else
    skip "hone chat out of the box" "$CHAT is not here"
fi

# 12. to read on
"$HONE" help --man >"$T/screen"
sees "the manual: exit codes" '^\.SH EXIT STATUS'
"$HONE" help --completion bash >"$T/hone.bash"
if command -v bash >/dev/null 2>&1; then
    # offered WORD…: what bash offers behind these words
    cat >"$T/offer.sh" <<'X'
hone() { "$HONE" "$@"; }
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_hone
printf '%s\n' "${COMPREPLY[@]}"
X
    export HONE
    bash "$T/offer.sh" "$T/hone.bash" hone synth llama-3.2 >"$T/screen" 2>"$T/err"
    sees "completion knows presets" '^llama-3.2-1b$'
    bash "$T/offer.sh" "$T/hone.bash" hone run --cpu s >"$T/screen" 2>"$T/err"
    sees "levels" '^scalar$'
    bash "$T/offer.sh" "$T/hone.bash" hone train --type Q4_K >"$T/screen" 2>"$T/err"
    sees "types" '^Q4_K_M$'
    bash "$T/offer.sh" "$T/hone.bash" hone run -m "$T/home/" >"$T/screen" 2>"$T/err"
    sees "models" '^.*/home/hone-tiny.gguf$'
    bash "$T/offer.sh" "$T/hone.bash" hone help ch >"$T/screen" 2>"$T/err"
    sees "commands" '^chat$'
else
    skip "completion" "no bash"
fi
finish
