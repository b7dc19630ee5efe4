/* rwkv_cpp: the .bin files of rwkv.cpp into the list of tensors (RWKV/rwkv.cpp:docs/FILE_FORMAT.md).
 * Six u32: magic, version, n_vocab, n_embed, n_layer, data type; then to the end of the file
 * tensors {u32 dimensions, u32 length of name, u32 type, u32 sizes, fastest first; name; data}.
 * Nothing is aligned, and the type numbers are not GGUF's. Knows the container; refuses to know
 * what the tensors mean. */
#include "forge/convert.h"

enum { HEADER = 24, MAX_TENSORS = 1 << 16 };
#define MAGIC 0x67676d66u

/* Not as in GGUF. HN_TYPE_COUNT: removed, or never in a file. */
static const struct {
    hn_type type;
    const char *name;
} types[] = {
    { HN_F32, "FP32" },          { HN_F16, "FP16" },        { HN_Q4_0, "Q4_0" },       { HN_Q4_1, "Q4_1" },
    { HN_TYPE_COUNT, "Q4_1_O" }, { HN_TYPE_COUNT, "Q4_2" }, { HN_TYPE_COUNT, "Q4_3" }, { HN_Q5_0, "Q5_0" },
    { HN_Q5_1, "Q5_1" },         { HN_Q8_0, "Q8_0" },       { HN_TYPE_COUNT, "Q8_1" }, { HN_Q2_K, "Q2_K" },
    { HN_Q3_K, "Q3_K" },         { HN_Q4_K, "Q4_K" },       { HN_Q5_K, "Q5_K" },       { HN_Q6_K, "Q6_K" },
    { HN_TYPE_COUNT, "Q8_K" },
};
enum { N_TYPES = sizeof types / sizeof *types };

static uint32_t u32_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static hone_status check_type(const hn_source *s, const char *of, uint32_t id, uint32_t version, hone_error *err)
{
    if (id >= N_TYPES)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has data type %u, expected 0 to %d", s->path, of, id, N_TYPES - 1);
    if (types[id].type == HN_TYPE_COUNT)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s has the removed data type %s (%u); make the file anew from the original checkpoint",
                       s->path, of, types[id].name, id);
    if (id > 1 && version < 101)
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: %s is %s in a file of version %u, an old layout of its blocks; make the file anew with version 101",
            s->path, of, types[id].name, version);
    return HONE_OK;
}

static hone_status read_tensor(hn_ckpt *c, int32_t part, uint64_t *pos, uint32_t version, hone_error *err)
{
    const hn_source *s = &c->part[part];
    unsigned char h[12 + 12];
    char name[HN_CKPT_MAX_NAME + 1];
    uint64_t at = *pos, n = s->size - at < sizeof h ? s->size - at : sizeof h;
    hone_status st = hn_source_read(s, at, h, n, err);
    if (st != HONE_OK) return st;
    if (n < 12) goto truncated;
    hn_ckpt_tensor t = { .part = part, .n_dim = 0 };
    uint32_t n_dim = u32_at(h), len = u32_at(h + 4), id = u32_at(h + 8);
    if (n_dim < 1 || n_dim > 3)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %zu, at byte %llu, has %u dimensions, expected 1 to 3", s->path,
                       c->n, (unsigned long long)at, n_dim);
    if (len < 1 || len > HN_CKPT_MAX_NAME)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %zu, at byte %llu, has a name of %u bytes, expected 1 to %d",
                       s->path, c->n, (unsigned long long)at, len, HN_CKPT_MAX_NAME);
    if (n < 12 + 4 * n_dim) goto truncated;
    at += 12 + 4 * n_dim;
    if (s->size - at < len) goto truncated;
    if ((st = hn_source_read(s, at, name, len, err)) != HONE_OK) return st;
    name[len] = 0;
    const char *esc = HN_ESC(name, len);
    at += len;
    if ((st = check_type(s, esc, id, version, err)) != HONE_OK) return st;
    t.name = (hone_str){ name, len };
    t.type = types[id].type;
    t.n_dim = (int32_t)n_dim;
    for (uint32_t i = 0; i < HN_CKPT_MAX_DIM; i++) t.ne[i] = i < n_dim ? u32_at(h + 12 + 4 * i) : 1;
    t.off = at;
    const hn_type_info *ti = hn_type_get(t.type);
    for (uint32_t i = 0; i < n_dim; i++)
        if (t.ne[i] == 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has shape %s, expected no 0", s->path, esc, HN_SHAPE(&t));
    if (t.ne[0] % ti->block_elems)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is %s in rows of %llu, expected a multiple of %u", s->path, esc,
                       ti->name, (unsigned long long)t.ne[0], ti->block_elems);
    if (!hn_tensor_nbytes(ti, t.ne, t.n_dim, &t.n_bytes))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has shape %s: too large", s->path, esc, HN_SHAPE(&t));
    if (!hn_in_range(at, t.n_bytes, s->size))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s has %llu bytes of data from byte %llu on, but the file ends at %llu; truncated?",
                       s->path, esc, (unsigned long long)t.n_bytes, (unsigned long long)at,
                       (unsigned long long)s->size);
    *pos = at + t.n_bytes;
    return hn_ckpt_add(c, &t, err);
truncated:
    return HN_FAIL(err, HONE_E_FORMAT,
                   "%s: ends at byte %llu, within the description of tensor %zu that begins at %llu; truncated?",
                   s->path, (unsigned long long)s->size, c->n, (unsigned long long)*pos);
}

hone_status hn_rwkv_cpp_read(hn_ckpt *c, int32_t part, hone_error *err)
{
    const hn_source *s = &c->part[part];
    unsigned char h[HEADER];
    hone_status st;
    if (s->size < HEADER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected an rwkv.cpp file, whose header alone has %d",
                       s->path, (unsigned long long)s->size, HEADER);
    if ((st = hn_source_read(s, 0, h, HEADER, err)) != HONE_OK) return st;
    uint32_t version = u32_at(h + 4);
    if (u32_at(h) != MAGIC)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: magic 0x%08x, expected 0x%08x of an rwkv.cpp file", s->path, u32_at(h),
                       MAGIC);
    if (version != 100 && version != 101)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: rwkv.cpp file of version %u, expected 100 or 101", s->path,
                       version);
    c->rwkv_cpp = true;
    c->n_vocab = u32_at(h + 8), c->n_embd = u32_at(h + 12), c->n_layer = u32_at(h + 16);
    if ((st = check_type(s, "its header", u32_at(h + 20), version, err)) != HONE_OK) return st;
    for (uint64_t pos = HEADER; pos < s->size;) {
        if (c->n == MAX_TENSORS) return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d tensors", s->path, MAX_TENSORS);
        if ((st = read_tensor(c, part, &pos, version, err)) != HONE_OK) return st;
    }
    return HONE_OK;
}
