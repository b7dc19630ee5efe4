#!/bin/sh
# Names instead of files: what lies in caches and folders is listed, shown, run and removed by its name. The caches are
# made here, as huggingface_hub, ollama and people leave them; nothing asks a network. What a name means part by part is in
# tests/unit/test_names.c, what is found of odd caches in tests/unit/test_cache.c.
. tests/e2e/lib.sh

if [ ! -f "$TINY" ] || [ ! -f "$CHAT" ]; then
    skip "names of models" "$TINY or $CHAT is not here"
    finish
fi
TOP=$(pwd)
case $HONE in /*) ;; *) HONE=$TOP/$HONE ;; esac
unset HF_HOME HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME HONE_MODELS HF_ENDPOINT
HOME=$T HF_HUB_CACHE=$T/hub OLLAMA_MODELS=$T/ollama XDG_DATA_HOME=$T/data XDG_CONFIG_HOME=$T/config
export HOME HF_HUB_CACHE OLLAMA_MODELS XDG_DATA_HOME XDG_CONFIG_HOME
cd "$T" || exit 1
TINY=$TOP/$TINY CHAT=$TOP/$CHAT

C=0123456789abcdef0123456789abcdef01234567
D=fedcba9876543210fedcba9876543210fedcba98
R=hub/models--org--tiny-GGUF
A=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
B=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb

# link SNAPSHOT PATH BLOB: as huggingface_hub links it
link() {
    mkdir -p "$R/snapshots/$1" && ln -s "../../blobs/$3" "$R/snapshots/$1/$2"
}
# a hub's repository: one model in two revisions, another type, a set with a hole
mkdir -p "$R/blobs" "$R/refs" "$R/.no_exist/$C"
printf %s "$C" >"$R/refs/main"
cp "$TINY" "$R/blobs/$A"
cp "$CHAT" "$R/blobs/$B"
link "$C" tiny-F16.gguf "$A"
link "$D" tiny-F16.gguf "$A"
link "$C" tiny-Q8_0.gguf "$B"
link "$C" tiny-Q2_K-00001-of-00002.gguf "$B"
link "$C" README.md "$B"
link "$C" tiny-Q3_K_M.gguf dddddddddddddddddddddddddddddddddddddddd
echo begun >"$R/blobs/cccccccccccccccccccccccccccccccccccccccc.hone-part"
# the same without links, as it is where there are none
mkdir -p hub/models--org--copy/snapshots/$C hub/models--org--copy/refs
cp "$TINY" hub/models--org--copy/snapshots/$C/plain.gguf
printf %s "$C" >hub/models--org--copy/refs/main
# what others leave, and what is meant badly
mkdir -p hub/models--org--evil/snapshots/$C hub/models--org--evil/refs hub/datasets--a--b/snapshots/$C
printf %s "$C" >hub/models--org--evil/refs/main
ln -s "$TINY" hub/models--org--evil/snapshots/$C/out-Q4_0.gguf
printf 'not a model' >"hub/models--org--evil/snapshots/$C/junk-Q8_0.gguf"
cp "$TINY" "hub/models--org--evil/snapshots/$C/$(printf 'esc\033[31m\nname')-Q6_K.gguf"
# ollama's
sum=$(sha256sum "$CHAT" | cut -c 1-64)
printf '{"temperature":0.5}' >params
psum=$(sha256sum params | cut -c 1-64)
mkdir -p ollama/blobs ollama/manifests/registry.ollama.ai/library/talker
cp "$CHAT" "ollama/blobs/sha256-$sum"
cp params "ollama/blobs/sha256-$psum"
printf '{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%s},{"mediaType":"application/vnd.ollama.image.params","digest":"sha256:%s","size":19}]}' \
    "$sum" "$(wc -c <"$CHAT" | tr -d ' ')" "$psum" >ollama/manifests/registry.ollama.ai/library/talker/latest
# a folder
mkdir -p models
cp "$TINY" models/mine.gguf

# ---- list ----
expect 0 "list" "$HONE" list
cp "$T/out" listed
while read -r pattern; do says "lists $pattern" "$pattern" listed; done <<'ROWS'
^NAME +SIZE +TYPE
^org/tiny-GGUF:F16 +5.3 MiB +F16 +llama +2.8 M +yes
^org/tiny-GGUF:Q8_0 +2.8 MiB +Q8_0 +llama
^org/tiny-GGUF@fedcba9876543210fedcba9876543210fedcba98:F16
^org/tiny-GGUF:Q2_K +.*incomplete: part 2 of 2 is missing
^org/tiny-GGUF:Q3_K_M +.*incomplete: .*is gone
^org/tiny-GGUF +6 B|^org/tiny-GGUF +.*unfinished: a download
^org/copy/plain.gguf +5.3 MiB +F16
^org/evil:Q4_0 .*leads out of the cache
^org/evil:Q8_0 .*broken:
^ollama:talker +2.8 MiB +Q8_0 +llama
^mine +5.3 MiB +F16
ROWS
if LC_ALL=C grep -q "$(printf '\033')" listed; then not_ok "no escape sequence goes out" listed; else ok "no escape sequence goes out"; fi
[ "$(sed -n '2,$s/ .*//p' listed | LC_ALL=C sort -c 2>&1)" = "" ] && ok "sorted" || not_ok "sorted" listed
expect 0 "list as JSON" "$HONE" list --json
says "schema" '^\{"schema":"hone.list/1"' "$T/out"
says "a model with all that is known" '"name":"org/tiny-GGUF:F16","state":"ready","trouble":null,"where":"hub"' "$T/out"
says "parameters and family" '"type":"F16","family":"llama","parameters":2754816,"context":512' "$T/out"
expect 0 "words choose" "$HONE" list TALKER
[ "$(wc -l <"$T/out")" -eq 2 ] && ok "… one" || not_ok "… one" "$T/out"
expect 0 "paths alone" "$HONE" list --paths copy
same "… are right" "$T/out" - <<END
$T/hub/models--org--copy/snapshots/$C/plain.gguf
END
expect 0 "short names" "$HONE" list --names
says "… of the shipped ones" '^llama3.2-1b +bartowski/Llama-3.2-1B-Instruct-GGUF$' "$T/out"
mkdir -p config/hone && echo 'pet org/tiny-GGUF:F16' >config/hone/names
expect 0 "own short names" "$HONE" list --names pet --json
says "… are told apart" '"name":"pet","means":"org/tiny-GGUF:F16","own":true' "$T/out"
HOME='' HF_HUB_CACHE='' OLLAMA_MODELS='' XDG_DATA_HOME='' run sh -c "cd / && '$HONE' list"
[ "$rc" = 0 ] && grep -q 'no models here' "$T/err" && ok "nothing is here, and no home" || not_ok "nothing is here, and no home" "$T/err"

