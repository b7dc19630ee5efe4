/* The training loop: settings, one optimizer step after the other, validation, early
 * stop. A step depends on the settings, the data and the state before it alone, so training
 * goes on from a checkpoint as if it had never stopped. Formulas are elsewhere. */
#include "base/file.h"
#include "base/floats.h"
#include "base/os.h"
#include "forge/convert.h"
#include "text/chat.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { RANGE = 1 << 14, MAX_BAD_ROW = 5 };
static const double MAX_PACKED = 2e10; /* samples whose packing is counted before training: minutes */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- settings --------------------------------------------------------------------------------- */

void hone_train_defaults(hone_train_params *p)
{
    if (!p) return;
    *p = (hone_train_params){ .mask = HONE_TRAIN_ANSWERS,
                              .targets = "qv",
                              .rank = 8,
                              .alpha = 16,
                              .epochs = 1,
                              .seq = 512,
                              .batch = 4,
                              .accumulate = 1,
                              .schedule = HONE_TRAIN_COSINE,
                              .lr = 1e-4,
                              .min_lr = -1,
                              .warmup = -1,
                              .warmup_ratio = 0.03,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .weight_decay = 0.01,
                              .clip = 1,
                              .pack = true };
}

static const struct {
    const char *word, *names; /* names: also as GGUF and Hugging Face call it */
    uint32_t bits;
} target_names[] = {
    { "q", " q attn_q q_proj ", HN_TGT_Q }, /* the kinds first, in their order */
    { "k", " k attn_k k_proj ", HN_TGT_K },       { "v", " v attn_v v_proj ", HN_TGT_V },
    { "o", " o attn_output o_proj ", HN_TGT_O },  { "gate", " gate ffn_gate gate_proj ", HN_TGT_GATE },
    { "up", " up ffn_up up_proj ", HN_TGT_UP },   { "down", " down ffn_down down_proj ", HN_TGT_DOWN },
    { "qv", " qv ", HN_TGT_Q | HN_TGT_V },        { "attn", " attn ", HN_TGT_Q | HN_TGT_K | HN_TGT_V | HN_TGT_O },
    { "all", " all ", (1u << HN_TGT_KINDS) - 1 },
};

const char *hn_targets_word(size_t i)
{
    return i < sizeof target_names / sizeof *target_names ? target_names[i].word : NULL;
}

hone_status hn_targets_parse(uint32_t *bits, const char *s, hone_error *err)
{
    *bits = 0;
    for (const char *w = s ? s : "";;) {
        size_t n = strcspn(w, ",");
        char word[32] = "";
        uint32_t bit = 0;
        if (n > 0 && n < sizeof word - 2) snprintf(word, sizeof word, " %.*s ", (int)n, w);
        for (size_t i = 0; word[0] && i < sizeof target_names / sizeof *target_names; i++)
            if (strstr(target_names[i].names, word)) bit = target_names[i].bits;
        if (!bit)
            return HN_FAIL(err, HONE_E_ARG, "targets: '%s': expected qv, attn, all, or some of q,k,v,o,gate,up,down",
                           HN_ESC(w, n));
        *bits |= bit;
        if (!w[n]) return HONE_OK;
        w += n + 1;
    }
}

static hone_status check_number(const char *what, double x, double lo, double hi, hone_error *err)
{
    if (x >= lo && x <= hi) return HONE_OK; /* not NaN */
    return HN_FAIL(err, HONE_E_ARG, "%s: %g, expected %g to %g", what, x, lo, hi);
}

static hone_status check_params(const hone_train_params *p, hone_error *err)
{
    const struct {
        const char *what;
        double x, lo, hi;
    } list[] = { { "files of data", p->n_data, 1, INT32_MAX },
                 { "files of validation data", p->n_val_data, 0, INT32_MAX },
                 { "bad lines that are left out", (double)p->max_bad_lines, 0, 1e19 },
                 { "rank", p->full ? 1 : p->rank, 1, 4096 },
                 { "alpha", p->alpha, p->full ? 0 : 1e-6, 1e6 },
                 { "dropout", p->dropout, 0, 0.99 },
                 { "steps", (double)p->steps, 0, 1e12 },
                 { "epochs", p->epochs, 0, 1e6 },
                 { "sequence", p->seq, 2, 1 << 20 },
                 { "batch", p->batch, 1, 65536 },
                 { "accumulation", p->accumulate, 1, 1 << 20 },
                 { "learning rate", p->lr, 0, 1e3 },
                 { "least learning rate", p->min_lr < 0 ? 0 : p->min_lr, 0, 1e3 },
                 { "warm-up steps", (double)p->warmup, -1, 1e12 },
                 { "warm-up ratio", p->warmup_ratio, 0, 1 },
                 { "beta1", p->beta1, 0, 1 - 1e-9 },
                 { "beta2", p->beta2, 0, 1 - 1e-12 },
                 { "eps", p->eps, 1e-30, 1 },
                 { "weight decay", p->weight_decay, 0, 1e3 },
                 { "clipping", p->clip, 0, 1e12 },
                 { "validation share", p->val_share, 0, 0.99 },
                 { "steps between validations", (double)p->eval_every, 0, 1e12 },
                 { "patience", p->patience, 0, INT32_MAX },
                 { "least gain", p->min_delta, 0, 1e6 },
                 { "layers", p->n_layers, 0, HN_MAX_LAYER },
                 { "schedule", p->schedule, 0, HONE_TRAIN_WSD },
                 { "mask", p->mask, 0, HONE_TRAIN_LAST },
                 { "division of texts", p->split, 0, HONE_SPLIT_NONE } };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hone_status st = check_number(list[i].what, list[i].x, list[i].lo, list[i].hi, err);
        if (st != HONE_OK) return st;
    }
    if (p->output_type && p->full && !hn_mix_find(p->output_type, NULL, NULL))
        return HN_FAIL(err, HONE_E_ARG,
                       "unknown type \"%s\"; expected F32, F16, BF16, Q8_0, Q4_K_M or another mixture name",
                       HN_ESC(p->output_type, strlen(p->output_type)));
    if ((int64_t)p->seq * p->batch > 1 << 24)
        return HN_FAIL(err, HONE_E_ARG, "%d sequences of %d tokens: expected at most %d tokens in a micro-batch",
                       p->batch, p->seq, 1 << 24);
    return HONE_OK;
}

