/* hf_write: carries out the plan of a folder. Chooses types, reads what views need, piece by piece, and hands it to the
 * recipe. A source that is walked across its rows is held whole while its tensor is made; nothing else is. Refuses to
 * know what the tensors mean. */
#include "forge/hf.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static uint64_t elements(const hn_hf_view *v)
{
    uint64_t x = 1;
    for (int i = 0; i < HN_HF_DIMS; i++) x *= v->n[i];
    return x;
}

static uint64_t size_of(hn_type t) { return t == HN_F64 ? 8 : t == HN_F32 ? 4 : 2; }
static bool is_number(hn_type t) { return hn_is_float(t) || t == HN_F64; }
static bool goes_across(const hn_hf_view *v) { return v->from && v->n[0] > 1 && v->stride[0] != 1; }

static const hn_hf_stored *stored_of(const hn_hf *f, const hn_ckpt_tensor *t)
{
    return f->stored && t ? f->stored[t - f->c->t] : NULL;
}

/* ---- factors beside a tensor ----------------------------------------------------------------------------- */

/* Where the file has them: NAME.scale is what the numbers of NAME.weight are times, one for each expert;
 * NAME.input_scale is for activations of four bits. */
static const char *const beside[2] = { ".scale", ".input_scale" };

/* Into out[of the experts, or 1] (or NULL); what blocks leave out is 1 where they leave nothing out. False: there is no
 * such place, or one matrix has several. */
static bool factors_of(const hn_hf *f, const hn_hf_tensor *t, int which, float *out)
{
    uint64_t each = t->ne[0] * t->ne[1], from = 0;
    float now = 0;
    bool experts = strstr(t->name, "_exps.") != NULL;
    if (t->n_dim > 3 || (t->n_dim == 3 && !experts)) return false;
    for (size_t i = t->view; i < t->view + t->n_view; i++) {
        const hn_hf_stored *s = stored_of(f, f->v[i].from);
        uint64_t end = from + elements(&f->v[i]);
        float x = s && s->beside[which] != 0 ? s->beside[which] : 1;
        if (from % each && x != now) return false;
        for (uint64_t m = from / each; m * each < end && out; m++) out[m] = x;
        now = x;
        from = end;
    }
    return true;
}

static bool has_factors(const hn_hf *f, const hn_hf_tensor *t, int which)
{
    for (size_t i = t->view; i < t->view + t->n_view; i++) {
        const hn_hf_stored *s = stored_of(f, f->v[i].from);
        if (s && s->beside[which] != 0) return true;
    }
    return false;
}

static void name_beside(char name[sizeof((hn_hf_tensor *)0)->name], const hn_hf_tensor *t, int which)
{
    size_t n = strlen(t->name) - strlen(".weight");
    snprintf(name, sizeof((hn_hf_tensor *)0)->name, "%.*s%s", (int)n, t->name, beside[which]);
}

/* Whether the file can say them: beside matrices of layers and the output, where no tensor has that name. */
static bool factors_fit(const hn_hf *f, const hn_hf_tensor *t, int which)
{
    char name[sizeof t->name];
    size_t n = strlen(t->name), tail = strlen(".weight");
    if (!has_factors(f, t, which)) return true;
    if (n < tail || strcmp(t->name + n - tail, ".weight")) return false;
    if (strncmp(t->name, "blk.", 4) && strcmp(t->name, "output.weight")) return false;
    name_beside(name, t, which);
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->t[i].name, name)) return false;
    return factors_of(f, t, which, NULL);
}

