/* lora_peft: adapters as PEFT folders: adapter_config.json says how A and B are scaled,
 * adapter_model.safetensors, or without it adapter_model.bin, holds them as base_model.model.MODULE.lora_A.weight
 * [rank, n_in] and lora_B.weight [n_out, rank] (huggingface/peft: docs/source/developer_guides/checkpoint.md).
 * What a module is in the file, and in which order its rows are, lora_modules.c says. Owns configs and scales; refuses
 * what changes the formula. */
#include "model/ckpt.h"
#include "model/lora_modules.h"
#include "model/lora_peft.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_TEMPLATE = 16 << 20 }; /* bytes; the longest known have some tens of thousands */

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && !memcmp(s.ptr, t, s.len); }
static bool begins(hone_str s, const char *t) { return s.len >= strlen(t) && !memcmp(s.ptr, t, strlen(t)); }

/* ---- adapter_config.json ------------------------------------------------------------------------ */

typedef struct config {
    hn_config c;
    double alpha, rank;
    bool rslora;
} config;

/* Anything but null, false, "none" or an empty list or object? */
static bool says_something(const hn_member *m)
{
    if (m->kind == HN_J_NULL) return false;
    if (m->kind == HN_J_BOOL) return m->num != 0;
    if (m->kind == HN_J_STRING) return !is(m->str, "none") && m->str.len > 0;
    if (m->kind != HN_J_OTHER) return true;
    for (size_t i = 1; i + 1 < m->str.len; i++)
        if (!strchr(" \t\r\n", m->str.ptr[i])) return true;
    return false;
}

static bool is_set(const hn_config *c, const char *key)
{
    const hn_member *m = hn_config_get(c, key);
    return m && says_something(m);
}

static hone_status get_number(const hn_config *c, const char *key, double *out, hone_error *err)
{
    const hn_member *m = hn_config_get(c, key);
    if (!m) return HN_FAIL(err, HONE_E_FORMAT, "%s: \"%s\" is missing", c->path, key);
    if (m->kind != HN_J_NUMBER || !(fabs(m->num) <= 1e9))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: \"%s\" is not a number up to 1e9", c->path, key);
    *out = m->num;
    return HONE_OK;
}

static hone_status read_config(config *k, const hone_model *m, const char *path, hone_error *err)
{
    static const struct {
        const char *key, *what;
    } refused[] = {
        { "use_dora", "DoRA, which hone does not run" },
        { "bias", "biases are trained too" },
        { "lora_bias", "biases are trained too" },
        { "modules_to_save", "whole modules are trained too" },
        { "layer_replication", "it repeats layers" },
        { "trainable_token_indices", "rows of the embedding are trained too" },
        { "target_parameters", "it adapts parameters that are no modules" },
        { "alora_invocation_tokens", "an activated LoRA, which changes the model from some token on" },
        { "use_qalora", "QA-LoRA, which hone does not run" },
        { "use_bdlora", "BD-LoRA, which hone does not run" },
        { "kasa_config", "KaSA, which hone does not run" },
        { "arrow_config", "it is routed among several adapters" },
        { "monteclora_config", "MonteCLoRA, which hone does not run" },
    };
    hone_status st;
    TRY(hn_config_load(&k->c, path, err));
    const hn_member *type = hn_config_get(&k->c, "peft_type"), *init = hn_config_get(&k->c, "init_lora_weights");
    if (!type || type->kind != HN_J_STRING)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: has no peft_type, expected the config of a PEFT adapter", path);
    if (!is(type->str, "LORA"))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: peft_type is \"%s\", expected \"LORA\"", path,
                       HN_ESC(type->str.ptr, type->str.len));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_set(&k->c, refused[i].key))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: \"%s\": %s", path, refused[i].key, refused[i].what);
    if (is_set(&k->c, "fan_in_fan_out") && !hn_modules_transposed(m))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: \"fan_in_fan_out\": its base has transposed weights", path);
    if (init && init->kind == HN_J_STRING && !is(init->str, "gaussian") && !is(init->str, "eva") &&
        !is(init->str, "orthogonal"))
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: init_lora_weights \"%s\" changes the base weights when it begins; convert the adapter to plain LoRA",
            path, HN_ESC(init->str.ptr, init->str.len));
    for (size_t i = 0; i < k->c.n; i++) /* what later versions of PEFT may add to the formula */
        if (begins(k->c.m[i].key, "use_") && !is(k->c.m[i].key, "use_rslora") && says_something(&k->c.m[i]))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: \"%s\" is set, which hone does not know", path,
                           HN_ESC(k->c.m[i].key.ptr, k->c.m[i].key.len));
    TRY(get_number(&k->c, "r", &k->rank, err));
    TRY(get_number(&k->c, "lora_alpha", &k->alpha, err));
    k->rslora = is_set(&k->c, "use_rslora");
    return HONE_OK;
}

