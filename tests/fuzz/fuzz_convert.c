/* Fuzzes the converter: the input is a checkpoint of any kind, or config.json (from '{'), or a
 * World vocabulary (from a digit). Whatever it is, a failure has a message and leaves no file, and
 * what is written can be read.
 * covers: src/forge/convert.c src/model/ckpt_config.c src/model/safetensors.c src/forge/rwkv_cpp.c src/model/ckpt.c
 * covers: src/forge/convert_llama2c.c src/forge/convert_world.c src/forge/convert_rwkv.c src/forge/convert_write.c
 * covers: src/forge/recipe.c src/base/json.c */
#define _GNU_SOURCE
#include "forge/convert.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

static char dir[] = "/tmp/hone-fuzz-convert-XXXXXX", src[64], dst[64];

static void clean(void)
{
    unlink(src);
    unlink(dst);
    rmdir(dir);
}

static void prepare(void)
{
    if (*src) return;
    must(mkdtemp(dir) != NULL);
    snprintf(src, sizeof src, "%s/in", dir);
    snprintf(dst, sizeof dst, "%s/out", dir);
    atexit(clean);
}

static void try_config(void)
{
    hn_config c = { 0 };
    hone_error e = { 0 };
    hone_status st = hn_config_load(&c, src, &e);
    must(st == HONE_OK || *e.message);
    if (st == HONE_OK)
        for (size_t i = 0; i < c.n; i++) {
            char key[256];
            snprintf(key, sizeof key, "%.*s", c.m[i].key.len < 255 ? (int)c.m[i].key.len : 255, c.m[i].key.ptr);
            const hn_member *m = hn_config_get(&c, key);
            must(!m || c.m[i].key.len >= 255 || m->kind != HN_J_NULL);
            hn_jread j;
            if (c.m[i].kind == HN_J_OTHER) { /* its text was checked */
                must(hn_ckpt_json(&j, (char *)(uintptr_t)c.m[i].str.ptr, c.m[i].str.len, "fuzz", "JSON", &e) ==
                     HONE_OK);
                must(hn_jread_skip(&j) == HONE_OK && hn_jread_end(&j) == HONE_OK);
            }
        }
    hn_config_free(&c);
}

static void try_world(void)
{
    hn_gguf_writer *w;
    hone_error e = { 0 };
    must(hn_gguf_writer_new(&w, &e) == HONE_OK);
    must(hn_world_put(w, src, 300, (hone_str){ "rwkv-world", 10 }, "fuzz", &e) == HONE_OK || *e.message);
    hn_gguf_writer_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_error e = { 0 };
    hn_gguf *g;
    prepare();
    FILE *f = fopen(src, "wb");
    must(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
    if (size && data[0] == '{') try_config();
    else if (size && data[0] >= '0' && data[0] <= '9') try_world();
    hone_status st = hone_convert(src, NULL, size & 1 ? NULL : "Q8_0", dst, NULL, &e);
    if (st != HONE_OK) {
        must(*e.message && access(dst, F_OK) != 0);
        return 0;
    }
    must(hn_gguf_open(&g, dst, &e) == HONE_OK);
    must(hn_gguf_check_data(g, &e) == HONE_OK);
    hn_gguf_close(g);
    unlink(dst);
    return 0;
}
