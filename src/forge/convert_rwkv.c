/* convert_rwkv: RWKV-6 and RWKV-7 checkpoints become GGUF. Owns their names: those of the
 * original checkpoints (BlinkDL/RWKV-LM), of Hugging Face and flash-linear-attention, of rwkv.cpp;
 * and GGUF's (ggml-org/llama.cpp:conversion/rwkv.py). Every tensor of the source is used exactly
 * once, every shape checked. Refuses to know files and block formats. */
#include "forge/convert.h"
#include "model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- names ------------------------------------------------------------------------------- */

typedef struct named {
    hone_str name; /* first, as hn_index wants: as in the original checkpoints */
    const hn_ckpt_tensor *t;
    bool linear; /* a low-rank matrix stored as torch.nn.Linear does: [out][in] */
    bool used;
} named;

typedef struct names {
    named *t;
    size_t n;
    hn_index ix;
    char *text;
} names;

static bool part_is(const char *p, size_t n, const char *list) /* "a|b|c" */
{
    for (const char *s = list; *s;) {
        size_t k = strcspn(s, "|");
        if (k == n && memcmp(s, p, n) == 0) return true;
        s += k + (s[k] == '|');
    }
    return false;
}

static const char *one_of(const char *p, size_t n, const char *const map[][2])
{
    for (; *(*map)[0]; map++)
        if (part_is(p, n, (*map)[0])) return (*map)[1];
    return NULL;
}

typedef struct line {
    char *p;
    size_t n, cap;
} line;

static void append(line *l, const char *s, size_t n)
{
    if (l->n && l->n < l->cap) l->p[l->n++] = '.';
    if (n > l->cap - l->n) n = l->cap - l->n;
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

/* What stands behind att. in other dialects: "w_lora.lora.0.weight" is w1. */
static bool low_rank(line *l, const char *p, size_t n, bool *linear)
{
    static const char *const tails[][2] = { { "_lora.lora.0.weight", "1" },
                                            { "_lora.lora.2.weight", "2" },
                                            { "_lora.lora.2.bias", "0" } };
    for (int i = 0; i < 3; i++)
        if (n == 1 + strlen(tails[i][0]) && !memcmp(p + 1, tails[i][0], n - 1)) {
            append(l, (char[]){ p[0], *tails[i][1] }, 2);
            *linear = i < 2;
            return true;
        }
    return false;
}

/* Names of other dialects become those of the original; unknown ones stay as they are. */
static hone_str normalise(char *dst, size_t cap, hone_str in, bool *linear)
{
    static const char *const outside[][2] = {
        { "embeddings", "emb" }, { "lm_head", "head" }, { "norm", "ln_out" }, { "layers", "blocks" }, { "", "" }
    };
    static const char *const inside[][2] = { { "attn|attention|self_attn|time_mixer|att", "att" },
                                             { "feed_forward|ffn", "ffn" },
                                             { "pre_norm|pre_ln", "ln0" },
                                             { "attn_norm", "ln1" },
                                             { "ffn_norm", "ln2" },
                                             { "", "" } };
    static const char *const in_att[][2] = { { "r_proj", "receptance" }, { "k_proj", "key" },  { "v_proj", "value" },
                                             { "o_proj", "output" },     { "g_norm", "ln_x" }, { "", "" } };
    static const char *const prefix[] = { "model.", "rwkv.", "rwkv7." };
    const char *p = in.ptr, *end = in.ptr + in.len;
    line l = { dst, 0, cap };
    bool att = false;
    *linear = false;
    for (int i = 0; i < 3; i++) {
        size_t k = strlen(prefix[i]);
        if ((size_t)(end - p) > k && !memcmp(p, prefix[i], k)) p += k, i = -1;
    }
    for (int depth = 0; p < end; depth++) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        size_t n = (size_t)((dot ? dot : end) - p);
        const char *to = NULL;
        if (depth == 0) to = one_of(p, n, outside);
        else if (depth == 2 && l.n > 7 && !memcmp(dst, "blocks.", 7)) {
            to = one_of(p, n, inside);
            att = to && !strcmp(to, "att");
        } else if (att && depth == 3) {
            if (part_is(p, n, "time_mixer")) { /* self_attn.time_mixer.x */
                p = dot ? dot + 1 : end;
                depth--;
                continue;
            }
            if (low_rank(&l, p, (size_t)(end - p), linear)) break;
            to = one_of(p, n, in_att);
        }
        append(&l, to ? to : p, to ? strlen(to) : n);
        p = dot ? dot + 1 : end;
    }
    return (hone_str){ dst, l.n };
}

enum { NAME_CAP = HN_CKPT_MAX_NAME + 33 };

static void names_free(names *a)
{
    free(a->t);
    free(a->text);
    hn_index_free(&a->ix);
}

static hone_status names_make(names *a, const hn_ckpt *c, hone_error *err)
{
    a->t = calloc(c->n + 1, sizeof *a->t);
    a->text = c->n <= 1 << 16 ? malloc((c->n + 1) * NAME_CAP) : NULL;
    if (c->n > 1 << 16)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %zu tensors, expected those of an RWKV model: at most %d", c->path,
                       c->n, 1 << 16);
    if (!a->t || !a->text) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu names", c->path, c->n);
    for (size_t i = 0; i < c->n; i++) {
        named *m = &a->t[i];
        int64_t dup;
        m->t = &c->t[i];
        m->name = normalise(a->text + i * NAME_CAP, NAME_CAP, m->t->name, &m->linear);
        if (!hn_index_add(&a->ix, a->t, sizeof *a->t, (uint32_t)i, &dup))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu names", c->path, c->n);
        if (dup >= 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s and %s are both %s", c->path,
                           HN_ESC(a->t[dup].t->name.ptr, a->t[dup].t->name.len), HN_ESC(m->t->name.ptr, m->t->name.len),
                           HN_ESC(m->name.ptr, m->name.len));
        a->n++;
    }
    return HONE_OK;
}

