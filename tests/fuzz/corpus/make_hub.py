# Seeds for the target hub: python3 make_hub.py FOLDER. The first byte says who speaks: 0 the hub of a revision, 1 of its
# files, 2 a manifest, 3 the head of an answer, 4 a Location, 5 a journal, 6 an index of shards, 7 the user's short names.
import hashlib, json, os, sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
COMMIT, OID, SHA = "0123456789abcdef0123456789abcdef01234567", "ce013625030ba8dba906f756967f9e9ca394464a", "ab" * 32


def put(who, name, data):
    open(f"{out}/{name}", "wb").write(bytes([who]) + (data if isinstance(data, bytes) else data.encode()))


J = lambda o: json.dumps(o, separators=(",", ":"))


def entry(path, size=5, **more):
    return {"type": "file", "oid": OID, "size": size, "path": path} | more


def lfs(path, size=5000):
    return entry(path, 134, lfs={"oid": SHA, "size": size, "pointerSize": 134}, xetHash=SHA)


# ---- the hub
put(0, "revision", J({"id": "o/r", "private": False, "gated": "auto", "sha": COMMIT, "siblings": [{"rfilename": "a"}]}))
put(0, "revision_escaped", '{"\\u0073ha":"' + COMMIT + '"}')
put(0, "revision_none", J({"sha": "../../x"}))
put(0, "revision_list", J({"sha": [COMMIT]}))
put(1, "files", J([{"type": "directory", "path": "d", "size": 0, "oid": COMMIT}, entry("config.json"), lfs("m-Q4_K_M.gguf"), lfs("m-Q8_0.gguf", 9000)]))
put(1, "files_split", J([lfs(f"s/m-UD-Q2_K_XL-0000{i}-of-00003.gguf") for i in (1, 2, 3)] + [lfs("mmproj-F16.gguf"), lfs("m.imatrix.gguf")]))
put(1, "files_hole", J([lfs("m-Q4_0-00001-of-00003.gguf"), lfs("m-Q4_0-00003-of-00003.gguf"), lfs("m-Q4_0-00001-of-00002.gguf")]))
put(1, "files_twice", J([lfs("a/x-Q4_K_M.gguf"), lfs("b/y-q4_k_m.gguf"), lfs("plain.gguf"), lfs("plain.gguf")]))
put(1, "files_cut", J([lfs("s/m.Q6_K.gguf.part2of2"), lfs("s/m.Q6_K.gguf.part1of2"), lfs("m.Q8_0.gguf-split-a"), lfs("m.gguf.part-12of12")]))
put(1, "files_huge", J([lfs("m-Q4_K_M.gguf", 1 << 50), lfs("m-Q8_0.gguf", (1 << 50) + 1)]))
put(1, "files_odd", J([entry("../x")]))
put(1, "files_bare", J([entry("é b/c.json"), {"type": "file"}]))
put(1, "files_sha", J([lfs("x.gguf") | {"lfs": {"oid": "sha256:" + SHA, "size": 7}}, entry("y", lfs=None)]))
put(1, "files_deep", "[" * 40)
put(1, "files_escape", '[{"type":"file","oid":"' + OID + '","size":1,"path":"a\\u001b[m"}]')
put(1, "files_tags", J([lfs("m-Q4_K M.gguf"), lfs("m-Q4_\u009b31m.gguf"), lfs("mxfp4.gguf"), lfs("Q4_K_M-x:y.GGUF")]))

# ---- ollama's
LAYER = "application/vnd.ollama.image."


def layer(kind="model", digest="sha256:" + SHA, size=5):
    return {"mediaType": LAYER + kind, "digest": digest, "size": size}


put(2, "manifest", J({"schemaVersion": 2, "config": layer("config"), "layers": [layer(), layer("license"), layer("params"), layer("template")]}))
put(2, "manifest_tensor", J({"layers": [layer("tensor")]}))
put(2, "manifest_digest", J({"layers": [layer(digest="sha256:../../x")]}))
put(2, "manifest_size", J({"layers": [layer(size=-1)], "config": layer(size=1 << 60)}))
put(2, "manifest_none", J({"layers": [], "config": {}}))
put(2, "manifest_many", J({"layers": [layer("license")] * 256}))
put(2, "manifest_nul", '{"layers":[{"a\\u0000":1}]}')
put(2, "manifest_big", '{"layers":[{"size":9223372036854775808}]}')
put(2, "manifest_index", J({"manifests": [{"digest": "sha256:" + SHA}]}))

# ---- heads and addresses
put(3, "head", 'HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nContent-Range: bytes 0-99/1000\r\nETag: W/"abc"\r\n'
    'Content-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n')