static hone_status add_factors(hn_hf *f, size_t i, int which, hone_error *err)
{
    char name[sizeof f->t[i].name];
    uint64_t n = f->t[i].ne[2];
    hone_status st;
    if (!has_factors(f, &f->t[i], which) || !factors_fit(f, &f->t[i], which)) return HONE_OK;
    float *v = hn_arena_alloc(f->arena, n * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu factors", f->t[i].name, (unsigned long long)n);
    factors_of(f, &f->t[i], which, v);
    name_beside(name, &f->t[i], which);
    TRY(hn_hf_begin(f, name, 1, &n, err));
    f->t[f->n - 1].always_f32 = true;
    f->t[f->n - 1].type = HN_F32;
    f->t[f->n - 1].in_blocks = HN_TYPE_COUNT;
    return hn_hf_add(f, &(hn_hf_view){ .given = v, .n = { n }, .stride = { 1 } }, err);
}

/* Blocks of that type, of rows that are together in all their sources: HN_TYPE_COUNT where they are not such. */
static hn_type blocks_of(const hn_hf *f, const hn_hf_tensor *t)
{
    hn_type as = HN_TYPE_COUNT;
    for (size_t i = t->view; i < t->view + t->n_view; i++) {
        const hn_hf_view *v = &f->v[i];
        const hn_hf_stored *s = stored_of(f, v->from);
        uint64_t block = s && s->blocks ? hn_type_get(s->as)->block_elems : 0;
        bool apart = !block || t->ne[0] % block || v->map != HN_HF_SAME || v->stride[0] != 1 || v->n[0] % block ||
                     v->first % block;
        for (int d = 1; d < HN_HF_DIMS && !apart; d++) apart = v->stride[d] % block != 0;
        if (apart || (as != HN_TYPE_COUNT && as != s->as)) return HN_TYPE_COUNT;
        as = s->as;
    }
    return as == HN_TYPE_COUNT || factors_fit(f, t, 0) ? as : HN_TYPE_COUNT;
}

/* ---- types ---------------------------------------------------------------------------------------------- */

enum { LOOKED_AT = 1 << 20 }; /* bytes */

/* Whether every F32 is a BF16: one scan, that ends at the first which is not. */
static hone_status is_bf16(const hn_hf *f, const hn_ckpt_tensor *t, uint16_t *buf, bool *out, hone_error *err)
{
    hone_status st;
    *out = true;
    for (uint64_t at = 0; at < t->n_bytes && *out;) {
        uint64_t n = t->n_bytes - at < LOOKED_AT ? t->n_bytes - at : LOOKED_AT;
        if (hn_interrupted(f->a->pr))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted; nothing was written", f->c->path);
        TRY(hn_source_read(&f->c->part[t->part], t->off + at, buf, n, err));
        uint16_t low = 0; /* little-endian: the first of each two */
        for (uint64_t i = 0; i < n / 2; i += 2) low |= buf[i];
        *out = low == 0;
        at += n;
    }
    return HONE_OK;
}

/* The type that holds all numbers as they are. */
static hone_status lossless(const hn_hf *f, hn_hf_tensor *t, uint16_t *buf, hone_error *err)
{
    hone_status st;
    hn_type all = HN_TYPE_COUNT;
    for (size_t i = t->view; i < t->view + t->n_view; i++) {
        const hn_hf_view *v = &f->v[i];
        const hn_hf_stored *s = stored_of(f, v->from);
        hn_type own = !v->from || v->map != HN_HF_SAME ? HN_F32 : s ? s->as : v->from->type;
        bool narrow = false;
        if (own == HN_F32 && !s && v->from && v->map == HN_HF_SAME) TRY(is_bf16(f, v->from, buf, &narrow, err));
        if (narrow) own = HN_BF16;
        if (own == HN_F64) own = HN_F32;
        all = all == HN_TYPE_COUNT || all == own ? own : HN_F32;
    }
    t->type = all;
    return HONE_OK;
}

/* mixed: what the name makes of it */
static hone_status choose(const hn_hf *f, hn_hf_tensor *t, const hn_typing *y, hn_type mixed, uint16_t *buf,
                          hone_error *err)
{
    hone_status st;
    t->type = HN_F32;
    if (t->always_f32) return HONE_OK;
    if (y->name) t->type = mixed;
    bool own = !y->name || (t->type == HN_F32 && y->base != HN_F32);
    if (own) TRY(lossless(f, t, buf, err));
    if (!hn_is_float(t->type) && t->in_blocks != HN_TYPE_COUNT) t->type = t->in_blocks; /* rounded once is enough */
    if (!hn_is_float(t->type) && t->in_blocks != t->type && own)                        /* not in whole blocks */
        t->type = t->type == HN_NVFP4 ? HN_BF16 : HN_F32;
    return hn_typing_check(y, t->name, t->type, t->ne[0], err);
}

hone_status hn_hf_types(hn_hf *f, hone_error *err)
{
    const hn_mix_model mix = hn_typing_model(f->m);
    uint64_t count[HN_TYPE_COUNT] = { 0 };
    hn_typing y;
    hone_status st;
    TRY(hn_typing_begin(&y, f->a->type, "", err));
    hn_typed *list = calloc(f->n + 1, sizeof *list);
    uint16_t *buf = malloc(LOOKED_AT);
    st = list && buf ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "buffer of %d bytes", LOOKED_AT);
    for (size_t i = 0; i < f->n; i++) f->t[i].in_blocks = blocks_of(f, &f->t[i]);
    for (size_t i = 0; i < f->n && st == HONE_OK; i++)
        list[i] = (hn_typed){ { f->t[i].name, strlen(f->t[i].name) }, f->t[i].ne, f->t[i].n_dim, HN_F32 };
    if (st == HONE_OK) st = hn_typing_of(&y, &mix, list, f->n, err);
    for (size_t i = 0; i < f->n && st == HONE_OK; i++) {
        hn_hf_tensor *t = &f->t[i];
        st = choose(f, t, &y, list[i].type, buf, err);
        if (st == HONE_OK && !t->always_f32) count[t->type] += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    for (size_t i = 0, n = f->n; i < n && st == HONE_OK; i++)
        for (int which = 0; which < 2 && st == HONE_OK && f->t[i].type == f->t[i].in_blocks; which++)
            st = add_factors(f, i, which, err);
    free(list);
    free(buf);
    f->file_type = f->a->type ? y.file_type : hn_file_type_of(count);
    return st;
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

typedef struct work {
    const hn_hf *f;
    uint64_t room;            /* bytes that a thread reads at once */
    const hn_hf_view *of;     /* the views whose sources are held: */
    const hn_hf_tensor *held; /* what is made of them; NULL: nothing is held */
    char **whole;             /* [n_whole] */
    size_t n_whole;
} work;

/* Element i of a view in its source. */
static uint64_t place_of(const hn_hf_view *v, uint64_t i)
{
    uint64_t at = v->first;
    for (int k = 0; k < HN_HF_DIMS; k++) {
        at += i % v->n[k] * v->stride[k];
        i /= v->n[k];
    }
    return at;
}

static hone_status bad_element(const work *k, const hn_ckpt_tensor *s, uint64_t i, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite number",
                   k->f->c->part[s->part].path, HN_ESC(s->name.ptr, s->name.len), (unsigned long long)i, what);
}

/* n numbers, `step` elements apart, of bytes. */
static void decode(float *x, const char *raw, hn_type type, uint64_t n, uint64_t step)
{
    if (type == HN_F64)
        for (uint64_t i = 0; i < n; i++) {
            double d;
            memcpy(&d, raw + 8 * i * step, 8);
            x[i] = (float)d;
        }
    else if (step == 1) hn_type_get(type)->dequantize(x, raw, (int64_t)n);
    else if (type == HN_F32)
        for (uint64_t i = 0; i < n; i++) memcpy(x + i, raw + 4 * i * step, 4);
    else if (type == HN_BF16)
        for (uint64_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, raw + 2 * i * step, 2);
            x[i] = hn_bits_f32((uint32_t)h << 16);
        }
    else
        for (uint64_t i = 0; i < n; i++) hn_type_get(type)->dequantize(x + i, raw + size_of(type) * i * step, 1);
}