/* Whether key of a pattern means the module: PEFT matches (.*\.)?KEY$ as a regular expression; keys that are
 * plain names serve here, whose dots then mean any character. */
static bool key_means(hone_str key, hone_str module)
{
    bool anchored = key.len && key.ptr[0] == '^';
    hone_str k = { key.ptr + anchored, key.len - anchored };
    if (k.len > module.len) return false;
    for (size_t i = 0; i < k.len; i++)
        if (k.ptr[i] != '.' && k.ptr[i] != module.ptr[module.len - k.len + i]) return false;
    return k.len == module.len || (!anchored && module.ptr[module.len - k.len - 1] == '.');
}

/* alpha_pattern's value for a module, or def. */
static hone_status pattern_alpha(const config *k, hone_str module, double *alpha, hone_error *err)
{
    const hn_member *m = hn_config_get(&k->c, "alpha_pattern");
    hn_jread j;
    hone_str key;
    bool more, found = false;
    hone_status st;
    *alpha = k->alpha;
    if (!m) return HONE_OK;
    if (m->kind != HN_J_OTHER || m->str.ptr[0] != '{')
        return HN_FAIL(err, HONE_E_FORMAT, "%s: \"alpha_pattern\" is no object", k->c.path);
    char *text = strndup(m->str.ptr, m->str.len); /* it is changed while it is read */
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: alpha_pattern", k->c.path);
    st = hn_ckpt_json(&j, text, m->str.len, k->c.path, "alpha_pattern", err);
    if (st == HONE_OK)
        for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
            if ((st = hn_jread_key_str(&j, &key)) != HONE_OK) break;
            for (size_t i = 0; i < key.len; i++) {
                char c = key.ptr[i];
                bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                             c == '.' || (c == '^' && i == 0);
                if (!plain) {
                    st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                                 "%s: alpha_pattern has the regular expression \"%s\"; hone takes module names there",
                                 k->c.path, HN_ESC(key.ptr, key.len));
                    break;
                }
            }
            if (st != HONE_OK) break;
            hn_jread_peek(&j);
            const char *start = j.p;
            hn_jread_item it;
            if ((st = hn_jread_scalar(&j, &it)) != HONE_OK) break;
            double v = it.num.d;
            if (it.kind != HN_JSON_NUMBER || !(fabs(v) <= 1e9)) {
                size_t n = (size_t)((j.p > start ? j.p : j.end) - start);
                st = HN_FAIL(err, HONE_E_FORMAT, "%s: alpha_pattern has %s, expected a number up to 1e9", k->c.path,
                             HN_ESC(start, n < 40 ? n : 40));
                break;
            }
            if (!found && key_means(key, module)) {
                *alpha = v;
                found = true;
            }
        }
    free(text);
    return st;
}

/* ---- the tensors ---------------------------------------------------------------------------------- */

/* Adapters of modules that are no tensor of the file row for row, till all are read. */
typedef struct reading {
    hn_lora_build *b;
    const config *k;
    const hn_ckpt *c;
    hn_lora_thing *thing; /* their pairs have the modules' names */
    int32_t n, cap;
} reading;