static named *find(const names *a, const char *name)
{
    int64_t i = hn_index_find(&a->ix, a->t, sizeof *a->t, name, strlen(name));
    return i < 0 ? NULL : &a->t[i];
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* The sizes a shape is made of; n: X's are of RWKV-6, ranks of RWKV-7. */
typedef enum dim { D_E, D_V, D_F, D_W, D_A, D_VR, D_G, D_X, D_X5, D_D, N_DIMS } dim;

typedef struct rwkv {
    const hn_ckpt *c;
    names names;
    hn_plan plan;
    int version;
    uint64_t size[N_DIMS], n_layer, head, n_head;
    int swapped; /* how square low-rank matrices stand: 1 as [in][out], 0 as [out][in], -1 unknown */
    hone_error *err;
} rwkv;

static const char *path_of(const rwkv *r, const hn_ckpt_tensor *t) { return r->c->part[t->part].path; }

static hone_status missing(rwkv *r, const char *name)
{
    return HN_FAIL(r->err, HONE_E_FORMAT,
                   "%s: tensor %s is missing (also looked for under its names in other dialects)", r->c->path, name);
}

static hone_status bad_shape(rwkv *r, const hn_ckpt_tensor *t, const char *expected)
{
    return HN_FAIL(r->err, HONE_E_FORMAT, "%s: %s has shape %s, expected %s", path_of(r, t),
                   HN_ESC(t->name.ptr, t->name.len), HN_SHAPE(t), expected);
}

#define SAY(...) say((char[96]){ 0 }, __VA_ARGS__)
static const char *say(char dst[96], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *say(char dst[96], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(dst, 96, fmt, ap);
    va_end(ap);
    return dst;
}
#define LL(x) ((unsigned long long)(x))

/* Dimensions other than 1, fastest first; how many. */
static int squeeze(const hn_ckpt_tensor *t, uint64_t ne[HN_CKPT_MAX_DIM])
{
    int n = 0;
    for (int i = 0; i < HN_CKPT_MAX_DIM; i++) ne[i] = 1;
    for (int i = 0; i < t->n_dim; i++)
        if (t->ne[i] != 1) ne[n++] = t->ne[i];
    return n;
}

/* The size beside E of a low-rank matrix. */
static hone_status rank_of(rwkv *r, const char *name, uint64_t multiple, uint64_t *out)
{
    const named *m = find(&r->names, name);
    uint64_t e = r->size[D_E];
    if (!m) return missing(r, name);
    uint64_t a = m->t->ne[0], b = m->t->ne[1];
    if (m->t->n_dim != 2 || (a != e && b != e))
        return bad_shape(r, m->t, SAY("[%llu, rank] or [rank, %llu]", LL(e), LL(e)));
    *out = a == e ? b : a;
    if (*out == 0 || *out % multiple || *out > 1 << 16)
        return bad_shape(r, m->t, SAY("a rank of 1 to 65536%s", multiple == 5 ? ", five times over" : ""));
    return HONE_OK;
}

static hone_status limit(const rwkv *r, const char *what, uint64_t v, uint64_t max)
{
    return v >= 1 && v <= max
               ? HONE_OK
               : HN_FAIL(r->err, HONE_E_FORMAT, "%s: %s is %llu, expected 1 to %llu", r->c->path, what, LL(v), LL(max));
}

/* A file of a folder that is converted as a whole: by its names, or the config beside it. */
static bool is_of_folder(const hn_ckpt *c)
{
    const char *slash = strrchr(c->path, '/');
    char config[4352];
    struct stat sb;
    int n = snprintf(config, sizeof config, "%.*sconfig.json", (int)(slash ? slash + 1 - c->path : 0), c->path);
    if (stat(c->path, &sb) != 0 || !S_ISREG(sb.st_mode)) return false;
    bool beside = n > 0 && n < (int)sizeof config && stat(config, &sb) == 0;
    for (size_t i = 0; i < c->n && !beside; i++)
        beside = c->t[i].name.len > 13 && !memcmp(c->t[i].name.ptr, "model.layers.", 13);
    return beside;
}

/* Which RWKV it is, by what only that has. */
static hone_status find_version(rwkv *r)
{
    const names *a = &r->names;
    const char *other = NULL;
    if (find(a, "blocks.0.att.r_k")) r->version = 7;
    else if (find(a, "blocks.0.att.time_maa_x")) r->version = 6;
    else if (find(a, "blocks.0.att.time_decay"))
        other = find(a, "blocks.0.att.gate.weight") ? "5.2" : find(a, "blocks.0.att.ln_x.weight") ? "5.1" : "4";
    if (other)
        return HN_FAIL(r->err, HONE_E_UNSUPPORTED,
                       "%s: an RWKV-%s checkpoint, which hone does not convert; expected RWKV-6 or RWKV-7", r->c->path,
                       other);
    if (!r->version && is_of_folder(r->c))
        return HN_FAIL(r->err, HONE_E_UNSUPPORTED,
                       "%s: one file of a transformer's checkpoint, which is converted with its config.json and its "
                       "tokenizer: name the folder",
                       r->c->path);
    if (!r->version)
        return HN_FAIL(r->err, HONE_E_UNSUPPORTED,
                       "%s: not an RWKV-6 or RWKV-7 checkpoint: of its %zu tensors none is blocks.0.att.r_k or "
                       "blocks.0.att.time_maa_x (or so named by "
                       "Hugging Face)",
                       r->c->path, r->c->n);
    return HONE_OK;
}

/* E, vocabulary and layers; rwkv.cpp's header must agree. */
static hone_status find_body(rwkv *r)
{
    const named *emb = find(&r->names, "emb.weight");
    const hn_ckpt *c = r->c;
    hone_status st;
    if (!emb) return missing(r, "emb.weight");
    if (emb->t->n_dim != 2) return bad_shape(r, emb->t, "[vocabulary, width]");
    r->size[D_E] = emb->t->ne[0];
    r->size[D_V] = emb->t->ne[1];
    TRY(limit(r, "its width", r->size[D_E], HN_MAX_EMBD));
    TRY(limit(r, "its vocabulary", r->size[D_V], HN_MAX_VOCAB));
    while (r->n_layer <= HN_MAX_LAYER && find(&r->names, SAY("blocks.%llu.ln1.weight", LL(r->n_layer)))) r->n_layer++;
    if (!r->n_layer) return missing(r, "blocks.0.ln1.weight");
    TRY(limit(r, "the number of its blocks", r->n_layer, HN_MAX_LAYER));
    if (c->rwkv_cpp && (c->n_vocab != r->size[D_V] || c->n_embd != r->size[D_E] || c->n_layer != r->n_layer))
        return HN_FAIL(
            r->err, HONE_E_FORMAT,
            "%s: its header says n_vocab %u, n_embed %u, n_layer %u; expected %llu, %llu and %llu as its tensors have",
            c->path, c->n_vocab, c->n_embd, c->n_layer, LL(r->size[D_V]), LL(r->size[D_E]), LL(r->n_layer));
    return HONE_OK;
}

static double number_of(const rwkv *r, const char *key, const char *other)
{
    const hn_member *m = hn_config_get(&r->c->config, key);
    if (!m && other) m = hn_config_get(&r->c->config, other);
    return m && m->kind == HN_J_NUMBER ? m->num : 0;
}

/* Head size: the fastest dimension of r_k [H, N] or time_faaaa [H, N] or, in rwkv.cpp, [H, N, 1]. */
static hone_status find_heads(rwkv *r)
{
    const char *name = r->version == 7 ? "blocks.0.att.r_k" : "blocks.0.att.time_faaaa";
    const named *m = find(&r->names, name);
    uint64_t ne[HN_CKPT_MAX_DIM], e = r->size[D_E];
    hone_status st;
    if (!m) return missing(r, name);
    int n = squeeze(m->t, ne);
    double said = number_of(r, "head_dim", "head_size");
    if (m->t->n_dim == 1) { /* flat: only a config can tell */
        if (said < 1 || said > (double)e)
            return bad_shape(r, m->t, "[heads, head size], or a config.json with head_dim");
        ne[0] = (uint64_t)said;
    } else if (n > 2 || ne[0] * ne[1] != e) { /* each below 2^48: its bytes lie in a file */
        return bad_shape(r, m->t, SAY("[heads, head size] with a product of %llu", LL(e)));
    }
    if (e % ne[0]) return bad_shape(r, m->t, SAY("heads that divide %llu", LL(e)));
    r->head = ne[0];
    r->n_head = e / ne[0];
    TRY(limit(r, "the number of its heads", r->n_head, HN_MAX_HEAD));
    return HONE_OK;
}

/* [in][out] or [out][in]? Where no shape tells, the matrices that are not square do. */
static void find_orientation(rwkv *r)
{
    static const char *const low[] = { "w1",           "w2", "a1", "a2",          "v1",
                                       "v2",           "g1", "g2", "time_maa_w1", "time_decay_w1",
                                       "time_decay_w2" };
    uint64_t e = r->size[D_E];
    r->swapped = -1;
    for (size_t i = 0; i < sizeof low / sizeof *low && r->swapped < 0; i++) {
        const named *m = find(&r->names, SAY("blocks.%d.att.%s", low[i][0] == 'v' && r->n_layer > 1 ? 1 : 0, low[i]));
        bool first = low[i][strlen(low[i]) - 1] == '1'; /* E is its input */
        if (m && m->t->n_dim == 2 && m->t->ne[0] != m->t->ne[1]) r->swapped = (m->t->ne[0] == e) != first;
    }
}

static hone_status find_sizes(rwkv *r)
{
    static const struct {
        const char *name;
        dim d;
        uint64_t multiple;
    } ranks[2][4] = {
        { { "time_maa_w1", D_X5, 5 }, { "time_decay_w1", D_D, 1 } },
        { { "w1", D_W, 1 }, { "a1", D_A, 1 }, { "g1", D_G, 1 }, { "v1", D_VR, 1 } },
    };
    hone_status st;
    TRY(find_version(r));
    TRY(find_body(r));
    TRY(find_heads(r));
    const named *ff = find(&r->names, "blocks.0.ffn.key.weight");
    if (!ff) return missing(r, "blocks.0.ffn.key.weight");
    if (ff->t->n_dim != 2) return bad_shape(r, ff->t, "a matrix");
    r->size[D_F] = ff->t->ne[1];
    TRY(limit(r, "its feed-forward width", r->size[D_F], HN_MAX_FF));
    for (int i = 0; i < 4 && ranks[r->version - 6][i].name; i++) {
        const char *name = ranks[r->version - 6][i].name;
        dim d = ranks[r->version - 6][i].d;
        if (d == D_VR && r->n_layer == 1) {
            r->size[d] = r->size[D_A];
            continue;
        } /* only copies of a0, a1, a2 */
        TRY(rank_of(r, SAY("blocks.%d.att.%s", d == D_VR, name), ranks[r->version - 6][i].multiple, &r->size[d]));
    }
    r->size[D_X] = r->size[D_X5] / 5;
    find_orientation(r);
    return HONE_OK;
}

/* ---- config.json ------------------------------------------------------------------------------ */

bool hn_convert_rwkv_knows(const char *arch, size_t len, int *version)
{
    static const char *const map[][2] = { { "RWKV7ForCausalLM|Rwkv7ForCausalLM|rwkv7", "7" },
                                          { "Rwkv6ForCausalLM|rwkv6", "6" },
                                          { "", "" } };
    const char *v = one_of(arch, len, map);
    *version = v ? *v - '0' : 0;
    return v != NULL;
}

static hone_status config_says(const rwkv *r, const hn_member *m, const char *expected)
{
    char seen[64];
    if (m->kind == HN_J_NUMBER) snprintf(seen, sizeof seen, "%.9g", m->num);
    else if (m->kind == HN_J_BOOL) snprintf(seen, sizeof seen, "%s", m->num != 0 ? "true" : "false");
    else hn_escape(seen, sizeof seen, m->str.ptr, m->str.len);
    return HN_FAIL(r->err, m->kind == HN_J_NUMBER ? HONE_E_FORMAT : HONE_E_UNSUPPORTED, "%s: %s is %s, expected %s",
                   r->c->config.path, HN_ESC(m->key.ptr, m->key.len), seen, expected);
}

static hone_status check_number(const rwkv *r, const char *key, uint64_t want)
{
    const hn_member *m = hn_config_get(&r->c->config, key);
    return !m || (m->kind == HN_J_NUMBER && m->num == (double)want)
               ? HONE_OK
               : config_says(r, m, SAY("%llu as in the tensors", LL(want)));
}

/* value_dim may be a list, one for each layer. */
static hone_status check_value_dim(const rwkv *r)
{
    const hn_member *m = hn_config_get(&r->c->config, "value_dim");
    hn_jread j;
    uint64_t v;
    bool more;
    hone_status st;
    if (!m || m->kind != HN_J_OTHER || *m->str.ptr != '[') return check_number(r, "value_dim", r->size[D_E]);
    TRY(hn_ckpt_json(&j, (char *)(uintptr_t)m->str.ptr, m->str.len, r->c->config.path, "value_dim", r->err));
    for (st = hn_jread_open(&j, '[', &more); st == HONE_OK && more; st = hn_jread_next(&j, '[', &more)) {
        if (hn_jread_peek(&j) == 'n') {
            TRY(hn_jread_skip(&j));
            continue;
        }
        TRY(hn_jread_u64(&j, &v));
        if (v != r->size[D_E]) return config_says(r, m, SAY("%llu everywhere", LL(r->size[D_E])));
    }
    return st;
}

/* What the tensors do not show and hone does not compute. */
static hone_status check_meaning(const rwkv *r)
{
    static const struct {
        const char *key;
        bool want;
    } flags[] = {
        { "norm_bias", true },
        { "norm_first", true },
        { "tie_word_embeddings", false },
        { "use_deep_embed", false },
        { "embedding_layer_norm_fused", false },
        { "wkv_has_gate", true },
    };
    static const char *const absent[] = { "attn", "quantization_config", "text_config" };
    const hn_config *c = &r->c->config;
    const hn_member *m;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if ((m = hn_config_get(c, flags[i].key)) && (m->kind != HN_J_BOOL || (m->num != 0) != flags[i].want))
            return config_says(r, m, flags[i].want ? "true" : "false");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if ((m = hn_config_get(c, absent[i])))
            return config_says(r, m, "null: hone knows neither hybrid nor quantized checkpoints of this kind");
    if ((m = hn_config_get(c, "hidden_act")) && (m->kind != HN_J_STRING || !part_is(m->str.ptr, m->str.len, "sqrelu")))
        return config_says(r, m, "sqrelu");
    double eps = 1e-5;
    static const char *const eps_keys[] = { "norm_eps", "layer_norm_epsilon" };
    for (int i = 0; i < 2; i++)
        if ((m = hn_config_get(c, eps_keys[i]))) {
            eps = m->kind == HN_J_NUMBER ? m->num : 0;
            if (fabs(eps - 1e-5) > 1e-11) return config_says(r, m, "1e-05");
        }
    if ((m = hn_config_get(c, "group_norm_epsilon"))) {
        if (m->kind != HN_J_NUMBER || fabs(m->num - 64e-5) > 1e-9) return config_says(r, m, "0.00064");
    } else if (r->version == 7 && (m = hn_config_get(c, "head_dim")) && m->kind == HN_J_NUMBER && m->num != 64) {
        return config_says(r, m, "64: for other sizes the group norm's epsilon would not be 0.00064");
    }
    if ((m = hn_config_get(c, "head_size_divisor")) && (m->kind != HN_J_NUMBER || m->num != 8))
        return config_says(r, m, "8: the group norm's epsilon would not be 0.00064");
    return HONE_OK;
}

static hone_status check_config(const rwkv *r)
{
    static const struct {
        const char *key;
        dim d;
        int version;
    } sizes[] = {
        { "hidden_size", D_E, 0 },        { "vocab_size", D_V, 0 },
        { "intermediate_size", D_F, 0 },  { "attention_hidden_size", D_E, 0 },
        { "decay_low_rank_dim", D_W, 7 }, { "lora_rank_decay", D_W, 7 },
        { "a_low_rank_dim", D_A, 7 },     { "lora_rank_iclr", D_A, 7 },
        { "gate_low_rank_dim", D_G, 7 },  { "lora_rank_gate", D_G, 7 },
        { "v_low_rank_dim", D_VR, 7 },    { "lora_rank_value_residual_mix", D_VR, 7 },
    };
    const hn_config *c = &r->c->config;
    hone_status st;
    if (!c->n) return HONE_OK;
    if (r->c->version != r->version)
        return HN_FAIL(r->err, HONE_E_FORMAT, "%s: names RWKV-%d, but the tensors are those of RWKV-%d", c->path,
                       r->c->version, r->version);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].version && sizes[i].version != r->version) continue;
        if (sizes[i].d == D_VR && r->n_layer == 1) continue; /* no tensor has it */
        TRY(check_number(r, sizes[i].key, r->size[sizes[i].d]));
    }
    TRY(check_number(r, "num_hidden_layers", r->n_layer));
    TRY(check_number(r, "head_dim", r->head));
    TRY(check_number(r, "head_size", r->head));
    TRY(check_value_dim(r));
    return check_meaning(r);
}

