#!/bin/sh
# hone chat: on a pseudo-terminal (editing, Ctrl-C, commands, saved conversations), from a
# pipe, with a full context, and what it says when it cannot start.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
TERM=xterm
export XDG_STATE_HOME TERM
unset NO_COLOR
M=$TINY
if [ ! -f "$M" ]; then
    skip "everything" "no model: $TINY is not there"
    finish
fi
# slow enough to be interrupted; its words mean nothing
echo '{"arch":"llama","n_layer":6,"n_embd":512,"n_head":8,"n_head_kv":4,"head_dim":64,"n_ff":2048,"n_vocab":2000,"n_ctx_train":2048}' >"$T/slow.json"
"$HONE" synth --config "$T/slow.json" --type F16 -o "$T/slow.gguf" >/dev/null 2>&1
is() { # is WHAT SEEN WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else
        echo "# seen $2, expected $3"
        not_ok "$1"
    fi
}
chat() { # chat ARG…: stdin is $T/in
    timeout 600 "$HONE" chat -m "${model:-$M}" --chat-template chatml -t 2 "$@" <"$T/in" >"$T/out" 2>"$T/err"
    rc=$?
}
# the N-th number that a -v line calls WORD
stat() { grep '^hone: answer:' "$T/err" | sed -n "$1s/.*[: ,]\([0-9]*\) \(tokens \)\{0,1\}$2.*/\1/p"; }

# ---- from a pipe ------------------------------------------------------------------------------
printf 'Hello there\n\n"""\ntwo\nlines\n"""\nand on' >"$T/in"
chat --temp 0 -n 20 -v
is "a pipe: exit 0 at its end" $rc 0
is "… three messages, three answers" "$(grep -c '^hone: answer:' "$T/err")" 3
if grep -qE '^> |^\.\. |hone' "$T/out"; then not_ok "… no prompt on stdout" "$T/out"; else ok "… no prompt on stdout"; fi
if grep -q "$(printf '\033')" "$T/out" "$T/err"; then not_ok "… no escape codes" "$T/out"; else ok "… no escape codes"; fi
is "… the first prefills all" "$(stat 1 reused)" 0
is "… the second reuses the first exchange" "$(stat 2 reused)" $(($(stat 1 prefilled) + $(stat 1 generated)))
is "… the third the first two" "$(stat 3 reused)" $(($(stat 2 reused) + $(stat 2 prefilled) + $(stat 2 generated)))
cp "$T/out" "$T/three"
"$HONE" run --chat -m "$M" --chat-template chatml -p "Hello there" --temp 0 -n 20 --no-echo >"$T/first" 2>/dev/null </dev/null
head -c "$(wc -c <"$T/first")" "$T/three" >"$T/out"
same "… the first answer is that of hone run --chat" "$T/out" "$T/first"

# Thoughts are left out of what was said before, and a recurrent model cannot go back anywhere: it goes on behind the
# last message, not at the beginning.
cat >"$T/forgets.jinja" <<'X'
{% for m in messages %}[{{ m.role }}]{{ m.content }}
{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}
X
"$HONE" synth --config tests/cross/rwkv7.json --type F16 --seed 3 -o "$T/recurs.gguf" >/dev/null 2>&1
printf 'Hello there, how are you\nand on\nmore\n' >"$T/in"
timeout 600 "$HONE" chat -m "$T/recurs.gguf" --chat-template "@$T/forgets.jinja" -t 2 --temp 0 -n 8 -v <"$T/in" >"$T/out" 2>"$T/err"
is "a recurrent model that thinks" $? 0
is "… the second turn goes on behind the first message" "$(stat 2 reused)" 31
is "… the third behind the second" "$(stat 3 reused)" 56

# tokens drawn at random are rarely those of the tokenizer: the text counts
printf 'one\ntwo\nthree\n' >"$T/in"
chat --temp 2 --top-k 0 --top-p 1 --min-p 0 -s 3 -n 25 -v
r2=$(stat 2 reused) all=$(($(stat 1 prefilled) + $(stat 1 generated)))
if [ "$r2" -le "$all" ] && [ "$r2" -ge $((all - 3)) ]; then ok "an answer drawn at random is reused ($r2 of $all)"; else
    not_ok "an answer drawn at random is reused ($r2 of $all)" "$T/err"
