#!/usr/bin/env python3
"""hone serve asked by clients that others wrote: openai, anthropic and ollama from PyPI, unmodified.

    check_clients.py PROGRAM MODEL [PATTERN]     starts PROGRAM serve -m MODEL, runs the cases that match

Each case is a function below; what a client refuses, or what differs from what was asked for, is a failure. Skipped
(exit 77) where the clients are not installed."""
import json, re, subprocess, sys, threading

try:
    import anthropic, httpx, ollama, openai
except ImportError as e:
    print("SKIP:", e)
    sys.exit(77)

CASES = []


def case(f):
    CASES.append(f)
    return f


class Server:
    def __init__(self, program, model, *options):
        self.program, self.model = program, model
        self.p = subprocess.Popen([program, "serve", "-m", "it=" + model, "--port", "0", "--ollama", "--metrics", "--slots",
                                   "-t", "2", *options], stderr=subprocess.PIPE, text=True)
        for line in self.p.stderr:
            m = re.search(r"listening on (http://\S+)", line)
            if m:
                self.url = m.group(1)
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.p.stderr.read, daemon=True).start()
        self.openai = openai.OpenAI(base_url=self.url + "/v1", api_key="x", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=self.url, api_key="x", max_retries=0)
        self.ollama = ollama.Client(host=self.url)

    def stop(self):
        self.p.terminate()
        return self.p.wait(60)


HI = [{"role": "user", "content": "What is your name?"}]
TOOL = {"type": "function", "function": {"name": "weather", "description": "Weather of a town", "parameters": {
    "type": "object", "properties": {"town": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["town", "days"], "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}, "ok": {"type": "boolean"}},
          "required": ["n", "ok"], "additionalProperties": False}


# ---- openai ------------------------------------------------------------------------------------------------------

@case
def openai_models(s):
    ids = [m.id for m in s.openai.models.list()]
    assert ids == ["it"], ids
    assert s.openai.models.retrieve("it").id == "it"
    try:
        s.openai.models.retrieve("other/one")
        assert False
    except openai.NotFoundError as e:
        assert e.code == "model_not_found", e.code


@case
def openai_chat_stream_equals_plain(s):
    for k in range(6):
        want = dict(model="it", messages=HI, max_tokens=30, seed=k, temperature=1.2 if k % 2 else 0)
        plain = s.openai.chat.completions.create(**want)
        text, why, usage, ids = "", None, None, set()
        for c in s.openai.chat.completions.create(stream=True, stream_options={"include_usage": True}, **want):
            ids.add(c.id)
            if c.usage:
                usage = c.usage
                assert c.choices == []
            for ch in c.choices:
                text += ch.delta.content or ""
                why = ch.finish_reason or why
        assert text == plain.choices[0].message.content, (text, plain.choices[0].message.content)
        assert why == plain.choices[0].finish_reason
        assert usage.completion_tokens == plain.usage.completion_tokens and usage.prompt_tokens == plain.usage.prompt_tokens
        assert len(ids) == 1


@case
def openai_stream_helper(s):
    with s.openai.chat.completions.stream(model="it", messages=HI, max_tokens=20, seed=1) as stream:
        kinds = [e.type for e in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and final.choices[0].message.content


@case
def openai_n_logprobs_stop_bias(s):
    r = s.openai.chat.completions.create(model="it", messages=HI, n=3, seed=4, max_tokens=12, logprobs=True, top_logprobs=3)
    assert [c.index for c in r.choices] == [0, 1, 2]
    one = s.openai.chat.completions.create(model="it", messages=HI, seed=4, max_tokens=12)
    assert one.choices[0].message.content == r.choices[0].message.content
    for c in r.choices:
        joined = b"".join(bytes(t.bytes) for t in c.logprobs.content).decode("utf-8", "replace")
        assert c.message.content.startswith(joined.rstrip("\ufffd")) or joined.startswith(c.message.content), (joined, c.message.content)
        for t in c.logprobs.content:
            assert len(t.top_logprobs) == 3 and t.logprob <= 0
            assert t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob
    full = s.openai.chat.completions.create(model="it", messages=HI, temperature=0, max_tokens=30).choices[0].message.content
    cut = s.openai.chat.completions.create(model="it", messages=HI, temperature=0, max_tokens=30, stop=[full[5:9]]).choices[0]
    assert cut.message.content == full[:full.index(full[5:9])] and cut.finish_reason == "stop", cut
    first = s.openai.chat.completions.create(model="it", messages=HI, temperature=0, max_tokens=1, logprobs=True).choices[0].logprobs.content[0].token
    ids = httpx.post(s.url + "/tokenize", json={"content": first}).json()["tokens"]
    other = s.openai.chat.completions.create(model="it", messages=HI, temperature=0, max_tokens=1, logit_bias={str(i): -100 for i in ids})
    assert other.choices[0].message.content != first


@case
def openai_schema(s):
    for k in range(5):
        r = s.openai.chat.completions.create(model="it", messages=HI, seed=k, temperature=1.5, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}})
        v = json.loads(r.choices[0].message.content)
        assert 1 <= v["n"] <= 9 and isinstance(v["ok"], bool) and len(v) == 2, v
    try:
        s.openai.chat.completions.create(model="it", messages=HI, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "uniqueItems": True}}})
        assert False
    except openai.BadRequestError as e:
        assert "uniqueItems" in e.message, e.message


