"""Random JSON schemas of the words hone enforces, one a line as data/json-schema has them, for walk_schemas.c:
    python3 tests/dev/draw_schemas.py COUNT SEED > SCHEMAS.jsonl"""
import json
import random
import sys

R = random.Random(int(sys.argv[2]))
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


SCALARS = [number, string, finite, types, plain, without]


def schema(depth):
    nested = [objects, objects, arrays, any_of, several, several, merged, tagged] if depth > 0 else []
    return R.choice(SCALARS + nested)(depth)


for i in range(int(sys.argv[1])):
    print(json.dumps({"id": f"r/{i}", "want": "either", "schema": schema(3), "tests": []}, separators=(",", ":")))
