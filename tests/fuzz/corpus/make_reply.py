# Seeds for fuzz_reply: python3 make_reply.py FOLDER
# A seed: u8 format, u8 prompt (64: more stop strings, 128: without tools where calls are not its own), then a byte a
# token: below 128 itself, from 144 on the pieces and special tokens of fuzz_reply.c, which are read from it.
import os, re, sys

out = sys.argv[1]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz_reply.c"), encoding="utf-8") as f:
    source = f.read()


def strings(name):
    body = re.search(r"static const char \*const " + name + r"\[\] = \{(.*?)\};", source, re.S).group(1)
    return [eval('"' + s + '"').encode("latin1") for s in re.findall(r'"((?:[^"\\]|\\.)*)"', body)]


pieces, special = strings("pieces"), strings("special")


def tokens(*parts):
    """Text byte for byte; a list is tokens by their text; characters that are not ASCII are their pieces."""
    data = b""
    for p in parts:
        for t in p if isinstance(p, list) else []:
            b = t.encode("latin1")
            data += bytes([0x90 + (len(pieces) + special.index(b) if b in special else pieces.index(b))])
        if isinstance(p, str): data += p.encode("ascii")
    return data


def put(name, form, prompt, *parts):
    with open(os.path.join(out, name), "wb") as f: f.write(bytes([form, prompt]) + tokens(*parts))


for form in range(12):
    for prompt in range(6):
        put(f"plain-{form}-{prompt}", form, prompt, "Hello ", ["a\xc3", "\xa9z"], " there", ["</s>"])
    put(f"stop-{form}", form, 64, "a\n", ["\n\n"], "b STO", "P c")
    put(f"thought-{form}", form, 0, "<think>why</think>\n\nso", ["</s>"])
    put(f"token-{form}", form, 0, ["<think>"], "why", ["</think>"], "so <think>no</think>", ["</s>"])
    put(f"cut-{form}", form, 1, "why</thi")
put("response", 5, 0, "<think>a</think><response>b</response> c", ["</s>"])
put("response-open", 5, 128, "<resp", ["onse>"], "b<", "/response>", ["</s>"])
put("steps", 4, 4, "a[/THINK]b\n\nUser: c")
put("steps-own", 4, 0, "[THINK]a", "[/THINK]b", ["</s>"])
put("harmony", 1, 2, ["<|channel|>"], "analysis", ["<|message|>"], "hm", ["<|end|>", "<|start|>"], "assistant", ["<|channel|>"], "final", ["<|message|>"], "yes", ["<|return|>"])
put("harmony-odd", 1, 0, ["<|start|>"], "assistant", ["<|channel|>"], "odd", ["<|message|>"], "hm", ["<|end|>", "<|start|>"], "assistant", ["<|message|>"], "bare", ["<|end|>"])
put("harmony-said", 1, 2, ["<|channel|>"], "commentary", ["<|message|>"], "let me", ["<|end|>", "<|start|>"], "assistant", ["<|channel|>"], "commentary to=functions.f", ["<|constrain|>"], "json", ["<|message|>"], '{"k": "v"}', ["<|call|>"])
put("harmony-call", 1, 2, " to=functions.f", ["<|channel|>"], "commentary json", ["<|message|>"], '{"k": "v"}', ["<|call|>"])
put("harmony-none", 1, 2, ["<|channel|>"], "commentary to=functions.nosuch", ["<|message|>"], '{"k": 1}', ["<|call|>"])
put("harmony-spelt", 1, 5, "why<|end|><|start|>assistant<|channel|>final<|message|>so<|return|>", ["<|end|>"])
put("harmony-mask", 1, 32 + 2, ["<|channel|>"], "commentary to=functions.f", ["<|constrain|>"], "json", ["<|message|>"], '{"k": "v"}', ["<|call|>"])
put("harmony-mask-own", 1, 32 + 16 + 2, ["<|channel|>"], "analysis", ["<|message|>"], "aaaa", ["<|end|>"])
for form in range(12): put(f"thought-mask-{form}", form, 32 + 128, ["<think>"], "aaaaaaaaaaaaaaaa", ["</think>"], "x", ["</s>"])
put("harmony-broken", 1, 2, ["<|channel|>"], "commentary to=functions.f", ["<|message|>"], '{"k": "v', ["<|end|>", "<|start|>"], "assistant", ["<|channel|>"], "final", ["<|message|>"], "x", ["<|return|>"])
put("channel", 2, 3, "hm", ["<channel|>"], "so", ["<|channel>"], "thought\nmore", ["<channel|>"], "x", ["</s>"])
put("channel-call", 2, 0, ["<|tool_call>"], 'call:f{k:', ["<|\"|>"], "v", ["<|\"|>"], "}", ["<tool_call|>"], "x", ["</s>"])
put("channel-answer", 2, 0, ["<|channel>"], "answer\nx", ["</s>"])
put("begin", 3, 0, ["<|begin|>"], "assistant", ["<|think|>"], "hm", ["<|end|>", "<|begin|>"], "assistant", ["<|content|>"], "so", ["<|end|>"])
put("begin-tools", 3, 0, ["<|begin|>"], "assistant<|tool_calls|>", '{"name": "f"}', ["<|end|>"])
CALLS = {6: '<tool_call>{"name": "f", "arguments": {"k": "v\\u00e9", "n": [1, {"a": null}]}}</tool_call>', 7: '[ARGS]f[ARGS]{"k": "v"}', 8: "<tool_call>\n<function=f>\n<parameter=k>\nv\nw\n</parameter>\n</function>\n</tool_call>",
         9: '<|tool_call>call:f{k:<|"|>v<|"|>,n:[1,{a:true}]}<tool_call|>', 10: '<tcs>[f(k="v", n={"a": None}), f()]<tce>', 11: '{"name": "f", "parameters": {"k": "v"}}', 0: '{"tool_calls": [{"name": "f", "arguments": {"k": "v"}}]}', 4: '{"name": "f", "arguments": {}}'}
