/* A validator for the part of JSON Schema (2020-12) that docs/bench.schema.json uses: type,
 * enum, const, required, properties, additionalProperties, items, minItems, maxItems,
 * minLength, pattern, minimum, maximum, exclusiveMinimum, allOf, if/then/else, $ref
 * within the document. A keyword it does not know is an error, so that nothing is
 * passed over in silence. Knows jansson and regex.h. */
#ifndef HN_SCHEMA_CHECK_H
#define HN_SCHEMA_CHECK_H

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct schema_fault {
    char text[600];
} schema_fault;

static bool schema_fails(schema_fault *f, const char *at, const char *what, const char *word)
{
    if (f && !f->text[0]) snprintf(f->text, sizeof f->text, "%s: %s %s", at, what, word);
    return false;
}

static bool schema_type_is(const json_t *v, const char *type)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return strcmp(type, "object") == 0;
    case JSON_ARRAY: return strcmp(type, "array") == 0;
    case JSON_STRING: return strcmp(type, "string") == 0;
    case JSON_INTEGER: return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0 ||
               (strcmp(type, "integer") == 0 && json_real_value(v) == (double)(json_int_t)json_real_value(v));
    case JSON_NULL: return strcmp(type, "null") == 0;
    default: return strcmp(type, "boolean") == 0;
    }
}

static const json_t *schema_ref(const json_t *root, const char *ref)
{
    if (strcmp(ref, "#") == 0) return root;
    if (strncmp(ref, "#/$defs/", 8) != 0) return NULL;
    return json_object_get(json_object_get(root, "$defs"), ref + 8);
}

static bool schema_valid(const json_t *root, const json_t *schema, const json_t *v, const char *at, schema_fault *f);

static bool schema_object(const json_t *root, const json_t *schema, const json_t *v, const char *at, schema_fault *f)
{
    const json_t *required = json_object_get(schema, "required"), *properties = json_object_get(schema, "properties");
    const json_t *more = json_object_get(schema, "additionalProperties"), *one;
    const char *key;
    size_t i;
    char below[400];
    json_t *child;
    json_array_foreach(required, i, one) if (!json_object_get(v, json_string_value(one))) return schema_fails(
        f, at, "lacks", json_string_value(one));
    json_object_foreach((json_t *)(void *)(size_t)v, key, child)
    {
        snprintf(below, sizeof below, "%s.%s", at, key);
        one = json_object_get(properties, key);
        if (!one && json_is_false(more)) return schema_fails(f, at, "may not have", key);
        if (!one) one = more;
        if (one && !schema_valid(root, one, child, below, f)) return false;
    }
    return true;
}

static bool schema_array(const json_t *root, const json_t *schema, const json_t *v, const char *at, schema_fault *f)
{
    const json_t *items = json_object_get(schema, "items"), *least = json_object_get(schema, "minItems"),
                 *most = json_object_get(schema, "maxItems");
    char below[400];
    size_t i;
    json_t *one;
    if (least && json_array_size(v) < (size_t)json_integer_value(least))
        return schema_fails(f, at, "is shorter than", "minItems");
    if (most && json_array_size(v) > (size_t)json_integer_value(most))
        return schema_fails(f, at, "is longer than", "maxItems");
    json_array_foreach((json_t *)(void *)(size_t)v, i, one)
    {
        snprintf(below, sizeof below, "%s[%zu]", at, i);
        if (items && !schema_valid(root, items, one, below, f)) return false;
    }
    return true;
}

static bool schema_scalar(const json_t *schema, const json_t *v, const char *at, schema_fault *f)
{
    const json_t *k;
    if (json_is_number(v)) {
        double x = json_number_value(v);
        if ((k = json_object_get(schema, "minimum")) && x < json_number_value(k))
            return schema_fails(f, at, "is below", "minimum");
        if ((k = json_object_get(schema, "maximum")) && x > json_number_value(k))
            return schema_fails(f, at, "is above", "maximum");
        if ((k = json_object_get(schema, "exclusiveMinimum")) && x <= json_number_value(k))
            return schema_fails(f, at, "is not above", "exclusiveMinimum");
    } else if (json_is_string(v)) {
        const char *s = json_string_value(v);
        if ((k = json_object_get(schema, "minLength")) && strlen(s) < (size_t)json_integer_value(k))
            return schema_fails(f, at, "is shorter than", "minLength");
        if ((k = json_object_get(schema, "pattern"))) {
            regex_t re;
            if (regcomp(&re, json_string_value(k), REG_EXTENDED | REG_NOSUB) != 0)
                return schema_fails(f, at, "bad pattern", json_string_value(k));
            bool match = regexec(&re, s, 0, NULL, 0) == 0;
            regfree(&re);
            if (!match) return schema_fails(f, at, "does not match", json_string_value(k));
        }
    }
    return true;
}

static bool schema_valid(const json_t *root, const json_t *schema, const json_t *v, const char *at, schema_fault *f)
{
    static const char *const known[] = { "$schema", "$id",         "$defs",      "$ref",
                                         "title",   "description", "type",       "enum",
                                         "const",   "required",    "properties", "additionalProperties",
                                         "items",   "minItems",    "maxItems",   "minLength",
                                         "pattern", "minimum",     "maximum",    "exclusiveMinimum",
                                         "allOf",   "if",          "then",       "else" };
    if (json_is_boolean(schema)) return json_is_true(schema) ? true : schema_fails(f, at, "is", "refused");
    if (!json_is_object(schema)) return schema_fails(f, at, "has", "no schema");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(void *)(size_t)schema, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(known[i], key) == 0;
        if (!found) return schema_fails(f, at, "this validator does not know", key);
    }
    const json_t *k = json_object_get(schema, "$ref"), *one;
    size_t i;
    if (k) {
        const json_t *target = schema_ref(root, json_string_value(k));
        if (!target) return schema_fails(f, at, "no such $ref", json_string_value(k));
        if (!schema_valid(root, target, v, at, f)) return false;
    }
    if ((k = json_object_get(schema, "type"))) {
        bool is = json_is_string(k) && schema_type_is(v, json_string_value(k));
        if (json_is_array(k)) json_array_foreach(k, i, one) is = is || schema_type_is(v, json_string_value(one));
        if (!is) return schema_fails(f, at, "is not of", "type");
    }
    if ((k = json_object_get(schema, "const")) && !json_equal(k, v)) return schema_fails(f, at, "is not", "const");
    if ((k = json_object_get(schema, "enum"))) {
        bool is = false;
        json_array_foreach(k, i, one) is = is || json_equal(one, v);
        if (!is) return schema_fails(f, at, "is not in", "enum");
    }
    if ((k = json_object_get(schema, "allOf")))
        json_array_foreach(k, i, one) if (!schema_valid(root, one, v, at, f)) return false;
    if ((k = json_object_get(schema, "if"))) {
        const json_t *then = json_object_get(schema, schema_valid(root, k, v, at, NULL) ? "then" : "else");
        if (then && !schema_valid(root, then, v, at, f)) return false;
    }
    if (json_is_object(v)) return schema_object(root, schema, v, at, f);
    if (json_is_array(v)) return schema_array(root, schema, v, at, f);
    return schema_scalar(schema, v, at, f);
}

#endif