@case
def openai_tools(s):
    r = s.openai.chat.completions.create(model="it", messages=HI, seed=1, temperature=1.3, tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    m = r.choices[0].message
    assert r.choices[0].finish_reason == "tool_calls" and len(m.tool_calls) == 1, r
    args = json.loads(m.tool_calls[0].function.arguments)
    assert m.tool_calls[0].function.name == "weather" and 1 <= args["days"] <= 5 and len(args["town"]) <= 12, args
    name, text = "", ""
    for c in s.openai.chat.completions.create(model="it", messages=HI, seed=1, temperature=1.3, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, stream=True):
        for t in c.choices[0].delta.tool_calls or []:
            name += t.function.name or ""
            text += t.function.arguments or ""
    assert name == "weather" and text == m.tool_calls[0].function.arguments, (name, text)
    again = HI + [m.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": m.tool_calls[0].id, "content": "sunny"}]
    assert s.openai.chat.completions.create(model="it", messages=again, max_tokens=20, tools=[TOOL], tool_choice="none").choices[0].message.content is not None
    named = s.openai.chat.completions.create(model="it", messages=HI, seed=2, temperature=1.3, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "weather"}})
    assert named.choices[0].message.tool_calls[0].function.name == "weather"


@case
def openai_completions(s):
    r = s.openai.completions.create(model="it", prompt=["The cat", "A dog"], n=2, seed=3, max_tokens=6, logprobs=2)
    assert [c.index for c in r.choices] == [0, 1, 2, 3]
    for c in r.choices:
        assert len(c.logprobs.tokens) == len(c.logprobs.token_logprobs) == len(c.logprobs.top_logprobs)
    e = s.openai.completions.create(model="it", prompt="The cat", max_tokens=0, echo=True, logprobs=0)
    assert e.choices[0].text == "The cat" and e.choices[0].logprobs.token_logprobs[0] is None
    text = "".join(c.choices[0].text for c in s.openai.completions.create(model="it", prompt="The cat", max_tokens=6, seed=3, stream=True))
    assert text == s.openai.completions.create(model="it", prompt="The cat", max_tokens=6, seed=3).choices[0].text


@case
def openai_responses(s):
    r = s.openai.responses.create(model="it", input="What is your name?", max_output_tokens=30, temperature=0)
    assert r.output_text and r.status in ("completed", "incomplete")
    text, kinds = "", []
    with s.openai.responses.stream(model="it", input="What is your name?", max_output_tokens=30, temperature=0) as stream:
        for e in stream:
            kinds.append(e.type)
            if e.type == "response.output_text.delta":
                text += e.delta
        final = stream.get_final_response()
    assert text == r.output_text == final.output_text, (text, r.output_text)
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
    t = s.openai.responses.create(model="it", input="x", tools=[{"type": "function", "name": "weather", "parameters": TOOL["function"]["parameters"], "strict": True}], tool_choice="required", temperature=1.3)
    call = [o for o in t.output if o.type == "function_call"][0]
    assert json.loads(call.arguments)["days"] in range(1, 6)


