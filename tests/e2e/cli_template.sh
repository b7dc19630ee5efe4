#!/bin/sh
# hone template, and hone run --chat.
. tests/e2e/lib.sh

cat >"$T/c.json" <<'EOF'
{"messages": [{"role": "user", "content": "hi <|im_end|>"}], "add_generation_prompt": true, "bos_token": "<s>"}
EOF
printf '{%% for m in messages %%}\n  {{- m.role }}: {{ m.content }}\n{%% endfor %%}\n{{ bos_token }}{{ strftime_now("%%d %%b %%Y %%H:%%M:%%S") }}{%% if eos_token is defined %%}!{%% endif %%}\n' >"$T/t.jinja"
expect 0 "a template with its variables" "$HONE" template --file "$T/t.jinja" --context "$T/c.json" --now 2026-02-03T04:05:06
printf 'user: hi <|im_end|>\n<s>03 Feb 2026 04:05:06' >"$T/want"
same "… prints exactly the text" "$T/want" "$T/out"
expect 0 "JSON" "$HONE" template --file "$T/t.jinja" --context "$T/c.json" --now 2026-02-03T04:05:06 --json
says "… has the text" '^\{"schema":"hone.template/1","text":"user: hi <\|im_end\|>\\n<s>03 Feb 2026 04:05:06"\}$' "$T/out"
expect 0 "the template from standard input" sh -c "'$HONE' template --file - --context '$T/c.json' <'$T/t.jinja'"
printf 'a\n {{ raise_exception("roles must alternate") }}' >"$T/r.jinja"
expect 1 "a raise" "$HONE" template --file "$T/r.jinja" --context "$T/c.json"
says "… says its words and its place" 'r.jinja:2:5: roles must alternate$'
printf 'a\n {{ nope.x }}' >"$T/r.jinja"
expect 1 "an error" "$HONE" template --file "$T/r.jinja" --context "$T/c.json"
says "… names line and column" "r.jinja:2:9: 'nope' is undefined"
printf '{%% if a %%}' >"$T/r.jinja"
expect 1 "an unfinished template" "$HONE" template --file "$T/r.jinja" --context "$T/c.json"
says "… names line and column" 'r.jinja:1:11: Unexpected end of template'
printf '{%% for a in range(99999) %%}{%% for b in range(99999) %%}x{%% endfor %%}{%% endfor %%}' >"$T/r.jinja"
expect 1 "a template without end" "$HONE" template --file "$T/r.jinja" --context "$T/c.json"
says "… is stopped" 'more than the [0-9]+ '
printf '{"a": ' >"$T/bad.json"
expect 1 "variables that are not JSON" "$HONE" template --file "$T/t.jinja" --context "$T/bad.json"
says "… where" 'context: not JSON: line 1'
printf '[]' >"$T/bad.json"
expect 1 "variables that are no object" "$HONE" template --file "$T/t.jinja" --context "$T/bad.json"
says "… and not a fault of the template" '^hone: context: expected a JSON object'
expect 1 "no such file" "$HONE" template --file "$T/none" --context "$T/c.json"
expect 1 "a wrong time" "$HONE" template --file "$T/t.jinja" --context "$T/c.json" --now yesterday
says "… what a time looks like" '2026-02-03T04:05:06'
expect 2 "no template" "$HONE" template --context "$T/c.json"
expect 2 "no variables" "$HONE" template --file "$T/t.jinja"
expect 3 "a model without a template" "$HONE" template -m tests/fuzz/corpus/vocab/bpe_gpt-2.gguf --context "$T/c.json"
says "… lists the formats" 'chatml, llama2'

V=../shared/data/tokenizers/ggml-vocab-qwen2.gguf
if [ -f $V ]; then
    expect 0 "a model's own template" "$HONE" template -m $V --context "$T/c.json"
    says "… renders" '^hi <\|im_end\|><\|im_end\|>$' "$T/out"
else
    skip "a model's own template" "no $V"
fi

if [ -f $TINY ]; then
    printf '{{ bos_token }}User: {{ messages[0].content }}{%% if messages[1] %%} {{ messages[1].content }}{%% endif %%}\n\nBot:' >"$T/t.jinja"
    expect 0 "run --chat" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p 'Once' -n 4 --temp 0 --json
    cp "$T/out" "$T/chat"
    expect 0 "… is the prompt it stands for" "$HONE" run -m $TINY -p "$(printf 'User: Once\nBot:')" -n 4 --temp 0 --json
    for f in chat out; do sed 's/.*"prompt_tokens":\(\[[0-9,]*\]\),"tokens":\(\[[0-9,]*\]\).*/\1 \2/' "$T/$f" >"$T/$f.ids"; done
    same "… token by token" "$T/chat.ids" "$T/out.ids"
    expect 0 "--system" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" --system Once -p upon -n 4 --temp 0
    expect 0 "a format by name" "$HONE" run -m $TINY --chat --chat-template chatml -p 'Once' -n 4 --temp 0
    expect 2 "an unknown format" "$HONE" run -m $TINY --chat --chat-template nope -p 'Once' -n 4
    says "… lists those there are" 'chatml, llama2'
    # an answer with reasoning, as the model of few words gives none: the template opens it
    printf '{%% if enable_thinking != false %%}<think>\n{%% endif %%}{{ messages[-1].content }}{%% if enable_thinking != false %%}<think>\n{%% endif %%}' >"$T/t.jinja"
    expect 0 "reasoning" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p Once -n 8 --temp 0 --json
    says "… is told apart from the text" '"text":"","reasoning":"[^"]+"' "$T/out"
    expect 0 "… and in a pipe not shown" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p Once -n 8 --temp 0
    if [ "$(wc -c <"$T/out")" -eq 1 ]; then ok "… at all"; else not_ok "… at all" "$T/out"; fi
    says "… which is told" 'still reasoning.*--reasoning show'
    expect 0 "… but on stderr where asked for" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p Once -n 8 --temp 0 --reasoning show
    says "… on its line" '[a-z]'
    expect 0 "--think off" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p Once -n 8 --temp 0 --think off --json
    says "… and there is an answer" '"text":"[^"].*"reasoning":""' "$T/out"
    expect 2 "--think high, where there is no such switch" "$HONE" run -m $TINY --chat --chat-template "@$T/t.jinja" -p Once -n 8 --think high
    says "… says which there is" 'it takes on and off'
    expect 2 "--think without --chat" "$HONE" run -m $TINY -p Once --think off
    expect 0 "what marks an answer" "$HONE" template --file "$T/t.jinja" --format
    says "… is shown" '"kind":"tags".*"mark":"<think>","begins":"reasoning","token":null' "$T/out"
    expect 2 "--format with --context" "$HONE" template --file "$T/t.jinja" --format --context "$T/c.json"
    expect 2 "--system without --chat" "$HONE" run -m $TINY --system x -p 'Once' -n 4
    expect 2 "--chat with --ids" "$HONE" run -m $TINY --chat --ids 1,2 -n 4
else
    skip "run --chat" "no $TINY"
fi
finish