/* Numbers that F32 does not hold as they are. */
static hone_status check_f64(const work *k, const hn_ckpt_tensor *s, uint64_t first, const char *raw, uint64_t n,
                             hone_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        double d;
        memcpy(&d, raw + 8 * i, 8);
        if (!isfinite(d)) continue;
        if (!isfinite((float)d)) return bad_element(k, s, first + i, "beyond F32", err);
        if (k->f->exact && (double)(float)d != d)
            return bad_element(k, s, first + i, "no F32; --type F32 would round it", err);
    }
    return HONE_OK;
}

static void map(const hn_hf_view *v, float *x, uint64_t n)
{
    switch (v->map) {
    case HN_HF_SAME: break;
    case HN_HF_PLUS_ONE:
        for (uint64_t i = 0; i < n; i++) x[i] += 1.0f;
        break;
    case HN_HF_MINUS_EXP:
        for (uint64_t i = 0; i < n; i++) x[i] = -(float)exp((double)x[i]);
        break;
    case HN_HF_TIMES:
        for (uint64_t i = 0; i < n; i++) x[i] *= v->by;
        break;
    }
}

/* The next run of a view from element i on, at most n: elements n_run, step apart, from `first` on. */
static uint64_t next_run(const hn_hf_view *v, uint64_t i, uint64_t n, uint64_t *first)
{
    uint64_t left = v->n[0] - i % v->n[0];
    *first = place_of(v, i);
    return left < n ? left : n;
}

