#!/usr/bin/env python3
"""Requests as hone's parser of HTTP reads them, held against h11's (PyPI), an independent strict parser.

    check_http.py PROGRAM [--count N] [--seed S]      PROGRAM: tests/dev/http_trace.c, compiled

Inputs are requests, good and smuggled, changed at random. What hone takes for a request h11 must take for the same one:
method, path, headers, body, and where the next begins. What hone refuses and h11 takes is counted by status: hone is the
stricter one. h11 refuses one thing more, which is expected: an empty line before a request."""
import argparse
import random
import struct
import subprocess
import sys
from collections import Counter
from urllib.parse import unquote_to_bytes

import h11

J = b"Host: x\r\nContent-Type: application/json\r\n"
SEEDS = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a%20b/c?d=e HTTP/1.1\r\nHost: x:80\r\nA: b\r\n\r\n",
    b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + J + b"Content-Length: 5\r\n\r\nhello",
    b"POST /a HTTP/1.1\r\n" + J + b"Content-Length: 0\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + J + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + J + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + J + b"Content-Length: 6\r\nContent-Length: 5\r\n\r\nhello!",
]
BITS = [b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b";", b",", b"\0", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xff", b"\x85", b"\xa0", b'"', b"+", b"-", b"_", b"0", b"5", b"0x", b"a", b"F",
        b"chunked", b"identity", b"Content-Length: 5\r\n", b"content-length:5\r\n", b"Content-Length : 5\r\n", b"Content-Length: 05\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, chunked\r\n",
        b"Transfer-Encoding:\tchunked\r\n", b"Transfer-Encoding: xchunked\r\n", b"Host: y\r\n", b"X: y\r\n z\r\n", b"HTTP/1.0", b"HTTP/1.1", b"%2e%2e", b"%00", b"/../", b"0\r\n\r\n", b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n"]


def draw(r):
    b = b"".join(r.choice(SEEDS) for _ in range(r.choice((1, 1, 2, 3))))
    for _ in range(r.choice((0, 1, 1, 2, 3))):
        at = r.randrange(len(b) + 1)
        kind = r.randrange(4)
        if kind == 0:
            b = b[:at] + r.choice(BITS) + b[at:]
        elif kind == 1:
            b = b[:at] + b[at + r.choice((1, 1, 2, 5)):]
        elif kind == 2:
            b = b[:at] + r.choice(BITS) + b[at + 1:]
        else: # between lines, where headers are
            ends = [i + 2 for i in range(len(b) - 1) if b[i:i + 2] == b"\r\n"] or [0]
            at = r.choice(ends)
            b = b[:at] + r.choice(BITS) + b[at:]
    return b


def theirs(data):
    """Requests as h11 reads them, and why it stopped."""
    c = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    c.receive_data(data)
    out, head, body = [], None, b""
    try:
        while True:
            e = c.next_event()
            if e is h11.NEED_DATA:
                return out, "more"
            if e is h11.PAUSED:
                rest = c.trailing_data[0]
                c = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20) # whether it may stay is another question
                if not rest:
                    return out, "end"
                c.receive_data(rest)
            elif isinstance(e, h11.Request):
                head, body = e, b""
            elif isinstance(e, h11.Data):
                body += bytes(e.data)
            elif isinstance(e, h11.EndOfMessage):
                out.append((bytes(head.method), bytes(head.target), body, bytes(head.http_version), [(bytes(n), bytes(v)) for n, v in head.headers]))
                c.send(h11.Response(status_code=200, headers=[(b"content-length", b"0")])) if c.our_state is h11.SEND_RESPONSE else None
                c.send(h11.EndOfMessage()) if c.our_state is h11.SEND_BODY else None
                rest = c.trailing_data[0]
                c = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
                if not rest:
                    return out, "end"
                c.receive_data(rest)
            else:
                return out, "closed"
    except h11.RemoteProtocolError as e:
        return out, str(e)


def path_of(target):
    if target[:7].lower() == b"http://" or target[:8].lower() == b"https://":
        target = target.split(b"//", 1)[1]
        cut = min([target.find(c) for c in (b"/", b"?") if c in target] or [len(target)])
        target = target[cut:]
        if not target.startswith(b"/"):
            target = b"/" + target
    return unquote_to_bytes(target.split(b"?", 1)[0])


def ours(line):
    *requests, end = line.split("|")
    out = []
    for q in requests:
        method, path, body, minor, *fields = q.split(" ")
        out.append((bytes.fromhex(method), bytes.fromhex(path), bytes.fromhex(body), b"1." + minor.encode(),
                    [tuple(bytes.fromhex(x) for x in f.split("=")) for f in fields]))
    return out, end


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--count", type=int, default=100000)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    r = random.Random(a.seed)
    inputs = [draw(r) for _ in range(a.count)]
    lines = subprocess.run([a.program], input=b"".join(struct.pack("<I", len(b)) + b for b in inputs), capture_output=True, check=True).stdout.decode().splitlines()
    assert len(lines) == len(inputs)
    bad, taken, stricter, expected = 0, 0, Counter(), 0
    for data, line in zip(inputs, lines):
        (mine, end), (other, why) = ours(line), theirs(data)
        taken += len(mine)
        for i, m in enumerate(mine):
            if i >= len(other):
                if "no request line" in why or "illegal request line" in why and b"\r\n" in data[:2]:
                    expected += 1
                else:
                    bad += 1
                    print(f"hone reads {m}\nh11: {why}\nin {data}\n")
                break
            o = other[i]
            if (m[0], m[1], m[2], m[3], m[4]) != (o[0], path_of(o[1]), o[2], o[3], o[4]):
                bad += 1
                print(f"hone reads {m}\nh11  reads {o}\nin {data}\n")
                break
        else:
            if len(other) > len(mine):
                if end.isdigit():
                    stricter[end] += 1
                else:
                    bad += 1
                    print(f"hone: {end} after {len(mine)}, h11 reads {other[len(mine)]}\nin {data}\n")
    print(f"{len(inputs)} inputs, {taken} requests read by hone, {bad} read otherwise by h11, {expected} after an empty line, which h11 refuses; refused by hone alone: {dict(stricter)}")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