static void things_free(reading *r)
{
    for (int32_t i = 0; i < r->n; i++) {
        free(r->thing[i].pair.name);
        free(r->thing[i].pair.a);
        free(r->thing[i].pair.b);
    }
    free(r->thing);
}

static hone_status find_thing(reading *r, hn_lora_thing **out, hone_str module, const hn_lora_place *at,
                              hone_error *err)
{
    for (int32_t i = 0; i < r->n; i++)
        if (is(module, r->thing[i].pair.name)) {
            *out = &r->thing[i];
            return HONE_OK;
        }
    if (r->n == r->cap) {
        int32_t cap = r->cap ? 2 * r->cap : 64;
        hn_lora_thing *t = realloc(r->thing, (size_t)cap * sizeof *t);
        if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%d modules", cap);
        r->thing = t;
        r->cap = cap;
    }
    char *name = strndup(module.ptr, module.len);
    if (!name) return HN_FAIL(err, HONE_E_NOMEM, "module");
    *out = &r->thing[r->n++];
    **out = (hn_lora_thing){ .at = *at, .pair.name = name };
    return HONE_OK;
}

/* Room for half a module's adapter, as hn_lora_half has it for a tensor's. */
static hone_status thing_half(reading *r, float **x, hn_lora_pair **pair, const hn_lora_place *at, const char *tensor,
                              hone_str module, bool is_b, const hn_ckpt_tensor *t, const char *path, hone_error *err)
{
    const char *name = HN_ESC(t->name.ptr, t->name.len);
    const hn_gguf_tensor *base = hn_gguf_find_tensor(r->b->m->file, tensor);
    uint64_t want = is_b ? (uint64_t)hn_modules_rows(at) : base->ne[0], rows = t->ne[1], cols = t->ne[0],
             rank = is_b ? cols : rows;
    hn_lora_thing *thing = NULL;
    hone_status st;
    if ((is_b ? rows : cols) != want || rank < 1 || rank > HN_LORA_MAX_RANK)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s has shape [%llu, %llu], expected %s, %llu, and a rank of 1 to %d: wrong base model?",
                       path, name, (unsigned long long)rows, (unsigned long long)cols,
                       is_b ? "[n_out, rank], n_out" : "[rank, n_in], n_in", (unsigned long long)want,
                       HN_LORA_MAX_RANK);
    TRY(find_thing(r, &thing, module, at, err));
    hn_lora_pair *p = *pair = &thing->pair;
    float **half = is_b ? &p->b : &p->a;
    if (*half) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is there twice", path, name);
    if (p->rank && p->rank != (int64_t)rank)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: the halves for %s have ranks %lld and %llu, expected the same", path,
                       p->name, (long long)p->rank, (unsigned long long)rank);
    p->rank = (int64_t)rank;
    p->n_in = (int64_t)base->ne[0];
    p->n_out = hn_modules_rows(at);
    *x = *half = malloc((size_t)(rows * cols) * sizeof **half);
    return *x ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: %s", path, name);
}

/* What modules become in one tensor of the file. */
static hone_status put_tensor(reading *r, const char *tensor, const hn_lora_place *to, const hn_lora_pair *like,
                              const char *path, hone_error *err)
{
    int32_t n_source;
    int64_t rank = hn_modules_rank(to, r->thing, r->n, &n_source);
    const hone_str base = { tensor, strlen(tensor) };
    hn_lora_pair *pair;
    float *a, *b;
    hone_status st;
    if (rank > HN_LORA_MAX_RANK)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: adapters of %s have together rank %lld, expected at most %d", path,
                       tensor, (long long)rank, HN_LORA_MAX_RANK);
    TRY(hn_lora_half(r->b, &a, &pair, base, false, (uint64_t)rank, (uint64_t)like->n_in, path, base, err));
    TRY(hn_lora_half(r->b, &b, &pair, base, true, (uint64_t)hn_modules_rows(to), (uint64_t)rank, path, base, err));
    hn_modules_gather(a, b, &pair->scale, to, rank, r->thing, r->n, r->b->m->hp.head_dim);
    return HONE_OK;
}