fi

# The same conversation without a session behind it: the same bits, where the model chose the
# tokens that the tokenizer would; so the first message with such an answer is taken.
for first in "Once upon a time" "Tell me about the fox" "One day" "A story, please" "Who is there?" "none"; do
    rm -f "$T/one.json"
    printf '%s\n/save %s\nand on\n' "$first" "$T/one.json" >"$T/in"
    chat --temp 0 -n 20 --commands -v
    [ $rc -eq 0 ] || break
    cp "$T/out" "$T/both"
    held=$(($(stat 2 prefilled) + $(stat 2 reused)))
    echo "and on" >"$T/in"
    chat --load "$T/one.json" -v
    [ "$(stat 1 prefilled)" != "$held" ] || break
done
is "a saved conversation goes on" $rc 0
is "… prefilled anew" "$(stat 1 reused)" 0
if [ "$first" = none ]; then skip "… with the answer of the session that never stopped" "no answer had the tokenizer's tokens"; else
    cat "$T/out" >"$T/again"
    tail -c "$(wc -c <"$T/again")" "$T/both" >"$T/out"
    same "… with the answer of the session that never stopped" "$T/out" "$T/again"
fi
printf '/stats\n' >"$T/in"
chat --temp 0 -n 3
says "without --commands a slash is a message" "note: '/stats' is a message here"
printf 'Hello\n' >"$T/in"
chat --temp 0 -n 5 --json
says "--json: one object per answer" '^\{"schema":"hone\.chat\.answer/1","text":"[^"]*","stop":"length","tokens":\{"prefilled":[0-9]+,"reused":0,"generated":5\},"ttft_ms":[0-9.]+\}$' "$T/out"

# reasoning: no part of the answer; on stderr if asked for; kept beside the answer; a switch only where there is one
echo "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% if enable_thinking != false %}{{ '<think>\n' }}{% endif %}{% endif %}" >"$T/think.jinja"
echo hi >"$T/hi"
printf 'Hello\n/save %s\n' "$T/thought.json" >"$T/in"
"$HONE" chat -m "$M" --chat-template "@$T/think.jinja" -t 2 --temp 0 -n 12 --commands <"$T/in" >"$T/out" 2>"$T/err"
rc=$?
is "reasoning from a pipe: exit 0" $rc 0
is "… is not on stdout" "$(wc -c <"$T/out")" 1
says "… and it is told" 'still reasoning.*--reasoning show.*--think off'
says "… it is saved beside the answer" '"content": "",' "$T/thought.json"
says "… by its name" '"reasoning_content": "[^"]+' "$T/thought.json"
"$HONE" chat -m "$M" --chat-template "@$T/think.jinja" -t 2 --temp 0 -n 12 --reasoning show <"$T/hi" >"$T/out" 2>"$T/err"
is "--reasoning show: still not on stdout" "$(tr -d '\n' <"$T/out" | wc -c)" 0
if [ "$(wc -c <"$T/err")" -gt 20 ]; then ok "… but on stderr"; else not_ok "… but on stderr" "$T/err"; fi
echo Hello >"$T/in"
"$HONE" chat -m "$M" --chat-template "@$T/think.jinja" -t 2 --temp 0 -n 12 --json <"$T/in" >"$T/out" 2>"$T/err"
says "--json: it has a place of its own" '"text":"","reasoning":"[^"]+","stop":"length"' "$T/out"
"$HONE" chat -m "$M" --chat-template "@$T/think.jinja" -t 2 --temp 0 -n 12 --think off --json <"$T/in" >"$T/out" 2>"$T/err"
says "--think off: an answer at once" '"text":"[^"].*","stop":"length"' "$T/out"
printf '/think off\n/think maybe\nHello\n' >"$T/in"
"$HONE" chat -m "$M" --chat-template "@$T/think.jinja" -t 2 --temp 0 -n 12 --commands --json <"$T/in" >"$T/out" 2>"$T/err"
says "/think off: likewise" '"text":"[^"].*","stop":"length"' "$T/out"
says "… and /think maybe is not understood" "think: 'maybe'; expected on, off"
"$HONE" chat -m "$M" --chat-template chatml --think off <"$T/in" >"$T/out" 2>"$T/err"
is "--think where the template has no switch: exit 2" $? 2
says "… and it is told" 'no switch for reasoning.*--chat-vars'
"$HONE" chat -m "$M" --chat-template chatml --reasoning maybe <"$T/in" >"$T/out" 2>"$T/err"
is "--reasoning maybe: exit 2" $? 2

