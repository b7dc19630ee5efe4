/* hf_back_write: tensors of a folder from those of a GGUF file, by views walked the other way. Most lie as they are and
 * go through piece by piece; one whose elements lie elsewhere is held whole while it is put together. Owns types, the
 * cut into files and safetensors' header; refuses to know what the tensors mean. */
#include "base/json_tree.h"
#include "forge/hf_back.h"

#include "base/file.h"
#include "forge/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

enum { PIECE = 1 << 18 /* elements: a whole number of any block */, MAX_FILES = 99999 };
#define FILE_BYTES ((uint64_t)5000000000) /* of tensors, in one file of several */

/* A view of a source, and where in the file's tensor it lies. */
typedef struct part {
    const hn_hf_view *v;
    const hn_hf_tensor *t;
    const hn_gguf_tensor *g;
    uint64_t at; /* elements of g before it */
} part;

typedef struct work {
    hn_hf *f;
    part *p; /* [n] by source, then by place */
    size_t n;
    size_t *order, n_apart; /* [c->n] tensors of the model, then those with files of their own */
    float *x;               /* [PIECE] */
    char *bytes;            /* the same, encoded */
    uint64_t done, total;
    char file[64];
    json_t *map; /* of the index; NULL: none is made */
} work;

static uint64_t elements(const uint64_t *n, int dims)
{
    uint64_t x = 1;
    for (int i = 0; i < dims; i++) x *= n[i];
    return x;
}

static uint64_t count_of(const hn_ckpt_tensor *t) { return elements(t->ne, HN_CKPT_MAX_DIM); }
static uint64_t size_of(hn_type t) { return t == HN_F32 ? 4 : 2; }

static int by_place(const void *x, const void *y)
{
    const part *a = x, *b = y;
    if (a->v->from != b->v->from) return a->v->from < b->v->from ? -1 : 1;
    if (a->v->first != b->v->first) return a->v->first < b->v->first ? -1 : 1;
    return a->v < b->v ? -1 : a->v > b->v;
}

static hone_status find_parts(work *k, hone_error *err)
{
    hn_hf *f = k->f;
    k->p = malloc((f->n_v + 1) * sizeof *k->p);
    if (!k->p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu views", f->path, f->n_v);
    for (size_t i = 0; i < f->n; i++) {
        const hn_hf_tensor *t = &f->t[i];
        uint64_t at = 0;
        for (size_t j = t->view; j < t->view + t->n_view; at += elements(f->v[j].n, HN_HF_DIMS), j++)
            if (f->v[j].from) k->p[k->n++] = (part){ &f->v[j], t, hn_gguf_find_tensor(f->back, t->name), at };
    }
    qsort(k->p, k->n, sizeof *k->p, by_place);
    return HONE_OK;
}

/* The parts of a source. */
static size_t parts_of(const work *k, const hn_ckpt_tensor *t, const part **first)
{
    size_t lo = 0, hi = k->n, n = 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (k->p[mid].v->from < t) lo = mid + 1;
        else hi = mid;
    }
    while (lo + n < k->n && k->p[lo + n].v->from == t) n++;
    *first = k->p + lo;
    return n;
}

static bool ends(hone_str s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && !memcmp(s.ptr + s.len - n, with, n);
}

/* ---- types -------------------------------------------------------------------------------------------------- */

/* As in the file; blocks, and what is computed, become F32: nothing is rounded. With a type, matrices take it. */
static hn_type type_of(const hn_hf *f, const part *p, size_t n)
{
    hn_type all = HN_TYPE_COUNT, want = HN_TYPE_COUNT;
    bool f32 = false;
    for (size_t i = 0; i < n; i++) {
        hn_type own = p[i].v->map == HN_HF_SAME && hn_is_float(p[i].g->type) ? p[i].g->type : HN_F32;
        all = all == HN_TYPE_COUNT || all == own ? own : HN_F32;
        f32 |= p[i].t->always_f32;
    }
    return hn_mix_find(f->a->type, &want, NULL) && !(f32 && all == HN_F32) ? want : all;
}

