/* Adapters of sessions: which weights of which layer they change, and switching them
 * without touching the base. An adapter is immutable once open and counted: sessions
 * that use it keep it. Refuses to know files and products. */
#include "base/floats.h"
#include "engine/engine.h"
#include "engine/prefix.h"
#include "model/lora.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct hone_adapter {
    hn_lora *lora;
    const hone_model *model;
    float **bt;                /* [n_pair] B transposed, [rank][n_out] */
    const hn_gguf_tensor **of; /* [n_pair] what each is of */
    int32_t rank;
    uint64_t n_params;
    _Atomic int32_t users;
    _Atomic bool closed; /* by who opened it */
    hn_adapter_mark *mark;
};

/* How many handles of one adapter, the same content for the same model, are open: what was computed with one of them
 * can be asked for with another. It outlives them where such is kept. */
struct hn_adapter_mark {
    const hone_model *model;
    uint64_t hash;
    _Atomic int32_t n_open, holders; /* holders, of it: handles and what is kept */
    hn_adapter_mark *next;           /* guarded by marks_lock */
};

static pthread_mutex_t marks_lock = PTHREAD_MUTEX_INITIALIZER;
static hn_adapter_mark *marks; /* all that are held; guarded by marks_lock */

/* The mark of one more handle; NULL: no memory. */
static hn_adapter_mark *take_mark(const hone_model *m, uint64_t hash)
{
    pthread_mutex_lock(&marks_lock);
    hn_adapter_mark *k = marks;
    while (k && (k->model != m || k->hash != hash)) k = k->next;
    if (!k && (k = calloc(1, sizeof *k))) {
        *k = (hn_adapter_mark){ .model = m, .hash = hash, .next = marks };
        marks = k;
    }
    if (k) k->n_open++;
    if (k) k->holders++;
    pthread_mutex_unlock(&marks_lock);
    return k;
}

static void drop_mark(hn_adapter_mark *mark)
{
    pthread_mutex_lock(&marks_lock);
    if (mark && --mark->holders == 0) {
        hn_adapter_mark **at = &marks;
        while (*at != mark) at = &(*at)->next;
        *at = mark->next;
        free(mark);
    }
    pthread_mutex_unlock(&marks_lock);
}

static void release(hone_adapter *a)
{
    if (!a || atomic_fetch_sub(&a->users, 1) > 1) return;
    drop_mark(a->mark);
    for (int32_t i = 0; a->lora && a->bt && i < a->lora->n_pair; i++) free(a->bt[i]);
    free(a->bt);
    free(a->of);
    hn_lora_close(a->lora);
    free(a);
}

hone_status hone_adapter_open(hone_adapter **out, const hone_model *m, const char *path, hone_error *err)
{
    HN_FLOATS;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the adapter");
    HN_NEED(err, m, "an open model");
    HN_NEED(err, path, "the path of a GGUF file or a PEFT folder");
    hone_adapter *a = calloc(1, sizeof *a);
    if (!a) return HN_FAIL(err, HONE_E_NOMEM, "adapter handle");
    atomic_init(&a->users, 1);
    a->model = m;
    hone_status st = hn_lora_open(&a->lora, m, path, err);
    if (st == HONE_OK && (!(a->bt = calloc((size_t)a->lora->n_pair, sizeof *a->bt)) ||
                          !(a->of = calloc((size_t)a->lora->n_pair, sizeof *a->of))))
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: %d pairs", path, a->lora->n_pair);
    for (int32_t i = 0; st == HONE_OK && i < a->lora->n_pair; i++) {
        hn_lora_pair *p = &a->lora->pair[i];
        if (!(a->bt[i] = malloc((size_t)(p->rank * p->n_out) * sizeof(float)))) {
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: %s", path, p->name);
            break;
        }
        for (int64_t r = 0; r < p->n_out; r++)
            for (int64_t j = 0; j < p->rank; j++) a->bt[i][j * p->n_out + r] = p->b[r * p->rank + j];
        free(p->b);
        p->b = NULL;
        a->of[i] = hn_gguf_find_tensor(m->file, p->name);
        a->rank = p->rank > a->rank ? (int32_t)p->rank : a->rank;
        a->n_params += (uint64_t)(p->rank * (p->n_in + p->n_out));
    }
    if (st == HONE_OK && !(a->mark = take_mark(m, a->lora->hash)))
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: adapter handle", path);
    if (st == HONE_OK) *out = a;
    else release(a);
    return st;
}

