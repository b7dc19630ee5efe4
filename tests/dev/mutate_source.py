#!/usr/bin/env python3
"""Sources changed at random, one place each: does hone lab quality hash notice? Lines that no hash runs are never
noticed, so they are counted first (gcov); of those that run, changes that get past are holes, or change no answer
(sizes, speed, what is told to nobody): who reads the list decides.

    python3 tests/dev/mutate_source.py [--files 'src/engine/*.c'] [-n 100] [--seed 1] [--minutes 30]
                                       [--models A.gguf,B.gguf] [--work FOLDER] [--out FILE.jsonl]
                                       [--again FILE.jsonl] [--lines]

FOLDER (default: a new one below TMPDIR) gets a copy of the tree, built as release and, for the counts, with
FLAVOUR=cov at -O1; one that is there already is used as it is. Without --models: three small models that are made
here, one with a window and one that recurs, and the two bundled ones. --lines prints, of each file, how many lines
ran, and which did not, and ends. --again: the survivors of FILE once more, of the sources as they are in FOLDER. Each
change is a line of --out as soon as it is judged; the counts come last. A change is one comparison, sum, constant,
condition or statement; those that the compiler refuses, or that leave the object's bytes as they were, are not
counted. Needs make, gcc, gcov."""
import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

OTHER = {"<=": "<", ">=": ">", "==": "!=", "!=": "==", "<": "<=", ">": ">=", "&&": "||", "||": "&&", "+": "-", "-": "+"}
# what answers nobody: messages, memory, what is passed on
PASSED = re.compile(r"HN_FAIL|HN_NEED|NOMEM|free\(|alloc\(|HN_ESC|if \(st [!=]= HONE_OK|if \(!\w+\)")
DECLARES = re.compile(r"^\s+(const |static |return|int|size_t|uint|float|double|bool|char|enum|struct|unsigned|"
                      r"\w+ \*?\w+ =)")
STATEMENT = re.compile(r"^\s+(continue|break);$|^\s+[a-zA-Z_][\w>.\[\]\-+ ]*(\(.*\)| [-+*/|&^]?= .*|\+\+|--);$")
SMALL = {
    "small": '{"arch": "qwen2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_head_kv": 2, "n_ff": 96,'
             ' "n_ctx_train": 4096, "n_vocab": 300}',
    "window": '{"arch": "gemma3", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_head_kv": 2, "head_dim": 16, "n_ff": 96,'
              ' "n_ctx_train": 2048, "n_vocab": 500, "window": 64}',
    "recurs": '{"arch": "rwkv7", "n_layer": 2, "n_embd": 128, "n_vocab": 300, "n_ctx_train": 2048}',
}


def blank(m):
    return "\0" * len(m.group(0))


def changes(line):
    """[(from, to, other text)] of one line."""
    code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|/\*.*?\*/', blank, line)
    if code.lstrip().startswith(("#", "*", "/*", "case", "default", "static const", "typedef", "enum")):
        return []
    out = [(m.start(1), m.end(1), OTHER[m.group(1)]) for m in re.finditer(r" (<=|>=|==|!=|<|>|&&|\|\||[+-]) ", code)]
    for m in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", code):
        out += [(m.start(), m.end(), str(int(m.group(1)) + 1))] + [(m.start(), m.end(), "0")] * (m.group(1) == "1")
    for m in re.finditer(r"\b(true|false)\b", code):
        out.append((m.start(), m.end(), "false" if m.group(0) == "true" else "true"))
    out += [(m.start(), m.end(), "--" if m.group(0) == "++" else "++") for m in re.finditer(r"\+\+|--", code)]
    m = re.match(r"^(\s*(?:\} else )?(?:if|while) )\((.*)\)( \{| [a-z].*;|)$", code)
    if m:
        out.append((m.start(2), m.end(2), "!(" + line[m.start(2):m.end(2)] + ")"))
    if STATEMENT.match(code) and not DECLARES.match(code):
        out.append((len(line) - len(line.lstrip()), len(line), ";"))
    return out


class Tree:
    """The copy, and how it compiles one file and links the program."""

    def __init__(self, work):
        self.top = os.path.join(work, "tree")
        if not os.path.isdir(self.top):
            names = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], capture_output=True,
                                   text=True, check=True).stdout.split("\0")
            for name in filter(os.path.isfile, names):
                to = os.path.join(self.top, name)
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(name, to)
        self.run("make", "-s", "-j2", "build/release/hone")
        self.run("make", "-s", "-j2", "FLAVOUR=cov", "B=build/cov1", "CFLAGS=-O1 -g", "build/cov1/hone")
        self.link = next(x for x in self.lines("src/cli/main.c", "build/release/hone")
                         if "-o build/release/hone" in x and "libhone" in x)
        self.commands, self.objects = {}, {}

    def run(self, *words, check=True, timeout=None, text=None):
        r = subprocess.run(words, cwd=self.top, capture_output=True, text=True, timeout=timeout, input=text)
        if check and r.returncode:
            raise SystemExit("%s: %s" % (" ".join(words), (r.stderr or r.stdout)[-2000:]))
        return r

    def lines(self, changed, target):
        return self.run("make", "-n", "-W", changed, target).stdout.split("\n")

    def compile(self, name, source, out):
        """The object's bytes; None: the compiler refuses."""
        if name not in self.commands:
            line = next(x for x in self.lines(name, "build/release/" + name[:-2] + ".o") if "-c " + name in x)
            line = line.replace("-MMD -MP", "").replace("-g1", "-g0")
            self.commands[name] = re.sub(r"-c \S+ -o \S+", "-I%s -x c -c - -o OUT" % os.path.dirname(name), line)
        r = self.run("sh", "-c", self.commands[name].replace("-o OUT", "-o " + out), check=False, text=source)
        return None if r.returncode else open(out, "rb").read()

    def counts(self, name):
        """{line: did it run?}"""
        r = self.run("gcov", "-t", "-o", "build/cov1/" + name[:-2] + ".o", name, check=False)
        hit, of = {}, None
        for m in re.finditer(r"^\s*([^:\n]+):\s*(\d+):(.*)$", r.stdout, re.M):
            count, n, rest = m.group(1), int(m.group(2)), m.group(3)
            if n == 0 and rest.startswith("Source:"):
                of = rest[7:]
            elif n and of == name and count != "-":
                hit[n] = count[0] not in "#="
        return hit