/* ---- plan -------------------------------------------------------------------------------------- */

typedef enum kind {
    MATRIX, /* [b, a] */
    VECTOR, /* [a], however many ones stand around it */
    FLAT,   /* [a], also as [heads, head size] */
    LOW,    /* [b, a], or the other way round: then transposed */
    LOWS,   /* five of them: [5, b, a] */
    HEADS   /* [heads, head size] */
} kind;
/* a: fastest dimension of the result. f32: kept so whatever the type asked for. */
typedef struct rule {
    const char *from, *to;
    kind kind;
    dim a, b;
    bool f32;
} rule;

static const rule outside[] = {
    { "emb.weight", "token_embd.weight", MATRIX, D_E, D_V, false },
    { "head.weight", "output.weight", MATRIX, D_E, D_V, false },
    { "ln_out.weight", "output_norm.weight", VECTOR, D_E, 0, true },
    { "ln_out.bias", "output_norm.bias", VECTOR, D_E, 0, true },
    { "blocks.0.ln0.weight", "token_embd_norm.weight", VECTOR, D_E, 0, true },
    { "blocks.0.ln0.bias", "token_embd_norm.bias", VECTOR, D_E, 0, true },
};
static const rule both[] = {
    { "ln1.weight", "attn_norm.weight", VECTOR, D_E, 0, true },
    { "ln1.bias", "attn_norm.bias", VECTOR, D_E, 0, true },
    { "ln2.weight", "attn_norm_2.weight", VECTOR, D_E, 0, true },
    { "ln2.bias", "attn_norm_2.bias", VECTOR, D_E, 0, true },
    { "att.receptance.weight", "time_mix_receptance.weight", MATRIX, D_E, D_E, false },
    { "att.key.weight", "time_mix_key.weight", MATRIX, D_E, D_E, false },
    { "att.value.weight", "time_mix_value.weight", MATRIX, D_E, D_E, false },
    { "att.output.weight", "time_mix_output.weight", MATRIX, D_E, D_E, false },
    { "att.ln_x.weight", "time_mix_ln.weight", VECTOR, D_E, 0, true },
    { "att.ln_x.bias", "time_mix_ln.bias", VECTOR, D_E, 0, true },
    { "ffn.key.weight", "channel_mix_key.weight", MATRIX, D_E, D_F, false },
    { "ffn.value.weight", "channel_mix_value.weight", MATRIX, D_F, D_E, false },
};
static const rule only7[] = {
    { "att.w0", "time_mix_w0.weight", VECTOR, D_E, 0, true },
    { "att.w1", "time_mix_w1.weight", LOW, D_E, D_W, true },
    { "att.w2", "time_mix_w2.weight", LOW, D_W, D_E, true },
    { "att.a0", "time_mix_a0.weight", VECTOR, D_E, 0, true },
    { "att.a1", "time_mix_a1.weight", LOW, D_E, D_A, false },
    { "att.a2", "time_mix_a2.weight", LOW, D_A, D_E, false },
    { "att.g1", "time_mix_g1.weight", LOW, D_E, D_G, false },
    { "att.g2", "time_mix_g2.weight", LOW, D_G, D_E, false },
    { "att.k_k", "time_mix_k_k.weight", VECTOR, D_E, 0, true },
    { "att.k_a", "time_mix_k_a.weight", VECTOR, D_E, 0, true },
    { "att.r_k", "time_mix_r_k.weight", FLAT, D_E, 0, true },
    { "ffn.x_k", "channel_mix_lerp_k.weight", VECTOR, D_E, 0, true },
};
static const rule value7[] = {
    /* block 0 has copies of a0, a1, a2 instead, which are not used */
    { "att.v0", "time_mix_v0.weight", VECTOR, D_E, 0, true },
    { "att.v1", "time_mix_v1.weight", LOW, D_E, D_VR, false },
    { "att.v2", "time_mix_v2.weight", LOW, D_VR, D_E, false },
};
static const rule value7_of_0[] = {
    { "att.a0", "time_mix_v0.weight", VECTOR, D_E, 0, true },
    { "att.a1", "time_mix_v1.weight", LOW, D_E, D_A, false },
    { "att.a2", "time_mix_v2.weight", LOW, D_A, D_E, false },
};
static const rule only6[] = {
    { "att.time_maa_x", "time_mix_lerp_x.weight", VECTOR, D_E, 0, true },
    { "att.time_maa_w1", "time_mix_w1.weight", LOW, D_E, D_X5, true },
    { "att.time_maa_w2", "time_mix_w2.weight", LOWS, D_X, D_E, true },
    { "att.time_decay", "time_mix_decay.weight", FLAT, D_E, 0, true },
    { "att.time_decay_w1", "time_mix_decay_w1.weight", LOW, D_E, D_D, true },
    { "att.time_decay_w2", "time_mix_decay_w2.weight", LOW, D_D, D_E, true },
    { "att.time_faaaa", "time_mix_first.weight", HEADS, 0, 0, true },
    { "att.gate.weight", "time_mix_gate.weight", MATRIX, D_E, D_E, false },
    { "ffn.time_maa_k", "channel_mix_lerp_k.weight", VECTOR, D_E, 0, true },
    { "ffn.time_maa_r", "channel_mix_lerp_r.weight", VECTOR, D_E, 0, true },
    { "ffn.receptance.weight", "channel_mix_receptance.weight", MATRIX, D_E, D_E, false },
};

