/* hf_back: a GGUF file becomes a folder of transformers. A config is made of the file's keys and followed forwards, as
 * if a folder with it were converted: that gives the numbers of a model, which must be the file's, and of every tensor
 * what of the folder it is made of, which must be the file's tensors. Walked the other way, these views are the folder.
 * So a class that can be converted can be converted back, or is refused by name; nothing is said twice. */
#include "base/json_tree.h"
#include "forge/hf_back.h"

#include "base/file.h"
#include "forge/hf_tokenizer.h"
#include "model/hparams.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- the same model? ------------------------------------------------------------------------------------- */

/* Cuts of gates: of a share that is an F32, which says them no closer; converters compute them each in its own way. */
static bool same_cut(float a, float b) { return a == b || fabsf(a - b) <= 1e-6f; }

/* What a layer does. Widths of heads are those of attention; of recurrent layers the models' numbers say all. */
static bool same_layer(const hn_layer_plan *a, const hn_layer_plan *b)
{
    if (a->mixer != b->mixer || a->ffn != b->ffn || a->act != b->act || a->map != b->map || a->n_ff != b->n_ff ||
        a->n_ple != b->n_ple || a->sparse != b->sparse || !same_cut(a->cut, b->cut) || a->parallel != b->parallel)
        return false;
    if (!hn_plan_has_positions(a)) return true;
    return a->rope == b->rope && a->qk_norm == b->qk_norm && a->qk_norm_after == b->qk_norm_after &&
           a->warm == b->warm && a->out_gate == b->out_gate && a->v_normed == b->v_normed && a->no_keys == b->no_keys &&
           a->kv_from == b->kv_from && a->tiled == b->tiled && a->n_head == b->n_head && a->n_head_kv == b->n_head_kv &&
           a->d_k == b->d_k && a->d_v == b->d_v && a->both == b->both && a->window == b->window &&
           a->chunk == b->chunk && a->scale == b->scale;
}

/* One group of experts is all of them, and said or not. */
static void no_groups(hn_moe_numbers *m)
{
    if (m->n_group < 2) m->n_group = m->n_group_used = 0;
}

/* Numbers of two models, layer by layer too: lists that differ may say the same. */
static bool same_numbers(const hone_model *m, const hone_model *config)
{
    hn_hparams x = m->hp, y = config->hp;
    if (x.n_layer != y.n_layer) return false;
    const bool told = strcmp(m->arch->name, "stablelm") != 0; /* there the second norm tells, a tensor */
    if (!told) y.parallel = x.parallel;
    for (int32_t il = 0; il < x.n_layer; il++) {
        hn_layer_plan p = config->plan[il];
        if (!told) p.parallel = m->plan[il].parallel;
        if (!same_layer(&m->plan[il], &p)) return false;
    }
    for (int i = 0; i < HN_ROPES; i++) x.rope[i] = y.rope[i] = (hn_rope){ 0 }; /* same_turns */
    x.n_ctx_long = y.n_ctx_long = 0;
    x.windowed = y.windowed = NULL;
    x.window_period = y.window_period = 0;
    x.sparsity = y.sparsity = NULL;
    x.kv_of = y.kv_of = x.ff_of = y.ff_of = NULL;
    x.recurs = y.recurs = NULL;            /* the plans have them */
    x.rank_laurel = y.rank_laurel = 0;     /* tensors alone have it, whose shapes are compared */
    x.n_type = y.n_type = 0;               /* likewise: its key is the tokenizer's */
    x.rescale_every = y.rescale_every = 0; /* folders hold the numbers themselves */
    for (int32_t il = 0; il < x.n_layer; il++)
        if (hn_block_of(&x, il) != hn_block_of(&y, il)) return false;
    x.block_of = y.block_of = NULL;
    no_groups(&x.moe);
    no_groups(&y.moe);
    return memcmp(&x, &y, sizeof x) == 0;
}

/* Tables of angles, of which only keys are read by then: factors that are tensors are the file's in both. */
static bool same_turns(const hn_hparams *a, const hn_hparams *b)
{
    if (a->n_ctx_long != b->n_ctx_long) return false;
    for (int i = 0; i < HN_ROPES; i++) {
        const hn_rope *r = &a->rope[i], *s = &b->rope[i];
        bool bare = !r->freq || !s->freq;
        if (r->n_rot != s->n_rot || r->mscale != s->mscale || (bare && r->freq != s->freq)) return false;
        if (!bare && memcmp(r->freq, s->freq, (size_t)r->n_rot / 2 * sizeof(double))) return false;
    }
    return true;
}