/* The shortest decimal that is x. */
static void put_real(FILE *f, const char *name, double x)
{
    char s[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, x);
        if (strtod(s, NULL) == x) break;
    }
    fprintf(f, "%s %s\n", name, s);
}

static void put_targets(FILE *f, uint32_t bits)
{
    for (int k = 0, n = 0; k < HN_TGT_KINDS; k++)
        if (bits >> k & 1) fprintf(f, "%s%s", n++ ? "," : "targets ", target_names[k].word);
    fputc('\n', f);
}

/* Names without spaces; a value to the end of the line. What may differ when training goes on (threads,
 * recomputation, when it is validated or saved) is not here. */
static hone_status write_settings(hone_trainer *t, uint64_t data_hash, uint64_t val_hash, hone_error *err)
{
    static const char *const schedules[] = { "constant", "linear", "cosine", "wsd" };
    const hone_train_params *p = &t->p;
    hn_os_text text;
    if (!hn_os_text_open(&text)) return HN_FAIL(err, HONE_E_NOMEM, "settings");
    FILE *f = text.f;
    fprintf(f, "base %s\ndata %016llx\nvalidation %016llx\n", t->info.base_identity, (unsigned long long)data_hash,
            (unsigned long long)val_hash);
    put_real(f, "validation_share", p->n_val_data ? 0 : p->val_share);
    if (p->full) fputs("method full\n", f);
    else {
        fputs("method lora\n", f);
        put_targets(f, t->targets);
        fprintf(f, "layers %d\nrank %d\n", p->n_layers, p->rank);
        put_real(f, "alpha", p->alpha);
        fprintf(f, "rslora %d\n", p->rslora);
        put_real(f, "dropout", p->dropout);
    }
    fprintf(f, "sequence %d\nbatch %d\naccumulation %d\npacking %d\n", p->seq, p->batch, p->accumulate, p->pack);
    fprintf(f, "steps %lld\nmicro_batches %lld\nschedule %s\n", (long long)t->schedule.total, (long long)t->micro_total,
            schedules[p->schedule]); /* with epochs the last step may have fewer of them */
    put_real(f, "learning_rate", p->lr);
    put_real(f, "least_learning_rate", t->schedule.min_lr);
    fprintf(f, "warmup %lld\n", (long long)t->schedule.warmup);
    const struct {
        const char *name;
        double x;
    } reals[] = { { "beta1", p->beta1 },
                  { "beta2", p->beta2 },
                  { "eps", p->eps },
                  { "weight_decay", p->weight_decay },
                  { "clipping", p->clip } };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) put_real(f, reals[i].name, reals[i].x);
    fprintf(f, "seed %llu\nbf16 %d\n", (unsigned long long)p->seed, p->bf16);
    t->settings = hn_os_text_close(&text, NULL);
    return t->settings ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "settings");
}

/* ---- making it ---------------------------------------------------------------------------------- */

static void tell_data(hone_train_data *out, const hn_dataset *d)
{
    const hn_data_stats *s = &d->stats;
    *out = (hone_train_data){ .n_file = s->n_file,
                              .n_line = s->n_line,
                              .n_bad = s->n_bad,
                              .n_sample = d->n,
                              .n_cut = s->n_cut,
                              .n_split = s->n_split,
                              .n_empty = s->n_empty,
                              .n_chat = s->n_chat,
                              .n_mid = s->n_mid,
                              .n_part = s->n_part,
                              .n_text = s->n_text,
                              .n_pair = s->n_pair,
                              .n_tok = s->n_tok,
                              .n_target = s->n_target,
                              .min_len = s->min_len,
                              .median_len = s->median_len,
                              .p95_len = s->p95_len,
                              .max_len = s->max_len,
                              .hash = d->hash,
                              .n_passed = s->n_passed,
                              .n_rejected = s->n_rejected,
                              .n_spelt = s->n_spelt,
                              .n_marked = s->n_marked };
    memcpy(out->first_bad, s->first_bad, sizeof out->first_bad);
    memcpy(out->files, s->files, sizeof out->files);
    memcpy(out->first_passed, s->first_passed, sizeof out->first_passed);
    memcpy(out->first_spelt, s->first_spelt, sizeof out->first_spelt);
}

