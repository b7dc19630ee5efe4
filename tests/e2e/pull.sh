#!/bin/sh
# hone pull against a hub on this machine (tests/e2e/hub.c) and all that can go wrong on the way. Nothing here asks any
# other address: HF_ENDPOINT and every redirect are 127.0.0.1.
. tests/e2e/lib.sh
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE HUGGINGFACE_HUB_CACHE HONE_MODELS
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
export HF_HOME=$T/hf HF_HUB_CACHE=$T/cache OLLAMA_MODELS=$T/ollama XDG_DATA_HOME=$T/data XDG_CONFIG_HOME=$T/config
C=0123456789abcdef0123456789abcdef01234567
F=$T/f
case $HONE in /*) ;; *) HONE=$(pwd)/$HONE ;; esac

expect 5 "a hub that is not there" "$HONE" pull a/b --retries 1
if grep -q 'without libcurl' "$T/err"; then
    says "a build without libcurl says how to get it" 'libcurl4-openssl-dev'
    skip "hone pull" "built without libcurl"
    finish
fi
if grep -q 'libcurl is not on this machine' "$T/err"; then
    says "without libcurl it says how to get it" 'libcurl4'
    skip "hone pull" "no libcurl on this machine"
    finish
fi
if ! ${CC:-cc} -O1 -pthread -w -o "$T/hub" tests/e2e/hub.c 2>"$T/err"; then
    skip "hone pull" "no compiler for tests/e2e/hub.c"
    finish
fi

# ---- what the hub has ------------------------------------------------------------------------------------

mkdir -p "$F/plain" "$F/ollama/library/m" "$F/ollama/blobs" "$F/repos/o/one/sub" "$F/repos/o/split" "$F/repos/o/hole" "$F/repos/o/ck" \
    "$F/repos/o/two/a" "$F/repos/o/two/b" "$F/repos/o/none"
head -c 300000 $TINY >"$F/repos/o/one/one-Q4_K_M.gguf"
head -c 400000 $TINY >"$F/repos/o/one/one-Q8_0.gguf"
head -c 2000 $TINY >"$F/repos/o/one/mmproj-F16.gguf"
echo '{"small": 1}' >"$F/repos/o/one/sub/small.json"
for i in 1 2 3; do head -c $((i * 1500)) $TINY >"$F/repos/o/split/s-Q4_0-0000$i-of-00003.gguf"; done
cp "$F"/repos/o/split/*-0000[13]-of* "$F/repos/o/hole"
head -c 3000 $TINY >"$F/repos/o/two/a/x-Q4_K_M.gguf"
head -c 4000 $TINY >"$F/repos/o/two/b/y-Q4_K_M.gguf"
echo hello >"$F/repos/o/none/README.md"
mkdir "$F/repos/o/cut" "$F/repos/o/somecut"
for i in 1 2; do head -c $((i * 100000)) $TINY >"$F/repos/o/cut/c.Q6_K.gguf.part${i}of2"; done
for i in a b; do head -c 140000 $TINY >"$F/repos/o/somecut/c.Q8_0.gguf-split-$i"; done
head -c 150000 $TINY >"$F/repos/o/somecut/c.Q4_K_M.gguf"
for n in config.json tokenizer.json tokenizer_config.json README.md; do echo "{\"$n\":1}" >"$F/repos/o/ck/$n"; done
for n in model-00001-of-00002 consolidated; do head -c 5000 $CHAT >"$F/repos/o/ck/$n.safetensors"; done
head -c 6000 $CHAT >"$F/repos/o/ck/model-00002-of-00002.safetensors"
echo '{"weight_map":{}}' >"$F/repos/o/ck/model.safetensors.index.json"
: >"$F/repos/o/ck/added_tokens.json"
mkdir -p "$F/repos/o/bin/1_Pooling" "$F/repos/o/bin/2_Dense" "$F/repos/o/lora"
for n in config.json modules.json quant_config.json tekken.json sentencepiece.bpe.model pytorch_model.bin.index.json 1_Pooling/config.json 2_Dense/config.json; do
    echo '{}' >"$F/repos/o/bin/$n"
done
for n in pytorch_model-00001-of-00001 optimizer 2_Dense/pytorch_model; do head -c 5000 $CHAT >"$F/repos/o/bin/$n.bin"; done
head -c 4000 $CHAT >"$F/repos/o/bin/2_Dense/model.safetensors"
echo '{}' >"$F/repos/o/lora/adapter_config.json" && head -c 4000 $CHAT >"$F/repos/o/lora/adapter_model.safetensors"
mkdir "$F/repos/o/oldlora" && echo '{}' >"$F/repos/o/oldlora/adapter_config.json"
for n in adapter_model optimizer; do head -c 4000 $CHAT >"$F/repos/o/oldlora/$n.bin"; done
head -c 250000 $TINY >"$F/plain/file.gguf"

"$T/hub" "$F" >"$T/ports" &
HUB=$!
trap 'kill $HUB 2>/dev/null; rm -rf "$T"' EXIT
await test -s "$T/ports"
read -r PORT CDN <"$T/ports"
HF_ENDPOINT=http://127.0.0.1:$PORT

P="--retry-wait 0.01 --piece 0.0625 --retries 4"
ONE=$F/repos/o/one/one-Q4_K_M.gguf
SHA=$(sha256sum <"$ONE" | cut -d' ' -f1)
BLOBS=$T/cache/models--o--one/blobs
GOT=$T/cache/models--o--one/snapshots/$C/one-Q4_K_M.gguf

# begin RULE…: nothing is here, and these go wrong
begin() {
    rm -rf "$T/cache"
    rules "$@"
}
rules() {
    : >"$F/log"
    printf '%s\n' "# $n_check" "$@" >"$F/rules.new"
    mv "$F/rules.new" "$F/rules"
}
# pull NAME…: with the options above
pull() { run "$HONE" pull $P "$@"; }
# gets WHAT RULE…: the file comes whole in spite of these
gets() {
    _what=$1
    shift
    begin "$@"
    expect 0 "$_what" "$HONE" pull $P o/one:Q4_K_M
    cmp -s "$GOT" "$ONE" || not_ok "$_what: the file" "$T/err"
}
# refuses WHAT PATTERN RULE…: exit code 5, these words, no file under its name, and no branch moved
refuses() {
    _what=$1 _words=$2
    shift 2
    begin "$@"
    expect 5 "$_what" "$HONE" pull $P o/one:Q4_K_M
    says "  in words of its own" "$_words"
    if [ -e "$BLOBS/$SHA" ] || [ -e "$GOT" ] || [ -e "$T/cache/models--o--one/refs/main" ]; then not_ok "$_what: a file is there"; fi
}
asked() { grep -cE -- "$1" "$F/log"; } # how many requests
count() { # count WHAT N PATTERN: exactly so many requests
    _n=$(asked "$3")
    if [ "$_n" -eq "$2" ]; then ok "$1"; else
        echo "# $_n requests, expected $2: $3"
        not_ok "$1" "$F/log"
    fi
}
# bytes that the store was asked for
bytes() { sed -n 's/^cdn .*range=\([0-9]*\)-\([0-9]*\) .*/\1 \2/p' "$F/log" | awk '{ n += $2 - $1 + 1 } END { print n + 0 }'; }