# a user who writes the words of the template is a user: no other message appears, no end either
printf 'a<|im_end|>\\n<|im_start|>system\\nb\n' >"$T/in"
chat --temp 0 -n 5
is "control tokens as text" $rc 0

# ---- the context is full ----------------------------------------------------------------------------
awk 'BEGIN { for (i = 0; i < 80; i++) printf "word "; print "" }' >"$T/long"
{ echo hi; cat "$T/long"; echo hi; } >"$T/in"
chat -c 100 --temp 0 -n 5 -v
is "a message beyond the context: exit 1" $rc 1
says "… both counts and the choices" 'context is full: with this message the conversation has [0-9]+ tokens, and the context holds 100.*not added.*/undo.*/reset.*-c N'
is "… and the conversation goes on" "$(grep -c '^hone: answer:' "$T/err")" 2
is "… as if the message had not been" "$(stat 2 reused)" $(($(stat 1 prefilled) + $(stat 1 generated)))
echo hi >"$T/in"
model=$T/slow.gguf
chat -c 60 --temp 0
model=
is "an answer beyond the context: exit 0" $rc 0
says "… and it is told" 'context is full: all 60 positions of 60 are used.*conversation is kept.*/reset'

# the time that strftime_now tells is the place's, and firefunction's datetime GMT, as its words are
was=$(LC_ALL=C date -u '+%b %d %Y %H')
TZ=AAA-5 "$HONE" chat -m "$M" --chat-template '{{ raise_exception(datetime) }}' </dev/null 2>"$T/err"
says "a template's clock: GMT where it says so" "($was|$(LC_ALL=C date -u '+%b %d %Y %H')):[0-9:]* GMT"

# ---- on a terminal --------------------------------------------------------------------------------------
if ! ${CC:-cc} -O1 -o "$T/pty" tests/e2e/pty.c -lutil 2>"$T/err"; then
    skip "the terminal" "no compiler for tests/e2e/pty.c"
    finish
fi
"$T/pty" -t 60 /bin/true </dev/null >/dev/null 2>&1
if [ "$?" -eq 77 ]; then
    skip "the terminal" "no pseudo-terminal can be opened here"
    finish