/* Reads the data; hashes are of what the files gave, before the split. */
static hone_status read_data(hone_trainer *t, uint64_t hash[2], hone_error *err)
{
    const hone_train_params *p = &t->p;
    hn_data_params d = { .path = p->data,
                         .n_path = p->n_data,
                         .split = (hn_data_split)p->split,
                         .seq = p->seq,
                         .mask = (hn_mask)p->mask,
                         .max_bad = p->max_bad_lines,
                         .special = p->special,
                         .chat_template = p->chat_template,
                         .abort_fn = p->abort_fn,
                         .abort_arg = p->abort_arg };
    hone_str source; /* a wrong name is one for any data */
    hone_status st =
        p->chat_template ? hn_chat_source(&source, t->m->file, NULL, p->chat_template, false, err) : HONE_OK;
    if (st == HONE_OK && p->chat_template && !(t->chat_template = strndup(source.ptr, source.len)))
        st = HN_FAIL(err, HONE_E_NOMEM, "chat template");
    if (st == HONE_OK) st = hn_dataset_read(&t->train, t->m, &d, err);
    if (st != HONE_OK) return st;
    hash[0] = t->train->hash;
    hash[1] = 0;
    if (p->n_val_data) {
        d.path = p->val_data;
        d.n_path = p->n_val_data;
        if ((st = hn_dataset_read(&t->val, t->m, &d, err)) != HONE_OK) return st;
        hash[1] = t->val->hash;
    } else if (p->val_share > 0 && (st = hn_dataset_split(t->train, p->val_share, p->seed, &t->val, err)) != HONE_OK)
        return st;
    tell_data(&t->info.train, t->train);
    if (t->val) tell_data(&t->info.val, t->val);
    st = hn_loader_new(&t->loader, t->train, p->seq, p->batch, p->pack, true, p->seed, err);
    if (st == HONE_OK && t->val)
        st = hn_loader_new(&t->val_loader, t->val, p->seq, p->batch, p->pack, false, p->seed, err);
    if (st != HONE_OK) return st;
    int64_t rows = hn_loader_max_tok(t->loader), val_rows = t->val_loader ? hn_loader_max_tok(t->val_loader) : 0;
    t->info.max_tok = (int32_t)(rows > val_rows ? rows : val_rows);
    t->info.n_sequence = hn_loader_n_seq(t->loader);
    return HONE_OK;
}

/* Steps of the run. Packing gives each epoch its own number of sequences. */
static hone_status count_steps(hone_trainer *t, hone_error *err)
{
    const hone_train_params *p = &t->p;
    int64_t total = p->steps;
    if (!total) {
        double epochs = p->epochs > 0 ? p->epochs : 1, micro = 0;
        if (p->pack && epochs * (double)t->train->n > MAX_PACKED)
            return HN_FAIL(err, HONE_E_ARG,
                           "%g epochs of %lld samples: expected at most %g samples in all; give the number of steps",
                           epochs, (long long)t->train->n, MAX_PACKED);
        for (double e = 0, next; e < epochs; e = next) {
            hone_status st = hn_loader_seek(t->loader, (hn_cursor){ (int64_t)e, 0 }, err);
            if (st != HONE_OK) return st;
            next = p->pack ? e + 1 : fmax(floor(epochs), e + 1); /* without packing all epochs are as long */
            double batches = (double)((hn_loader_n_seq(t->loader) + p->batch - 1) / p->batch);
            micro += epochs < next ? ceil((epochs - e) * batches) : (next - e) * batches;
        }
        hone_status st = hn_loader_seek(t->loader, (hn_cursor){ 0, 0 }, err);
        if (st != HONE_OK) return st;
        if (micro > 1e15)
            return HN_FAIL(err, HONE_E_ARG, "%g epochs are %g micro-batches: expected at most 1e15", epochs, micro);
        t->micro_total = (int64_t)micro;
        total = (t->micro_total + p->accumulate - 1) / p->accumulate;
    }
    int64_t warmup = p->warmup >= 0 ? p->warmup : (int64_t)(p->warmup_ratio * (double)total + 0.5);
    bool falls = p->schedule == HONE_TRAIN_COSINE || p->schedule == HONE_TRAIN_WSD;
    t->schedule = (hn_schedule){ .kind = p->schedule,
                                 .total = total,
                                 .warmup = warmup < total ? warmup : total,
                                 .lr = p->lr,
                                 .min_lr = p->min_lr >= 0 ? p->min_lr
                                           : falls        ? p->lr / 10
                                                          : 0 };
    t->info.steps = total;
    t->info.warmup = t->schedule.warmup;
    t->info.lr = p->lr;
    t->info.min_lr = t->schedule.min_lr;
    return HONE_OK;
}

static void count_params(hone_trainer *t)
{
    const hn_hparams *hp = &t->m->hp;
    const hone_train_params *p = &t->p;
    t->info.scale = p->full ? 0 : p->alpha / (p->rslora ? sqrt((double)p->rank) : (double)p->rank);
    if (p->full) {
        t->info.n_trainable = (int64_t)t->m->n_params;
        return;
    }
    int32_t first = p->n_layers > 0 && p->n_layers < hp->n_layer ? hp->n_layer - p->n_layers : 0;
    t->info.n_trainable = hn_grad_count(t->m, t->targets, first, p->rank);
}

