#!/bin/sh
# What takes too long for tests/e2e/pull.sh: hone pull killed at random moments, connections that end at any byte, a disk that is
# full, TLS, and huggingface_hub (of PyPI) at the same hub with the same cache. Usage: check_pull.sh [PROGRAM], from the root of the
# repository. KILLS=200 SEED=1; PYTHON=python3 with huggingface_hub, else that part is skipped. Asks 127.0.0.1 alone.
HONE=${1:-$(pwd)/build/release/hone}
. tests/e2e/lib.sh
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE HUGGINGFACE_HUB_CACHE http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
PYTHON=${PYTHON:-python3}
KILLS=${KILLS:-200}
SEED=${SEED:-$(date +%s)}
C=0123456789abcdef0123456789abcdef01234567
F=$T/f
export HF_HOME=$T/hf HF_HUB_CACHE=$T/cache HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_XET=1 XDG_DATA_HOME=$T/data
${CC:-cc} -O1 -pthread -w -o "$T/hub" tests/e2e/hub.c || exit 1
mkdir -p "$F/repos/o/one" "$F/repos/o/many/sub/deep" "$F/plain"
head -c 3000000 $TINY >"$F/repos/o/one/one-Q4_K_M.gguf"
for i in 1 2 3; do head -c $((i * 700)) $TINY >"$F/repos/o/many/s-Q4_0-0000$i-of-00003.gguf"; done
echo '{"a": 1}' >"$F/repos/o/many/config.json"
echo 'text' >"$F/repos/o/many/sub/deep/a.txt"
cp "$F/repos/o/one/one-Q4_K_M.gguf" "$F/plain/file.gguf"
"$T/hub" "$F" >"$T/ports" &
HUB=$!
trap 'kill $HUB 2>/dev/null; umount "$T/small" 2>/dev/null; rm -rf "$T"' EXIT
await test -s "$T/ports"
read -r PORT CDN <"$T/ports"
HF_ENDPOINT=http://127.0.0.1:$PORT
export HF_ENDPOINT
ONE=$F/repos/o/one/one-Q4_K_M.gguf
SHA=$(sha256sum <"$ONE" | cut -d' ' -f1)
BLOB=$T/cache/models--o--one/blobs/$SHA
P="--retry-wait 0.01 --piece 0.25 --retries 8"
rules() { printf '%s\n' "# $n_check $*" "$@" >"$F/rules.new" && mv "$F/rules.new" "$F/rules"; }
# random N: in [0, N), of the seed
random() {
    SEED=$(((SEED * 1103515245 + 12345) % 2147483648))
    echo $((SEED / 7 % $1))
}

