#!/bin/sh
# Mistakes that people type: each names what was wrong and what to do next, with one exit code in every command, on
# stderr, and as JSON where JSON was asked for. A row is: exit code | words of the error | command line.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ] || [ ! -f "$CHAT" ]; then
    skip "mistakes" "$TINY or $CHAT is not here"
    finish
fi
case $HONE in /*) ;; *) HONE=$(pwd)/$HONE ;; esac
mkdir -p "$T/here/hf" "$T/here/empty" "$T/here/models" "$T/home"
cp "$TINY" "$T/here/m.gguf"
cp "$CHAT" "$T/here/c.gguf"
cp models/hone-tiny-rhyme.lora.gguf "$T/here/a.gguf"
echo '{"architectures":["LlamaForCausalLM"],"model_type":"llama"}' >"$T/here/hf/config.json"
printf 'A story.\n\nAnother one.\n' >"$T/here/notes.txt"
head -c 100 /dev/zero >"$T/here/zeros"
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME OLLAMA_MODELS HONE_MODELS HONE_API_KEY
HOME=$T/home
export HOME
cd "$T/here" || exit 1

cat >"$T/rows" <<'ROWS'
# files that are not there: of text 1, of models 3, and each with the option that names them
1|nofile: cannot open.*try: -f with the name of a file that is there, or -p|run -m m.gguf -f nofile
1|try: -f with the name of a file that is there, or -p|tokenize -m m.gguf -f nofile
1|try: -f with the name of a file that is there, or -p|embed -m m.gguf -f nofile --pooling mean
1|try: -f with the name of a file that is there$|perplexity -m m.gguf -f nofile
1|try: --tools with the name of a file that is there$|run -m c.gguf --chat --tools nofile -p x
1|try: --json-schema with the name of a file that is there$|run -m m.gguf --json-schema nofile -p x
1|try: --grammar with the name of a file that is there$|run -m m.gguf --grammar nofile -p x
1|try: --chat-template @ with the name|run -m m.gguf --chat --chat-template @nofile -p x
1|try: --chat-template @ with the name|chat -m m.gguf --chat-template @nofile
1|try: --system @ with the name|chat -m c.gguf --system @nofile
1|try: --context with the name|template -m c.gguf --context nofile
1|try: --file with the name|template -f nofile --context hf/config.json
1|try: --data with the name|train -m m.gguf -d nofile -o x.gguf
1|try: --val-data with the name|train -m m.gguf -d notes.txt --val-data nofile -o x.gguf
3|nofile.gguf: cannot open.*try: a model that is there: a.gguf|run -m nofile.gguf -p x
3|no such file, and no model of this name|run -m nofile -p x
3|no such file, and no model of this name|pack -m nofile
3|no such file, and no model of this name|merge -m nofile --lora a.gguf -o x.gguf
3|no such file, and no model of this name|inspect nofile
3|no such file, and no model of this name|show nofile
3|nofile: cannot open.*try: hone pull owner/repo|convert nofile -o x.gguf
3|is a Hugging Face checkpoint \(LlamaForCausalLM\).*hone convert hf -o|run -m hf -p x
3|is a Hugging Face checkpoint|chat -m hf
3|is a Hugging Face checkpoint|bench -m hf
3|is a Hugging Face checkpoint|embed -m hf -p x
3|empty: is a folder without config.json|convert empty -o x.gguf
3|has no model.safetensors|convert hf -o x.gguf
# what is in them
2|--tools m.gguf: not JSON|run -m c.gguf --chat --tools m.gguf -p x
2|--chat-vars: not JSON|run -m c.gguf --chat --chat-vars { -p x
2|--json-schema m.gguf: JSON schema|run -m m.gguf --json-schema m.gguf -p x
2|--ids: token id 99999999 \(item 2\) is not in the vocabulary of m.gguf|embed -m m.gguf --pooling mean --ids 1,99999999
2|--ids: token id 99999999 \(item 2\) is not in the vocabulary of m.gguf|logits -m m.gguf --ids 1,99999999
2|chat template 'nosuch' is neither.*chatml|run -m m.gguf --chat --chat-template nosuch -p x
2|chat template 'nosuch' is neither.*chatml|chat -m m.gguf --chat-template nosuch
2|chat template 'nosuch' is neither.*chatml|train -m m.gguf -d notes.txt --chat-template nosuch -o x.gguf
2|--lora a.gguf:x: the scale is 'x', expected a number|run -m m.gguf --lora a.gguf:x -p x
# outputs are tried before the work
1|no/x: cannot create: the folder no is not there.*try: mkdir -p no|run -m m.gguf -p x --state-out no/x
1|the folder no is not there|merge -m m.gguf --lora a.gguf -o no/x.gguf
1|the folder no is not there|pack -m m.gguf -o no/x
1|the folder no is not there|train -m m.gguf -d notes.txt -o no/x.gguf
1|the folder no is not there|convert hf -o no/x.gguf
1|the folder no/no is not there|convert a.gguf --base m.gguf -o no/no
1|the folder no is not there|lab profile -m m.gguf --trace no/t.json
1|the folder no is not there|lab quality hash -m m.gguf --save no/q
# twice
2|-p is given twice, with 'a' and with 'b'|run -m m.gguf -p a -p b
2|-m is given twice|bench -m m.gguf -m c.gguf
2|--baseline is given twice|bench -m m.gguf --baseline a --baseline b
2|--type is given twice|pull o/r --type Q4_K_M --type Q8_0
# words of other programs, and words near to a word
2|unknown command 'dowload'; did you mean download\? models come with: hone pull NAME|dowload
2|unknown command 'quant': a type is chosen where a model is made, hone convert|quant
2|unknown command 'llama-quantize': a type is chosen|llama-quantize
2|unknown command 'ppl': .*hone perplexity|ppl
2|unknown command 'merge-lora': .*hone merge|merge-lora
2|unknown command 'pul'; did you mean pull\?|pul
2|unknown command 'serv'; did you mean serve\?|serv
2|unknown laboratory command 'compare': .*hone lab diff.*hone lab --help|lab compare
2|unknown laboratory command 'bench': it is one of its own, hone bench|lab bench
2|unknown laboratory command 'nosuch'; expected hash, kl, ppl|lab quality nosuch
2|unknown option --modl-path; did you mean --model-path\? .*hone convert|bench --modl-path x
2|unknown option --quantize: .*hone convert FOLDER --type|bench -m m.gguf --quantize int8
2|unknown option --min: .*--require|bench -m m.gguf --min 5
2|unknown option --batch-size: .*--batch N|train -m m.gguf -d notes.txt --batch-size 4 -o x.gguf
2|unknown option --format: .*--json|list --format json
2|unknown option --pytorch-no-half: no other engine|bench -m m.gguf --pytorch-no-half
2|--profile looks at a prompt and its answer; at a training: hone lab profile .*--train DATA|bench train.lora -m m.gguf --profile
2|--profile looks at a prompt and its answer, not into tok.encode|bench tok.encode -m m.gguf --profile
2|unknown option --full: .*--suite full|bench --full
2|unknown option -o: .*--format text, csv or md|bench -m m.gguf -o csv
2|unknown option --kl-divergence: .*hone lab quality kl|perplexity -m m.gguf --kl-divergence
2|-p: '8-1' is not a whole number|bench -m m.gguf -p 8-1
2|nothing is called 'e2e.gne'; did you mean e2e.gen\?|bench e2e.gne -m m.gguf
2|nothing is called '1000'.*--counts 100,1000|bench disp.call --counts 100 1000
2|cmp.pytorch is not in this build|bench cmp.pytorch
2|moe.kernel is not in this build: needs rows of its own|bench moe.kernel -m m.gguf
2|e2e.glm47.throughput is not in this build: needs a row of its own \(hone bench e2e.gen|bench e2e.glm47.throughput -m m.gguf
2|did you mean llama-3.2-1b|synth llama-3.2-1c -o x.gguf
# the commands of models and servers
2|missing argument: pull needs NAME|pull
2|missing argument: rm needs NAME|rm
2|missing argument: show needs NAME|show
2|models.tiny.gguf is a file.*--yes|rm models/tiny.gguf
2|--api-key-file FILE, or --insecure-no-key|serve -m m.gguf --host 0.0.0.0 --port 0
2|-port: 99999 is out of range|serve -m m.gguf --port 99999
2|two models are named a|serve -m a=m.gguf -m a=c.gguf --port 0
2|http://203.0.113.9:80: not encrypted; expected https|pull http://203.0.113.9/x.gguf
3|no model of this name on this machine; `hone pull o/r`|pull --offline o/r
3|nofile: cannot open.*try: --models-file with the name of a file that is there$|serve --models-file nofile --port 0
3|nodir: No such file or directory; expected a folder of GGUF files|serve --models-dir nodir --port 0
1|--slot-dir nodir: No such file|serve -m m.gguf --slot-dir nodir --port 0
2|does not say how embeddings are pooled.*hone embed --help|embed -m m.gguf -p x
2|no text; expected -p TEXT or -f FILE|embed -m m.gguf --pooling mean
2|no output; expected -o FILE.gguf, or -o FOLDER|convert hf
ROWS
cp m.gguf models/tiny.gguf

grep -v '^#' "$T/rows" >"$T/list"
while IFS='|' read -r code words line; do
    # shellcheck disable=SC2086
    run "$HONE" $line
    tr '\n' ' ' <"$T/err" >"$T/one" # "hone: …" and "hone: try: …" in one
    sed 's/ $//' "$T/one" >"$T/said"
    if [ "$rc" -eq "$code" ] && grep -qE -- "$words" "$T/said"; then ok "$line"; else
        echo "# exit $rc, expected $code and: $words"
        not_ok "$line" "$T/err"
    fi
    # shellcheck disable=SC2086
    run "$HONE" $line --json
    if grep -qE "^\{\"schema\":\"hone.error/1\",\"code\":$code,\"message\":\"[^\"]" "$T/out" && [ "$(wc -l <"$T/out")" -eq 1 ]; then ok "… as JSON"; else
        not_ok "$line --json" "$T/out" "$T/err"
    fi
done <"$T/list"
[ -e no ] && not_ok "no folder was made on the way" || ok "no folder was made on the way"

# every command: an option that nobody has, as JSON too; and standard output that nothing can be written to
"$HONE" help --words commands >"$T/commands"
"$HONE" help --json | tr '{' '\n' | sed -n 's/^"name":"\(lab [a-z ]*\)","summary.*/\1/p' >>"$T/commands"
[ "$(wc -l <"$T/commands")" -ge 40 ] && ok "there are commands" || not_ok "there are commands" "$T/commands"
while IFS= read -r c; do
    # shellcheck disable=SC2086
    run "$HONE" $c --nosuch --json
    if [ "$rc" -eq 2 ] && grep -qE '^\{"schema":"hone.error/1","code":2,"message":"unknown option .?--nosuch' "$T/out"; then ok "$c: an error as JSON"; else
        not_ok "$c --nosuch --json: exit $rc" "$T/out" "$T/err"
    fi
    # shellcheck disable=SC2086
    "$HONE" $c --help >"$T/out" 2>"$T/err" </dev/null
    rc=$?
    if [ "$rc" -eq 0 ] && awk '{ gsub(/[\200-\277]/, ""); if (length($0) > 80) bad = 1 } END { exit bad }' "$T/out"; then ok "$c: help within 80 columns"; else
        not_ok "$c --help: exit $rc, or a line of more than 80 columns" "$T/out"
    fi