/* What activations and the loss will take, by what the backward pass keeps. */
static void estimate_memory(hone_trainer *t)
{
    const hn_hparams *hp = &t->m->hp;
    const hone_train_params *p = &t->p;
    const hn_layer *l = t->m->layers;
    double a = p->bf16 ? 2 : 4, T = t->info.max_tok, D = hp->n_embd, heads = hp->n_head + hp->n_head_kv;
    double normed =
        (l->attn_q_norm ? heads * hp->head_dim : 0) + (l->attn_post_norm ? D : 0) + (l->ffn_post_norm ? D : 0);
    double block = T * (a * (2 * D + 2 * heads * hp->head_dim + 2.0 * hp->n_ff + hp->n_head + normed) +
                        (p->full ? 0 : 7 * a * p->rank));
    double acts = p->recompute ? T * a * D * hp->n_layer + block : block * hp->n_layer;
    double head = 64.0 * hp->n_vocab * 4 * 2 + T * D * 4 * 2,
           back = 4 * T * (8 * D + 5.0 * hp->n_ff) + 4e6; /* gradients of one layer, and the products' own */
    if (p->bf16)
        back += 4 * T * (2 * D + 2 * heads * hp->head_dim + 2.0 * hp->n_ff + hp->n_head); /* one layer of it as f32 */
    t->info.work_bytes = (uint64_t)(acts + head + back);
    t->info.base_bytes = t->m->n_bytes;
    t->info.state_bytes = (uint64_t)t->info.n_trainable * (p->patience ? 20 : 16);
}

static hone_status make_arrays(hone_trainer *t, hone_error *err)
{
    t->n_array = t->info.n_array = hn_grad_n_param(t->grad);
    int32_t sets = t->p.patience ? 3 : 2;
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        t->n_float += (uint64_t)a->rows * (uint64_t)a->cols;
        t->n_range += (a->rows * a->cols + RANGE - 1) / RANGE;
    }
    t->info.n_trainable = (int64_t)t->n_float;
    size_t n = (size_t)t->n_array;
    t->mom = calloc(n, sizeof *t->mom);
    t->var = calloc(n, sizeof *t->var);
    if (sets == 3) t->best = calloc(n, sizeof *t->best);
    t->range = calloc((size_t)t->n_range, sizeof *t->range);
    t->n_pages = t->n_float * sizeof(float) * (uint64_t)sets;
    t->pages = hn_pages_alloc((size_t)t->n_pages);
    if (!t->mom || !t->var || (sets == 3 && !t->best) || !t->range || !t->pages)
        return HN_FAIL(err, HONE_E_NOMEM, "moments of %llu weights", (unsigned long long)t->n_float);
    float *at = t->pages;
    int64_t k = 0;
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        int64_t size = a->rows * a->cols;
        t->mom[i] = at;
        t->var[i] = at + size;
        if (t->best) t->best[i] = at + 2 * size;
        at += sets * size;
        for (int64_t b = 0; b < size; b += RANGE)
            t->range[k++] = (hn_train_range){ i, b, b + RANGE < size ? b + RANGE : size };
    }
    return HONE_OK;
}

static hone_status new_gradients(hone_trainer *t, int32_t max_tok, hone_error *err)
{
    const hone_train_params *p = &t->p;
    int32_t n_layer = t->m->hp.n_layer;
    hn_grad_params g = { .pool = t->ctx->pool,
                         .kernels = t->ctx->kernels,
                         .full = p->full,
                         .targets = t->targets,
                         .first_layer = p->n_layers > 0 && p->n_layers < n_layer ? n_layer - p->n_layers : 0,
                         .rank = p->rank,
                         .scale = (float)t->info.scale,
                         .dropout = (float)p->dropout,
                         .seed = p->seed,
                         .max_tok = max_tok,
                         .n_ctx = p->seq,
                         .checkpoint = p->recompute,
                         .bf16 = p->bf16 };
    hn_pool_limit(t->ctx->pool, t->ctx->n_threads_batch);
    return hn_grad_new(&t->grad, t->m, &g, err);
}

/* For a plan: how long so few tokens of the data take that it is soon known. The second run is timed; the first
 * touches the memory. */
static hone_status try_some(hone_trainer *t, hone_error *err)
{
    static const double WORK = 5e10, MAX_COPY = 3e8; /* weights times tokens; weights that full training copies */
    double n_tok = WORK / (double)t->m->n_params, loss;
    hn_train_batch b;
    if (t->p.full && (double)t->m->n_params > MAX_COPY) return HONE_OK;
    hone_status st = hn_loader_next(t->loader, &b, err);
    if (st != HONE_OK) return st;
    if (n_tok > 256) n_tok = 256;
    if (n_tok < 8) n_tok = 8;
    if (b.n_tok > (int32_t)n_tok) { /* its first documents, the last of them cut */
        int32_t *doc = (int32_t *)(uintptr_t)b.doc;
        b.n_tok = (int32_t)n_tok;
        for (b.n_doc = 1; doc[b.n_doc] < b.n_tok;) b.n_doc++;
        doc[b.n_doc] = b.n_tok;
    }
    st = new_gradients(t, b.n_tok, err);
    for (int i = 0; i < 2 && st == HONE_OK; i++) {
        double t0 = now_ms();
        st = hn_grad_run(t->grad, &b, 1.0 / b.n_tok, 0, &loss, err);
        t->info.try_ms = now_ms() - t0;
        t->info.try_tok = b.n_tok;
    }
    hn_grad_free(t->grad);
    t->grad = NULL;
    return st;
}

