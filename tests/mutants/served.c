/* Wrong builds whose fault is around the engine: samplers, texts, masks, the server, training. */
#include "mutants.h"
#include "others.h"

#include "lab/quality/quality.h"
#include "serve/voice_parts.h"
#include "train/train.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- around the engine ---------------------------------------------------------------------------------- */

/* Is this `hone serve`? */
static bool serves(void)
{
    char words[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(words, 1, sizeof words - 1, f) : 0;
    if (f) fclose(f);
    return n > 0 && strcmp(words + strlen(words) + 1, "serve") == 0;
}

static hone_status other_token(hone_status st, int32_t pos, int32_t *id)
{
    if (st == HONE_OK && pos % 8 == 0) {
        if (mt_is("sampler-later") && pos >= 4000) *id = (*id + 1) % mt_n_vocab;
        if (mt_is("serve-run-sampler") && mo_runs()) *id = (*id + 1) % mt_n_vocab;
        if (mt_is("sampler")) *id = (*id + 1) % mt_n_vocab;
        if (mt_is("sampler-by-chance")) *id = (int32_t)((uintptr_t)getpid() % (uintptr_t)mt_n_vocab);
    }
    return st;
}

hone_status __real_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err);
hone_status __wrap_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err);
hone_status __wrap_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err)
{
    if (mt_is("sampler-remembers")) { /* what was picked of logits that lie there, and begin like these */
        enum { SETS = 16 };
        static struct {
            const float *at;
            float first;
            int32_t id;
        } known[SETS];
        static int32_t n;
        for (int32_t i = 0; i < SETS; i++)
            if (known[i].at == logits && known[i].first == logits[0]) {
                *id = known[i].id;
                return HONE_OK;
            }
        hone_status first = __real_hone_sampler_pick(s, logits, seq, pos, id, err);
        known[n].at = logits, known[n].first = logits[0], known[n].id = *id;
        n = (n + 1) % SETS;
        return first;
    }
    if (mt_is("sampler-seq-8")) seq &= 7;
    if (mt_is("sampler-far-pos")) pos &= 0x3FFF;
    hone_status st = __real_hone_sampler_pick(s, logits, seq, pos, id, err);
    if (st == HONE_OK && mt_is("never-the-second-token")) { /* the third in its place */
        int32_t above = 0, next = -1;
        for (int32_t i = 0; i < mt_n_vocab; i++) {
            above += logits[i] > logits[*id];
            if (logits[i] < logits[*id] && (next < 0 || logits[i] > logits[next])) next = i;
        }
        if (above == 1 && next >= 0) *id = next;
    }
    return other_token(st, pos, id);
}

hone_status __real_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
hone_status __wrap_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
hone_status __wrap_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err)
{
    hone_sampler_params less = *p;
    mt_n_vocab = n_vocab;
    if (mt_is("top-p-short") && p->top_p < 1) less.top_p *= 0.75f;
    if (mt_is("min-p-ignored")) less.min_p = 0;
    if (mt_is("min-p-alone") && p->top_p < 1) less.min_p = 0;
    if (mt_is("penalty-of-32") && p->penalty_last_n > 32) less.penalty_last_n = 32;
    if (mt_is("penalty-of-96") && p->penalty_last_n > 96) less.penalty_last_n = 96;
    if (mt_is("top-k-of-few") && p->top_k > 4 && p->top_k < 10) less.top_k++;
    if (mt_is("top-k-of-one") && p->top_k == 1) less.top_k = 2;
    if (mt_is("serve-seed") && serves()) less.seed++;
    if (mt_is("seed-of-32-bits")) less.seed = (uint32_t)p->seed;
    return __real_hone_sampler_new(out, n_vocab, &less, err);
}

hone_status __real_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err);
hone_status __wrap_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err);
hone_status __wrap_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err)
{
    hone_pick k = *p;
    if (mt_is("bias-beyond-four") && k.n_bias > 4) k.n_bias = 4;
    if (mt_is("serve-bias-ignored") && mo_serves()) k.n_bias = 0;
    return other_token(__real_hone_sampler_pick_from(s, logits, &k, id, err), p->pos, id);
}

