#!/usr/bin/env python3
"""Answers of hone serve that are held to JSON Schemas, against python-jsonschema.

    check_schema_answers.py PROGRAM MODEL FILE.jsonl… [--seeds 20] [--shape chat|text|tool] [--ids PATTERN]

Each schema of the files ({id, want, refuse, schema} a line) is asked for with every seed, at temperature 1.5, in turn by
/v1/chat/completions, /completion and as the arguments of a tool: what comes back whole has to be valid; what the files
want to be refused has to be refused, its keyword named. An answer that its length cut is counted, and no failure.
Needs what check_schemas.py needs. Exit 1: something was invalid, or answered otherwise than wanted."""
import argparse
import concurrent.futures
import decimal
import http.client
import json
import re
import subprocess
import sys
import threading
from decimal import Decimal

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from check_schemas import Draft202012Validator, Validator

LENGTH = 160  # tokens: enough for most, and a walk at this temperature may go on for ever


def ask(port, path, body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    r = c.getresponse()
    data = json.loads(r.read())
    c.close()
    return r.status, data


def question(shape, schema, seed, strict):
    usual = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "seed": seed, "max_tokens": LENGTH}
    if shape == "text":
        return "/completion", {**usual, "prompt": "The answer is", "json_schema": schema, "n_predict": LENGTH}
    hi = {**usual, "messages": [{"role": "user", "content": "What is your name?"}]}
    if shape == "chat":
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
        return "/v1/chat/completions", {**hi, "response_format": form}
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {
        "type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}}}
    return "/v1/chat/completions", {**hi, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}


def text_of(shape, data):
    """The text that has to be valid; None: the length cut it."""
    if shape == "text":
        return None if data["stop_type"] == "limit" else data["content"]
    c = data["choices"][0]
    if c["finish_reason"] == "length":
        return None
    return c["message"]["content"] if shape == "chat" else c["message"]["tool_calls"][0]["function"]["arguments"]


def validate(shape, schema, text):
    """What is wrong with it; None: nothing."""
    try:
        value = json.loads(text, parse_float=Decimal)
        if shape == "tool":
            if set(value) != {"x"}:
                return f"members {sorted(value)}"
            value = value["x"]
        errors = list(Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).iter_errors(value))
        return errors[0] if errors else None
    except (ValueError, decimal.DecimalException) as e:
        return e


class Count:
    def __init__(self):
        self.lock, self.n = threading.Lock(), {}

    def add(self, what, line=None):
        with self.lock:
            self.n[what] = self.n.get(what, 0) + 1
            if line:
                print(f"{what}: {line}", flush=True)


def refers_to_root(schema):
    """Its references would mean something else inside a tool's schema."""
    return '"$ref"' in json.dumps(schema) or '"$id"' in json.dumps(schema) or '"$defs"' in json.dumps(schema)


def one(port, group, seed, shape, count):
    schema, refuse = group["schema"], group["want"] == "refuse"
    if refuse or (shape == "tool" and refers_to_root(schema)):
        shape = "chat"
    path, body = question(shape, schema, seed, refuse)
    status, data = ask(port, path, body)
    where = f"{group['id']} {shape} seed {seed}"
    if status != 200:
        message = data["error"]["message"]
        empty = "no text matches it" in message and not any(t[1] == "accept" for t in group["tests"])
        if status != 400:
            count.add("failed", f"{where}: {status} {message}")
        elif group["want"] == "support" and not empty:
            count.add("refused", f"{where}: {message}")
        elif not empty and not re.search(r"/[^ ,:]+[,:] |deeper nesting", message):
            count.add("unnamed", f"{where}: {message}; expected {group.get('refuse')}")
        else:
            count.add("refused by name")
        return
    if refuse and "/not" not in group.get("refuse", ""):  # not is done where it is sure what it says
        count.add("answered", f"{where} was to be refused ({group.get('refuse')})")
        return
    text = text_of(shape, data)
    if text is None:
        count.add("cut")
        return
    wrong = validate(shape, json.loads(json.dumps(schema), parse_float=Decimal), text)
    count.add("invalid" if wrong else "valid", f"{where}: {text[:200]!r}: {str(wrong)[:200]}" if wrong else None)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program"), a.add_argument("model"), a.add_argument("files", nargs="+")
    a.add_argument("--seeds", type=int, default=20), a.add_argument("--shape"), a.add_argument("--ids", default="")
    a.add_argument("--serve", default="", help="options of hone serve, such as --chat-template=chatml for a model without one")
    a = a.parse_args()
    decimal.DefaultContext.prec = 3000  # of threads to come
    groups = [json.loads(line) for f in a.files for line in open(f, encoding="utf-8")]
    groups = [g for g in groups if re.search(a.ids, g["id"])]
    extra = a.serve.split()
    p = subprocess.Popen([a.program, "serve", "-m", a.model, "--port", "0", "-t", "1", "--parallel", "8", *extra],
                         stderr=subprocess.PIPE, text=True)
    port = next(int(m.group(1)) for m in (re.search(r"listening on http://[^:]+:(\d+)", x) for x in p.stderr) if m)
    threading.Thread(target=p.stderr.read, daemon=True).start()
    count, shapes = Count(), [a.shape] if a.shape else ["chat", "text", "tool"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(one, port, g, seed, shapes[(i + seed) % len(shapes)], count)
                for seed in range(a.seeds) for i, g in enumerate(groups)]
        for j in jobs:
            j.result()
    p.terminate()
    code = p.wait(60)
    print(len(groups), "schemas,", a.seeds, "seeds:", ", ".join(f"{v} {k}" for k, v in sorted(count.n.items())))
    return code != 0 or any(k in count.n for k in ("invalid", "failed", "refused", "unnamed", "answered"))


if __name__ == "__main__":
    sys.exit(main())