MARKS = ["<|tool_call>", "<tool_call|>", '<|"|>', "<tcs>", "<tce>", "[ARGS]", "<tool_call>", "</tool_call>"]


def marked(text):
    """The same with marks as their tokens."""
    parts, at = [], 0
    for m in re.finditer("|".join(map(re.escape, MARKS)), text):
        parts += [text[at:m.start()], [m.group()]]
        at = m.end()
    return parts + [text[at:]]


for form, text in CALLS.items():
    put(f"call-{form}", form, 0, text, ["</s>"])
    put(f"call-{form}-marks", form, 0, *marked(text), ["</s>"])
    put(f"call-{form}-twice", form, 0, "I say ", *marked(text), "\n", *marked(text), ["</s>"])
    put(f"call-{form}-none", form, 0, *marked(text.replace("f", "g", 1) if form != 8 else text.replace("=f", "=g")), ["</s>"])
    for k in range(1, 8): put(f"call-{form}-cut{k}", form, 0, *marked(text[:len(text) * k // 8]), ["</s>"] if k % 2 else "")
    for bits in (32, 32 + 16, 32 + 16 + 64, 32 + 128): put(f"call-{form}-mask{bits}", form, bits, "x ", *marked(text), *marked(text), ["</s>"])
    put(f"call-{form}-mask-thought", form, 32 + 128 + 1, "aaaaaaaaaaaa</think>", *marked(text), ["</s>"])
    put(f"call-{form}-text", form, 128, *marked(text), ["</s>"])
    put(f"call-{form}-mark-in", form, 0, *marked(text.replace('"v', '"<tool_call>v')), ["</s>"])
for i, v in enumerate(['"a\\n\\x41\\u00e9\\U0001F600\\q\\\n"', "'''t'''", '"""t"""', "None", "True", "False", "-1_000.5", "0x1F", "1e5", "(1, 2,)", "[", "{'a': ('b',), \"c\": 1}", "nan", "{1: 2}", "set()", "'a' 'b'", "1 +", "\\", "'\\ud800'", "[[[[" * 30, "b'x'", "-", "", "[1 2]", "{'a' 1}", "['x'", "'\\0\\b\\f\\r\\t\\\\\\'\\\"'"]):
    put(f"python-{i}", 10, 0, ["<tcs>"], "[f(k=" + v + ")]", ["<tce>", "</s>"])
    put(f"lines-{i}", 8, 0, ["<tool_call>"], "\n<function=f>\n<parameter=z>\n" + v + "\n</parameter>\n</function>\n", ["</tool_call>", "</s>"])
    put(f"curly-{i}", 9, 0, ["<|tool_call>"], "call:f{z:" + v + "}", ["<tool_call|>", "</s>"])
