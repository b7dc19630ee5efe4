/* Questions that are drawn by a number: two programs that were given the same one are asked the same, and nobody knows
 * before which. Owns how they are drawn: a change of that is another part. */
#include "lab/quality/outer_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct drawing {
    hn_asking *a;
    uint64_t key, n;
} drawing;

static uint64_t draw(drawing *d, uint64_t below) { return hn_rand64(d->key, d->n++) % below; }

/* Most often small, and now and then as large as may be. */
static uint64_t draw_small(drawing *d, uint64_t below) { return draw(d, 1 + draw(d, 1 + draw(d, below))); }

static bool over(hone_status st) { return st == HONE_E_NOMEM; }

/* ---- texts ----------------------------------------------------------------------------------------------- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = n; i-- > 1; c >>= 6) to[i] = (char)(0x80 | (c & 63));
    to[0] = (char)(lead[n] | c);
    return n;
}

/* Runs of one kind of characters: letters, digits, blanks, signs, other scripts, now and then bytes that are none. */
static size_t draw_text(drawing *d, char *text, size_t most)
{
    static const struct {
        uint32_t first, n;
    } kinds[] = { { 'a', 26 },    { 'a', 26 },       { 'a', 26 },       { 'A', 26 },    { '0', 10 },
                  { ' ', 1 },     { ' ', 1 },        { '\n', 1 },       { '!', 15 },    { ':', 7 },
                  { '[', 6 },     { 0xC0, 64 },      { 0x410, 64 },     { 0x391, 50 },  { 0x5D0, 27 },
                  { 0x627, 36 },  { 0x905, 50 },     { 0xE01, 46 },     { 0x300, 60 },  { 0x3041, 80 },
                  { 0x30A1, 80 }, { 0x4E00, 20000 }, { 0xAC00, 11000 }, { 0x2010, 60 }, { 0x1F300, 600 },
                  { 0x200B, 4 },  { '\t', 1 },       { 0xFE0F, 1 },     { 1, 30 } };
    const size_t want = 1 + draw_small(d, most - 4);
    size_t n = 0;
    while (n < want) {
        const size_t k = draw(d, sizeof kinds / sizeof *kinds), run = 1 + draw_small(d, draw(d, 20) ? 9 : 400);
        for (size_t i = 0; i < run && n + 4 < most; i++)
            n += put_utf8(text + n, kinds[k].first + (uint32_t)draw(d, kinds[k].n));
        if (n + 4 >= most) break;
        if (draw(d, 60) == 0) text[n++] = (char)(0x80 + draw(d, 128));
    }
    return n;
}

/* Short runs of letters, digits, signs and blanks, with characters from beyond the first plane directly beside them. */
static hone_status beside_each_other(drawing *d)
{
    enum { TEXTS = 30, RUNS = 24, MOST = 4 };
    static const struct {
        uint32_t first, n;
    } kinds[] = { { 'a', 26 }, { 'A', 26 },      { '0', 10 },     { ' ', 1 },       { '!', 15 },
                  { '\n', 1 }, { 0x1F300, 600 }, { 0x10330, 27 }, { 0x20000, 900 }, { 0x1D400, 700 } };
    hn_asking *a = d->a;
    char text[RUNS * MOST * 4 + 4];
    hone_status st = HONE_OK;
    for (int i = 0; i < TEXTS && !over(st); i++) {
        size_t n = 0;
        for (uint64_t runs = 1 + draw(d, RUNS); runs > 0; runs--) {
            const size_t k = draw(d, sizeof kinds / sizeof *kinds);
            for (uint64_t more = 1 + draw(d, MOST); more > 0; more--)
                n += put_utf8(text + n, kinds[k].first + (uint32_t)draw(d, kinds[k].n));
        }
        st = hn_asking_tokens(a, text, n, 0);
    }
    return st;
}

