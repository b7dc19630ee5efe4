/* Fuzz target: sets of GGUF files on disk. Begins with a good set of three parts; the input says which part is
 * opened and what is done to which: an edit, or a part that is missing, doubled or in the place of another. A set
 * that is accepted is read to its last byte, and its numbers agree with each other.
 * covers: src/gguf/gguf_read.c src/gguf/gguf_index.c src/gguf/gguf_check.c */
#include "../unit/gguf_bytes.h"
#include "fuzz_file.h"
#include "gguf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_PART = 3 };

static bb good[N_PART];

static void make_part(int no)
{
    bb *b = &good[no];
    *b = bb_head(3, 2, no ? 4 : 6);
    bb_kv_str(b, "general.architecture", "llama");
    bb_kv(b, "split.no", 2, (uint64_t)no, 2);
    bb_kv(b, "split.count", 2, N_PART, 2);
    bb_kv(b, "split.tensors.count", 5, 2 * N_PART, 4);
    if (!no) {
        bb_kv_u32(b, "general.alignment", 32);
        bb_kv_array(b, "tokenizer.ggml.tokens", 8, 2);
        bb_str(b, "a"), bb_str(b, "bc");
    }
    for (uint32_t k = 0; k < 2; k++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%d.attn_%c.weight", no, "qk"[k]);
        bb_tensor(b, name, 2, NE(32, 2), k ? 8 : 0, k ? 256 : 0); /* F32 and Q8_0 */
    }
    bb_pad(b, 32);
    for (uint32_t i = 0; i < 256 + 68; i++) bb_u8(b, i);
}

/* What one record of the input asks for, after its part. */
static void change(uint8_t *p[N_PART], size_t n[N_PART], bool *missing, ff_in *in)
{
    unsigned what = ff_u8(in), i = what % N_PART, j = (what >> 2) % N_PART;
    switch (what >> 5) {
    case 0: missing[i] = !missing[i]; break;
    case 1: { /* change places */
        uint8_t *t = p[i];
        size_t k = n[i];
        p[i] = p[j], n[i] = n[j], p[j] = t, n[j] = k;
        break;
    }
    case 2: /* twice the same */
        if (n[j] <= good[0].n + FF_EDIT_ROOM) memcpy(p[i], p[j], n[j]), n[i] = n[j];
        break;
    default: n[i] = ff_edit(p[i], n[i], good[0].n + FF_EDIT_ROOM, in);
    }
}

static volatile uint64_t sink;

static void read_all(const hn_gguf *g)
{
    static float y[32];
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        const hn_type_info *ti = hn_type_get((uint32_t)t->type);
        FF_MUST(ti && t->part >= 0 && t->part < hn_gguf_n_parts(g));
        char name[HN_GGUF_MAX_NAME + 1];
        memcpy(name, t->name.ptr, t->name.len);
        name[t->name.len] = 0;
        FF_MUST(hn_gguf_find_tensor(g, name) == t);
        const unsigned char *b = t->data;
        for (uint64_t k = 0; k < t->n_bytes; k++) sink += b[k];
        if (ti->block_elems <= 32) ti->dequantize(y, b, 32 < t->ne[0] ? 32 : ti->block_elems);
    }
    uint64_t size = 0;
    hn_known_file part[HN_GGUF_MAX_PARTS];
    FF_MUST(hn_gguf_files(g, part));
    for (int32_t i = 0; i < hn_gguf_n_parts(g); i++) size += part[i].stamp.size;
    FF_MUST(size == hn_gguf_size(g));
    sink += hn_gguf_fingerprint(g);
    hone_error e = { 0 };
    hone_status st = hn_gguf_check_data(g, &e);
    FF_MUST(st == HONE_OK || e.message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[N_PART][40];
    uint8_t *p[N_PART];
    size_t n[N_PART];
    bool missing[N_PART] = { 0 };
    ff_in in = { data, size };
    if (!*ff_dir) {
        ff_begin();
        for (int i = 0; i < N_PART; i++) {
            make_part(i);
            snprintf(name[i], sizeof name[i], "m-%05d-of-%05d.gguf", i + 1, N_PART);
        }
    }
    unsigned how = ff_u8(&in);
    for (int i = 0; i < N_PART; i++) {
        FF_MUST((p[i] = malloc(good[0].n + FF_EDIT_ROOM)) != NULL);
        n[i] = good[i].n;
        memcpy(p[i], good[i].p, n[i]);
    }
    while (in.n) change(p, n, missing, &in);
    for (int i = 0; i < N_PART; i++) {
        if (missing[i]) unlink(ff_path(name[i]));
        else ff_put(name[i], p[i], n[i]);
        free(p[i]);
    }
    const char *path = ff_path(name[how % N_PART]);
    if (how & 64) path = ff_put("alone.gguf", good[how % N_PART].p, good[how % N_PART].n); /* not named as a part */
    hone_error e = { 0 };
    hn_gguf *g = NULL;
    hone_status st = hn_gguf_open(&g, path, &e);
    FF_MUST((st == HONE_OK) == (g != NULL) && (g || (strstr(e.message, ff_dir) && st != HONE_E_NOMEM)));
    if (g) {
        FF_MUST(!(how & 64));
        read_all(g);
    }
    hn_gguf_close(g);
    return 0;
}
