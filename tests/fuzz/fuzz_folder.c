/* Fuzz target: checkpoint folders as Hugging Face has them. The input is pieces with a byte FF behind each: flags,
 * config.json, model.safetensors.index.json, where the flags say so a World vocabulary, a chat template and
 * tokenizer_config.json, then the JSON header of one safetensors file after another, which get zeros for data.
 * Or it says which vector of a family it is (vector_file.h): that file becomes a folder, of which then, behind a byte
 * how (types of both ways; whether back again, and where something is), each piece changes one file: its name, a line's
 * end, and what stands in it ("-": it goes, "@" and ">": a link, to a folder and to nothing). An object changes members
 * of a file of JSON, and as "tensors" names and shapes in the header of the weights; "weights" is another header.
 * Whatever the folder is, a failure names it and leaves no file; what is written can be read.
 * covers: src/model/safetensors.c src/forge/convert.c src/forge/convert_rwkv.c src/model/ckpt.c
 * covers: src/forge/convert_write.c src/forge/recipe.c src/base/json.c src/model/ckpt_folder.c src/forge/hf.c
 * covers: src/forge/hf_keys.c src/forge/hf_plan.c src/forge/hf_rope.c src/forge/hf_write.c src/forge/hf_make.c
 * covers: src/forge/hf_dense.c src/forge/hf_moe.c src/forge/hf_hybrid.c src/forge/hf_general.c src/forge/hf_back.c
 * covers: src/forge/hf_back_config.c src/forge/hf_back_write.c src/forge/hf_quantized.c src/forge/hf_dequant.c
 * covers: src/forge/hf_gemma.c src/forge/hf_delta.c src/forge/hf_latent.c src/forge/hf_encoder.c
 * covers: src/base/json_tree.c src/base/source.c src/forge/hf_draft.c
 * covers: src/forge/hf_back_modules.c src/forge/hf_back_rwkv.c */
#define _GNU_SOURCE
#include "converted.h"
#include "vector_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILES = 4, DATA_ROOM = 1 << 20 };

static char folder[100];

/* Bytes of data that the header asks for: the largest number after a comma and before a bracket, as data_offsets
 * has them. Wrong guesses are fine. */
static size_t data_bytes(ff_in h)
{
    size_t most = 0, v = 0;
    for (size_t i = 0; i < h.n; i++) {
        uint8_t c = h.p[i];
        if (c >= '0' && c <= '9') v = v < DATA_ROOM ? 10 * v + (c - '0') : DATA_ROOM;
        else if (c == ']' && v > most && v < DATA_ROOM) most = v, v = 0;
        else v = 0;
    }
    return most;
}

/* Shapes of packed matrices are data: 8 by 8. */
static void put_shapes(uint8_t *data, size_t n, ff_in h)
{
    static const char name[] = "weight_shape", offsets[] = "data_offsets\":[";
    const uint64_t eights[2] = { 8, 8 };
    const uint8_t *p = h.p, *end = h.p + h.n;
    while (p && (p = memmem(p, (size_t)(end - p), name, sizeof name - 1)) != NULL) {
        size_t at = 0;
        if (!(p = memmem(p, (size_t)(end - p), offsets, sizeof offsets - 1))) return;
        for (p += sizeof offsets - 1; p < end && *p >= '0' && *p <= '9' && at < n; p++) at = 10 * at + (*p - '0');
        if (at <= n && n - at >= sizeof eights) memcpy(data + at, eights, sizeof eights);
    }
}

/* kind: what stands in one place among the data: 1 NaN, 2 infinite, 3 beyond F16. */
static void put_tensors(const char *name, ff_in h, unsigned how, unsigned kind)
{
    static const char odd[3][8] = { { 0, 0, (char)0xC0, 0x7F, 0, 0, (char)0xF8, 0x7F },
                                    { 0, 0, (char)0x80, 0x7F, 0, 0, (char)0xF0, 0x7F },
                                    { 0, 0, 0, 0x7F, 0, 0, (char)0xE0, 0x47 } };
    size_t extra = data_bytes(h) + (how & 1), n = 8 + h.n + extra;
    uint64_t len = h.n + (how & 2 ? 1 : 0);
    uint8_t *p = calloc(n, 1);
    char path[160];
    FF_MUST(p);
    memcpy(p, &len, 8);
    memcpy(p + 8, h.p, h.n);
    if (how & 4) /* small numbers that are no zeros: 0.5 as F32, and something as F16 and BF16 */
        for (size_t i = 8 + h.n; i + 4 <= n; i += 4) memcpy(p + i, "\0\0\0\x3F", 4);
    put_shapes(p + 8 + h.n, extra, h);
    if (kind && extra >= 40) memcpy(p + 8 + h.n + 32, odd[kind - 1], 8); /* of F32 and BF16 the one, of F64 the other */
    snprintf(path, sizeof path, "in/%s", name);
    ff_put(path, p, n);
    free(p);
}

