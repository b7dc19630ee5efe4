#!/bin/sh
# The catalogue: what is listed, what is refused, records that fit the published schema,
# and that nothing finished is lost: interrupted, killed at any moment, on a full disk.
# KILLS=200 kills so often (default 4).
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state # no stored roof: a noisy machine may be above it
export XDG_STATE_HOME
if [ ! -f "$TINY" ]; then
    skip "the catalogue" "$TINY is not here"
    finish
fi
# fits WHAT FILE COUNT: every line is a record or a suite; at least so many records
if ${CC:-cc} -O1 -D_GNU_SOURCE -o "$T/schema" tests/e2e/schema.c $(pkg-config --cflags --libs jansson 2>/dev/null || echo -ljansson) 2>"$T/err"; then
    fits() {
        n=$("$T/schema" docs/bench.schema.json "$2" 2>"$T/fault" | sed -n 's/ records//p')
        if [ "${n:-0}" -ge "$3" ]; then ok "$1"; else
            echo "# ${n:-no} records, expected $3"
            not_ok "$1" "$T/fault"
        fi
    }
else
    cat "$T/err"
    fits() { skip "$1" "no compiler for tests/e2e/schema.c"; }
fi
lines() { wc -l <"$1" | tr -d ' '; }
is() { # is WHAT SEEN EXPECTED
    if [ "$2" = "$3" ]; then ok "$1"; else
        echo "# seen: $2   expected: $3"
        not_ok "$1" "$T/out" "$T/err"
    fi
}

# ---- the list ----
expect 0 "lab list" "$HONE" lab list
says "an entry: unit, method, suites, target" '^tok.encode +us +calibrated loop +lower +quick full ci +.*\(-m\); target < 5 us' "$T/out"
says "what is absent says what it needs" '^e2e.scale.shard +not in this build: needs running one model on several processes' "$T/out"
expect 0 "lab list --json" "$HONE" lab list --json
says "absent, for programs" '"id": ?"moe.kernel".*"in_this_build": ?false, ?"needs": ?"rows of its own' "$T/out"
says "present, for programs" '"id": ?"mem.access".*"unit": ?"GB/s", ?"better": ?"higher", ?"method": ?"K"' "$T/out"

# ---- refusals ----
for id in e2e.scale.shard moe kern.trellis; do
    expect 2 "$id is refused" "$HONE" bench $id -m "$TINY"
    says "$id: what it needs" 'not in this build: needs'
done
expect 2 "an entry without its model" "$HONE" bench tok.encode
says "says how" '-m FILE'
expect 2 "a suite without a model" "$HONE" bench --suite quick
expect 2 "suite and ids" "$HONE" bench --suite quick tok -m "$TINY"
expect 2 "no such suite" "$HONE" bench --suite huge -m "$TINY"
expect 2 "nothing is called so" "$HONE" bench tok.sort -m "$TINY"
says "where to look" 'hone lab list'
expect 2 "a pattern of nothing" "$HONE" bench 'x*' -m "$TINY"
expect 3 "no such model" "$HONE" bench tok -m "$T/none.gguf"
expect 3 "no model at all" "$HONE" bench tok -m tests/e2e/lib.sh
expect 2 "samples of nothing" "$HONE" bench tok -m "$TINY" -r 0

# ---- halves of a layer that share a norm: the first leaves what the other adds ----
cat >"$T/both.json" <<'J'
{"arch": "command-r", "n_layer": 1, "n_vocab": 300, "tied": true,
 "keys": {"context_length": 512, "embedding_length": 256, "feed_forward_length": 256, "attention.head_count": 4,
          "attention.head_count_kv": 4, "rope.freq_base": 1e4, "attention.layer_norm_epsilon": 1e-5, "logit_scale": 0.1}}
J
run "$HONE" synth --config "$T/both.json" -o "$T/both.gguf"
expect 0 "attention of such a layer" "$HONE" bench layer.attn -m "$T/both.gguf" -r 1 --quick

