#!/usr/bin/env python3
"""hone serve under load and abuse: memory, cancelling, draining, full queues, deadlines, broken bodies, and equal bytes.

    check_serve.py PROGRAM [PATTERN] [--bodies N] [--requests N] [--slow F]

Run in the repository: asks models/hone-chat.gguf, models/hone-tiny.gguf and a random model that PROGRAM synthesizes. Each
case is a function below and prints its figures; those whose names match PATTERN run. What an answer must be comes from
`PROGRAM run` alone, with the same seed. --slow F: every limit of time is F times as long (a program built with
sanitizers); limits of memory are then only printed. Python alone, no packages. Linux: memory is read from /proc."""
import argparse
import concurrent.futures
import copy
import http.client
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

CHAT, TINY, RHYME = "models/hone-chat.gguf", "models/hone-tiny.gguf", "models/hone-tiny-rhyme.lora.gguf"
SHAPE = {"arch": "llama", "n_layer": 8, "n_embd": 512, "n_head": 8, "n_head_kv": 4, "head_dim": 64, "n_ff": 1536,
         "n_vocab": 4096, "n_ctx_train": 8192, "rope_base": 10000, "rms_eps": 1e-5, "tied": True}
CASES = []
ARGS = None
FOLDER = None


def case(f):
    CASES.append(f)
    return f


# ---- a server, and asking it -------------------------------------------------------------------------------------

class Server:
    """PROGRAM serve with options; stopped at the end of a with block, where it must end with 0."""

    def __init__(self, *options, port=0, env=None):
        self.p = subprocess.Popen([ARGS.program, "serve", *options, "--port", str(port), "--slots", "--metrics", "-t", "2"],
                                  stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.said = []
        for line in self.p.stderr:
            self.said.append(line)
            m = re.search(r"listening on http://([^:]+):(\d+)", line)
            if m:
                self.host, self.port = m.group(1), int(m.group(2))
                break
        else:
            raise AssertionError("the server did not start: " + "".join(self.said))
        self.reader = threading.Thread(target=lambda: self.said.extend(self.p.stderr), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.p.poll() is None:
            self.p.terminate()
        try:
            code = self.p.wait(60 * ARGS.slow)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise AssertionError("the server did not end")
        self.reader.join(10)
        if kind is None:
            assert code == 0, (code, "".join(self.said)[-3000:])

    def rss(self, kinds=("RssAnon", "RssShmem")):
        """Bytes of memory; of its own, without files, where nothing else is said."""
        text = open(f"/proc/{self.p.pid}/status").read()
        return 1024 * sum(int(re.search(rf"{k}:\s+(\d+)", text).group(1)) for k in kinds)

    def connect(self, timeout=None):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout or 300 * ARGS.slow)

    def ask(self, path, body=None, headers=None, c=None):
        """(status, headers, body as bytes)"""
        own = c or self.connect()
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        own.request("GET" if data is None else "POST", path, data, {"Content-Type": "application/json", **(headers or {})})
        r = own.getresponse()
        got = r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
        if not c:
            own.close()
        return got

    def json(self, path, body=None, headers=None):
        status, _, text = self.ask(path, body, headers)
        assert status == 200, (status, text[:500])
        return json.loads(text)

    def cancelled(self):
        return int(re.search(rb"\nhone_cancelled_total (\d+)", self.ask("/metrics")[2]).group(1))

    def processing(self):
        return [s for s in self.json("/slots") if s["is_processing"]]


class Stream:
    """A request whose answer comes in events: iterates over them as objects."""

    def __init__(self, server, path, body, headers=None):
        self.c = server.connect()
        self.c.request("POST", path, json.dumps({**body, "stream": True}).encode(),
                       {"Content-Type": "application/json", **(headers or {})})
        self.r = None
        self.done = False

    def __iter__(self):
        self.r = self.r or self.c.getresponse()
        self.status, self.headers = self.r.status, {k.lower(): v for k, v in self.r.getheaders()}
        if self.status != 200:
            self.error = self.r.read()
            return
        while line := self.r.readline():
            text = line.decode("utf-8")  # strictly: a piece is whole UTF-8
            if text.startswith("data: [DONE]"):
                self.done = True
            elif text.startswith("data: "):
                yield json.loads(text[6:])
        self.c.close()

    def cut(self):
        """Closes at once, in the midst of whatever comes."""
        sock = self.c.sock or getattr(self.r, "fp", None) and self.r.fp.raw._sock
        if self.r:
            self.r.close()
        self.c.close()
        if sock and not isinstance(sock, socket.socket):
            sock.close()


def piece(e):
    """The text of one event of /v1/chat/completions or /v1/completions."""
    return "".join((ch["delta"].get("content") or "") if "delta" in ch else ch["text"] for ch in e.get("choices", []))


def until(what, limit, why):
    """Seconds until what() is true."""
    t = time.monotonic()
    while not what():
        assert time.monotonic() - t < limit * ARGS.slow, f"not within {limit * ARGS.slow:.0f} s: {why}"
        time.sleep(0.005)
    return time.monotonic() - t


def together(jobs, n):
    """Runs all callables, n at once; their results in order."""
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return [f.result() for f in [pool.submit(j) for j in jobs]]


KNOWN = {}


def alone(model, prompt, *options):
    """The text that PROGRAM run says."""
    key = (model, prompt, options)
    if key not in KNOWN:
        out = subprocess.run([ARGS.program, "run", "-m", model, "-p", prompt, "--json", "-t", "1", *map(str, options)],
                             capture_output=True, check=True).stdout
        KNOWN[key] = json.loads(out)["text"]
    return KNOWN[key]


def long_model():
    """A random llama with a context of 8192, slow enough to be met at work."""
    path = os.path.join(FOLDER, "long.gguf")
    if not os.path.exists(path):
        shape = os.path.join(FOLDER, "shape.json")
        json.dump(SHAPE, open(shape, "w"))
        subprocess.run([ARGS.program, "synth", "--config", shape, "--type", "Q8_0", "-o", path], check=True,
                       capture_output=True)
    return path


def words(n, seed):
    r = random.Random(seed)
    return " ".join(r.choice("the dog ran over hill and far away to see a red boat".split()) for _ in range(n))


def ids(n, seed):
    """A prompt of n tokens of the random model."""
    r = random.Random(seed)
    return [r.randrange(300, 4000) for _ in range(n)]


def say(text):
    return [{"role": "user", "content": text}]


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}, "ok": {"type": "boolean"}},
          "required": ["n", "ok"], "additionalProperties": False}
