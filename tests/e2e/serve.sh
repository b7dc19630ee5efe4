#!/bin/sh
# hone serve as people start and stop it: addresses, keys, sockets, signals, several models, and that it answers what
# hone run prints.
. tests/e2e/lib.sh
M=$CHAT

if ! ${CC:-cc} -O1 -o "$T/ask" tests/e2e/ask.c 2>"$T/err"; then
    skip "hone serve" "no compiler for tests/e2e/ask.c"
    finish
fi

# start OPTION…: a server; U: its address, S: its process
start() {
    : >"$T/log"
    "$HONE" serve -t 1 "$@" >"$T/server" 2>"$T/log" &
    S=$!
    await begun
    U=$(sed -n 's/.*listening on //p' "$T/log")
}
begun() { grep -q 'listening on' "$T/log" || gone "$S"; }
# ended WHAT SIGNAL: it ends by it, with exit code 0
ended() {
    kill "-$2" "$S"
    wait "$S"
    _rc=$?
    if [ $_rc -eq 0 ]; then ok "$1"; else not_ok "$1: exit $_rc" "$T/log"; fi
}
# answers WHAT PATTERN METHOD PATH [BODY]: the body of what it says matches
answers() {
    _what=$1 _pattern=$2
    shift 2
    timeout 60 "$T/ask" "$U" "$@" >"$T/said" 2>"$T/err"
    if grep -q "$_pattern" "$T/said"; then ok "$_what"; else not_ok "$_what" "$T/said" "$T/err" "$T/log"; fi
}

Q='{"messages":[{"role":"user","content":"What is your name?"}],"temperature":0,"max_tokens":40}'
start -m "$M" --port 0
answers "it lives" '"ok"' GET /health
timeout 60 "$T/ask" "$U" POST /v1/chat/completions "$Q" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p' >"$T/said"
"$HONE" run --chat -m "$M" -p "What is your name?" --temp 0 -n 40 -t 1 2>/dev/null >"$T/ran"
if [ -s "$T/said" ] && [ "$(cat "$T/said")" = "$(cat "$T/ran")" ]; then ok "its answer is that of hone run"
else not_ok "its answer is that of hone run" "$T/said" "$T/ran"; fi
ended "SIGTERM ends it" TERM

# A recurrent model, whose template leaves thoughts out of what was said before, goes on behind the last message.
cat >"$T/forgets.jinja" <<'X'
{% for m in messages %}[{{ m.role }}]{{ m.content }}
{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}
X
"$HONE" synth --config tests/cross/rwkv7.json --type F16 --seed 3 -o "$T/recurs.gguf" >/dev/null 2>&1
start -m "$T/recurs.gguf" --chat-template "@$T/forgets.jinja" --port 0
HI='{"role":"user","content":"Hello there, how are you"}'
answers "a recurrent model that thinks" '"cached_tokens":0' POST /v1/chat/completions "{\"messages\":[$HI],\"max_tokens\":5}"
answers "its next turn goes on behind the first message" '"cached_tokens":31' POST /v1/chat/completions \
    "{\"messages\":[$HI,{\"role\":\"assistant\",\"content\":\"Well\"},{\"role\":\"user\",\"content\":\"And\"}],\"max_tokens\":5}"
answers "and so does another answer to the first" '"cached_tokens":31' POST /v1/chat/completions \
    "{\"messages\":[$HI],\"max_tokens\":5,\"seed\":2}"
ended "SIGTERM ends it too" TERM

start -m "one=$M" -m "two=$TINY" --port 0 --models-max 1 --api-key sesame
answers "without its key nobody is answered" authentication_error GET /v1/models
answers "health needs none" '"ok"' GET /health
ASK_KEY=sesame
export ASK_KEY
answers "models have the names they were given" '"id":"two"' GET /v1/models
answers "the second is loaded when asked for" '"model":"two"' POST /v1/completions \
    '{"model":"two","prompt":"Once","max_tokens":3}'