/* Whether t, a low-rank matrix (or five) with input a and output b, must be transposed. */
static hone_status orient(rwkv *r, const named *m, uint64_t mats, uint64_t a, uint64_t b, bool *swap)
{
    const hn_ckpt_tensor *t = m->t;
    uint64_t x = t->ne[0], y = t->ne[1];
    bool dims = mats == 1 ? t->n_dim == 2 : t->n_dim == 3 && t->ne[2] == mats;
    bool straight = dims && x == a && y == b, turned = dims && x == b && y == a;
    const char *times = mats == 1 ? "" : SAY("%llu, ", LL(mats));
    if (!straight && !turned)
        return bad_shape(r, t, SAY("[%s%llu, %llu] or [%s%llu, %llu]", times, LL(a), LL(b), times, LL(b), LL(a)));
    *swap = straight && turned ? (r->swapped >= 0 ? r->swapped : !m->linear && !r->c->rwkv_cpp) : turned;
    if (*swap && mats * a * b > HN_PLAN_MAX_TRANSPOSED)
        return HN_FAIL(r->err, HONE_E_UNSUPPORTED, "%s: %s has shape %s, expected at most %d elements to transpose",
                       path_of(r, t), HN_ESC(t->name.ptr, t->name.len), HN_SHAPE(t), HN_PLAN_MAX_TRANSPOSED);
    return HONE_OK;
}