FORM = {"type": "json_schema", "json_schema": {"name": "f", "schema": SCHEMA}}


# ---- memory ------------------------------------------------------------------------------------------------------

def mixed(s, i):
    """One request of a mix: whole, streamed, cut, with a schema, refused."""
    kind, q = i % 6, {"messages": say(f"Tell me about {words(3, i)}, number {i % 97}."), "max_tokens": 16, "seed": i}
    if kind == 0:
        s.json("/v1/chat/completions", q)
    elif kind == 1:
        st = Stream(s, "/v1/chat/completions", q)
        assert sum(1 for _ in st) > 0 and st.done, st.__dict__
    elif kind == 2:
        st = Stream(s, "/v1/chat/completions", {**q, "max_tokens": 400, "ignore_eos": True})
        next(iter(st))
        st.cut()
    elif kind == 3:
        got = s.json("/v1/chat/completions", {**q, "response_format": FORM, "max_tokens": 40})["choices"][0]
        assert got["finish_reason"] == "length" or set(json.loads(got["message"]["content"])) == {"n", "ok"}, got
    elif kind == 4:
        assert s.ask("/v1/chat/completions", {**q, "temperature": "hot"})[0] == 400
    else:
        s.json("/v1/completions", {"prompt": words(9, i), "max_tokens": 12, "n": 2, "seed": i, "stop": ["the"]})


