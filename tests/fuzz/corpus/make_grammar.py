# Seeds for fuzz_grammar: the schemas of tests/golden/json_schema.jsonl with one of their texts, further ones for words,
# types and mistakes of schemas, expressions, and rules:
#     python3 make_grammar.py FOLDER
# A seed: u8 notation (0 schema, 2 rules, 3 expression; 64 strict, 32 many tokens), its text, NUL, bytes to match.
import json, os, sys

out = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
STRICT, MANY = 64, 32


# the byte with these flags whose rest by 5 is the notation
def notation(kind, flags=0):
    return next(b for b in range(256) if b % 5 == kind and b & (STRICT | MANY | 128) == flags)


def put(name, kind, text, said="", flags=0):
    data = bytes([notation(kind, flags)]) + (text if isinstance(text, bytes) else text.encode()) + b"\0" + (said if isinstance(said, bytes) else said.encode("utf-8", "surrogatepass"))
    with open(os.path.join(out, name), "wb") as f: f.write(data)


J = lambda o: json.dumps(o, separators=(",", ":"))
with open(os.path.join(here, "..", "..", "golden", "json_schema.jsonl"), encoding="utf-8") as f:
    for line in f:
        case = json.loads(line)
        tests = case["tests"] or [["1", ""]]
        strict = STRICT if case["id"].startswith("own/unknown") else 0
        put("own-" + case["id"].split("/")[-1], 0, J(case["schema"]), tests[0][0], strict)
        if len(tests) > 2 and case["id"] in ("own/string-escapes", "own/enum-mixed"): put("own-" + case["id"].split("/")[-1] + "-2", 0, J(case["schema"]), tests[2][0])

