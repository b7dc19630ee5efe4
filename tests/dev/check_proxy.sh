#!/bin/sh
# docs/serve-nginx.conf before two servers (http_echo.c): affinity, failover on 503 and on a dead server, streams that are
# not held back, a server that is drained under load; then before two hone serve with the bundled model: the same, and
# answers that are those of hone run. Wants nginx and curl; run from the repository root after make.
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
at=http://127.0.0.1:$port
# proxied P1 P2: nginx before these ports; $proxy: its process
proxied() {
    {
        [ "$(id -u)" = 0 ] && echo "user root;" # else the workers may not write below $T
        echo "pid $T/pid; error_log $T/error.log; daemon off; worker_processes 1; events { }"
        echo "http { log_format to '\$http_x_session_id \$upstream_addr'; access_log $T/access.log to;"
        echo "client_body_temp_path $T/b; proxy_temp_path $T/p; fastcgi_temp_path $T/f; uwsgi_temp_path $T/u; scgi_temp_path $T/s;"
        sed "s/127.0.0.1:8081/127.0.0.1:$1/; s/127.0.0.1:8082/127.0.0.1:$2/; s/listen 8080/listen 127.0.0.1:$port/" docs/serve-nginx.conf
        echo "}"
    } >"$T/nginx.conf"
    nginx -p "$T" -c "$T/nginx.conf" 2>"$T/nginx.err" & proxy=$!
}
proxied "$p1" "$p2"
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

# ---- two hone serve, the bundled model ----------------------------------------------------------------------------------

# serves FILE: a server whose log is FILE; the address's port is what it says
serves() { "$HONE" serve -m "$CHAT" -t 1 --port 0 --allow-host hone.test >/dev/null 2>"$1" & }
port_of() { sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$1"; }
kill $proxy $one $two 2>/dev/null
wait
serves "$T/one"; one=$!
serves "$T/two"; two=$!
await grep -q 'listening on' "$T/one" && await grep -q 'listening on' "$T/two" || { cat "$T/one" "$T/two"; exit 1; }
p1=$(port_of "$T/one") p2=$(port_of "$T/two")
proxied "$p1" "$p2"
await curl -sf -H 'Host: hone.test' "$at/health" -o "$T/who" || { cat "$T/nginx.err" "$T/error.log"; exit 1; }

# chat SESSION TEXT FIELDS: the body of the answer
chat() {
    curl -sN -H 'Host: hone.test' -H 'content-type: application/json' -H "x-session-id: $1" \
        -d "{\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}],\"temperature\":0,$3}" "$at/v1/chat/completions"
}
say() { chat "$1" "$2" '"max_tokens":40'; }
content() { sed -n 's/.*"content":"\([^"]*\)".*/\1/p'; }
# where SESSION: the server that answered it last
where() { sed -n "s/^$1 //p" "$T/access.log" | tail -n 1; }
"$HONE" run --chat -m "$CHAT" -p "What is your name?" --temp 0 -n 40 -t 1 2>/dev/null >"$T/ran"
bad=0
for i in $(seq 8); do [ "$(say "r$i" "What is your name?" | content)" = "$(cat "$T/ran")" ] || bad=$((bad + 1)); done
[ $bad = 0 ] && [ -s "$T/ran" ] && ok "hone: eight sessions, each answer that of hone run" || not_ok "hone: eight sessions" "$T/error.log"
for i in $(seq 8); do where "r$i"; done | sort | uniq -c >"$T/spread"
[ "$(wc -l <"$T/spread")" = 2 ] && ok "hone: sessions are spread" || not_ok "hone: sessions are spread" "$T/spread"
for i in $(seq 8); do say r1 "What is your name?" >"$T/again"; done
[ "$(sed -n 's/^r1 //p' "$T/access.log" | sort -u | wc -l)" = 1 ] && ok "hone: a session stays where it is" || not_ok "hone: a session stays where it is" "$T/access.log"
n=$(sed -n 's/.*"cached_tokens":\([0-9]*\).*/\1/p' "$T/again")
[ "${n:-0}" -gt 0 ] && ok "hone: what it said before is not read again ($n tokens)" || not_ok "hone: what it said before is not read again" "$T/again"

# long ones: they go on behind their end
long() { chat "$1" "Tell me a story." '"max_tokens":400,"stream":true,"ignore_eos":true'; }
begun() { grep -q '^data' "$1" || gone $s; }
long r1 >"$T/stream" & s=$!
await begun "$T/stream"
early=$(grep -c '^data' "$T/stream")
wait $s
all=$(grep -c '^data' "$T/stream")
[ "$early" -lt "$all" ] && grep -q '^data: \[DONE\]' "$T/stream" && ok "hone: a stream is not held back ($early of $all parts at first sight)" ||
    not_ok "hone: a stream is not held back ($early of $all)" "$T/stream"

long r1 >"$T/during" & s=$!
await begun "$T/during"
case $(where r1) in *:$p1) gone=$one left=$p2 ;; *) gone=$two left=$p1 ;; esac
kill -TERM $gone
bad=0
for i in $(seq 20); do [ "$(say r1 "What is your name?" | content)" = "$(cat "$T/ran")" ] || bad=$((bad + 1)); done
[ $bad = 0 ] && ok "hone: drained under load: no request fails" || not_ok "hone: drained under load: $bad of 20" "$T/error.log"
wait $s
# text FILE: the pieces of a stream as one; how many tokens come at a time is not said
text() { grep -q '^data: \[DONE\]' "$1" && sed -n 's/.*"delta":{"content":"\(.*\)"},"logprobs.*/\1/p' "$1" | tr -d '\n'; }
text "$T/stream" >"$T/text"; text "$T/during" >"$T/text2"
[ -s "$T/text" ] && cmp -s "$T/text" "$T/text2" && ok "hone: … and the stream that ran comes whole, the same text" || not_ok "hone: the stream that ran comes whole" "$T/text" "$T/text2"
wait $gone
rc=$?
[ $rc = 0 ] && ok "hone: … then it has ended, exit 0" || not_ok "hone: it ended with $rc" "$T/one" "$T/two"
case $(where r1) in *:$left) ok "hone: the session is on the other now" ;; *) not_ok "hone: the session is on the other now" "$T/access.log" ;; esac
finish