/* Words of one length and one beginning, most of them more than once, and other ones between. */
static hone_status alike(drawing *d)
{
    enum { WORDS = 900, TEXTS = 5, LONGEST = 24 };
    hn_asking *a = d->a;
    char *text = malloc((size_t)WORDS * (LONGEST + 1));
    hone_status st = text ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a text");
    for (int i = 0; i < TEXTS && !over(st); i++) {
        const size_t same = 2 + draw(d, 12), rest = 2 + draw(d, 8);
        const uint64_t key = draw(d, 1u << 30), different = 20 + draw(d, WORDS);
        size_t n = 0;
        for (int w = 0; w < WORDS; w++) {
            const uint64_t which = draw(d, different);
            for (size_t k = 0; k < same; k++) text[n++] = (char)('a' + hn_rand64(key, k) % 26);
            for (size_t k = 0; k < rest; k++) text[n++] = (char)('a' + hn_rand64(key + which + 1, k) % 26);
            text[n++] = draw(d, 9) ? ' ' : ',';
        }
        st = hn_asking_tokens(a, text, n, 0);
    }
    free(text);
    return st;
}

static hone_status texts(drawing *d)
{
    enum { TEXTS = 40, MOST = 6000 };
    hn_asking *a = d->a;
    char *text = malloc(MOST);
    hone_status st = text ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a text");
    for (int i = 0; i < TEXTS && !over(st); i++) {
        int32_t *ids = NULL;
        char *back = NULL;
        size_t n_ids = 0, len = 0, n = draw_text(d, text, i % 8 ? 300 : MOST);
        st = hone_tokenize(a->m, text, n, (int)draw(d, 8), &ids, &n_ids, &a->err);
        if (!hn_asking_took(a, st)) continue;
        hn_asking_number(a, (int64_t)n_ids);
        hn_asking_add(a, ids, n_ids * sizeof *ids);
        st = hone_detokenize(a->m, ids, n_ids, i % 2, &back, &len, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, back, len);
        hone_free(back);
        hone_free(ids);
    }
    free(text);
    return st;
}

/* The ids as a stream that ends at the first of those stops. */
static hone_status streamed(drawing *d, const char *const *list, size_t n_stops, const int32_t *ids, size_t n)
{
    hn_asking *a = d->a;
    hone_stream *s = NULL;
    hone_status st = hone_stream_new(&s, a->m, list, n_stops, &a->err);
    bool stopped = false;
    const char *piece;
    size_t got;
    if (!hn_asking_took(a, st)) return st;
    for (size_t i = 0; i < n && !stopped && st == HONE_OK; i++) {
        st = hone_stream_push(s, ids[i], &piece, &got, &stopped, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, piece, got), hn_asking_number(a, stopped ? (int64_t)i : -1);
    }
    if (st == HONE_OK) st = hone_stream_flush(s, &piece, &got, &a->err);
    if (hn_asking_took(a, st)) hn_asking_add(a, piece, got);
    hone_stream_free(s);
    return st;
}