# ---- killed, any time ------------------------------------------------------------------------------------
echo "# seed $SEED"
# killed WHAT FILE PULL…: rounds of it, each killed; a part that is left is gone on with, a file that is there is right
killed() {
    what=$1 file=$2
    shift 2
    wrong=0 rounds=0 kept=0 whole=0 strays=0
    while [ $rounds -lt "$KILLS" ]; do
        "$HONE" pull $P "$@" >/dev/null 2>"$T/err" &
        S=$!
        sleep "0.$(printf %03d "$(random 900)")"
        case $((rounds % 3)) in
        0) kill -KILL $S 2>/dev/null ;;
        1) kill -INT $S 2>/dev/null ;;
        2) kill -TERM $S 2>/dev/null ;;
        esac
        wait $S 2>/dev/null
        rounds=$((rounds + 1))
        [ ! -e "$file.hone-part.json" ] || kept=$((kept + 1))
        [ -z "$(find "${file%/*}" -name '*hone-tmp*' 2>/dev/null)" ] || strays=$((strays + 1))
        if [ -e "$file" ]; then
            cmp -s "$file" "$ONE" || wrong=$((wrong + 1))
            whole=$((whole + 1))
            rm -rf "$T/cache" "${file%/*}"
        fi
    done
    [ $wrong -eq 0 ] && ok "$what: $rounds pulls killed, none left a wrong file ($kept left a part, $whole were through, $strays times a temporary lay there)" ||
        not_ok "$what: $wrong wrong files"
}
rules "cdn:/store slow 60000" "cdn:/plain slow 60000"
killed "of the hub" "$BLOB" o/one
rules
expect 0 "and the next one has it" "$HONE" pull $P o/one
same "right" "$BLOB" "$ONE"
rules "cdn:/plain slow 60000"
KILLS=$((KILLS / 4))
killed "of an address" "$T/data/hone/models/file.gguf" "http://127.0.0.1:$CDN/plain/file.gguf"
rules
expect 0 "and the next one has it" "$HONE" pull $P "http://127.0.0.1:$CDN/plain/file.gguf"
same "right" "$T/data/hone/models/file.gguf" "$ONE"

# ---- killed at, and after the failure of, each call that changes the disk ---------------------------------------
# after REPO CALL HOW: the first, second, … such call of a pull; of many only some. What is left must be gone on with. o/few
# has small files, which come without a second thread: calls are counted for each thread by itself.
after() {
    k=1 step=1 bad=0 tried=0
    while :; do
        rm -rf "$T/cache"
        timeout 60 strace -f -qq -o "$T/trace" -e trace="$2" -e inject="$2:$3:when=$k" "$HONE" pull $P "$1" >/dev/null 2>"$T/err"
        grep -q 'INJECTED\|KILL' "$T/trace" || break
        tried=$((tried + 1))
        right "$1" some || bad=$((bad + 1))
        "$HONE" pull $P "$1" >/dev/null 2>"$T/err" && right "$1" || bad=$((bad + 1))
        left=$(find "$T/cache" -name '*hone-*')
        [ -z "$left" ] || { bad=$((bad + 1)) && echo "# $1 $2 $3 $k: $left"; }
        [ $k -lt 12 ] || step=$((step + 3))
        k=$((k + step))
    done
    [ $bad -eq 0 ] && ok "$1: $2, $3, $tried times: the next pull has it, and nothing is left" || not_ok "$1: $2 $3: $bad of $tried" "$T/err"
}
# right REPO [some]: all files are in the snapshot, of the branch, and each is that of the hub; or some
right() {
    at=$T/cache/models--o--${1#o/}
    for f in "$F/repos/$1"/*; do
        here=$at/snapshots/$C/${f##*/}
        if [ -e "$here" ]; then cmp -s "$here" "$f" || return 1; elif [ -z "$2" ]; then return 1; fi
    done
    for f in "$at"/blobs/*; do
        case ${f##*/} in
        *.hone-* | '*') ;;
        *) [ "$(sha256sum <"$f" | cut -d' ' -f1)" = "${f##*/}" ] || [ "$(git_sha "$f")" = "${f##*/}" ] || return 1 ;;
        esac
    done
    [ -n "$2" ] || [ "$(cat "$at/refs/main")" = "$C" ]
}
git_sha() { { printf 'blob %d\0' "$(wc -c <"$1")" && cat "$1"; } | sha1sum | cut -d' ' -f1; }
mkdir -p "$F/repos/o/few"
for i in 1 2 3; do head -c $((i * 700)) $TINY >"$F/repos/o/few/s-Q4_0-0000$i-of-00003.gguf"; done
rules
if strace -qq -o "$T/trace" true 2>/dev/null; then
    for call in mkdir fallocate ftruncate pwrite64 fsync rename symlink unlink flock; do
        for repo in o/one o/few; do
            after $repo $call signal=KILL
            after $repo $call error=EIO
        done
    done
    after o/one pwrite64 error=ENOSPC
    after o/one fallocate error=ENOSPC
    after o/one fallocate error=EOPNOTSUPP
    after o/few write error=ENOSPC
    after o/few symlink error=EPERM # file systems without links: the blobs move
    after o/one flock error=ENOLCK  # and without locks
else
    skip "killed at each call" "no strace"
fi

