# Seeds for fuzz_ask: every body of tests/unit/ask_cases.h for its route, and further ones that are taken:
#     python3 make_ask.py FOLDER
# A seed: u8 route, in the order of src/serve/ask.c; u8 flags (2 strict fields, 4 lenient tools, 8 defaults of OpenAI),
# and which answer comes << 4; the body. The C compiler (CC, cc) reads the cases.
import json, os, re, struct, subprocess, sys, tempfile

out = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..", "..")
with open(os.path.join(root, "src", "serve", "ask.c")) as f:
    routes = re.findall(r'^    \{ "(/[^"]*)", &hn_voice_', f.read(), re.M)
PLAIN, THOUGHT, CALLS, ONLY, CUT, LENGTH, FULL, WORD, NOTHING, TEXTS, CHOICES, ECHO, LOGPROBS = range(13)


def put(name, path, body, flags=0, answer=PLAIN):
    data = bytes([routes.index(path), flags | answer << 4]) + (body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode())
    with open(os.path.join(out, name), "wb") as f: f.write(data)


DUMP = r"""
#include "tests/unit/ask_cases.h"
#include <stdio.h>
int main(void)
{
    for (size_t i = 0; i < sizeof refused_cases / sizeof *refused_cases; i++)
        printf("%s%c%s%c", refused_cases[i].path, 0, refused_cases[i].body, 0);
    for (size_t i = 0; i < sizeof chat_cases / sizeof *chat_cases; i++)
        printf("%s%c%s%c", chat_cases[i].path, 0, chat_cases[i].body, 0);
    return 0;
}
"""
with tempfile.TemporaryDirectory() as t:
    with open(os.path.join(t, "dump.c"), "w") as f: f.write(DUMP)
    cc = os.environ.get("CC", "cc").split()
    subprocess.run(cc + ["-O2", "-w", "-I", root, "-I", os.path.join(root, "src"), "-I", os.path.join(root, "include"), os.path.join(t, "dump.c"), "-o", os.path.join(t, "dump")], check=True)
    parts = subprocess.run([os.path.join(t, "dump")], check=True, capture_output=True).stdout.split(b"\0")
for i in range(0, len(parts) - 1, 2):
    path = parts[i].decode()
    if path in routes: put(f"case-{i // 2}", path, parts[i + 1])

