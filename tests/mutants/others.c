/* Wrong builds that others thought up: wrong on paths of the engine, and around it. */
#include "others.h"

#include <stdio.h>
#include <string.h>

bool mo_serves(void) { return mo_argv_is(1, "serve"); }
bool mo_runs(void) { return mo_argv_is(1, "run"); }

/* ---- paths of the engine ------------------------------------------------------------------------------- */

enum { SEQS = 64, PAGE = 64 };

static struct {
    int32_t append_seq, n_kept, generation[SEQS];
    int32_t goes_on, forked_at_edge, cut_at_edge; /* sequences, from 1; 0: none */
    bool of_scheduler, five_chunks, about_cut, cut_by_one, fork_of_forks, deep_file, deep_snap, second_prefix;
} past;

/* By how many rows a call has and where, on which settings. */
static bool by_shape(int32_t n, int32_t pos)
{
    const bool one = n == 1, avx2 = strcmp(mt_at.level, "avx2") == 0;
    if (mt_is("rows-384")) return n == 384;
    if (mt_is("tail-rows")) return n > 128 && n % 128 == 1;
    if (mt_is("rows-800")) return n == 512 && pos == 512;
    if (mt_is("chunk-300")) return mt_at.chunk != 512 && mt_at.chunk > 64 && n > 64;
    if (mt_is("three-threads")) return mt_at.threads == 3 && one;
    if (mt_is("seven-threads")) return mt_at.threads == 7 && one;
    if (mt_is("avx2-deep-one")) return avx2 && one && pos > 64;
    if (mt_is("run-only")) return one && mo_runs();
    if (mt_is("chat-only")) return one && mo_argv_is(1, "chat");
    if (mt_is("perplexity-only")) return n > 1 && mo_argv_is(1, "perplexity");
    if (mt_is("logits-only")) return mo_argv_is(1, "logits");
    if (mt_is("right-where-judged")) return one && !getenv("HONE_AB_PAD");
    if (mt_is("serve-one")) return one && mo_serves();
    if (mt_is("beyond-2200")) return pos >= 2200;
    return false;
}

/* By what the session is, and what stands beside a sequence. */
static bool by_session(int32_t n, int32_t pos)
{
    if (mt_is("f32-two-pages")) return mt_at.cache == HONE_CACHE_F32 && n == 1 && pos >= 128;
    if (mt_is("q8-deep")) return mt_at.cache == HONE_CACHE_Q8_0 && pos >= 512;
    if (mt_is("adapter-deep")) return mt_at.adapters && n == 1 && pos > 700;
    if (mt_is("eight-seqs-deep")) return mt_at.seqs_of_call >= 8 && pos > 200;
    if (mt_is("five-chunks")) return past.five_chunks;
    if (mt_is("scheduler-two")) return past.of_scheduler && n == 2;
    if (mt_is("two-of-three")) return mt_at.n_seq == 3;
    if (mt_is("narrow-ctx")) return mt_at.n_ctx < 70;
    return false;
}

/* By where what its sequence holds came from. */
static bool by_past(void)
{
    if (mt_is("append-high-seq")) return past.append_seq >= 5;
    if (mt_is("deep-file")) return past.deep_file;
    if (mt_is("deep-snap")) return past.deep_snap;
    if (mt_is("second-prefix")) return past.second_prefix;
    if (mt_is("cut-by-one")) return past.cut_by_one;
    if (mt_is("fork-page-edge")) return past.goes_on > 0 && past.goes_on == past.forked_at_edge;
    if (mt_is("cut-page-edge")) return past.goes_on > 0 && past.goes_on == past.cut_at_edge;
    if (mt_is("third-fork")) return past.fork_of_forks;
    return false;
}

bool mo_here(int32_t n, int32_t pos) { return by_shape(n, pos) || by_session(n, pos) || by_past(); }

void mo_batch(const hone_token *t, int32_t n)
{
    int32_t rows[SEQS] = { 0 }, many = 0;
    for (int32_t i = 0; i < n; i++)
        if (t[i].seq >= 0 && t[i].seq < SEQS) many += ++rows[t[i].seq] == 2;
    past.append_seq = -1;
    past.goes_on = n > 0 ? t[0].seq + 1 : 0;
    past.of_scheduler = false;
    past.five_chunks = many >= 5;
    past.cut_by_one = false;
}

/* Of a batch of five sequences, a row each, the fifth says what the fourth does. */
void mo_answered(const hone_token *t, int32_t n, float *logits)
{
    enum { FIVE = 5 };
    const size_t n_vocab = (size_t)mt_n_vocab;
    bool all = n == FIVE && mt_is("batch-five");
    for (int32_t i = 0; i < n && all; i++) all = t[i].want_logits && (i == 0 || t[i].seq != t[i - 1].seq);
    if (all) memcpy(logits + (FIVE - 1) * n_vocab, logits + (FIVE - 2) * n_vocab, n_vocab * sizeof *logits);
}