# ---- how it should be ---------------------------------------------------------------------------------------

HF_TOKEN=hf_secret
export HF_TOKEN
begin
expect 0 "a file comes" "$HONE" pull $P o/one:Q4_K_M
[ ! -s "$T/err" ] && ok "no progress where there is no terminal" || not_ok "no progress where there is no terminal" "$T/err"
same "it is that of the hub" "$GOT" "$ONE"
if [ "$(readlink "$GOT")" = "../../blobs/$SHA" ]; then ok "in the layout that others share"; else not_ok "in the layout that others share"; fi
if [ "$(cat "$T/cache/models--o--one/refs/main")" = $C ] && [ "$(wc -c <"$T/cache/models--o--one/refs/main")" -eq 40 ]; then
    ok "the branch names its commit"
else not_ok "the branch names its commit"; fi
count "the store never sees the token" 0 '^cdn .*auth=[^-]'
count "the hub does, each time" 0 '^hub .*auth=-'
count "in pieces" 5 '^cdn GET /store/'
[ ! -e "$BLOBS/$SHA.hone-part" ] && [ ! -e "$BLOBS/$SHA.hone-part.json" ] && ok "nothing else stays" || not_ok "nothing else stays"
rules
expect 0 "again: it is here" "$HONE" pull $P o/one:Q4_K_M --json
count "and nothing is fetched" 0 'resolve|store'
says "--json says so" '"cached":true' "$T/out"
says "and which content" "\"sha256\":\"$SHA\"" "$T/out"
rules
expect 0 "--list shows what there is" "$HONE" pull --list o/one
says "with sizes" 'Q8_0 +400 kB' "$T/out"
expect 0 "--list shows a model that is cut" "$HONE" pull --list o/cut
says "with what it needs" 'Q6_K +300 kB .*c.Q6_K.gguf.part1of2 … +\(cut into 2 parts' "$T/out"
expect 0 "--list shows those that are cut beside whole ones" "$HONE" pull --list o/somecut
says "the whole one would be taken" '\* Q4_K_M' "$T/out"
says "the other is there, too" 'Q8_0 +280 kB .*c.Q8_0.gguf-split-a … +\(cut into 2 parts' "$T/out"
expect 0 "--list --json has it, too" "$HONE" pull --list o/somecut --json
says "with its files" '"cut":\[{"type":"Q8_0","bytes":280000,"parts":2,"files":\["c.Q8_0.gguf-split-a","c.Q8_0.gguf-split-b"\]}\]' "$T/out"
expect 3 "a model that is cut is none yet" "$HONE" pull $P o/cut
says "how it becomes one" 'cat c.Q6_K.gguf.part1of2 c.Q6_K.gguf.part2of2 > c.Q6_K.gguf'
expect 2 "nor by its type" "$HONE" pull $P o/somecut:Q8_0
says "how that becomes one" 'cat c.Q8_0.gguf-split-a c.Q8_0.gguf-split-b > c.Q8_0.gguf'
expect 0 "a part of it comes by its path" "$HONE" pull $P hf.co/o/cut/c.Q6_K.gguf.part1of2
expect 0 "without a type one is chosen" "$HONE" pull $P o/one --json
says "and it is said why" '"why":"[^"]*[a-z]' "$T/out"
unset HF_TOKEN
mkdir -p "$HF_HOME" && printf ' hf_of_file \n' >"$HF_HOME/token"
begin
pull hf.co/o/one/sub/small.json
same "a small file by its path" "$T/cache/models--o--one/snapshots/$C/sub/small.json" "$F/repos/o/one/sub/small.json"
count "the token of the file is sent" 0 '^hub .*auth=-'
rm "$HF_HOME/token"
begin
expect 0 "a revision with a slash" "$HONE" pull $P o/one@main:Q4_K_M --rev main
pull o/one --rev v1/x --type Q4_K_M
[ "$(cat "$T/cache/models--o--one/refs/v1/x" 2>/dev/null)" = $C ] && ok "has its own ref" || not_ok "has its own ref" "$T/err"
count "and is quoted in addresses" 1 'revision/v1%2Fx'
begin
expect 0 "a set of parts comes whole" "$HONE" pull $P o/split
[ "$(ls "$T/cache/models--o--split/snapshots/$C" | wc -l)" -eq 3 ] && ok "all three" || not_ok "all three"
expect 0 "a folder without GGUF is a checkpoint" "$HONE" pull $P o/ck
says "hone convert is next" "hone convert $T/cache/models--o--ck/snapshots/$C -o ck.gguf" "$T/out"
ls "$T/cache/models--o--ck/snapshots/$C" | tr '\n' ' ' >"$T/have"
says "only what it needs" '^added_tokens.json config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json tokenizer.json tokenizer_config.json $' "$T/have"