# ---- layers with windows: the second part of a run finds its pages as a pass leaves them ----
cat >"$T/window.json" <<'J'
{"arch": "gemma3", "n_layer": 3, "n_embd": 64, "n_head": 2, "n_head_kv": 1, "n_ff": 96, "n_vocab": 512,
 "n_ctx_train": 2048, "window": 64}
J
run "$HONE" synth --config "$T/window.json" --type Q8_0 -o "$T/window.gguf"
expect 0 "parts of layers with windows" "$HONE" bench layer.embed layer.norm layer.full -m "$T/window.gguf" -r 1 --quick

# ---- layers of which some have no attention, or nothing at all ----
cat >"$T/some.json" <<'J'
{"arch": "deci", "n_layer": 4, "n_vocab": 300,
 "keys": {"context_length": 512, "embedding_length": 64, "feed_forward_length": [96, 96, 0, 96],
          "attention.head_count": [4, 0, 0, 4], "attention.head_count_kv": [2, 0, 0, 2], "rope.freq_base": 1e4,
          "attention.layer_norm_rms_epsilon": 1e-5}}
J
run "$HONE" synth --config "$T/some.json" -o "$T/some.gguf"
expect 0 "parts that only some layers have" "$HONE" bench layer.rope layer.attn layer.full -m "$T/some.gguf" -r 3 --quick

# ---- a server of its own ----
small_model "$T/small.gguf"
if python3 tests/e2e/long_rope.py "$T/small.gguf" 100 "$T/long.gguf" 2>"$T/err"; then
    expect 0 "serve.load of a model that turns otherwise in wide sessions" "$HONE" bench serve.load -m "$T/long.gguf" -p 16 -n 8 -r 1 --quick
else
    skip "serve.load of a model that turns otherwise in wide sessions" "no python3 to make one"
fi
expect 0 "serve.load starts a server and asks it" "$HONE" bench serve.load -m "$TINY" -r 1 --quick --json
says "with many clients" '"variant": ?"16 clients"' "$T/out"
says "whose answers are the same" '"invalid": ?0.*"valid": ?true' "$T/out"
expect 0 "e2e.stream asks for streams and for answers in one piece" "$HONE" bench e2e.stream -m "$TINY" -r 2 --quick --json
says "and says what is between them" '"variant": ?"more".*"variant": ?"in one piece"' "$T/out"
says "if both say the same" '"invalid": ?0.*"valid": ?true' "$T/out"

# ---- two servers: the same answers, or others ----
cp "$TINY" "$T/other.gguf"
dd if=/dev/zero of="$T/other.gguf" bs=1000 seek=3000 count=100 conv=notrunc 2>/dev/null
serving=
for m in "$TINY" "$TINY" "$T/other.gguf"; do
    log=$T/server.$(echo $serving | wc -w | tr -d ' ')
    "$HONE" serve -t 1 -m "$m" --port 0 --no-ui >/dev/null 2>"$log" &
    serving="$serving $!"
    told() { grep -q 'listening on' "$log" || gone "$!"; }
    await told
done
url() { sed -n 's/.*listening on //p' "$T/server.$1"; }
load="--clients 1,2 -p 8 -n 8 -r 2 --json"
expect 0 "a server beside one like it" "$HONE" bench serve --url "$(url 0)" --against "$(url 1)" $load
says "beside one who asks alone" '"first_later_ms": ?\{"median": ?[0-9].*"first_over_alone": ?\{"median": ?[0-9]' "$T/out"
says "answers the same" '"answers_compared": ?4,"answers_other": ?0.*"answers_compared": ?8,"answers_other": ?0' "$T/out"
expect 0 "a server beside one with another model" "$HONE" bench serve --url "$(url 0)" --against "$(url 2)" $load
says "answers otherwise, which is said" '^hone: note: [1-9][0-9]* of 12 answers of .* were others than those of'
says "and counted" '"answers_other": ?[1-9]' "$T/out"
expect 0 "requests that come by themselves" "$HONE" bench serve --url "$(url 0)" --rate 500 -p 8 -n 8 -r 1 --requests 5 --json
says "have no number of clients" '"clients": ?null,"rate": ?500' "$T/out"
expect 2 "clients who wait, and requests that do not" "$HONE" bench serve --url "$(url 0)" --rate 5 --clients 1,4
kill $serving
wait $serving 2>/dev/null