@case
def openai_errors(s):
    for body, kind in (({"messages": []}, openai.BadRequestError), ({"messages": HI, "temperature": 99}, openai.BadRequestError),
                       ({"messages": [{"role": "user", "content": "x " * 200000}]}, openai.BadRequestError)):
        for stream in (False, True):
            try:
                list(s.openai.chat.completions.create(model="it", stream=stream, **body))
                assert False, body
            except kind as e:
                assert e.body and e.body.get("message"), e


@case
def openai_prefill(s):
    r = s.openai.chat.completions.create(model="it", messages=HI + [{"role": "assistant", "content": "I am hone-"}], max_tokens=20, temperature=0)
    assert r.choices[0].message.content is not None


# ---- anthropic -----------------------------------------------------------------------------------------------------

@case
def anthropic_messages(s):
    r = s.anthropic.messages.create(model="it", max_tokens=30, messages=HI, system="Be brief.", extra_body={"temperature": 0})
    assert r.type == "message" and r.content[0].type == "text" and r.stop_reason in ("end_turn", "max_tokens"), r
    with s.anthropic.messages.stream(model="it", max_tokens=30, messages=HI, system="Be brief.", extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == r.content[0].text and final.stop_reason == r.stop_reason and final.usage.output_tokens == r.usage.output_tokens


@case
def anthropic_stop_and_count(s):
    full = s.anthropic.messages.create(model="it", max_tokens=30, messages=HI, extra_body={"temperature": 0}).content[0].text
    r = s.anthropic.messages.create(model="it", max_tokens=30, messages=HI, stop_sequences=[full[4:8]], extra_body={"temperature": 0})
    assert r.stop_reason == "stop_sequence" and r.stop_sequence == full[4:8], r
    assert s.anthropic.messages.count_tokens(model="it", messages=HI).input_tokens > 3


@case
def anthropic_tools(s):
    tool = {"name": "weather", "description": "w", "input_schema": TOOL["function"]["parameters"]}
    r = s.anthropic.messages.create(model="it", max_tokens=200, messages=HI, tools=[tool], tool_choice={"type": "any"}, extra_body={"temperature": 1.0, "seed": 3})
    use = [b for b in r.content if b.type == "tool_use"]
    assert r.stop_reason == "tool_use" and use[0].name == "weather" and 1 <= use[0].input["days"] <= 5, r
    with s.anthropic.messages.stream(model="it", max_tokens=200, messages=HI, tools=[tool], tool_choice={"type": "any"}) as stream:
        for _ in stream:
            pass
        final = stream.get_final_message()
    assert any(b.type == "tool_use" and 1 <= b.input["days"] <= 5 for b in final.content), final
    back = HI + [{"role": "assistant", "content": [b.model_dump() for b in r.content]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use[0].id, "content": "sunny"}]}]
    assert s.anthropic.messages.create(model="it", max_tokens=20, messages=back, tools=[tool]).type == "message"


@case
def anthropic_errors(s):
    try:
        s.anthropic.messages.create(model="it", max_tokens=5, messages=[])
        assert False
    except anthropic.BadRequestError as e:
        assert e.body["type"] == "error", e.body


TEXT = {"temperature": 0, "seed": 1}


@case
def anthropic_parts_are_one_text(s):
    """Parts of a text, of a system prompt too, say what the text says; blocks of a stream are numbered in turn."""
    one = s.anthropic.messages.create(model="it", max_tokens=20, system="Be brief.", messages=HI, extra_body=TEXT)
    parts = s.anthropic.messages.create(
        model="it", max_tokens=20, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        messages=[{"role": "user", "content": [{"type": "text", "text": HI[0]["content"]}]}], extra_body=TEXT)
    assert one.content == parts.content and one.usage.input_tokens + (one.usage.cache_read_input_tokens or 0) \
        == parts.usage.input_tokens + (parts.usage.cache_read_input_tokens or 0), (one, parts)
    events = list(s.anthropic.messages.create(model="it", max_tokens=20, messages=HI, stream=True, extra_body=TEXT))
    kinds = [e.type for e in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds
    begun = [e.index for e in events if e.type == "content_block_start"]
    assert begun == list(range(len(begun))) == [e.index for e in events if e.type == "content_block_stop"], kinds


@case
def anthropic_results_that_failed(s):
    tool = {"name": "weather", "description": "w", "input_schema": TOOL["function"]["parameters"]}
    talk = HI + [{"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"town": "x", "days": 1}}]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True,
                                               "content": [{"type": "text", "text": "no such town"}]},
                                              {"type": "text", "text": "And now?"}]}]
    assert s.anthropic.messages.create(model="it", max_tokens=10, messages=talk, tools=[tool]).type == "message"
    talk[-1]["content"][0]["tool_use_id"] = "toolu_2"
    try:
        s.anthropic.messages.create(model="it", max_tokens=10, messages=talk, tools=[tool])
        assert False
    except anthropic.BadRequestError as e:
        assert "tool_use_id" in str(e), e