expect 0 "PyTorch's own files, and what is behind a model" "$HONE" pull $P o/bin
(cd "$T/cache/models--o--bin/snapshots/$C" && find . ! -type d | LC_ALL=C sort | tr '\n' ' ') >"$T/have"
says "come, and no optimizer" '^./1_Pooling/config.json ./2_Dense/config.json ./2_Dense/model.safetensors ./config.json ./modules.json ./pytorch_model-00001-of-00001.bin ./pytorch_model.bin.index.json ./quant_config.json ./sentencepiece.bpe.model ./tekken.json $' "$T/have"
expect 0 "an adapter" "$HONE" pull $P o/lora
says "needs its base" 'an adapter; .*' "$T/out"
says "as is said" 'hone convert .* --base BASE.gguf -o lora.gguf' "$T/out"
expect 0 "an adapter as PyTorch alone saves it" "$HONE" pull $P o/oldlora
ls "$T/cache/models--o--oldlora/snapshots/$C" | tr '\n' ' ' >"$T/have"
says "comes, and no optimizer" '^adapter_config.json adapter_model.bin $' "$T/have"
[ -f "$T/cache/models--o--ck/snapshots/$C/added_tokens.json" ] && ok "an empty file is one, too" || not_ok "an empty file is one, too"
rules
expect 0 "offline: all of a checkpoint" "$HONE" pull --offline o/ck --json
says "is told" '"kind":"checkpoint",.*"path":"model-00002-of-00002.safetensors","size":6000' "$T/out"
expect 0 "offline: all parts of a set" "$HONE" pull --offline o/split --json
[ "$(grep -o '"cached":true' "$T/out" | wc -l)" -eq 3 ] && ok "are told" || not_ok "are told" "$T/out"
begin "hub:/resolve/$C/model-00002 status 500"
expect 5 "a checkpoint of which a part does not come" "$HONE" pull $P o/ck
expect 3 "is not here" "$HONE" pull --offline o/ck
says "and it is said what is missing" 'not whole on this machine: part 2 of 2 is missing'
begin
rm -rf "$T/cache"
pull o/one:Q4_K_M
cp "$GOT" "$BLOBS/$C" && ln -sf "../../blobs/$C" "$GOT"
echo x >"$BLOBS/$SHA.hone-part" && echo x >"$BLOBS/$SHA.hone-part.json"
pull o/one:Q4_K_M
[ "$(readlink "$GOT")" = "../../blobs/$SHA" ] && ok "a link to another blob is set right" || not_ok "a link to another blob is set right"
[ ! -e "$BLOBS/$SHA.hone-part" ] && [ ! -e "$BLOBS/$SHA.hone-part.json" ] && ok "what a killed pull left of a whole file goes" ||
    not_ok "what a killed pull left of a whole file goes"
D=1111111111111111111111111111111111111111
begin
pull o/one:Q4_K_M
rules "hub:/revision sha $D"
expect 0 "a branch that has moved on" "$HONE" pull $P o/one:Q4_K_M --json
says "names its new commit" "\"commit\":\"$D\"" "$T/out"
count "and what is the same is not fetched again" 0 'resolve|store'
[ "$(cat "$T/cache/models--o--one/refs/main")" = $D ] && cmp -s "$T/cache/models--o--one/snapshots/$D/one-Q4_K_M.gguf" "$GOT" && ok "both commits have it" ||
    not_ok "both commits have it"
rules "hub:/revision sha 2222222222222222222222222222222222222222" "cdn:/store status 403"
expect 5 "one that moved on to what does not come" "$HONE" pull $P o/one:Q8_0
[ "$(cat "$T/cache/models--o--one/refs/main")" = $D ] && ok "stays where it was" || not_ok "stays where it was"
rules "hub:/tree size 562949953421312"
expect 4 "models that no machine has memory for" "$HONE" pull $P o/one
says "say how much, and how to take one all the same" 'smallest model there has 524288.00 GiB.*o/one:Q4_K_M takes it all the same'
expect 1 "and no disk room" "$HONE" pull $P o/one:Q4_K_M
says "say both numbers" 'the disk has [0-9.]* GB free; 562949.95 GB are to come'
rules
expect 0 "of a folder of the repository" "$HONE" pull $P hf.co/o/two/tree/main/b --json
says "the one that is in it" '"path":"b/y-Q4_K_M.gguf"' "$T/out"
rules
expect 0 "a proxy is not asked for this machine" env http_proxy=http://127.0.0.1:1 all_proxy=http://127.0.0.1:1 "$HONE" pull $P o/one:Q8_0
rules
expect 5 "HF_ENDPOINT with a path" env HF_ENDPOINT=http://127.0.0.1:$PORT/mirror/ "$HONE" pull $P o/one
count "is the beginning of all addresses" 1 '^hub GET /mirror/api/models/o/one/revision/main '
expect 2 "HF_ENDPOINT that is no address" env HF_ENDPOINT=/ "$HONE" pull $P o/one
says "says which and what is expected" "HF_ENDPOINT '/': it is not of http or https; expected an address"

# ---- what goes wrong on the way, and it comes all the same ---------------------------------------------------