obj = lambda **o: {"type": "object", "properties": o}
closed = lambda **o: dict(obj(**o), required=list(o), additionalProperties=False)
SCHEMAS = [
    {"type": "nosuch"}, {"type": 5}, {"type": ["string", 5]}, {"type": []}, 5, [], {"properties": 5}, {"required": 5, "type": "object"}, {"required": [5], "type": "object"}, {"anyOf": 5}, {"anyOf": []}, {"anyOf": [5]},
    {"allOf": 5}, {"allOf": [{"type": "integer"}, {"minimum": 3}]}, {"minimum": "x"}, {"minLength": -1, "type": "string"}, {"minLength": 1.5, "type": "string"}, {"type": "integer", "minimum": 10 ** 30},
    {"type": "integer", "multipleOf": 0}, {"type": "integer", "multipleOf": 0.1}, {"type": "number", "multipleOf": 0.001}, {"type": "number", "multipleOf": 1000000007}, {"type": "integer", "multipleOf": 300000},
    {"type": "number", "multipleOf": 2.5}, {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "exclusiveMaximum": 0}, {"type": "number", "minimum": 0, "maximum": 0}, {"type": "number", "minimum": -3.25, "exclusiveMaximum": -1},
    {"type": "number", "minimum": 1e20, "maximum": 1e21}, {"type": "number", "maximum": 1e-5, "minimum": -1e-5}, {"type": "integer", "exclusiveMinimum": -5, "maximum": 1005}, {"type": "number", "minimum": 1.5, "maximum": 1.5},
    {"nullable": True, "type": "string"}, {"nullable": 5, "type": "string"}, {"type": ["integer", "null"], "enum": [1, None, 2]}, {"enum": []}, {"enum": 5}, {"enum": [1, 1.0, 10e-1]}, {"const": None}, {"const": [1, [], {}]},
    {"const": "\n\t\u0001é\"\\"}, {"enum": [1, 2, 3], "minimum": 2}, {"enum": ["a", "bb"], "maxLength": 1}, {"enum": ["a", "b"], "pattern": "^b"}, {"enum": [[1], [1, 2]], "minItems": 2}, {"enum": [[1], ["a"]], "items": {"type": "integer"}},
    {"enum": [{"a": 1}, {"b": 1}, {}], "required": ["a"], "minProperties": 1, "maxProperties": 3}, {"enum": [{"a": 1}, {"a": "x"}], "properties": {"a": {"type": "integer"}}}, {"enum": [1, 2], "not": {"const": 1}}, {"enum": [6, 7, 0.5], "multipleOf": 3},
    {"enum": [1, 2.5], "multipleOf": 0.5}, {"enum": [1, "a"], "anyOf": [{"type": "string"}, {"const": 1}]}, {"enum": [1, "a"], "oneOf": [{"type": "string"}, {"const": "a"}]}, {"enum": [1, True], "allOf": [{"type": "boolean"}]},
    {"enum": [3], "minimum": 1, "maximum": 5, "exclusiveMinimum": 1, "exclusiveMaximum": 5}, {"enum": ["2024-01-01", "x"], "format": "date"}, {"enum": ["abc"], "minLength": 4}, {"enum": [9], "maximum": 1},
    {"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 4}]}, {"oneOf": [{"type": "number", "maximum": 3}, {"type": "number", "exclusiveMinimum": 3}]}, {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}]},
    {"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]}, {"oneOf": [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}]}, {"oneOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "array", "items": {"type": "integer"}, "minItems": 1}]},
    {"oneOf": [closed(a={"type": "integer"}), closed(b={"type": "integer"})]}, {"oneOf": [closed(t={"const": "a"}), closed(t={"const": "b"})]}, {"oneOf": [closed(t={"type": "string"}), closed(t={"type": "integer"})]}, {"oneOf": [{"enum": [1, 2]}, {"enum": [3]}]},
    {"oneOf": [{"enum": [1, 2]}, {"type": "string"}]}, {"oneOf": [{"enum": [1, 2]}, {"type": "integer"}]}, {"oneOf": [{"type": "boolean"}, {"type": "boolean"}]}, {"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "array"}]}, {"oneOf": [obj(a={}), obj(b={})]},
    {"oneOf": [{"anyOf": [{"const": 1}, {"const": 2}]}, {"anyOf": [{"const": 3}, {"const": "x"}]}]}, {"oneOf": [closed(a={"oneOf": [{"const": 1}, {"const": 2}]}), closed(a={"const": 3})]}, {"oneOf": [dict(obj(a={}), required=["a"]), dict(obj(b=False), required=["c"])]},
    {"not": {"type": "string"}}, {"not": {"enum": [1, 2]}, "type": "integer"}, {"not": {"not": {"type": "string"}}}, {"not": {"anyOf": [{"type": "string"}, {"const": 1}]}}, {"not": {"required": ["a"]}, "type": "object"}, {"not": {}}, {"not": False}, {"not": True}, {"not": 5},
    {"not": {"minimum": 3}, "type": "integer"}, {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "string"}}}, {"not": {"$ref": "#/not"}}, {"not": {"const": [1]}}, {"not": {"const": {"a": 1}}, "type": ["object", "string"]}, {"type": "string", "not": {"const": "a"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}}}, {"$ref": 5}, {"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "integer"}}}, {"$id": "http://x/y", "$ref": "http://x/y#/$defs/a", "$defs": {"a": {"type": "null"}}},
    {"$ref": "#/%24defs/a%25", "$defs": {"a%": {"type": "null"}}}, {"$ref": "#/allOf/0", "allOf": [{"type": "null"}]}, {"properties": {"a": {"$id": "z", "properties": {"b": {"$ref": "#/definitions/c"}}, "definitions": {"c": {"type": "integer"}}}}, "type": "object"},
    {"$ref": "#nosuch"}, {"$ref": "#/a/b"}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "minItems": 1, "maxItems": 3}, {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}},
    {"type": "array", "items": False}, {"type": "array", "minItems": 5, "maxItems": 2}, {"type": "array", "maxItems": 0}, {"type": "array", "minItems": 100000}, {"type": "object", "minProperties": 2}, {"type": "object", "maxProperties": 0}, {"type": "object", "minProperties": 3, "maxProperties": 1},
    dict(obj(a={"type": "integer"}, b={"type": "integer"}), minProperties=1, maxProperties=1, additionalProperties=False), dict(obj(a={}, b={}), minProperties=1), dict(obj(**{f"p{i}": {} for i in range(40)}), required=["p3", "p9"], additionalProperties=False),
    dict(obj(a={"type": "integer"}), patternProperties={"^x": {"type": "string"}, "y$": {"type": "string"}}, additionalProperties={"type": "null"}), {"type": "object", "patternProperties": {f"^{c}": {} for c in "abcdefgh"}}, {"type": "object", "patternProperties": {"(": {}}},
    {"type": "object", "patternProperties": {"^a": False}}, {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}}, {"type": "object", "required": ["x"], "additionalProperties": False}, dict(obj(a={"type": "integer"}), required=["b"]),
    {"allOf": [obj(a={"type": "integer"}), obj(a={"minimum": 3}, b={})], "required": ["a"]}, {"allOf": [obj(a={"type": "integer"}), dict(obj(b={}), additionalProperties=False)]}, {"type": "object", "propertyNames": True, "unevaluatedProperties": False},
    {"type": "string", "format": "date-time"}, {"type": "string", "format": "time"}, {"type": "string", "format": "duration"}, {"type": "string", "format": "email"}, {"type": "string", "format": "hostname"}, {"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"},
    {"type": "string", "format": "uri"}, {"type": "string", "format": "nosuch"}, {"type": "string", "format": 5}, {"type": "integer", "format": "int32"}, {"format": "uuid"}, {"format": "date", "minLength": 3, "pattern": "^2"}, {"type": "string", "maxLength": 0},
    {"type": "string", "minLength": 20, "maxLength": 40}, {"type": "string", "minLength": 30}, {"type": "string", "maxLength": 18}, {"type": "string", "maxLength": 2000}, {"type": "string", "pattern": 5}, {"type": "string", "pattern": "^[a-y]{20}"}, {"uniqueItems": False, "type": "array"},
    {"dependentRequired": {}}, {"x-foo": 1, "unknown": 2, "type": "null"}, {"title": 5, "type": "null"}, {"minimum": 3}, {"minLength": 3}, {"properties": {"a": {}}}, {"items": {}}, {"$defs": {"a": {"type": "nosuch"}}, "type": "null"}, {"type": "integer", "enum": ["x"]},
]
for i, schema in enumerate(SCHEMAS):
    put(f"words-{i}", 0, J(schema), '{"a":1,"b":[2.5,"x"]}')
    if i in (2, 4, 30, 32, 87, 96, 134, 157): put(f"words-{i}-strict", 0, J(schema), '"a"', STRICT)
