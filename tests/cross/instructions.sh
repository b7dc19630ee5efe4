#!/bin/sh
# A number that stands for speed where none can be measured: how many instructions each kernel of each level executes for
# a small fixed work, counted under qemu-user by a plugin and held against tests/golden/instructions.tsv. The same
# compiler makes the same instructions, so a kernel that needs more than 3 % more has become worse, whatever the machine.
# A kernel that the table lacks, or that is inherited from the level below now, is told too.
# Usage: [QEMU=qemu-aarch64] instructions.sh [--accept] NATIVE-FOLDER FOREIGN-FOLDER
#   --accept  writes the table from what is counted now, when it is as it should be (make instructions-accept)
set -u
accept=
[ "${1:-}" != --accept ] || { accept=1; shift; }
native=$1
foreign=$2
QEMU=${QEMU:-qemu-aarch64}
table=tests/golden/instructions.tsv
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
n=0
bad=0
tab=$(printf '\t')

# skip MACHINE REASON
skip() {
    n=$((n + 1))
    echo "ok $n # SKIP $1: $2"
    # what was not counted stays as it is
    [ -z "$accept" ] || grep -E "^(# )?$1$tab" "$table" >>"$T/new"
}

# hold WAS NOW: lines of the table against those counted; $T/bad, $T/better and $T/absent say what differs
hold() {
    rm -f "$T/bad" "$T/better" "$T/absent"
    # a few instructions of the C library may differ from one system to the next: 20 of each count are nothing
    awk -F '\t' -v to="$T" '
        FNR == NR { was[$2 FS $3 FS $4] = $5; next }
        /^#/ { next }
        { here[$2] = 1 }
        !(($2 FS $3 FS $4) in was) { print $2 ", " $3 ", " $4 ": not in the table" >(to "/bad"); next }
        {
            old = was[$2 FS $3 FS $4]
            delete was[$2 FS $3 FS $4]
            line = sprintf("%s, %s, %s: %d instructions, %d in the table (%+.1f %%)", $2, $3, $4, $5, old,
                           100 * ($5 / old - 1))
            if ($5 > old * 1.03 + 20) print line >(to "/bad")
            else if ($5 < old * 0.97 - 20) print line >(to "/better")
        }
        END {
            for (k in was) {
                split(k, f, FS)
                if (f[1] in here) print f[1] ", " f[2] ", " f[3] ": in the table, but inherited from the level below now" >(to "/bad")
                else print f[1] >(to "/absent")
            }
        }' "$1" "$2"
}

# count MACHINE PROGRAM EMULATOR
count() {
    machine=$1 program=$2 emulator=$3
    command -v "$emulator" >/dev/null 2>&1 || { skip "$machine" "no $emulator"; return; }
    if ! "$emulator" -cpu max -plugin "$native/count_instructions.so" "$program" >"$T/out" 2>"$T/err"; then
        if "$emulator" -cpu max "$program" >/dev/null 2>&1; then
            skip "$machine" "$emulator does not run the plugin: $(head -n 1 "$T/err" | cut -c 1-100)"
        else
            n=$((n + 1))
            bad=$((bad + 1))
            echo "not ok $n - $program runs under $emulator: $(head -n 1 "$T/err" | cut -c 1-100)"
        fi
        return
    fi
    by=$(sed -n "s/^built by$tab//p" "$T/out")
    # every line must have its count
    if ! awk -F '\t' 'NR > 1 && (NF != 5 || $5 !~ /^[0-9]+$/) { exit 1 } END { exit NR < 100 }' "$T/out"; then
        n=$((n + 1))
        bad=$((bad + 1))
        echo "not ok $n - $machine: $program names its work and $native/count_instructions.so counts it"
        grep -nvE "$tab[0-9]+\$" "$T/out" | head -n 5 | sed 's/^/# /'
        return
    fi
    awk -F '\t' -v OFS='\t' -v machine="$machine" -v by="$by" '
        NR == 1 { print "# " machine, by; next }
        { print machine, $1, $2, $3, $5, sprintf("%.2f", $5 * 32 / $4) }' "$T/out" >"$T/now"
    if [ -n "$accept" ]; then
        cat "$T/now" >>"$T/new"
        return
    fi
    was=$(sed -n "s/^# $machine$tab//p" "$table")
    if [ "$by" != "$was" ]; then
        skip "$machine" "the table is of $was, this is $by"
        return
    fi
    grep "^$machine$tab" "$table" >"$T/was"
    # the comparison can fail: one kernel slower by a tenth, one that is new, one that is gone
    awk -F '\t' -v OFS='\t' 'NR == 2 { $5 = int($5 / 1.1) } NR == 3 { $3 = "gone" } { print }' "$T/now" >"$T/other"
    hold "$T/other" "$T/now"
    n=$((n + 1))
    if [ "$(cat "$T/bad" 2>/dev/null | wc -l)" -eq 3 ]; then
        echo "ok $n - $machine: a table that differs in three lines is seen to"
    else
        bad=$((bad + 1))
        echo "not ok $n - $machine: a table that differs in three lines is seen to"
        sed 's/^/# /' "$T/bad"
    fi
    hold "$T/was" "$T/now"
    n=$((n + 1))
    if [ -s "$T/bad" ]; then
        bad=$((bad + 1))
        echo "not ok $n - $machine: no kernel executes more instructions than $table says"
        sort "$T/bad" | head -n 40 | sed 's/^/# /'
        echo "# $(wc -l <"$T/bad") of $(wc -l <"$T/was"); where it is meant to be so: make instructions-accept, and say why in the commit"
    else
        echo "ok $n - $machine: $(($(wc -l <"$T/now") - 1)) kernels execute no more instructions than $table says"
    fi
    if [ -s "$T/better" ]; then
        echo "# better, $(wc -l <"$T/better") of them; make instructions-accept keeps it so:"
        sort "$T/better" | head -n 20 | sed 's/^/#   /'
    fi
    if [ -s "$T/absent" ]; then
        n=$((n + 1))
        echo "ok $n # SKIP $machine: $emulator lacks $(sort -u "$T/absent" | paste -sd ' ' -)"
    fi
}

count x86_64 "$native/instructions" qemu-x86_64
count aarch64 "$foreign/instructions" "$QEMU"
if [ -n "$accept" ]; then
    [ "$bad" -eq 0 ] || exit 1
    {
        echo "# Executed instructions (tests/cross/instructions.c); written by make instructions-accept, read by tests/cross/instructions.sh"
        echo "# machine${tab}level${tab}kernel${tab}shape: rows x width x columns${tab}instructions${tab}for 32 products or elements"
        cat "$T/new"
    } >"$table.new" && mv "$table.new" "$table"
    echo "$table: $(grep -vc '^#' "$table") counts"
    exit 0
fi
echo "1..$n"
[ "$bad" -eq 0 ]
