"""Random JSON schemas of the words hone enforces, one a line as data/json-schema has them, for walk_schemas.c:
    python3 tests/dev/draw_schemas.py COUNT SEED [refs|lenient] > SCHEMAS.jsonl
refs: with references to anywhere in the schema, among them schemas named as words are, lists, and values. lenient: that,
and words that cannot be read or are not enforced, for walk_schemas lenient."""
import json
import random
import sys

R = random.Random(int(sys.argv[2]))
MODE = sys.argv[3] if len(sys.argv) > 3 else "plain"
NUMBERS = [0, 1, -1, 3, 7, 10, 99, 100, -12, 0.5, -2.25, 1.05, 12.5, 1e2, -0.001, 250]
VALUES = [1, "a", None, True, 2.5, [1], {"a": 1}, "b c", 0]
PATTERNS = ["^[a-f]*$", "x", "[0-9]{2}", "^a.b", "(foo|ba+r)$", "^[^aeiou]+$", "\\d\\w"]


def maybe(p, s, word, value):
    if R.random() < p:
        s[word] = value


def number(depth):
    s = {"type": R.choice(["integer", "number"])}
    lo, hi = sorted([R.choice(NUMBERS), R.choice(NUMBERS)])
    maybe(.6, s, R.choice(["minimum", "exclusiveMinimum"]), lo)
    maybe(.6, s, R.choice(["maximum", "exclusiveMaximum"]), hi + R.choice([0, 1, 5]))
    maybe(.3, s, "multipleOf", R.choice([1, 2, 3, 7] if s["type"] == "integer" else [1, 2, 0.1, 0.01, 5]))
    maybe(.3, s, "not", {"enum": [R.choice(NUMBERS), R.choice(NUMBERS)]})
    return s


def string(depth):
    s = {"type": "string"}
    maybe(.5, s, "minLength", R.randrange(4))
    maybe(.5, s, "maxLength", R.randrange(3, 12))
    maybe(.4, s, "pattern", R.choice(PATTERNS))
    maybe(.2, s, "not", {"enum": ["a", "ab", "", "foo"]})
    return s


def finite(depth):
    return {"enum": [R.choice(VALUES) for _ in range(R.randrange(1, 5))]}


def types(depth):
    return {"type": R.sample(["null", "boolean", "integer", "string", "number"], 2)}


def plain(depth):
    return R.choice([True, {}, {"type": "boolean"}, {"const": R.choice([1, "x", [], {"k": "v"}])}])


def without(depth):
    return {"not": {"type": R.choice(["string", "object", "array", "number", "integer", "null"])}}


def objects(depth):
    names = R.sample(["a", "b", "c", "d", "xa", "yb"], R.randrange(5))
    s = {"type": "object", "properties": {n: schema(depth - 1) for n in names}}
    maybe(.6, s, "required", R.sample(["a", "b", "c", "zz"], R.randrange(3)))
    maybe(.6, s, "additionalProperties", R.choice([False, True, schema(depth - 1)]))
    maybe(.3, s, "patternProperties", {R.choice(["^x", "b$", "."]): schema(depth - 1)})
    maybe(.3, s, "maxProperties", R.randrange(1, 5))
    maybe(.2, s, "minProperties", R.randrange(3))
    return s


def arrays(depth):
    s = {"type": "array"}
    maybe(.7, s, "items", schema(depth - 1))
    maybe(.4, s, "prefixItems", [schema(depth - 1) for _ in range(R.randrange(1, 3))])
    maybe(.4, s, "minItems", R.randrange(3))
    maybe(.4, s, "maxItems", R.randrange(2, 5))
    return s


def any_of(depth):
    s = {"anyOf": [schema(depth - 1) for _ in range(R.randrange(1, 4))]}
    s.update(R.choice([{}, {"type": "object"}, {"minLength": 2}, {"type": ["string", "integer"]}]))
    return s


def several(depth):
    return {R.choice(["allOf", "oneOf"]): [schema(depth - 1), schema(depth - 1)]}