gets "redirects within the hub, then to the store" "hub:/o/one/resolve relative x 1"
gets "the store calls the content another name" "cdn:/store etag another"
gets "the connection breaks" "cdn:/store cut 70000 2" "cdn:/store cut 10000 1"
gets "a server without ranges" "cdn:/store norange x"
count "is asked once" 1 '^cdn GET /store'
gets "one without, whose connection breaks" "cdn:/store norange x 1" "cdn:/store cut 1000 1"
gets "a signed address runs out" "cdn:/store cut 1000 1" "cdn:/store expired x 1"
gets "a signed address runs out for all connections" "cdn:/store cut 1000 1" "cdn:/store expired x 3"
gets "all connections break at once, again and again" "cdn:/store cut 5000 30"
gets "503 twice" "hub:/resolve status 503 2"
gets "503 of the API" "hub:/api status 503 2"
gets "a body shorter than said" "cdn:/store cut 65000 3"
gets "a body longer than said" "cdn:/store long x 1"
gets "429 with Retry-After" "hub:/resolve retry 0 1"
gets "429 with RateLimit" "hub:/api/models/o/one/tree rate 0 1"
gets "a limit that is not used up is no wait" "hub:/api/models/o/one/tree busy 800 1" "hub:/resolve busy 800 1"
gets "what an answer that is cut short says is none" "hub:/api/models/o/one/tree retry+short 800 1"
gets "429 until a time" "hub:/resolve until 1 1"
says "by the server's own clock" 'status 429: trying again in 1.01 s'
gets "416, once" "cdn:/store status 416 1"
gets "a list of files in pages" "hub:/tree/ page 2"
[ "$(asked /tree/)" -ge 2 ] && ok "all pages are asked for" || not_ok "all pages are asked for" "$F/log"
gets "a flipped byte, once" "cdn:/store flip 200000 1"
gets "content that changes between pieces, once" "cdn:/store etag before 2" "cdn:/store etag after 1"
begin "cdn:/store stall 1000 1"
expect 0 "silence" "$HONE" pull $P --timeout 1 --connections 1 o/one:Q4_K_M

# ---- what is refused -----------------------------------------------------------------------------------------

refuses "a flipped byte each time" 'hash is [0-9a-f]{64}; expected '"$SHA" "cdn:/store flip 200000"
[ ! -e "$BLOBS/$SHA.hone-part" ] && ok "nothing wrong is kept" || not_ok "nothing wrong is kept"
refuses "content that changes each time" 'changed while it came' "cdn:/store newetag x"
refuses "another Content-Range" 'Content-Range bytes 1-' "cdn:/store badrange x"
refuses "another Content-Length" 'and another Content-Length' "cdn:/store short x"
refuses "packed content" 'Content-Encoding gzip' "cdn:/store gzip x"
refuses "packed answers" 'Content-Encoding gzip' "hub:/resolve gzip x" "cdn:/store gzip x"
refuses "a redirect in a circle" 'more than 5 redirects' "hub:/resolve loop x"
refuses "a redirect to where nothing is encrypted" 'redirects to http://203.0.113.9:80, which is not encrypted' "hub:/resolve absolute http://203.0.113.9/x"
refuses "a redirect to a file of this machine" 'not of http or https' "hub:/resolve absolute file:///etc/passwd"
refuses "no answer at all" 'Empty reply|reset' "hub:/resolve drop x"
refuses "a repository that is not there, private or gated" 'no such repository.*private, or gated' "hub:/api private x"
refuses "a token that nobody knows, where none was sent" 'no such repository' "hub:/api unknown x"
HF_TOKEN=hf_old
export HF_TOKEN
refuses "a token that nobody knows" 'refuses the token of HF_TOKEN .*Invalid credentials' "hub:/api unknown x"
refuses "one that nobody knows any more" 'refuses the token of HF_TOKEN ' "hub:/resolve unknown x"
unset HF_TOKEN
printf hf_old >"$HF_HOME/token"
refuses "one of a file" "refuses the token of $HF_HOME/token " "hub:/api unknown x"
rm "$HF_HOME/token"
refuses "a gated one" 'accept its licence at http://127.0.0.1:[0-9]*/o/one' "hub:/resolve gated x"
refuses "a gated API" 'accept its licence' "hub:/api gated x"
refuses "a revision that is not there" "no revision 'main'" "hub:/api code RevisionNotFound"
refuses "a file that is gone" "no file 'one-Q4_K_M.gguf'" "hub:/resolve code EntryNotFound"
refuses "401 without a word" 'set HF_TOKEN' "hub:/resolve status 401"
refuses "403 without a word" 'forbids it' "hub:/resolve status 403"
refuses "403 of the store" 'status 403 from http://127.0.0.1:[0-9]*/store' "cdn:/store status 403"
refuses "429 for ever" 'too many requests' "hub:/api status 429"
refuses "429 for a day" 'asks to be left alone for 86400 s' "hub:/api retry 86400"
refuses "429 of a file for a day" 'asks to be left alone for 86400 s' "hub:/resolve retry 86400"
refuses "429 of the store for a day" 'asks to be left alone for 86400 s' "cdn:/store retry 86400"
refuses "416 each time" 'does not have these bytes' "cdn:/store status 416"
refuses "all of it for a range, and longer than it is" 'sends 300100 bytes; expected 300000' "cdn:/store norange+short x"
refuses "a list without an end" 'is its own next one' "hub:/tree/ self x"
refuses "a deep list" 'not JSON' "hub:/tree/ deep 1000"
refuses "500 for ever" 'status 500' "hub:/api status 500"
refuses "500 of the store for ever" '4 times in a row' "cdn:/store status 500"
refuses "a portal's page" 'no hub.*a web page' "hub:/api html x"
refuses "a portal before the file" 'no X-Repo-Commit' "hub:/resolve html x"
refuses "no commit" 'no X-Repo-Commit' "hub:/resolve nocommit x"
refuses "another content than the list says" 'now says its content is abc' "hub:/resolve linked abc"
refuses "another size than the list says" 'now says 300000 bytes, its list of files says 300007' "hub:/tree size 7"
refuses "a commit that is none" "says its commit is '../../x'" "hub:/revision sha ../../x"
for path in ../x /etc/x a//b a/../../b 'a\\\\b' . .. 'a\u001b[31mb' "$(printf '%0300d' 0)"; do
    refuses "a file named $path" 'which cannot be' "hub:/tree path $path"