void hone_adapter_close(hone_adapter *a)
{
    if (!a) return;
    a->closed = true;
    a->mark->n_open--;
    release(a);
}

void hone_adapter_get_info(const hone_adapter *a, hone_adapter_info *out)
{
    if (!out) return;
    *out = (hone_adapter_info){ 0 };
    if (!a) return;
    *out = (hone_adapter_info){ .path = a->lora->path,
                                .name = a->lora->name,
                                .n_pairs = a->lora->n_pair,
                                .rank = a->rank,
                                .n_params = a->n_params,
                                .hash = a->lora->hash,
                                .base_identity = a->lora->base_identity,
                                .chat_template = a->lora->chat_template };
}

/* ---- what sequences run with ------------------------------------------------------------------------ */

static void free_set(hn_adapter_set *set)
{
    if (!set) return;
    for (int32_t i = 0; i < set->n; i++) release(set->adapter[i]);
    free(set->adapter);
    free(set->scale);
    free(set->delta);
    free((void *)(uintptr_t)set->of.of);
    free(set);
}

void hn_seq_use_set(hone_session *s, int32_t seq, hn_adapter_set *set)
{
    hn_adapter_set *old = s->set[seq];
    if (set) set->users++;
    if (old && --old->users == 0) free_set(old);
    s->set[seq] = set;
    if (s->mem) s->mem->key[seq].adapters = hn_seq_set_hash(s, seq);
}

bool hn_seq_set_is_closed(const hone_session *s, int32_t seq)
{
    const hn_adapter_set *set = s->set[seq];
    for (int32_t i = 0; set && i < set->n; i++)
        if (set->adapter[i]->closed) return true;
    return false;
}

/* ---- what is kept was computed with ----------------------------------------------------------------- */

static void forget_kept(hone_session *s, int32_t i)
{
    drop_mark(s->kept[i].mark);
    s->kept[i] = s->kept[--s->n_kept];
}

/* Room for one more: of what is kept no more, else new. False: no memory. */
static bool more_kept(hone_session *s)
{
    for (int32_t i = s->n_kept; i-- > 0;)
        if (!hn_prefix_has_adapters(s->mem, s->kept[i].hash)) forget_kept(s, i);
    if (s->n_kept <= s->cap_kept / 2 && s->n_kept < s->cap_kept) return true;
    int32_t cap = 2 * s->cap_kept + 8;
    hn_kept_with *kept = realloc(s->kept, (size_t)cap * sizeof *kept);
    if (!kept) return false;
    s->kept = kept;
    s->cap_kept = cap;
    return true;
}

bool hn_adapters_note(hone_session *s, int32_t seq)
{
    const hn_adapter_set *set = s->set[seq];
    for (int32_t i = 0; set && i < set->n; i++) {
        hn_kept_with new = { set->hash, set->adapter[i]->mark };
        int32_t k = 0;
        while (k < s->n_kept && (s->kept[k].hash != new.hash || s->kept[k].mark != new.mark)) k++;
        if (k < s->n_kept) continue;
        if (s->n_kept == s->cap_kept && !more_kept(s)) return false;
        new.mark->holders++;
        s->kept[s->n_kept++] = new;
    }
    return true;
}

bool hn_adapters_drop_closed(hone_session *s)
{
    bool any = false;
    for (int32_t i = s->n_kept; i-- > 0;) {
        if (s->kept[i].mark->n_open > 0) continue;
        hn_prefix_drop_adapters(s->mem, s->kept[i].hash);
        forget_kept(s, i);
        any = true;
    }
    return any;
}