static hone_status add_rule(rwkv *r, const rule *u, int64_t layer)
{
    char name[64];
    hn_plan_tensor t = { .n_src = 1, .always_f32 = u->f32, .n_dim = 1, .ne = { r->size[u->a], 1, 1, 1 } };
    uint64_t a = r->size[u->a], b = r->size[u->b], ne[HN_CKPT_MAX_DIM];
    bool swap = false;
    hone_status st;
    if (layer < 0) snprintf(name, sizeof name, "%s", u->from), snprintf(t.name, sizeof t.name, "%s", u->to);
    else
        snprintf(name, sizeof name, "blocks.%d.%s", (int)layer, u->from),
            snprintf(t.name, sizeof t.name, "blk.%d.%s", (int)layer, u->to);
    named *m = find(&r->names, name);
    if (!m) return missing(r, name);
    m->used = true;
    t.src[0] = m->t;
    int n = squeeze(m->t, ne);
    switch (u->kind) {
    case MATRIX:
        if (m->t->n_dim != 2 || m->t->ne[0] != a || m->t->ne[1] != b)
            return bad_shape(r, m->t, SAY("[%llu, %llu]", LL(b), LL(a)));
        t.n_dim = 2;
        t.ne[1] = b;
        break;
    case VECTOR:
        if (n > 1 || ne[0] != a) return bad_shape(r, m->t, SAY("[%llu]", LL(a)));
        break;
    case FLAT:
    case HEADS:
        if (u->kind == HEADS) t.n_dim = 2, t.ne[0] = r->head, t.ne[1] = r->n_head;
        if ((n > 1 || ne[0] != r->size[D_E]) && (n != 2 || ne[0] != r->head || ne[1] != r->n_head))
            return bad_shape(r, m->t,
                             SAY("[%llu, %llu]%s", LL(r->n_head), LL(r->head),
                                 u->kind == FLAT ? SAY(" or [%llu]", LL(r->size[D_E])) : ""));
        break;
    case LOW:
    case LOWS: {
        uint64_t mats = u->kind == LOWS ? 5 : 1;
        TRY(orient(r, m, mats, a, b, &swap));
        t.n_dim = u->kind == LOWS ? 3 : 2;
        t.ne[1] = b;
        t.ne[2] = mats;
        if (swap) t.n_mat = mats, t.n_row = a, t.n_col = b;
        break;
    }
    }
    return hn_plan_add(&r->plan, &t, r->err);
}

