#!/bin/sh
# Completion, asked as its shells ask it: what bash, fish and zsh offer for a line. Without them it is skipped. (More of
# bash: cli_options.sh and first_hours.sh.)
. tests/e2e/lib.sh
mkdir -p "$T/bin" "$T/functions" "$T/here/sub" "$T/home"
ln -s "$HONE" "$T/bin/hone"
PATH=$T/bin:$PATH HOME=$T/home
export PATH HOME
: >"$T/here/a.gguf"
: >"$T/here/b.txt"
: >"$T/here/two words.gguf"
: >"$T/here/a[1].txt"
: >"$T/here/a1.txt"
mkdir "$T/here/models"
unset HONE_MODELS HF_HUB_CACHE HF_HOME HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME XDG_DATA_HOME OLLAMA_MODELS
echo x >"$T/here/models/shelf-model.gguf"
echo x >"$T/here/models/\$(touch evil).gguf"

# LINE | words that are offered | words that are not
cat >"$T/lines" <<'LINES'
hone |run chat lab help|baseline --model Q4_0
hone r|run|chat
hone run --te|--temp --temperature|--top-k
hone run -m |a.gguf shelf-model two_words.gguf|evil two words.gguf
hone run --file t|two_words.gguf|two words.gguf
hone run --file a|a[1].txt a1.txt|two_words.gguf
hone rm |shelf-model|a.gguf run
hone show |a.gguf shelf-model|evil
hone list |shelf-model|a.gguf evil
hone pull llama3|llama3.2 llama3.2-1b|a.gguf shelf-model
hone pull --type Q4|Q4_0 Q4_K_M|Q8_0
hone serve --lora |a.gguf shelf-model|evil
hone serve --model |a.gguf shelf-model|evil
hone serve --metrics-compat |vllm|a.gguf
hone embed --pooling |mean cls last|a.gguf
hone embed -m |a.gguf shelf-model|evil
hone run a.gguf --se|--seed|--steps
hone run --kv |f16 f32 q8_0|a.gguf
hone run --cpu s|scalar|avx2
hone chat --chat-template l|llama2 llama3|chatml
hone synth gemma|gemma-3-1b|a.gguf
hone synth --type Q4|Q4_0 Q4_K_M|Q8_0
hone train --targets a|all attn|q
hone bench e2e.g|e2e.gen|e2e
hone bench s|serve|run ab
hone bench --cl||--clients
hone bench serve --c|--clients|--columns --cpu --chunk
hone bench e2e --qu|--quality|
hone lab |ab baseline quality|run kl
hone lab baseline |save list rm compare|b.txt
hone lab quality |hash kl ppl|ab
hone lab quality k|kl|ppl
hone lab quality kl --ch|--chunk --chunks|--seed
hone help ru|run|chat
hone help run --m|--man|--model --min-p
hone inspect |a.gguf|
LINES

# said FILE: "LINE …" and below it what was offered; judged line by line
said() {
    _shell=$1
    while IFS='|' read -r line yes no; do
        # _ for a blank in a word; fish and zsh put a backslash before it, or do not
        sed -n "/^LINE $line\$/,/^LINE /p" "$2" | sed '/^LINE /d; s/\\//g; s/ /_/g' >"$T/offered"
        _missing=
        for w in $yes; do grep -qxF -- "$w" "$T/offered" || _missing="$_missing $w"; done
        for w in $no; do grep -qxF -- "$w" "$T/offered" && _missing="$_missing not:$w"; done
        [ -z "$_missing" ] && ok "$_shell: $line" || not_ok "$_shell: $line:$_missing" "$T/offered"
    done <"$T/lines"
}

cut -d'|' -f1 "$T/lines" >"$T/asked"

# ---- bash ----
if ! command -v bash >/dev/null 2>&1; then
    skip "completion in bash" "bash is not installed"
else
    expect 0 "completion for bash" "$HONE" help --completion bash
    cp "$T/out" "$T/hone.bash"
    cat >"$T/try.bash" <<'BASH'
source "$1"
while IFS= read -r line; do
    echo "LINE $line"
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _hone
    printf '%s\n' "${COMPREPLY[@]}"
done <"$2"
BASH
    (cd "$T/here" && bash --norc "$T/try.bash" "$T/hone.bash" "$T/asked") >"$T/bash" 2>"$T/err"
    [ -s "$T/err" ] && not_ok "bash takes the script without a word" "$T/err" || ok "bash takes the script without a word"
    said bash "$T/bash"
fi

# ---- fish ----
if ! command -v fish >/dev/null 2>&1; then
    skip "completion in fish" "fish is not installed"
else
    expect 0 "completion for fish" "$HONE" help --completion fish
    cp "$T/out" "$T/hone.fish"
    cat >"$T/try.fish" <<'FISH'
source $argv[1]
while read -l line
    echo "LINE $line"
    complete -C "$line" | string replace -r '\t.*' ''
end <$argv[2]
FISH
    (cd "$T/here" && fish --no-config "$T/try.fish" "$T/hone.fish" "$T/asked") >"$T/fish" 2>"$T/err"
    [ -s "$T/err" ] && not_ok "fish takes the script without a word" "$T/err" || ok "fish takes the script without a word"
    said fish "$T/fish"
fi

# ---- zsh: the script is found in $fpath, as installed; the first question counts, too ----
if ! command -v zsh >/dev/null 2>&1; then
    skip "completion in zsh" "zsh is not installed"
else
    expect 0 "completion for zsh" "$HONE" help --completion zsh
    cp "$T/out" "$T/functions/_hone"
    printf 'fpath=(%s $fpath)\nhits=%s\n' "$T/functions" "$T/hits" >"$T/setup.zsh"
    cat >>"$T/setup.zsh" <<'ZSH'
autoload -Uz compinit
compinit -u -D
PS1= PS2= RPS1=
compadd() { # -O, -A and -D only ask
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
    local -a __offered
    builtin compadd -A __offered "$@"
    local __word
    for __word in $__offered; do print -r -- "HIT:$__word" >>$hits; done
    builtin compadd "$@"
}
ask() {
    zle complete-it
    print -r -- DONE >>$hits
    zle kill-whole-line
}
zle -C complete-it list-choices _main_complete
zle -N ask
bindkey '^X' ask
print -r -- READY >>$hits
ZSH
    here=$(pwd)
    set --
    while IFS='|' read -r line yes no; do set -- "$@" "$line"; done <"$T/lines"
    (cd "$T/here" && zsh -f "$here/tests/e2e/completion.zsh" "$T/setup.zsh" "$T/hits" "$@") >"$T/zsh" 2>"$T/err"
    if [ $? -eq 77 ]; then skip "completion in zsh" "it has no terminal of its own here"; else said zsh "$T/zsh"; fi
fi
finish