/* Elements [i, i + n) of a view; what they have in common is read at once, where that is not much more. */
static hone_status gather(const work *k, const hn_hf_view *v, const char *whole, uint64_t i, uint64_t n, float *x,
                          char *raw, hone_error *err)
{
    const hn_ckpt_tensor *s = v->from;
    const hn_hf_stored *stored = stored_of(k->f, s);
    uint64_t each = stored ? 4 : size_of(s->type), lo = UINT64_MAX, hi = 0, at, run;
    hone_status st;
    for (uint64_t a = i; a < i + n; a += run) {
        run = next_run(v, a, i + n - a, &at);
        uint64_t end = at + (run - 1) * v->stride[0] + 1;
        lo = at < lo ? at : lo;
        hi = end > hi ? end : hi;
    }
    bool once = whole || (hi - lo) * each <= k->room;
    if (!whole && once) {
        if (stored) TRY(stored->read(k->f, stored, lo, hi - lo, (float *)(void *)raw, err));
        else TRY(hn_source_read(&k->f->c->part[s->part], s->off + lo * each, raw, (hi - lo) * each, err));
    }
    for (uint64_t a = i; a < i + n; a += run, x += run) {
        run = next_run(v, a, i + n - a, &at);
        const char *from = whole ? whole + at * each : once ? raw + (at - lo) * each : raw;
        if (!once && stored) TRY(stored->read(k->f, stored, at, run, (float *)(void *)raw, err));
        else if (!once) TRY(hn_source_read(&k->f->c->part[s->part], s->off + at * each, raw, run * each, err));
        if (!stored && s->type == HN_F64 && v->stride[0] == 1) TRY(check_f64(k, s, at, from, run, err));
        decode(x, from, stored ? HN_F32 : s->type, run, v->stride[0]);
    }
    return HONE_OK;
}

static hone_status values(void *arg, const hn_recipe_piece *p, float *x, void *raw, hone_error *err)
{
    const work *k = arg;
    const hn_hf_tensor *t = p->t->what;
    const hn_hf_view *v = &k->f->v[t->view], *first = v;
    uint64_t at = p->row * t->ne[0], left = p->n_row * t->ne[0];
    hone_status st;
    while (at >= elements(v)) at -= elements(v++);
    for (; left; v++, at = 0) {
        uint64_t n = elements(v) - at < left ? elements(v) - at : left;
        if (!v->from) memcpy(x, v->given + at, n * sizeof *x);
        else TRY(gather(k, v, k->whole ? k->whole[v - first] : NULL, at, n, x, raw, err));
        map(v, x, n);
        x += n;
        left -= n;
    }
    return HONE_OK;
}

/* One source that stays as it is, looked at all the same. */
static hone_status bytes(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const work *k = arg;
    const hn_hf_tensor *t = p->t->what;
    const hn_hf_view *v = &k->f->v[t->view];
    uint64_t first = p->row * t->ne[0], n = p->n_row * t->ne[0], each = size_of(t->type);
    hone_status st;
    float x;
    (void)scratch;
    TRY(hn_source_read(&k->f->c->part[v->from->part], v->from->off + (v->first + first) * each, p->out, n * each, err));
    uint64_t i = hn_first_odd(p->out, t->type, n);
    if (i == n) return HONE_OK;
    decode(&x, (const char *)p->out + i * each, t->type, 1, 1);
    return bad_element(k, v->from, v->first + first + i, isnan(x) ? "NaN" : "infinite", err);
}

static hone_status fault(void *arg, const hn_recipe_tensor *r, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    const work *k = arg;
    const hn_hf_tensor *t = r->what;
    const hn_hf_view *v = &k->f->v[t->view];
    static const char *const words[] = { [HN_FAULT_NAN] = "NaN",
                                         [HN_FAULT_INFINITE] = "infinite",
                                         [HN_FAULT_BEYOND] = "beyond F16; --type BF16 holds it",
                                         [HN_FAULT_BLOCK] =
                                             "in a block with numbers too large for its type; --type BF16 holds them" };
    const char *say = what == HN_FAULT_BEYOND && t->type == HN_BF16 ? "beyond BF16; --type F32 holds it" : words[what];
    while (i >= elements(v)) i -= elements(v++);
    if (v->from) return bad_element(k, v->from, place_of(v, i), say, err);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: number %llu of %s is %s, expected a finite number", k->f->path,
                   (unsigned long long)i, t->name, say);
}

/* ---- sources held whole ------------------------------------------------------------------------------------- */

static void let_go(void *arg, const hn_recipe_tensor *r)
{
    work *k = arg;
    (void)r;
    for (size_t i = 0; k->held && i < k->held->n_view; i++) {
        hn_hf_stored *s = (hn_hf_stored *)(uintptr_t)stored_of(k->f, k->f->v[k->held->view + i].from);
        if (s && s->close) s->close(s);
    }
    k->held = NULL;
    for (size_t i = 0; i < k->n_whole; i++)
        if (i == 0 || k->whole[i] != k->whole[i - 1]) free(k->whole[i]);
    free(k->whole);
    k->whole = NULL;
    k->n_whole = 0;
}