# ---- records ----
expect 0 "ids, a group, a pattern and a shape" "$HONE" bench tok 'sample.gr*' mem.buffer kern.norm.256 kern.gemv.Q4_K.64x256 load.parse -m "$TINY" -r 2 --quick --json --file "$T/r" \
    --title "a title" --change "a change"
says "a suite" '^\{"schema": ?"hone.suite/1".*"complete": ?true' "$T/out"
fits "the suite fits the schema" "$T/out" 14
fits "so does the file" "$T/r.jsonl" 14
says "title and change" '"title":"a title","change":"a change"' "$T/r.jsonl"
is "as many lines as records" "$(grep -o '"schema": *"hone.bench/1"' "$T/out" | wc -l | tr -d ' ')" "$(lines "$T/r.jsonl")"
is "no identity twice" "$(grep -o '"record":"[0-9a-f]*"' "$T/r.jsonl" | sort -u | wc -l | tr -d ' ')" "$(lines "$T/r.jsonl")"
expect 0 "a pattern leaves out what is absent, and says so" "$HONE" bench 'kern.f*' disp.dynamic -r 2 --quick
says "in its place" '^left out kern.fp4: not in this build: needs a row of its own' "$T/out"
expect 0 "the plain run" "$HONE" bench -m "$TINY" -p 8 -n 4 -r 1 --json --file "$T/plain"
fits "the plain run fits the schema" "$T/plain.jsonl" 1
sed 's/"unit":"[a-z]*",//' "$T/r.jsonl" >"$T/bad.jsonl"
if [ -x "$T/schema" ]; then
    "$T/schema" docs/bench.schema.json "$T/bad.jsonl" >/dev/null 2>"$T/err" && not_ok "the schema wants a unit" || ok "the schema wants a unit"
fi
expect 0 "for people" "$HONE" bench tok.decode -m "$TINY" -r 6 --quick
says "a row" '^tok.decode +bytes [0-9]+, tokens [0-9]+, new +[0-9.]+ ns +[0-9.]+ %.*< 100 ns' "$T/out"
[ -s "$T/err" ] && not_ok "no progress where there is no terminal" "$T/err" || ok "no progress where there is no terminal"

# ---- a rate above the roof ----
"$HONE" lab peaks --quick --json >"$T/peaks"
file=$(sed -n 's/.*"file": *"\([^"]*\)".*/\1/p' "$T/peaks")
mkdir -p "${file%/*}"
sed -e 's/"quick": *true/"quick": false/' -e 's/"cache_mb": *[0-9.]*/"cache_mb": 0/' -e 's/"best": *[0-9.e+-]*/"best": 0.0001/g' \
    -e 's/"most": *[0-9.e+-]*/"most": 0.0001/g' -e 's/"median": *[0-9.e+-]*/"median": 0.0001/g' "$T/peaks" >"$file"
expect 1 "a product above the roof is invalid" "$HONE" bench tensor.matmul.simd -r 2 --quick --json
says "and why" '"valid": ?false, ?"invalid_reason": ?"[^"]+' "$T/out"
fits "an invalid record fits the schema" "$T/out" 1
rm -rf "$T/state"