@case
def anthropic_system_between(s):
    talk = HI + [{"role": "system", "content": "a hook said so"}, {"role": "assistant", "content": "Hello."},
                 {"role": "system", "content": [{"type": "text", "text": "be brief"}]}] + HI
    r = s.anthropic.messages.create(model="it", max_tokens=10, system="You help.", messages=talk)
    assert r.content[0].type == "text" and r.content[0].text, r


@case
def anthropic_thinking(s):
    r = s.anthropic.messages.create(model="it", max_tokens=1100, messages=HI, thinking={"type": "enabled", "budget_tokens": 1024})
    assert r.type == "message" and all(b.type in ("thinking", "text") for b in r.content), r


# ---- ollama ----------------------------------------------------------------------------------------------------------

@case
def ollama_chat(s):
    want = dict(model="it", messages=HI, options={"temperature": 0, "num_predict": 30, "seed": 1})
    r = s.ollama.chat(**want)
    text, last = "", None
    for c in s.ollama.chat(stream=True, **want):
        text += c.message.content or ""
        last = c
    assert text == r.message.content and last.done and last.eval_count == r.eval_count, (text, r)


@case
def ollama_rest(s):
    g = s.ollama.generate(model="it", prompt="What is your name?", options={"num_predict": 10, "temperature": 0})
    assert g.done and g.response is not None
    assert [m.model for m in s.ollama.list().models] == ["it"]
    assert s.ollama.ps().models[0].model == "it"
    assert s.ollama.show("it").template
    j = s.ollama.chat(model="it", messages=HI, format=SCHEMA, options={"temperature": 1.2, "seed": 2})
    assert 1 <= json.loads(j.message.content)["n"] <= 9
    t = s.ollama.chat(model="it", messages=HI, tools=[TOOL], options={"num_predict": 40})
    assert t.done


# ---- plain HTTP ----------------------------------------------------------------------------------------------------------

@case
def native(s):
    c = httpx.Client(base_url=s.url, timeout=60)
    r = c.post("/completion", json={"prompt": "The cat", "n_predict": 6, "seed": 3, "n_probs": 2}).json()
    assert r["tokens_predicted"] <= 6 and r["stop"] is True and len(r["completion_probabilities"]) >= 1, r
    ids = c.post("/tokenize", json={"content": "The cat sat."}).json()["tokens"]
    assert c.post("/detokenize", json={"tokens": ids}).json()["content"].strip() == "The cat sat."
    t = c.post("/apply-template", json={"messages": HI}).json()["prompt"]
    assert "What is your name?" in t
    n = c.post("/v1/chat/completions/input_tokens", json={"messages": HI}).json()["input_tokens"]
    assert n == s.openai.chat.completions.create(model="it", messages=HI, max_tokens=1).usage.prompt_tokens
    assert c.get("/slots").json()[0]["is_processing"] is False


@case
def openai_choices_in_a_stream(s):
    plain = s.openai.chat.completions.create(model="it", messages=HI, n=3, max_tokens=12, seed=4)
    texts, ids = [""] * 3, set()
    for c in s.openai.chat.completions.create(model="it", messages=HI, n=3, max_tokens=12, seed=4, stream=True):
        ids.add(c.id)
        for x in c.choices:
            texts[x.index] += x.delta.content or ""
    assert len(ids) == 1 and texts == [c.message.content for c in plain.choices], (texts, plain)