static hone_status make_gradients(hone_trainer *t, hone_error *err)
{
    const hone_train_params *p = &t->p;
    hone_status st = new_gradients(t, t->info.max_tok, err);
    if (st == HONE_OK) st = make_arrays(t, err);
    if (st == HONE_OK && p->full) st = hn_trainer_check_type(t, err);
    if (st == HONE_OK) {
        uint64_t held = hn_grad_bytes(t->grad), arrays = t->n_float * 8; /* weights and gradients, there */
        t->info.work_bytes = held > arrays ? held - arrays : 0;
        t->info.state_bytes = arrays + t->n_pages;
    }
    return st;
}

/* Reads all of the base where nothing is kept of it; the wish to stop is heard as while data are read. */
static hone_status identify_base(hone_trainer *t, hone_error *err)
{
    hone_progress pr = { .arg = t->p.abort_arg, .abort_fn = t->p.abort_fn };
    return hone_model_identity(t->m, t->info.base_identity, &pr, err);
}

static hone_status keep_names(hone_trainer *t, hone_error *err)
{
    const hone_train_params *p = &t->p;
    int32_t n = p->n_data + (p->val_data ? p->n_val_data : 0);
    t->file = calloc((size_t)n + 1, sizeof *t->file);
    if (!t->file) return HN_FAIL(err, HONE_E_NOMEM, "names of %d files", n);
    for (int32_t i = 0; i < n; i++) {
        t->file[i] = strdup(i < p->n_data ? p->data[i] : p->val_data[i - p->n_data]);
        if (!t->file[i]) return HN_FAIL(err, HONE_E_NOMEM, "names of %d files", n);
        t->n_file++;
    }
    return HONE_OK;
}

hone_status hn_trainer_apart(const hone_trainer *t, const char *path, bool peft, hone_error *err)
{
    if (!path) return HN_FAIL(err, HONE_E_ARG, "no file name given to write to");
    const hn_file_use base = { t->m->path, "the model that is trained", NULL, HN_FILE_READ };
    hone_status st = hn_lora_apart(path, peft, &base, 1, err);
    for (int32_t i = 0; i < t->n_file && st == HONE_OK; i++) {
        const hn_file_use data = { t->file[i], "data of this training", NULL, HN_FILE_DATA };
        st = hn_lora_apart(path, peft, &data, 1, err);
    }
    return st;
}

hone_status hone_trainer_new(hone_trainer **out, hone_context *ctx, const hone_model *m, const hone_train_params *p,
                             hone_error *err)
{
    HN_FLOATS;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the trainer");
    HN_NEED(err, ctx, "a context");
    HN_NEED(err, m, "an open model");
    HN_NEED(err, p, "parameters, from hone_train_defaults");
    uint64_t hash[2];
    hone_status st = check_params(p, err);
    if (st != HONE_OK) return st;
    HN_NEED(err, p->data, "a pointer to n_data paths");
    HN_NEED_EACH(err, p->data, p->n_data, "the path of a file");
    if (p->n_val_data) HN_NEED(err, p->val_data, "a pointer to n_val_data paths");
    HN_NEED_EACH(err, p->val_data, p->n_val_data, "the path of a file");
    if (!p->full) HN_NEED(err, p->targets, "\"qv\", \"attn\", \"all\" or some of \"q,k,v,o,gate,up,down\"");
    if (!m->arch) return HN_FAIL(err, HONE_E_ARG, "%s: opened for its vocabulary only", m->path);
    if ((st = hn_grad_check(m, err)) != HONE_OK) return st;
    if (p->seq > m->hp.n_ctx_train)
        return HN_FAIL(
            err, HONE_E_ARG,
            "%s: sequences of %d tokens, but the model was made for %d positions; expected a shorter sequence (--seq)",
            m->path, p->seq, m->hp.n_ctx_train);
    hone_trainer *t = calloc(1, sizeof *t);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "trainer");
    t->ctx = ctx;
    t->m = m;
    t->p = *p;
    t->st.best_val = t->st.val_loss = t->st.first_loss = t->st.last_loss = t->st.smooth_loss = NAN;
    t->adam = (hn_adam){ p->beta1, p->beta2, p->eps, p->weight_decay };
    st = identify_base(t, err);
    if (st == HONE_OK) st = keep_names(t, err);
    if (st == HONE_OK && !p->full) st = hn_targets_parse(&t->targets, p->targets, err);
    if (st == HONE_OK) st = read_data(t, hash, err);
    if (st == HONE_OK) st = count_steps(t, err);
    if (st == HONE_OK) st = write_settings(t, hash[0], hash[1], err);
    if (st == HONE_OK) {
        count_params(t);
        estimate_memory(t);
        st = p->plan_only ? try_some(t, err) : make_gradients(t, err);
    }
    if (st != HONE_OK) {
        hone_trainer_free(t);
        return st;
    }
    t->p.data = t->p.val_data = NULL;
    t->p.targets = t->p.chat_template = NULL;
    *out = t;
    return HONE_OK;
}