done <"$T/commands"
if [ -w /dev/full ]; then
    for line in "list --json" "list --paths" "show m.gguf" "show m.gguf --json" "embed -m m.gguf -p x --pooling mean" \
        "embed -m m.gguf -p x --pooling mean --json" "rm --dry-run --yes ./m.gguf --json" "tokenize -m m.gguf -p x" "synth --list" "env" "lab list"; do
        # shellcheck disable=SC2086
        "$HONE" $line >/dev/full 2>"$T/err" </dev/null
        rc=$?
        if [ "$rc" -eq 1 ] && grep -q 'standard output: No space left' "$T/err"; then ok "full disk: $line"; else not_ok "full disk: $line: exit $rc" "$T/err"; fi
        # shellcheck disable=SC2086
        "$HONE" $line >&- 2>"$T/err" </dev/null
        rc=$?
        if [ "$rc" -eq 1 ] && [ -s "$T/err" ]; then ok "closed: $line"; else not_ok "closed: $line: exit $rc" "$T/err"; fi
    done
else
    skip "a full disk" "no /dev/full"
fi

# nothing that is secret is shown
HONE_API_KEY=hush HF_TOKEN=hf_hush run "$HONE" env
if grep -q hush "$T/out"; then not_ok "hone env keeps secrets" "$T/out"; else ok "hone env keeps secrets"; fi
says "… and says that they are there" '^HONE_API_KEY +\(set\)' "$T/out"
HF_TOKEN=hf_hush run "$HONE" env --json
says "… in JSON, too" '"HF_TOKEN":"\(set\)"' "$T/out"
finish