static hone_status add_rules(rwkv *r, const rule *u, size_t n, int64_t layer)
{
    hone_status st;
    for (size_t i = 0; i < n; i++) TRY(add_rule(r, &u[i], layer));
    return HONE_OK;
}
#define RULES(r, list, layer) add_rules((r), (list), sizeof(list) / sizeof *(list), (layer))

/* The interpolation weights side by side: one tensor already, or one for each. */
static hone_status add_fused(rwkv *r, uint64_t layer)
{
    static const char *const whole[] = { "att.x_rwkvag", "att.x_x" };
    const char *order = r->version == 7 ? "rwkvag" : "wkvrg", *stem = r->version == 7 ? "att.x_" : "att.time_maa_";
    hn_plan_tensor t = { .n_src = 1, .always_f32 = true, .n_dim = 4, .ne = { r->size[D_E], 1, 1, strlen(order) } };
    uint64_t ne[HN_CKPT_MAX_DIM];
    snprintf(t.name, sizeof t.name, "blk.%d.time_mix_lerp_fused.weight", (int)layer);
    for (int i = 0; i < 2 && r->version == 7; i++) {
        named *m = find(&r->names, SAY("blocks.%llu.%s", LL(layer), whole[i]));
        if (!m) continue;
        if (squeeze(m->t, ne) != (r->size[D_E] > 1 ? 2 : 1) || m->t->ne[0] != r->size[D_E] ||
            ne[r->size[D_E] > 1] != t.ne[3])
            return bad_shape(r, m->t, SAY("[%llu, %llu]", LL(t.ne[3]), LL(r->size[D_E])));
        m->used = true;
        t.src[0] = m->t;
        return hn_plan_add(&r->plan, &t, r->err);
    }
    for (t.n_src = 0; order[t.n_src]; t.n_src++) {
        const char *name = SAY("blocks.%llu.%s%c", LL(layer), stem, order[t.n_src]);
        named *m = find(&r->names, name);
        if (!m) return missing(r, name);
        if (squeeze(m->t, ne) > 1 || ne[0] != r->size[D_E]) return bad_shape(r, m->t, SAY("[%llu]", LL(r->size[D_E])));
        m->used = true;
        t.src[t.n_src] = m->t;
    }
    return hn_plan_add(&r->plan, &t, r->err);
}