answers "and the first is given up for it" '"id":"one"[^}]*"status":{"value":"unloaded"}' GET /v1/models
answers "others are not there" model_not_found POST /v1/completions '{"model":"three","prompt":"x"}'
unset ASK_KEY
ended "SIGINT ends it" INT

HONE_API_KEY=sesame
export HONE_API_KEY
start -m "$M" --port 0
unset HONE_API_KEY
answers "a key of the environment is asked for, too" authentication_error GET /v1/models
if tr '\0' ' ' <"/proc/$S/cmdline" 2>/dev/null | grep -q sesame; then not_ok "and ps does not show it"; else ok "and ps does not show it"; fi
ended "it ends with that" TERM
HONE_API_KEY=
export HONE_API_KEY
expect 2 "an empty one is no key" "$HONE" serve -m "$M" --port 0
says "by its name" 'HONE_API_KEY is empty'
HONE_API_KEY=sesame
(umask 077 && echo other >"$T/keys")
expect 2 "nor one beside a file of keys" "$HONE" serve -m "$M" --port 0 --api-key-file "$T/keys"
says "whose keys would not be all" 'HONE_API_KEY is set beside --api-key-file'
unset HONE_API_KEY

start -m "$M" --uds "$T/sock"
if [ "$(ls -l "$T/sock" | cut -c1-10)" = srw------- ]; then ok "a UNIX socket is its user's alone"
else not_ok "a UNIX socket is its user's alone"; fi
answers "and answers" '"ok"' GET /health
kill -KILL "$S"
wait "$S" 2>/dev/null
start -m "$M" --uds "$T/sock"
answers "what a killed one left is no hindrance" '"ok"' GET /health
ended "nor is it then" TERM

start -m "$M" --port 0 --ollama --no-ui
answers "ollama's programs look at the root first" '^Ollama is running' GET /
answers "ollama's clients are answered" '"done":true' POST /api/chat \
    '{"model":"x","messages":[{"role":"user","content":"Hello"}],"stream":false}'
answers "however large a context they ask for" '"done":true' POST /api/chat \
    '{"model":"x","messages":[{"role":"user","content":"Hello"}],"stream":false,"options":{"num_ctx":32768}}'
# VS Code shows no models of a server older than 0.6.4, codex --oss goes away below 0.13.4
answers "whose API it is is told" '"version":"0\.14\.0","hone":"' GET /api/version
answers "and find the models" '"name":"hone-chat"' GET /api/tags
answers "with the digest that they cut" '"digest":"[0-9a-f]\{64\}"' GET /api/tags
answers "of those in memory, too" '"digest":"[0-9a-f]\{64\}"' GET /api/ps
answers "and what a model is" '"capabilities":\["completion"' POST /api/show '{"model":"hone-chat"}'
cp "$T/said" "$T/shown"
N=mcp__plugin_of-somebody_server-of-theirs__do_what_takes_seventy_letters_
answers "a tool with a long name is called" "\"name\":\"$N\",\"input\":{" POST /v1/messages \
    '{"max_tokens":200,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"'$N'","input_schema":{"type":"object",
    "properties":{"n":{"type":"integer","maximum":9,"minimum":1}},"required":["n"],"additionalProperties":false}}],
    "tool_choice":{"type":"any"}}'
answers "as they have it, a model is let go" '"done_reason":"unload"' POST /api/generate '{"model":"x","keep_alive":0}'
answers "and is not there then" '"status":{"value":"unloaded"}' GET /v1/models
answers "what it is is told then, too" '"capabilities":' POST /api/show '{"model":"hone-chat"}'
same "... the same" "$T/shown" "$T/said"
answers "and nothing is loaded for that" '"status":{"value":"unloaded"}' GET /v1/models
answers "until somebody asks again" '"done":true' POST /api/generate \
    '{"model":"x","prompt":"Once","stream":false,"options":{"num_predict":2}}'