done
refuses "a zero byte in a name" 'expected no NUL' "hub:/tree path a\u0000b"
begin "hub:/revision sha 1111111111111111111111111111111111111111"
expect 5 "another commit than was asked for" "$HONE" pull $P "o/one@$C:Q4_K_M"
says "says so" "asked for commit $C"
begin "hub:/tree/ many 15"
roof=400000 # KiB
"$HONE" version | grep -q fsanitize && roof=unlimited
expect 3 "a list of millions of nothings costs no memory" sh -c "ulimit -v $roof;"' exec "$@"' x "$HONE" pull $P o/one
[ ! -e "$T/x" ] && [ ! -e "$T/cache/x" ] && ok "nothing is written elsewhere" || not_ok "nothing is written elsewhere"
begin
expect 2 "a type that is not there" "$HONE" pull $P o/one:Q3_K_S
says "what there is" 'Q4_K_M .*Q8_0'
expect 2 "a type that two files have" "$HONE" pull $P o/two:Q4_K_M
says "which" 'a/x-Q4_K_M.gguf and b/y-Q4_K_M.gguf'
expect 3 "a set with a hole" "$HONE" pull $P o/hole
says "which part" 'part 2 of 3 is missing'
expect 3 "nothing for hone" "$HONE" pull $P o/none
expect 2 "a path" "$HONE" pull $P ./x.gguf
expect 2 "a name that is on no list" "$HONE" pull $P never-heard
says "what it could be" 'owner/repo .*ollama:never-heard'
count "nothing of these was fetched" 0 'resolve|store'
expect 2 "http beyond this machine" "$HONE" pull $P http://203.0.113.9/x.gguf
says "says what to do" 'expected https'
run env HF_TOKEN="a b" "$HONE" pull $P o/one:Q4_K_M
[ "$rc" -eq 0 ] && ok "a token ends at a blank" || not_ok "a token ends at a blank" "$T/err"
expect 2 "a token that is none" env HF_TOKEN="$(printf 'a\033b')" "$HONE" pull $P o/one

# ---- stopped on the way ------------------------------------------------------------------------------------------

SLOW="--retry-wait 0.01 --piece 0.0625 --connections 2"
noted() { grep -q '"have":\[65536' "$BLOBS/$SHA.hone-part.json"; }
for sig in INT TERM KILL; do
    begin "cdn:/store slow 16000"
    "$HONE" pull $SLOW o/one:Q4_K_M >"$T/out" 2>"$T/err" &
    S=$!
    await noted
    kill -$sig $S
    wait $S 2>/dev/null
    _rc=$?
    case $sig:$_rc in
    INT:130 | TERM:6 | KILL:137) ok "$sig: exit code $_rc" ;;
    *) not_ok "$sig: exit code $_rc" "$T/err" ;;
    esac
    [ -e "$BLOBS/$SHA.hone-part" ] && noted && [ ! -e "$GOT" ] && ok "$sig: part and journal stay, no file" || not_ok "$sig: part and journal"
    rules
    expect 0 "$sig: the same command goes on" "$HONE" pull $P o/one:Q4_K_M --json
    same "$sig: and it is right" "$GOT" "$ONE"
    [ "$(sed -n 's/.*"fetched":\([0-9]*\).*/\1/p' "$T/out")" -le 234464 ] && ok "$sig: only what was missing came" ||
        not_ok "$sig: only what was missing came" "$T/out"
done
# on a terminal it is told how far it is, how fast, how long yet
if ${CC:-cc} -O1 -o "$T/pty" tests/e2e/pty.c -lutil 2>"$T/err" && "$T/pty" -t 60 /bin/true </dev/null >/dev/null 2>&1; then
    begin "cdn:/store slow 24000"
    "$T/pty" -t 60 -w 100 "$HONE" pull $SLOW o/one:Q4_K_M </dev/null >"$T/screen" 2>"$T/err"
    tr '\r' '\n' <"$T/screen" >"$T/lines"
    says "progress on a terminal" 'one-Q4_K_M.gguf  [0-9.]+ [kM]B of 300 kB  [0-9.]+ [kM]B/s  0:0[0-9] left +[0-9]+ %' "$T/lines"
else
    skip "progress on a terminal" "no pseudo-terminal"
fi
# a part whose bytes are not what its journal says
begin "cdn:/store slow 16000"
"$HONE" pull $SLOW o/one:Q4_K_M 2>/dev/null >&2 &
S=$!
await noted
kill -KILL $S
wait $S 2>/dev/null
printf 'XXXX' | dd of="$BLOBS/$SHA.hone-part" bs=1 seek=100 conv=notrunc 2>/dev/null
rules
expect 0 "a part that is damaged comes anew" "$HONE" pull $P o/one:Q4_K_M
same "and it is right" "$GOT" "$ONE"
for journal in '{"schema":"hone.part/1","etag":"'$SHA'","size":300000,"piece":4096,"have":[9999]}' '[[[' \
    '{"schema":"hone.part/1","etag":"'$SHA'","size":300000,"piece":0,"have":[]}' \
    '{"schema":"hone.part/1","etag":"'$SHA'","size":300000,"piece":65536,"have":[-1,0,0,0,0]}' \
    '{"schema":"hone.part/1","etag":"other","size":300000,"piece":65536,"have":[65536,65536,65536,65536,37856]}'; do
    begin
    mkdir -p "$BLOBS"
    head -c 300000 /dev/zero >"$BLOBS/$SHA.hone-part"
    echo "$journal" >"$BLOBS/$SHA.hone-part.json"
    expect 0 "a journal that is none" "$HONE" pull $P o/one:Q4_K_M
    same "is not believed" "$GOT" "$ONE"