static hone_status hold(void *arg, const hn_recipe_tensor *r, hone_error *err)
{
    work *k = arg;
    const hn_hf_tensor *t = r->what;
    const hn_hf_view *v = &k->f->v[t->view];
    hone_status st;
    if (!(k->whole = calloc(t->n_view, sizeof *k->whole))) return HN_FAIL(err, HONE_E_NOMEM, "%s", t->name);
    k->n_whole = t->n_view;
    k->held = t;
    for (size_t i = 0; i < t->n_view; i++) {
        const hn_ckpt_tensor *s = v[i].from;
        const hn_hf_stored *stored = stored_of(k->f, s);
        uint64_t n = 1, n_bytes;
        if (stored && stored->open) TRY(stored->open(k->f, (hn_hf_stored *)(uintptr_t)stored, err));
        if (!goes_across(&v[i])) continue;
        if (i && v[i - 1].from == s && k->whole[i - 1]) {
            k->whole[i] = k->whole[i - 1];
            continue;
        }
        for (int d = 0; d < HN_CKPT_MAX_DIM; d++) n *= s->ne[d];
        n_bytes = n * (stored ? 4 : size_of(s->type));
        if (!(k->whole[i] = malloc(n_bytes)))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", t->name, (unsigned long long)n_bytes);
        if (stored) TRY(stored->read(k->f, stored, 0, n, (float *)(void *)k->whole[i], err));
        else TRY(hn_source_read(&k->f->c->part[s->part], s->off, k->whole[i], n_bytes, err));
        if (!stored && s->type == HN_F64) TRY(check_f64(k, s, 0, k->whole[i], n, err));
    }
    return HONE_OK;
}

/* Blocks of sources that have them, in their order. */
static hone_status blocks(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const work *k = arg;
    const hn_hf_tensor *t = p->t->what;
    const hn_hf_view *v = &k->f->v[t->view];
    uint64_t at = p->row * t->ne[0], left = p->n_row * t->ne[0], first, run;
    char *out = p->out;
    hone_status st;
    while (at >= elements(v)) at -= elements(v++);
    for (; left; v++, at = 0)
        for (uint64_t end = elements(v); left && at < end; at += run, left -= run) {
            const hn_hf_stored *s = stored_of(k->f, v->from);
            run = next_run(v, at, left, &first);
            TRY(s->blocks(k->f, s, first, run, out, err));
            out += hn_row_bytes(hn_type_get(s->as), run);
        }
    return HONE_OK;
}

static const hn_recipe_source in_blocks = { .bytes = blocks };
static const hn_recipe_source as_it_is = { .bytes = bytes };
static const hn_recipe_source in_runs = { .values = values, .fault = fault };
static const hn_recipe_source across = { .values = values, .fault = fault, .open = hold, .close = let_go };

static const hn_recipe_source *source_of(const hn_hf *f, const hn_hf_tensor *t)
{
    const hn_hf_view *v = &f->v[t->view];
    if (t->type == t->in_blocks) return &in_blocks;
    for (size_t i = 0; i < t->n_view; i++) {
        const hn_hf_stored *s = stored_of(f, v[i].from);
        if (goes_across(&v[i]) || (s && s->open)) return &across;
    }
    bool whole = t->n_view == 1 && v->from && v->map == HN_HF_SAME && v->n[1] == 1 && !stored_of(f, v->from);
    return whole && v->from->type == t->type && is_number(t->type) ? &as_it_is : &in_runs;
}

hone_status hn_hf_write(hn_hf *f, hone_error *err)
{
    enum { LEAST_ROOM = 1 << 16 };
    work k = { .f = f, .room = LEAST_ROOM };
    hn_recipe_tensor *t = calloc(f->n + 1, sizeof *t);
    hn_recipe r = { .dst = f->a->dst, .t = t, .n = f->n, .arg = &k, .pr = f->a->pr };
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %zu tensors", f->a->dst, f->n);
    for (size_t i = 0; i < f->n; i++) {
        const hn_hf_tensor *o = &f->t[i];
        t[i] = (hn_recipe_tensor){ .name = { o->name, strlen(o->name) },
                                   .type = o->type,
                                   .n_dim = o->n_dim,
                                   .ne = { o->ne[0], o->ne[1], o->ne[2], o->ne[3] },
                                   .source = source_of(f, o),
                                   .what = o };
        uint64_t n = hn_recipe_piece_elems(&t[i]) * sizeof(double);
        k.room = n > k.room ? n : k.room;
    }
    r.scratch_bytes = k.room;
    hone_status st = hn_recipe_write(&r, f->w, err);
    let_go(&k, NULL);
    free(t);
    return st;
}
