/* edit_gguf IN OUT EDIT…: a copy of a GGUF file with further metadata, KEY=u32:N, KEY=f32:X, KEY=str:TEXT, and with an
 * F32 tensor filled with one number, NAME=fill:X. Knows the layout of the container alone, none of hone's code, and
 * trusts its input: a tool of tests. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *file;
static size_t at;

static uint64_t number(int bytes)
{
    uint64_t x = 0;
    memcpy(&x, file + at, (size_t)bytes);
    at += (size_t)bytes;
    return x;
}

static void skip_value(uint32_t type)
{
    static const int size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    if (type == 8) {
        uint64_t n = number(8);
        at += n;
    } else if (type == 9) {
        uint32_t elem = (uint32_t)number(4);
        for (uint64_t n = number(8); n; n--) skip_value(elem);
    } else {
        at += (size_t)size[type];
    }
}

static unsigned char added[65536];
static size_t n_added;

static void add(const void *p, size_t n)
{
    memcpy(added + n_added, p, n);
    n_added += n;
}

static void add_text(const char *s, size_t n)
{
    uint64_t len = n;
    add(&len, 8);
    add(s, n);
}

static void add_key(const char *key, size_t n, uint32_t type)
{
    add_text(key, n);
    add(&type, 4);
}

/* Fills tensor `name` where it is F32; data: where the section begins. */
static void fill(const char *name, size_t len, float x, size_t infos, uint64_t n_tensors)
{
    uint64_t found_at = 0, elems = 0;
    at = infos;
    for (uint64_t i = 0; i < n_tensors; i++) {
        uint64_t n = number(8), all = 1;
        int hit = n == len && memcmp(file + at, name, len) == 0;
        at += n;
        for (uint64_t d = number(4); d; d--) all *= number(8);
        uint64_t type = number(4), offset = number(8);
        if (hit && type == 0) found_at = offset, elems = all;
    }
    if (!elems) fprintf(stderr, "edit_gguf: no F32 tensor %.*s\n", (int)len, name), exit(1);
    at = (at + 31) / 32 * 32;
    for (uint64_t i = 0; i < elems; i++) memcpy(file + at + found_at + 4 * i, &x, 4);
}

int main(int argc, char **argv)
{
    FILE *f = argc > 2 ? fopen(argv[1], "rb") : NULL;
    if (!f) return 1;
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    file = malloc(n);
    if (!file || fread(file, 1, n, f) != n) return 1;
    fclose(f);
    at = 8;
    uint64_t n_tensors = number(8), n_kv = number(8), more = 0;
    for (uint64_t i = 0; i < n_kv; i++) {
        uint64_t len = number(8);
        at += len;
        skip_value((uint32_t)number(4));
    }
    size_t infos = at;
    for (int i = 3; i < argc; i++) {
        const char *eq = strchr(argv[i], '='), *colon = eq ? strchr(eq, ':') : NULL;
        if (!colon) return 1;
        size_t len = (size_t)(eq - argv[i]);
        float x = strtof(colon + 1, NULL);
        uint32_t u = (uint32_t)strtoul(colon + 1, NULL, 0);
        if (!strncmp(eq, "=fill:", 6)) {
            fill(argv[i], len, x, infos, n_tensors);
            continue;
        }
        more++;
        if (!strncmp(eq, "=u32:", 5)) add_key(argv[i], len, 4), add(&u, 4);
        else if (!strncmp(eq, "=f32:", 5)) add_key(argv[i], len, 6), add(&x, 4);
        else add_key(argv[i], len, 8), add_text(colon + 1, strlen(colon + 1));
    }
    if (n_added) { /* data stays aligned */
        char zeros[64] = { 0 };
        add_key("test.filler", 11, 8);
        add_text(zeros, (64 - (n_added + 8) % 32) % 32);
        more++;
    }
    n_kv += more;
    memcpy(file + 16, &n_kv, 8);
    f = fopen(argv[2], "wb");
    if (!f) return 1;
    fwrite(file, 1, 24, f);
    fwrite(added, 1, n_added, f);
    fwrite(file + 24, 1, n - 24, f);
    return fclose(f) != 0;
}