ended "it ends, too" TERM

start -m "$M" --port 0 --metrics-compat llama
C='{"prompt":"Once upon a time","n_predict":5,"ignore_eos":true}'
answers "a completion" '"tokens_predicted":5' POST /completion "$C"
answers "and again" '"tokens_predicted":5' POST /completion "$C"
answers "counters have llama-server's names" '^llamacpp:tokens_predicted_total 10$' GET /metrics
answers "what was kept is told apart" '^llamacpp:prompt_tokens_cached_total [1-9]' GET /metrics
answers "beside hone's own" '^hone_generated_tokens_total 10$' GET /metrics
ended "it ends like the others" TERM

case $M in /*) P=$M ;; *) P=$PWD/$M ;; esac
cp "$TINY" "$T/two.gguf"
echo '{"models":[{"name":"one","path":"'"$P"'","aliases":["gpt-x"],"ttl":1,"options":{"ctx-size":256}},
    {"name":"two","path":"two.gguf","options":{"chat-template":"chatml"}},
    {"name":"three","path":"two.gguf","options":{"chat-template":"@own.jinja"}}]}' >"$T/models.json"
echo 'So said {{ messages[0].content }}.' >"$T/own.jinja"
start --models-file "$T/models.json" --port 0
answers "an alias is found" '"id":"one"' GET /v1/models/gpt-x
answers "an alias means its model" '"model":"one"' POST /v1/completions '{"model":"gpt-x","prompt":"Once","max_tokens":3}'
answers "which has the settings of the file" '"n_ctx":256' GET '/props?model=one'
answers "paths are of the file's folder" '"model":"two"' POST /v1/completions '{"model":"two","prompt":"Once","max_tokens":3}'
answers "and templates, too" 'im_start' POST /apply-template '{"model":"two","messages":[{"role":"user","content":"Hi"}]}'
answers "also those of a file beside it" 'So said Hi' POST /apply-template '{"model":"three","messages":[{"role":"user","content":"Hi"}]}'
unused() {
    timeout 60 "$T/ask" "$U" GET /v1/models >"$T/said" 2>&1 && grep -q '"id":"one".*"value":"unloaded".*"id":"two"' "$T/said"
}
await unused
answers "who asks nobody for a second is unloaded, however often its state is asked" '"id":"two".*"value":"loaded"' GET /v1/models
answers "and loaded again when it is asked" '"model":"one"' POST /v1/completions '{"model":"one","prompt":"Once","max_tokens":3}'
answers "the bundled model is not among them" '"data":\[{"id":"one"' GET /v1/models
ended "it ends as well" TERM
echo '{"models":[{"name":"one","path":"two.gguf","ttl":"soon"}]}' >"$T/models.json"
expect 2 "a file of models is read strictly" "$HONE" serve --models-file "$T/models.json" --port 0
says "the member is named" 'models\[0\].ttl is a string; expected a whole number'
echo '{"models":[{"name":"one","path":"two.gguf"},{"name":"two","path":"two.gguf","aliases":["one"]}]}' >"$T/models.json"
expect 2 "two of one name are one too many" "$HONE" serve --models-file "$T/models.json" --port 0
says "and both are told" 'two models are named one'

expect 2 "a template that is none is told before it listens" "$HONE" serve -m "$M" --chat-template nosuch --port 0
says "with what there is" "'nosuch' is neither a known format nor Jinja source; expected one of chatml"
expect 3 "a model that is not there is told" "$HONE" serve -m "$T/none.gguf" --port 0
says "by its name" 'none.gguf'
expect 2 "beyond this machine only with a key" "$HONE" serve -m "$M" --host 0.0.0.0 --port 0
says "and it says how" 'insecure-no-key'
expect 2 "two addresses are one too many" "$HONE" serve -m "$M" --uds "$T/x" --port 1
finish