U = {"role": "user", "content": "hi"}
A = {"role": "assistant", "content": "a"}
CHAT, TEXT, NATIVE, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/completion", "/v1/messages", "/v1/responses"
F = {"type": "function", "function": {"name": "f", "parameters": {}}}
call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, True, False, None, "x\u0001\"\\é"]}}}]}
told = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]}
chats = [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}, "timings_per_token": True, "return_progress": True}, {"logprobs": True, "top_logprobs": 3}, {"n": 2}, {"seed": -5}, {"seed": 2 ** 64 - 1}, {"top_k": -1, "min_p": 0.1, "repeat_last_n": -1},
         {"stop": "x"}, {"stop": ["a", "b"]}, {"logit_bias": {"5": -100}}, {"logit_bias": [[5, False], ["x", 1.5]]}, {"max_tokens": 5, "max_completion_tokens": 5}, {"response_format": {"type": "text"}}, {"response_format": {"type": "json_object"}},
         {"response_format": {"type": "json_object", "schema": {"type": "object"}}}, {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True}}}, {"response_format": {"type": "json_schema", "schema": {}}}, {"json_schema": {}},
         {"grammar": "root ::= \"a\""}, {"grammar": ""}, {"structured_outputs": {"regex": "a+"}}, {"structured_outputs": {"choice": ["a", "b"]}}, {"structured_outputs": {"json": "{}"}}, {"structured_outputs": {"json": {}}}, {"structured_outputs": {"grammar": "root ::= \"a\""}},
         {"structured_outputs": {"json_object": True, "disable_any_whitespace": True}}, {"structured_outputs": {"json_object": False}}, {"tools": [F]}, {"tools": [F], "tool_choice": "none"}, {"tools": [F], "tool_choice": "required", "parallel_tool_calls": False},
         {"tools": [F], "tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tools": [F], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [F]}}}, {"tools": [F], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}]}},
         {"tools": [F], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, {"tools": [F], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": 5}}, {"tools": [F], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [5]}},
         {"tools": [F], "tool_choice": {"type": "allowed_tools", "allowed_tools": 5}}, {"tools": [F], "tool_choice": {"type": "allowed_tools", "mode": "all"}}, {"tools": [{"type": "web_search"}, F]}, {"reasoning_effort": "low"}, {"reasoning_format": "none"}, {"reasoning_format": "deepseek"},
         {"reasoning_budget": 5}, {"enable_thinking": False}, {"enable_thinking": True, "reasoning_effort": "high"}, {"reasoning": {"effort": "low", "max_tokens": 9, "summary": "auto", "enabled": True}}, {"reasoning": {"odd": 1}}, {"modalities": ["text"]}, {"modalities": [5]},
         {"chat_template_kwargs": {"a": [1.5, True, False, None, 10 ** 17]}}, {"chat_template_kwargs": {"enable_thinking": False}}, {"cache_salt": "x", "id_slot": -1, "cache_prompt": True, "priority": 0, "user": "u", "metadata": {"a": "b"}}, {"lora": [{"id": 0, "scale": 0.5}, {"id": "name"}]},
         {"lora": [{"id": "x\u0000"}]}, {"lora": [{"id": i} for i in range(70)]}, {"logit_bias": [[i, 1] for i in range(2000)]}, {"odd_field,é": 1, "another": 2}, {"x" * 2000: 1}, {"store": False}, {"mirostat": 0, "typical_p": 1, "dry_multiplier": 0.0, "samplers": [], "audio": None},
         {"timeout": 5, "timeout_ms": 5}, {"max_tokens": 1e30}, {"max_tokens": 5.0, "seed": 1e300}, {"temperature": 1, "top_p": 0.5, "presence_penalty": 1, "frequency_penalty": -1, "repeat_penalty": 1.1, "openai": 1}, {"stop": ["x" * 300]}, {"model": "m"}, {"model": "m:adapter"}]
for i, more in enumerate(chats):
    for flags in {28: (0, 4), 39: (0, 4), 57: (0, 2), 58: (0, 2), 0: (0, 8)}.get(i, (0,)):
        put(f"chat-{i}-{flags}", CHAT, dict({"messages": [U]}, **more), flags, (i + flags) % 13)
for answer in range(13):
    put(f"answer-chat-{answer}", CHAT, {"messages": [U], "tools": [F], "logprobs": True, "top_logprobs": 2, "timings_per_token": True}, 0, answer)
    put(f"answer-text-{answer}", TEXT, {"prompt": "a", "logprobs": 2, "echo": True, "stream": answer % 2 == 0, "timings_per_token": True}, 0, answer)
    put(f"answer-native-{answer}", NATIVE, {"prompt": "a", "n_probs": 2, "return_tokens": True, "timings_per_token": True, "return_progress": True}, 0, answer)
    put(f"answer-messages-{answer}", MESSAGES, {"messages": [U], "max_tokens": 5, "tools": [{"name": "f", "input_schema": {}}], "stream": True}, 0, answer)
    put(f"answer-responses-{answer}", RESPONSES, {"input": "x", "top_logprobs": 2, "include": ["message.output_text.logprobs"], "tools": [{"type": "function", "name": "f"}]}, 0, answer)
    put(f"answer-ollama-{answer}", "/api/chat", {"messages": [U], "model": "m", "logprobs": True, "top_logprobs": 2}, 0, answer)
for i, messages in enumerate([[call, told, U], [U, A], [{"role": "developer", "content": "d"}, U], [{"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, U], [U, dict(call, reasoning_content="r", content="x"), told],
                              [U, dict(A, refusal="no")], [U, dict(A, refusal=5)], [U, dict(A, name="n"), U], [U, {"role": "assistant", "content": [{"type": "refusal", "refusal": "x"}]}, U], [U, {"role": "assistant", "content": [{"type": "text", "text": ""}], "reasoning": "r"}, U],
                              [U, dict(call, tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": "not json"}}]), told], [U, dict(call, tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": ""}}]), told], [U, dict(call, function_call={"name": "f"}), told]]):
    for path in (CHAT, CHAT + "/input_tokens", "/apply-template"): put(f"turns-{i}-{routes.index(path)}", path, {"messages": messages})
put("continue", CHAT, {"messages": [U, A], "continue_final_message": True, "add_generation_prompt": False})
put("template", "/apply-template", {"messages": [U], "add_generation_prompt": False, "tools": [F]})
for i, more in enumerate([{"prompt": ["a", "b"]}, {"prompt": [1, 2]}, {"prompt": [[1], [2]]}, {"prompt": "a", "suffix": "b"}, {"prompt": "a\u0000", "suffix": "b"}, {"prompt": "a", "logprobs": True}, {"prompt": "a", "logprobs": None, "prompt_logprobs": 3}, {"prompt": "a", "prompt_logprobs": True},
                          {"prompt": "a", "prompt_logprobs": 99}, {"prompt": "a", "suffix": "", "echo": False}, {"prompt": ["a"] * 40}, {"prompt": "a", "n": 3, "best_of": 3}, {"prompt": "a", "max_tokens": 0, "echo": True, "logprobs": 0, "prompt_logprobs": 0}]):
    for answer in (ECHO, LOGPROBS, CHOICES): put(f"text-{i}-{answer}", TEXT, dict(more), 0, answer)
