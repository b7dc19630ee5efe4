#!/bin/sh
# No command writes what it reads, by whatever name: ./x, a hard link, a symbolic link. A table, so that a new command is
# a line. Then how outputs that are links, devices or folders are met, and what a program that was ended leaves.
. tests/e2e/lib.sh
set -f # patterns of the table are the commands' own

if [ ! -f "$TINY" ]; then
    skip "files apart" "$TINY is not here"
    finish
fi
TOP=$(pwd)
case $HONE in /*) ;; *) HONE=$TOP/$HONE ;; esac
cp "$TINY" "$T/model.gguf"
cp "$TINY" "$T/base.gguf"
cd "$T" || exit 1
mkdir src peft dir sub

# Inputs need not be good: what is refused is refused before any of them is read.
for f in prompt.txt state.bin adapter.gguf packed.hpack template.jinja ids.txt tokenizer.bin shape.json data.jsonl val.jsonl h.jsonl \
    answers.bin ref.bin text.txt other.gguf h.md base.json model.gguf.hpack set-00001-of-00002.gguf set-00002-of-00002.gguf \
    src/model.safetensors src/config.json peft/adapter_config.json peft/adapter_model.safetensors; do
    echo "this is $f" >"$f"
done
mkdir benchmarks
echo "this is a history" >benchmarks/from.jsonl

# refuses INPUT SUFFIX COMMAND…: where OUT in the command stands for a name of INPUT, less SUFFIX
refuses() {
    _in=$1 _suffix=$2
    shift 2
    cp "$_in" before
    for _form in ./ hard soft; do
        case $_form in
        ./) _out=./$_in ;;
        hard) _out=sub/hard$_suffix && ln -f "$_in" "$_out" ;;
        soft) _out=sub/soft$_suffix && ln -sf "../$_in" "$_out" ;;
        esac
        # a name that must end as INPUT does, and does not: only links can have it
        case $_out in *"$_suffix") ;; *) continue ;; esac
        _name=${_out%"$_suffix"}
        timeout 60 "$HONE" $(printf '%s\n' "$*" | sed "s|OUT|$_name|g") >out 2>err </dev/null
        _rc=$?
        if [ "$_rc" = 2 ] && grep -q 'nothing was touched; expected another name' err && cmp -s "$_in" before; then
            ok "$* ($_form$_in)"
        else
            echo "# exit $_rc, expected 2"
            cmp -s "$_in" before || echo "# $_in was changed"
            not_ok "$* ($_form$_in)" err
        fi
        find sub ! -type d -exec rm -f {} +
        cmp -s "$_in" before || cp before "$_in"
    done
}
#       INPUT                   SUFFIX COMMAND
while read -r input suffix command; do
    case $input in '' | '#') continue ;; esac
    [ "$suffix" = - ] && suffix=
    refuses "$input" "$suffix" $command
done <<'TABLE'
model.gguf              -      run -m model.gguf -p x -n 1 --state-out OUT
prompt.txt              -      run -m model.gguf -f prompt.txt -n 1 --state-out OUT
state.bin               -      run -m model.gguf -p x -n 1 --state-in state.bin --state-out OUT
adapter.gguf            -      run -m model.gguf -p x -n 1 --lora adapter.gguf --state-out OUT
adapter.gguf            -      run -m model.gguf -p x -n 1 --lora adapter.gguf:0.5 --state-out OUT
peft/adapter_config.json -     run -m model.gguf -p x -n 1 --lora peft --state-out OUT
packed.hpack            -      run -m model.gguf -p x -n 1 --packed packed.hpack --state-out OUT
model.gguf.hpack        -      run -m model.gguf -p x -n 1 --state-out OUT
template.jinja          -      run -m model.gguf -p x -n 1 --chat --chat-template @template.jinja --state-out OUT
ids.txt                 -      run -m model.gguf --ids @ids.txt -n 1 --state-out OUT
set-00001-of-00002.gguf -      run -m set-00001-of-00002.gguf -p x -n 1 --state-out OUT
set-00002-of-00002.gguf -      run -m set-00001-of-00002.gguf -p x -n 1 --state-out OUT
model.gguf              -      logits -m model.gguf -p x --state-out OUT
prompt.txt              -      logits -m model.gguf -f prompt.txt --state-out OUT
ids.txt                 -      logits -m model.gguf --ids @ids.txt --state-out OUT
state.bin               -      logits -m model.gguf -p x --state-in state.bin --state-out OUT
model.gguf              -      merge -m model.gguf --lora adapter.gguf -o OUT
set-00002-of-00002.gguf -      merge -m set-00001-of-00002.gguf --lora adapter.gguf -o OUT
adapter.gguf            -      merge -m model.gguf --lora adapter.gguf -o OUT
other.gguf              -      merge -m model.gguf --lora adapter.gguf --lora other.gguf:2 -o OUT
peft/adapter_model.safetensors - merge -m model.gguf --lora peft -o OUT
model.gguf              -      pack -m model.gguf -o OUT
set-00002-of-00002.gguf -      pack -m set-00001-of-00002.gguf -o OUT
shape.json              -      synth --config shape.json -o OUT
model.gguf              -      convert model.gguf -o OUT
tokenizer.bin           -      convert other.gguf --tokenizer tokenizer.bin -o OUT
src/model.safetensors   -      convert src -o OUT
src/config.json         -      convert src/ --type F16 -o OUT
adapter.gguf            .gguf  convert adapter.gguf --base model.gguf -o OUT.gguf
model.gguf              .gguf  convert adapter.gguf --base model.gguf -o OUT.gguf
model.gguf              -      train -m model.gguf --data data.jsonl -o OUT
data.jsonl              -      train -m model.gguf --data data.jsonl -o OUT
data.jsonl              .jsonl train -m model.gguf --data data.jsonl -o OUT
val.jsonl               -      train -m model.gguf --data data.jsonl --val-data val.jsonl -o OUT
data.jsonl              -      train -m model.gguf --data val.jsonl --data data.jsonl -o x.gguf --log OUT
template.jinja          -      train -m model.gguf --data data.jsonl --chat-template @template.jinja -o OUT
shape.json              -      train --from-config shape.json --data data.jsonl -o OUT
model.gguf              -      train --from-config shape.json --tokenizer model.gguf --data data.jsonl -o OUT
h.jsonl                 -      lab report h.jsonl --html OUT
h.jsonl                 -      lab report h.jsonl --md OUT
h.jsonl                 -      lab report h.jsonl --csv OUT
h.jsonl                 -      lab report h.jsonl --json-out OUT
h.md                    -      lab report h.jsonl h.md --html x.html --csv OUT
model.gguf              -      lab profile -m model.gguf --trace OUT
model.gguf              -      lab profile -m model.gguf --folded OUT
model.gguf              -      lab quality hash -m model.gguf --save OUT
answers.bin             -      lab quality hash answers.bin --save OUT
ref.bin                 -      lab quality hash -m model.gguf --against ref.bin --save OUT
model.gguf              -      lab quality kl model.gguf --ref-kv q8_0 --save OUT
other.gguf              -      lab quality kl model.gguf other.gguf --save OUT
text.txt                -      lab quality kl model.gguf other.gguf -f text.txt --save OUT
packed.hpack            -      lab quality kl model.gguf --ref-packed packed.hpack --save OUT
h.jsonl                 .jsonl bench -m h.jsonl --file OUT
h.md                    .md    bench -m h.md --file OUT
h.jsonl                 .jsonl bench kern.gemv.* -m h.jsonl --file OUT
h.jsonl                 .jsonl perplexity -m model.gguf -f h.jsonl --file OUT
h.jsonl                 .jsonl lab quality kl model.gguf h.jsonl --file OUT
h.jsonl                 .jsonl lab ab this this -m h.jsonl --file OUT
h.jsonl                 .jsonl lab gate --baseline x -m h.jsonl --file OUT
TABLE

# 2. names that the program makes
refused() { # refused WHAT INPUT COMMAND…
    _what=$1 _in=$2
    shift 2
    cp "$_in" before
    expect 2 "$_what" "$@"
    says "… and says it" 'nothing was touched'
    same "… and leaves it" "$_in" before
}
ln base.json dir/base.json
refused "a baseline that is the model" base.json "$HONE" lab baseline save base -m base.json --dir dir --force
ln -f benchmarks/from.jsonl dir/base.json
refused "a baseline that is the history it is made from" benchmarks/from.jsonl "$HONE" lab baseline save base --from from --dir dir --force
refused "HONE_PACKED" packed.hpack env HONE_PACKED=packed.hpack "$HONE" run -m model.gguf -p x -n 1 --state-out ./packed.hpack
ln -f data.jsonl peft/adapter_config.json
refused "a file in the PEFT folder" data.jsonl "$HONE" train -m model.gguf --data data.jsonl -o x.gguf --peft peft
refused "the PEFT folder itself" peft/adapter_model.safetensors "$HONE" convert peft --base model.gguf -o ./peft/
expect 2 "two outputs of one name" "$HONE" lab report h.jsonl --html x.html --md ./x.html
expect 2 "two outputs of one name, not there yet" "$HONE" lab profile -m model.gguf --trace sub/../t --folded t
"$HONE" lab report h.jsonl --html h.html >h.html 2>err
[ $? = 2 ] && ok "standard output goes to the output" || not_ok "standard output goes to the output" err
expect 2 "an output that is -" "$HONE" synth llama-3.2-1b -o -
says "… is no file" 'cannot go to standard output'

# 3. outputs that are links, devices, folders
mkdir real
echo HONESES1 >real/state # of an older hone
chmod 600 real/state
ln -s real/state link
ln -s nowhere dangling
ln -s circle circle
R="$HONE run -m model.gguf -p Once -n 2 --temp 0 -t 1"
expect 0 "a link is written through" $R --state-out link
[ -L link ] && [ "$(readlink link)" = real/state ] && ok "… and stays" || not_ok "… and stays"
[ "$(head -c 7 real/state)" = HONESES ] && ok "… what it leads to is new" || not_ok "… what it leads to is new"
[ -n "$(find real/state -perm 600)" ] && ok "… and as private as it was" || not_ok "… and as private as it was"
# by links of our own: a build that is wrong, run by root, would replace /dev/stdout for everybody
ln -s /dev/null null
ln -s /proc/self/fd/1 standard
for o in dangling circle null standard /dev/fd/1 dir; do
    expect 1 "--state-out $o" $R --state-out $o
    expect 1 "--html $o" "$HONE" lab report h.jsonl --html $o
    expect 1 "-o $o" "$HONE" synth llama-3.2-1b -o $o
done
[ -e nowhere ] && not_ok "a link to nothing makes nothing" || ok "a link to nothing makes nothing"
expect 1 "a history that is a link to nothing" sh -c "ln -s nowhere l.jsonl; $HONE bench disp.call --file ./l"

# 4. programs that are ended: killed ones leave a file that the next one removes, others none
leftovers() { find . -name '*hone-tmp*' | wc -l | tr -d ' '; }
for sig in HUP KILL TERM; do
    "$HONE" synth llama-3.2-1b --type F32 -o big.gguf >out 2>err &
    pid=$!
    i=0
    while [ "$(leftovers)" = 0 ] && kill -0 $pid 2>/dev/null && [ $i -lt 3000 ]; do i=$((i + 1)); sleep 0.01; done
    if [ "$(leftovers)" = 0 ]; then
        wait $pid
        grep -q 'too full' err && skip "SIG$sig" "no room for a large file" || not_ok "SIG$sig: no file was begun" err
        continue
    fi
    kill -$sig $pid
    wait $pid 2>/dev/null
    rc=$?
    case $sig in HUP) want="129 0" ;; KILL) want="137 1" ;; *) want="6 0" ;; esac
    if [ "$rc $(leftovers)" = "$want" ] && [ ! -e big.gguf ]; then ok "SIG$sig: exit and leftovers $want"
    else echo "# exit and leftovers $rc $(leftovers), expected $want"; not_ok "SIG$sig" err; fi
    [ $sig = KILL ] || continue
    expect 1 "the next writer of that name, which fails" sh -c "ulimit -f 10; exec $HONE synth llama-3.2-1b --type F32 -o big.gguf"
    [ "$(leftovers)" = 0 ] && ok "… has removed it" || not_ok "… has removed it"
done
cd "$TOP" || exit 1
finish