void hn_adapters_forget(hone_session *s)
{
    while (s->n_kept) forget_kept(s, s->n_kept - 1);
    free(s->kept);
}

typedef struct setter {
    const hn_adapter_set *set;
    hn_delta_list *of; /* by weight */
    hn_delta *next;    /* NULL: only count */
    size_t n_delta;
} setter;

static void set_weight(void *arg, const hn_weight *w, int32_t il)
{
    setter *k = arg;
    hn_delta_list *l = &k->of[w->id];
    *l = (hn_delta_list){ k->next, 0 };
    for (int32_t i = 0; i < k->set->n; i++) {
        const hone_adapter *a = k->set->adapter[i];
        for (int32_t p = 0; p < a->lora->n_pair; p++) {
            const hn_lora_pair *pair = &a->lora->pair[p];
            int64_t first;
            if (!hn_weight_is_of(w, a->of[p], &first)) continue;
            if (k->next)
                *k->next++ = (hn_delta){ .a = pair->a,
                                         .b = a->bt[p] + first,
                                         .ldb = pair->n_out,
                                         .rank = pair->rank,
                                         .scale = k->set->scale[i] * pair->scale };
            l->n++;
            k->n_delta++;
        }
    }
}

/* What each weight has of a set, which holds its adapters, and room for it in steps. */
static hone_status find_deltas(const hone_session *s, hn_adapter_set *set, hone_error *err)
{
    hn_delta_list *of = calloc((size_t)s->model->n_weight, sizeof *of);
    if (!of) return HN_FAIL(err, HONE_E_NOMEM, "table of %d weights for adapters", s->model->n_weight);
    set->of = (hn_adapters){ of, s->model->n_weight };
    setter k = { .set = set, .of = of };
    hn_each_weight(s->model, set_weight, &k);
    size_t n_delta = k.n_delta;
    if (!(set->delta = malloc((n_delta + 1) * sizeof *set->delta)))
        return HN_FAIL(err, HONE_E_NOMEM, "%zu pairs of adapters", n_delta);
    k = (setter){ .set = set, .of = of, .next = set->delta };
    hn_each_weight(s->model, set_weight, &k);
    if (!s->be->op->reserve(s->be, &set->of))
        return HN_FAIL(err, HONE_E_NOMEM, "scratch of %zu pairs of adapters for %d tokens", n_delta, s->n_chunk);
    return HONE_OK;
}

static bool same_set(const hn_adapter_set *a, const hn_adapter_set *b)
{
    return a && a->n == b->n && !memcmp(a->adapter, b->adapter, (size_t)a->n * sizeof(hone_adapter *)) &&
           !memcmp(a->scale, b->scale, (size_t)a->n * sizeof *a->scale);
}

/* What tells sets of adapters and scales apart; 0: none has an effect. */
static uint64_t hash_of(hone_adapter *const *adapters, const float *scales, int32_t n)
{
    uint64_t hash = HN_FNV_INIT;
    bool any = false;
    for (int32_t i = 0; i < n; i++) {
        float scale = scales ? scales[i] : 1.0f;
        if (scale == 0) continue;
        any = true;
        hash = hn_fnv1a(hn_fnv1a(hash, &adapters[i]->lora->hash, sizeof(uint64_t)), &scale, sizeof scale);
    }
    return any ? hash + (hash == 0) : 0;
}

