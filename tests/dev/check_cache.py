# Development check: does hone see in a cache of models what huggingface_hub (of PyPI) sees, which others fill?
#     python3 tests/dev/check_cache.py build/release/hone [ROUNDS [SEED]]
# Draws caches: repositories, revisions, refs, blobs that revisions share, folders, split sets, links and copies, made by
# huggingface_hub's own functions. Then holds against it: every file of a model in every revision (path, size, refs), what a
# name resolves to, which names of repositories are let through, and what is left when a model or a repository is removed.
import json, os, pathlib, random, shutil, subprocess, sys, tempfile

hone, rounds, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20, int(sys.argv[3]) if len(sys.argv) > 3 else 1
top = tempfile.mkdtemp()
os.environ.update(HF_HUB_OFFLINE="1", HF_HOME=top + "/home", HOME=top, XDG_DATA_HOME=top, XDG_CONFIG_HOME=top, OLLAMA_MODELS=top + "/none",
                  HF_HUB_DISABLE_SYMLINKS_WARNING="1")
for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HONE_MODELS"): os.environ.pop(name, None)
from huggingface_hub import file_download as fd, scan_cache_dir, try_to_load_from_cache
from huggingface_hub.utils import HFValidationError, validate_repo_id

rng, bad, checks = random.Random(seed), 0, 0
tiny = pathlib.Path("models/hone-tiny.gguf").read_bytes()
root = pathlib.Path(top) / "home" / "hub"
os.chdir(top)

def check(good, *what):
    global bad, checks
    checks += 1
    if good: return
    bad += 1
    print("DIFFERS:", *what)

