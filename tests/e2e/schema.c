/* schema SCHEMA [FILE]: validates each line of FILE (stdin) that is a JSON object against docs/bench.schema.json:
 * a record, or a whole suite. Lines that were cut off are passed over and counted, as readers do.
 * Prints "N records" or the first fault, and exits 1 with one. */
#include "../unit/schema_check.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    json_error_t e;
    json_t *schema = argc > 1 ? json_load_file(argv[1], 0, &e) : NULL;
    FILE *in = argc > 2 ? fopen(argv[2], "r") : stdin;
    if (!schema || !in) return fprintf(stderr, "schema: cannot read %s\n", argv[argc - 1]), 2;
    const json_t *suite = json_object_get(json_object_get(schema, "$defs"), "suite");
    char *line = NULL;
    size_t cap = 0, n = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, in)) > 0) {
        json_t *o = json_loadb(line, (size_t)len, 0, &e);
        if (!o) {
            fprintf(stderr, "schema: passed over what is no JSON: %s\n", e.text);
            continue;
        }
        const char *name = json_string_value(json_object_get(o, "schema"));
        bool whole = name && strcmp(name, "hone.suite/1") == 0;
        schema_fault f = { "" };
        if (!schema_valid(schema, whole ? suite : schema, o, "", &f))
            return fprintf(stderr, "schema: line %zu: %s\n", n + 1, f.text), 1;
        n += whole ? json_array_size(json_object_get(o, "records")) : 1;
        json_decref(o);
    }
    printf("%zu records\n", n);
    free(line);
    json_decref(schema);
    return 0;
}
