/* Fuzz target: the packed side file as a session uses it. The input is a byte of settings, then edits of a good
 * packed file; the directory's checksum may be made to fit. A file that is not refused can be run, whatever its
 * numbers are, and comparing it with its model ends with a verdict.
 * covers: src/forge/pack_model.c src/gguf/pack_file.c */
#include "fuzz_models.h"
#include "gguf/pack_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hone_context *ctx;
static char model[200];
static uint8_t *good;
static size_t n_good;

static void begin(void)
{
    hone_error e = { 0 };
    hone_packed_info info;
    ff_begin();
    FF_MUST(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e) == HONE_OK);
    snprintf(model, sizeof model, "%s", fm_path("llama", "Q8_0"));
    FF_MUST(hone_pack(model, &(hone_pack_params){ .file = ff_path("good.hpack"), .n_threads = 1 }, &info, NULL, &e) ==
            HONE_OK);
    FF_MUST(info.state == HONE_PACKED_READY && info.n_matrices > 0);
    n_good = ff_get(ff_path("good.hpack"), &good);
}

/* As pack_file.h draws it. */
static void fix_sum(uint8_t *p, size_t n)
{
    uint64_t n_dir, size = n;
    hn_sha256 s;
    if (n < HN_PACKED_HEADER) return;
    memcpy(p + 16, &size, 8);
    memcpy(&n_dir, p + 32, 8);
    if (n_dir > n - HN_PACKED_HEADER) return;
    hn_sha256_init(&s);
    hn_sha256_add(&s, p, 112);
    hn_sha256_add(&s, p + HN_PACKED_HEADER, (size_t)n_dir);
    hn_sha256_end(&s, p + 112);
}

/* The hashes of the numbers as well, as pack_file.h says, so that wrong numbers come to be used. */
static void fix_hashes(uint8_t *p, size_t n)
{
    hn_packed *f;
    if (hn_packed_parse(&f, p, n, "fuzz", NULL) != HONE_OK) return;
    uint8_t *record = p + HN_PACKED_HEADER;
    for (uint64_t i = 0; i < f->n; i++) {
        const hn_packed_entry *e = &f->e[i];
        hn_sha256 all, one;
        hn_sha256_init(&all);
        for (uint64_t k = 0; k < hn_packed_pieces(e); k++) {
            hn_packed_piece x = hn_packed_piece_at(e, k);
            unsigned char d[32];
            hn_sha256_init(&one);
            hn_sha256_add(&one, (const char *)e->data + x.at, x.n_bytes);
            hn_sha256_end(&one, d);
            hn_sha256_add(&all, d, sizeof d);
        }
        hn_sha256_end(&all, record + 40);
        record += (76 + e->name.len + 7) / 8 * 8;
    }
    hn_packed_close(f);
    fix_sum(p, n);
}

static void run(const char *packed)
{
    hone_error e = { 0 };
    hone_model *m = NULL;
    hone_session *s = NULL;
    hone_model_info info;
    hone_status st = hone_model_open(&m, model, &(hone_model_params){ .packed = packed }, &e);
    if (st != HONE_OK) {
        FF_MUST(!m && e.message[0]);
        return;
    }
    hone_model_get_info(m, &info);
    FF_MUST(info.packed_path && !strcmp(info.packed_path, packed));
    FF_MUST(hone_session_new(&s, ctx, m, &(hone_session_params){ .n_ctx = 16, .n_chunk = 4 }, &e) == HONE_OK);
    const float *logits;
    static const int32_t ids[] = { 1, 2, 3, 4, 5 };
    st = hone_prefill(s, ids, 5, &logits, &e);
    FF_MUST(st == HONE_OK || st == HONE_E_NUMERIC || st == HONE_E_FORMAT); /* numbers of any kind, or found damaged */
    hone_session_free(s);
    hone_model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    hone_error e = { 0 };
    hone_packed_info info;
    if (!ctx) begin();
    unsigned how = ff_u8(&in);
    size_t n = n_good;
    uint8_t *file = ff_edited(good, &n, &in);
    if (how & 1) fix_sum(file, n);
    if (how & 4) fix_hashes(file, n);
    const char *path = ff_put("in.hpack", file, n);
    free(file);
    hone_status st = hone_packed_describe(path, &info, &e);
    FF_MUST(st == HONE_OK || e.message[0]);
    st = hone_packed_find(model, path, &info, &e);
    FF_MUST(st == HONE_OK ? info.state == HONE_PACKED_READY || info.note[0] || info.state != HONE_PACKED_UNUSABLE
                          : e.message[0] != 0);
    run(path);
    if (how & 2) {
        st = hone_pack(model, &(hone_pack_params){ .file = path, .n_threads = 1, .verify = true }, &info, NULL, &e);
        FF_MUST(st == HONE_OK || e.message[0]);
    }
    return 0;
}