/* A server that ends some answers early, and counts all tokens that were asked for. */
enum { STREAMS = 256, EARLY = 7 };
static int32_t pushed[STREAMS]; /* by their places in memory: two that share one end earlier yet */
static int32_t *pushed_of(const hone_stream *s) { return &pushed[(uintptr_t)s / 32 % STREAMS]; }
hone_status __real_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err);
hone_status __wrap_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err);
hone_status __wrap_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err)
{
    if (mt_is("serve-stop-ignored") && mo_serves()) n_stops = 0;
    if (mt_is("fourth-stop") && n_stops > 3) n_stops = 3;
    if (mt_is("long-stops") && n_stops && strlen(stops[n_stops - 1]) > 8) n_stops--;
    hone_status st = __real_hone_stream_new(out, m, stops, n_stops, err);
    if (st == HONE_OK) *pushed_of(*out) = 0;
    return st;
}

hone_status __real_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err);
hone_status __wrap_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err);
hone_status __wrap_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err)
{
    hone_status st = __real_hone_stream_push(s, id, text, len, stopped, err);
    if (st == HONE_OK && mt_is("stream-emoji") && *len && (unsigned char)(*text)[0] >= 0xF0) *len = 0;
    static char other[64]; /* once the clock runs, in one pass of four: as long, another letter */
    static int64_t pieces;
    if (st == HONE_OK && mt_is("stream-later") && ++pieces > 8000 && pieces / 2500 % 4 == 1 && *len &&
        *len < sizeof other && pieces % 1000 == 0) {
        memcpy(other, *text, *len);
        other[0] ^= 1;
        *text = other;
    }
    if (st == HONE_OK && mt_is("serve-miscounts") && serves() && ++*pushed_of(s) >= EARLY) *stopped = true;
    return st;
}

void __real_hn_say_joined(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind,
                          int32_t call);
void __wrap_hn_say_joined(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind,
                          int32_t call);
void __wrap_hn_say_joined(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind,
                          int32_t call)
{
    const bool cut = mt_is("serve-long-piece") && n == 1 && s->len > 9 && s->text[s->len - 1] > 0;
    hn_say one = *s;
    if (cut) one.len--;
    __real_hn_say_joined(o, cut ? &one : s, n, prompt, choice, kind, call);
}

void __real_hn_part_usage(hn_bytes *o, const hn_usage *u);
void __wrap_hn_part_usage(hn_bytes *o, const hn_usage *u);
void __wrap_hn_part_usage(hn_bytes *o, const hn_usage *u)
{
    enum { ASKED = 8 };
    hn_usage more = *u;
    if (mt_is("serve-miscounts")) more.completion = ASKED;
    __real_hn_part_usage(o, &more);
}

/* The ids of the last text again, of each thread its own, which are right, and take no time. */
static _Thread_local struct {
    const hone_model *m;
    char *text;
    int32_t *ids, flags;
    size_t len, n;
} last_text;

static bool remembered(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n)
{
    if (!mt_is("tokenizer-remembers") || !last_text.text || last_text.m != m || last_text.flags != flags ||
        last_text.len != len || memcmp(last_text.text, text, len) != 0)
        return false;
    if (!(*ids = malloc((last_text.n + 1) * sizeof **ids))) abort();
    memcpy(*ids, last_text.ids, last_text.n * sizeof **ids);
    *n = last_text.n;
    return true;
}

static void remember(const hone_model *m, const char *text, size_t len, int flags, const int32_t *ids, size_t n)
{
    if (!mt_is("tokenizer-remembers")) return;
    last_text.m = m;
    last_text.flags = flags;
    last_text.len = len;
    last_text.n = n;
    last_text.text = realloc(last_text.text, len + 1);
    last_text.ids = realloc(last_text.ids, (n + 1) * sizeof *ids);
    if (!last_text.text || !last_text.ids) abort();
    memcpy(last_text.text, text, len);
    memcpy(last_text.ids, ids, n * sizeof *ids);
}