for i, (schema, said) in enumerate([({"type": "string"}, '"\\ud83d\\ude00 \\u00e9\\n😀"'), ({"type": "string", "maxLength": 3}, '"\\uD83D\\uDE00\\ud83d\\ude01a"'), ({"const": "\U0001F600"}, '"\\ud83d\\ude00"'), ({"type": "string", "pattern": "^[\U0001F600-\U0001F610]+$"}, '"\\ud83d\\ude05"'),
                                    ({"type": "string", "pattern": "^[^a]{2}$"}, '"\\ud800\\udc00\\udbff\\udfff"'), ({"type": "string", "minLength": 17, "maxLength": 30}, '"' + "a" * 40), ({}, '{"a" : [ 1 ,2.5e-3, null]}'), (closed(a={"type": "string", "maxLength": 20}), '{"a":"bbbbbbbbbbbbb"}'),
                                    ({"type": "string", "maxLength": 20, "pattern": "b"}, '"aaaab"'), ({"enum": ["abc" * 8, "abd" * 9]}, '"abcabc'), ({"type": "array", "items": {"type": "string", "maxLength": 30}}, '["aaa","bbb"]'), ({"type": "string", "pattern": "^([a-z]+ ){2,9}$"}, '"abc de f "'),
                                    ({"type": "integer", "minimum": -12345, "maximum": 99999}, "-1234"), ({"type": "array", "items": {"$ref": "#"}}, "[[[[[]]]]]"), ({"type": "string", "pattern": "^\\\\p{Lu}\\\\P{Lu}\\\\w\\\\W\\\\d\\\\D\\\\s\\\\S.$"}, '"Aa_ 1x y"')]):
    for flags in (0, MANY): put(f"text-{i}{'-many' if flags else ''}", 0, J(schema), said, flags)