# ---- the connection ends at byte k -----------------------------------------------------------------------
bad=0 i=0
while [ $i -lt 60 ]; do
    rm -rf "$T/cache"
    rules "cdn:/store cut $(random 262144) 3" "hub:/resolve drop x 1"
    "$HONE" pull $P o/one >/dev/null 2>"$T/err" && cmp -s "$BLOB" "$ONE" || bad=$((bad + 1))
    i=$((i + 1))
done
[ $bad -eq 0 ] && ok "60 times cut at any byte" || not_ok "cut: $bad of 60" "$T/err"

# ---- answers with other bytes in them: of the hub, its store and a registry -----------------------------------
mkdir -p "$F/ollama/library/m" "$F/ollama/blobs"
cp "$ONE" "$F/ollama/blobs/sha256-$SHA"
printf '{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}' "$SHA" "$(wc -c <"$ONE")" >"$F/ollama/library/m/x"
export OLLAMA_MODELS="$T/ollama"
i=0 wrong=0 odd=0
rm -rf "$T/cache" "$T/outside"
: >"$T/codes"
while [ $i -lt "${GARBLED:-300}" ]; do
    rules "hub:/ garble $(random 4)" "cdn:/ garble $(random 2)" "# $i"
    case $((i % 3)) in
    2) name=ollama:127.0.0.1:$PORT/library/m:x file=$T/ollama/blobs/sha256-$SHA ;;
    1) name=http://127.0.0.1:$CDN/plain/file.gguf file=$T/data/hone/models/file.gguf ;;
    0) name=o/one file=$BLOB ;;
    esac
    run "$HONE" pull --retry-wait 0.001 --retries 2 --timeout 1 $name
    echo $rc >>"$T/codes"
    case $rc in 0 | 1 | 2 | 3 | 5) ;; *) odd=$((odd + 1)) && cat "$T/err" ;; esac
    grep -qiE 'sanitizer|assertion' "$T/err" && odd=$((odd + 1)) && cat "$T/err"
    [ $rc -ne 0 ] || [ $((i % 3)) -eq 1 ] || cmp -s "$file" "$ONE" || wrong=$((wrong + 1))
    rm -rf "$T/cache" "$T/ollama" "$T/data"
    i=$((i + 1))
done
[ $odd -eq 0 ] && [ $wrong -eq 0 ] && ok "$i pulls of garbled answers: exit codes $(sort -n "$T/codes" | uniq -c | awk '{ printf "%s%s x %s", (NR > 1 ? ", " : ""), $2, $1 }')" ||
    not_ok "garbled answers: $odd of $i ended oddly, $wrong left a wrong file"

