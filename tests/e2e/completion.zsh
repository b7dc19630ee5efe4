# What zsh offers for lines, one after the other: zsh completion.zsh SETUP HITS LINE… prints "LINE …" and what is offered.
# SETUP is sourced by a zsh on a terminal of its own; there a key completes and writes what was offered to HITS.
zmodload zsh/zpty zsh/zselect || exit 77
setup=$1 hits=$2
shift 2
await() { # a line of HITS; what the terminal shows is thrown away
    local i out
    for ((i = 0; i < 15000; i++)); do
        grep -q "^$1\$" $hits && return 0
        zpty -r -t z out >/dev/null 2>&1
        zselect -t 2
    done
    return 1
}
: >$hits
zpty -b z zsh -f -i
zpty -w z "source $setup"
await READY || exit 77
for line; do
    : >$hits
    zpty -w -n z "$line"$'\x18'
    await DONE || print -r -- "no answer"
    print -r -- "LINE $line"
    sed -n 's/^HIT://p' $hits | sort -u
done
zpty -d z