put("text-cut", 0, '{"type":"string","pattern":"\\ud800"}', "")
for i, text in enumerate(['{"a":1,"a":2}', '{"type"', '{"const":1e5}', '{"const":-0.0}', '{"enum":[1E+2,0.1e-3,100,-0,0e9]}', '{"minimum":1e999}', '{"minimum":-1.50e+1,"type":"number"}', '{"const":' + "1" * 1100 + "}", '{"enum":[true,false,null,[],{},"x"]}', "[" * 200,
                         '{"$ref":"#/$defs/a~1b~0c","$defs":{"a/b~c":{"type":"null"}}}', '{"$ref":"#/allOf/1","allOf":[{},{"type":"null"}]}', '{"type":"integer","multipleOf":1e2}', '{"type":"integer","multipleOf":1e-2}', '{"type":"number","multipleOf":12345678901}', "\xff".encode("latin1"), ""]):
    put(f"raw-{i}", 0, text, "1")
for i, (e, said) in enumerate([(r"a\d\D\w\W\s\S\t\n\v\f\r\0\cA\x41\u0041\u{1F600}\-", "a1xa! xx"), (r"\ud83d\ude00", "\U0001F600"), (r"\b", ""), (r"a\B", ""), (r"\k<a>", ""), (r"(?<name>a)", "a"), (r"(?<name", ""), (r"(?:a|b)*", "abab"), (r"(?=a)", ""), (r"(?!a)", ""), (r"(?<=a)", ""), (r"(?P<x>a)", ""),
                               (r"[a-c\d\s-]", "b"), (r"[z-a]", ""), (r"[a-\d]", ""), (r"[a", ""), (r"[]", ""), (r"[^]", "x"), (r"[\b]", "\b"), (r"[a-", ""), (r"a{2,3}?", "aaa"), (r"a{3,2}", ""), (r"a{9999999}", ""), (r"a{1000001}", ""), (r"a{,3}", "a{,3}"), (r"a{", "a{"), (r"(^a){2}", ""), (r"(^a)?b", "ab"),
                               (r"(a$)*", "a"), (r"(^){0}a", "a"), (r"^$", ""), (r"a$b", ""), (r"x|", "x"), (r"(", ""), (r")", ""), (r"*", ""), (r"a**", ""), (r"\p{L}\p{Ll}\p{M}\p{N}\p{P}\p{S}\P{L}", "aa"), (r"\p{Greek}", ""), (r"\p{", ""), (r"\pL", ""), (r"\u12", ""), (r"\u{110000}", ""), (r"\u{}", ""),
                               (r"\x4", ""), (r"\c1", ""), (r"\1", ""), (r"\q", ""), (r"\\", "\\"), ("\\", ""), (r".*", "x\ny"), (r"[\p{L}\P{N}]+", "ab"), (r"(a|b|ab)(c|bcd)(d*)", "abcd"), (r"((((a))))", "a"), (r"a{0}", ""), (r"[^\w\s]", "!"), (r"\ud83d", ""), (r"[\ud83d\ude00-\ud83d\ude05]", "\U0001F601")]):
    put(f"expression-{i}", 3, e, said)
for i, (g, said) in enumerate([('root ::= "a" root | "b"', "aab"), ('root ::= root "a" | "b"', "ba"), ('root ::= a\na ::= b\nb ::= a "x" | "y"', "y"), ('root ::= [a-z]{2,4} | [^0-9\\n]* "\\x41\\u00e9\\U0001F600"', "abc"), ('root ::= ("a" | "bc")+ "d"? e{3} f*\ne ::= "e"\nf ::= "f"', "abcde"),
                               ('root ::= "a" # comment\n  | "b"', "b"), ('x ::= "a"', ""), ('root ::= nosuch', ""), ('root ::= "', ""), ('root ::= [', ""), ('root ::= (', ""), ('root ::= "a"{2', ""), ('root ::= "a"{5,2}', ""), ('root = "a"', ""), ('root ::= .', "x"), ('root ::= ""', ""), ('root ::= () "a"', "a"),
                               ('root ::= "a"\nroot ::= "b"', ""), ('root ::= "\\q"', ""), ('root ::= "(" root ")" | ""', "((()))"), ('root ::= (((("a"?)?)?)?)*', "aa"), ('root ::= "a"{0,1000000}', "aaa"), ('root ::= x x x x\nx ::= y y y y\ny ::= "a"? "b"?', "ab"), ('root ::= [\\]\\\\-a]+', "]a")]):
    put(f"rules-{i}", 2, g, said)
put("object", 1, "", '{"a":[1]}')
put("object-many", 1, "", '{"a":"bb', MANY)
put("choices", 4, "abcdef", "abc")