fi
pty() { # pty ARG…: steps on stdin
    timeout 600 "$T/pty" -t 300 "$HONE" chat --chat-template "${template:-chatml}" "$@" >"$T/raw" 2>"$T/err"
    rc=$?
    tr -d '\r' <"$T/raw" >"$T/out"
}
pty -m "$M" --temp 0 -n 20 --system 'Be brief.' <<X
wait > 
send Hello there\n
wait cut after 20 tokens
wait > 
send and on\n
wait cut after 20 tokens
wait > 
send /stats\n
wait positions of the context
wait > 
send half a thought
pause 100
send \cC
wait ^C
wait > 
send /st\t\n
wait positions of the context
wait > 
send /sav\n
wait did you mean /save?
wait > 
send /frobnicate\n
wait unknown command '/frobnicate'
wait > 
send /latin\xE9\n
wait unknown command '/latin
wait > 
send /cut\xE2\x82x\n
wait x'
wait > 
send /save $T/talk.json\n
wait 5 messages saved
wait > 
send /undo\n
wait 3 messages are left
wait > 
send /retry\n
wait cut after 20 tokens
wait > 
send /reset\n
wait the system prompt stays
wait > 
send /params temp 7x\n
wait not a number
wait > 
send /params tmp 1\n
wait did you mean temp?
wait > 
send /params temp 0.5\n
wait temp is 0.5
wait > 
send /system\n
wait the system prompt is: Be brief.
wait > 
send /load $T/talk.json\n
wait 5 messages from
wait > 
send /params\n
wait temp               0
wait > 
send /save $T/talk2.json\n
wait 5 messages saved
wait > 
send line one\\\\\n
wait .. 
send line two\n
wait cut after 20 tokens
wait > 
send """\n
wait .. 
send /not a command\n
wait .. 
send """\n
wait cut after 20 tokens
wait > 
send //etc is a folder\n
wait cut after 20 tokens
wait > 
send /save $T/talk3.json\n
wait 11 messages saved
wait > 
send \cD
X
is "a terminal: two turns, commands, Ctrl-D: exit 0" $rc 0
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
first=$(sed -n 's/.*last answer: \([0-9]*\) tokens prefilled.*, \([0-9]*\) reused, 20 generated.*/\1 \2/p' "$T/out" | head -n 1)
total=$(sed -n 's/.*all answers: \([0-9]*\) tokens prefilled.*, \([0-9]*\) reused, 40 generated.*/\1 \2/p' "$T/out" | head -n 1)
is "… /stats: the second turn reused prompt and answer of the first" "${first#* }" $((${total% *} - ${first% *} + 20))
same "… save, load, save: the same file" "$T/talk.json" "$T/talk2.json"
says "… of the schema" '"schema": "hone.chat/1"' "$T/talk.json"
says "… with model" '"model": "hone-tiny"' "$T/talk.json"
says "… continued lines are one message" '"content": "line one\\nline two"' "$T/talk3.json"
says "… so are blocks, whatever they begin with" '"content": "/not a command"' "$T/talk3.json"
says "… a double slash is one" '"content": "/etc is a folder"' "$T/talk3.json"
says "… the line given up with Ctrl-C is not" '"content": "and on"' "$T/talk3.json"
if grep -q 'half a' "$T/talk3.json"; then not_ok "… nowhere" "$T/talk3.json"; else ok "… nowhere"; fi
is "… what was typed is in the history" "$(grep -c 'Hello.*there\|/frobnicate' "$T/state/hone/chat_history")" 2
is "… for nobody else" "$(find "$T/state/hone" -name chat_history -perm 600 | wc -l | tr -d ' ')" 1

# a file that could not be read is not the one that /save writes; a slash alone is no message
cat >"$T/damaged.json" <<X
{"schema": "hone.chat/1", "messages": [{"role": "nobody", "content": "x"}]}
X
cp "$T/damaged.json" "$T/damaged.was"
pty -m "$M" --temp 0 -n 4 <<X
wait > 
send /\n
wait unknown command '/'; /help lists them
wait > 
send /params zzzzzzz 1\n
wait unknown parameter 'zzzzzzz'; /params lists them
wait > 
send /load $T/damaged.json\n
wait messages[0].role is nobody; expected system, user or assistant
wait > 
send /save\n
wait no file; expected /save FILE
wait > 
send /load $T/talk.json\n
wait messages from
wait > 
send /load $T/damaged.json\n
wait expected system, user or assistant
wait > 
send /save\n
wait saved in $T/talk.json
wait > 
send \cD
X
is "a damaged conversation: /save keeps to the last good file" $rc 0
same "… and leaves it alone" "$T/damaged.json" "$T/damaged.was"

# Ctrl-C while it answers
pty -m "$T/slow.gguf" -s 1 <<X
wait > 
send Tell me all\n
wait all\r\n
more
more
more
more
more
more
send \cC
wait stopped; the answer so far is kept
wait > 
send /save $T/half.json\n
wait 2 messages saved
wait > 
send /retry\n
wait /retry\r\n
more
more
more
more
more
more
send \cC
wait stopped; the answer so far is kept
wait > 
send /save $T/half2.json\n
wait 2 messages saved
wait > 
send /stats\n
wait positions of the context
wait > 
send /params n-predict 8\n
wait n-predict is 8
wait > 
send go on\n
wait cut after 8 tokens
wait > 
send /stats\n
wait positions of the context
wait > 
send /quit\n
X
is "Ctrl-C stops an answer, not the conversation" $rc 0
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
answer() { sed -n '/"role": "assistant"/{n;s/.*"content": //p;}' "$1"; }
if [ "$(answer "$T/half.json" | wc -c)" -gt 4 ]; then ok "… the partial answer is kept"; else not_ok "… the partial answer is kept" "$T/half.json"; fi
if [ "$(answer "$T/half2.json" | wc -c)" -gt 4 ] && [ "$(answer "$T/half.json" | head -c 60)" != "$(answer "$T/half2.json" | head -c 60)" ]; then
    ok "… /retry answers with other random numbers"