for i, (path, body) in enumerate([("/infill", {"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "f", "text": "t"}], "prompt": "p"}), ("/tokenize", {"content": "a", "add_special": True, "parse_special": False, "with_pieces": True}), ("/detokenize", {"tokens": [1, 2]}),
                                  ("/v1/embeddings", {"input": "a"}), ("/v1/embeddings", {"input": [1, 2], "encoding_format": "base64", "dimensions": 2}), ("/v1/embeddings", {"input": ["a", [1]], "encoding_format": "float"}), ("/v1/embeddings", {"input": []}), ("/v1/embeddings", {"dimensions": 0, "input": "a"}),
                                  ("/embedding", {"content": "a"}), ("/embeddings", {"content": ["a", "b"], "encoding_format": "base64"}), ("/embedding", {"input": "x"}), ("/rerank", {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": True}), ("/v1/rerank", {"query": "q", "documents": []}),
                                  ("/v1/rerank", {"query": "q", "documents": [5]}), ("/rerank", {"query": "q", "texts": ["a"], "raw_scores": True}), ("/rerank", {"documents": ["a"]}), ("/rerank", {"query": "q", "documents": ["a"] * 3000}), ("/api/chat", {"model": "m", "messages": []}), ("/api/generate", {"model": "m"}),
                                  ("/api/generate", {"model": "m", "prompt": "p", "suffix": "s"}), ("/api/generate", {"model": "m", "prompt": "p", "system": "s", "format": "json", "think": True}), ("/api/generate", {"model": "m", "prompt": "p", "raw": True, "context": [1], "format": {"type": "object"}}),
                                  ("/api/generate", {"model": "m", "prompt": "p", "images": ["x"]}), ("/api/generate", {"model": "m", "prompt": "p", "images": []}), ("/api/embed", {"model": "m", "input": "a"}), ("/api/embed", {"model": "m", "input": ["a", "b"], "truncate": False}), ("/api/embed", {"model": "m"}),
                                  ("/api/embed", {"model": "m", "input": 5}), ("/api/embed", {"model": "m", "input": []}), ("/api/chat", {"model": "m", "messages": [U], "format": "xml"}), ("/api/chat", {"model": "m", "messages": [U], "format": "", "think": False}), ("/api/chat", {"model": "m", "messages": [U], "think": "low"}),
                                  ("/api/chat", {"model": "m", "messages": [U], "keep_alive": "1h30m5.5s", "options": {"num_predict": -1, "num_ctx": 99, "temperature": 0.5, "stop": ["a"], "mirostat": 0, "odd": 1}}), ("/api/chat", {"model": "m", "messages": [U], "keep_alive": "5x"}), ("/api/chat", {"model": "m", "messages": [U], "keep_alive": -1}),
                                  ("/api/chat", {"model": "m", "messages": [U, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, {"role": "tool", "content": "r", "tool_name": "f"}, U]}), ("/api/chat", {"model": "m", "messages": [U, {"role": "assistant", "tool_calls": [{}]}]}),
                                  ("/api/chat", {"model": "m", "messages": [U, {"role": "assistant", "thinking": "t", "content": "x", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}, {"role": "tool", "tool_call_id": "c", "content": "x"}]}), ("/api/chat", {"model": "m", "messages": [U, {"role": "tool", "tool_call_id": "z", "content": "x"}]}),
                                  ("/api/chat", {"model": "m", "messages": [U, {"role": "tool", "content": "x"}]}), ("/api/chat", {"model": "m", "messages": [U], "stream": False, "tools": [F], "logprobs": True, "top_logprobs": 0})]):
    put(f"others-{i}", path, body, 0, i % 13)
text = lambda s: {"type": "text", "text": s}
for i, more in enumerate([{"system": "s"}, {"system": [text("a"), {"type": "image"}]}, {"system": 5}, {"stop_sequences": ["a"]}, {"stop_sequences": "a"}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, {"thinking": {"type": "adaptive"}},
                          {"output_config": {"format": {"type": "json_schema", "schema": {}}}}, {"output_config": {"format": {"type": "json_schema"}}}, {"output_config": {"format": {"type": "xml"}}}, {"output_config": {"format": 5}}, {"output_config": {"effort": "max"}}, {"metadata": {"user_id": "x"}}, {"stream": True},
                          {"tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": {}}], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, {"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "f"}}, {"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "none"}},
                          {"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "auto", "disable_parallel_tool_use": 5}}, {"tools": [{"type": "web_search_20250305", "name": "w"}]}, {"tools": [{"type": "custom", "name": "f", "input_schema": {}}]}, {"service_tier": "auto", "top_k": 5},
                          {"messages": [U, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}, text("a"), {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [text("r")], "is_error": True}, text("b")]}]},
                          {"messages": [U, {"role": "assistant", "content": [{"type": "odd"}]}]}, {"messages": [U, {"role": "assistant", "content": "goes on"}]}, {"messages": [{"role": "user", "content": [{"type": "odd"}]}]}, {"max_tokens": None}]):
    for path in (MESSAGES, MESSAGES + "/count_tokens"): put(f"messages-{i}-{routes.index(path)}", path, dict({"messages": [U], "max_tokens": 9}, **more), 4 if i == 19 and path == MESSAGES else 0, i % 13)