/* ---- the folder of a vector ------------------------------------------------------------------------- */

/* Members of a file of JSON: others, or (null) none. */
static void merge(const char *path, const json_t *with)
{
    json_t *v, *o = json_load_file(path, 0, NULL);
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)with, key, v)
    {
        if (json_is_null(v)) json_object_del(o, key);
        else json_object_set(o, key, v);
    }
    if (json_is_object(o)) FF_MUST(json_dump_file(o, path, 0) == 0);
    json_decref(o);
}

/* Bytes that an F32 tensor of that shape has; other shapes: few. */
static size_t shape_bytes(const json_t *shape)
{
    size_t n = 4, i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)shape, i, v)
    {
        json_int_t k = json_integer_value(v);
        n *= k >= 0 && k < 1 << 12 && n < 1 << 18 ? (size_t)k : 1;
    }
    return n;
}

/* The weights with what a change says of their header: {"name": null} takes one away, {"name": "other"} names it so,
 * {"name": [shape]} is its shape, {"name": {…}} a new one. Data follow each other. */
static void change_header(const char *path, const json_t *with)
{
    uint8_t *p;
    uint64_t n = 0;
    const char *key;
    json_t *v, *now, *o;
    size_t size = ff_get(path, &p);
    bb head = { 0 }, data = { 0 };
    memcpy(&n, p, size < 8 ? 0 : 8);
    o = size >= 8 && n <= size - 8 ? json_loadb((const char *)p + 8, n, 0, NULL) : NULL;
    if (!o) { /* another piece has put something there */
        free(p);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)with, key, v) if (json_is_object(v)) json_object_set(o, key, v);
    bb_raw(&head, "{", 1);
    json_object_foreach(o, key, v)
    {
        const char *name = key;
        now = json_object_get(with, key);
        json_t *list = json_object_get(v, "data_offsets"), *shape = json_object_get(v, "shape");
        if (json_is_null(now) || !json_is_object(v) || !shape) continue;
        size_t at = (size_t)json_integer_value(json_array_get(list, 0)), was = shape_bytes(shape);
        if (json_is_string(now)) name = json_string_value(now);
        if (json_is_array(now)) shape = now;
        size_t more = shape_bytes(shape), begin = data.n, same = more < was ? more : was;
        bool there = !json_is_object(now) && at <= size - 8 - n && same <= size - 8 - n - at;
        bb_raw(&data, there ? p + 8 + n + at : NULL, there ? same : more);
        if (there) bb_raw(&data, NULL, more - same);
        json_t *one = json_pack("{s:{s:s, s:O, s:[I, I]}}", name, "dtype", "F32", "shape", shape, "data_offsets",
                                (json_int_t)begin, (json_int_t)data.n);
        char *text = one ? json_dumps(one, JSON_COMPACT) : NULL;
        if (text) { /* with a comma, and without its braces */
            if (head.n > 1) bb_raw(&head, ",", 1);
            bb_raw(&head, text + 1, strlen(text) - 2);
        }
        free(text);
        json_decref(one);
    }
    bb_raw(&head, "}", 1);
    bb b = { 0 };
    bb_u64(&b, head.n);
    bb_raw(&b, head.p, head.n);
    bb_raw(&b, data.p, data.n);
    bb_save(&b, path);
    bb_free(&b), bb_free(&head), bb_free(&data);
    free(p);
    json_decref(o);
}