/* Taps of a convolution are a matrix here and [channels, 1, taps] there; lists may be rows of heads here. */
static void give_shape(hn_ckpt_tensor *t)
{
    static const char *const taps[] = { "conv1d.weight", "conv.conv.weight" };
    static const char *const lists[] = { ".A_log", ".D", ".dt_bias", "mixer.norm.weight", "mamba.norm.weight" };
    for (size_t i = 0; i < sizeof taps / sizeof *taps; i++) {
        if (t->n_dim != 2 || !ends(t->name, taps[i])) continue;
        t->ne[2] = t->ne[1];
        t->ne[1] = 1;
        t->n_dim = 3;
    }
    if (t->n_dim == 1 && ends(t->name, "moe_statics.e_score_correction_bias")) t->n_dim = 2;
    if (ends(t->name, ".self_attn.A_log")) { /* Kimi's: [1, 1, heads, 1] */
        t->ne[1] = count_of(t);
        t->ne[0] = 1;
        t->n_dim = 4;
        return;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (t->n_dim < 2 || !ends(t->name, lists[i])) continue;
        if (i == 0 && t->ne[0] > 1 && t->ne[1] > 1) continue; /* Mamba's: of each channel and state */
        t->ne[0] = count_of(t);
        for (int d = 1; d < HN_CKPT_MAX_DIM; d++) t->ne[d] = 1;
        t->n_dim = 1;
    }
}

hone_status hn_hf_back_types(hn_hf *f, hone_error *err)
{
    work k = { .f = f };
    hone_status st = find_parts(&k, err);
    for (size_t i = 0; i < f->c->n && st == HONE_OK; i++) {
        hn_ckpt_tensor *t = &f->c->t[i];
        const part *p;
        size_t n = parts_of(&k, t, &p);
        t->type = type_of(f, p, n);
        t->n_bytes = count_of(t) * size_of(t->type);
        give_shape(t);
    }
    free(k.p);
    return st;
}

const char *hn_hf_back_dtype(const hn_hf *f)
{
    uint64_t n[3] = { 0 };
    for (size_t i = 0; i < f->c->n; i++) {
        hn_type t = f->c->t[i].type;
        n[t == HN_F32 ? 0 : t == HN_F16 ? 1 : 2] += count_of(&f->c->t[i]);
    }
    return n[1] > n[0] && n[1] >= n[2] ? "float16" : n[2] > n[0] ? "bfloat16" : "float32";
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

static float minus_exp(float x) { return -(float)exp((double)x); }

/* The x whose −exp is y, of those few the one with the fewest digits; where none is, the nearest. */
static float log_of(float y)
{
    float near = (float)log(-(double)y), low = near, high = near;
    uint32_t u;
    memcpy(&u, &near, 4);
    u = (u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000u; /* as BF16 */
    float brief = hn_bits_f32(u);
    if (minus_exp(brief) == y) return brief;
    for (int i = 0; i < 4; i++, low = nextafterf(low, -INFINITY), high = nextafterf(high, INFINITY)) {
        if (minus_exp(low) == y) return low;
        if (minus_exp(high) == y) return high;
    }
    return near;
}

static void unmap(const hn_hf_view *v, float *x, uint64_t n)
{
    switch (v->map) {
    case HN_HF_SAME: break;
    case HN_HF_PLUS_ONE:
        for (uint64_t i = 0; i < n; i++) x[i] -= 1.0f;
        break;
    case HN_HF_MINUS_EXP:
        for (uint64_t i = 0; i < n; i++) x[i] = log_of(x[i]);
        break;
    case HN_HF_TIMES:
        for (uint64_t i = 0; i < n; i++) x[i] /= v->by;
        break;
    }
}

/* Elements [first, first + n) of a part, as numbers of the source. */
static hone_status read_part(const work *k, const part *p, uint64_t first, uint64_t n, float *x, hone_error *err)
{
    const hn_type_info *ti = hn_type_get(p->g->type);
    uint64_t at = p->at + first;
    if (at % ti->block_elems || n % ti->block_elems)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s is of type %s, whose blocks a folder would cut; convert from F16", k->f->path,
                       p->t->name, ti->name);
    ti->dequantize(x, (const char *)p->g->data + hn_row_bytes(ti, at), (int64_t)n);
    unmap(p->v, x, n);
    uint64_t i = hn_first_odd(x, HN_F32, n);
    if (i == n) return HONE_OK;
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %" PRIu64 " is %s, expected a finite number", k->f->path,
                   p->t->name, at + i, isnan(x[i]) ? "NaN" : "infinite");
}