# ---- Ctrl-C ----
long="tok tensor.elementwise mem.buffer disp.dynamic kern.variants"
rm -f "$T/i.jsonl"
"$HONE" bench $long -m "$TINY" --json --file "$T/i" >"$T/out" 2>"$T/err" &
pid=$!
two_records() { [ -f "$T/i.jsonl" ] && [ "$(lines "$T/i.jsonl")" -ge 2 ]; }
await two_records
kill -INT $pid
wait $pid
is "interrupted: exit code 6" $? 6
says "what was measured is printed" '^\{"schema": ?"hone.suite/1".*"complete": ?false, ?"interrupted": ?true.*"id": ?"tok.encode"' "$T/out"
fits "and fits the schema" "$T/out" 2
fits "and is kept" "$T/i.jsonl" 2
if ${CC:-cc} -O1 -o "$T/pty" tests/e2e/pty.c -lutil 2>"$T/err" && "$T/pty" -t 60 /bin/true </dev/null >/dev/null 2>&1; then
    printf 'wait  s left\nsignal INT\n' | "$T/pty" -t 300 "$HONE" bench $long -m "$TINY" >"$T/out" 2>"$T/err"
    is "on a terminal: Ctrl-C gives 6" $? 6
    says "on a terminal: progress with the remaining time" '[a-z.]+, about [0-9]+ (s|min) left +[0-9]+ %' "$T/out"
else
    skip "progress on a terminal" "no terminals, or no compiler for tests/e2e/pty.c"
fi

# ---- a full disk: a file may not grow beyond 8 blocks ----
rm -f "$T/f.jsonl"
(
    trap '' XFSZ
    ulimit -f 8 2>/dev/null || exit 99
    "$HONE" bench tok tensor.elementwise -m "$TINY" -r 2 --quick --file "$T/f" 2>&1
    echo "rc $?"
) | cat >"$T/out"
if grep -q '^rc 1$' "$T/out"; then
    ok "a full disk: exit code 1"
    says "says so" 'the record was not kept: .*too large|the record was not kept: .*space' "$T/out"
    says "goes on, and shows everything" '^tensor.elementwise' "$T/out"
    fits "what is in the file is whole" "$T/f.jsonl" 1
    is "and ends with a line" "$(tail -c 1 "$T/f.jsonl" | od -An -c | tr -d ' ')" '\n'
else
    skip "a full disk" "no limit on files here: $(tail -n 1 "$T/out")"
fi

# ---- killed at any moment: what was reported is in the file, and the file can be read ----
rm -f "$T/k.jsonl"
lost=0 unreadable=0 reported=0 killed=0 cut=0
i=0
while [ $i -lt "${KILLS:-4}" ]; do
    i=$((i + 1))
    before=$([ -f "$T/k.jsonl" ] && grep -c '}$' "$T/k.jsonl" || echo 0)
    "$HONE" bench tok tensor.elementwise mem.buffer disp.dynamic -m "$TINY" -r 2 --quick --file "$T/k" >"$T/kout" 2>/dev/null &
    pid=$!
    sleep "0.$(awk -v s="$i$$" 'BEGIN { srand(s); printf "%03d", 20 + rand() * 500 }')"
    kill -9 $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
    said=$(grep -cE ' (us|ns) ' "$T/kout")
    [ -f "$T/k.jsonl" ] || continue
    after=$(grep -c '}$' "$T/k.jsonl")
    reported=$((reported + said))
    [ $((after - before)) -ge "$said" ] || lost=$((lost + said - after + before))
    [ "$(tail -c 1 "$T/k.jsonl" | od -An -c | tr -d ' ')" = '\n' ] || cut=$((cut + 1))
    if [ -x "$T/schema" ]; then
        n=$("$T/schema" docs/bench.schema.json "$T/k.jsonl" 2>>"$T/kerr" | sed -n 's/ records//p')
        [ "${n:-0}" -ge $((before + said)) ] || unreadable=$((unreadable + 1))
    fi
done
echo "# killed $killed of $i runs, $reported records reported, $(lines "$T/k.jsonl") kept, $cut last lines cut off"
is "killed: no record that was reported is lost" $lost 0
is "killed: the file can be read every time" $unreadable 0

finish