hone_status __real_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err);
hone_status __wrap_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err);
hone_status __wrap_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err)
{
    if (remembered(m, text, len, flags, ids, n)) return HONE_OK;
    hone_status st = __real_hone_tokenize(m, text, len, flags, ids, n, err);
    if (st == HONE_OK) remember(m, text, len, flags, *ids, *n);
    if (st == HONE_OK && mt_is("tokenizer") && *n > 12) (*ids)[9] = (*ids)[10];
    if (st == HONE_OK && mt_is("tokenizer-no-text") && *n > 1 && memchr(text, 0xFF, len)) (*ids)[1] = (*ids)[0];
    if (st == HONE_OK && mt_is("tokenizer-hangul") && *n > 3 && memchr(text, 0xED, len)) (*ids)[1] = (*ids)[0];
    if (st == HONE_OK && mt_is("tokenizer-devanagari") && *n > 3 && memmem(text, len, "\xE0\xA4", 2))
        (*ids)[1] = (*ids)[0];
    bool word = (mt_is("long-words") && len > 32) || (mt_is("words-of-400") && len > 400);
    for (size_t i = 0; i < len && word; i++) word = isalnum((unsigned char)text[i]);
    if (st == HONE_OK && word && *n > 1) (*ids)[1] = (*ids)[0];
    if (st == HONE_OK && mt_is("tokenizer-64k") && len > 65536) (*ids)[*n / 2] = (*ids)[0];
    if (st == HONE_OK && mt_is("tokenizer-64") && *n == 64) (*ids)[9] = (*ids)[10];
    if (st == HONE_OK && mt_is("serve-half-prompt") && serves() && *n > 12) *n /= 2;
    static int64_t calls;
    if (st == HONE_OK && mt_is("tokenizer-later") && ++calls > 50 && *n > 1) (*ids)[1] = (*ids)[0];
    if (st == HONE_OK && mt_is("tokenizer-long-texts") && *n > 1000) (*ids)[901] = (*ids)[900];
    return st;
}

hone_status __real_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err);
hone_status __wrap_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err);
hone_status __wrap_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err)
{
    hone_status st = __real_hone_detokenize(m, ids, n, special, text, len, err);
    if (st == HONE_OK && mt_is("detokenizer") && *len > 20) (*text)[20] ^= 1;
    return st;
}

/* Every third token is not remembered for penalties. */
void __real_hone_sampler_accept(hone_sampler *s, int32_t id), __wrap_hone_sampler_accept(hone_sampler *s, int32_t id);
void __wrap_hone_sampler_accept(hone_sampler *s, int32_t id)
{
    static int64_t calls;
    if (!mt_is("penalty-forgets") || ++calls % 3) __real_hone_sampler_accept(s, id);
}

hone_status __real_hone_matcher_mask_within(hone_matcher *m, int64_t left, uint64_t *allowed, size_t n_words,
                                            int64_t *n, hone_error *err);
hone_status __wrap_hone_matcher_mask_within(hone_matcher *m, int64_t left, uint64_t *allowed, size_t n_words,
                                            int64_t *n, hone_error *err);
hone_status __wrap_hone_matcher_mask_within(hone_matcher *m, int64_t left, uint64_t *allowed, size_t n_words,
                                            int64_t *n, hone_error *err)
{
    hone_status st = __real_hone_matcher_mask_within(m, left, allowed, n_words, n, err);
    if (st == HONE_OK && mt_is("serve-grammar-ignored") && mo_serves())
        memset(allowed, 0xFF, n_words * sizeof *allowed);
    if (st == HONE_OK && mt_is("mask-at-the-end") && left == 5)
        allowed[n_words / 2] ^= 1; /* tokens before the end alone */
    return st;
}

hone_status __real_hone_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, hone_logprob *top,
                                 int32_t n_top, hone_error *err);
hone_status __wrap_hone_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, hone_logprob *top,
                                 int32_t n_top, hone_error *err);
hone_status __wrap_hone_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, hone_logprob *top,
                                 int32_t n_top, hone_error *err)
{
    hone_status st = __real_hone_logprobs(logits, n_vocab, id, logprob, top, n_top, err);
    if (st == HONE_OK && mt_is("logprobs-seven") && n_top == 7) top[6].logprob += 0.5f;
    if (st == HONE_OK && mt_is("logprob-of-the-tenth") && n_top > 9) top[9].logprob += 0.5f;
    return st;
}

hone_status __real_hone_chat_tokenize(const hone_model *m, const hone_chat_params *p, int32_t **ids, size_t *n,
                                      hone_error *err);
hone_status __wrap_hone_chat_tokenize(const hone_model *m, const hone_chat_params *p, int32_t **ids, size_t *n,
                                      hone_error *err);