static hone_status encode(const work *k, const hn_ckpt_tensor *t, const float *x, uint64_t n, void *out,
                          hone_error *err)
{
    for (uint64_t i = 0; i < n && t->type != HN_F32; i++)
        if (fabsf(x[i]) >= (t->type == HN_F16 ? 65520.0f : 3.3961775e38f))
            return HN_FAIL(err, HONE_E_NUMERIC, "%s: %g in %s is beyond %s; --type %s holds it", k->f->path,
                           (double)x[i], HN_ESC(t->name.ptr, t->name.len), hn_type_get(t->type)->name,
                           t->type == HN_F16 ? "BF16" : "F32");
    hn_type_get(t->type)->quantize(out, x, (int64_t)n, NULL);
    return HONE_OK;
}

static hone_status put(work *k, hn_file *to, const void *p, uint64_t n, hone_error *err)
{
    const hone_progress *pr = k->f->a->pr;
    hone_status st;
    if (hn_interrupted(pr)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted; nothing was written", k->f->path);
    TRY(hn_file_put(to, p, n, err));
    k->done += n;
    if (pr && pr->fn) pr->fn(pr->arg, k->done, k->total);
    return HONE_OK;
}

static bool lies_flat(const hn_hf_view *v)
{
    return elements(v->n + 1, HN_HF_DIMS - 1) == 1 && (v->n[0] == 1 || v->stride[0] == 1);
}

/* One behind the other in the file, too? */
static bool flows(const part *p, size_t n)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; at += p[i].v->n[0], i++)
        if (!lies_flat(p[i].v) || p[i].v->first != at) return false;
    return true;
}

static hone_status put_flowing(work *k, hn_file *to, const hn_ckpt_tensor *t, const part *p, size_t n, hone_error *err)
{
    hone_status st;
    for (size_t i = 0; i < n; i++) {
        uint64_t all = p[i].v->n[0], each = size_of(t->type);
        bool same = p[i].v->map == HN_HF_SAME && p[i].g->type == t->type;
        for (uint64_t at = 0, m; at < all; at += m) {
            m = all - at < PIECE ? all - at : PIECE;
            TRY(read_part(k, &p[i], at, m, k->x, err)); /* numbers alone: the way there takes no others */
            if (same) {
                TRY(put(k, to, (const char *)p[i].g->data + (p[i].at + at) * each, m * each, err));
                continue;
            }
            TRY(encode(k, t, k->x, m, k->bytes, err));
            TRY(put(k, to, k->bytes, m * each, err));
        }
    }
    return HONE_OK;
}

/* Where element i of a view is in its source. */
static uint64_t place_of(const hn_hf_view *v, uint64_t i)
{
    uint64_t at = v->first;
    for (int d = 0; d < HN_HF_DIMS; d++) {
        at += i % v->n[d] * v->stride[d];
        i /= v->n[d];
    }
    return at;
}

/* Elements of a part go to their places. */
static hone_status scatter(work *k, const part *p, float *whole, hone_error *err)
{
    const hn_hf_view *v = p->v;
    uint64_t all = elements(v->n, HN_HF_DIMS), n;
    hone_status st;
    for (uint64_t at = 0; at < all; at += n) {
        n = all - at < PIECE ? all - at : PIECE;
        if (hn_interrupted(k->f->a->pr))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted; nothing was written", k->f->path);
        TRY(read_part(k, p, at, n, k->x, err));
        for (uint64_t i = 0, run; i < n; i += run) {
            uint64_t to = place_of(v, at + i), left = v->n[0] - (at + i) % v->n[0];
            run = left < n - i ? left : n - i;
            for (uint64_t j = 0; j < run; j++) whole[to + j * v->stride[0]] = k->x[i + j];
        }
    }
    return HONE_OK;
}