put(3, "head_hub", f'HTTP/1.1 302 Found\r\nX-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: "{SHA}"\r\nX-Linked-Size: 5000\r\nX-Error-Code: GatedRepo\r\n'
    'X-Error-Message: no\r\nLink: <https://h/p?cursor=1>; rel="next"\r\n\r\nHTTP/1.1 200 OK\r\n')
put(3, "head_wait", 'HTTP/1.1 429 No\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:28:09 GMT\r\nRateLimit: "api";r=0;t=55\r\n')
put(3, "head_range", "HTTP/2 416\r\nContent-Range: bytes */0\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 18446744073709551616\r\n")
for i, to in enumerate(["https://[::1]:99/x?y#z", "//h/x", "/a/../b", "?q", "x", "http://127.0.0.1/x", "http://127.0.0.256/", "file:///etc/passwd",
                        "https://u@h/", "https://h/a%20b%2F.gguf?sig=/", "https://h:65536/", "", "#"]):
    put(4, f"to{i}", to)

# ---- files
put(5, "journal", J({"schema": "hone.part/1", "etag": "e", "size": 10000, "piece": 4096, "have": [4096, 17, 0]}))
put(5, "journal_other", J({"schema": "hone.part/1", "etag": "e", "size": 10000, "piece": 5000, "have": [5000, 5001]}))
put(5, "journal_piece", J({"schema": "hone.part/1", "etag": "e", "size": 10000, "piece": 9223372036854775807, "have": [10000]}))
put(6, "index", J({"metadata": {"total_size": 1.5}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}))
put(6, "index_more", J({"weight_map": {"a": "model-00003-of-00002.safetensors\x1b", "b": [1], "c": {"d": 1}}}))
put(6, "index_odd", J({"weight_map": [], "weight_mat": {}}))
put(7, "names", "# mine\npet  org/tiny-GGUF:F16\r\ntalk ollama:llama3.2:1b\nthere https://h/x.gguf # and more\nllama3.2 me/own\n\n")
put(7, "names_odd", "pet ./x.gguf\n")
put(7, "names_words", "pet org/tiny more\n")

# ---- with 8: names that are typed, refusals, the cache, bytes as they come
for i, name in enumerate(["org/tiny-GGUF:Q4_K_M", "org/tiny@main", "org/tiny@refs/pr/1:F16", "org/tiny/sub/x.gguf", "org/tiny@v1.0/x.gguf", "hf.co/org/tiny",
                          "https://huggingface.co/org/tiny/blob/main/a%20b.gguf", "https://huggingface.co/org/tiny/tree/refs%2Fpr%2F1/sub", "hf://org/tiny/tree/main",
                          "https://h/x/y.gguf?download=true#z", "http://h/x.gguf", "http://127.0.0.1:8/x.gguf", "https://h/a b", "https://", "ollama:llama3.2", "ollama:me/x:7b",
                          "ollama:h.org:80/a/b:c", "ollama:../x", "ollama:a/b/c/d/e", "ollama:" + "h" * 210 + "/a/b", "ollama:x/" + "y" * 90, "ollama:x-/é:t", "pet", "pet:Q8_0", "talk:1b", "PET:F32",
                          "pet:", "x.gguf", "./pet", "a//b", "org/tiny@:x", "org/tiny:a/b", "org/--x", "hf.co/--/x", "hf.co/org/tiny?", "org/tiny@a..b", "org/tiny@/x", "org/tiny@a/.b:Q4_0",
                          "hf.co/org/tiny/tree/a%zz", "hf.co/org/tiny/blob/main", "hf.co/org/tiny/raw/main/x%2", "x" * 300, "org/" + "x" * 97, "https://h/" + "x" * 4100, "org/tiny@x\x01", "https://h/\"<", "https://huggingface.co/org/x.gguf"]):
    put(12, f"typed-{i}", name)
REFUSED = "HTTP/1.1 {} No\r\nX-Error-Code: {}\r\nX-Error-Message: it says \x1b why\r\n"
for i, (status, code) in enumerate([(401, ""), (401, "RepoNotFound"), (403, "GatedRepo"), (404, "RevisionNotFound"), (404, "EntryNotFound"), (404, "RepoNotFound"), (404, ""), (429, ""),
                                    (403, ""), (500, ""), (503, "X"), (416, ""), (302, ""), (451, "DisabledRepo")]):
    put(11, f"refused-{i}", REFUSED.format(status, code))