done

# ---- two at a time ------------------------------------------------------------------------------------------------

begin "cdn:/store slow 40000"
for i in 1 2; do
    "$HONE" pull $SLOW o/one:Q4_K_M >"$T/out$i" 2>"$T/err$i" &
    eval "S$i=$!"
done
wait $S1
_a=$?
wait $S2
[ $_a -eq 0 ] && [ $? -eq 0 ] && ok "two at a time: both have it" || not_ok "two at a time" "$T/err1" "$T/err2"
[ "$(bytes)" -eq 300000 ] && ok "it came once" || not_ok "it came once" "$F/log"
cat "$T/err1" "$T/err2" >"$T/errs"
says "one waited" 'another program downloads it' "$T/errs"
begin "cdn:/store slow 16000"
"$HONE" pull $SLOW o/one:Q4_K_M >/dev/null 2>&1 &
S1=$!
await noted
"$HONE" pull $P o/one:Q4_K_M >/dev/null 2>"$T/err2" &
S2=$!
await grep -q 'another program' "$T/err2"
kill -KILL $S1
wait $S1 2>/dev/null
rules
wait $S2 && same "the first is killed, the second goes on" "$GOT" "$ONE" || not_ok "the first is killed, the second goes on" "$T/err2"

# what the killed one had asked is written down by and by
was=x
while [ "$was" != "$(wc -c <"$F/log")" ]; do
    was=$(wc -c <"$F/log")
    sleep 0.3
done
# another program has the lock that all share
if command -v flock >/dev/null; then
    begin
    mkdir -p "$T/cache/.locks/models--o--one"
    flock "$T/cache/.locks/models--o--one/$SHA.lock" sh -c 'until [ -e "$1" ]; do sleep 0.02; done' x "$T/let-go" &
    L=$!
    await sh -c '! flock -n "$1" true' x "$T/cache/.locks/models--o--one/$SHA.lock"
    "$HONE" pull $P o/one:Q4_K_M >/dev/null 2>"$T/err2" &
    S2=$!
    await grep -q 'another program' "$T/err2"
    count "while another program has the lock no byte is fetched" 0 'resolve|store'
    : >"$T/let-go"
    wait $S2 && same "then it comes" "$GOT" "$ONE" || not_ok "then it comes" "$T/err2"
    wait $L
fi

# ---- no network, no room ---------------------------------------------------------------------------------------------

rules
expect 0 "--offline: it is here" "$HONE" pull --offline o/one:Q4_K_M
expect 0 "HF_HUB_OFFLINE: it is here" env HF_HUB_OFFLINE=1 "$HONE" pull o/one:Q4_K_M
expect 3 "--offline: it is not here" "$HONE" pull --offline o/one:Q8_0
count "nobody was asked" 0 .
expect 0 "the hub is down: what is here is taken" env HF_ENDPOINT=http://127.0.0.1:1 "$HONE" pull o/one:Q4_K_M
says "and said" 'what is here is taken'
expect 5 "the hub is down, and nothing is here" env HF_ENDPOINT=http://127.0.0.1:1 "$HONE" pull $P o/one:Q8_0
find "$T/cache" -newer "$F/rules" >"$T/newer"
chmod -R a-w "$T/cache"
expect 0 "a cache that is complete is only read" "$HONE" pull $P o/one:Q4_K_M
chmod -R u+w "$T/cache"
[ ! -s "$T/newer" ] && ok "nothing of it is written" || not_ok "nothing of it is written" "$T/newer"
begin
expect 1 "no room" sh -c 'ulimit -f 200; exec "$@"' x "$HONE" pull $P o/one:Q4_K_M
says "says how much it needs" 'no room for its 300000 bytes'
[ ! -e "$BLOBS/$SHA.hone-part" ] && ok "and leaves nothing" || not_ok "and leaves nothing"

# ---- addresses -------------------------------------------------------------------------------------------------------

U=http://127.0.0.1:$CDN/plain/file.gguf
rules "cdn:/plain cut 70000 2"
expect 3 "offline: an address that is not here" "$HONE" pull --offline "$U"
expect 0 "a file from an address" "$HONE" pull $P "$U"
same "into the folder of models" "$T/data/hone/models/file.gguf" "$F/plain/file.gguf"
rules
expect 0 "again: it is here" "$HONE" pull $P "$U"
rules
expect 0 "offline: it is here" "$HONE" pull --offline "$U"
expect 2 "offline: to another place" "$HONE" pull --offline "$U" -o "$T/own.gguf"
count "nobody was asked" 0 .
expect 0 "under a name of one's own" "$HONE" pull $P "$U" -o "$T/own.gguf"
same "all of it" "$T/own.gguf" "$F/plain/file.gguf"
expect 5 "an address where nothing is" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/no.gguf"
[ "$(ls "$T/data/hone/models" | wc -l)" -eq 1 ] && ok "leaves nothing" || not_ok "leaves nothing"
rules "cdn:/plain html x"
expect 5 "a page instead of a file" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/no.gguf"
rules "cdn:/plain newetag x"
expect 5 "a file that changes" "$HONE" pull $P "$U" -o "$T/other.gguf"
[ ! -e "$T/other.gguf" ] && ok "is not taken" || not_ok "is not taken"

