#!/bin/sh
# One answer on every architecture: runs the native and the foreign cross_check and
# compares their outputs byte for byte: the native one at every CPU level this machine
# has, the foreign one under emulation at every level it has and on older CPUs. Then the
# property tests of the kernels (cross_kernels, _rwkv, _recurrent, _train) there.
# Usage: [QEMU=qemu-aarch64] compare.sh NATIVE-FOLDER FOREIGN-FOLDER
set -u
native=$1/cross_check
foreign_folder=$2
foreign=$2/cross_check
QEMU=${QEMU:-qemu-aarch64}
T=$(mktemp -d) || exit 1
properties=
trap '[ -z "$properties" ] || kill $properties 2>/dev/null; rm -rf "$T"' EXIT
n=0
bad=0
verdict() { # verdict RC WHAT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

tiny=models/hone-tiny.gguf
[ -f "$tiny" ] || { tiny=; echo "SKIP: models/hone-tiny.gguf is not there"; }
# every family and every kind of kernel, in small files written by the native program
set --
hone=${native%/cross_check}/hone
if [ -x "$hone" ]; then
    for pair in llama:Q4_K_M llama:Q5_K_M llama:Q6_K qwen3:F32 qwen2:Q8_0 qwen2:Q4_0 qwen3:F16 qwen3:BF16 rwkv7:Q4_K_M rwkv6:F16 rwkv6:Q8_0 gemma3:Q4_K_M; do
        cfg=tests/cross/${pair%:*}.json
        type=${pair#*:}
        if $hone synth --config "$cfg" --type "$type" --seed 5 -o "$T/${pair%:*}-$type.gguf" >/dev/null 2>"$T/err"; then
            set -- "$@" "$T/${pair%:*}-$type.gguf"
        else
            sed 's/^/# /' "$T/err"
            verdict 1 "hone synth --config $cfg --type $type"
        fi
    done
else
    echo "SKIP: no $hone to write models with"
fi

# run LEVEL NAME COMMAND…: $T/NAME gets the digests, $T/NAME.logits (-o) all logits
run() {
    level=$1
    name=$2
    shift 2
    if [ -n "$level" ]; then HONE_CPU=$level "$@" >"$T/$name" 2>"$T/err"; else env -u HONE_CPU "$@" >"$T/$name" 2>"$T/err"; fi
}
# same NAME REFERENCE RC WHAT
same() {
    ok=$3
    [ "$ok" -eq 0 ] || sed 's/^/# /' "$T/err"
    if ! cmp -s "$T/$2" "$T/$1"; then
        ok=1
        diff "$T/$2" "$T/$1" | head -n 10 | cut -c 1-300 | sed 's/^/# /'
    fi
    verdict "$ok" "$4 equals native scalar ($(wc -l <"$T/$1") lines of digests)"
    cmp "$T/$2.logits" "$T/$1.logits" 2>&1
    verdict $? "$4: the logits are the same bytes ($(wc -c <"$T/$1.logits"))"
}

# meanwhile, on the other cores
for p in kernels rwkv recurrent train; do
    env -u HONE_CPU "$QEMU" -cpu max "$foreign_folder/cross_$p" >"$T/$p" 2>&1 &
    properties="$properties $!"
done

run scalar native "$native" -o "$T/native.logits" $tiny "$@"
rc=$?
[ $rc -eq 0 ] || sed 's/^/# /' "$T/err"
verdict $rc "native scalar runs"
run scalar tiny "$native" -o "$T/tiny.logits" $tiny
verdict $? "native scalar runs with the bundled model alone"
for cpu in avx2 avx_vnni avx512; do
    run $cpu $cpu "$native" -o "$T/$cpu.logits" $tiny "$@"
    rc=$?
    if grep -q 'lacks it' "$T/err"; then
        n=$((n + 1))
        echo "ok $n # SKIP $cpu: this machine lacks it"
        continue
    fi
    same $cpu native $rc $cpu
done

# emulated CPU : level to force (empty: the best one is taken) : level that must run.
# The older CPUs show that a level keeps to its instructions: the bundled model alone.
for way in max:scalar:scalar max:neon:neon max:neon_dotprod:neon_dotprod max::neon_i8mm neoverse-n1::neon_dotprod cortex-a53::neon; do
    cpu=${way%%:*}
    level=${way#*:}
    want=${level#*:}
    level=${level%:*}
    name=$cpu-$want
    reference=tiny
    if [ "$cpu" = max ]; then
        reference=native
        run "$level" "$name" "$QEMU" -cpu "$cpu" "$foreign" -o "$T/$name.logits" $tiny "$@"
        rc=$?
    else
        run "$level" "$name" "$QEMU" -cpu "$cpu" "$foreign" -o "$T/$name.logits" $tiny
        rc=$?
    fi
    grep -qx "level $want" "$T/err" || { echo "# expected level $want, got: $(head -n 1 "$T/err")"; rc=1; }
    same "$name" $reference $rc "$(basename "$QEMU") -cpu $cpu, $want"
done
HONE_CPU=neon_i8mm "$QEMU" -cpu cortex-a53 "$foreign" >/dev/null 2>"$T/err"
[ $? -ne 0 ] && grep -q 'neon_i8mm: this machine lacks it; best here: neon$' "$T/err"
verdict $? "a level that the CPU lacks is refused"
HONE_CPU=avx2 "$QEMU" -cpu max "$foreign" >/dev/null 2>"$T/err"
[ $? -ne 0 ] && grep -q 'avx2: a level of another architecture; expected scalar, neon, neon_dotprod or neon_i8mm$' "$T/err"
verdict $? "a level of another architecture is refused"

set -- $properties
for p in kernels:test_kernels rwkv:test_rwkv_kernels recurrent:test_recurrent_kernels train:test_train_kernels; do
    wait "$1"
    rc=$?
    shift
    properties=$*
    name=${p#*:}
    p=${p%:*}
    grep '^#' "$T/$p"
    verdict $rc "tests/property/$name.c under $QEMU -cpu max ($(grep -c '^ok' "$T/$p") of $(sed -n 's/^1\.\.//p' "$T/$p"))"
    [ $p = kernels ] || continue
    [ "$(grep -c SKIP "$T/$p")" -eq 0 ]
    verdict $? "every level was there"
done
echo "1..$n"
[ "$bad" -eq 0 ]