@case
def memory_is_flat():
    """Resident memory when the server has been at rest for a moment and has given back what it does not use. One arena
    of malloc, so that chance plays less; 2 %, and 0.25 MB of chance, as the whole is 14 MB."""
    n = ARGS.requests
    with Server("-m", CHAT, "--kv-memory", "1", "--parallel", "8", "--max-queue", "1000",
                env={"MALLOC_ARENA_MAX": "1"}) as s:
        for i in range(150):  # the automata of a form are made as far as answers go, and kept: half a megabyte
            mixed(s, 6 * i + 3)
        got = []
        for begin, end in ((0, n // 10), (n // 10, n)):
            together([lambda i=i: mixed(s, i) for i in range(begin, end)], 8)
            until(lambda: not s.processing(), 30, "all slots free")
            busy = s.rss()
            time.sleep(1.5 * ARGS.slow)
            got.append((s.rss(("VmRSS",)), s.rss(), busy))
        change = got[1][0] / got[0][0] - 1
        for k, (all_of, own, busy) in zip((n // 10, n), got):
            print(f"  after {k} requests {all_of / 1e6:.2f} MB; of it allocated {own / 1e6:.2f}, at work {busy / 1e6:.2f}")
        print(f"  {change:+.2%}")
        assert ARGS.slow > 1 or got[1][0] <= got[0][0] * 1.02 + 250e3


@case
def idle_connections():
    with Server("-m", CHAT) as s:
        s.ask("/health")
        before = s.rss()
        socks = [socket.create_connection((s.host, s.port)) for _ in range(500)]
        until(lambda: s.ask("/health")[0] == 200, 5, "health")
        silent = s.rss()
        kept = []
        for c in socks:
            c.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for c in socks:
            got = b""
            while b"\r\n\r\n" not in got:
                more = c.recv(4096)
                assert more, got
                got += more
            assert got.startswith(b"HTTP/1.1 200"), got
            kept.append(c)
        quiet = s.rss()
        print(f"  500 connections: {(silent - before) / 500:.0f} bytes each before a request, "
              f"{(quiet - before) / 500:.0f} behind one")
        assert ARGS.slow > 1 or quiet - before < 500 * 16384
        assert s.json("/v1/chat/completions", {"messages": say("Hello"), "max_tokens": 4})["choices"]
        for c in socks:
            c.close()


# ---- cancelling --------------------------------------------------------------------------------------------------

@case
def cancel_frees_the_slot():
    with Server("-m", long_model(), "--parallel", "2", "-c", "8192") as s:
        for whole in (False, True):
            body = {"prompt": ids(7000, int(whole)), "max_tokens": 1000, "ignore_eos": True, "temperature": 0}
            st = Stream(s, "/v1/completions", body)
            if whole:  # not streamed: nothing of it was sent yet
                st.cut()
                st = s.connect()
                st.request("POST", "/v1/completions", json.dumps({**body, "prompt": ids(7000, 7)}),
                           {"Content-Type": "application/json"})
                st.cut = st.close
            until(s.processing, 30, "it is read")
            at = s.processing()[0]["n_past"]
            st.cut()
            took = until(lambda: not s.processing(), 1, "a prompt's slot is free")
            print(f"  in the prompt (at {at}), {'whole' if whole else 'stream'}: free after {took * 1e3:.0f} ms")
        st = Stream(s, "/v1/completions", {"prompt": "Hello", "max_tokens": 8000, "ignore_eos": True})
        for k, _ in enumerate(st):
            if k == 20:
                break
        assert s.processing()
        st.cut()
        took = until(lambda: not s.processing(), 1, "an answer's slot is free")
        print(f"  in the answer: free after {took * 1e3:.0f} ms")


@case
def slow_reader():
    """Takes nothing of its stream: cancelled at the deadline of 30 s, and others do not feel it."""
    with Server("-m", long_model(), "--parallel", "4", "-c", "8192") as s:
        q = {"prompt": "one two", "max_tokens": 60, "temperature": 0.9, "seed": 5, "ignore_eos": True}
        want = alone(long_model(), "one two", "--no-echo", "-n", 60, "--temp", 0.9, "--seed", 5, "--ignore-eos")
        body = json.dumps({"prompt": "Hello", "n_predict": 8000, "ignore_eos": True, "stream": True, "n_probs": 20, "seed": 1})
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect((s.host, s.port))
        before = s.rss()
        c.sendall(f"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        until(s.processing, 10, "it runs")
        t, n, worst, most, cut = time.monotonic(), 0, 0, 0, 0
        while not cut:
            one = time.monotonic()
            assert s.json("/v1/completions", q)["choices"][0]["text"] == want
            worst, n, most = max(worst, time.monotonic() - one), n + 1, max(most, s.rss() - before)
            assert s.processing() or s.cancelled(), "its answer ended; it is to be longer"
            cut = time.monotonic() - t if s.cancelled() else 0
            assert time.monotonic() - t < 60 * ARGS.slow, "not cancelled"
        until(lambda: not s.processing(), 2, "its slot is free")
        print(f"  cut after {cut:.1f} s; meanwhile {n} answers of others, the slowest {worst * 1e3:.0f} ms; "
              f"{most / 1e6:.1f} MB more memory at most")
        assert n > 10
        c.close()


# ---- the end -----------------------------------------------------------------------------------------------------

@case
def sigterm_under_load():
    with Server("-m", long_model(), "--parallel", "2", "-c", "2048", "--drain", str(int(30 * ARGS.slow))) as s:
        body = {"prompt": "Hello", "max_tokens": 600, "ignore_eos": True, "temperature": 0}
        want = alone(long_model(), "Hello", "--no-echo", "-n", 600, "--temp", 0, "--ignore-eos")
        begun, got = threading.Semaphore(0), []

        def running():
            text = ""
            st = Stream(s, "/v1/completions", body)
            for k, e in enumerate(st):
                text += piece(e)
                if k == 3:
                    begun.release()
            return text, st.done

        def queued():
            return s.ask("/v1/completions", body)

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            first = [pool.submit(running) for _ in range(2)]
            for _ in first:
                assert begun.acquire(timeout=30 * ARGS.slow)
            rest = [pool.submit(queued) for _ in range(10)]
            until(lambda: b"\nhone_requests_waiting 10" in s.ask("/metrics")[2], 10, "ten wait")
            t = time.monotonic()
            s.p.send_signal(signal.SIGTERM)
            for f in rest:
                status, headers, text = f.result()
                got.append(time.monotonic() - t)
                assert status == 503 and int(headers["retry-after"]) > 0, (status, headers, text)
            for f in first:
                text, done = f.result()
                assert done and text == want, (done, len(text), len(want))
            code = s.p.wait(40 * ARGS.slow)
        print(f"  10 waiting: 503 within {max(got) * 1e3:.0f} ms; 2 running: whole; exit {code} after {time.monotonic() - t:.1f} s")
        assert code == 0


@case
def drain_ends():
    """Answers longer than --drain: cut with an error, exit 0."""
    with Server("-m", long_model(), "--parallel", "2", "-c", "8192", "--drain", "1") as s:
        st = Stream(s, "/v1/completions", {"prompt": "Hello", "max_tokens": 8000, "ignore_eos": True, "temperature": 0})
        events = iter(st)
        next(events)
        t = time.monotonic()
        s.p.send_signal(signal.SIGTERM)
        last = None
        for last in events:
            pass
        code = s.p.wait(20 * ARGS.slow)
        print(f"  exit {code} after {time.monotonic() - t:.1f} s, last event {json.dumps(last)[:110]}")
        assert code == 0 and "error" in last and time.monotonic() - t < 5 * ARGS.slow


@case
def second_signal():
    with Server("-m", long_model(), "--parallel", "2", "-c", "8192") as s:
        st = Stream(s, "/v1/completions", {"prompt": ids(5000, 1), "max_tokens": 3000, "ignore_eos": True})
        until(s.processing, 10, "it runs")
        s.p.send_signal(signal.SIGTERM)
        probe = lambda: socket.socket().connect_ex((s.host, s.port)) != 0
        until(probe, 5, "the listening socket is closed")
        t = time.monotonic()
        s.p.send_signal(signal.SIGTERM)
        code = s.p.wait(20 * ARGS.slow)
        print(f"  exit {code} after {time.monotonic() - t:.2f} s")
        assert code == 130 and time.monotonic() - t < 2 * ARGS.slow
        st.cut()
        s.p.returncode = 0  # as it shall be


@case
def kill_and_restart():
    s = Server("-m", CHAT)
    streams = [Stream(s, "/v1/chat/completions", {"messages": say("Hi"), "max_tokens": 400, "ignore_eos": True}) for _ in range(8)]
    for st in streams:
        next(iter(st))
    s.p.kill()
    s.p.wait()
    with Server("-m", CHAT, port=s.port) as again:
        assert again.port == s.port
        assert again.json("/v1/chat/completions", {"messages": say("Hello"), "max_tokens": 8})["choices"]
    print(f"  port {s.port} bound again")
    for st in streams:
        st.cut()


# ---- texts -------------------------------------------------------------------------------------------------------

@case
def pieces_are_whole():
    text = "😀 漢字 é 👩‍👩‍👧 ß"
    with Server("-m", CHAT) as s, Server("-m", long_model(), "-c", "1024") as t:
        got = [piece(e) for e in Stream(s, "/v1/chat/completions", {
            "messages": say("Hi"), "structured_outputs": {"choice": [text]}, "max_tokens": 200})]
        assert "".join(got) == text, got
        n, pieces = 0, 0
        for seed in range(12):
            want = alone(long_model(), "Hello", "--no-echo", "-n", 200, "--seed", seed, "--temp", 1.5, "--ignore-eos")
            got = [piece(e) for e in Stream(t, "/v1/completions", {
                "prompt": "Hello", "max_tokens": 200, "seed": seed, "temperature": 1.5, "ignore_eos": True})]
            assert "".join(got) == want, seed
            n, pieces = n + sum(ord(ch) > 127 for ch in want), pieces + len(got)
        print(f"  a choice of emoji in one piece each; {pieces} pieces of random bytes, {n} letters beyond ASCII")
        assert n > 30


@case
def stop_strings():
    """Drawn from the answer itself: what is said ends before the first of them, streamed too."""
    r, across = random.Random(1), 0
    with Server("-m", "chat=" + CHAT, "-m", "tiny=" + TINY) as s:
        for k in range(80):
            if k % 2:
                q = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 150, "seed": 11}
                whole = alone(TINY, q["prompt"], "--no-echo", "-n", 150, "--seed", 11)
                path, text = "/v1/completions", lambda c: c["text"]
            else:
                q = {"model": "chat", "messages": say("What can you do?"), "max_tokens": 60, "seed": 11}
                whole = alone(CHAT, "What can you do?", "--chat", "-n", 60, "--seed", 11)
                path, text = "/v1/chat/completions", lambda c: c["message"]["content"] or ""
            at = r.randrange(len(whole) - 1)
            stop = whole[at:at + r.randrange(1, 12)]
            want = whole[:whole.find(stop)]
            plain = s.json(path, {**q, "stop": [stop, "\x01never"]})["choices"][0]
            streamed = "".join(piece(e) for e in Stream(s, path, {**q, "stop": stop}))
            assert text(plain) == want == streamed, (stop, plain, streamed)
            assert plain["finish_reason"] == "stop"
            across += " " in stop.strip() or len(stop) > 7
        print(f"  80 stop strings, {across} across tokens")


@case
def sixty_four_prompts():
    prompts = [words(2 + i % 9, i) for i in range(64)]
    with Server("-m", TINY, "--parallel", "8") as s:
        got = s.json("/v1/completions", {"prompt": prompts, "max_tokens": 12, "temperature": 0.9, "seed": 4})["choices"]
        assert [c["index"] for c in got] == list(range(64))
        for i, c in enumerate(got):
            assert c["text"] == alone(TINY, prompts[i], "--no-echo", "-n", 12, "--temp", 0.9, "--seed", 4), i
        print("  64 prompts, each as alone")


# ---- limits ------------------------------------------------------------------------------------------------------

@case
def full_queue():
    with Server("-m", long_model(), "--parallel", "1", "--max-queue", "2", "-c", "4096") as s:
        body = {"prompt": "Hello", "max_tokens": 700, "ignore_eos": True, "temperature": 0}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            all_of = [pool.submit(s.ask, "/v1/completions", body)]
            until(s.processing, 10, "one runs")
            all_of += [pool.submit(s.ask, "/v1/completions", body) for _ in range(7)]
            got = [f.result() for f in all_of]
        codes = sorted(g[0] for g in got)
        assert codes == [200] * 3 + [429] * 5, codes
        assert all(int(g[1]["retry-after"]) > 0 for g in got if g[0] == 429)
        assert len({json.loads(g[2])["choices"][0]["text"] for g in got if g[0] == 200}) == 1
        print("  one runs, two wait, five are sent away with Retry-After")


@case
def deadlines():
    with Server("-m", long_model(), "-c", "4096") as s:
        body = {"prompt": words(1000, 1), "max_tokens": 3000, "ignore_eos": True}
        status, _, text = s.ask("/v1/completions", body, {"x-hone-timeout-ms": "1"})
        assert status == 504, (status, text[:200])
        print(f"  1 ms, whole: {status} {text[:100]}")
        st = Stream(s, "/v1/completions", body, {"x-hone-timeout-ms": "1"})
        got = list(st)
        assert st.status == 504 or "error" in got[-1] and not st.done, (st.status, got)
        print(f"  1 ms, stream: {st.status}, {json.dumps(got[-1:])[:110]}")
        last, n, t = None, 0, time.monotonic()
        for last in Stream(s, "/v1/completions", {**body, "prompt": "Hello"}, {"x-hone-timeout-ms": str(int(400 * ARGS.slow))}):
            n += 1
        assert "error" in last and n > 2, last
        print(f"  {400 * ARGS.slow:.0f} ms: {n} events, the last after {(time.monotonic() - t) * 1e3:.0f} ms: {json.dumps(last)[:90]}")
        until(lambda: not s.processing(), 1, "slots are free")


@case
def short_passes_long():
    with Server("-m", long_model(), "--parallel", "8", "-c", "8192") as s:
        first, done = {}, {}

        def ask(name, n, k, tokens):
            t = time.monotonic()
            for _ in Stream(s, "/v1/completions", {"prompt": ids(n, k), "max_tokens": tokens, "ignore_eos": True, "temperature": 0}):
                first.setdefault(name, time.monotonic() - t)
            done[name] = time.monotonic() - t

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(ask, f"long{k}", 7000, k, 4) for k in range(4)]
            until(lambda: s.processing(), 20, "prompts are read")
            jobs.append(pool.submit(ask, "short", 40, 9, 8))
            for j in jobs:
                j.result()
        print("  first token and last: " + ", ".join(f"{k} {first[k]:.2f} {done[k]:.2f} s" for k in first))
        assert next(iter(first)) == "short", "a long prompt was answered before the short one"


# ---- what each gets is what it gets alone ------------------------------------------------------------------------

@case
def two_models_in_turn():
    with Server("-m", "a=" + CHAT, "-m", "b=" + TINY, "--models-max", "1") as s:
        def ask(i):
            name, path = ("a", CHAT) if i % 2 else ("b", TINY)
            got = s.json("/v1/completions", {"model": name, "prompt": words(4, i % 5), "max_tokens": 8, "seed": i % 5})
            assert got["model"] == name
            return got["choices"][0]["text"] == alone(path, words(4, i % 5), "--no-echo", "-n", 8, "--seed", i % 5)

        t = time.monotonic()
        ok = together([lambda i=i: ask(i) for i in range(96)], 8)
        print(f"  {sum(ok)} of 96 answers right, {time.monotonic() - t:.1f} s")
        assert all(ok)


@case
def waiting_for_a_model():
    """Who waits for a model and leaves costs the one that answers nothing; those who stay get theirs in turn."""
    with Server("-m", "a=" + long_model(), "-m", "b=" + TINY, "-m", "c=" + CHAT, "--models-max", "1", "-c", "8192") as s:
        def states():
            return {m["id"]: m["status"]["value"] for m in s.json("/v1/models")["data"]}

        def busy():
            st = Stream(s, "/completion", {"model": "a", "prompt": "Hello", "n_predict": 8000, "ignore_eos": True})
            assert next(iter(st))["content"] is not None
            return st

        def ask(name, timeout=None):
            body = {"model": name, "prompt": "Once", "max_tokens": 1}
            assert s.ask("/v1/completions", body, c=timeout and s.connect(timeout))[0] == 200
            return time.monotonic()

        st = busy()
        try:
            ask("b", 0.5)
            raise AssertionError("b was answered while a was in use, and one model at once may be loaded")
        except TimeoutError:
            pass
        assert states()["a"] == "loaded", states()
        st.cut()
        until(lambda: not s.processing(), 5, "a is free")
        ask("a")  # behind whoever would have waited
        assert states() == {"a": "loaded", "b": "unloaded", "c": "unloaded"}, states()
        print("  who left has nothing loaded")

        st = busy()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(ask, "b")
            time.sleep(0.3)
            second = pool.submit(ask, "c")
            time.sleep(0.3)
            assert not first.done() and not second.done() and states()["a"] == "loaded", states()
            st.cut()
            assert first.result() < second.result()
        assert states() == {"a": "unloaded", "b": "unloaded", "c": "loaded"}, states()
        print("  two who stayed are answered in the order they came")


@case
def adapters_side_by_side():
    with Server("-m", TINY, "--lora", RHYME, "--parallel", "8") as s:
        def ask(i):
            scale, seed, stream = (0, 0.5, 1)[i % 3], i // 3, i % 2
            q = {"prompt": "Once upon a time", "max_tokens": 32, "seed": seed, "lora": [{"id": 0, "scale": scale}]}
            got = "".join(piece(e) for e in Stream(s, "/v1/completions", q)) if stream else \
                s.json("/v1/completions", q)["choices"][0]["text"]
            assert got == alone(TINY, q["prompt"], "--no-echo", "-n", 32, "--seed", seed, "--lora", f"{RHYME}:{scale}"), i
            return scale, got

        got = together([lambda i=i: ask(i) for i in range(48)], 12)
        differ = len({g for g in got})
        print(f"  48 answers at scales 0, 0.5, 1 as alone ({differ} different)")
        assert differ > 30


@case
def sixteen_clients():
    """Shared beginnings, greedy and sampled, streamed and not; schemas and cancelled requests around them."""
    stop = threading.Event()
    noise = [0]
    schema = os.path.join(FOLDER, "schema.json")
    json.dump(SCHEMA, open(schema, "w"))
    with Server("-m", CHAT, "--parallel", "8", "--max-queue", "200", "--kv-memory", "4") as s:
        def trouble(k):
            while not stop.is_set():
                mixed(s, 2 + 3 * noise[0] + 6 * k)
                noise[0] += 1

        def ask(i):
            text = f"{'Read this first: the cat sat on the mat. ' * (i % 3)}What about {words(2, i % 4)}, number {i % 40}?"
            seed, temp = i % 40, (0, 0.8, 1.3)[i % 3]
            q = {"messages": say(text), "max_tokens": 40, "seed": seed, "temperature": temp}
            got = "".join(piece(e) for e in Stream(s, "/v1/chat/completions", q)) if i % 2 else \
                s.json("/v1/chat/completions", q)["choices"][0]["message"]["content"] or ""
            want = alone(CHAT, text, "--chat", "-n", 40, "--seed", seed, "--temp", temp)
            assert got == want, (i, got, want)
            form = i % 5 == 0
            if form:
                got = s.json("/v1/chat/completions", {**q, "response_format": FORM})["choices"][0]["message"]["content"]
                want = alone(CHAT, text, "--chat", "-n", 40, "--seed", seed, "--temp", temp, "--json-schema", schema)
                assert got == want, (i, got, want)
            return 1 + form

        pests = [threading.Thread(target=trouble, args=(k,)) for k in range(3)]
        for p in pests:
            p.start()
        try:
            n = sum(together([lambda i=i: ask(i) for i in range(320)], 16))
        finally:
            stop.set()
            for p in pests:
                p.join()
        print(f"  {n} answers of 16 clients as alone, {noise[0]} requests of others around them")


# ---- broken bodies -----------------------------------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "weather", "description": "x", "parameters": {
    "type": "object", "properties": {"town": {"type": "string", "maxLength": 5}}, "required": ["town"]}}}
