/* What masks cost, and where they lead: over the vectors of data/json-schema and any vocabulary or model.
 *     cc -O2 -std=gnu11 -Isrc -Iinclude tests/dev/walk_schemas.c build/release/libhone.a -ljansson -lm -lpthread \
 *        -o build/walk_schemas
 *     build/walk_schemas masks VOCAB.gguf FILE.jsonl …    each prefix's mask holds the next token; µs of each mask
 *     build/walk_schemas walks MODEL.gguf SEEDS FILE.jsonl >TEXTS
 *     build/walk_schemas lenient MODEL.gguf SEEDS FILE.jsonl >TEXTS    as schemas of tools, with what is told of them
 * The second draws texts, by the model at temperature 1.5 where the file has weights, else any allowed token alike;
 * tests/dev/check_schemas.py holds them against a validator that is not hone's. */
#include "text/grammar.h"
#include "text/schema_tree.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { FREE_TOKENS = 60, CLOSING = 2600 };

typedef struct group {
    hone_str id;
    const hn_jnode *tests;
    const char *schema;
    size_t n_schema;
} group;

static hone_model *model;
static hone_model_info info;
static double *us;
static size_t n_us, cap_us;
static long n_masks, n_bad, n_refused, n_groups, n_unfinished;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void timed(double x)
{
    if (n_us == cap_us) us = realloc(us, (cap_us = cap_us * 2 + 4096) * sizeof *us);
    us[n_us++] = x;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_text(hone_grammar *g, const group *gr, hone_str text, uint64_t *bits, size_t words)
{
    hone_error err;
    hone_matcher *m;
    int32_t *ids;
    size_t n;
    if (text.len > 3000) return; /* the long ones are thousands of equal masks */
    if (hone_tokenize(model, text.ptr, text.len, 0, &ids, &n, &err) || hone_matcher_new(&m, g, model, &err)) exit(1);
    for (size_t i = 0; i < n; i++) {
        int64_t k;
        size_t len;
        const char *p = hone_token_piece(model, ids[i], false, &len);
        if (!p || len == 0) break; /* no bytes of its own */
        double t = now_us();
        if (hone_matcher_mask(m, bits, words, &k, &err) != HONE_OK) {
            printf("%.*s: %s\n", (int)gr->id.len, gr->id.ptr, err.message);
            n_bad++;
            break;
        }
        timed(now_us() - t);
        n_masks++;
        if (!(bits[ids[i] / 64] >> (ids[i] % 64) & 1)) {
            if (i == 0 && *p == ' ') break; /* the space that SentencePiece puts first */
            printf("%.*s: token %zu of %.*s is not in the mask\n", (int)gr->id.len, gr->id.ptr, i, (int)text.len,
                   text.ptr);
            n_bad++;
            break;
        }
        if (hone_matcher_accept(m, ids + i, 1, &err) != HONE_OK) {
            printf("%.*s: %s, but the mask holds it\n", (int)gr->id.len, gr->id.ptr, err.message);
            n_bad++;
            break;
        }
    }
    hone_matcher_free(m);
    hone_free(ids);
}

static int32_t *single; /* tokens of one byte, and those that end a text */
static int32_t n_single;

static void find_single(void)
{
    single = malloc(((size_t)info.n_vocab + 1) * sizeof *single);
    for (int32_t id = 0; id < info.n_vocab; id++) {
        size_t len = 0;
        if (hone_token_is_eog(model, id) || (hone_token_piece(model, id, false, &len) && len == 1))
            single[n_single++] = id;
    }
}

/* Of the tokens allowed, the one that is likely to bring the text to its end; -1: none of one byte. */
static int32_t closing(const uint64_t *bits, uint64_t *seed)
{
    static const char outside[] = "}]\":,0123456789ntfulaesr", inside[] = "\"0123456789abcdef";
    const char *order = outside;
    int32_t best = -1, rank = 1000;
    for (int32_t i = 0; i < n_single; i++) { /* only strings have room for this one */
        size_t len;
        const char *p = hone_token_piece(model, single[i], false, &len);
        if (p && len == 1 && *p == '%' && bits[single[i] / 64] >> (single[i] % 64) & 1) order = inside;
    }
    for (int32_t i = 0; i < n_single; i++) {
        int32_t id = single[i];
        size_t len;
        if (!(bits[id / 64] >> (id % 64) & 1)) continue;
        if (hone_token_is_eog(model, id)) return id;
        const char *p = hone_token_piece(model, id, false, &len);
        const char *at = *p ? strchr(order, *p) : NULL;
        int32_t r = at                                                                ? (int32_t)(at - order)
                    : *p == '{' || *p == '[' || *p == '\\' || *p == ' ' || *p == '\n' ? 200
                                                                                      : 100;
        if (r == 100) r += (int32_t)(hn_mix64(++*seed) % 50);
        if (r < rank) rank = r, best = id;
    }
    return best;
}

static int32_t alike(const uint64_t *bits, size_t words, int64_t n, uint64_t *seed)
{
    int64_t k = (int64_t)(hn_mix64(++*seed) % (uint64_t)n);
    for (size_t w = 0; w < words; w++) {
        int64_t c = __builtin_popcountll(bits[w]);
        if (k >= c) {
            k -= c;
            continue;
        }
        for (int b = 0; b < 64; b++)
            if (bits[w] >> b & 1 && k-- == 0) return (int32_t)(w * 64) + b;
    }
    return -1;
}

static void walk_once(hone_grammar *g, const group *gr, int line, uint64_t seed, hone_session *s, hone_sampler *sampler,
                      uint64_t *bits, size_t words)
{
    hone_error err;
    hone_matcher *m;
    const float *logits = NULL;
    int32_t id = hone_token_bos(model) >= 0 ? hone_token_bos(model) : 0;
    uint64_t r = hn_mix64(seed * 1000003 + (uint64_t)line);
    if (hone_matcher_new(&m, g, model, &err)) exit(1);
    if (s && hone_seq_truncate(s, 0, 0, &err)) exit(1);
    printf("%.*s\t", (int)gr->id.len, gr->id.ptr);
    int i = 0;
    for (; i < FREE_TOKENS + CLOSING; i++) {
        int64_t n;
        size_t len;
        double t = now_us();
        if (hone_matcher_mask(m, bits, words, &n, &err) != HONE_OK || n == 0) {
            fprintf(stderr, "%.*s: %s\n", (int)gr->id.len, gr->id.ptr, n ? err.message : "no token is allowed");
            n_bad++;
            break;
        }
        timed(now_us() - t);
        if (s && i < FREE_TOKENS) {
            hone_pick p = { .allowed = bits, .pos = (int32_t)(seed * 1000) + i };
            if (hone_append(s, 0, &id, 1, &logits, &err) || hone_sampler_pick_from(sampler, logits, &p, &id, &err))
                exit(1);
        } else {
            id = i < FREE_TOKENS ? -1 : closing(bits, &r);
            if (id < 0) id = alike(bits, words, n, &r);
        }
        if (id < 0 || hone_matcher_accept(m, &id, 1, &err)) {
            fprintf(stderr, "%.*s: %s\n", (int)gr->id.len, gr->id.ptr, err.message);
            n_bad++;
            break;
        }
        if (hone_token_is_eog(model, id)) break;
        const unsigned char *p = (const unsigned char *)hone_token_piece(model, id, false, &len);
        for (size_t k = 0; k < len; k++) printf("%02x", p[k]);
    }
    if (i == FREE_TOKENS + CLOSING) {
        n_unfinished++;
        printf("\tunfinished");
    }
    printf("\n");
    hone_matcher_free(m);
}

/* The group of one line; false: it wants to be refused. */
static bool read_group(group *gr, hn_arena *a, const char *line, size_t n)
{
    hn_jnode *o;
    hone_error err;
    if (hn_jtree(&o, a, line, n, 250, "vectors", &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    const char *p = strstr(line, "\"schema\":") + 9, *end = strstr(p, ",\"tests\":["), *next;
    while (end && (next = strstr(end + 1, ",\"tests\":[["))) end = next;
    *gr = (group){ hn_jget(o, "id")->str, hn_jget(o, "tests"), p, (size_t)(end - p) };
    return true;
}

static bool lenient;

static hone_status compile(hone_grammar **g, const group *gr, hone_error *err)
{
    hone_grammar_params p = { .text = gr->schema, .len = gr->n_schema, .strict = true };
    hn_schema_rules rules = { .lenient = true };
    hn_gnode root;
    if (!lenient) return hone_grammar_compile(g, &p, err);
    hone_status st = hn_grammar_new(g, err);
    if (st == HONE_OK) st = hn_schema_compile(*g, gr->schema, gr->n_schema, &rules, &root, err);
    if (st == HONE_OK) st = hn_grammar_finish(*g, root, err);
    if (st == HONE_OK) printf("%.*s\tnotes\t%s\n", (int)gr->id.len, gr->id.ptr, hone_grammar_notes(*g));
    else hone_grammar_free(*g);
    return st;
}

static void each_file(const char *path, bool walks, uint64_t seeds, hone_session *s, hone_sampler *sampler)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, words = ((size_t)info.n_vocab + 63) / 64;
    uint64_t *bits = malloc(words * 8);
    int number = 0;
    if (!f) exit(1);
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0; number++) {
        hn_arena *a = hn_arena_new();
        group gr;
        hone_grammar *g;
        hone_error err;
        read_group(&gr, a, line, (size_t)n);
        if (compile(&g, &gr, &err) != HONE_OK) {
            if (getenv("WALK_REFUSED")) fprintf(stderr, "%.*s: %s\n", (int)gr.id.len, gr.id.ptr, err.message);
            n_refused++;
        } else {
            n_groups++;
            for (const hn_jnode *t = walks ? NULL : gr.tests->first; t; t = t->next)
                if (hn_str_is(t->first->next->str, "accept")) check_text(g, &gr, t->first->str, bits, words);
            for (uint64_t k = 0; walks && k < seeds; k++) walk_once(g, &gr, number, k, s, sampler, bits, words);
            hone_grammar_free(g);
        }
        hn_arena_free(a);
    }
    free(bits);
    free(line);
    fclose(f);
}

int main(int argc, char **argv)
{
    hone_error err;
    lenient = argc > 4 && strcmp(argv[1], "lenient") == 0;
    bool walks = lenient || (argc > 4 && strcmp(argv[1], "walks") == 0);
    hone_model_params p = { .vocab_only = false };
    hone_session *s = NULL;
    hone_sampler *sampler = NULL;
    hone_context *ctx = NULL;
    if (argc < 4) return 2;
    if (hone_model_open(&model, argv[2], &p, NULL) != HONE_OK) {
        p.vocab_only = true;
        if (hone_model_open(&model, argv[2], &p, &err) != HONE_OK) return fprintf(stderr, "%s\n", err.message), 1;
    }
    hone_model_get_info(model, &info);
    find_single();
    if (walks && !p.vocab_only) {
        hone_sampler_params sp = { .temp = 1.5f, .top_p = 1, .repeat_penalty = 1, .seed = 7 };
        hone_session_params q = { .n_ctx = FREE_TOKENS + 8 };
        if (hone_context_new(&ctx, NULL, &err) || hone_session_new(&s, ctx, model, &q, &err) ||
            hone_sampler_new(&sampler, info.n_vocab, &sp, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
    }
    for (int i = walks ? 4 : 3; i < argc; i++)
        each_file(argv[i], walks, walks ? strtoull(argv[3], NULL, 10) : 0, s, sampler);
    qsort(us, n_us, sizeof *us, by_size);
    double sum = 0;
    for (size_t i = 0; i < n_us; i++) sum += us[i];
    if (n_us)
        fprintf(
            stderr,
            "%ld groups, %ld refused, %zu masks over %d tokens: mean %.1f us, p50 %.1f, p90 %.1f, p99 %.1f, most %.0f; "
            "%ld wrong, %ld unfinished\n",
            n_groups, n_refused, n_us, info.n_vocab, sum / (double)n_us, us[n_us / 2], us[n_us * 9 / 10],
            us[n_us * 99 / 100], us[n_us - 1], n_bad, n_unfinished);
    return n_bad != 0;
}