/* The file's factors of a name, for each pair that turns; NULL: it has none of these. */
static hone_status bind_factors(const float **out, const hone_model *m, const hn_gguf *g, const char *name,
                                hone_error *err)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    if (!t || t->type != HN_F32 || t->ne[0] != (uint64_t)m->hp.n_rot / 2) return HONE_OK;
    float *v = hn_arena_alloc(m->arena, (size_t)t->ne[0] * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", m->path, name);
    memcpy(v, t->data, (size_t)t->ne[0] * sizeof *v);
    *out = v;
    return HONE_OK;
}

/* Angles, which a model of keys alone lacks. */
static hone_status make_turns(hone_model *m, const hn_gguf *g, hone_error *err)
{
    hone_status st;
    if (!hn_turns(m)) return HONE_OK;
    TRY(bind_factors(&m->rope_factors, m, g, "rope_freqs.weight", err));
    TRY(bind_factors(&m->rope_factors, m, g, "rope_factors_short.weight", err));
    TRY(bind_factors(&m->rope_factors_long, m, g, "rope_factors_long.weight", err));
    return hn_rope_tables(m, err);
}

enum { MOST_ODD = 3, ODD_KEYS = MOST_ODD * 160 };

/* Keys of f's architecture in a that b has not, or otherwise, for a message: behind those that *n counts already. */
static void odd_of(const hn_hf *f, const hn_gguf *a, const hn_gguf *b, char out[ODD_KEYS], int *n)
{
    size_t n_arch = strlen(f->of->arch);
    for (uint64_t i = 0; i < hn_gguf_n_kv(a) && *n < MOST_ODD; i++) {
        char key[128], word[150];
        hone_kv kv;
        hn_gguf_kv(a, i, &kv);
        if (kv.key.len >= sizeof key || kv.key.len <= n_arch || memcmp(kv.key.ptr, f->of->arch, n_arch)) continue;
        snprintf(key, sizeof key, "%.*s", (int)kv.key.len, kv.key.ptr);
        int64_t k = hn_gguf_find(b, key);
        hone_str x = hn_gguf_kv_raw(a, i), y = k < 0 ? (hone_str){ 0 } : hn_gguf_kv_raw(b, (uint64_t)k);
        if (x.len == y.len && !memcmp(x.ptr, y.ptr, x.len)) continue;
        hn_escape(word, sizeof word, key, strlen(key));
        if (strstr(out, word)) continue; /* in both, otherwise */
        size_t at = strlen(out);
        snprintf(out + at, ODD_KEYS - at, "%s%s", *n ? " or " : "", word);
        ++*n;
    }
}

/* What the config does not lead to again, or leads to alone: the first few, as some of them may have no effect. */
static void odd_keys(const hn_hf *f, char out[ODD_KEYS])
{
    hn_gguf *now = NULL;
    void *bytes = NULL;
    size_t n;
    int n_odd = 0;
    *out = 0;
    if (hn_gguf_write_keys(f->w, &bytes, &n, NULL) == HONE_OK &&
        hn_gguf_parse(&now, bytes, n, "config", NULL) == HONE_OK) {
        odd_of(f, f->back, now, out, &n_odd);
        odd_of(f, now, f->back, out, &n_odd);
    }
    if (!n_odd) snprintf(out, ODD_KEYS, "a number of it");
    hn_gguf_close(now);
    free(bytes);
}

static hone_status check_tensor(const hn_hf *f, const hn_hf_tensor *t, hone_error *err)
{
    const hn_gguf_tensor *g = hn_gguf_find_tensor(f->back, t->name);
    int n = (int)strcspn(f->of->names, "|");
    if (!g)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: has no tensor %s, which a model of class %.*s has", f->path,
                       t->name, n, f->of->names);
    for (int i = 0, j = 0; i < 4 || j < 4; i++, j++) {
        while (i < 4 && g->ne[i] == 1) i++; /* [4, 1, 16] has the numbers of [4, 16] */
        while (j < 4 && t->ne[j] == 1) j++;
        uint64_t has = i < 4 ? g->ne[i] : 1, expected = j < 4 ? t->ne[j] : 1;
        if (has == expected) continue;
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s has ne[%d] = %llu, expected %llu as class %.*s has it", f->path,
                       t->name, i < 4 ? i : 3, (unsigned long long)has, (unsigned long long)expected, n, f->of->names);
    }
    if (g->type >= HN_I8 && g->type <= HN_I64)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s is of type %s, expected numbers of a model", f->path, t->name,
                       hn_type_get(g->type)->name);
    if (!t->n_view) return HONE_OK; /* a copy of another */
    const hn_hf_view *v = &f->v[t->view];
    if (v->from) return HONE_OK;
    if (g->type == HN_F32 && !memcmp(g->data, v->given, g->n_bytes)) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: the numbers of %s are none that a config of class %.*s can ask for",
                   f->path, t->name, n, f->of->names);
}