static hone_status put_things(reading *r, const char *path, hone_error *err)
{
    hone_status st;
    for (int32_t i = 0; i < r->n; i++)
        if (!r->thing[i].pair.a || !r->thing[i].pair.b)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: has only half %c of the pair for %s", path,
                           r->thing[i].pair.a ? 'A' : 'B', r->thing[i].pair.name);
    for (int32_t i = 0; i < r->n; i++) {
        char name[HN_MAX_PART][HN_LORA_NAME];
        hn_lora_place to[HN_MAX_PART];
        int n = hn_modules_tensors(name, to, r->b->m, &r->thing[i].at);
        if (n < 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: adapts module %s, of which %s lacks a part", path,
                           r->thing[i].pair.name, r->b->m->path);
        for (int k = 0; k < n; k++) {
            bool done = false;
            for (int32_t q = 0; q < r->b->l->n_pair && !done; q++) done = !strcmp(r->b->l->pair[q].name, name[k]);
            if (!done) TRY(put_tensor(r, name[k], &to[k], &r->thing[i].pair, path, err));
        }
    }
    return HONE_OK;
}

static hone_status read_values(float *x, const hn_ckpt *c, const hn_ckpt_tensor *t, hone_error *err)
{
    hone_status st = HONE_OK;
    uint64_t n = t->ne[0] * t->ne[1];
    char *raw = malloc((size_t)t->n_bytes + 1);
    if (!raw) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", c->path, (unsigned long long)t->n_bytes);
    if ((st = hn_source_read(&c->part[t->part], t->off, raw, t->n_bytes, err)) == HONE_OK)
        hn_type_get(t->type)->dequantize(x, raw, (int64_t)n);
    free(raw);
    return st == HONE_OK ? hn_lora_check(x, n, c->part[t->part].path, t->name, err) : st;
}

static hone_status read_tensor(reading *r, const hn_ckpt_tensor *t, hone_error *err)
{
    hn_lora_build *b = r->b;
    const config *k = r->k;
    const hn_ckpt *c = r->c;
    static const char before[] = "base_model.model.", after[] = ".lora_A.weight";
    const char *path = c->part[t->part].path, *name = HN_ESC(t->name.ptr, t->name.len);
    hone_str module = { t->name.ptr + strlen(before), t->name.len > strlen(before) + strlen(after)
                                                          ? t->name.len - strlen(before) - strlen(after)
                                                          : 0 };
    const char *tail = module.ptr + module.len;
    char tensor[HN_LORA_NAME];
    hn_lora_place at;
    bool alone;
    hn_lora_pair *pair;
    float *x;
    double alpha;
    hone_status st;
    for (size_t i = 0; i + 21 <= t->name.len; i++)
        if (!memcmp(t->name.ptr + i, "lora_magnitude_vector", 21))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s: DoRA, which hone does not run", path, name);
    for (size_t i = 0; i + 15 <= t->name.len; i++)
        if (!memcmp(t->name.ptr + i, "lora_embedding_", 15))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s: hone has adapters of matrices, not of embeddings", path,
                           name);
    if (t->name.len > 18 && !memcmp(t->name.ptr + t->name.len - 18, ".base_layer.weight", 18))
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: %s: a whole weight, which may not be the base's; save the adapter with save_embedding_layers=False",
            path, name);
    bool is_a = module.len && !memcmp(tail, ".lora_A.weight", strlen(after)),
         is_b = module.len && !memcmp(tail, ".lora_B.weight", strlen(after));
    if (!begins(t->name, before) || (!is_a && !is_b))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tensor %s is no half of an adapter (base_model.model.MODULE.lora_A.weight); running "
                       "without it would give wrong answers",
                       path, name);
    if (!hn_module_find(&at, tensor, &alone, b->m, module))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: adapts module %s, which has no counterpart in GGUF files of %s",
                       path, HN_ESC(module.ptr, module.len), b->m->arch->name);
    if (t->n_dim != 2)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s has %d dimensions, expected 2", path, name, t->n_dim);
    const hone_str base = { tensor, strlen(tensor) };
    st = alone ? hn_lora_half(b, &x, &pair, base, is_b, t->ne[1], t->ne[0], path, t->name, err)
               : thing_half(r, &x, &pair, &at, tensor, module, is_b, t, path, err);
    if (st != HONE_OK) return st;
    if ((double)pair->rank != k->rank && !is_set(&k->c, "rank_pattern"))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has rank %lld, but %s says r = %g", path, name,
                       (long long)pair->rank, k->c.path, k->rank);
    TRY(pattern_alpha(k, module, &alpha, err));
    pair->scale = (float)(alpha / (k->rslora ? sqrt((double)pair->rank) : (double)pair->rank));
    return read_values(x, c, t, err);
}