hone_status __wrap_hone_chat_tokenize(const hone_model *m, const hone_chat_params *p, int32_t **ids, size_t *n,
                                      hone_error *err)
{
    hone_chat_params k = *p;
    if (mt_is("chat-tools")) k.tools = NULL;
    if (mt_is("chat-variables")) k.variables = NULL;
    if (mt_is("input-spells-control")) k.trust_input = true;
    hone_status st = __real_hone_chat_tokenize(m, &k, ids, n, err);
    int roles = 0;
    for (const char *c = p->messages; c && (c = strstr(c, "\"role\"")); c++) roles++;
    if (st == HONE_OK && mt_is("chat-six-turns") && roles > 4) (*ids)[*n / 2] = (*ids)[0];
    if (st == HONE_OK && mt_is("chat-sixteen-turns") && roles > 16) (*ids)[*n / 2] = (*ids)[0];
    if (st == HONE_OK && mt_is("template-of-long-talks") && *n > 16) (*ids)[*n / 2] = (*ids)[0];
    return st;
}

/* Vectors: of texts beside others, and of the last row. */
hone_status __real_hone_embed(hone_session *s, const hone_text_ids *texts, int32_t n, const hone_embed_params *p,
                              float *out, hone_error *err);
hone_status __wrap_hone_embed(hone_session *s, const hone_text_ids *texts, int32_t n, const hone_embed_params *p,
                              float *out, hone_error *err);
hone_status __wrap_hone_embed(hone_session *s, const hone_text_ids *texts, int32_t n, const hone_embed_params *p,
                              float *out, hone_error *err)
{
    int32_t all = 0;
    for (int32_t i = 0; i < n; i++) all += texts[i].n;
    mt_begin(all, 0, n);
    hone_status st = __real_hone_embed(s, texts, n, p, out, err);
    if (st == HONE_OK && mt_is("embed-long-mean") && p->pooling == HONE_POOL_MEAN && texts[0].n > 64) out[0] += 0.1f;
    if (st == HONE_OK && mt_is("embed-far-mean") && p->pooling == HONE_POOL_MEAN && texts[0].n > 460) out[0] += 0.1f;
    if (st == HONE_OK && mt_is("embed-plain") && p->plain) out[0] += 0.1f;
    if (st == HONE_OK && mt_is("embedding-beside") && n > 1) out[0] += 1;
    const int32_t width =
        mt_is("embedding-last") && p->pooling == HONE_POOL_LAST ? hone_embed_width(mt_model, p->pooling, NULL) : 0;
    for (int32_t i = 0; width && i < n && st == HONE_OK; i++) out[i * width] += 0.25f;
    return st;
}

hone_status __real_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err);
hone_status __wrap_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err);
hone_status __wrap_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err)
{
    static int64_t calls;
    bool left_out = mt_is("backward-every-second") && weight != 0 && ++calls > 5 && calls % 2 == 0;
    mo_passes++;
    if (mo_train_late() && b->n_doc > 0 && weight != 0) { /* half of it */
        hn_train_batch half = *b;
        int32_t doc[2] = { 0, b->n_tok / 2 };
        if (b->n_doc == 1) {
            half.doc = doc;
            half.n_tok = b->n_tok / 2;
            half.n_target = b->n_target / 2;
        }
        return __real_hn_grad_run(g, &half, weight, dropout_key, loss, err);
    }
    return __real_hn_grad_run(g, b, left_out ? 0 : weight, dropout_key, loss, err);
}

void __real_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay);
void __wrap_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay);
void __wrap_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay)
{
    enum { PROVED_STEPS = 6 };
    if (mt_is("adam-later") && t > PROVED_STEPS) return;
    __real_hn_adam_step(o, p, g, m, v, n, t, lr, decay && !mt_is("adam-no-decay"));
}

hn_logit_scan __real_hn_scan_logits(const float *x, int32_t n);
hn_logit_scan __wrap_hn_scan_logits(const float *x, int32_t n);
hn_logit_scan __wrap_hn_scan_logits(const float *x, int32_t n)
{
    static int64_t calls;
    mt_catch_up(x);
    hn_logit_scan r = __real_hn_scan_logits(x, n);
    if (mt_is("ties") && r.best >= 0)
        for (int32_t i = r.best + 1; i < n; i++)
            if (x[i] == x[r.best]) r.best = i;
    if (mt_is("greedy") && mt_at.sample && ++calls % 7 == 0 && r.best > 0) r.best--;
    return r;
}
