#!/usr/bin/env python3
"""Do the clients of OpenAI, Anthropic and ollama take what hone's voices say?

    mkdir F && HONE_VOICES=F build/release/tests/unit/test_voices && python3 tests/dev/check_voices.py F

test_voices writes each answer, streamed and not. A small server on loopback replays them; the clients (openai, anthropic
and ollama of PyPI) ask for them by name, and every body and event is also checked against the clients' own types, which
validate strictly where the clients themselves do not. What a stream comes to must be what the whole answer says.
Prints one line per refusal and the counts; exit 1 if there was one, 77 where no client is there.
"""
import http.server
import json
import pathlib
import sys
import threading

ROUTES = {"/v1/chat/completions": "v1_chat_completions", "/v1/completions": "v1_completions",
          "/v1/responses": "v1_responses", "/v1/messages": "v1_messages", "/api/chat": "api_chat",
          "/api/generate": "api_generate", "/v1/embeddings": "v1_embeddings", "/api/embed": "api_embed",
          "/v1/messages/count_tokens": "v1_messages_count_tokens",
          "/v1/responses/input_tokens": "v1_responses_input_tokens"}
folder = pathlib.Path(sys.argv[1])
bad, done = [], {}


class Replay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        ollama = path.startswith("/api/")
        stream = body.get("stream", ollama and path != "/api/embed")
        name = body["model"]
        if name == "found" and body.get("encoding_format") == "base64":
            name = "base64"
        file = folder / f"{ROUTES[path]}.{name}.{'stream' if stream else 'whole'}"
        data = file.read_bytes()
        kind = "application/x-ndjson" if ollama else "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind if stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def names(path, kind="stream"):
    prefix = ROUTES[path] + "."
    return sorted(f.name[len(prefix):-len(kind) - 1] for f in folder.glob(f"{prefix}*.{kind}")
                  if f.name[len(prefix):-len(kind) - 1] not in ("found", "base64", "load"))


def whole(path, name):
    return json.loads((folder / f"{ROUTES[path]}.{name}.whole").read_text())


def sse(path, name):
    for block in (folder / f"{ROUTES[path]}.{name}.stream").read_text().split("\n\n"):
        for line in block.split("\n"):
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line[6:])


def check(what, fn):
    client = what.split()[0]
    done[client] = done.get(client, 0) + 1
    try:
        fn()
    except Exception as e:  # whatever a client says
        bad.append(what)
        print(f"{what}: {type(e).__name__}: {str(e)[:600]}")


def same(a, b):
    assert a == b, f"\n  {a!r}\n  {b!r}"


def strict(kind, value):
    from pydantic import TypeAdapter
    TypeAdapter(kind).validate_python(value)


def openai_checks(base):
    import openai
    from openai.types import Completion, CreateEmbeddingResponse
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.responses import Response, ResponseStreamEvent
    client = openai.OpenAI(base_url=base + "/v1", api_key="k", max_retries=0)
    hi = [{"role": "user", "content": "hi"}]

    for name in names("/v1/chat/completions"):
        want = whole("/v1/chat/completions", name)

        def chat():
            strict(ChatCompletion, want)
            for f in sse("/v1/chat/completions", name):
                strict(ChatCompletionChunk, f)
            got = client.chat.completions.create(model=name, messages=hi)
            same(got.choices[0].message.content, want["choices"][0]["message"]["content"])
            content, calls = {}, {}
            for chunk in client.chat.completions.create(model=name, messages=hi, stream=True):
                for c in chunk.choices:
                    content[c.index] = content.get(c.index, "") + (c.delta.content or "")
                    for t in c.delta.tool_calls or []:
                        k = (c.index, t.index)
                        calls[k] = calls.get(k, "") + (t.function.name or "") + "|" + (t.function.arguments or "")
            for c in want["choices"]:
                same(content[c["index"]], c["message"]["content"] or "")
                for i, t in enumerate(c["message"].get("tool_calls") or []):
                    same(calls[c["index"], i].replace("|", ""), t["function"]["name"] + t["function"]["arguments"])

        def helper():
            with client.chat.completions.stream(model=name, messages=hi,
                                                stream_options={"include_usage": True}) as s:
                try:
                    final = s.get_final_completion()
                except openai.LengthFinishReasonError:
                    final = None
            cut = any(c["finish_reason"] == "length" for c in want["choices"])
            assert (final is None) == cut, "length"
            if final:
                same(final.choices[0].message.content or "", want["choices"][0]["message"]["content"] or "")
                same([t.function.arguments for t in final.choices[0].message.tool_calls or []],
                     [t["function"]["arguments"] for t in want["choices"][0]["message"].get("tool_calls") or []])
                same(final.usage.total_tokens, want["usage"]["total_tokens"])

        check(f"openai chat {name}", chat)
        check(f"openai chat.stream() {name}", helper)

    for name in names("/v1/completions"):
        want = whole("/v1/completions", name)

        def text():
            strict(Completion, want)
            for f in sse("/v1/completions", name):
                # the type wants a finish_reason in each chunk; OpenAI's own streams have null there
                strict(Completion, json.loads(json.dumps(f).replace('"finish_reason": null', '"finish_reason": "stop"')))
            same(client.completions.create(model=name, prompt="hi").choices[0].text, want["choices"][0]["text"])
            got = "".join(c.text for chunk in client.completions.create(model=name, prompt="hi", stream=True)
                          for c in chunk.choices if c.index == 0)
            same(got, want["choices"][0]["text"])

        check(f"openai completions {name}", text)

    for name in names("/v1/responses"):
        want = whole("/v1/responses", name)

        def responses():
            strict(Response, want)
            for f in sse("/v1/responses", name):
                strict(ResponseStreamEvent, f)
            same(client.responses.create(model=name, input="hi").output_text,
                 "".join(p["text"] for i in want["output"] if i["type"] == "message" for p in i["content"]))
            last = list(client.responses.create(model=name, input="hi", stream=True))[-1]
            same([i.type for i in last.response.output], [i["type"] for i in want["output"]])

        def helper():
            with client.responses.stream(model=name, input="hi") as s:
                texts = "".join(e.delta for e in s if e.type == "response.output_text.delta")
                if want["status"] == "completed":
                    final = s.get_final_response()
                    same(final.output_text, texts)
                    same([i.type for i in final.output], [i["type"] for i in want["output"]])

        check(f"openai responses {name}", responses)
        check(f"openai responses.stream() {name}", helper)

    def embeddings():
        strict(CreateEmbeddingResponse, whole("/v1/embeddings", "found"))
        got = client.embeddings.create(model="found", input="x")  # asks for base64
        same(got.data[0].embedding, [1.0, -0.5])
        got = client.embeddings.create(model="found", input=["x", "y"], encoding_format="float")
        same(got.data[1].embedding, [0.1, 0.0])

    check("openai embeddings", embeddings)
    check("openai input_tokens", lambda: same(
        client.responses.input_tokens.count(model="found", input="hi").input_tokens, 12))