mkdir -p models && echo x >'models/$(touch hacked)`touch hacked`;.gguf'
expect 0 "words for completion" "$HONE" help --words models
says "… are names" '^ollama:talker$' "$T/out"
if grep -q hacked "$T/out"; then not_ok "… and nothing that a shell would run" "$T/out"; else ok "… and nothing that a shell would run"; fi
rm 'models/$(touch hacked)`touch hacked`;.gguf'

# ---- names in place of files ----
"$HONE" tokenize -m "$TINY" -p "a small test" >want
while read -r name; do
    run "$HONE" tokenize -m "$name" -p "a small test"
    same "-m $name" want "$T/out"
done <<ROWS
org/tiny-GGUF:F16
org/tiny-GGUF:f16
hf.co/org/tiny-GGUF/tiny-F16.gguf
https://huggingface.co/org/tiny-GGUF/blob/main/tiny-F16.gguf
org/tiny-GGUF@$D
org/copy
mine
pet
models/mine.gguf
ROWS
"$HONE" run -m "$CHAT" -p "Once" -n 8 --temp 0 >want 2>/dev/null
for name in org/tiny-GGUF ollama:talker talker org/tiny-GGUF:Q8_0; do
    run "$HONE" run -m "$name" -p "Once" -n 8 --temp 0
    same "run -m $name" want "$T/out"
done
run "$HONE" org/tiny-GGUF -p Once -n 8 --temp 0
same "hone NAME" want "$T/out"
run "$HONE" talker -p Once -n 8 --temp 0
same "hone BARE" want "$T/out"
expect 0 "inspect" "$HONE" inspect talker --json
says "… sees the file" "\"file\":\"$T/ollama/blobs/sha256-$sum\"" "$T/out"
expect 0 "measuring, in processes of its own" "$HONE" bench -m org/tiny-GGUF:F16 -p 8 -n 4 -r 1 --json
expect 2 "what is read is not written, by a name either" "$HONE" pack -m org/tiny-GGUF:Q8_0 -o "$R/blobs/$B"
says "… says so" 'nothing was touched'
cp "$TINY" "org-tiny"
mkdir -p org && cp "$CHAT" org/tiny-GGUF
run "$HONE" run -m org/tiny-GGUF -p "Once" -n 8 --temp 0
same "a path that is there wins" want "$T/out"
rm -r org
mkdir -p lora && cp "$TOP/models/hone-tiny-rhyme.lora.gguf" models/rhyme.gguf
expect 0 "adapters by name" "$HONE" run -m mine --lora rhyme:0.5 -p Once -n 4 --temp 0

