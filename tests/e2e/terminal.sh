#!/bin/sh
# A terminal gets nothing that steers it: text of models, metadata, records, paths, prompts and errors, in every
# command. A pipe gets the bytes.
. tests/e2e/lib.sh
if ! ${CC:-cc} -O1 -o "$T/pty" tests/e2e/pty.c -lutil 2>"$T/err" ||
    ! ${CC:-cc} -O1 -o "$T/steers" tests/e2e/steers.c 2>"$T/err"; then
    skip "terminals" "no compiler for tests/e2e/pty.c"
    finish
fi
"$T/pty" -t 5 /bin/true </dev/null >/dev/null 2>&1
if [ "$?" -eq 77 ]; then
    skip "terminals" "no pseudo-terminal can be opened here"
    finish
fi
export XDG_STATE_HOME="$T/state" XDG_CACHE_HOME="$T/cache"
TERM=xterm
export TERM

# tty WHAT RC ARG…: hone on a terminal (both streams), all of whose output is clean
tty() {
    _what=$1 _want=$2
    shift 2
    timeout 60 "$T/pty" -t 30 "$HONE" "$@" >"$T/raw" 2>"$T/err" </dev/null
    rc=$?
    clean "$_what" "$_want"
}
clean() { # clean WHAT RC: the last run's
    if [ "$rc" -ne "$2" ]; then
        echo "# exit $rc, expected $2"
        not_ok "$1" "$T/raw" "$T/err"
    elif "$T/steers" "$T/raw" '\r\e[K' '\e[2m' '\e[0m' >"$T/why"; then
        ok "$1"
    else
        not_ok "$1" "$T/why" "$T/raw"
    fi
}
shows() { # shows WHAT TEXT: the last terminal had it, as it stands
    if grep -qF -- "$2" "$T/raw"; then ok "$1"; else
        echo "# expected: $2"
        not_ok "$1" "$T/raw"
    fi
}
has() { # has WHAT BYTES FILE
    if LC_ALL=C grep -qF -- "$2" "$3"; then ok "$1"; else not_ok "$1" "$3"; fi
}

ESC=$(printf '\033')
BEL=$(printf '\007')
CSI1=$(printf '\302\233') # C1 in UTF-8
RLO=$(printf '\342\200\256')
LRI=$(printf '\342\201\246')
BAD="$ESC]52;c;aGk=$BEL$ESC[31m${CSI1}5m$RLO$LRI$(printf '\330\234\342\200\250\177\b\233')!"
GOOD=$(printf 'na\303\257ve \344\275\240\345\245\275 \360\237\221\251\342\200\215\360\237\222\273 \331\205\330\261\330\255\330\250\330\247 \327\251\327\234\327\225\327\235 e\314\201 \342\235\244\357\270\217')
FLAG=$(printf '\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\245\363\240\201\256\363\240\201\247\363\240\201\277')

# ---- prompts and a model's own words --------------------------------------------------------------------------
# Pieces of the vocabulary, in GPT-2's letters for bytes, and the merges that make them, replaced by others of the
# same length: ESC and a word for " little" and " named", U+202E for " time" (its first two bytes for " ti"),
# U+009B for " in", a lone 0x9B and a word for " was"
L=$(printf '\304\240') # a space
X=$(printf '\304\233') # ESC
O=$(printf '\303\242') # the bytes of U+202E
V=$(printf '\304\242')
R=$(printf '\302\256')
C=$(printf '\303\202') # those of U+009B
N=$(printf '\304\275')
LC_ALL=C sed "s/${L}little/${X}mother/g; s/${L}litt le/$X mother/g; s/${L}named/${X}other/g; s/${L}n amed/$X other/g
    s/${L}time/$O$V$R/g; s/${L}ti me/$O$V $R/g; s/${L}ti/$O$V/g; s/${L}t i\([nr][ye]d*\)/$O$V \1/g; s/${L}t i/$O $V/g; s/${L} ti/$O $V/g
    s/${L}in/$C$N/g; s/$L in/$C $N/g; s/${L}was/${N}ing/g; s/${L}wa s/$N ing/g" "$TINY" >"$T/evil.gguf"
