#!/bin/sh
# docs/serve-nginx.conf before two servers (http_echo.c): affinity, failover on 503 and on a dead server, streams that are
# not held back, a server that is drained under load. Wants nginx and curl; run from the repository root after make.
# Not run by ./test.sh.
set -u
command -v nginx >/dev/null && command -v curl >/dev/null || { echo "SKIP: nginx or curl is missing"; exit 77; }
. tests/e2e/lib.sh
B=${B:-build/release}
${CC:-gcc} -std=gnu11 -Iinclude -Isrc -o "$T/echo" tests/dev/http_echo.c "$B/libapp.a" "$B/libhone.a" -levent_core -ljansson -lpthread -lm ||
    { echo "http_echo does not compile"; exit 1; }
one= two= proxy=
end() {
    for p in $one $two $proxy; do kill "$p" 2>/dev/null; done
    rm -rf "$T"
}
trap end EXIT

"$T/echo" 0 one >"$T/one" & one=$!
"$T/echo" 0 two >"$T/two" & two=$!
await test -s "$T/one" && await test -s "$T/two" || { echo "no servers"; exit 1; }
p1=$(sed 's/.*://' "$T/one") p2=$(sed 's/.*://' "$T/two")
# the proxy's own port: one that is free now
"$T/echo" 0 x >"$T/free" & x=$!
await test -s "$T/free"
port=$(sed 's/.*://' "$T/free")
kill $x; wait $x 2>/dev/null
{
    [ "$(id -u)" = 0 ] && echo "user root;" # else the workers may not write below $T
    echo "pid $T/pid; error_log $T/error.log; daemon off; worker_processes 1; events { }"
    echo "http { access_log off; client_body_temp_path $T/b; proxy_temp_path $T/p; fastcgi_temp_path $T/f; uwsgi_temp_path $T/u; scgi_temp_path $T/s;"
    sed "s/127.0.0.1:8081/127.0.0.1:$p1/; s/127.0.0.1:8082/127.0.0.1:$p2/; s/listen 8080/listen 127.0.0.1:$port/" docs/serve-nginx.conf
    echo "}"
} >"$T/nginx.conf"
nginx -p "$T" -c "$T/nginx.conf" 2>"$T/nginx.err" & proxy=$!
at=http://127.0.0.1:$port
await curl -sf "$at/who" -o "$T/who" || { cat "$T/nginx.err" "$T/error.log"; exit 1; }

who() { curl -s -H "x-session-id: $1" "$at/who"; }
who s1 >"$T/first"
same=yes
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(who s1)" = "$(cat "$T/first")" ] || same=no; done
[ $same = yes ] && ok "a session stays where it is" || not_ok "a session stays where it is"
for i in $(seq 20); do who "session-$i"; echo; done | sort | uniq -c >"$T/spread"
[ "$(wc -l <"$T/spread")" = 2 ] && ok "sessions are spread" || not_ok "sessions are spread" "$T/spread"

post() { curl -s -o "$T/body" -D "$T/head" -w '%{http_code}' -H 'content-type: application/json' -H "x-session-id: $1" -d "{\"n\":\"$1\"}" "$at/echo"; }
# failures N: N posts of N sessions; how many were not answered right
failures() {
    bad=0
    for i in $(seq "$1"); do
        [ "$(post "f$i")" = 200 ] && [ "$(cat "$T/body")" = "{\"n\":\"f$i\"}" ] || bad=$((bad + 1))
    done
    echo $bad
}
[ "$(failures 20)" = 0 ] && ok "both answer" || not_ok "both answer" "$T/head"
kill -USR1 $one
[ "$(failures 20)" = 0 ] && ok "one is full: the other answers every POST" || not_ok "one is full" "$T/head"
grep -qi 'x-from: two' "$T/head" && ok "… and it is the other" || not_ok "it is the other" "$T/head"
kill -USR1 $two
[ "$(post s1)" = 503 ] && ok "both are full: 503" || not_ok "both are full: 503" "$T/head"
grep -qi '^retry-after' "$T/head" && ok "… with Retry-After" || not_ok "with Retry-After" "$T/head"
kill -USR1 $one; kill -USR1 $two

curl -sN "$at/stream?n=100" >"$T/stream" & s=$!
await grep -q 'left":99' "$T/stream"
[ "$(grep -c data: "$T/stream")" -lt 100 ] && ok "a stream is not held back" || not_ok "a stream is not held back"
wait $s
[ "$(grep -c data: "$T/stream")" = 100 ] && ok "… and comes whole" || not_ok "and comes whole"
head -c 8000000 /dev/zero | tr '\0' a >"$T/big"
curl -s -H 'content-type: application/json' --data-binary @"$T/big" "$at/echo" | cmp -s - "$T/big" && ok "8 MB there and back" || not_ok "8 MB there and back"

# drained while it is asked: what runs ends, what comes goes to the other
curl -sN -H "x-session-id: s1" "$at/stream?n=60" >"$T/stream" & s=$!
await grep -q data: "$T/stream"
if grep -q '"from":"one"' "$T/stream"; then gone=$one; else gone=$two; fi
kill -TERM $gone
[ "$(failures 40)" = 0 ] && ok "drained under load: no request fails" || not_ok "drained under load" "$T/head" "$T/error.log"
wait $s
[ "$(grep -c data: "$T/stream")" = 60 ] && ok "… and a stream that ran comes whole" || not_ok "a stream that ran comes whole" "$T/stream"
await gone $gone && ok "… then it has ended" || not_ok "then it has ended"
[ "$(failures 10)" = 0 ] && ok "one is left: it answers" || not_ok "one is left" "$T/error.log"
finish
