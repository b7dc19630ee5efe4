#!/bin/sh
# Options as every command understands them; what the table prints about itself. Needs
# no model: each refusal comes before a file is opened.
. tests/e2e/lib.sh

M=$T/absent.gguf
bad() { # bad WHAT PATTERN ARGUMENTS…
    what=$1 pattern=$2
    shift 2
    expect 2 "$what" "$HONE" "$@"
    says "… saying so" "$pattern"
}
bad "a misspelled option" 'unknown option --tepm; did you mean --temp\?' run --tepm 0
says "… and where to look" 'hone run --help'
bad "a value stuck to a short option" 'write -n 5' run -n5
bad "an option of another command" 'unknown option --all' run --all
bad "a value for a flag" '--json takes no value' run --json=1
bad "no value" '-n needs a value' run -m "$M" -n
bad "an empty number" "-n: '' is not a whole number" run -m "$M" -n ''
bad "a fraction for a whole number" "-n: '1\.5'" run -m "$M" -n 1.5
bad "trailing garbage" "--temp: '0\.8x' is not a number" run -m "$M" --temp 0.8x
bad "NaN" "--temp: 'nan' is not a number" run -m "$M" --temp nan
bad "infinity" "--top-p: 'inf' is not a number" run -m "$M" --top-p=inf
bad "hexadecimal" "'0x10'" run -m "$M" -s 0x10
bad "below the range" '--top-p: -0\.1 is out of range; expected a number from 0 to 1' run -m "$M" --top-p -0.1
bad "above the range" '--min-p: 1\.01 is out of range' run -m "$M" --min-p 1.01
bad "too large for 32 bits" 'out of range' run -m "$M" --top-k 4294967296
bad "too large for 64 bits" 'out of range' run -m "$M" -s 18446744073709551616
bad "no threads" '-t: 0 is out of range' run -m "$M" -t 0
bad "an unknown word" "--kv: unknown value 'f8'; expected one of f16\|f32\|q8_0" run -m "$M" --kv f8
bad "two prompts" '-p and -f contradict' run -m "$M" -p a -f b
bad "text and ids" '--prompt and --ids contradict' logits -m "$M" --prompt=a --ids 1
bad "a prompt of two words" "unexpected argument 'you'; run takes .MODEL. .PROMPT.; text of several words stands between quotes" run -m "$M" hello you
bad "a stray word" "unexpected argument 'hello'" env hello
bad "two texts" "-p is given twice, with 'a' and with 'b'" run -m "$M" -p a -p b
# what other programs call it
bad "-hf" 'unknown option -hf: models come with hone pull' run -m "$M" -hf a/b
bad "-fa" 'unknown option -fa: attention' run -m "$M" -fa on
bad "-ngl" 'unknown option -ngl: hone runs on the CPU' bench -m "$M" -ngl 99
bad "-ctk" 'unknown option -ctk: .*--kv' run -m "$M" -p x -ctk q8_0
bad "-cnv" 'unknown option -cnv: .*hone chat' run -m "$M" -cnv
bad "server" "unknown command 'server': programs are answered by: hone serve" server
bad "download" "unknown command 'download': models come with: hone pull" download llama3.2
bad "quantize" "unknown command 'quantize': .*--type" quantize
bad "a command far from all" "unknown command 'zzzserve'\$" zzzserve
# an error is JSON where JSON was asked for
for words in "run --json --oops" "run -m $M -p x --json" "bench --json nothing" "lab ab --json" "server --json" "inspect $M --json" \
    "train -m $M --data x.txt -o y.gguf --json" "perplexity -m $M -f $M --json" "doctor --json --oops"; do
    run "$HONE" $words
    says "${words%% *}: an error as JSON" "^\{\"schema\":\"hone.error/1\",\"code\":$rc,\"message\":\"[^\"]" "$T/out"
    [ "$rc" -ne 0 ] && [ -s "$T/err" ] && ok "… beside the words" || not_ok "… beside the words" "$T/err"
done
bad "an option after --" "unexpected argument '--json'" version -- --json
bad "an unknown level" 'expected scalar, [a-z0-9_, ]* or [a-z0-9_]*' run -m "$M" -p x --cpu sse9
expect 2 "a bad HONE_THREADS" env HONE_THREADS=two "$HONE" run -m "$M" -p x
says "… saying so" "HONE_THREADS: 'two' is not a whole number"

# last one wins, both spellings
expect 0 "an option given twice" "$HONE" help --completion zsh --completion=bash
says "… the last one wins" 'complete -o filenames -F _hone hone' "$T/out"

expect 0 "hone help" "$HONE" help
cp "$T/out" "$T/a"
expect 0 "hone -h" "$HONE" -h
same "… is the same" "$T/out" "$T/a"
expect 0 "hone help run" "$HONE" help run
cp "$T/out" "$T/a"
expect 0 "hone run --help" "$HONE" run --help
same "… is the same" "$T/out" "$T/a"
for o in -m -p -f -n -c -t -s --seed --temp --top-k --top-p --min-p --repeat-penalty --presence-penalty --frequency-penalty \
    --repeat-last-n --chunk -ub --kv --json --ids --no-bos --ignore-eos --no-special --pre --state-in --state-out --cpu --stop; do
    says "run --help shows $o" "(^|[ ,])$o([ ,]|\$)" "$T/out"