if [ "$(wc -c <"$TINY")" -ne "$(wc -c <"$T/evil.gguf")" ]; then not_ok "the hostile model is made"; fi
E=$T/evil.gguf
printf '%s' "$BAD" >"$T/bad"
tty "run: a prompt echoed" 0 run -m "$TINY" -p "$BAD" -n 2 --temp 0
shows "… shows what stood there" '\x1B]52;c;aGk=\x07\x1B[31m\x9B5m\u202E\u2066\u061C\u2028\x7F\x08\x9B!'
tty "run: a prompt from a file" 0 run -m "$TINY" -f "$T/bad" -n 2 --temp 0
tty "run: text that is no harm" 0 run -m "$TINY" -p "$GOOD $FLAG" -n 2 --temp 0
shows "… is as it was" "$GOOD $FLAG"
tty "run: half a character at the end" 0 run -m "$TINY" -p "$(printf 'x\342\200')" -n 0 --temp 0
run "$HONE" run -m "$TINY" -p "$BAD" -n 2 --temp 0
has "… piped: the bytes" "$BAD" "$T/out"
# each stream by itself: one on the terminal, the other in a file
cat >"$T/split.sh" <<'X'
to=$1
shift
if [ "$to" = out ]; then exec "$@" >"$SPLIT"; else exec "$@" 2>"$SPLIT"; fi
X
SPLIT=$T/split
export SPLIT
timeout 60 "$T/pty" -t 30 /bin/sh "$T/split.sh" out "$HONE" run -m "$TINY" -p "$BAD" -n 2 --temp 0 -v \
    </dev/null >"$T/raw" 2>"$T/err"
rc=$?
clean "stderr on a terminal, stdout in a file" 0
has "… which has the bytes" "$BAD" "$SPLIT"
timeout 60 "$T/pty" -t 30 /bin/sh "$T/split.sh" err "$HONE" run -m "$TINY" -p "$BAD" -n 2 --temp 0 -v \
    </dev/null >"$T/raw" 2>"$T/err"
rc=$?
clean "stdout on a terminal, stderr in a file" 0
has "… which has the figures" "prompt tokens" "$SPLIT"
PROMPT='Once upon a'
run "$HONE" run -m "$E" -p "$PROMPT" -n 20 --temp 0
has "a hostile model, piped: ESC" "$ESCmother" "$T/out"
has "… U+202E" "$RLO" "$T/out"
tty "run: a hostile model" 0 run -m "$E" -p "$PROMPT" -n 20 --temp 0
shows "… its ESC is text" '\x1Bmother'
shows "… its override is text" '\u202E'
tty "run --no-echo" 0 run -m "$E" -p "$PROMPT" -n 20 --temp 0 --no-echo
tty "run --json" 0 run -m "$E" -p "$PROMPT" -n 20 --temp 0 --json
shows "… is JSON all the same" '\u202e'
if grep -qF -e '\u202E' -e '\x' "$T/raw"; then not_ok "… and nothing else" "$T/raw"; else ok "… and nothing else"; fi
tty "run --chat" 0 run -m "$E" --chat --chat-template chatml -p "$BAD" -n 20 --temp 0
printf '%s\n' 'wait > ' 'send Once upon a\n' 'wait cut after' 'send /system \x41\n' 'wait next answer' 'send /nonsense\n' \
    'wait unknown' 'send \cd' >"$T/steps"
timeout 60 "$T/pty" -t 30 "$HONE" chat -m "$E" --chat-template chatml --temp 0 -n 20 <"$T/steps" >"$T/raw" 2>"$T/err"
rc=$?
# what libedit draws is the editor's; the answers are ours
sed -n '/^.*Once upon a/,/cut after/p' "$T/raw" | sed '1d' >"$T/answer"
if [ "$rc" -eq 0 ] && [ -s "$T/answer" ] && "$T/steers" "$T/answer" '\e[2m' '\e[0m' >"$T/why"; then
    ok "chat: a hostile model"
else
    not_ok "chat: a hostile model" "$T/why" "$T/raw"
fi