def anthropic_checks(base):
    import anthropic
    from anthropic.types import Message, RawMessageStreamEvent
    client = anthropic.Anthropic(base_url=base, api_key="k", max_retries=0)
    hi = [{"role": "user", "content": "hi"}]
    for name in names("/v1/messages"):
        want = whole("/v1/messages", name)

        def messages():
            strict(Message, want)
            for f in sse("/v1/messages", name):
                strict(RawMessageStreamEvent, f)
            got = client.messages.create(model=name, max_tokens=9, messages=hi)
            same(got.stop_reason, want["stop_reason"])
            same(got.stop_sequence, want["stop_sequence"])

        def helper():
            with client.messages.stream(model=name, max_tokens=9, messages=hi) as s:
                text = "".join(s.text_stream)
                final = s.get_final_message()
            same(text, "".join(b["text"] for b in want["content"] if b["type"] == "text"))
            got = json.loads(final.model_dump_json())
            same([b["type"] for b in got["content"]], [b["type"] for b in want["content"]])
            for a, b in zip(got["content"], want["content"]):
                cut = want["stop_reason"] == "max_tokens" and b["type"] == "tool_use"
                for key in b:
                    if not cut or key != "input":  # the client keeps what came of arguments that were cut
                        same(a[key], b[key])
            same(final.stop_reason, want["stop_reason"])
            same(final.usage.output_tokens, want["usage"]["output_tokens"])
            same(final.usage.input_tokens, want["usage"]["input_tokens"])

        check(f"anthropic messages {name}", messages)
        check(f"anthropic messages.stream() {name}", helper)
    check("anthropic count_tokens", lambda: same(
        client.messages.count_tokens(model="found", messages=hi).input_tokens, 12))


def ollama_checks(base):
    import ollama
    client = ollama.Client(host=base)
    hi = [{"role": "user", "content": "hi"}]
    for name in names("/api/chat"):
        want = whole("/api/chat", name)

        def chat():
            got = client.chat(model=name, messages=hi)
            same(got.message.content, want["message"]["content"])
            same(got.done_reason, want["done_reason"])
            same([(t.function.name, dict(t.function.arguments)) for t in got.message.tool_calls or []],
                 [(t["function"]["name"], t["function"]["arguments"]) for t in want["message"].get("tool_calls", [])])
            text, thinking, calls = "", "", []
            for line in client.chat(model=name, messages=hi, stream=True):
                text += line.message.content or ""
                thinking += line.message.thinking or ""
                calls += line.message.tool_calls or []
            same(text, want["message"]["content"])
            same(thinking, want["message"].get("thinking", ""))
            same([t.function.name for t in calls],
                 [t["function"]["name"] for t in want["message"].get("tool_calls", [])])
            assert line.done and line.eval_count == 7 and line.total_duration > 0

        check(f"ollama chat {name}", chat)
    for name in names("/api/generate"):
        want = whole("/api/generate", name)

        def generate():
            same(client.generate(model=name, prompt="hi").response, want["response"])
            lines = list(client.generate(model=name, prompt="hi", stream=True))
            same("".join(line.response for line in lines), want["response"])
            assert lines[-1].done

        check(f"ollama generate {name}", generate)
    check("ollama embed", lambda: same(
        [list(v) for v in client.embed(model="found", input=["a", "b"]).embeddings], [[1.0, -0.5], [0.1, 0.0]]))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_address[1]}"
missing = []
for run in (openai_checks, anthropic_checks, ollama_checks):
    try:
        run(address)
    except ImportError as e:
        missing.append(str(e))
for m in missing:
    print(f"SKIP: {m}")
print(", ".join(f"{k}: {v}" for k, v in done.items()) + f"; {len(bad)} refused")
sys.exit(1 if bad else 77 if not done else 0)