/* The template beside the adapter, where there is one. */
static hone_status read_template(hn_lora_build *b, const char *path, hone_error *err)
{
    char *text;
    size_t n;
    if (access(path, F_OK) != 0 && errno == ENOENT) return HONE_OK;
    hone_status st = hn_source_text(&text, &n, path, MAX_TEMPLATE, err);
    if (st != HONE_OK) return st;
    if (strlen(text) != n) {
        free(text);
        return HN_FAIL(err, HONE_E_FORMAT, "%s: a NUL among %zu bytes, expected text", path, n);
    }
    free(b->l->chat_template);
    b->l->chat_template = text;
    return HONE_OK;
}

static hone_status read_folder(hn_lora_build *b, const char *folder, hone_error *err)
{
    size_t cap = strlen(folder) + 64;
    char *path = malloc(cap);
    config k = { .rank = 0 };
    hn_ckpt *c = NULL;
    int32_t part;
    bool torch = false;
    hone_status st = path ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s", folder);
    if (st == HONE_OK) {
        snprintf(path, cap, "%s/adapter_config.json", folder);
        st = read_config(&k, b->m, path, err);
    }
    if (st == HONE_OK) {
        snprintf(path, cap, "%s/" HN_PEFT_TEMPLATE, folder);
        st = read_template(b, path, err);
    }
    if (st == HONE_OK) st = hn_ckpt_new(&c, folder, err);
    if (st == HONE_OK) {
        snprintf(path, cap, "%s/adapter_model.safetensors", folder);
        bool absent = access(path, F_OK) != 0;
        snprintf(path, cap, "%s/adapter_model.bin", folder);
        torch = absent && access(path, F_OK) == 0;
        if (!torch) snprintf(path, cap, "%s/adapter_model.safetensors", folder);
        st = hn_ckpt_add_part(c, path, &part, err);
    }
    if (st == HONE_OK) st = torch ? hn_torch_read(c, part, err) : hn_safetensors_read(c, part, err);
    reading r = { .b = b, .k = &k, .c = c };
    for (size_t i = 0; st == HONE_OK && i < c->n; i++) st = read_tensor(&r, &c->t[i], err);
    if (st == HONE_OK) st = put_things(&r, path, err);
    things_free(&r);
    hn_config_free(&k.c);
    hn_ckpt_free(c);
    free(path);
    return st;
}

hone_status hn_lora_read_peft(hn_lora **out, const hone_model *m, const char *folder, hone_error *err)
{
    hn_lora_build b;
    *out = NULL;
    const char *why = hn_modules_refused(m);
    if (why)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT folders are not for %s (%s): %s", folder, m->arch->name,
                       m->path, why);
    hone_status st = hn_lora_begin(&b, m, folder, err);
    if (st == HONE_OK) st = read_folder(&b, folder, err);
    return hn_lora_end(&b, st, out, err);
}