/* Block 0 mixes no value of an earlier one: what it has for that is dropped, whatever its rank. */
static hone_status drop_value_mix(rwkv *r)
{
    static const char *const dropped[] = { "blocks.0.att.v0", "blocks.0.att.v1", "blocks.0.att.v2" };
    uint64_t ne[HN_CKPT_MAX_DIM], e = r->size[D_E];
    for (int i = 0; i < 3; i++) {
        named *m = find(&r->names, dropped[i]);
        if (!m) continue;
        int n = squeeze(m->t, ne);
        if (i ? n > 2 || (ne[0] != e && ne[1] != e) : n > 1 || ne[0] != e)
            return bad_shape(r, m->t, i ? SAY("a low-rank matrix with %llu on one side", LL(e)) : SAY("[%llu]", LL(e)));
        m->used = true;
    }
    return HONE_OK;
}

static hone_status check_used(const rwkv *r)
{
    for (size_t i = 0; i < r->names.n; i++) {
        const named *m = &r->names.t[i];
        if (m->used) continue;
        const char *name = HN_ESC(m->t->name.ptr, m->t->name.len);
        if (strstr(m->name.ptr ? SAY("%.*s", (int)(m->name.len < 90 ? m->name.len : 90), m->name.ptr) : "", "s_emb") ||
            (m->name.len > 4 && !memcmp(m->name.ptr, "qkv.", 4)))
            return HN_FAIL(
                r->err, HONE_E_UNSUPPORTED,
                "%s: %s belongs to RWKV-7a or 7b (deep embedding), which hone does not convert; expected RWKV-%d",
                path_of(r, m->t), name, r->version);
        return HN_FAIL(r->err, HONE_E_FORMAT, "%s: %s, of shape %s, is no tensor of RWKV-%d with %llu blocks",
                       path_of(r, m->t), name, HN_SHAPE(m->t), r->version, LL(r->n_layer));
    }
    return HONE_OK;
}

static hone_status make_plan(rwkv *r)
{
    hone_status st;
    TRY(RULES(r, outside, -1));
    for (uint64_t il = 0; il < r->n_layer; il++) {
        int64_t l = (int64_t)il;
        TRY(RULES(r, both, l));
        TRY(add_fused(r, il));
        if (r->version == 6) {
            TRY(RULES(r, only6, l));
            continue;
        }
        TRY(RULES(r, only7, l));
        TRY(il ? RULES(r, value7, l) : RULES(r, value7_of_0, l));
    }
    if (r->version == 7) TRY(drop_value_mix(r));
    return check_used(r);
}

/* ---- metadata ------------------------------------------------------------------------------------ */