void mo_appended(int32_t seq)
{
    past.append_seq = seq;
    past.goes_on = seq + 1;
    past.of_scheduler = past.five_chunks = false;
    past.cut_by_one = past.about_cut;
    past.about_cut = false;
}

void mo_cut(hone_session *s, int32_t seq, int32_t n_pos)
{
    past.about_cut = n_pos > 0 && n_pos + 1 == hone_seq_length(s, seq);
    if (n_pos > 0 && n_pos % PAGE == 0 && hone_seq_length(s, seq) > n_pos) past.cut_at_edge = seq + 1;
    else if (past.cut_at_edge == seq + 1) past.cut_at_edge = 0;
}

void mo_copied(const hone_session *s, int32_t dst, int32_t src)
{
    const int32_t n = hone_seq_length(s, dst);
    if (n > 0 && n % PAGE == 0) past.forked_at_edge = dst + 1;
    else if (past.forked_at_edge == dst + 1) past.forked_at_edge = 0;
    if (dst < 0 || dst >= SEQS || src < 0 || src >= SEQS) return;
    past.generation[dst] = past.generation[src] + 1;
    past.fork_of_forks = past.generation[dst] >= 3;
}

void mo_loaded(hone_session *s)
{
    for (int32_t q = 0; q < 4; q++) past.deep_file |= hone_seq_length(s, q) > 256;
}

void mo_matched(int32_t kept) { past.second_prefix = kept > 0 && past.n_kept > 1; }

void __real_hone_session_drop_prefixes(hone_session *s), __wrap_hone_session_drop_prefixes(hone_session *s);
void __wrap_hone_session_drop_prefixes(hone_session *s)
{
    past.n_kept = 0;
    past.second_prefix = false;
    __real_hone_session_drop_prefixes(s);
}

hone_status __real_hone_seq_keep(hone_session *s, int32_t q, hone_error *e),
    __wrap_hone_seq_keep(hone_session *s, int32_t q, hone_error *e);
hone_status __wrap_hone_seq_keep(hone_session *s, int32_t q, hone_error *e)
{
    past.n_kept++;
    return __real_hone_seq_keep(s, q, e);
}

hone_status __real_hone_seq_set_scope(hone_session *s, int32_t q, uint64_t scope, hone_error *e),
    __wrap_hone_seq_set_scope(hone_session *s, int32_t q, uint64_t scope, hone_error *e);
hone_status __wrap_hone_seq_set_scope(hone_session *s, int32_t q, uint64_t scope, hone_error *e)
{
    return __real_hone_seq_set_scope(s, q, mt_is("scope-ignored") ? 0 : scope, e);
}

hone_status __real_hone_seq_rewind(hone_session *s, int32_t q, int32_t n, int32_t *kept, hone_error *e),
    __wrap_hone_seq_rewind(hone_session *s, int32_t q, int32_t n, int32_t *kept, hone_error *e);
hone_status __wrap_hone_seq_rewind(hone_session *s, int32_t q, int32_t n, int32_t *kept, hone_error *e)
{
    return __real_hone_seq_rewind(s, q, mt_is("rewind-more") && n > 0 ? n - 1 : n, kept, e);
}

hone_status __real_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e);
hone_status __wrap_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e);
hone_status __wrap_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e)
{
    hone_status st = __real_hone_snapshot_load(o, m, p, e);
    if (st == HONE_OK) past.deep_snap |= hone_snapshot_length(*o) > 256;
    return st;
}

/* The scheduler's passes. */
hone_status __real_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e);
hone_status __wrap_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e);
hone_status __wrap_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e)
{
    mt_begin(n, n > 0 ? t[0].pos : 0, 1);
    mo_batch(t, n);
    past.of_scheduler = true;
    return __real_hn_session_run(s, t, n, l, e);
}

/* ---- conversations and grammars -------------------------------------------------------------------------- */

hone_status __real_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e);
hone_status __wrap_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e);
hone_status __wrap_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e)
{
    hone_chat_params k = *p;
    if (mt_is("chat-tools")) k.tools = NULL;
    if (mt_is("chat-variables")) k.variables = NULL;
    if (mt_is("input-spells-control")) k.trust_input = true;
    return __real_hone_chat_render(m, &k, o, e);
}

static bool any_of; /* stands in the grammar compiled last */

hone_status __real_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e);
hone_status __wrap_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e);
hone_status __wrap_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e)
{
    any_of |= p->text && p->len && memmem(p->text, p->len, "anyOf", 5);
    if (mt_is("format-uuid") && p->text && p->len && memmem(p->text, p->len, "\"uuid\"", 6)) {
        static const char other[] = "{\"type\":\"string\",\"format\":\"date\"}";
        hone_grammar_params k = *p;
        k.text = other;
        k.len = sizeof other - 1;
        return __real_hone_grammar_compile(o, &k, e);
    }
    if (mt_is("times-of-six") && p->kind == HONE_GRAMMAR_REGEX && p->text && p->len < 1000) { /* {m,6} is {m,5} */
        char text[1000];
        memcpy(text, p->text, p->len);
        for (size_t i = 2; i + 1 < p->len; i++)
            if (text[i - 1] == ',' && text[i - 2] < text[i] - 1 && text[i] > '5' && text[i] <= '9' &&
                text[i + 1] == '}')
                text[i]--;
        hone_grammar_params k = *p;
        k.text = text;
        return __real_hone_grammar_compile(o, &k, e);
    }
    char *numbers = mt_is("property-of-numbers") && p->len ? memmem(p->text, p->len, "\\p{N}", 5) : NULL;
    if (numbers && p->kind == HONE_GRAMMAR_REGEX && p->len < 200) { /* are signs */
        char text[200];
        memcpy(text, p->text, p->len);
        text[numbers - p->text + 3] = 'P';
        hone_grammar_params k = *p;
        k.text = text;
        return __real_hone_grammar_compile(o, &k, e);
    }
    return __real_hone_grammar_compile(o, p, e);
}