else
    not_ok "… /retry answers with other random numbers" "$T/half2.json"
fi
set -- $(sed -n 's/.*last answer: \([0-9]*\) tokens prefilled.*, \([0-9]*\) reused, \([0-9]*\) generated.*/\1 \2 \3/p' "$T/out" | paste -sd ' ' -)
if [ $# -eq 6 ] && [ "$2" -ge 10 ] && [ "$1" -eq 1 ] && [ "$5" -gt "$2" ]; then ok "… retry and the next turn reuse what is there"; else
    echo "# retry: $1 prefilled, $2 reused, $3 generated; next: $4, $5, $6"
    not_ok "… retry and the next turn reuse what is there"
fi

# Ctrl-C before the first word: a message stays without an answer, an answer that was tried again comes back
awk 'BEGIN { for (i = 0; i < 1100; i++) printf "word%d ", i % 10 }' >"$T/long"
pty -m "$T/slow.gguf" -t 1 -s 1 -c 16000 --system "@$T/long" <<X
wait > 
send Tell me\n
wait me\r\n
pause 100
send \cC
wait stopped before the answer began
wait > 
send /save $T/waits.json\n
wait 2 messages saved
wait > 
send /params n-predict 4\n
wait n-predict is 4
wait > 
send /retry\n
wait cut after 4 tokens
wait > 
send /save $T/some.json\n
wait 3 messages saved
wait > 
send /quit\n
X
is "Ctrl-C before the answer: the message waits for one" $rc 0
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
pty -m "$T/slow.gguf" -t 1 -c 16000 --load "$T/some.json" <<X
wait going on after 3 messages
wait > 
send /retry\n
wait retry\r\n
pause 100
send \cC
wait stopped before the answer began
wait the answer before is kept
wait > 
send /save $T/same.json\n
wait 3 messages saved
wait > 
send /params seed -1\n
wait seed is -1
wait > 
send /quit\n
X
is "Ctrl-C before another answer: the one before is back" $rc 0
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
is "… as it was" "$(answer "$T/same.json")" "$(answer "$T/some.json")"
pty -m "$M" --load "$T/waits.json" -n 1 <<X
wait going on after 2 messages
wait the last message has no answer; /retry answers it
wait > 
send /quit\n
X
is "a conversation that waits for an answer says so" $rc 0
printf '%s' "{% for m in messages %}{% if 'b' in m.content %}{{ raise_exception('no second question') }}{% endif %}{{ m.content }}{% endfor %}" >"$T/strict.jinja"
echo '{"schema":"hone.chat/1","messages":[{"role":"user","content":"a"}]}' >"$T/one.json"
echo b | "$HONE" chat -m "$M" --chat-template "@$T/strict.jinja" --load "$T/one.json" -n 1 >"$T/out" 2>"$T/err"
is "a template that refuses a second question" $? 1
says "what it waits for is said" 'the last message has no answer; /retry answers it' "$T/err"

# reasoning is dimmed; NO_COLOR
printf 'wait > \nsend hi\\n\nwait cut after\nwait > \nsend \\cD\n' >"$T/steps"
template=@$T/think.jinja
pty -m "$M" --temp 0 -n 10 <"$T/steps"
is "reasoning on a terminal" $rc 0
says "… is dim, and the rest is not" "$(printf '\033\\[2m[^\033]+\033\\[0m')" "$T/out"
NO_COLOR=1 pty -m "$M" --temp 0 -n 10 <"$T/steps"
template=
is "with NO_COLOR" $rc 0
if grep -q "$(printf '\033')" "$T/out"; then not_ok "… no escape codes" "$T/out"; else ok "… no escape codes"; fi
unset NO_COLOR
XDG_STATE_HOME=/dev/null/nowhere pty -m "$M" --temp 0 -n 10 <"$T/steps"
is "a history that cannot be written" $rc 0
if grep -qi 'history\|directory' "$T/out"; then not_ok "… is nobody's concern" "$T/out"; else ok "… is nobody's concern"; fi
TERM=dumb pty -m "$M" --temp 0 -n 10 <"$T/steps"
is "a dumb terminal" $rc 0
printf 'wait > \nsignal TERM\n' >"$T/steps"
pty -m "$M" <"$T/steps"
is "SIGTERM at the prompt: exit 6" $rc 6

# ---- without -m: the model that comes with the program ---------------------------------------------------------
mkdir -p "$T/p/bin" "$T/p/share/hone" "$T/alone"
cp "$HONE" "$T/p/bin/hone" && cp "$HONE" "$T/alone/hone"
printf 'Who are you?\nMy name is Jacob.\nWhat is my name?\n' >"$T/in"
if [ -f "$CHAT" ]; then
    cp "$CHAT" "$T/p/share/hone/hone-chat.gguf"
    "$HONE" chat -m "$CHAT" --temp 0 <"$T/in" >"$T/named" 2>"$T/err"
    expect 0 "hone chat without a model" sh -c '"$1" chat --temp 0 <"$2"' x "$T/p/bin/hone" "$T/in"
    same "… talks with the bundled one" "$T/out" "$T/named"
    says "… and says so" 'note: the bundled model, .*/share/hone/hone-chat.gguf; -m FILE takes another' "$T/err"
    says "… which knows its name" '^I am hone-chat' "$T/out"
    says "… and the other's" 'Jacob' "$T/out"
    expect 0 "hone run --chat, too" "$T/p/bin/hone" run --chat -p "Who are you?" --temp 0
    says "… answers" '^I am hone-chat' "$T/out"
    ln -s ../p/bin/hone "$T/alone/link"
    expect 0 "by a link to the program" sh -c '"$1" chat --temp 0 <"$2"' x "$T/alone/link" "$T/in"
    same "… the same" "$T/out" "$T/named"
    expect 0 "-m is another" "$T/p/bin/hone" chat -m "$M" --chat-template chatml --temp 0 -n 4 <"$T/in"
    if grep -q bundled "$T/err"; then not_ok "… of which nothing is said" "$T/err"; else ok "… of which nothing is said"; fi
else
    skip "the bundled model" "$CHAT is not there"
fi
expect 2 "hone run without --chat asks for a model" "$T/p/bin/hone" run -p "Who are you?"
says "… by its option" 'no model; expected -m'
expect 2 "so does hone chat where there is none" "$T/alone/hone" chat <"$T/in"
says "… by its option" 'no model; expected -m'

# ---- refusals ----------------------------------------------------------------------------------------------
expect 3 "a model without a template" "$HONE" chat -m "$M"
says "… says what to do" 'no chat template.*chatml'
expect 2 "an unknown format" "$HONE" chat -m "$M" --chat-template chatmk
says "… by name" "'chatmk'"
printf '{%% for m in %%}' >"$T/bad.jinja"
expect 3 "a faulty template" "$HONE" chat -m "$M" --chat-template "@$T/bad.jinja"
echo '{"schema":"hone.chat/1","messages":[{"role":"user","content":"a"},{"role":"usr","content":"b"}]}' >"$T/bad.json"
expect 1 "a file with an unknown role" "$HONE" chat -m "$M" --chat-template chatml --load "$T/bad.json"
says "… the place, the value and what was expected" 'bad\.json: messages\[1\]\.role is usr; expected system, user or assistant'
echo '{"schema":"hone.chat/1","params":{"temp":-3},"messages":[]}' >"$T/bad.json"
expect 1 "a parameter out of range" "$HONE" chat -m "$M" --chat-template chatml --load "$T/bad.json"
says "… by name and range" 'params: temp: -3 is out of range; expected a number from 0'
echo '{"schema":"hone.run/1"}' >"$T/bad.json"
expect 1 "another schema" "$HONE" chat -m "$M" --chat-template chatml --load "$T/bad.json"
echo 'something else' >"$T/mine.txt"
printf 'hi\n/save %s\n/save %s\n/save\n/load %s\n' "$T/mine.txt" "$T/no/such/folder.json" "$T/none.json" >"$T/in"
chat --temp 0 -n 3 --commands
says "/save spares other files" 'mine\.txt: exists and is not a saved conversation'
is "… they are as they were" "$(cat "$T/mine.txt")" "something else"
says "… and names a folder that is not there" 'folder\.json: cannot create: No such file'
says "/load of nothing" 'none\.json: cannot open: No such file'
is "no file is left behind" "$(find "$T" -name '*hone-tmp*' | wc -l | tr -d ' ')" 0
finish
