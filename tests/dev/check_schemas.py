"""Texts that walk_schemas drew from masks, held against python-jsonschema (with its format checker):
    build/walk_schemas walks MODEL.gguf 20 FILE.jsonl > TEXTS
    python3 tests/dev/check_schemas.py FILE.jsonl TEXTS
Needs jsonschema and rfc3339-validator, rfc3986-validator, fqdn, isoduration where they are there. Regular expressions of
schemas are ECMAScript's: \\d, \\w and \\s are told to Python as what they mean there."""
import json
import re
import sys
from decimal import Decimal

import jsonschema
from jsonschema import Draft202012Validator, validators

SPACES = "\\t\\n\\x0b\\x0c\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"


def ecma(pattern):
    """The same expression for Python's re; None: it has what re lacks."""
    if "\\p" in pattern or "\\P" in pattern:
        return None
    out, i, in_class = "", 0, False
    while i < len(pattern):
        c = pattern[i]
        if c == "\\" and i + 1 < len(pattern):
            d = pattern[i + 1]
            i += 2
            table = {"d": "0-9", "w": "0-9A-Za-z_", "s": SPACES}
            if d in table:
                out += table[d] if in_class else "[" + table[d] + "]"
            elif d in "DWS" and not in_class:
                out += "[^" + table[d.lower()] + "]"
            elif d == "c":
                out += "\\x%02x" % (ord(pattern[i]) & 31)
                i += 1
            else:
                out += "\\" + d
            continue
        if c == "[":
            in_class = True
        if c == "]":
            in_class = False
        out += "\\Z" if c == "$" and not in_class else "[^\\n\\r\\u2028\\u2029]" if c == "." and not in_class else c
        i += 1
    return out


def pattern_word(validator, pattern, instance, schema):
    p = ecma(pattern)
    if isinstance(instance, str) and p is not None and not re.search(p, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def pattern_properties(validator, patterns, instance, schema):
    for pattern, sub in patterns.items() if isinstance(instance, dict) else ():
        p = ecma(pattern)
        for k, v in instance.items():
            if p is not None and re.search(p, k):
                yield from validator.descend(v, sub, path=k, schema_path=pattern)


def additional(validator, rest, instance, schema):
    if not isinstance(instance, dict):
        return
    patterns = [ecma(p) for p in schema.get("patternProperties", {})]
    if None in patterns:
        return
    for k, v in instance.items():
        if k not in schema.get("properties", {}) and not any(re.search(p, k) for p in patterns):
            yield from validator.descend(v, rest, path=k)


def multiple(validator, by, instance, schema):
    if isinstance(instance, (int, Decimal)) and not isinstance(instance, bool) and Decimal(instance) % Decimal(by) != 0:
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {by}")


def is_number(checker, x):
    return isinstance(x, (int, Decimal)) and not isinstance(x, bool)


def is_integer(checker, x):
    return is_number(checker, x) and (isinstance(x, int) or x == x.to_integral_value())


def place(schema, pointer):
    """What holds the place that a pointer names, and its key there."""
    node, keys = schema, [k.replace("~1", "/").replace("~0", "~") for k in pointer.split("/")[1:]]
    for k in keys[:-1]:
        node = node[int(k)] if isinstance(node, list) else node[k]
    return node, int(keys[-1]) if isinstance(node, list) else keys[-1]


off = {}  # by id of a schema: words that are not enforced, to which references may lead all the same


def as_told(schema, notes):
    """Takes from the schema what walk_schemas lenient was told of, but for what is a value's: that nobody may touch."""
    for note in notes.split("; "):
        pointer, _, what = note.partition(" ")
        if not pointer or not re.match("is not enforced|is held as anyOf", what):
            continue
        node, key = place(schema, pointer)
        if isinstance(node, list):
            if key < len(node) and isinstance(node[key], int):
                node[key] = True if pointer.split("/")[-2] != "required" else "a"
        elif what == "is not enforced: no schema":
            node[key] = True
        elif node[key] != "a value's":
            off.setdefault(id(node), {})[key] = what.startswith("is held")
        above = pointer.split("/")
        while "not" in above[:-1]:  # with less said it would forbid more
            above = above[:-1] if above[-1] == "not" else above
            above = above[:len(above) - above[::-1].index("not")]
            node, key = place(schema, "/".join(above))
            if isinstance(node, dict):
                off.setdefault(id(node), {})[key] = False


def unless_told(word, check, instead):
    def checked(validator, value, instance, schema):
        told = off.get(id(schema), {})
        if told.get(word):
            return instead(validator, value, instance, schema)
        return () if value is None or word in told else check(validator, value, instance, schema) or ()
    return checked


types = Draft202012Validator.TYPE_CHECKER.redefine_many({"number": is_number, "integer": is_integer})
Validator = validators.extend(Draft202012Validator, type_checker=types,
                              validators={"pattern": pattern_word, "patternProperties": pattern_properties,
                                          "additionalProperties": additional, "multipleOf": multiple})
Lenient = validators.extend(Validator, validators={
    word: unless_told(word, f, Validator.VALIDATORS["anyOf"]) for word, f in Validator.VALIDATORS.items()
    if word not in ("const", "if")})


def main():
    import decimal
    decimal.getcontext().prec = 3000
    groups = {}
    for line in open(sys.argv[1], encoding="utf-8"):
        g = json.loads(line, parse_float=Decimal)
        groups[g["id"]] = g
    good = bad = unfinished = unread = 0
    seen, kind = set(), Validator
    for line in open(sys.argv[2], encoding="utf-8"):
        part = line.rstrip("\n").split("\t")
        if len(part) > 2 and part[1] == "notes":
            kind = Lenient
            as_told(groups[part[0]]["schema"], part[2])
            continue
        if len(part) > 2:
            unfinished += 1
            continue
        g = groups[part[0]]
        seen.add(part[0])
        try:
            text = bytes.fromhex(part[1]).decode("utf-8")
            value = json.loads(text, parse_float=Decimal)
            errors = list(kind(g["schema"], format_checker=Draft202012Validator.FORMAT_CHECKER).iter_errors(value))
        except Exception as e:
            if kind is Lenient and isinstance(e, (TypeError, AttributeError, RecursionError, jsonschema.exceptions.UnknownType)):
                unread += 1  # by the validator: a reference to what is no schema
                continue
            errors, text = [e], part[1]
        if errors:
            bad += 1
            print(f"{part[0]}: {text[:200]!r}: {str(errors[0])[:200]}")
        else:
            good += 1
    print(f"{len(seen)} schemas, {good} texts valid, {bad} not, {unfinished} unfinished, {unread} that the validator cannot judge")
    return bad != 0 or good == 0


if __name__ == "__main__":
    sys.exit(main())