static hone_status put_together(work *k, hn_file *to, const hn_ckpt_tensor *t, const part *p, size_t n, hone_error *err)
{
    uint64_t all = count_of(t), m;
    float *whole = calloc(all, sizeof *whole); /* rows of no position stay 0 */
    hone_status st = HONE_OK;
    if (!whole)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %" PRIu64 " elements of %s", k->f->path, all,
                       HN_ESC(t->name.ptr, t->name.len));
    for (size_t i = 0; i < n && st == HONE_OK; i++) st = scatter(k, &p[i], whole, err);
    for (uint64_t at = 0; at < all && st == HONE_OK; at += m) {
        m = all - at < PIECE ? all - at : PIECE;
        st = encode(k, t, whole + at, m, k->bytes, err);
        if (st == HONE_OK) st = put(k, to, k->bytes, m * size_of(t->type), err);
    }
    free(whole);
    return st;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* Tensors of the model, then the others. */
static hone_status find_order(work *k, hone_error *err)
{
    const hn_hf *f = k->f;
    size_t n = 0;
    if (!(k->order = malloc((f->c->n + 1) * sizeof *k->order)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", f->path, f->c->n);
    for (int apart = 0; apart < 2; apart++)
        for (size_t i = 0; i < f->c->n; i++) {
            if ((hn_hf_back_folder(f, &f->c->t[i]) != NULL) != apart) continue;
            k->order[n++] = i;
            k->n_apart += (size_t)apart;
        }
    return HONE_OK;
}

static const hn_ckpt_tensor *tensor_at(const work *k, size_t i) { return &k->f->c->t[k->order[i]]; }

/* One behind the next that together are no more than a file should have. */
static size_t end_of(const work *k, size_t first, size_t all)
{
    uint64_t n = 0;
    size_t i = first;
    for (; i < all && (i == first || n + tensor_at(k, i)->n_bytes <= FILE_BYTES); i++) n += tensor_at(k, i)->n_bytes;
    return i;
}

static void name_of(const work *k, const hn_ckpt_tensor *t, char name[HN_CKPT_MAX_NAME + 1])
{
    if (hn_hf_back_folder(k->f, t)) snprintf(name, HN_CKPT_MAX_NAME + 1, "linear.weight");
    else snprintf(name, HN_CKPT_MAX_NAME + 1, "%.*s", (int)t->name.len, t->name.ptr);
}

static json_t *entry(const hn_ckpt_tensor *t, uint64_t at)
{
    json_t *shape = json_array();
    for (int32_t i = t->n_dim; i-- > 0;)
        if (json_array_append_new(shape, json_integer((json_int_t)t->ne[i]))) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", hn_type_get(t->type)->name, "shape", shape, "data_offsets",
                     (json_int_t)at, (json_int_t)(at + t->n_bytes));
}

/* safetensors' header of tensors [first, end), its length before it; *text: free it. */
static hone_status make_header(const work *k, size_t first, size_t end, char **text, size_t *n, hone_error *err)
{
    char name[HN_CKPT_MAX_NAME + 1];
    json_t *o = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    uint64_t at = 0;
    bool lost = !o;
    for (size_t i = first; i < end && !lost; i++) {
        const hn_ckpt_tensor *t = tensor_at(k, i);
        name_of(k, t, name);
        lost = json_object_set_new(o, name, entry(t, at)) != 0;
        at += t->n_bytes;
    }
    char *json = lost ? NULL : hn_json_dump(o, JSON_COMPACT);
    json_decref(o);
    *n = json ? strlen(json) : 0;
    *n += (8 - *n % 8) % 8;
    *text = json ? malloc(8 + *n) : NULL;
    if (*text) {
        memset(*text, ' ', 8 + *n);
        for (int i = 0; i < 8; i++) (*text)[i] = (char)((uint64_t)*n >> 8 * i);
        memcpy(*text + 8, json, strlen(json));
        *n += 8;
    }
    free(json);
    return *text ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: header of %zu tensors", k->f->path, end - first);
}

static hone_status write_file(work *k, size_t first, size_t end, hone_error *err)
{
    char path[4352], *header = NULL;
    hn_file *to = NULL;
    size_t n = 0;
    hone_status st;
    TRY(make_header(k, first, end, &header, &n, err));
    hn_file_want want = { .n_bytes = n };
    for (size_t i = first; i < end; i++) want.n_bytes += tensor_at(k, i)->n_bytes;
    snprintf(path, sizeof path, "%s/%s", k->f->a->dst, k->file);
    st = hn_file_make_folders(path, err);
    if (st == HONE_OK && (st = hn_file_begin(&to, path, &want, err)) == HONE_OK) st = hn_file_put(to, header, n, err);
    for (size_t i = first; i < end && st == HONE_OK; i++) {
        const hn_ckpt_tensor *t = tensor_at(k, i);
        const part *p;
        size_t n_part = parts_of(k, t, &p);
        char name[HN_CKPT_MAX_NAME + 1];
        st = flows(p, n_part) ? put_flowing(k, to, t, p, n_part, err) : put_together(k, to, t, p, n_part, err);
        name_of(k, t, name);
        if (st == HONE_OK && k->map && json_object_set_new(k->map, name, json_string(k->file)) != 0)
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: an index", k->f->path);
    }
    if (st == HONE_OK) st = hn_hf_back_tell(k->f, k->file, err);
    if (st == HONE_OK) st = hn_file_end(to, err);
    hn_file_drop(to);
    free(header);
    return st;
}

static hone_status write_index(work *k, size_t n_model, hone_error *err)
{
    char path[4352];
    uint64_t n = 0;
    for (size_t i = 0; i < n_model; i++) n += tensor_at(k, i)->n_bytes;
    json_t *o = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)n, "weight_map", k->map);
    char *text = o ? hn_json_dump(o, JSON_INDENT(2)) : NULL;
    json_decref(o);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: an index", k->f->path);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", k->f->a->dst);
    hone_status st = hn_hf_back_tell(k->f, "model.safetensors.index.json", err);
    if (st == HONE_OK) st = hn_file_replace(path, text, strlen(text), err);
    free(text);
    return st;
}