/* Every tensor of the file has a place in the folder. */
static hone_status check_tensors(const hn_hf *f, hone_error *err)
{
    hone_status st;
    for (size_t i = 0; i < f->n; i++) TRY(check_tensor(f, &f->t[i], err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f->back); i++) {
        const hn_gguf_tensor *g = hn_gguf_tensor_at(f->back, i);
        bool found = false;
        for (size_t k = 0; k < f->n && !found; k++)
            found = strlen(f->t[k].name) == g->name.len && !memcmp(f->t[k].name, g->name.ptr, g->name.len);
        if (!found)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has no place in a folder of class %.*s", f->path,
                           HN_ESC(g->name.ptr, g->name.len), (int)strcspn(f->of->names, "|"), f->of->names);
    }
    return HONE_OK;
}

/* ---- a class ------------------------------------------------------------------------------------------------ */

/* Room for all sources that the file's tensors can be made of: views keep pointers to them. */
static hone_status reserve(hn_hf *f, hone_error *err)
{
    uint64_t n = 64;
    int32_t part;
    hone_status st;
    TRY(hn_ckpt_new(&f->c, f->path, err));
    TRY(hn_ckpt_add_part(f->c, hn_gguf_path(f->back), &part, err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f->back); i++) n += hn_gguf_tensor_at(f->back, i)->ne[2] + 8;
    if (n > HN_CKPT_MAX_TENSORS) n = HN_CKPT_MAX_TENSORS;
    f->c->t = malloc(n * sizeof *f->c->t);
    f->c->cap = f->c->t ? n : 0;
    f->used = calloc(n + 1, sizeof *f->used);
    f->stored = calloc(n + 1, sizeof *f->stored);
    f->n_used = f->n_stored = n + 1;
    f->arena = hn_arena_new();
    return f->c->t && f->used && f->stored && f->arena
               ? HONE_OK
               : HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tensors", f->path, (unsigned long long)n);
}

static void let_go(hn_hf *f)
{
    hn_ckpt *c = f->c;
    hn_hf_drop(f);
    hn_ckpt_free(c);
    *f = (hn_hf){ 0 }; /* the caller drops what is left */
}

/* What the config leads to is the file. */
static hone_status check_file(const hn_hf *f, const hone_model *m, hone_error *err)
{
    char keys[ODD_KEYS];
    hone_status st;
    if (!same_numbers(m, f->m)) {
        odd_keys(f, keys);
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s is nothing that a config of class %.*s can say", f->path, keys,
                       (int)strcspn(f->of->names, "|"), f->of->names);
    }
    TRY(check_tensors(f, err));
    TRY(make_turns(f->m, f->back, err));
    if (same_turns(&m->hp, &f->m->hp)) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: the angles that its keys %s.rope.* make are none that a config of class %.*s can say", f->path,
                   f->of->arch, (int)strcspn(f->of->names, "|"), f->of->names);
}