static hone_status put_meta(hn_gguf_writer *w, const rwkv *r, bool tokenizer)
{
    static const struct {
        const char *key;
        dim d;
        int version;
    } sizes[] = {
        { "embedding_length", D_E, 0 },
        { "feed_forward_length", D_F, 0 },
        { "time_mix_extra_dim", D_X, 6 },
        { "time_decay_extra_dim", D_D, 6 },
        { "attention.decay_lora_rank", D_W, 7 },
        { "attention.iclr_lora_rank", D_A, 7 },
        { "attention.value_residual_mix_lora_rank", D_VR, 7 },
        { "attention.gate_lora_rank", D_G, 7 },
    };
    hone_error *err = r->err;
    const char *arch = r->version == 7 ? "rwkv7" : "rwkv6";
    hone_status st;
#define KEY(suffix) SAY("%s.%s", arch, suffix)
    TRY(hn_gguf_put_str(w, "general.architecture", arch, 5, err));
    TRY(hn_gguf_put_str(w, "general.type", "model", 5, err));
    TRY(hn_put_name(w, r->c->path, err));
    TRY(hn_gguf_put_u32(w, "general.file_type", r->plan.file_type, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    TRY(hn_gguf_put_u32(w, KEY("context_length"), 1048576, err)); /* it has none */
    TRY(hn_gguf_put_u32(w, KEY("block_count"), (uint32_t)r->n_layer, err));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!sizes[i].version || sizes[i].version == r->version)
            TRY(hn_gguf_put_u32(w, KEY(sizes[i].key), (uint32_t)r->size[sizes[i].d], err));
    TRY(hn_gguf_put_f32(w, KEY("attention.layer_norm_epsilon"), 1e-5f, err));
    TRY(hn_gguf_put_u32(w, KEY("wkv.head_size"), (uint32_t)r->head, err));
    if (r->version == 6) TRY(hn_gguf_put_u32(w, KEY("rescale_every_n_layers"), 0, err)); /* nothing is divided */
    TRY(hn_gguf_put_u32(w, KEY("attention.head_count"), 0, err));
    if (!tokenizer) TRY(hn_gguf_put_u32(w, KEY("vocab_size"), (uint32_t)r->size[D_V], err));
#undef KEY
    return HONE_OK;
}

/* Whether a file is there, and its path. A file that cannot be looked at is an error: without it the model would lack
 * its tokenizer, or its chat template. */
static hone_status in_folder(bool *there, const char *folder, const char *file, char *path, size_t cap, hone_error *err)
{
    struct stat sb;
    int n = snprintf(path, cap, "%s/%s", folder, file);
    bool fits = n > 0 && (size_t)n < cap;
    int rc = fits ? stat(path, &sb) : 0;
    *there = fits && rc == 0 && S_ISREG(sb.st_mode);
    if (rc == 0 || errno == ENOENT || errno == ENOTDIR) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
}

/* The vocabulary that was named, or lies in the folder; the folder's chat template, if it has one. */
static hone_status put_tokenizer(hn_gguf_writer *w, const rwkv *r, const char *path)
{
    enum { MAX_TEMPLATE = 1 << 20 };
    char file[4352], *text = NULL;
    hn_config tc = { 0 };
    const hn_member *m = NULL;
    hone_str chat = { "rwkv-world", 10 };
    bool jinja = false, config = false;
    hone_status st = in_folder(&jinja, r->c->path, "chat_template.jinja", file, sizeof file, r->err);
    if (st == HONE_OK && !jinja)
        st = in_folder(&config, r->c->path, "tokenizer_config.json", file, sizeof file, r->err);
    if (st == HONE_OK && jinja) {
        if ((st = hn_source_text(&text, &chat.len, file, MAX_TEMPLATE, r->err)) == HONE_OK) chat.ptr = text;
    } else if (st == HONE_OK && config) {
        if ((st = hn_config_load(&tc, file, r->err)) == HONE_OK && (m = hn_config_get(&tc, "chat_template")) &&
            m->kind == HN_J_STRING)
            chat = m->str;
    }
    if (st == HONE_OK && !chat.len) chat = (hone_str){ "rwkv-world", 10 };
    if (st == HONE_OK) st = hn_world_put(w, path, r->size[D_V], chat, r->c->path, r->err);
    hn_config_free(&tc);
    free(text);
    return st;
}

hone_status hn_convert_rwkv_follow(hn_plan *plan, hn_gguf_writer *w, const hn_ckpt *c, hone_error *err)
{
    rwkv r = { .c = c, .err = err };
    hone_status st = names_make(&r.names, c, err);
    if (st == HONE_OK) st = find_sizes(&r);
    if (st == HONE_OK) st = check_config(&r);
    if (st == HONE_OK) st = make_plan(&r);
    if (st == HONE_OK) st = put_meta(w, &r, true);
    *plan = r.plan;
    names_free(&r.names);
    return st;
}

hone_status hn_convert_rwkv(const hn_convert *a, const hn_ckpt *c, hone_error *err)
{
    char found[4352];
    rwkv r = { .c = c, .err = err };
    hn_gguf_writer *w = NULL;
    const char *tokenizer = a->tokenizer;
    hone_status st;
    bool there = false;
    if (!tokenizer && (st = in_folder(&there, a->src, "rwkv_vocab_v20230424.txt", found, sizeof found, err)) != HONE_OK)
        goto end;
    if (there) tokenizer = found;
    if ((st = names_make(&r.names, c, err)) != HONE_OK) goto end;
    if ((st = find_sizes(&r)) != HONE_OK || (st = check_config(&r)) != HONE_OK || (st = make_plan(&r)) != HONE_OK)
        goto end;
    hn_mix_model mix = { .arch = r.version == 7 ? "rwkv7" : "rwkv6", .n_layer = (int32_t)r.n_layer };
    if ((st = hn_plan_types(&r.plan, c, a->type, &mix, a->pr, err)) != HONE_OK) goto end;
    if ((st = hn_gguf_writer_new(&w, err)) != HONE_OK) goto end;
    if ((st = put_meta(w, &r, tokenizer != NULL)) != HONE_OK) goto end;
    if (tokenizer && (st = put_tokenizer(w, &r, tokenizer)) != HONE_OK) goto end;
    st = hn_plan_write(&r.plan, c, w, a->dst, a->pr, err);
end:
    hn_gguf_writer_free(w);
    hn_plan_free(&r.plan);
    names_free(&r.names);
    return st;
}