# what came of an address stays when it cannot be asked; a server without ranges begins again, behind the hashed ones
rules "cdn:/plain cut 30000"
expect 5 "an address that is cut for good" "$HONE" pull --retry-wait 0.01 --piece 0.0625 --retries 1 --connections 1 "$U" -o "$T/late.gguf"
had=$(sed -n 's/.*"have":\[\([0-9]*\),.*/\1/p' "$T/late.gguf.hone-part.json")
[ "${had:-0}" -gt 0 ] && ok "leaves a part" || not_ok "leaves a part" "$T/err"
rules "cdn:/plain status 404"
expect 5 "asked when it is not there" "$HONE" pull --retry-wait 0.01 --retries 1 "$U" -o "$T/late.gguf"
[ -s "$T/late.gguf.hone-part.json" ] && [ -s "$T/late.gguf.hone-part" ] && ok "the part stays" || not_ok "the part stays" "$T/err"
rules "cdn:/plain norange x"
expect 0 "asked where there are no ranges" "$HONE" pull $P --connections 1 "$U" -o "$T/late.gguf"
same "all of it" "$T/late.gguf" "$F/plain/file.gguf"
rules "cdn:/plain noetag x 1" "cdn:/plain noetag+cut 30000 1" "cdn:/plain noetag x"
expect 0 "content that nothing names" "$HONE" pull $P "$U" -o "$T/nameless.gguf"
same "comes in one piece" "$T/nameless.gguf" "$F/plain/file.gguf"
count "from the beginning again" 2 '^cdn GET .* range=- '
rules "cdn:/plain noetag x 1" "cdn:/plain noetag+cut 30000"
expect 5 "content that nothing names, cut for good" "$HONE" pull $P "$U" -o "$T/never.gguf"
says "says why it begins anew" 'neither ETag nor Last-Modified'
[ -z "$(ls "$T" | grep never)" ] && ok "and leaves nothing" || not_ok "and leaves nothing"
rules "cdn:/plain weak x"
expect 0 "a weak ETag names nothing" "$HONE" pull $P "$U" -o "$T/weak.gguf"
count "one piece" 1 '^cdn GET .* range=- '
rules "cdn:/plain modified 20 2" "cdn:/plain modified 21"
expect 0 "content that was changed on another day" "$HONE" pull $P "$U" -o "$T/days.gguf"
says "is another" 'changed while it came'
same "and comes whole" "$T/days.gguf" "$F/plain/file.gguf"
rules "cdn:/plain etag one 2" "cdn:/plain noetag x 1"
expect 0 "content whose name is gone" "$HONE" pull $P "$U" -o "$T/gone.gguf"
says "may be another" 'changed while it came'

mkdir -p "$F/plain/b" && head -c 9000 $TINY >"$F/plain/b/file.gguf" && cp $CHAT "$F/plain/a b.gguf"
rules
expect 2 "another address with the same name" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/b/file.gguf"
says "is not taken for the first" 'is there already, and came from another address'
expect 2 "another file that has the name" "$HONE" pull $P "$U" -o "$F/plain/b/file.gguf"
says "is told by its size" 'has 9000 bytes, where the address has 250000'
cp "$F/plain/file.gguf" "$T/copy.gguf"
expect 0 "one of the same size is taken for it" "$HONE" pull $P "$U" -o "$T/copy.gguf"
expect 1 "a folder is no file" "$HONE" pull $P "$U" -o "$T/data"
says "says so before a byte comes" 'a directory; expected|is a directory'
expect 2 "a name that no file can have" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/$(printf '%0250d' 0).gguf"
says "says how long it may be" 'up to 239 bytes'
expect 0 "an address with a blank" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/a%20b.gguf"
expect 0 "is a name of what came" "$HONE" tokenize -m "http://127.0.0.1:$CDN/plain/a%20b.gguf" -p x
rules
expect 2 "--list, offline by the environment" env HF_HUB_OFFLINE=True "$HONE" pull --list o/one
count "asks nobody" 0 .

# ---- ollama ----------------------------------------------------------------------------------------------------------------

blob() { # blob FILE: into the registry; its digest in $D, its size in $N
    D=$(sha256sum <"$1" | cut -d' ' -f1)
    N=$(wc -c <"$1")
    cp "$1" "$F/ollama/blobs/sha256-$D"
}
layer() { printf '{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s","size":%d}' "$1" "$D" "$N"; }
blob "$ONE"
model=$(layer model)
MD=$D
printf 'MIT' >"$T/mit" && blob "$T/mit"
license=$(layer license)
printf '{}' >"$T/config.json" && blob "$T/config.json"
config=$(layer config)
M='{"schemaVersion":2,"config":'$config',"layers":['$model','$license']}'
echo "$M" >"$F/ollama/library/m/1b"
R=ollama:127.0.0.1:$PORT/library/m
rules "cdn:/blobs cut 70000 1"
expect 0 "a model of a registry" "$HONE" pull $P "$R:1b"
same "its GGUF" "$T/ollama/blobs/sha256-$MD" "$ONE"
same "its manifest, byte by byte" "$T/ollama/manifests/127.0.0.1:$PORT/library/m/1b" "$F/ollama/library/m/1b"
count "nobody there sees a token" 0 'auth=[^-]'
expect 0 "without a network it is here" "$HONE" pull --offline "$R:1b"
R1=ollama:127.0.0.1:1/library/m
cp -r "$T/ollama/manifests/127.0.0.1:$PORT" "$T/ollama/manifests/127.0.0.1:1"
expect 0 "the registry is down: what is here is taken" "$HONE" pull $P "$R1:1b"
says "and said" 'what is here is taken'
rm -rf "$T/ollama"
echo "$M" | sed 's/sha256:[0-9a-f]\{64\}","size":3}/sha256:..\/..\/x","size":3}/' >"$F/ollama/library/m/bad"
expect 5 "a digest that is none" "$HONE" pull $P "$R:bad"
says "which" 'expected sha256: and 64'
echo "$M" | sed 's/image.model/image.tensor/' >"$F/ollama/library/m/tensor"
expect 3 "ollama's own tensors" "$HONE" pull $P "$R:tensor"
expect 5 "a tag that is not there" "$HONE" pull $P "$R:none"
rules "cdn:/blobs flip 5"
expect 5 "a blob that is wrong" "$HONE" pull $P "$R:1b"
rules "hub:/v2 status 401"
expect 5 "a registry that wants a key" "$HONE" pull $P "$R:1b"
says "says who has one" 'ollama pull'
[ ! -e "$T/ollama/manifests" ] && ok "no manifest of these" || not_ok "no manifest of these"

