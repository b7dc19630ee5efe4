#!/bin/sh
# One answer on every architecture: runs the native and the foreign cross_check and
# compares their outputs byte for byte, native at every CPU level this machine has.
# Usage: [QEMU=qemu-aarch64] compare.sh NATIVE FOREIGN
set -u
native=$1
foreign=$2
QEMU=${QEMU:-qemu-aarch64}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
n=0
bad=0
verdict() { # verdict RC WHAT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

set --
[ -f models/hone-tiny.gguf ] && set -- models/hone-tiny.gguf
# every family and every kind of kernel, in small files written by the native program
hone=build/release/hone
if [ -x "$hone" ]; then
    for pair in llama:Q4_K_M llama:Q5_K_M llama:Q6_K llama:F32 qwen2:Q8_0 qwen2:Q4_0 qwen3:F16 qwen3:BF16; do
        cfg=tests/cross/${pair%:*}.json
        type=${pair#*:}
        if $hone synth --config "$cfg" --type "$type" --seed 5 -o "$T/${pair%:*}-$type.gguf" >/dev/null 2>"$T/err"; then
            set -- "$@" "$T/${pair%:*}-$type.gguf"
        else
            sed 's/^/# /' "$T/err"
            verdict 1 "hone synth --config $cfg --type $type"
        fi
    done
fi
[ $# -gt 0 ] || echo "SKIP: no model files to compare; decoders only"

if ! HONE_CPU=scalar "$native" "$@" >"$T/native" 2>"$T/err"; then
    sed 's/^/# /' "$T/err"
    verdict 1 "native scalar runs"
fi
for cpu in avx2 avx512; do
    HONE_CPU=$cpu "$native" "$@" >"$T/$cpu" 2>"$T/err"
    rc=$?
    if grep -q 'lacks it' "$T/err"; then
        n=$((n + 1))
        echo "ok $n # SKIP $cpu: this machine lacks it"
        continue
    fi
    [ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
    cmp "$T/native" "$T/$cpu" && [ $rc -eq 0 ]
    verdict $? "$cpu equals scalar ($(wc -l <"$T/native") digests)"
done
HONE_CPU=scalar "$QEMU" "$foreign" "$@" >"$T/foreign" 2>"$T/err"
rc=$?
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
diff "$T/native" "$T/foreign" | head -n 10 | sed 's/^/# /'
cmp -s "$T/native" "$T/foreign" && [ $rc -eq 0 ]
verdict $? "$(basename "$QEMU") equals native ($(wc -l <"$T/foreign") digests)"
echo "1..$n"
[ "$bad" -eq 0 ]