static hone_status write_model(work *k, size_t n_model, hone_error *err)
{
    size_t n_file = 0, i = 0;
    hone_status st = HONE_OK;
    if (!(k->map = json_object())) return HN_FAIL(err, HONE_E_NOMEM, "%s: an index", k->f->path);
    for (size_t t = 0; t < n_model; t = end_of(k, t, n_model)) n_file++;
    if (n_file > MAX_FILES)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: would become %zu files, expected at most %d", k->f->path, n_file,
                       MAX_FILES);
    for (size_t t = 0, end; t < n_model && st == HONE_OK; t = end) {
        end = end_of(k, t, n_model);
        if (n_file == 1) snprintf(k->file, sizeof k->file, "model.safetensors");
        else snprintf(k->file, sizeof k->file, "model-%05zu-of-%05zu.safetensors", ++i, n_file);
        st = write_file(k, t, end, err);
    }
    return st == HONE_OK && n_file > 1 ? write_index(k, n_model, err) : st;
}

hone_status hn_hf_back_write(hn_hf *f, hone_error *err)
{
    work k = { .f = f, .x = malloc(PIECE * sizeof(float)), .bytes = malloc(PIECE * sizeof(float)) };
    hone_status st = k.x && k.bytes ? find_parts(&k, err) : HN_FAIL(err, HONE_E_NOMEM, "%s: buffers", f->path);
    if (st == HONE_OK) st = find_order(&k, err);
    size_t n_model = st == HONE_OK ? f->c->n - k.n_apart : 0;
    for (size_t t = 0; t < f->c->n; t++) k.total += f->c->t[t].n_bytes;
    if (st == HONE_OK) st = write_model(&k, n_model, err);
    json_decref(k.map);
    k.map = NULL;
    for (size_t t = n_model; st == HONE_OK && t < f->c->n; t++) {
        snprintf(k.file, sizeof k.file, "%s/model.safetensors", hn_hf_back_folder(f, tensor_at(&k, t)));
        st = write_file(&k, t, t + 1, err);
    }
    free(k.p);
    free(k.order);
    free(k.x);
    free(k.bytes);
    return st;
}