def run(*args):
    p = subprocess.run([hone, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr

def hexes(n): return "".join(rng.choice("0123456789abcdef") for _ in range(n))

TYPES = ["Q4_K_M", "Q8_0", "F16", "UD-Q2_K_XL", "IQ3_XXS", "mxfp4", "q5_0"]
def draw_files():
    files = []
    for t in rng.sample(TYPES, rng.randint(1, 4)):
        folder = rng.choice(["", "", t + "/", "a b/deep/"])
        parts = rng.choice([1, 1, 3])
        files += [f"{folder}m-{t}.gguf"] if parts == 1 else [f"{folder}m-{t}-{i + 1:05}-of-{parts:05}.gguf" for i in range(parts)]
    return files + ["README.md", "config.json"]

def fill():
    for r in range(rng.randint(1, 4)):
        repo = f"org{rng.randint(1, 2)}/name.{r}_{hexes(3)}"
        store = root / fd.repo_folder_name(repo_id=repo, repo_type="model")
        shared = {}
        links = rng.random() < 0.75
        fd._are_symlinks_supported_in_dir.clear()
        fd.are_symlinks_supported = lambda *a, on=links: on
        for v in range(rng.randint(1, 3)):
            commit = hexes(40)
            for path in draw_files():
                blob = store / "blobs" / (shared.get(path) if path in shared and rng.random() < 0.5 else hexes(rng.choice([40, 64])))
                shared[path] = blob.name
                blob.parent.mkdir(parents=True, exist_ok=True)
                new = not blob.exists()
                if new: blob.write_bytes(tiny + bytes(rng.randint(0, 5)) if path.endswith(".gguf") else hexes(9).encode())
                pointer = pathlib.Path(fd._get_pointer_path(str(store), commit, path))
                pointer.parent.mkdir(parents=True, exist_ok=True)
                fd._create_symlink(str(blob), str(pointer), new_blob=new)
            refs = rng.sample(["main", "dev", "refs/pr/1"], rng.randint(0, 2)) or (["main"] if v == 0 else [])
            for ref in refs: fd._cache_commit_hash_for_specific_revision(str(store), ref, commit)
        (store / "blobs").mkdir(exist_ok=True)
        (store / ".no_exist" / hexes(40)).mkdir(parents=True)

def theirs():
    out = {}
    for repo in scan_cache_dir(root).repos:
        for rev in repo.revisions:
            for f in rev.files:
                if f.file_name.endswith(".gguf"): out[str(f.file_path)] = (repo.repo_id, rev.commit_hash, set(rev.refs), f.size_on_disk)
    return out

def ours():
    out = {}
    code, text, err = run("list", "--json")
    check(code == 0, "hone list", code, err)
    for m in json.loads(text)["models"]:
        if m["where"] != "hub" or m["state"] == "unfinished": continue
        check(m["state"] == "ready", m["name"], m["state"], m["trouble"])
        for f in m["files"]: out[str(root / fd.repo_folder_name(repo_id=m["repo"], repo_type="model") / "snapshots" / m["commit"] / f)] = m
    return out

def same_files(when):
    a, b = theirs(), ours()
    check(set(a) == set(b), when, "files", sorted(set(a) ^ set(b))[:3])
    sizes = {}
    for path, (repo, commit, refs, size) in a.items():
        if path not in b: continue
        m = b[path]
        check(m["repo"] == repo and m["commit"] == commit, when, path, m["repo"], m["commit"])
        check((m["revision"] in refs) if refs else m["revision"] is None, when, path, m["revision"], refs)
        check(m["revision"] == "main" or "main" not in refs, when, path, m["revision"], refs)
        sizes.setdefault(m["name"], [m["bytes"], 0])[1] += size
    for name, (mine, sum_) in sizes.items(): check(mine == sum_, when, name, mine, sum_)
    return a, b

def resolves(a):
    for path, (repo, commit, refs, _) in rng.sample(sorted(a.items()), min(6, len(a))):
        rel = str(pathlib.Path(path).relative_to(root / fd.repo_folder_name(repo_id=repo, repo_type="model") / "snapshots" / commit))
        for rev in [commit, *refs]:
            want = try_to_load_from_cache(repo, rel, revision=rev, cache_dir=root)
            check(str(want) == path, "their own", want, path)
            code, text, err = run("inspect", f"{repo}@{rev}/{rel}", "--json")
            seen = json.loads(text).get("file") if code == 0 else err
            first = rel.replace("-00002-of-", "-00001-of-").replace("-00003-of-", "-00001-of-")
            check(seen == path.replace(rel, first) or "-of-" in rel, "name", f"{repo}@{rev}/{rel}", seen)

def removes(a, b):
    name = rng.choice(sorted({m["name"] for m in b.values()}))
    gone = {p for p, m in b.items() if m["name"] == name or (":" in name and m["name"].split("@")[0].split(":")[0] == name.split(":")[0] and "@" not in name
            and m["name"].rsplit(":", 1)[-1].lower() == name.rsplit(":", 1)[-1].lower())}
    blobs = {p: os.path.realpath(p) for p in a}
    code, text, err = run("rm", "--yes", name, "--json")
    check(code == 0, "rm", name, err)
    left = theirs()
    check(set(left) == set(a) - gone, "left of", name, sorted(set(left) ^ (set(a) - gone))[:3])
    for p in left: check(os.path.exists(p), "broken by rm", name, p)
    for p in gone:
        if os.path.islink(p) or blobs[p] in {blobs[q] for q in left}: continue
        check(not os.path.exists(blobs[p]), "blob that nobody links to stays", name, p)
    repos = sorted({v[0] for v in left.values()})
    if not repos: return
    repo = rng.choice(repos)
    code, text, err = run("rm", "--yes", repo)
    check(code == 0, "rm", repo, err)
    check({v[0] for v in theirs().values()} == set(repos) - {repo}, "repositories after rm", repo)
    same_files("after rm")

def names():
    for _ in range(300):
        part = lambda: "".join(rng.choice("abZ019-._- é/@") if rng.random() < 0.4 else rng.choice("abc") for _ in range(rng.choice([1, 2, 4, 8, 95, 97])))
        repo = part() + "/" + part()
        if any(c in repo for c in "@ é") or repo.count("/") != 1: continue
        try: validate_repo_id(repo); good = True
        except HFValidationError: good = False
        code, _, err = run("tokenize", "-m", "hf.co/" + repo, "-p", "x")
        check(code == (3 if good else 2), "repository", repo, "theirs:", good, "hone:", code, err.strip())

names()
for r in range(rounds):
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    fill()
    a, b = same_files(f"round {r}")
    resolves(a)
    removes(a, b)
shutil.rmtree(top)
print(f"{checks} checks, {bad} wrong")
sys.exit(bad != 0)