item = lambda t, **o: dict({"type": t}, **o)
for i, more in enumerate([{"input": "x", "instructions": "i"}, {"input": [U]}, {"input": [item("message", role="user", content=[item("input_text", text="a")])]}, {"input": [item("message", role="user", content=[item("input_image")])]}, {"input": [item("reasoning", summary=[item("summary_text", text="s")], content=None), U]},
                          {"input": [U, item("function_call", call_id="c", name="f", arguments="{}"), item("function_call_output", call_id="c", output="r")]}, {"input": [U, item("function_call_output", call_id="z", output="r")]}, {"input": [item("item_reference", id="x")]}, {"input": [item("odd")]},
                          {"input": [U, item("function_call", call_id="c", name="f", arguments="{}"), item("function_call_output", call_id="c", output=[item("input_text", text="r")])]}, {"input": [U, item("message", role="assistant", content=[item("output_text", text="a", annotations=[])])]}, {"input": "x", "truncation": "auto"},
                          {"input": "x", "truncation": "disabled"}, {"input": "x", "truncation": 5}, {"input": "x", "top_logprobs": 3, "include": ["message.output_text.logprobs", "odd"]}, {"input": "x", "max_output_tokens": 5}, {"input": "x", "max_output_tokens": 0}, {"input": "x", "text": {"format": item("json_schema", name="x", schema={}, strict=True)}},
                          {"input": "x", "text": {"format": item("json_schema", name="x")}}, {"input": "x", "text": {"format": item("json_object")}}, {"input": "x", "text": {"format": item("text"), "verbosity": "low"}}, {"input": "x", "text": {"format": item("odd")}}, {"input": "x", "previous_response_id": "r"}, {"input": "x", "store": True},
                          {"input": "x", "background": True}, {"input": "x", "reasoning": {"effort": "low", "summary": "auto"}}, {"input": "x", "tools": [item("web_search")]}, {"input": "x", "tools": [item("web_search"), item("function", name="f")], "tool_choice": item("function", name="f")}, {"input": "x", "tools": [item("web_search"), item("function", name="f")], "tool_choice": "none"},
                          {"input": "x", "tools": [item("function", name="f", parameters={}, strict=False)], "tool_choice": item("allowed_tools", mode="auto", tools=[item("function", name="f")])}, {"input": 5}, {"input": []}, {"input": "x", "conversation": "c"}, {"input": "x", "prompt": {"id": "p"}}, {"input": "x", "metadata": {"a": "b"}}]):
    for path in (RESPONSES, RESPONSES + "/input_tokens"): put(f"responses-{i}-{routes.index(path)}", path, dict(more), 4 if i in (26, 27) else 0, i % 13)
for i, body in enumerate([b"", b"{", b"[]", b'{"a":1,"a":2}', b'{"messages":[{"role":"user","content":"' + bytes([0xC3]) + b'"}]}', b'{"messages":' + b"[" * 100, b'{"x":[' + b"1," * 70000 + b"1]}", b'{"messages":[{"role":"user","content":"\\u0000\\ud83d"}]}'][:8]):
    if len(body) < 2000: put(f"raw-{i}", CHAT, body)
# numbers and texts that are written
for i, d in enumerate([float("nan"), float("inf"), 0.1, 1e300, 5e-324, -0.0, 3.0, 1 / 3]):
    with open(os.path.join(out, f"number-{i}"), "wb") as f: f.write(struct.pack("<d", d))
with open(os.path.join(out, "escapes"), "wb") as f: f.write(b"\0\0\1\x08\x0c\n\r\t\"\\\xff\xc3A" * 3)