/* Texts of two letters and stops of the same: what fails to be one stop may be the beginning of the next. */
static hone_status overlaps(drawing *d)
{
    enum { TEXTS = 80, MOST = 160, STOPS = 4, LENGTH = 12 };
    hn_asking *a = d->a;
    char text[MOST], stop[STOPS][LENGTH + 1];
    const char *list[STOPS];
    hone_status st = HONE_OK;
    for (int i = 0; i < TEXTS && !over(st); i++) {
        const char two[] = { (char)('a' + draw(d, 26)), draw(d, 4) ? (char)('a' + draw(d, 26)) : ' ' };
        const size_t len = 20 + draw(d, MOST - 20), n_stops = 1 + draw(d, STOPS);
        int32_t *ids = NULL;
        size_t n = 0;
        for (size_t k = 0; k < len; k++) text[k] = two[draw(d, 3) == 0];
        for (size_t k = 0; k < n_stops; k++) {
            const size_t length = 3 + draw(d, LENGTH - 2);
            for (size_t c = 0; c < length; c++) stop[k][c] = two[draw(d, 3) == 0];
            stop[k][length] = 0;
            list[k] = stop[k];
            if (k && draw(d, 2)) { /* the end of the one before, and, as often as not, in front of it */
                const char *before = list[k - 1], *end = before[1] ? before + 1 : before;
                const bool first = draw(d, 2);
                list[k - 1] = first ? end : before;
                list[k] = first ? before : end;
            }
        }
        st = hone_tokenize(a->m, text, len, 0, &ids, &n, &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = streamed(d, list, n_stops, ids, n);
        hone_free(ids);
    }
    return st;
}

/* Stops that are pieces of the text itself, short and long, and some that are not in it. */
static hone_status stops_of(drawing *d, const char *text, size_t len, const int32_t *ids, size_t n)
{
    enum { STOPS = 9, LENGTH = 40 };
    char stop[STOPS][LENGTH + 1];
    const char *list[STOPS];
    const size_t n_stops = draw(d, STOPS + 1);
    for (size_t i = 0; i < n_stops; i++) {
        size_t k = 1 + draw_small(d, LENGTH), at = len / 4 + draw(d, len);
        if (at + k > len) at = 0, k = k < len ? k : len;
        memcpy(stop[i], text + at, k);
        stop[i][k] = 0;
        if (draw(d, 3) == 0) stop[i][k - 1] = '~';
        list[i] = stop[i];
    }
    return streamed(d, list, n_stops, ids, n);
}

static hone_status streams(drawing *d)
{
    enum { TEXTS = 30, MOST = 500 };
    hn_asking *a = d->a;
    char text[MOST];
    hone_status st = HONE_OK;
    for (int i = 0; i < TEXTS && !over(st); i++) {
        int32_t *ids = NULL;
        size_t n_ids = 0, n = draw_text(d, text, MOST);
        for (size_t k = 0; k < n; k++)
            if (!text[k]) text[k] = ' ';
        st = hone_tokenize(a->m, text, n, 0, &ids, &n_ids, &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = stops_of(d, text, n, ids, n_ids);
        hone_free(ids);
    }
    return st;
}

/* ---- samplers -------------------------------------------------------------------------------------------- */

static float one_of(drawing *d, const float *x, size_t n) { return x[draw(d, n)]; }
#define ONE_OF(d, ...) one_of(d, (const float[]){ __VA_ARGS__ }, sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

/* Of vocabularies of every size, the greatest logit anywhere: more than once, too. */
static hone_status samplers(drawing *d)
{
    enum { CHAINS = 70, MOST = 3000, TOP = 64 };
    hn_asking *a = d->a;
    float *x = malloc(MOST * sizeof *x), own;
    hone_logprob top[TOP];
    hone_status st = x ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "logits");
    for (int i = 0; i < CHAINS && !over(st); i++) {
        const int32_t n = 1 + (int32_t)draw_small(d, MOST - 1), times = 1 + (int32_t)draw_small(d, 400);
        const hone_sampler_params p = { .temp = ONE_OF(d, 0, 0, 0.4f, 0.8f, 1, 1.7f),
                                        .top_k = (int32_t)draw_small(d, (uint64_t)n + 2),
                                        .top_p = ONE_OF(d, 1, 1, 0.95f, 0.7f, 0.3f),
                                        .min_p = ONE_OF(d, 0, 0, 0.02f, 0.2f),
                                        .repeat_penalty = ONE_OF(d, 1, 1, 1.1f, 1.5f, 0.9f),
                                        .presence_penalty = ONE_OF(d, 0, 0, 0.4f, -0.3f),
                                        .frequency_penalty = ONE_OF(d, 0, 0, 0.2f, 0.7f),
                                        .penalty_last_n = (int32_t)draw_small(d, 500) - 1,
                                        .seed = draw(d, 1ull << 40) };
        for (int32_t k = 0; k < n; k++) x[k] = (float)((int64_t)draw(d, 1 << 20) - (1 << 19)) * 0x1p-16f;
        for (uint64_t peaks = draw(d, 4); peaks > 0; peaks--)
            x[draw(d, 3) ? draw(d, (uint64_t)n) : (uint64_t)n - 1] = 9;
        hone_sampler *s = NULL;
        st = hone_sampler_new(&s, n, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = hn_asking_picks(a, s, x, times);
        hone_sampler_free(s);
        if (over(st)) break;
        const int32_t n_top = (int32_t)draw(d, (uint64_t)(n < TOP ? n : TOP) + 1);
        st = hone_logprobs(x, n, (int32_t)draw(d, (uint64_t)n), &own, top, n_top, &a->err);
        if (!hn_asking_took(a, st)) continue;
        hn_asking_add(a, &own, sizeof own);
        for (int32_t k = 0; k < n_top; k++)
            hn_asking_number(a, top[k].id), hn_asking_add(a, &top[k].logprob, sizeof top[k].logprob);
    }
    free(x);
    return st;
}

/* ---- grammars -------------------------------------------------------------------------------------------- */

typedef struct written {
    char text[1200];
    size_t n;
} written;

static void put(written *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(written *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(w->text + w->n, sizeof w->text - w->n, fmt, ap);
    va_end(ap);
    if (n > 0) w->n += (size_t)n < sizeof w->text - w->n ? (size_t)n : sizeof w->text - w->n - 1;
}

/* "", "?", "*", "+", "{3}", "{3,}", "{3,17}"; of what is nested few times: counts within counts multiply. */
static void put_times(drawing *d, written *w, int depth)
{
    const int least = (int)draw_small(d, depth ? 3 : 12), more = (int)draw(d, depth ? 3 : 14);
    switch (draw(d, 9)) {
    case 0: put(w, "?"); break;
    case 1: put(w, "*"); break;
    case 2: put(w, "+"); break;
    case 3: put(w, "{%d}", least + 1); break;
    case 4: put(w, "{%d,}", least); break;
    case 5:
    case 6:
    case 7: put(w, "{%d,%d}", least, least + 1 + more); break;
    default: break;
    }
}

static void put_class(drawing *d, written *w)
{
    const char from = (char)('a' + draw(d, 20)), digit = (char)('0' + draw(d, 6));
    if (draw(d, 2)) put(w, "[%c-%c]", from, (char)(from + 1 + draw(d, 5)));
    else put(w, "[%c%c-%c]", from, digit, (char)(digit + 1 + draw(d, 3)));
}

/* The same in both notations: literals, classes, alternatives, each so many times. */
static void put_expression(drawing *d, written *w, bool gbnf, int depth)
{
    for (uint64_t parts = 1 + draw(d, depth ? 2 : 4); parts > 0; parts--) {
        const bool group = depth < 2 && draw(d, 3) == 0;
        if (group) {
            put(w, "(");
            put_expression(d, w, gbnf, depth + 1);
            put(w, "|");
            put_expression(d, w, gbnf, depth + 1);
            put(w, ")");
        } else if (draw(d, 3) == 0) {
            put(w, gbnf ? "\"%c%c\"" : "%c%c", (char)('a' + draw(d, 26)), (char)('0' + draw(d, 10)));
            if (!gbnf) continue; /* there the times would be of its last letter */
        } else put_class(d, w);
        put_times(d, w, group ? 1 : depth);
        if (gbnf) put(w, " ");
    }
}

static void put_schema(drawing *d, written *w, int depth)
{
    const int least = (int)draw_small(d, 9), most = least + (int)draw_small(d, 14);
    switch (draw(d, depth < 2 ? 8 : 5)) {
    case 0: put(w, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", least * 7 - 20, most * 31); break;
    case 1: put(w, "{\"type\":\"string\",\"minLength\":%d,\"maxLength\":%d}", least, most); break;
    case 2: put(w, "{\"enum\":[\"a%d\",\"b\",%d,null,\"a%d2\"]}", least, most, least); break;
    case 3: put(w, "{\"type\":[\"boolean\",\"null\"]}"); break;
    case 4: put(w, "{\"type\":\"string\",\"pattern\":\"^[a-c]{%d,%d}$\"}", least, most); break;
    case 5:
        put(w, "{\"type\":\"array\",\"minItems\":%d,\"maxItems\":%d,\"items\":", least, most);
        put_schema(d, w, depth + 1);
        put(w, "}");
        break;
    case 6:
        put(w, "{\"anyOf\":[");
        put_schema(d, w, depth + 1);
        put(w, ",");
        put_schema(d, w, depth + 1);
        put(w, "]}");
        break;
    default: {
        const int n = 1 + (int)draw(d, 5);
        put(w, "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"p0\"],\"properties\":{");
        for (int i = 0; i < n; i++) {
            put(w, "%s\"p%d\":", i ? "," : "", i);
            put_schema(d, w, depth + 1);
        }
        put(w, "}}");
    }
    }
}

/* Along a text of it, letter by letter: which may stand there is drawn, or, again, the one before, as often as may be;
 * where none may, or all is said, it ends. */
static hone_status spell(drawing *d, hone_matcher *m, bool again)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789\"{}[]:, -.";
    enum { N = sizeof letters - 1, MOST = 90 };
    hn_asking *a = d->a;
    hone_status st = HONE_OK;
    uint64_t last = 0;
    for (int i = 0; i < MOST && !over(st); i++) {
        const uint64_t any = draw(d, N), from = again && i ? last : any;
        uint64_t k = 0;
        for (; k < N; k++) {
            st = hone_matcher_accept_text(m, &letters[(from + k) % N], 1, &a->err);
            if (st == HONE_OK || over(st)) break;
        }
        hn_asking_number(a, (int64_t)k * 2 + hone_matcher_can_end(m));
        if (k == N) break;
        last = (from + k) % N;
    }
    return st;
}

/* The ids that may come next, a few times. */
static hone_status mask_along(drawing *d, hone_matcher *m, uint64_t *mask, size_t n_words)
{
    enum { STEPS = 6 };
    hn_asking *a = d->a;
    hone_status st = HONE_OK;
    for (int i = 0; i < STEPS && st == HONE_OK; i++) {
        int64_t n = 0;
        st = i % 2 ? hone_matcher_mask_within(m, STEPS + (int64_t)draw(d, 9), mask, n_words, &n, &a->err)
                   : hone_matcher_mask(m, mask, n_words, &n, &a->err);
        if (!hn_asking_took(a, st)) break;
        hn_asking_number(a, n);
        hn_asking_add(a, mask, n_words * sizeof *mask);
        if (n < 1) break;
        int64_t nth = (int64_t)draw(d, (uint64_t)n);
        int32_t id = -1;
        for (int32_t k = 0; k < a->info.n_vocab && id < 0; k++)
            if (mask[k / 64] >> (k % 64) & 1 && nth-- == 0) id = k;
        if (id < 0 || hone_token_is_eog(a->m, id)) break;
        st = hone_matcher_accept(m, &id, 1, &a->err);
    }
    return st;
}

static hone_status grammars(drawing *d)
{
    enum { GRAMMARS = 48 };
    hn_asking *a = d->a;
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    for (int i = 0; i < GRAMMARS && !over(st); i++) {
        static const hone_grammar_kind kinds[] = { HONE_GRAMMAR_GBNF, HONE_GRAMMAR_REGEX, HONE_GRAMMAR_JSON_SCHEMA };
        written w = { .n = 0 };
        if (i % 3 == 0) put(&w, "root ::= ");
        if (i % 3 < 2) put_expression(d, &w, i % 3 == 0, 0);
        else put_schema(d, &w, 0);
        const hone_grammar_params p = { .kind = kinds[i % 3], .text = w.text, .len = w.n };
        hone_grammar *g = NULL;
        st = hone_grammar_compile(&g, &p, &a->err);
        hn_asking_took(a, st);
        for (int k = 0; g && k < 4 && !over(st); k++) {
            hone_matcher *m = NULL;
            st = hone_matcher_new(&m, g, a->m, &a->err);
            if (m) st = k < 3 ? spell(d, m, k > 0) : mask_along(d, m, mask, n_words);
            hone_matcher_free(m);
        }
        hone_grammar_free(g);
    }
    free(mask);
    return st;
}

/* ---- conversations --------------------------------------------------------------------------------------- */

static hone_status talks(drawing *d)
{
    enum { TALKS = 28, CAP = 24000 };
    static const char own[] =
        "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ loop.revindex0 }}{% if loop.first %}F{% endif %}"
        "{% if loop.last %}L{% else %},{% endif %}{{ loop.cycle('x', 'y', 'z') }}<{{ m.role | upper }}>"
        "{{ m['content'] | trim }}{{ m.content[:7] }}{{ m.content[-3:] }}{{ m.content.split(' ') | join('-') }}"
        "{{ m.content | length }}{% endfor %}{% set n = namespace(i=0) %}{% for m in messages[1:] if m.role == 'user' "
        "%}"
        "{% set n.i = n.i + loop.index0 * 3 % 7 %}{% endfor %}{{ n.i }}{{ messages[-1].role }}{{ messages | length }}"
        "{{ 'q' if messages | length is divisibleby(3) else 'r' }}{{ range(2, messages | length, 3) | list }}";
    static const char *const words[] = {
        "yes", "no ", " why", "\\n", "  ", "12", "<b>", "ä", "{{x}}", "火", ".", "\\t-"
    };
    hn_asking *a = d->a;
    char *talk = malloc(CAP);
    hone_status st = talk ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a conversation");
    for (int i = 0; i < TALKS && !over(st); i++) {
        const int turns = 1 + (i < 26 ? i / 2 : (int)draw_small(d, 60)), system = (int)draw(d, 2);
        size_t n = (size_t)snprintf(talk, CAP, "[");
        for (int k = 0; k < turns && n + 400 < CAP; k++) {
            const char *role = system && k == 0 ? "system" : (k - system) % 2 ? "assistant" : "user";
            n += (size_t)snprintf(talk + n, CAP - n, "%s{\"role\":\"%s\",\"content\":\"", k ? "," : "", role);
            for (uint64_t more = draw_small(d, 20); more > 0; more--)
                n += (size_t)snprintf(talk + n, CAP - n, "%s", words[draw(d, sizeof words / sizeof *words)]);
            n += (size_t)snprintf(talk + n, CAP - n, "\"}");
        }
        snprintf(talk + n, CAP - n, "]");
        const hone_chat_params p = { .messages = talk,
                                     .chat_template = i % 2 ? own : NULL,
                                     .now = "2026-02-03T04:05:06",
                                     .add_generation_prompt = draw(d, 3) > 0 };
        int32_t *ids = NULL;
        size_t n_id = 0;
        st = hone_chat_tokenize(a->m, &p, &ids, &n_id, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, ids, n_id * sizeof *ids);
        hone_free(ids);
    }
    free(talk);
    return st;
}

hone_status hn_ask_drawn(hn_asking *a, uint64_t by)
{
    hone_status (*const all[])(drawing *) = { samplers, texts, streams,  grammars,
                                              talks,    alike, overlaps, beside_each_other };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !over(st); i++) {
        drawing d = { .a = a, .key = hn_rand64(by, 0x6472617765u + i) };
        if (i == 0 || a->info.has_tokenizer) st = all[i](&d);
    }
    return st;
}