echo '{"models":[{"name":"big","path":"org/tiny-GGUF:F16"}]}' >models.json
echo '{"models":[{"name":"big","path":"org/none"}]}' >none.json
"$HONE" serve -m small=talker --models-file models.json --port 0 -c 128 >serve.out 2>serve.err &
server=$!
serving() { gone $server || grep -q 'listening on' serve.err; }
await serving
grep -q 'listening on' serve.err && ok "a server of names" || not_ok "a server of names" serve.err
kill $server
wait $server
rm serve.err # what the first said is not heard again
"$HONE" serve --models-dir org/copy --port 0 -c 128 >serve.out 2>serve.err &
server=$!
await serving
grep -q 'listening on' serve.err && ok "a server of a repository" || not_ok "a server of a repository" serve.err
kill $server
wait $server
expect 3 "… of one that is not here" "$HONE" serve --models-file none.json --port 0
says "… says how to get it" 'models\[0\].path: org/none: .*`hone pull org/none`'

# ---- what is not here ----
absent() { # absent NAME PATTERN
    expect 3 "-m $1" "$HONE" run -m "$1" -p x -n 1
    says "… $2" "$2"
}
absent org/none '`hone pull org/none` gets it'
absent org/tiny-GGUF:Q6_K '`hone pull org/tiny-GGUF:Q6_K` gets it'
absent org/tiny-GGUF:Q2_K 'not whole on this machine'
absent org/tiny-GGUF:Q3_K_M 'is gone'
absent org/evil:Q4_0 'leads out of the cache'
absent ollama:none '`hone pull ollama:none` gets it'
absent llama3.2-1b 'llama3.2-1b stands for bartowski/Llama-3.2-1B-Instruct-GGUF'
absent mien 'did you mean mine\?'
absent none.gguf 'cannot open'
absent org/tiny-GUF 'did you mean org/tiny-GGUF\?.*`hone pull org/tiny-GUF` gets it'
expect 2 "-m hf.co/x" "$HONE" run -m hf.co/x -p y -n 1
says "… what a name is" 'expected owner/repo'
expect 2 "hone WORD is still a command" "$HONE" tokenise
says "… that was meant" 'did you mean tokenize'

expect 0 "a list of what is not here" "$HONE" list zzz
says "… is no empty machine" 'no model here has such a name'

# ---- show ----
expect 0 "show" "$HONE" show org/tiny-GGUF:F16
for p in '^model +org/tiny-GGUF:F16$' "^from +hf.co/org/tiny-GGUF at main, $C\$" '^family +llama$' '^weights +F16, 5.3 MiB$' \
    '^context +512 positions$' '^memory .*it fits$' 'a sequence takes +1.00 MiB at 512 positions|^a sequence takes'; do
    says "shows $p" "$p" "$T/out"
done
expect 0 "show as JSON" "$HONE" show talker --json
says "… all of it" '"name":"ollama:talker",.*"sampling":"\{\\"temperature\\":0.5\}"' "$T/out"
expect 0 "its settings alone" "$HONE" show talker --parameters
says "… of the store" '^\{"temperature":0.5\}$' "$T/out"
expect 0 "its template alone" "$HONE" show talker --template
"$HONE" inspect "$CHAT" --json | grep -q chat_template && [ -s "$T/out" ] && ok "… is one" || not_ok "… is one" "$T/out"
expect 1 "no licence is said" "$HONE" show mine --license
says "… so it is told" 'says nothing of license'
expect 2 "one text at a time" "$HONE" show mine --license --template

# ---- rm ----
expect 2 "rm asks, and cannot" "$HONE" rm org/tiny-GGUF:F16
says "… says how" 'expected --yes'
expect 0 "rm --dry-run" "$HONE" rm --dry-run org/tiny-GGUF:F16 --json
says "… frees nothing: another revision has it" '"removed":false' "$T/out"
[ -f "$R/snapshots/$C/tiny-F16.gguf" ] && ok "… removes nothing" || not_ok "… removes nothing"
expect 0 "rm of one type" "$HONE" rm -y org/tiny-GGUF:Q8_0
[ ! -e "$R/snapshots/$C/tiny-Q8_0.gguf" ] && [ -f "$R/blobs/$B" ] && ok "a blob that others link to stays" ||
    not_ok "a blob that others link to stays"