MSG = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
SAMPLE = {"temperature": 0.7, "top_p": 0.9, "seed": 1, "stop": ["x"], "max_tokens": 4, "logit_bias": {"5": 1.5}}
VALID = [
    ("/v1/chat/completions", {"model": "m", "messages": MSG, "n": 2, "logprobs": True, "top_logprobs": 2, **SAMPLE}),
    ("/v1/chat/completions", {"messages": MSG, "tools": [TOOL], "tool_choice": "auto", "max_tokens": 4, "stream": True,
                              "stream_options": {"include_usage": True, "include_progress": True}}),
    ("/v1/chat/completions", {"messages": say("Hi"), "response_format": FORM, "max_tokens": 6}),
    ("/v1/chat/completions", {"messages": [*say("Hi"), {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{\"town\":\"Rome\"}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "sun"}], "tools": [TOOL], "max_tokens": 4}),
    ("/chat/completions", {"messages": say("Hi"), "max_tokens": 3, "reasoning_effort": "low"}),
    ("/v1/chat/completions/input_tokens", {"messages": MSG}),
    ("/v1/completions", {"prompt": ["one", "two"], "echo": True, "logprobs": 2, "best_of": 1, "suffix": None, **SAMPLE}),
    ("/v1/completions", {"prompt": [1, 2, 3], "stream": True, "max_tokens": 3, "structured_outputs": {"regex": "[ab]+c"}}),
    ("/completion", {"prompt": "one", "n_predict": 4, "n_probs": 2, "grammar": "root ::= \"a\" [b-d]*", "cache_prompt": True,
                     "lora": [{"id": 0, "scale": 1}], "return_tokens": True, "timings_per_token": True}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": "c", "input_extra": [{"text": "x", "filename": "y"}],
                 "n_predict": 3}),
    ("/tokenize", {"content": "one two", "add_special": True, "with_pieces": True, "parse_special": True}),
    ("/detokenize", {"tokens": [1, 2, 300]}),
    ("/apply-template", {"messages": MSG, "tools": [TOOL], "chat_template_kwargs": {"a": 1}}),
    ("/v1/messages", {"model": "m", "max_tokens": 4, "system": [{"type": "text", "text": "x"}], "messages": MSG[1:],
                      "tools": [{"name": "w", "description": "x", "input_schema": {"type": "object"}}],
                      "tool_choice": {"type": "auto"}, "stop_sequences": ["q"], "thinking": {"type": "disabled"}}),
    ("/v1/messages", {"max_tokens": 3, "messages": [*say("Hi"), {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "w", "input": {"a": 1}}]}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}], "stream": True}),
    ("/v1/messages/count_tokens", {"model": "m", "messages": say("Hi")}),
    ("/v1/responses", {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}],
                       "instructions": "y", "max_output_tokens": 4, "store": False, "text": {"format": {"type": "text"}},
                       "tools": [{"type": "function", "name": "w", "parameters": {"type": "object"}}]}),
    ("/v1/responses", {"input": "Hi", "stream": True, "max_output_tokens": 3, "reasoning": {"effort": "low"}}),
    ("/v1/responses/input_tokens", {"input": "Hi"}),
    ("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "float", "dimensions": 8, "model": "m"}),
    ("/embeddings", {"content": ["a", "b"], "embd_normalize": 2}),
    ("/v1/rerank", {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1}),
    ("/api/chat", {"model": "hone-chat", "messages": say("Hi"), "stream": True, "options": {"num_predict": 3, "temperature": 1},
                   "format": SCHEMA, "keep_alive": "5m", "tools": [TOOL]}),
    ("/api/generate", {"model": "hone-chat", "prompt": "x", "options": {"num_predict": 3, "seed": 2}, "raw": True,
                       "stream": False, "context": [1, 2]}),
    ("/api/embed", {"model": "hone-chat", "input": ["a"], "truncate": True}),
    ("/api/show", {"model": "hone-chat"}),
    ("/lora-adapters", [{"id": 0, "scale": 0.5}]),
    ("/models/load", {"model": "hone-chat"}),
    ("/models/unload", {"model": "nobody"}),
]
ODD = [None, True, False, 0, -1, 1, 3, 64, 1e308, -1e308, 2**31, -2**31 - 1, 2**53, 2**63, 2**64, 1.5, 1e-30, "", "a", "\0", "\ud800",
       "😀" * 40, "<|bos|>", "x" * 5000, "%s%n", [], {}, [[]], [None], {"": None}, [1, "a", {}], {"type": "x"}, "auto", "none",
       "required", {"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}, {"anyOf": []}, {"enum": []}, "((((", "[", "a{1,99999}",
       "root ::= root", "root ::= \"", "data:image/png;base64,AAAA", {"type": "object", "properties": {"a": {"type": "zz"}}}]


def spots(v, at=()):
    """Ways to all values inside v."""
    yield at
    for k, w in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ():
        yield from spots(w, (*at, k))


def deep(r):
    n = r.choice((3, 60, 600, 5000))
    return ("[" * n + "]" * n) if r.random() < 0.5 else ('{"a":' * n + "1" + "}" * n)


def mutate(r, body):
    """The bytes of a body that was changed once or a few times."""
    v = json.loads(json.dumps(body))
    for _ in range(r.choice((0, 1, 1, 1, 2, 4))):
        at = r.choice(list(spots(v)))
        if not at:
            v = copy.deepcopy(r.choice(ODD)) if r.random() < 0.1 else v
            continue
        box = v
        for k in at[:-1]:
            box = box[k]
        how = r.randrange(6)
        if how <= 2:
            box[at[-1]] = copy.deepcopy(r.choice(ODD))
        elif how == 3:
            del box[at[-1]]
        elif how == 4 and isinstance(box, dict):
            box[r.choice(FIELDS)] = copy.deepcopy(r.choice(ODD))
        else:
            box[at[-1]] = [copy.deepcopy(box[at[-1]]) for _ in range(r.choice((1, 2, 9)))]
        if not isinstance(v, (dict, list)):
            break
    text = json.dumps(v, ensure_ascii=r.random() < 0.5).encode("utf-8", "surrogatepass")
    if r.random() < 0.05:
        text = text.replace(b":1", b":" + deep(r).encode(), 1)
    for _ in range(r.choice((0, 0, 0, 1, 2, 5))):
        at = r.randrange(len(text) + 1)
        how = r.randrange(4)
        if how == 0:
            text = text[:at] + bytes([r.randrange(256)]) + text[at + 1:]
        elif how == 1:
            text = text[:at] + text[at + r.randrange(1, 9):]
        elif how == 2:
            text = text[:at] + r.choice((b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\u0000", b"\\ud800", b"\xff", b"-", b"1e999", b"0")) + text[at:]
        else:
            text = text[:at]
    return text


FIELDS = sorted({k for _, b in VALID if isinstance(b, dict) for k in b} | {
    "top_k", "min_p", "repeat_penalty", "guided_json", "guided_regex", "json_schema", "ignore_eos", "cache_salt", "audio",
    "modalities", "previous_response_id", "parallel_tool_calls", "mirostat", "continue_final_message", "add_generation_prompt",
    "timeout_ms", "best_of", "n_keep", "id_slot", "samplers", "prediction", "functions", "truncation", "t_max_predict_ms"})


@case
def broken_bodies():
    codes, bad, odd = {}, [], []
    lock = threading.Lock()
    with Server("-m", CHAT, "--ollama", "-c", "96", "--parallel", "8", "--kv-memory", "8", "--max-queue", "1000") as s:
        def one(k):
            r = random.Random(k * 7919 + 1)
            c = s.connect(60 * ARGS.slow)
            for _ in range(k, ARGS.bodies, 8):
                path, body = r.choice(VALID)
                text = mutate(r, body)
                try:
                    t = time.monotonic()
                    status, headers, got = s.ask(path, text, {"Connection": "keep-alive"}, c)
                    took = time.monotonic() - t
                except (http.client.HTTPException, OSError) as e:
                    with lock:
                        bad.append((path, text, repr(e)))
                    c.close()
                    if s.p.poll() is not None:
                        return
                    continue
                with lock:
                    codes[status] = codes.get(status, 0) + 1
                    resting = status == 503 and (b"not loaded" in got or b"being loaded" in got) and path == "/api/show"
                    if status >= 500 and status != 501 and not resting:  # resting: a body before unloaded the model
                        bad.append((path, text, (status, got[:300])))
                    elif status >= 400:
                        try:
                            json.loads(got)
                        except ValueError:
                            bad.append((path, text, ("no JSON", status, got[:300])))
                    elif b"\"error\"" in got and b"server_error" in got:
                        bad.append((path, text, ("in the stream", got[-300:])))
                    if took > 5 * ARGS.slow:
                        odd.append((round(took, 1), path, text[:300]))

        together([lambda k=k: one(k) for k in range(8)], 8)
        for b in bad[:12]:
            print("  BAD", b[0], b[1][:700], b[2])
        for o in odd[:5]:
            print("  slow", o)
        assert s.p.poll() is None, (s.p.returncode, "".join(s.said)[-4000:])
        print(f"  {sum(codes.values())} bodies: {dict(sorted(codes.items()))}; {s.rss() / 1e6:.1f} MB")
        assert s.json("/v1/chat/completions", {"messages": say("Hello"), "max_tokens": 4})["choices"]
        assert not bad and not odd and sum(codes.values()) == ARGS.bodies, (len(bad), len(odd))


# ---- all of them -------------------------------------------------------------------------------------------------

def main():
    global ARGS, FOLDER
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("pattern", nargs="?", default="")
    p.add_argument("--bodies", type=int, default=20000)
    p.add_argument("--requests", type=int, default=2000)
    p.add_argument("--slow", type=float, default=1)
    ARGS = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as FOLDER:
        for f in CASES:
            if not re.search(ARGS.pattern, f.__name__):
                continue
            t = time.monotonic()
            print(f.__name__, flush=True)
            try:
                f()
                print(f"  ok ({time.monotonic() - t:.1f} s)", flush=True)
            except Exception as e:
                failed += 1
                print(f"  FAILED: {type(e).__name__}: {str(e)[:3000]}", flush=True)
    print("all hold" if not failed else f"{failed} cases failed")
    return 1 if failed else 0


sys.exit(main())