hone_status __real_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e);
hone_status __wrap_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e);
hone_status __wrap_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e)
{
    hone_status st = __real_hone_matcher_mask(m, a, w, n, e);
    if (st == HONE_OK && mt_is("mask-anyof") && any_of) a[w / 2] ^= 1;
    if (st == HONE_OK && mt_is("serve-grammar-ignored") && mo_serves()) memset(a, 0xFF, w * sizeof *a);
    return st;
}

hone_status __real_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e),
    __wrap_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e);
hone_status __wrap_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e)
{
    return __real_hone_matcher_rollback(m, mt_is("rollback-two") && n > 1 ? n - 1 : n, e);
}

hone_status __real_hone_reply_push(hone_reply *r, int32_t id, const hone_reply_part **parts, size_t *n,
                                   hone_reply_end *end, hone_error *e);
hone_status __wrap_hone_reply_push(hone_reply *r, int32_t id, const hone_reply_part **parts, size_t *n,
                                   hone_reply_end *end, hone_error *e);
hone_status __wrap_hone_reply_push(hone_reply *r, int32_t id, const hone_reply_part **parts, size_t *n,
                                   hone_reply_end *end, hone_error *e)
{
    hone_status st = __real_hone_reply_push(r, id, parts, n, end, e);
    static hone_reply_part told;
    if (st != HONE_OK || !mt_is("reasoning-as-text") || *n != 1 || (*parts)->part != HONE_PART_REASONING) return st;
    told = **parts;
    told.part = HONE_PART_TEXT;
    *parts = &told;
    return st;
}

hone_status __real_hone_rank_tokenize(const hone_model *m, const char *how, const char *q, size_t n_q, const char *d,
                                      size_t n_d, int32_t **ids, size_t *n, hone_error *e);
hone_status __wrap_hone_rank_tokenize(const hone_model *m, const char *how, const char *q, size_t n_q, const char *d,
                                      size_t n_d, int32_t **ids, size_t *n, hone_error *e);
hone_status __wrap_hone_rank_tokenize(const hone_model *m, const char *how, const char *q, size_t n_q, const char *d,
                                      size_t n_d, int32_t **ids, size_t *n, hone_error *e)
{
    return __real_hone_rank_tokenize(m, mt_is("rank-without-task") ? NULL : how, q, n_q, d, n_d, ids, n, e);
}

/* What was held back for a stop is lost. */
hone_status __real_hone_stream_flush(hone_stream *s, const char **text, size_t *len, hone_error *e),
    __wrap_hone_stream_flush(hone_stream *s, const char **text, size_t *len, hone_error *e);
hone_status __wrap_hone_stream_flush(hone_stream *s, const char **text, size_t *len, hone_error *e)
{
    hone_status st = __real_hone_stream_flush(s, text, len, e);
    if (st == HONE_OK && mt_is("flush-lost") && *len && memcmp(*text, "ends", *len < 4 ? *len : 4) == 0) *len = 0;
    return st;
}

/* trim keeps what is behind. */
hone_status __real_hone_template_render(const char *source, size_t len, const char *name, const char *context,
                                        const char *now, char **text, size_t *n, hone_error *e);
hone_status __wrap_hone_template_render(const char *source, size_t len, const char *name, const char *context,
                                        const char *now, char **text, size_t *n, hone_error *e);
hone_status __wrap_hone_template_render(const char *source, size_t len, const char *name, const char *context,
                                        const char *now, char **text, size_t *n, hone_error *e)
{
    char other[400];
    const char *trim = memmem(source, len, "|trim", 5);
    if (!mt_is("trim-right") || !trim || len + 1 > sizeof other)
        return __real_hone_template_render(source, len, name, context, now, text, n, e);
    const size_t before = (size_t)(trim - source);
    snprintf(other, sizeof other, "%.*s.lstrip()%.*s", (int)before, source, (int)(len - before - 5), trim + 5);
    return __real_hone_template_render(other, strlen(other), name, context, now, text, n, e);
}

/* ---- training ---------------------------------------------------------------------------------------------- */

int64_t mo_passes;

bool mo_train_late(void)
{
    enum { PROVED = 14 };
    return mt_is("train-later") && mo_passes > PROVED;
}