@case
def openai_a_cut_call_goes_back(s):
    """A call that the length cut, also before its arguments, may stand in what is sent next."""
    for n in (2, 6, 10, 14, 20):
        r = s.openai.chat.completions.create(model="it", messages=HI, tools=[TOOL], tool_choice="required", max_tokens=n, seed=3)
        m = r.choices[0].message
        back = [{"role": "tool", "tool_call_id": c.id, "content": "?"} for c in m.tool_calls or []]
        s.openai.chat.completions.create(model="it", messages=HI + [m.model_dump(exclude_none=True)] + back + HI, tools=[TOOL], max_tokens=2)


@case
def native_fields(s):
    c = httpx.Client(base_url=s.url, timeout=60)
    r = c.post("/completion", json={"prompt": "The cat", "n_predict": 3, "ignore_eos": True, "response_fields": ["content", "timings/predicted_n"]}).json()
    assert set(r) == {"content", "timings/predicted_n"} and r["timings/predicted_n"] == 3, r
    many = c.post("/completion", json={"prompt": ["The cat", [5, 6, 7], ["A", 9]], "n_predict": 3}).json()
    assert len(many) == 3, many
    r = c.post("/completion", json={"prompt": "The cat", "n_predict": 3, "n_probs": 3, "post_sampling_probs": True, "temperature": 1}).json()
    assert all(0 < t["prob"] <= 1 for p in r["completion_probabilities"] for t in p["top_probs"]), r
    assert c.get("/").headers["content-type"].startswith(("text/html", "text/plain"))
    for path in ("/slots/0?action=save", "/v1/load_lora_adapter"):
        assert c.post(path, json={}).status_code == 501, path


def other_server(*options):
    """The case has a server of its own: --pooling mean, several models …"""
    def wrap(f):
        def run(s):
            mine = Server(s.program, s.model, *options)
            try:
                f(mine)
            finally:
                assert mine.stop() == 0
        run.__name__ = f.__name__
        return case(run)
    return wrap


@other_server("--pooling", "mean")
def embeddings(s):
    a = s.openai.embeddings.create(model="it", input=["one", "two", "three"])  # as base64
    b = s.openai.embeddings.create(model="it", input=["one", "two", "three"], encoding_format="float")
    assert [d.index for d in b.data] == [0, 1, 2] and a.usage.prompt_tokens == b.usage.prompt_tokens > 0
    for x, y in zip(a.data, b.data):
        assert max(abs(p - q) for p, q in zip(x.embedding, y.embedding)) < 1e-6
        assert abs(sum(p * p for p in y.embedding) - 1) < 1e-4
    o = s.ollama.embed(model="it", input=["one", "two", "three"])
    assert max(abs(p - q) for p, q in zip(o.embeddings[1], b.data[1].embedding)) < 1e-6
    r = httpx.post(s.url + "/v1/rerank", json={"query": "one", "documents": ["one", "two"]})
    assert r.status_code == 501 and "/" not in r.json()["error"]["message"], r.text  # nor where the model lies


@other_server("--chat-template", "gemma")
def tools_of_a_template_without_any(s):
    """Offered in words, called in one form, and what they returned goes back; by all three."""
    openai_tools(s)
    tool = {"name": "weather", "input_schema": TOOL["function"]["parameters"]}
    a = s.anthropic.messages.create(model="it", max_tokens=150, messages=HI, tools=[tool], tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert a.stop_reason == "tool_use" and 1 <= a.content[0].input["days"] <= 5, a
    prompt = httpx.post(s.url + "/apply-template", json={"messages": HI, "tools": [TOOL]}).json()["prompt"]
    assert '"name":"weather"' in prompt and "tool_calls" in prompt, prompt
    for k in range(4):
        r = s.openai.chat.completions.create(model="it", messages=HI, tools=[TOOL], seed=k, max_tokens=20)
        assert r.choices[0].message.content is not None or r.choices[0].message.tool_calls, r
    o = s.ollama.chat(model="it", messages=[*HI, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"town": "x", "days": 1}}}]},
                                            {"role": "tool", "content": "sunny", "tool_name": "weather"}], tools=[TOOL], options={"num_predict": 8})
    assert o.done
    t = s.openai.responses.create(model="it", input="x", tools=[{"type": "function", "name": "weather", "parameters": TOOL["function"]["parameters"], "strict": True}], tool_choice="required", temperature=1.3)
    assert json.loads([o for o in t.output if o.type == "function_call"][0].arguments)["days"] in range(1, 6)