# ---- a newcomer's five minutes: what README.md says of getting a model, word by word -----------------------------

name=$(sed -n 's/.*`hone pull \([a-z0-9.-]*\)`.*/\1/p' README.md | head -n 1)
chat=$(sed -n 's/.*`hone chat -m \([a-z0-9.-]*\)`.*/\1/p' README.md | head -n 1)
run "$HONE" list --names --json
repo=$(tr '{' '\n' <"$T/out" | sed -n "s/.*\"$name\".*\"\([A-Za-z0-9._-]*\/[A-Za-z0-9._-]*\)\".*/\1/p" | head -n 1)
if [ -n "$repo" ] && [ "$name" = "$chat" ]; then ok "README.md: hone pull $name ($repo)"; else not_ok "README.md: hone pull $name, chat -m $chat: '$repo'" "$T/out"; fi
mkdir -p "$F/repos/$repo"
cp $CHAT "$F/repos/$repo/x-q4_k_m.gguf"
cp $TINY "$F/repos/$repo/x-q2_k.gguf"
begin
expect 0 "gets it" "$HONE" pull $P "$name"
cat "$T/err" >>"$T/out"
says "and says why this one" '[qQ]4_[kK]_[mM]' "$T/out"
expect 0 "hone list shows it" "$HONE" list
says "by its name" "$repo" "$T/out"
echo 'Hello!' >"$T/hello"
"$HONE" chat -m "$chat" --temp 0 -n 40 <"$T/hello" >"$T/talked" 2>"$T/err" && [ -s "$T/talked" ] && ok "hone chat -m $chat talks" ||
    not_ok "hone chat -m $chat talks" "$T/err"
"$HONE" chat -m $CHAT --temp 0 -n 40 <"$T/hello" >"$T/out" 2>"$T/err"
same "as with the file itself" "$T/out" "$T/talked"
expect 0 "and it talks" "$HONE" run --chat -m "$chat" -p "Hello!" --temp 0 -n 40
cp "$T/out" "$T/talked"
"$HONE" run --chat -m $CHAT -p "Hello!" --temp 0 -n 40 >"$T/out" 2>"$T/err"
same "as the file itself does" "$T/out" "$T/talked"
# any `owner/repo:TYPE` there, `ollama:NAME` or address goes as well; a folder of transformers' by hone convert
expect 0 "owner/repo:TYPE" "$HONE" pull $P "$repo:q2_k"
blob $CHAT
echo '{"schemaVersion":2,"layers":['"$(layer model)"']}' >"$F/ollama/library/m/talk"
expect 0 "ollama:NAME" "$HONE" pull $P "$R:talk"
expect 0 "an address" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/a%20b.gguf"
for name in "$R:talk" "http://127.0.0.1:$CDN/plain/a%20b.gguf"; do
    "$HONE" run --chat -m "$name" -p "Hello!" --temp 0 -n 40 >"$T/out" 2>"$T/err"
    same "  $name talks alike" "$T/out" "$T/talked"
done
hf_folder "$F/repos/o/hf"
expect 0 "a folder of transformers', into a cache of an odd name" env HF_HUB_CACHE="$T/it's my \$cache" "$HONE" pull $P o/hf
command=$(sed -n 's/^  \(hone convert .*\)$/\1/p' "$T/out")
(cd "$T" && hone() { "$HONE" "$@"; } && eval "$command") >"$T/out" 2>"$T/err" && ok "$command" || not_ok "the command that it says: $command" "$T/err"
expect 0 "makes a model of it" "$HONE" inspect "$T/hf.gguf"
# a repository that has a GGUF, too
head -c 3000 $TINY >"$F/repos/o/hf/m-Q4_0.gguf"
begin
expect 0 "a GGUF goes before a checkpoint" "$HONE" pull $P o/hf --json
says "it alone" '"kind":"model",.*"files":\[{"path":"m-Q4_0.gguf"[^}]*}\]' "$T/out"
expect 3 "--checkpoint, offline: it is not here" "$HONE" pull --offline --checkpoint o/hf
says "says how it comes" '`hone pull --checkpoint o/hf` gets it'
expect 0 "--checkpoint" "$HONE" pull $P --checkpoint o/hf --json
says "is that, and no GGUF" '"kind":"checkpoint",.*"files":\[{"path":"config.json"[^}]*},{"path":"model.safetensors"[^}]*}\]' "$T/out"
expect 0 "offline it is here" "$HONE" pull --offline --checkpoint o/hf --json
says "and told as one" '"kind":"checkpoint",.*"path":"model.safetensors"' "$T/out"
expect 0 "hone convert means the checkpoint by the name of both" "$HONE" convert o/hf -o "$T/hf2.gguf"
same "all of it" "$T/hf2.gguf" "$T/hf.gguf"
expect 2 "--checkpoint of a type" "$HONE" pull $P --checkpoint o/hf:Q4_0
expect 3 "--checkpoint where there is none" "$HONE" pull $P --checkpoint o/one
says "says so" 'nothing there that hone converts, and no checkpoint'
finish