void hone_trainer_free(hone_trainer *t)
{
    if (!t) return;
    hn_loader_free(t->loader);
    hn_loader_free(t->val_loader);
    hn_dataset_free(t->train);
    hn_dataset_free(t->val);
    hn_grad_free(t->grad);
    free(t->mom);
    free(t->var);
    free(t->best);
    free(t->range);
    hn_pages_free(t->pages, (size_t)t->n_pages);
    free(t->settings);
    free(t->chat_template);
    for (int32_t i = 0; i < t->n_file; i++) free(t->file[i]);
    free(t->file);
    free(t);
}

void hone_trainer_get_info(const hone_trainer *t, hone_train_info *out)
{
    if (out) *out = t ? t->info : (hone_train_info){ 0 };
}
const char *hone_trainer_settings(const hone_trainer *t) { return t ? t->settings : ""; }

void hone_trainer_get_status(const hone_trainer *t, hone_train_status *out)
{
    if (!out) return;
    *out = (hone_train_status){ 0 };
    if (!t) return;
    const hn_train_state *s = &t->st;
    *out = (hone_train_status){ .step = s->step,
                                .n_skipped = s->n_skipped,
                                .n_tok = s->n_tok,
                                .n_target = s->n_target,
                                .val_loss = s->val_loss,
                                .best_val = s->best_val,
                                .best_step = s->best_step,
                                .first_loss = s->first_loss,
                                .last_loss = s->last_loss,
                                .smooth_loss = s->smooth_loss,
                                .done = s->done && !t->eval_due,
                                .eval_due = t->eval_due,
                                .stopped_early = s->stopped_early };
}

void hn_trainer_swap_best(hone_trainer *t)
{
    if (!t->has_best) return;
    for (int32_t i = 0; i < t->n_array; i++) {
        hn_param *a = hn_grad_param(t->grad, i);
        for (int64_t k = 0; k < a->rows * a->cols; k++) {
            float x = a->p[k];
            a->p[k] = t->best[i][k];
            t->best[i][k] = x;
        }
    }
}

/* ---- a step ------------------------------------------------------------------------------------------ */

typedef struct update {
    hone_trainer *t;
    float scale;
    double lr;
    int64_t at;
} update;

static void update_range(void *arg, int64_t chunk, int32_t thread)
{
    update *u = arg;
    hone_trainer *t = u->t;
    const hn_train_range *r = &t->range[chunk];
    hn_param *a = hn_grad_param(t->grad, r->array);
    int64_t b = r->begin;
    if (u->scale != 1)
        for (int64_t i = b; i < r->end; i++) a->g[i] *= u->scale;
    hn_adam_step(&t->adam, a->p + b, a->g + b, t->mom[r->array] + b, t->var[r->array] + b, r->end - b, u->at, u->lr,
                 a->decay);
}

/* Targets of the next n micro-batches; the loader stands where it stood. */
static hone_status count_targets(hone_trainer *t, int64_t n, int64_t *n_target, hone_error *err)
{
    hn_cursor from = hn_loader_tell(t->loader);
    hone_status st = HONE_OK;
    *n_target = 0;
    for (int64_t i = 0; i < n && st == HONE_OK; i++) {
        hn_train_batch b;
        st = hn_loader_next(t->loader, &b, err);
        if (st == HONE_OK) *n_target += b.n_target;
    }
    return st == HONE_OK ? hn_loader_seek(t->loader, from, err) : st;
}

void hn_trainer_set_look(hone_trainer *t, hn_look_fn *fn, void *arg)
{
    t->look = (hn_step_look){ .fn = fn, .arg = arg, .layer = -1, .part = HN_PART_UPDATE };
    hn_grad_set_look(t->grad, fn, arg);
}

/* Gradients of the mean loss over all targets of the step. */
static hone_status accumulate(hone_trainer *t, hone_train_step *out, int64_t n_micro, hone_error *err)
{
    double t0 = now_ms(), loss = 0;
    int64_t n_target;
    uint64_t from = hn_look_begin(&t->look);
    hone_status st = count_targets(t, n_micro, &n_target, err);
    hn_look_end(&t->look, from, "data", 0, (hn_look_cost){ 0 });
    if (st != HONE_OK) return st;
    if (n_target == 0) return HN_FAIL(err, HONE_E_ARG, "step %lld: none of its tokens counts", (long long)out->step);
    from = hn_look_begin(&t->look);
    hn_grad_zero(t->grad);
    hn_look_end(&t->look, from, "zero", 0, (hn_look_cost){ .bytes = t->n_float * sizeof(float) });
    for (int64_t i = 0; i < n_micro; i++) {
        hn_train_batch b;
        from = hn_look_begin(&t->look);
        if ((st = hn_loader_next(t->loader, &b, err)) != HONE_OK) return st;
        hn_look_end(&t->look, from, "data", 0, (hn_look_cost){ 0 });
        double t1 = now_ms(), one;
        out->data_ms += t1 - t0;
        uint64_t key =
            t->p.dropout > 0 ? hn_rand64(t->p.seed ^ 0x64726F706F757421u, (uint64_t)(t->st.n_micro + i)) | 1 : 0;
        if ((st = hn_grad_run(t->grad, &b, 1 / (double)n_target, key, &one, err)) != HONE_OK) return st;
        loss += one;
        out->n_tok += b.n_tok;
        t0 = now_ms();
        out->gradient_ms += t0 - t1;
    }
    out->loss = loss / (double)n_target;
    out->n_target = n_target;
    return HONE_OK;
}