/* The set of these adapters and scales, one that some sequence has or a new one without users. NULL: none. */
static hone_status make_set(const hone_session *s, hn_adapter_set **out, hone_adapter *const *adapters,
                            const float *scales, int32_t n, hone_error *err)
{
    hn_adapter_set *set = calloc(1, sizeof *set);
    *out = NULL;
    if (set) set->adapter = malloc(((size_t)n + 1) * sizeof *set->adapter);
    if (set) set->scale = malloc(((size_t)n + 1) * sizeof *set->scale);
    if (!set || !set->adapter || !set->scale) {
        free_set(set);
        return HN_FAIL(err, HONE_E_NOMEM, "%d adapters", n);
    }
    set->hash = hash_of(adapters, scales, n);
    for (int32_t i = 0; i < n; i++) {
        float scale = scales ? scales[i] : 1.0f;
        if (scale == 0) continue;
        set->scale[set->n] = scale;
        set->adapter[set->n++] = adapters[i];
        atomic_fetch_add(&adapters[i]->users, 1);
    }
    for (int32_t i = 0; set->n && i < s->n_seq && !*out; i++)
        if (same_set(s->set[i], set)) *out = s->set[i];
    hone_status st = !set->n || *out ? HONE_OK : find_deltas(s, set, err);
    if (set->n && !*out && st == HONE_OK) *out = set;
    else free_set(set);
    return st;
}

/* Of an adapter's pairs one whose scale, times the one that is asked for, is no finite number; NULL: none. */
static const hn_lora_pair *overflows(const hn_lora *l, float scale)
{
    for (int32_t p = 0; p < l->n_pair; p++)
        if (!isfinite(scale * l->pair[p].scale)) return &l->pair[p];
    return NULL;
}

hone_status hn_adapters_check(const hone_session *s, hone_adapter *const *adapters, const float *scales, int32_t n,
                              hone_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        const hone_adapter *a = adapters[i];
        if (a->model != s->model)
            return HN_FAIL(err, HONE_E_ARG, "%s: opened for another model (%s), this session runs %s", a->lora->path,
                           a->model->path, s->model->path);
        if (scales && !isfinite(scales[i]))
            return HN_FAIL(err, HONE_E_ARG, "%s: scale %g, expected a finite number", a->lora->path, (double)scales[i]);
        const hn_lora_pair *pair = scales ? overflows(a->lora, scales[i]) : NULL;
        if (pair)
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: scale %g, times the %g that the file has for %s, is no finite number; expected a "
                           "smaller scale",
                           a->lora->path, (double)scales[i], (double)pair->scale, pair->name);
    }
    return HONE_OK;
}

const char *hn_scale_words(char *dst, const hn_adapter_set *set)
{
    *dst = 0;
    if (!set) return dst;
    const char *file = set->adapter[0]->lora->path;
    int n = snprintf(dst, HN_BLAME, "the adapter %s at scale %g", HN_ESC(file, strlen(file)), (double)set->scale[0]);
    if (set->n > 1) snprintf(dst + n, HN_BLAME - (size_t)n, " (the first of %d)", set->n);
    return dst;
}

const char *hn_blame(char *dst, const hone_model *m, const hn_adapter_set *set, const char *cache)
{
    const char *path = HN_ESC(m->path, strlen(m->path)),
               *weights = "the weights, or activations made of them, overflow";
    hn_scale_words(dst, set);
    size_t n = strlen(dst);
    if (!set) snprintf(dst, HN_BLAME, "%s; %slook for bad weights with: hone inspect %s --check", weights, cache, path);
    else
        snprintf(dst + n, HN_BLAME - n,
                 ", or %s; try a smaller scale, %s%slook for bad weights with: hone inspect %s --check", weights, cache,
                 *cache ? "" : "and ", path);
    return dst;
}

hone_status hn_adapters_hash(const hone_session *s, uint64_t *hash, hone_adapter *const *adapters, const float *scales,
                             int32_t n, hone_error *err)
{
    hone_status st = hn_adapters_check(s, adapters, scales, n, err);
    *hash = st == HONE_OK ? hash_of(adapters, scales, n) : 0;
    return st;
}