expect 0 "rm of a type in all revisions" "$HONE" rm -y org/tiny-GGUF:F16 --json
says "… frees its bytes" "\"freed\":$(wc -c <"$TINY" | tr -d ' ')" "$T/out"
[ ! -e "$R/blobs/$A" ] && ok "… its blob is gone" || not_ok "… its blob is gone"
expect 0 "rm of a link that leads out" "$HONE" rm -y org/evil:Q4_0
[ -s "$TINY" ] && ok "… leaves what it leads to" || not_ok "… leaves what it leads to"
expect 0 "rm of a repository" "$HONE" rm -y org/tiny-GGUF
[ ! -e "$R" ] && [ -d hub/models--org--copy ] && ok "… all of it, and no other" || not_ok "… all of it, and no other"
# two files of one type: neither goes, and none is taken to be absent
E=hub/models--org--twins/snapshots/$C
mkdir -p "$E" hub/models--org--twins/refs
printf %s "$C" >hub/models--org--twins/refs/main
cp "$TINY" "$E/x-q4_k_m.gguf"
cp "$TINY" "$E/y-Q4_K_M.gguf"
expect 2 "rm of what two files are" "$HONE" rm -y org/twins:Q4_K_M
says "… names one by its path" 'org/twins/[xy]-'
[ -e "$E/x-q4_k_m.gguf" ] && [ -e "$E/y-Q4_K_M.gguf" ] && ok "… both stay" || not_ok "… both stay"
run "$HONE" inspect org/twins:Q4_K_M
says "… and it is not called absent" '[xy]-[qQ]4'
# manifests of others: of a name that hone does not take, not whole, and with as many layers as it reads
O=ollama/manifests/my_reg:5000/library/talker
mkdir -p "$O" "ollama/manifests/odd"
cp ollama/manifests/registry.ollama.ai/library/talker/latest "$O/x.y z"
expect 0 "rm of ollama's where another names the blob" "$HONE" rm --dry-run ollama:talker --json
if grep -q "$sum" "$T/out"; then not_ok "… the blob stays" "$T/out"; else ok "… the blob stays"; fi
rm -r ollama/manifests/my_reg:5000
printf '{"config":{"digest":"sha256:%s"},"manifests":[{"digest":"sha256:%s"}]}' "$psum" "$sum" >ollama/manifests/odd/list
expect 0 "… or what is no manifest for hone" "$HONE" rm --dry-run ollama:talker --json
if grep -q "$sum" "$T/out"; then not_ok "… the blob stays" "$T/out"; else ok "… the blob stays"; fi
rm -r ollama/manifests/odd
mkdir -p ollama/manifests/registry.ollama.ai/library/many
for n in 4095 4096 4097; do
    layer='{"mediaType":"x","digest":"sha256:'$psum'","size":19}'
    awk -v n=$n -v l="$layer" 'BEGIN { printf "{\"layers\":["; for (i = 1; i <= n; i++) printf "%s%s", l, i < n ? "," : ""; print "]}" }' \
        >ollama/manifests/registry.ollama.ai/library/many/$n
done
expect 0 "manifests of thousands of layers" "$HONE" list
says "… are told" 'ollama:many:4097.*no layers' "$T/out"
rm -r ollama/manifests/registry.ollama.ai/library/many
expect 0 "rm of ollama's" "$HONE" rm -y talker ollama:talker
[ ! -e "ollama/blobs/sha256-$sum" ] && [ ! -e ollama/manifests/registry.ollama.ai/library/talker/latest ] && ok "… manifest and blob" ||
    not_ok "… manifest and blob"
expect 2 "no rm of one's own files by a name" "$HONE" rm -y mine
says "… the path, to be sure" 'hone rm --yes models/mine.gguf'
expect 2 "no rm of a path without --yes" "$HONE" rm models/mine.gguf
expect 0 "rm of a path" "$HONE" rm --yes models/mine.gguf
[ ! -e models/mine.gguf ] && [ -e models/rhyme.gguf ] && ok "… it alone" || not_ok "… it alone"
expect 3 "rm of what is not here" "$HONE" rm -y org/copi
says "… names what may be meant" 'org/copi: no model of this name'
expect 2 "rm of what is no model" "$HONE" rm -y ../../etc/passwd
says "… says so" 'is no model'

# on a terminal it asks, and a word that is not yes is no
if ! ${CC:-cc} -O1 -o pty "$TOP/tests/e2e/pty.c" -lutil 2>err || ! ./pty -t 60 /bin/true </dev/null >/dev/null 2>&1; then
    skip "rm asks" "no pseudo-terminal"
    finish
fi
for answer in n y; do
    printf 'wait remove? [y/N]\nsend %s\\r\n' $answer | timeout 60 ./pty -t 30 "$HONE" rm org/copy >screen 2>&1
    echo $? >status-$answer
    [ -e hub/models--org--copy ] && echo stays >after-$answer || echo gone >after-$answer
done
[ "$(cat status-n after-n | tr '\n' ' ')" = "1 stays " ] && ok "no is no" || not_ok "no is no" status-n after-n screen
[ "$(cat status-y after-y | tr '\n' ' ')" = "0 gone " ] && ok "yes is yes" || not_ok "yes is yes" status-y after-y screen

finish