done
expect 2 "help for nothing" "$HONE" help nothing
expect 0 "help as JSON" "$HONE" help --json
says "… with its schema" '^\{"schema":"hone\.help/1","commands":\[' "$T/out"

expect 0 "help of a command below another" "$HONE" help lab peaks
says "… is its own" '^usage: hone lab peaks' "$T/out"
says "… with its options" '--no-store' "$T/out"
expect 0 "… as JSON" "$HONE" help lab peaks --json
says "… alone" '"commands":\[\{"name":"lab peaks"' "$T/out"
expect 0 "… and inside its parent" "$HONE" help --json
says "… with options" '"name":"lab".*"commands":\[\{"name":"lab peaks".*"name":"no-store"' "$T/out"
expect 2 "help for nothing below lab" "$HONE" help lab nothing
says "… names it" "unknown command 'lab nothing'"
expect 2 "help for something below a command that has none" "$HONE" help run fast

expect 0 "man page" "$HONE" help --man
says "… tells exit codes" '^\.SH EXIT STATUS' "$T/out"
says "… and where things are kept" '^\.SH FILES' "$T/out"
cp "$T/out" "$T/hone.1"
expect 0 "man page of a command" "$HONE" help lab --man
says "… has the commands below it" '^\.SS hone lab peaks' "$T/out"
says "… and their options" '\\-\\-no\\-store' "$T/out"
cp "$T/out" "$T/hone-lab.1"
if command -v groff >/dev/null 2>&1; then
    run groff -man -ww -Tutf8 "$T/hone.1" "$T/hone-lab.1"
    if [ "$rc" -eq 0 ] && [ ! -s "$T/err" ]; then ok "groff takes it without a warning"; else not_ok "groff takes it without a warning" "$T/err"; fi
else
    skip "man page in groff" "no groff"
fi
for shell in bash zsh fish; do
    expect 0 "completion for $shell" "$HONE" help --completion $shell
    cp "$T/out" "$T/completion.$shell"
    if command -v $shell >/dev/null 2>&1; then
        run $shell -n "$T/completion.$shell"
        if [ "$rc" -eq 0 ] && [ ! -s "$T/err" ]; then ok "… parses in $shell"; else not_ok "… parses in $shell" "$T/err"; fi
    else
        skip "… parses in $shell" "no $shell"
    fi
done
if command -v bash >/dev/null 2>&1; then
    cat >"$T/try.bash" <<'END'
. "$1"
COMP_WORDS=(hone run --te) COMP_CWORD=2; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone run --kv f) COMP_CWORD=3; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone log) COMP_CWORD=1; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone lab pe) COMP_CWORD=2; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone lab peaks --no-) COMP_CWORD=3; _hone; echo "${COMPREPLY[*]}"
hone() { printf '%s\n' o/r:Q4_0 o/r:Q8_0 o/s:F16; } # hone help --words models
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_WORDS=(hone rm o/r : Q) COMP_CWORD=4; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone rm o/s :) COMP_CWORD=3; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone run -m o/r : Q8) COMP_CWORD=5; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone rm o/r : Q4_0 o/s) COMP_CWORD=5; _hone; echo "${COMPREPLY[*]}"
COMP_WORDS=(hone rm o/nosuch : Q) COMP_CWORD=4; _hone; echo "${#COMPREPLY[@]}"
COMP_WORDBREAKS=' ' # as some set it
COMP_WORDS=(hone rm o/r:Q8) COMP_CWORD=2; _hone; echo "${COMPREPLY[*]}"
END
    run bash "$T/try.bash" "$T/completion.bash"
    printf '%s\n' '--temp --temperature' 'f16 f32' 'logits' 'peaks' '--no-store' 'Q4_0 Q8_0' 'F16' 'Q8_0' 'o/s:F16' 0 'o/r:Q8_0' >"$T/want"
    same "bash completes options, values and commands" "$T/out" "$T/want"
fi

expect 0 "env as JSON" "$HONE" env --json
says "… with levels and cores" '^\{"schema":"hone\.env/1",.*"cpu_levels":\["scalar".*"cores":[1-9]' "$T/out"
expect 0 "env with a switch set" env HONE_CPU=scalar "$HONE" env
says "… shows it" 'HONE_CPU +scalar' "$T/out"
says "… and follows it" '^cpu +scalar' "$T/out"

# stdout that cannot be written
if [ -w /dev/full ]; then
    "$HONE" help >/dev/full 2>"$T/err"
    rc=$?
    if [ $rc -eq 1 ]; then ok "a full disk: exit 1"; else not_ok "a full disk: exit 1 (seen $rc)" "$T/err"; fi
    says "… saying so" 'standard output: No space left on device'
else
    skip "a full disk" "no /dev/full"
fi
"$HONE" version >&- 2>"$T/err"
rc=$?
if [ $rc -eq 1 ]; then ok "a closed stdout: exit 1"; else not_ok "a closed stdout: exit 1 (seen $rc)" "$T/err"; fi
esc=$(printf '\033')
run "$HONE" "run${esc}[31m"
if grep -q "$esc" "$T/err"; then not_ok "no raw escape sequence reaches the terminal"; else ok "no raw escape sequence reaches the terminal"; fi
finish