/* A note said on the way is about no folder that anybody has. */
static hone_status try_class(hn_hf *f, const hone_model *m, hone_error *err)
{
    hone_status st;
    TRY(reserve(f, err));
    TRY(hn_hf_back_config(&f->root, f, m, err));
    f->config = f->root;
    if (!(f->read = calloc(json_object_size(f->root) + 1, 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: a config", f->path);
    snprintf(f->prefix, sizeof f->prefix, "%s", f->of->front ? f->of->front : f->of->root ? f->of->root : "model.");
    snprintf(f->head, sizeof f->head, "lm_head");
    TRY(hn_gguf_writer_new(&f->w, err));
    TRY(hn_hf_follow(f, err));
    return check_file(f, m, err);
}

static hone_status try_rwkv(hn_hf *f, const hone_model *m, hone_error *err)
{
    hone_status st;
    TRY(reserve(f, err));
    TRY(hn_hf_back_rwkv(f, m, err));
    return check_file(f, m, err);
}

/* The first class that can be it; else what is wrong with the first. */
static hone_status find_class(hn_hf *f, const hn_convert *a, const hn_gguf *g, const hone_model *m, hone_error *err)
{
    const char *arch = m->arch->name;
    hone_error other, *to = err;
    hone_status first = HONE_OK, st;
    const hn_hf_class *of = hn_hf_back_rwkv_class(arch);
    static const hn_convert quiet;
    if (of) {
        *f = (hn_hf){ .a = a, .back = g, .of = of, .path = a->src };
        return try_rwkv(f, m, err);
    }
    for (size_t k = 0; (of = hn_hf_class_of(arch, k)); k++) {
        if (of->fits && !of->fits(g)) continue;
        hn_convert silent = quiet;
        silent.src = a->src;
        *f = (hn_hf){ .a = &silent, .back = g, .of = of, .path = a->src };
        st = try_class(f, m, to);
        f->a = a;
        if (st == HONE_OK) return HONE_OK;
        let_go(f);
        if (to == err) first = st;
        bool refused = st == HONE_E_UNSUPPORTED || st == HONE_E_FORMAT || st == HONE_E_ARG; /* by this class */
        if (!refused) return to == err ? st : HN_FAIL(err, st, "%s", other.message);
        to = &other;
    }
    *f = (hn_hf){ 0 };
    if (first != HONE_OK) return first;
    return HN_FAIL(
        err, HONE_E_UNSUPPORTED,
        "%s: a model of architecture %s, which hone cannot make a folder of transformers of; expected one of "
        "docs/CONVERT.md",
        a->src, arch);
}

/* ---- the folder ---------------------------------------------------------------------------------------------- */

hone_status hn_hf_back_tell(const hn_hf *f, const char *file, hone_error *err)
{
    return json_array_append_new(f->written, json_string(file)) == 0 ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s", file);
}

hone_status hn_hf_back_json(const hn_hf *f, const char *file, const json_t *o, hone_error *err)
{
    char path[4352];
    char *text = hn_json_dump(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s", file);
    snprintf(path, sizeof path, "%s/%s", f->a->dst, file);
    hone_status st = hn_hf_back_tell(f, file, err);
    if (st == HONE_OK) st = hn_file_replace(path, text, strlen(text), err);
    free(text);
    return st;
}

/* A new folder, or an empty one. */
static hone_status make_folder(const char *dst, bool *made, hone_error *err)
{
    char inner[4352];
    struct stat sb;
    struct dirent *e;
    bool empty = true;
    *made = stat(dst, &sb) != 0;
    if (*made) {
        int n = snprintf(inner, sizeof inner, "%s/x", dst);
        if (n < 0 || n >= (int)sizeof inner - 64) return HN_FAIL(err, HONE_E_ARG, "%s: a name of %d bytes", dst, n);
        return hn_file_make_folders(inner, err);
    }
    if (!S_ISDIR(sb.st_mode))
        return HN_FAIL(err, HONE_E_ARG, "%s: is a file; a GGUF file is converted into a folder: name a new one", dst);
    DIR *d = opendir(dst);
    if (!d) return HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", dst, strerror(errno));
    while ((e = readdir(d))) empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    closedir(d);
    return empty ? HONE_OK
                 : HN_FAIL(err, HONE_E_ARG, "%s: there are files in it; expected a new folder, or an empty one", dst);
}

/* What was written here goes again, and nothing that another program has put there meanwhile. */
static void take_away(const char *dst, const json_t *written, bool made)
{
    static const char *const inner[] = { "additional_chat_templates", "1_Pooling", "2_Dense", "3_Dense" };
    char path[4700];
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)written, i, v)
    {
        const char *name = json_string_value(v);
        if (snprintf(path, sizeof path, "%s/%s", dst, name) < (int)sizeof path) (void)unlink(path);
    }
    for (i = 0; i < sizeof inner / sizeof *inner; i++)
        if (snprintf(path, sizeof path, "%s/%s", dst, inner[i]) < (int)sizeof path) (void)rmdir(path);
    if (made) (void)rmdir(dst);
}

/* Sampling as its authors do it: general.sampling.*, as hf_general.c reads it. transformers looks at temperature and
 * its kin where do_sample is true alone, and takes no temperature of 0: that is do_sample unsaid. */
static json_t *generation(const hn_gguf *g)
{
    static const struct {
        const char *name, *key;
        bool draws;
    } all[] = { { "top_k", "top_k", true },
                { "top_p", "top_p", true },
                { "min_p", "min_p", true },
                { "temperature", "temp", true },
                { "xtc_probability", "xtc_probability", true },
                { "xtc_threshold", "xtc_threshold", true },
                { "penalty_last_n", "penalty_last_n", false },
                { "repetition_penalty", "penalty_repeat", false } };
    float temp = 1;
    bool draws = false;
    json_t *o = json_object();
    (void)hn_gguf_get_f32(g, "general.sampling.temp", &temp, NULL, NULL); /* of another type: not written below */
    for (size_t i = 0; o && i < sizeof all / sizeof *all; i++) {
        char key[96];
        hone_kv kv;
        snprintf(key, sizeof key, "general.sampling.%s", all[i].key);
        int64_t at = hn_gguf_find(g, key);
        if (at < 0 || (all[i].draws && temp <= 0)) continue;
        hn_gguf_kv(g, (uint64_t)at, &kv);
        draws |= all[i].draws;
        if (kv.type == HONE_KV_I32) (void)json_object_set_new(o, all[i].name, json_integer(kv.v.i));
        else if (kv.type == HONE_KV_F32) (void)json_object_set_new(o, all[i].name, json_real(kv.v.f));
    }
    if (draws) (void)json_object_set_new(o, "do_sample", json_true());
    return o;
}

/* config.json comes last: without it nothing takes the folder for a model. */
static hone_status write_folder(hn_hf *f, hone_error *err)
{
    bool made;
    hone_status st;
    TRY(hn_hf_back_types(f, err));
    TRY(make_folder(f->a->dst, &made, err));
    json_t *more = generation(f->back);
    if (!(f->written = json_array())) st = HN_FAIL(err, HONE_E_NOMEM, "%s: names", f->path);
    if (st == HONE_OK) st = hn_hf_back_write(f, err);
    if (st == HONE_OK && hn_hf_back_rwkv_class(f->of->arch)) st = hn_hf_back_world(f, err);
    else if (st == HONE_OK) st = hn_hf_tokenizer_write(f->a->dst, f->back, more, f->written, err);
    if (st == HONE_OK && json_object_set_new(f->root, "dtype", json_string(hn_hf_back_dtype(f))) != 0)
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: a config", f->path);
    if (st == HONE_OK) st = hn_hf_back_modules_write(f, err);
    if (st == HONE_OK) st = hn_hf_back_json(f, "config.json", f->root, err);
    json_decref(more);
    if (st != HONE_OK) take_away(f->a->dst, f->written, made);
    json_decref(f->written);
    f->written = NULL;
    return st;
}

/* The numbers that the file's reader makes of it: where keys leave a width out, its tensors have it. */
static hone_status read_numbers(hone_model **m, const hn_gguf *g, int32_t n_vocab, hone_error *err)
{
    hn_gguf *own;
    hone_status st;
    TRY(hn_model_file_open(&own, hn_gguf_path(g), err));
    TRY(hn_model_from_keys(m, own, n_vocab, err));
    return make_turns(*m, g, err);
}

hone_status hn_convert_back(const hn_convert *a, hone_error *err)
{
    size_t n = strlen(a->dst);
    if (n > 5 && !strcmp(a->dst + n - 5, ".gguf"))
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: already GGUF, and hone cannot change its type yet; to make a folder of transformers of it, name "
            "the folder: -o %.*s/",
            a->src, (int)(n - 5), a->dst);
    hn_gguf *g = NULL;
    hone_model *m = NULL;
    hn_hf f = { 0 };
    hone_status st = hn_model_file_open(&g, a->src, err);
    const hn_gguf_tensor *embd = st == HONE_OK ? hn_gguf_find_tensor(g, "token_embd.weight") : NULL;
    if (st == HONE_OK && (!embd || embd->ne[1] > HN_MAX_VOCAB))
        st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: has no token_embd.weight; expected a language model", a->src);
    hn_type type;
    if (st == HONE_OK && a->type && !(hn_mix_find(a->type, &type, NULL) && hn_is_float(type)))
        st = HN_FAIL(err, HONE_E_ARG, "--type %s: a folder of transformers has F32, F16 or BF16",
                     HN_ESC(a->type, strlen(a->type)));
    if (st == HONE_OK) st = read_numbers(&m, g, (int32_t)embd->ne[1], err);
    if (st == HONE_OK) st = find_class(&f, a, g, m, err);
    if (st == HONE_OK) st = write_folder(&f, err);
    if (f.c) let_go(&f);
    hone_model_close(m);
    hn_gguf_close(g);
    return st;
}