# ---- a full disk ------------------------------------------------------------------------------------------
mkdir "$T/small"
if mount -t tmpfs -o size=2m none "$T/small" 2>/dev/null; then
    rules
    expect 1 "a disk too small" env HF_HUB_CACHE="$T/small" "$HONE" pull $P o/one
    says "says so before" 'the disk has 0.00 GB free|no room'
    [ -z "$(find "$T/small" -name '*.gguf' -o -name "$SHA")" ] && ok "no file there" || not_ok "no file there"
    rm -rf "$T/small"/* "$T/small"/.locks "$T/cache"
    mkdir -p "$T/cache/models--o--one" && ln -s "$T/small" "$T/cache/models--o--one/blobs"
    expect 1 "a disk too small for the blobs alone" "$HONE" pull $P o/one
    says "says so before" 'one/blobs: the disk has 0.00 GB free'
    rm -rf "$T/cache"
    umount "$T/small"
else
    skip "a disk too small" "cannot mount a tmpfs"
fi

# ---- https: the same hub behind TLS, by a certificate of our own ----------------------------------------------
if openssl req -x509 -newkey rsa:2048 -nodes -keyout "$T/key" -out "$T/cert" -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    2>"$T/err"; then
    "$PYTHON" -c 'import socket, ssl, sys, threading
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain(sys.argv[1], sys.argv[2])
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
def pump(a, b):
    try:
        while d := a.recv(65536): b.sendall(d)
        b.shutdown(socket.SHUT_WR)
    except OSError: pass
def serve(a):
    try: a = c.wrap_socket(a, server_side=True)
    except OSError: return
    b = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
    threading.Thread(target=pump, args=(b, a), daemon=True).start()
    pump(a, b)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()' "$T/cert" "$T/key" "$PORT" >"$T/tls" &
    TLS=$!
    await test -s "$T/tls"
    read -r TPORT <"$T/tls"
    rules
    rm -rf "$T/cache"
    : >"$F/log"
    expect 5 "a certificate that nobody vouches for" env HF_TOKEN=hf_s HF_ENDPOINT="https://localhost:$TPORT" "$HONE" pull $P o/one
    says "is refused at once" 'certificate'
    grep -q 'trying again' "$T/err" && not_ok "and not tried again" "$T/err" || ok "and not tried again"
    [ -s "$F/log" ] && not_ok "nothing was asked" "$F/log" || ok "nothing was asked"
    expect 5 "one for another name" env CURL_CA_BUNDLE="$T/cert" HF_ENDPOINT="https://127.0.0.1:$TPORT" "$HONE" pull $P o/one
    expect 0 "one that is vouched for" env HF_TOKEN=hf_s CURL_CA_BUNDLE="$T/cert" HF_ENDPOINT="https://localhost:$TPORT" "$HONE" pull $P o/one
    same "the file comes" "$BLOB" "$ONE"
    mkdir "$T/certs" && cp "$T/cert" "$T/certs/cert.pem" && openssl rehash "$T/certs" 2>"$T/err" || not_ok "openssl rehash" "$T/err"
    rm -rf "$T/cache" # what is here would be taken
    expect 0 "… by a file of a folder" env -u CURL_CA_BUNDLE -u SSL_CERT_FILE REQUESTS_CA_BUNDLE="$T/certs" HF_ENDPOINT="https://localhost:$TPORT" "$HONE" pull $P o/one
    grep -q '^cdn.*auth=[^-]' "$F/log" && not_ok "the store sees no token" "$F/log" || ok "the store sees no token"
    kill $TLS
else
    skip "https" "no openssl"
fi

# ---- huggingface_hub at the same hub ------------------------------------------------------------------------
if ! "$PYTHON" -c 'import huggingface_hub' 2>/dev/null; then
    skip "one cache for both" "no huggingface_hub for $PYTHON"
    finish
fi
rules
rm -rf "$T/cache"
theirs() { HF_HUB_CACHE=$1 "$PYTHON" -c 'import sys
from huggingface_hub import snapshot_download
print(snapshot_download("o/many", local_files_only=len(sys.argv) > 1))' ${2:-} 2>"$T/err"; }
# trees/: the list of files, which the newer ones of it keep for themselves
tree() { (cd "$1" && find models--* \( -type f -o -type l \) ! -path '*/trees/*' | sort | while read -r f; do
    echo "$f $(readlink "$f") $(sha256sum <"$f")"
done); }
theirs "$T/theirs" >"$T/out" && ok "huggingface_hub downloads from the hub of the tests" || not_ok "huggingface_hub" "$T/err"
for f in config.json sub/deep/a.txt s-Q4_0-00001-of-00003.gguf; do "$HONE" pull $P "hf.co/o/many/$f" >/dev/null 2>"$T/err" || not_ok "$f" "$T/err"; done
tree "$T/theirs" >"$T/a"
tree "$T/cache" >"$T/b"
[ -s "$T/a" ] && same "both make the same cache: names, links, contents" "$T/a" "$T/b"
theirs "$T/cache" local >"$T/out" && grep -q "$T/cache/models--o--many/snapshots/$C" "$T/out" && ok "it finds what hone has pulled, offline" ||
    not_ok "it finds what hone has pulled, offline" "$T/err" "$T/out"
: >"$F/log"
expect 0 "hone finds what it has downloaded" env HF_HUB_CACHE="$T/theirs" "$HONE" pull $P o/many:Q4_0
grep -q 'resolve\|store' "$F/log" && not_ok "and fetches nothing of it" "$F/log" || ok "and fetches nothing of it"
expect 0 "offline too" env HF_HUB_CACHE="$T/theirs" "$HONE" pull --offline o/many:Q4_0
finish