static void optimize(hone_trainer *t, hone_train_step *out)
{
    enum { TOUCHED = 7 }; /* value, gradient, two moments read; value and moments written */
    double t0 = now_ms();
    out->lr = hn_schedule_lr(&t->schedule, t->st.step);
    uint64_t from = hn_look_begin(&t->look);
    out->grad_norm = hn_grad_norm(t->grad);
    hn_look_end(&t->look, from, "grad_norm", 0, (hn_look_cost){ .bytes = t->n_float * sizeof(float) });
    from = hn_look_begin(&t->look);
    out->skipped = !isfinite(out->loss) || !isfinite(out->grad_norm);
    if (!out->skipped) {
        update u = { .t = t, .scale = 1, .lr = out->lr, .at = t->st.n_applied + 1 };
        if (t->p.clip > 0 && out->grad_norm > t->p.clip) u.scale = (float)(t->p.clip / (out->grad_norm + 1e-6));
        hn_pool_run(t->ctx->pool, update_range, &u, t->n_range);
    }
    hn_look_end(&t->look, from, "adamw", 0, (hn_look_cost){ .bytes = TOUCHED * t->n_float * sizeof(float) });
    out->optimizer_ms = now_ms() - t0;
}

/* The first of x[n] that is not finite, or n. */
static int64_t first_bad(const float *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i])) i++;
    return i;
}

/* "; TENSOR: element I is nan" of the base, "" where all is finite or memory is short. */
static void find_in_base(const hone_model *m, char *dst, size_t cap)
{
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *x = hn_gguf_tensor_at(m->file, i);
        const hn_type_info *ti = hn_type_get(x->type);
        int64_t cols = (int64_t)x->ne[0], at = cols;
        float *row = ti ? malloc((size_t)cols * sizeof *row) : NULL;
        const char *data = x->data;
        for (uint64_t k = 0, n = ti ? hn_row_bytes(ti, x->ne[0]) : 0; row && at == cols && k < x->n_bytes; k += n) {
            ti->dequantize(row, data + k, cols);
            if ((at = first_bad(row, cols)) < cols)
                snprintf(dst, cap, "; %s: %.*s: element %lld is %g", m->path, (int)x->name.len, x->name.ptr,
                         (long long)(k / n * (uint64_t)cols) + at, (double)row[at]);
        }
        free(row);
        if (at < cols) return;
    }
}

/* Steps that change nothing: what the numbers were, and where one that is not finite comes from. */
static hone_status not_finite(const hone_trainer *t, const hone_train_step *s, hone_error *err)
{
    char where[400] = "";
    for (int32_t i = 0; i < t->n_array && !where[0]; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        int64_t n = a->rows * a->cols, at = first_bad(a->p, n);
        if (at < n) snprintf(where, sizeof where, "; %s: element %lld is %g", a->name, (long long)at, (double)a->p[at]);
    }
    if (!where[0]) find_in_base(t->m, where, sizeof where);
    double loss = isnan(s->loss) ? NAN : s->loss,
           norm = isnan(s->grad_norm) ? NAN : s->grad_norm; /* -nan says no more */
    return HN_FAIL(err, HONE_E_NUMERIC,
                   "step %lld: loss %g, norm of the gradient %g: not finite for %lld step%s in a row%s",
                   (long long)s->step, loss, norm, (long long)t->st.n_bad_row, t->st.n_bad_row == 1 ? "" : "s",
                   where[0] ? where : "; lower the learning rate or look at the data");
}

/* A loss that is no number says nothing, and would be taken for one that is no gain. Looks at all of the base. */
static hone_status no_validation(const hone_trainer *t, double loss, hone_error *err)
{
    char where[400] = "";
    find_in_base(t->m, where, sizeof where);
    return HN_FAIL(err, HONE_E_NUMERIC, "validation after step %lld: the loss is %s, expected a finite number%s",
                   (long long)t->st.step, isnan(loss) ? "NaN" : "infinite",
                   where[0] ? where : "; weights or activations overflow: lower the learning rate");
}

/* HONE_E_NUMERIC: *loss is no finite number. */
static hone_status validate(hone_trainer *t, double *loss, hone_error *err)
{
    double sum = 0, n = 0, one;
    hn_train_batch b;
    hone_status st = hn_loader_seek(t->val_loader, (hn_cursor){ 0, 0 }, err);
    hn_pool_limit(t->ctx->pool, t->ctx->n_threads_batch);
    while (st == HONE_OK && hn_loader_tell(t->val_loader).epoch == 0) {
        if (t->p.abort_fn && t->p.abort_fn(t->p.abort_arg))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted in the validation after step %lld",
                           (long long)t->st.step);
        if ((st = hn_loader_next(t->val_loader, &b, err)) != HONE_OK ||
            (st = hn_grad_run(t->grad, &b, 0, 0, &one, err)) != HONE_OK)
            return st;
        sum += one;
        n += b.n_target;
        if (!isfinite(one)) break;
    }
    if (st != HONE_OK) return st;
    *loss = sum / n;
    return isfinite(sum) ? HONE_OK : HN_FAIL(err, HONE_E_NUMERIC, "the loss is no finite number");
}