@case
def openai_response_is_cancelled(s):
    for _ in range(30):  # some have ended before
        with s.openai.responses.create(model="it", input="Hi", stream=True, extra_body={"ignore_eos": True}) as stream:
            first = next(iter(stream))
            try:
                r = s.openai.responses.cancel(first.response.id)
            except openai.NotFoundError:
                continue
            assert r.status == "cancelled" and r.id == first.response.id, r
            assert [e.type for e in stream][-1] == "response.failed"
            return
    assert False, "all had ended"


def states(s):
    return {m["id"]: m["status"]["value"] for m in httpx.get(s.url + "/v1/models").json()["data"]}


@other_server("-m", "b=models/hone-tiny.gguf", "-m", "c=models/hone-tiny.gguf", "--models-max", "2")
def several_models(s):
    """Loaded when asked for, once however many ask; the one not used for longest goes, never one in use, and not
    because somebody left."""
    import concurrent.futures, time
    ask = lambda m, n=3: s.openai.completions.create(model=m, prompt="Once", max_tokens=n, temperature=0).choices[0].text
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: ask("b"), range(16)))) == 1
    assert states(s) == {"it": "loaded", "b": "loaded", "c": "unloaded"}, states(s)
    ask("it")
    ask("c")
    assert states(s) == {"it": "loaded", "b": "unloaded", "c": "loaded"}, states(s)
    with s.openai.completions.create(model="it", prompt="Once", max_tokens=400, stream=True, extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))
        assert ask("b") == ask("b") and states(s)["it"] == "loaded", states(s)
    assert httpx.post(s.url + "/models/unload", json={"model": "b"}).status_code == 200 and states(s)["b"] == "unloaded"
    try:  # who asks and leaves has it loaded all the same, or not: the server goes on
        httpx.post(s.url + "/v1/completions", json={"model": "b", "prompt": "Once", "max_tokens": 400}, timeout=0.02)
    except httpx.TimeoutException:
        pass
    assert ask("b") and ask("it") and ask("c")
    try:
        ask("none")
        assert False
    except openai.NotFoundError as e:
        assert e.body["code"] == "model_not_found", e.body
    assert httpx.post(s.url + "/models/load", json={"model": "c"}).json() == {"success": True}


@case
def metrics_add_up(s):
    import time
    c = httpx.Client(base_url=s.url, timeout=60)
    def read():
        return {l.split(" ")[0]: float(l.split(" ")[1]) for l in c.get("/metrics").text.splitlines() if l and l[0] != "#"}
    a = read()
    used = [s.openai.chat.completions.create(model="it", messages=HI, max_tokens=k + 1, seed=k).usage for k in range(5)]
    b = read()
    assert b["hone_prompt_tokens_total"] - a["hone_prompt_tokens_total"] == sum(u.prompt_tokens for u in used)
    assert b["hone_generated_tokens_total"] - a["hone_generated_tokens_total"] == sum(u.completion_tokens for u in used)
    assert b["hone_cached_prompt_tokens_total"] - a["hone_cached_prompt_tokens_total"] == sum(u.prompt_tokens_details.cached_tokens for u in used)
    assert b["hone_requests_running"] == 0 and b["hone_requests_waiting"] == 0
    assert b['hone_request_seconds_bucket{le="+Inf"}'] == b["hone_request_seconds_count"]


def main():
    program, model = sys.argv[1:3]
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    s = Server(program, model)
    bad = 0
    for f in CASES:
        if not re.search(pattern, f.__name__):
            continue
        try:
            f(s)
            print("ok", f.__name__)
        except Exception as e:
            bad += 1
            print("not ok", f.__name__, type(e).__name__, str(e)[:600])
    code = s.stop()
    print(len(CASES), "cases,", bad, "failed; the server's exit code:", code)
    sys.exit(1 if bad or code else 0)


main()