# ---- vocabularies ------------------------------------------------------------------------------------------------
ids=$("$HONE" tokenize -m "$TINY" -p "Once upon a time, there was a little boy named" 2>/dev/null | tr ' ' ,)
tty "detokenize" 0 detokenize -m "$E" --ids "$ids"
shows "… its ESC is text" '\x1Bmother'
run "$HONE" detokenize -m "$E" --ids "$ids"
has "… piped: the bytes" "$ESCmother" "$T/out"
tty "detokenize --json" 0 detokenize -m "$E" --ids "$ids" --json
tty "tokenize" 0 tokenize -m "$E" -p "$BAD" -v
tty "tokenize --json" 0 tokenize -m "$E" -p "$BAD" --json
printf '{{ messages[0].content }}' >"$T/t.jinja"
printf '{"messages":[{"role":"user","content":"\\u001b[31m\\u202e"}]}' >"$T/talk.json"
tty "template" 0 template -f "$T/t.jinja" --context "$T/talk.json"
printf '{{ raise_exception("%s") }}' "$BAD" >"$T/t.jinja"
tty "template: its exception" 1 template -f "$T/t.jinja" --context "$T/talk.json"
tty "logits: raw numbers are refused" 2 logits -m "$TINY" --ids 1
tty "logits --json" 0 logits -m "$TINY" --ids 1 --json
tty "inspect --f32: refused" 2 inspect "$TINY" --tensor output_norm.weight --f32

# ---- metadata -----------------------------------------------------------------------------------------------------
LC_ALL=C sed "s/hone-tiny/$ESC]0;x$BEL$RLO/; s/gpt-2/gp$RLO/" "$TINY" >"$T/meta.gguf"
tty "inspect" 0 inspect "$T/meta.gguf"
tty "inspect --json" 0 inspect "$T/meta.gguf" --json
tty "run: metadata it refuses" 3 run -m "$T/meta.gguf" -p x -n 1
LC_ALL=C sed "s/general.architecture/general$ESC[31m${RLO}ture/" "$TINY" >"$T/key.gguf"
tty "inspect: a key" 3 inspect "$T/key.gguf"
LC_ALL=C sed "s/blk.3.ffn_up/blk.$ESC[31m$RLO/" "$TINY" >"$T/name.gguf"
tty "run: a tensor's name" 3 run -m "$T/name.gguf" -p x -n 1
LC_ALL=C sed "0,/llama/s/llama/$ESC[5m$(printf '\233')/" "$TINY" >"$T/arch.gguf"
tty "run: an architecture" 3 run -m "$T/arch.gguf" -p x -n 1

# ---- records ------------------------------------------------------------------------------------------------------
J='\u001b]52;c;x\u0007\u001b[31m\u009b5m\u202e\u2066\u061c\u2028\u007f'
for i in 10 11 12 13 14 15 16 17 18 19; do
    [ $i -lt 15 ] && v=100.$i || v=50.$i
    printf '{"schema":"hone.bench/1","id":"tok.encode","record":"r%s","ts":"2026-01-01T00:%s:00Z","valid":true,' "$i$J" $i
    printf '"title":"%s","change":"%s","unit":"%s","better":"higher","git":{"commit":"a%s","dirty":false},' "$J" "$J" "MB/s$J" "$J"
    printf '"config":{"threads":1,"variant":"%s"},"env":{"hash":"e%s"},"model":{"path_name":"%s","fingerprint":"%s"},' "$J" "$J" "$J" "$J"
    printf '"samples":[%s],"stats":{"n":1,"median":%s,"ci95":null}}\n' $v $v
done >"$T/h.jsonl"
for f in "" --json; do
    timeout 60 "$T/pty" -t 30 "$HONE" lab history "$T/h.jsonl" $f >"$T/raw" 2>"$T/err" </dev/null
    rc=$?
    clean "lab history $f" 0
    shows "… shows the record" 'tok.encode'
    timeout 60 "$T/pty" -t 30 "$HONE" lab report "$T/h.jsonl" $f >"$T/raw" 2>"$T/err" </dev/null
    rc=$?
    clean "lab report $f" 0
done
for f in --html --md --csv; do
    timeout 60 "$T/pty" -t 30 "$HONE" lab report "$T/h.jsonl" $f - >"$T/raw" 2>"$T/err" </dev/null
    rc=$?
    clean "lab report $f -" 0
    shows "… shows the record" 'tok.encode'
done