hone_status hone_trainer_validate(hone_trainer *t, double *loss, hone_error *err)
{
    HN_FLOATS;
    if (loss) *loss = NAN;
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, loss, "a place for the loss");
    if (!t->val_loader) return HONE_OK;
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    double x = NAN;
    hone_status st = validate(t, &x, err);
    if (st == HONE_E_NUMERIC) return no_validation(t, x, err);
    *loss = st == HONE_OK ? x : NAN;
    return st;
}

static hone_status evaluate(hone_trainer *t, hone_train_step *out, hone_error *err)
{
    hn_train_state *s = &t->st;
    double t0 = now_ms();
    hone_status st = validate(t, &out->val_loss, err);
    out->eval_ms = now_ms() - t0;
    t->eval_due = st == HONE_E_INTERRUPTED;
    if (st == HONE_E_NUMERIC) out->val_loss = NAN; /* no gain; steps that are no better end the training */
    else if (st != HONE_OK) return st;
    out->eval = true;
    s->val_loss = out->val_loss;
    bool first = !isfinite(s->best_val),
         gain = first ? isfinite(out->val_loss) : out->val_loss < s->best_val - t->p.min_delta;
    out->best = first ? gain : out->val_loss < s->best_val;
    s->n_since_best = gain ? 0 : s->n_since_best + 1;
    if (out->best) {
        s->best_val = out->val_loss;
        s->best_step = s->step;
        t->has_best = t->best != NULL;
        for (int32_t i = 0; t->has_best && i < t->n_array; i++) {
            const hn_param *a = hn_grad_param(t->grad, i);
            memcpy(t->best[i], a->p, (size_t)(a->rows * a->cols) * sizeof(float));
        }
    }
    if (t->p.patience && s->n_since_best >= t->p.patience) s->done = s->stopped_early = 1;
    return HONE_OK;
}

/* Epochs passed: those before the cursor's, and the share of its own. */
static double epoch_of(hone_trainer *t)
{
    hn_cursor c = hn_loader_tell(t->loader);
    return (double)c.epoch + (double)c.at / (double)hn_loader_n_seq(t->loader);
}

/* The validation that was interrupted; of the step before it what is still known. */
static hone_status make_up(hone_trainer *t, hone_train_step *out, hone_error *err)
{
    hn_train_state *s = &t->st;
    out->step = s->step;
    out->loss = s->last_loss;
    out->lr = hn_schedule_lr(&t->schedule, s->step - 1);
    out->grad_norm = NAN;
    out->epoch = epoch_of(t);
    hone_status st = evaluate(t, out, err);
    out->done = st == HONE_OK && s->done;
    out->stopped_early = s->stopped_early;
    return st;
}

hone_status hone_trainer_step(hone_trainer *t, hone_train_step *out, hone_error *err)
{
    HN_FLOATS;
    if (out) *out = (hone_train_step){ 0 };
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, out, "a place for what the step did");
    hn_train_state *s = &t->st;
    *out = (hone_train_step){ .step = s->step + 1, .val_loss = NAN };
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    if (t->eval_due) return make_up(t, out, err);
    if (s->done) return HN_FAIL(err, HONE_E_ARG, "training ended with step %lld", (long long)s->step);
    hn_pool_limit(t->ctx->pool, t->ctx->n_threads_batch);
    int64_t n_micro = t->p.accumulate;
    if (t->micro_total && t->micro_total - s->n_micro < n_micro) n_micro = t->micro_total - s->n_micro;
    hone_status st = accumulate(t, out, n_micro, err);
    if (st != HONE_OK) {
        (void)hn_loader_seek(t->loader, s->cursor, NULL); /* as before the step */
        return st;
    }
    optimize(t, out);
    s->step++;
    s->n_micro += n_micro;
    s->cursor = hn_loader_tell(t->loader);
    s->n_tok += out->n_tok;
    s->n_target += out->n_target;
    s->n_applied += !out->skipped;
    s->n_skipped += out->skipped;
    s->n_bad_row = out->skipped ? s->n_bad_row + 1 : 0;
    out->epoch = epoch_of(t);
    if (!out->skipped) {
        if (s->n_applied == 1) s->first_loss = s->smooth_loss = out->loss;
        s->last_loss = out->loss;
        s->smooth_loss += 0.2 * (out->loss - s->smooth_loss);
    }
    bool last = s->step >= t->schedule.total;
    if (s->n_bad_row >= MAX_BAD_ROW || (last && !s->n_applied)) return not_finite(t, out, err);
    if (last) s->done = 1;
    bool due = s->done || (t->p.eval_every && s->step % t->p.eval_every == 0);
    if (t->val_loader && due && (st = evaluate(t, out, err)) != HONE_OK) return st;
    out->done = s->done;
    out->stopped_early = s->stopped_early;
    return HONE_OK;
}