/* One file more, or otherwise. */
static void change(ff_in piece)
{
    ff_in all = piece, name = ff_until(&piece, '\n');
    char path[240], word[FF_NAME];
    if (!ff_is_name(name)) return;
    snprintf(word, sizeof word, "%.*s", (int)name.n, name.p);
    if (!strcmp(word, "weights")) {
        put_tensors("model.safetensors", piece, 4, 0);
        return;
    }
    bool header = !strcmp(word, "tensors"), there;
    snprintf(path, sizeof path, "%s/%s", folder, header ? "model.safetensors" : word);
    there = access(path, F_OK) == 0;
    json_t *o = there && piece.n ? json_loadb((const char *)piece.p, piece.n, 0, NULL) : NULL;
    if (header) {
        if (there) change_header(path, o);
    } else if (json_is_object(o)) merge(path, o);
    else ff_put_named(folder, all);
    json_decref(o);
}

/* Where something is already, or a file is named: nothing of it changes. */
static void to_taken(const char *file, unsigned kind)
{
    static const char *const names[] = { "in", "in", "in", "in.gguf" };
    char dst[120];
    hone_error e = { 0 };
    snprintf(dst, sizeof dst, "%s/%s", ff_dir, names[kind]);
    if (kind < 2) mkdir(dst, 0700);
    if (kind == 1) ff_put("in/x", "x", 1);
    if (kind == 2) ff_put("in", "x", 1);
    hone_status st = hone_convert(file, NULL, NULL, dst, NULL, &e);
    FF_MUST(st == HONE_OK ? kind == 0 : *e.message != 0);
    if (kind == 1 || kind == 2) FF_MUST(st != HONE_OK && access(kind == 1 ? ff_path("in/x") : dst, F_OK) == 0);
    if (kind == 2) unlink(dst);
    if (kind == 3) FF_MUST(access(dst, F_OK) != 0);
}

static void of_vector(const bb *file, ff_in *in)
{
    static const char *const types[] = { NULL, "F32", "F16", "BF16", "Q8_0", "Q4_K_M", "Q4_K", "no" };
    char path[120];
    unsigned how = ff_u8(in);
    snprintf(path, sizeof path, "%s", ff_put("m.gguf", file->p, file->n));
    ff_empty(folder);
    rmdir(folder);
    if (how & 128) to_taken(path, how & 3);
    else if (ff_to_folder(path, types[how & 7], folder)) {
        ff_take(in, in->n && *in->p == 0xFF);
        while (in->n) change(ff_until(in, 0xFF));
        ff_convert(folder, NULL, types[how >> 3 & 7], how & 64);
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    bb file = { 0 };
    if (!*ff_dir) ff_begin();
    snprintf(folder, sizeof folder, "%s/in", ff_dir);
    if (vf_is_asked(&in)) {
        if (vf_asked(&file, &in)) of_vector(&file, &in);
        bb_free(&file);
        return 0;
    }
    mkdir(folder, 0700);
    ff_empty(folder);
    ff_in flags = ff_until(&in, 0xFF), config = ff_until(&in, 0xFF), index = ff_until(&in, 0xFF);
    unsigned how = ff_u8(&flags), shape = ff_u8(&flags);
    if (config.n) ff_put("in/config.json", config.p, config.n);
    if (index.n) ff_put("in/model.safetensors.index.json", index.p, index.n);
    static const char *const others[] = { "in/rwkv_vocab_v20230424.txt", "in/chat_template.jinja",
                                          "in/tokenizer_config.json" };
    for (unsigned i = 0; i < 3; i++)
        if (shape >> (4 + i) & 1) {
            ff_in other = ff_until(&in, 0xFF);
            ff_put(others[i], other.p, other.n);
        }
    int n_file = 0;
    for (; n_file < MAX_FILES && in.n; n_file++) {
        char name[48];
        ff_in h = ff_until(&in, 0xFF);
        if (how & 8) snprintf(name, sizeof name, "model-%05d-of-%05u.safetensors", n_file + 1, 1 + (shape & 3));
        else snprintf(name, sizeof name, n_file ? "more-%d.safetensors" : "model.safetensors", n_file);
        put_tensors(name, h, how, shape >> 2 & 3);
    }
    if (how & 16) ff_put("in/params.json", "{}", 2);
    if (how & 32) ff_put("in/adapter_config.json", "{}", 2);
    ff_convert(folder, NULL, shape & 128 ? "BF16" : how & 64 ? "Q8_0" : how & 128 ? "F16" : NULL, true);
    return 0;
}