# ---- paths and options -----------------------------------------------------------------------------------------------
D="$T/d$BAD"
mkdir "$D"
cp "$TINY" "$D/m.gguf"
tty "a model's path: run" 0 run -m "$D/m.gguf" -p x -n 1 --temp 0
tty "… inspect" 0 inspect "$D/m.gguf"
tty "… pack" 0 pack -m "$D/m.gguf"
tty "… inspect of the packed file" 0 inspect "$D/m.gguf.hpack"
tty "… pack again" 0 pack -m "$D/m.gguf"
tty "… convert" 3 convert "$D/m.gguf" -o "$D/x.gguf"
tty "… merge" 0 merge -m "$D/m.gguf" --lora models/hone-tiny-rhyme.lora.gguf -o "$D/merged.gguf"
tty "… perplexity" 0 perplexity -m "$D/m.gguf" -f README.md -c 64 --chunks 1
tty "… lab report" 1 lab report "$D/none.jsonl"
tty "… lab history" 1 lab history "$D/none.jsonl"
for c in run chat inspect pack logits tokenize detokenize template perplexity bench merge train convert; do
    timeout 60 "$T/pty" -t 30 "$HONE" $c -m "$D/none.gguf" "$D/none" -p "$BAD" --bad"$BAD" >"$T/raw" 2>"$T/err" </dev/null
    rc=$?
    clean "$c: a bad option" 2
done
tty "a bad command" 2 "no$BAD"
tty "a bad command of the laboratory" 2 lab "no$BAD"
tty "help of it" 2 help "no$BAD"
tty "no such model" 3 run -m "$D/none.gguf" -p x
tty "a bad number" 2 run -m "$TINY" -n "1$BAD" -p x
HONE_CPU=$BAD
export HONE_CPU
tty "a bad level" 2 run -m "$TINY" -p x -n 1
tty "env" 0 env
tty "env --json" 0 env --json
unset HONE_CPU
HONE_LOG=1
export HONE_LOG
tty "the library's log" 0 run -m "$D/m.gguf" -p x -n 1 --temp 0
XDG_STATE_HOME=$T/unknown # where nothing is known of the model yet
tty "a session of a model that is hashed first" 0 run -m "$TINY" --packed off -p x -n 1 --temp 0 --state-out "$T/s"
shows "what takes the time is said" "hashing the content"
# ---- models from elsewhere, and a server ---------------------------------------------------------------------------
mkdir "$T/shelf" "$T/none"
S=$T/shelf/x$BAD.gguf
LC_ALL=C sed "s/<tools>/$ESC[31m$CSI1/g" "$CHAT" >"$S"
if [ "$(wc -c <"$CHAT")" -ne "$(wc -c <"$S")" ]; then not_ok "the hostile template is made"; fi
HONE_MODELS=$T/shelf
export HONE_MODELS
tty "list" 0 list
shows "… has the name" 'x\x1b]52;c;aGk='
tty "list --paths" 0 list --paths
tty "list --json" 0 list --json
run "$HONE" list --paths
has "… piped: the bytes" "$BAD" "$T/out"
tty "show" 0 show "$S"
tty "show --json" 0 show "$S" --json
tty "show --template" 0 show "$S" --template
shows "… its ESC is text" '\x1B[31m'
tty "show: what is nowhere" 3 show "no$BAD"
tty "rm: what is nowhere" 3 rm --yes "no$BAD"
tty "rm: a file" 0 rm --dry-run --yes "$S"
tty "pull: no name" 2 pull "x$BAD"
tty "pull: a file of a repository" 2 pull "o/n/x$BAD.gguf" --retries 1
tty "embed" 2 embed -m "$S" -p x
tty "convert" 3 convert "$T/none" -o "$T/o$BAD.gguf"
tty "serve: a folder" 3 serve --models-dir "$T/no$BAD" --port 0
tty "serve: two of a name" 2 serve -m "a$BAD=$S" -m "a$BAD=$S" --port 0
tty "an adapter's scale" 2 run -m "$TINY" --lora "$S:x$BAD" -p x
tty "no command" 2 "zz$BAD"
tty "no command of the laboratory" 2 lab "zz$BAD"
tty "no option" 2 run "--zz$BAD"
tty "no id" 2 bench "e2e.g$BAD"
unset HONE_MODELS

printf '%s\n' 'wait measuring peaks' 'send \cC' >"$T/steps"
timeout 60 "$T/pty" -t 30 "$HONE" lab peaks <"$T/steps" >"$T/raw" 2>"$T/err"
rc=$?
clean "Ctrl-C is 6 everywhere in the laboratory" 6

finish