def models_of(tree, work):
    out = []
    for name, shape in SMALL.items():
        path = os.path.join(work, name)
        with open(path + ".json", "w") as f:
            f.write(shape)
        if not os.path.exists(path + ".gguf"):
            tree.run("build/release/hone", "synth", "--config", path + ".json", "--type", "F32", "-o", path + ".gguf")
        out.append(path + ".gguf")
    return out + [os.path.join(tree.top, "models", x) for x in ("hone-chat.gguf", "hone-tiny.gguf")]


def judge(tree, exe, models, good):
    for m in models:
        try:
            r = tree.run(exe, "lab", "quality", "hash", "-m", m, "--draw", "5", "--against", good[m], check=False,
                         timeout=120)
        except subprocess.TimeoutExpired:
            return "noticed", os.path.basename(m) + ": does not end"
        if r.returncode:
            said = r.stderr.strip() or (r.stdout.strip().split("\n") or [""])[-1]
            return "noticed", "%s: exit %d %s" % (os.path.basename(m), r.returncode, said[:160])
    return "survived", ""


def draw(tree, a, files):
    """[(file, line, from, to, other)], drawn; or the survivors of a.again."""
    out = []
    if a.again:
        for d in filter(lambda d: d["verdict"] == "survived", map(json.loads, open(a.again))):
            for n, x in enumerate(open(os.path.join(tree.top, d["file"])).read().split("\n"), 1):
                if x.strip() == d["old"]:
                    out.append((d["file"], n, len(x) - len(x.lstrip()), len(x), d["new"]))
                    break
        return out
    for name in files:
        ran = tree.counts(name)
        for n, x in enumerate(open(os.path.join(tree.top, name)).read().split("\n"), 1):
            if ran.get(n) and not PASSED.search(x):
                out += [(name, n) + c for c in changes(x)]
    random.Random(a.seed).shuffle(out)
    return out


def tell_lines(tree, files):
    for name in files:
        ran = tree.counts(name)
        if ran:
            print("%5.1f %%  %s" % (100 * sum(ran.values()) / len(ran), name))
            text = open(os.path.join(tree.top, name)).read().split("\n")
            for n in sorted(n for n, did in ran.items() if not did):
                print("        %5d %s" % (n, text[n - 1].strip()))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--files", default="src/engine/*.c,src/text/*.c,src/template/*.c,src/backend/cpu*.c,"
                                      "src/kernels/avx2*.c")
    p.add_argument("-n", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--models", default="")
    p.add_argument("--work", default="")
    p.add_argument("--out", default="")
    p.add_argument("--again", default="")
    p.add_argument("--lines", action="store_true")
    a = p.parse_args()
    work = os.path.abspath(a.work or tempfile.mkdtemp(prefix="hone-mutate-"))
    os.makedirs(work, exist_ok=True)
    tree = Tree(work)
    models = [os.path.abspath(x) for x in a.models.split(",") if x] or models_of(tree, work)
    files = [x[len(tree.top) + 1:] for g in a.files.split(",") for x in sorted(glob.glob(os.path.join(tree.top, g)))]
    good = {}
    for x in glob.glob(os.path.join(tree.top, "build/cov1/**/*.gcda"), recursive=True):
        os.remove(x)
    for m in models:
        good[m] = os.path.join(work, os.path.basename(m) + ".json")
        tree.run("build/release/hone", "lab", "quality", "hash", "-m", m, "--draw", "5", "--save", good[m])
        if not a.again:
            tree.run("build/cov1/hone", "lab", "quality", "hash", "-m", m, "--draw", "5")
    if a.lines:
        return tell_lines(tree, files)
    drawn = draw(tree, a, files)
    print("%d changes of %d files to draw from; %s" % (len(drawn), len(files), work), file=sys.stderr)
    count, start, exe = {"noticed": 0, "survived": 0}, time.time(), os.path.join(work, "hone")
    for name, n, begin, end, other in drawn:
        if sum(count.values()) >= (len(drawn) if a.again else a.n) or time.time() - start > 60 * a.minutes:
            break
        text = open(os.path.join(tree.top, name)).read().split("\n")
        if name not in tree.objects:
            tree.objects[name] = tree.compile(name, "\n".join(text), exe + ".o")
        old = text[n - 1]
        text[n - 1] = old[:begin] + other + old[end:]
        made = tree.compile(name, "\n".join(text), exe + ".o")
        if not made or made == tree.objects[name]:
            continue
        tree.run("sh", "-c", tree.link.replace("-o build/release/hone", exe + ".o -o " + exe))
        verdict, why = judge(tree, exe, models, good)
        count[verdict] += 1
        d = {"file": name, "line": n, "old": old.strip(), "new": text[n - 1].strip(), "verdict": verdict, "why": why}
        print(json.dumps(d), file=open(a.out, "a") if a.out else sys.stdout, flush=True)
    print("%(noticed)d noticed, %(survived)d survived" % count, file=sys.stderr)


if __name__ == "__main__":
    main()