put(11, "refused-wait", "HTTP/1.1 429 No\r\nRetry-After: 4000\r\n")
put(8, "cache", f"main\n{COMMIT}\nsub/config.json\n{OID}\n/models//\nhf_x\nhttp://127.0.0.1/\n")
put(8, "cache-2", f"refs/pr/1\nno commit\n../x\n{OID}\n~/m\nhf x\nhttps://h//\n")
put(8, "cache-3", f"\n{COMMIT} \na/b/c/d.gguf\n{SHA}\n~\n\x01\n/\n")
put(8, "cache-4", f"{COMMIT}\n  hf_t \nx\nnone\n{'p/' * 2100}\n\n\n")
put(8, "cache-5", f"{SHA[:40]}\n\n{'d/' * 8}x\n{OID}\n\n\n\n")
put(8, "cache-6", f"a b\nhf\x7f\n\n{OID}\nrel\n\nx")
put(8, "cache-7", f"{'r' * 190}/x\n{'c' * 5000}\n{'d/' * 3}x\n{SHA}\n{'e' * 4080}\n\n")
put(13, "part", bytes([0x50, 0x61, 0xF2] * 4))
put(13, "part-left", bytes([0xE0, 0xE1, 0xF2]))
put(13, "part-half", bytes([0xF0, 0x11, 0x0A, 0x11, 0x22, 0x0F]))
put(13, "part-forget", bytes([0x20, 0xF1, 0xFF, 0xF0, 0xF1, 0xF2]))
put(13, "part-away", bytes([0x10, 0x0A, 0x21]))
put(10, "manifest_there", J({"config": layer("config", size=5), "layers": [layer(), layer("license", size=6)]}))
put(10, "manifest_size", J({"layers": [layer(size=7)]}))
# ---- whole pulls: bit 0 ollama, 1 an address, 2 a tag, 3 only to look; then the server's answers, with FF between them
def pull(how, name, *answers):
    put(9, name, bytes([how]) + b"\xff".join(a if isinstance(a, bytes) else a.encode() for a in answers))


BODY = b"GGUF of five"
SUM, GIT = hashlib.sha256(BODY).hexdigest(), hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()
REV, FILE = J({"sha": COMMIT}), entry("m-Q8_0.gguf", 134, lfs={"oid": SUM, "size": len(BODY), "pointerSize": 134})
MANIFEST = J({"layers": [layer(digest="sha256:" + SUM, size=len(BODY)), layer("license", "sha256:" + SUM, len(BODY))]})
PART = f"HTTP/1.1 206 X\r\nContent-Length: {len(BODY)}\r\nContent-Range: bytes 0-{len(BODY) - 1}/{len(BODY)}\r\nETag: \"{SUM}\"\r\nConnection: close\r\n\r\n".encode() + BODY
pull(0, "pull", REV, J([FILE]), PART)
pull(0, "pull-whole", REV, J([FILE]), BODY)
pull(4, "pull-tag", REV, J([FILE]), b"GGUF of Five")
pull(0, "pull-folder", REV, J([entry("config.json", len(BODY), oid=GIT), entry("model.safetensors", len(BODY), oid=GIT)]), BODY, BODY)
pull(8, "look", REV, J([FILE, lfs("m-Q4_0.gguf", 7)]))
pull(8, "look-pages", REV, f'HTTP/1.1 200 X\r\nLink: <?cursor=1>; rel="next"\r\nConnection: close\r\n\r\n' + J([FILE]), J([lfs("a.gguf")]))
pull(8, "look-away", REV, f'HTTP/1.1 200 X\r\nLink: <https://h/x>; rel="next"\r\nConnection: close\r\n\r\n' + J([FILE]))
pull(8, "look-circle", REV, f'HTTP/1.1 200 X\r\nLink: <?recursive=true>; rel="next"\r\nConnection: close\r\n\r\n' + J([FILE]))
pull(8, "look-html", "HTTP/1.1 200 X\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>")
pull(8, "look-moved", "HTTP/1.1 302 X\r\nLocation: /elsewhere\r\nConnection: close\r\n\r\n", REV, "HTTP/1.1 500 X\r\nConnection: close\r\n\r\n")
pull(1, "ollama", MANIFEST, PART)
pull(1, "ollama-whole", MANIFEST, BODY)
pull(1, "ollama-none")
pull(1, "ollama-closed", "HTTP/1.1 401 X\r\nConnection: close\r\n\r\n")
pull(1, "ollama-ill", "HTTP/1.1 500 X\r\nConnection: close\r\n\r\n")
pull(1, "ollama-gone", MANIFEST)
pull(1, "ollama-other", MANIFEST, b"GGUF of Five")
pull(1, "ollama-large", J({"layers": [layer(size=1 << 30)]}), "x")
pull(2, "address", PART)
pull(2, "address-whole", BODY)
pull(2, "address-cut", PART[:-3])
put(5, "journal_odd", J({"schema": "hone.part/1", "etag": "e", "size": 10000, "piece": 4096, "have": 1}))