/* Sequences [from, to) run with these adapters, or all stay as they are. */
static hone_status switch_to(hone_session *s, int32_t from, int32_t to, hone_adapter *const *adapters,
                             const float *scales, int32_t n, hone_error *err)
{
    hn_adapter_set *set;
    hone_status st = hn_adapters_check(s, adapters, scales, n, err);
    if (st == HONE_OK) st = make_set(s, &set, adapters, scales, n, err);
    if (st != HONE_OK) return st;
    uint64_t hash = set ? set->hash : 0;
    for (int32_t i = from; st == HONE_OK && i < to; i++)
        if (hn_seq_set_hash(s, i) != hash && s->mem->length[i])
            st = HN_FAIL(err, HONE_E_ARG,
                         "sequence %d holds %d positions of the model as it was; adapters are switched when %s empty",
                         i, s->mem->length[i], to - from > 1 ? "all sequences are" : "it is");
    for (int32_t i = from; st == HONE_OK && i < to; i++) hn_seq_use_set(s, i, set);
    if (st != HONE_OK && set && !set->users) free_set(set);
    return st;
}

hone_status hone_session_set_adapters(hone_session *s, hone_adapter *const *adapters, const float *scales, int32_t n,
                                      hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, s, "a session");
    if (n < 0) return HN_FAIL(err, HONE_E_ARG, "%d adapters, expected 0 or more", n);
    if (n) HN_NEED(err, adapters, "a pointer to n adapters");
    HN_NEED_EACH(err, adapters, n, "an open adapter");
    return switch_to(s, 0, s->n_seq, adapters, scales, n, err);
}

hone_status hone_seq_set_adapters(hone_session *s, int32_t seq, hone_adapter *const *adapters, const float *scales,
                                  int32_t n, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, s, "a session");
    if (n < 0) return HN_FAIL(err, HONE_E_ARG, "%d adapters, expected 0 or more", n);
    if (n) HN_NEED(err, adapters, "a pointer to n adapters");
    HN_NEED_EACH(err, adapters, n, "an open adapter");
    hone_status st = hn_check_seq(s, seq, err);
    return st != HONE_OK ? st : switch_to(s, seq, seq + 1, adapters, scales, n, err);
}

uint64_t hone_seq_adapters_hash(const hone_session *s, int32_t seq)
{
    return !s || seq < 0 || seq >= s->n_seq ? 0 : hn_seq_set_hash(s, seq);
}

uint64_t hone_session_adapters_hash(const hone_session *s)
{
    if (!s) return 0;
    bool same = true;
    uint64_t first = hn_seq_set_hash(s, 0), all = HN_FNV_INIT;
    for (int32_t i = 0; i < s->n_seq; i++) {
        uint64_t h = hn_seq_set_hash(s, i);
        same = same && h == first;
        all = hn_fnv1a(all, &h, sizeof h);
    }
    return same ? first : all + (all == 0);
}

/* ---- files ------------------------------------------------------------------------------------------ */

hone_status hone_adapter_convert(const hone_model *m, const char *src, const char *dst, bool f16, hone_error *err)
{
    HN_FLOATS;
    hn_lora *l;
    HN_NEED(err, m, "an open model");
    HN_NEED(err, src, "the path of an adapter");
    HN_NEED(err, dst, "the path of the file or folder to write");
    size_t n = strlen(dst);
    bool gguf = n > 5 && !strcmp(dst + n - 5, ".gguf");
    const hn_file_use read[] = { { m->path, "the base itself", NULL, HN_FILE_READ },
                                 { src, "the adapter to convert", NULL, HN_FILE_READ } };
    hone_status st = hn_lora_apart(dst, !gguf, read, 2, err);
    if (st == HONE_OK) st = hn_lora_open(&l, m, src, err);
    if (st != HONE_OK) return st;
    const hn_lora_about about = { .name = l->name,
                                  .arch = l->arch,
                                  .base = m->file,
                                  .base_name = m->name,
                                  .base_identity = l->base_identity,
                                  .chat_template = l->chat_template,
                                  .alpha = l->pair[0].scale * (float)l->pair[0].rank,
                                  .type = f16 ? HN_F16 : HN_F32 };
    if (gguf) st = hn_lora_write_gguf(dst, l->pair, l->n_pair, &about, err);
    else st = hn_lora_write_peft(dst, m, l->pair, l->n_pair, &about, err);
    hn_lora_close(l);
    return st;
}