def tagged(depth):
    """A union by a tag that may have a default, as pydantic writes it; some tags tell nothing."""
    branches = []
    for kind in R.sample(["cat", "dog", "cow", 7], R.randrange(2, 4)):
        s = objects(depth)
        s["properties"]["kind"] = R.choice([{"const": kind, "default": kind}, {"enum": [kind, R.choice([kind, "ox"])]}])
        maybe(.3, s, "required", s.get("required", []) + ["kind"])
        branches.append(s)
    tag = R.choice(["kind"] * 4 + ["a"])
    return {"discriminator": {"propertyName": tag}, R.choice(["oneOf", "oneOf", "anyOf"]): branches}


def merged(depth):
    second = {"properties": {"a": schema(0), "b": schema(0)}, "additionalProperties": R.choice([schema(0), False])}
    return {"allOf": [{"properties": {"a": schema(depth - 1)}, "required": ["a"]}, second]}


WORDS = ["const", "enum", "type", "properties", "items", "required", "not", "a", "b", "$defs"]
MARK = "a value's"  # check_schemas.py: nobody may take it out


def odd_value(depth):
    """A value that would be a schema, and would not be read."""
    value = {"type": MARK, "items": None, "properties": {"a": 1}}
    return R.choice([{"const": value}, {"enum": [value, {"type": MARK}, 3]}, {"const": {"x": value}}])


def reference(depth):
    s = {"$ref": None}
    if depth > 0:
        beside = R.choice([{}, {}, schema(depth - 1)])
        s.update(beside if isinstance(beside, dict) else {})
    return s


def lost(s):
    """A word that goes, put into an object that is a schema."""
    words = [("type", "odd"), ("minimum", "1"), ("items", None), ("enum", None), ("required", ["a", 3]), ("anyOf", []),
             ("uniqueItems", True), ("contains", {}), ("if", {"type": "null"}), ("$ref", "http://x/y"), ("maxLength", -1),
             ("properties", 3), ("allOf", [3]), ("not", {"type": "odd"}), ("pattern", "(?<=x)y"), ("properties", {"b": 3})]
    word, value = R.choice(words)
    if isinstance(s, dict):
        s.setdefault(word, value)
    return s


SCALARS = [number, string, finite, types, plain, without]


def schema(depth):
    nested = [objects, objects, arrays, any_of, several, several, merged, tagged] if depth > 0 else []
    more = [] if MODE == "plain" else [reference, reference, odd_value]
    s = R.choice(SCALARS + nested + more)(depth)
    return lost(s) if MODE == "lenient" and R.random() < .12 else s


def pointers(node, at, out):
    out.append((at, node))
    for k, v in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        pointers(v, at + "/" + str(k).replace("~", "~0").replace("/", "~1"), out)
    return out


def with_references(s):
    """Schemas are kept in three more places; each reference leads to a place that was drawn."""
    if not isinstance(s, dict):
        s = {"allOf": [s]}
    kept = {w: schema(R.randrange(3)) for w in R.sample(WORDS, R.randrange(1, 4))}
    where = R.randrange(4)
    if where == 0:
        s["$defs"] = kept
    elif where == 1:
        s["components"] = {"schemas": kept}
    elif where == 2:
        s["x-kept"] = kept
    else:
        s["properties"] = kept
    places = pointers(s, "#", [])
    likely = [at for at, node in places if isinstance(node, (dict, bool)) and at != "#"]
    for at, node in places:
        if isinstance(node, dict) and "$ref" in node and node["$ref"] is None:
            odd = [p for p in likely if p.split("/")[-1] in WORDS] or likely
            node["$ref"] = R.choice(R.choice([likely, odd]) if R.random() < .95 else [p for p, _ in places])
    return s


for i in range(int(sys.argv[1])):
    s = schema(3) if MODE == "plain" else with_references(schema(3))
    print(json.dumps({"id": f"r/{i}", "want": "either", "schema": s, "tests": []}, separators=(",", ":")))
