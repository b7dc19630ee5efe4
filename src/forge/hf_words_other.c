/* hf_words_other: vocabularies that are no tokenizer.json: SentencePiece's protobuf, vocab.json with merges.txt, ranks
 * of tiktoken, Mistral's tekken.json. Each says what it can; hf_tokenizer.c asks the files about them for the rest. */
#include "forge/hf_words.h"
#include "text/text.h"

#include <dirent.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- SentencePiece (google/sentencepiece:src/sentencepiece_model.proto) ---------------------- */

typedef struct wire {
    const unsigned char *p, *end, *begin;
} wire;
typedef struct field {
    uint32_t number, kind;
    uint64_t v; /* varint, fixed */
    wire in;    /* length-delimited */
} field;

static bool varint(wire *r, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 70 && r->p < r->end; shift += 7) {
        uint64_t b = *r->p++;
        if (shift < 64) *v |= (b & 127) << shift;
        if (!(b & 128)) return true;
    }
    return false;
}

/* The next field; false at the end, or *bad. */
static bool next_field(wire *r, field *f, bool *bad)
{
    uint64_t tag, n;
    if (r->p == r->end || *bad) return false;
    *bad = true;
    if (!varint(r, &tag) || tag >> 3 == 0 || tag >> 32) return false;
    *f = (field){ .number = (uint32_t)(tag >> 3), .kind = (uint32_t)tag & 7 };
    size_t left = (size_t)(r->end - r->p), fixed = f->kind == 1 ? 8 : f->kind == 5 ? 4 : 0;
    if (f->kind == 0) {
        if (!varint(r, &f->v)) return false;
    } else if (f->kind == 2) {
        if (!varint(r, &n) || n > (size_t)(r->end - r->p)) return false;
        f->in = (wire){ r->p, r->p + n, r->begin };
        r->p += n;
    } else if (fixed && left >= fixed) {
        memcpy(&f->v, r->p, fixed);
        r->p += fixed;
    } else return false;
    *bad = false;
    return true;
}

static hone_status bad_wire(const hn_hf_words *w, const wire *r, hone_error *err)
{
    return HN_FAIL(err, HONE_E_FORMAT, "%s: byte %zu: not a protobuf of SentencePiece, or cut off; download it again",
                   w->path, (size_t)(r->p - r->begin));
}

typedef struct sp_piece {
    hone_str text;
    float score;
    int32_t type;
} sp_piece;

typedef struct sp_model {
    wire all;
    uint64_t n, model, fallback, suffix;
    uint64_t prefix, merge_spaces, escape;
    int64_t unk, bos, eos, pad;
    wire charsmap;
} sp_model;

static hone_status read_piece(sp_piece *out, const hn_hf_words *w, wire r, hone_error *err)
{
    field f;
    bool bad = false;
    *out = (sp_piece){ .type = HN_HF_NORMAL };
    while (next_field(&r, &f, &bad)) {
        if (f.number == 1 && f.kind == 2) out->text = (hone_str){ (const char *)f.in.p, (size_t)(f.in.end - f.in.p) };
        if (f.number == 2 && f.kind == 5) memcpy(&out->score, &f.v, 4);
        if (f.number == 3 && f.kind == 0) out->type = f.v >= 1 && f.v <= 6 ? (int32_t)f.v : 0;
    }
    if (bad) return bad_wire(w, &r, err);
    if (!out->type || !out->text.ptr || !out->text.len || !(out->score - out->score == 0.0f))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: byte %zu: a piece %s; expected a text, a finite score, a type of 1 to 6", w->path,
                       (size_t)(r.p - r.begin),
                       !out->type                         ? "of an unknown type"
                       : !out->text.ptr || !out->text.len ? "without text"
                                                          : "whose score is not finite");
    return HONE_OK;
}

/* Numbers of the trainer (part 2) and the normalizer (part 3). */
static hone_status read_spec(sp_model *s, const hn_hf_words *w, unsigned part, wire r, hone_error *err)
{
    field f;
    bool bad = false;
    while (next_field(&r, &f, &bad)) {
        if (part == 3 && f.number == 2 && f.kind == 2) s->charsmap = f.in;
        if (f.kind != 0) continue;
        int64_t id = (int32_t)f.v;
        if (part == 2 && f.number == 3) s->model = f.v;
        else if (part == 2 && f.number == 24) s->suffix = f.v;
        else if (part == 2 && f.number == 35) s->fallback = f.v;
        else if (part == 2 && f.number == 40) s->unk = id;
        else if (part == 2 && f.number == 41) s->bos = id;
        else if (part == 2 && f.number == 42) s->eos = id;
        else if (part == 2 && f.number == 43) s->pad = id;
        else if (part == 3 && f.number == 3) s->prefix = f.v;
        else if (part == 3 && f.number == 4) s->merge_spaces = f.v;
        else if (part == 3 && f.number == 5) s->escape = f.v;
    }
    return bad ? bad_wire(w, &r, err) : HONE_OK;
}

static hone_status read_specs(sp_model *s, const hn_hf_words *w, hone_error *err)
{
    field f;
    bool bad = false;
    hone_status st;
    wire r = s->all;
    s->model = s->prefix = s->merge_spaces = s->escape = 1;
    s->bos = 1;
    s->eos = 2;
    s->pad = -1;
    while (next_field(&r, &f, &bad)) {
        if (f.kind == 2 && f.number == 1) s->n++;
        else if (f.kind == 2 && (f.number == 2 || f.number == 3)) TRY(read_spec(s, w, f.number, f.in, err));
    }
    if (bad) return bad_wire(w, &r, err);
    if (s->model != 1 && s->model != 2)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: trainer_spec.model_type is %llu, expected 1 (unigram) or 2 (BPE)",
                       w->path, (unsigned long long)s->model);
    if (s->suffix || !s->escape)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s, expected spaces marked by U+2581 in front of words", w->path,
                       s->suffix ? "treat_whitespace_as_suffix is true" : "escape_whitespaces is false");
    if (s->model == 2 && (s->charsmap.p != s->charsmap.end || s->merge_spaces))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: BPE with %s, for which GGUF has no form; expected text taken as it is", w->path,
                       s->merge_spaces ? "remove_extra_whitespaces" : "a precompiled_charsmap");
    if (s->model == 2 && !s->fallback)
        hn_hf_words_note(w,
                         "%s: no byte_fallback: characters that are no token become the unknown token elsewhere, but "
                         "are dropped or divided here",
                         w->path);
    return HONE_OK;
}

/* Added texts are found as they are written: with spaces. */
static hone_status unmarked(hone_str *s, hn_hf_words *w, hone_error *err)
{
    static const char mark[] = "\xE2\x96\x81";
    size_t o = 0;
    if (s->len < 3) return HONE_OK;
    char *p = hn_arena_alloc(w->arena, s->len + 1);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: a token of %zu bytes", w->path, s->len);
    for (size_t i = 0; i < s->len;) {
        bool is = s->len - i >= 3 && memcmp(s->ptr + i, mark, 3) == 0;
        p[o++] = is ? ' ' : s->ptr[i];
        i += is ? 3 : 1;
    }
    *s = (hone_str){ p, o };
    return HONE_OK;
}

/* The pieces are the same as the words there are? Then their scores and types count, which merges only imitate. */
static hone_status take_scores(hn_hf_words *w, const sp_model *s, hone_error *err)
{
    uint64_t differ = 0;
    for (int pass = 0; pass < 2 && !differ; pass++) {
        wire r = s->all;
        field f;
        bool bad = false;
        uint64_t id = 0;
        while (next_field(&r, &f, &bad)) {
            sp_piece p;
            hone_status st;
            if (f.number != 1 || f.kind != 2) continue;
            TRY(read_piece(&p, w, f.in, err));
            bool here = id < w->n && w->tok[id].ptr && w->tok[id].len == p.text.len &&
                        memcmp(w->tok[id].ptr, p.text.ptr, p.text.len) == 0;
            if (!pass) differ += !here && p.type != HN_HF_UNUSED && p.type != HN_HF_USER && p.type != HN_HF_CONTROL;
            else if (here) {
                w->score[id] = p.score;
                if (w->type[id] == HN_HF_NORMAL) w->type[id] = p.type;
            }
            id++;
        }
    }
    w->scored = !differ;
    if (differ)
        hn_hf_words_note(w,
                         "%s: %llu pieces differ from tokenizer.json, which is taken; scores are made from its merges",
                         w->path, (unsigned long long)differ);
    return HONE_OK;
}

/* Pieces of XLM-RoBERTa: its ids are fairseq's, which has four of its own in front and one behind, where the file's
 * first three stand for unknown, begin and end (huggingface/transformers:tokenization_xlm_roberta.py). */
static hone_status take_fairseq(hn_hf_words *w, const sp_model *s, hone_error *err)
{
    static const struct {
        const char *text;
        int32_t type;
    } own[] = { { "<s>", HN_HF_CONTROL },
                { "<pad>", HN_HF_CONTROL },
                { "</s>", HN_HF_CONTROL },
                { "<unk>", HN_HF_UNKNOWN },
                { "<mask>", HN_HF_CONTROL } };
    enum { FRONT = 4, REPLACED = 3 };
    wire r = s->all;
    field f;
    bool bad = false;
    uint64_t at = 0;
    hone_status st;
    for (uint64_t i = 0; i < FRONT; i++)
        TRY(hn_hf_words_set(w, i, (hone_str){ own[i].text, strlen(own[i].text) }, own[i].type, 0, err));
    while (next_field(&r, &f, &bad)) {
        sp_piece p;
        if (f.number != 1 || f.kind != 2) continue;
        TRY(read_piece(&p, w, f.in, err));
        if (at < REPLACED && p.type != HN_HF_CONTROL && p.type != HN_HF_UNKNOWN)
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: piece %llu is \"%s\", expected <unk>, <s> and </s> first, as XLM-RoBERTa has them",
                           w->path, (unsigned long long)at, HN_ESC(p.text.ptr, p.text.len));
        if (at++ >= REPLACED) TRY(hn_hf_words_set(w, at, p.text, p.type, p.score, err));
    }
    if (w->n < w->most)
        TRY(hn_hf_words_set(w, w->n, (hone_str){ own[FRONT].text, strlen(own[FRONT].text) }, own[FRONT].type, 0, err));
    w->bos = 0;
    w->pad = 1;
    w->eos = 2;
    w->unk = 3;
    w->add_bos = w->add_eos = true;
    return HONE_OK;
}

static hone_status take_pieces(hn_hf_words *w, const sp_model *s, size_t n_bytes, bool fairseq, hone_error *err)
{
    wire r = s->all;
    field f;
    bool bad = false;
    uint64_t id = 0;
    hone_status st;
    w->form = s->model == 1 ? HN_HF_UNIGRAM : HN_HF_SPM;
    w->scored = true;
    hn_hf_words_spaces(w, s->prefix, s->merge_spaces);
    w->charsmap = (const char *)s->charsmap.p;
    w->n_charsmap = (size_t)(s->charsmap.end - s->charsmap.p);
    hn_hf_words_room(w, n_bytes);
    if (fairseq) return take_fairseq(w, s, err);
    while (next_field(&r, &f, &bad)) {
        sp_piece p;
        if (f.number != 1 || f.kind != 2) continue;
        TRY(read_piece(&p, w, f.in, err));
        TRY(hn_hf_words_set(w, id++, p.text, p.type, p.score, err));
    }
    int64_t ids[4] = { s->unk, s->bos, s->eos, s->pad };
    int32_t *to[4] = { &w->unk, &w->bos, &w->eos, &w->pad };
    for (int i = 0; i < 4; i++) *to[i] = ids[i] >= 0 && ids[i] < (int64_t)w->n ? (int32_t)ids[i] : -1;
    w->add_bos = w->form == HN_HF_SPM && w->bos >= 0;
    w->add_eos = w->form == HN_HF_UNIGRAM && w->eos >= 0;
    return HONE_OK;
}

hone_status hn_hf_words_unmark(hn_hf_words *w, hone_error *err)
{
    hone_status st;
    for (uint64_t i = 0; i < w->n; i++)
        if (w->tok[i].ptr && w->type[i] == HN_HF_USER) TRY(unmarked(&w->tok[i], w, err));
    return HONE_OK;
}

hone_status hn_hf_read_sentencepiece(hn_hf_words *w, bool *found, hone_error *err)
{
    static const char *const names[] = { "tokenizer.model", "spiece.model", "sentencepiece.bpe.model" };
    enum { FAIRSEQ = 2 };
    bool have = w->n > 0;
    const char *path = w->path;
    hone_status st = HONE_OK;
    if (have && w->form != HN_HF_SPM) return HONE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text;
        size_t n;
        TRY(hn_hf_words_file(&text, &n, w, names[i], err));
        if (!text || !n || text[0] != 0x0A) continue;
        const unsigned char *p = (const unsigned char *)text;
        sp_model s = { .all = { p, p + n, p } };
        TRY(read_specs(&s, w, err));
        if (have && s.model == 2) TRY(take_scores(w, &s, err));
        if (!have) TRY(take_pieces(w, &s, n, i == FAIRSEQ && s.model == 1, err));
        *found = true;
        if (!have) return HONE_OK;
        break;
    }
    w->path = path;
    return HONE_OK;
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

static hone_status read_merge_lines(hn_hf_words *w, const char *p, size_t n, hone_error *err)
{
    hone_status st;
    const char *end = p + n;
    for (bool first = true; p < end; first = false) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
        size_t len = (size_t)(stop - p);
        if (len && p[len - 1] == '\r') len--;
        bool comment = first && len >= 8 && memcmp(p, "#version", 8) == 0;
        if (len && !comment) TRY(hn_hf_words_merge(w, (hone_str){ p, len }, err));
        p = nl ? nl + 1 : end;
    }
    return HONE_OK;
}

hone_status hn_hf_read_merges(hn_hf_words *w, bool *found, hone_error *err)
{
    char *vocab, *merges;
    size_t n, n_merges;
    hone_status st;
    TRY(hn_hf_words_file(&vocab, &n, w, "vocab.json", err));
    if (!vocab) return HONE_OK;
    *found = true;
    w->form = HN_HF_BPE;
    TRY(hn_hf_read_vocab(w, vocab, n, err));
    TRY(hn_hf_words_file(&merges, &n_merges, w, "merges.txt", err));
    if (!merges)
        return HN_FAIL(err, HONE_E_IO, "%s: vocab.json without merges.txt; expected both, or tokenizer.json",
                       w->t->folder);
    TRY(read_merge_lines(w, merges, n_merges, err));
    return hn_hf_words_merged(w, false, err);
}

/* ---- tiktoken -------------------------------------------------------------------------------- */

typedef struct halves {
    int32_t left, right;
    uint32_t n_left; /* bytes */
} halves;

static int by_ranks(const void *a, const void *b)
{
    const halves *x = a, *y = b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

enum {
    RANK_TOKEN = 256, /* bytes; published ones have at most 128 */
    RANK_TIMES = 64   /* bytes of merges for each of the words; published ones have about 4 */
};

/* Ranks join any two neighbours that make a token: every way to divide one into two is a merge, by the result's rank,
 * then the parts' (huggingface/transformers:convert_slow_tokenizer.py). */
static hone_status merge_token(hn_hf_words *w, uint64_t id, halves *h, size_t cap, uint64_t *left, hone_error *err)
{
    hone_str s = w->tok[id];
    size_t n = 0;
    hone_status st;
    for (size_t i = 1; i < s.len && n < cap; i++) {
        if (((unsigned char)s.ptr[i] & 0xC0) == 0x80) continue;
        int32_t a = hn_hf_words_find(w, s.ptr, i), b = a < 0 ? -1 : hn_hf_words_find(w, s.ptr + i, s.len - i);
        if (b >= 0) h[n++] = (halves){ a, b, (uint32_t)i };
    }
    if (n * (s.len + 1) > *left)
        return HN_FAIL(
            err, HONE_E_FORMAT,
            "%s: its merges are more than %d times its tokens (at token %llu); expected a vocabulary of texts", w->path,
            RANK_TIMES, (unsigned long long)id);
    *left -= n * (s.len + 1);
    qsort(h, n, sizeof *h, by_ranks);
    for (size_t i = 0; i < n; i++) {
        char *p = hn_arena_alloc(w->arena, s.len + 1);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: merges", w->path);
        memcpy(p, s.ptr, h[i].n_left);
        p[h[i].n_left] = ' ';
        memcpy(p + h[i].n_left + 1, s.ptr + h[i].n_left, s.len - h[i].n_left);
        TRY(hn_hf_words_merge(w, (hone_str){ p, s.len + 1 }, err));
    }
    return HONE_OK;
}

/* The words so far, as ranks. */
static hone_status merge_ranks(hn_hf_words *w, hone_error *err)
{
    halves *h = malloc(2 * RANK_TOKEN * sizeof *h);
    uint64_t left = 1 << 16;
    for (uint64_t id = 0; id < w->n; id++) left += RANK_TIMES * (uint64_t)w->tok[id].len;
    hone_status st = h ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: merges", w->path);
    for (uint64_t id = 0; id < w->n && st == HONE_OK; id++)
        if (w->tok[id].ptr && w->type[id] == HN_HF_NORMAL) st = merge_token(w, id, h, 2 * RANK_TOKEN, &left, err);
    free(h);
    return st;
}

static hone_status set_bytes(hn_hf_words *w, uint64_t id, const char *base64, size_t n, const char *where,
                             hone_error *err)
{
    char bytes[2 * RANK_TOKEN];
    int64_t len = n <= sizeof bytes ? hn_hf_base64(bytes, base64, n) : -1;
    if (len <= 0 || len > RANK_TOKEN)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: \"%s\" is no base64 of 1 to %d bytes", w->path, where,
                       HN_ESC(base64, n), RANK_TOKEN);
    char *text = hn_arena_alloc(w->arena, 2 * (size_t)len);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
    size_t k = hn_hf_byte_text(text, bytes, (size_t)len);
    return hn_hf_words_set(w, id, (hone_str){ text, k }, HN_HF_NORMAL, 0, err);
}

static hone_status read_rank_lines(hn_hf_words *w, const char *p, size_t n, hone_error *err)
{
    const char *end = p + n;
    hone_status st;
    hn_hf_words_room(w, n);
    for (uint64_t line = 1; p < end; line++) {
        char where[40];
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
        size_t len = (size_t)(stop - p);
        if (len && p[len - 1] == '\r') len--;
        const char *sp = memchr(p, ' ', len);
        uint64_t id = 0;
        snprintf(where, sizeof where, "line %llu", (unsigned long long)line);
        size_t k = sp ? (size_t)(sp - p) + 1 : len, digits = len - k;
        for (; k < len && p[k] >= '0' && p[k] <= '9' && digits < 10; k++) id = 10 * id + (uint64_t)(p[k] - '0');
        if (len && (!sp || k < len || !digits))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: \"%s\", expected base64, a space and a rank", w->path, where,
                           HN_ESC(p, len));
        if (len) TRY(set_bytes(w, id, p, (size_t)(sp - p), where, err));
        p = nl ? nl + 1 : end;
    }
    return HONE_OK;
}

static hone_status add_special(hn_hf_words *w, const char *name, int i, hone_error *err)
{
    char *p = hn_arena_alloc(w->arena, 64);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
    int n = i < 0 ? snprintf(p, 64, "<|%s|>", name) : snprintf(p, 64, "<|%s%d|>", name, i);
    return hn_hf_words_add(w, w->n, (hone_str){ p, (size_t)n }, true, err);
}

/* Special tokens that only programs know: by the number of ranks (meta-llama/llama-models:models/llama3/tokenizer.py,
 * QwenLM/Qwen:tokenization_qwen.py). */
static hone_status add_known(hn_hf_words *w, const char *name, hone_error *err)
{
    static const char *const llama[] = { "begin_of_text",
                                         "end_of_text",
                                         "reserved_special_token_0",
                                         "reserved_special_token_1",
                                         "finetune_right_pad_id",
                                         "step_id",
                                         "start_header_id",
                                         "end_header_id",
                                         "eom_id",
                                         "eot_id",
                                         "python_tag",
                                         "image" };
    static const char *const qwen[] = { "endoftext", "im_start", "im_end" };
    size_t n = 0, n_llama = sizeof llama / sizeof *llama;
    hone_status st;
    bool is_llama = w->n == 128000, is_qwen = w->n == 151643 && strstr(name, "qwen");
    if (!is_llama && !is_qwen) return HONE_OK;
    for (n = 0; n < (is_llama ? n_llama : 3); n++) TRY(add_special(w, is_llama ? llama[n] : qwen[n], -1, err));
    for (int i = 0; is_llama && i < 256 - (int)n_llama; i++) TRY(add_special(w, "reserved_special_token_", i + 2, err));
    for (int i = 0; is_qwen && i < 205; i++) TRY(add_special(w, "extra_", i, err));
    w->pre = is_llama ? "llama-bpe" : "qwen2";
    if (is_llama) w->bos = 128000, w->eos = 128001, w->add_bos = true;
    return HONE_OK;
}

/* tokenizer.model that is no protobuf, or the first *.tiktoken by name. */
static hone_status rank_file(char name[256], const hn_hf_words *w, hone_error *err)
{
    DIR *d = opendir(w->t->folder);
    *name = 0;
    if (!d) return HN_FAIL(err, HONE_E_IO, "%s: cannot be listed", w->t->folder);
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        bool is = !strcmp(e->d_name, "tokenizer.model") || !strcmp(e->d_name, "tiktoken.model") ||
                  (n > 9 && n < 256 && !strcmp(e->d_name + n - 9, ".tiktoken"));
        if (is && (!*name || strcmp(e->d_name, name) < 0)) snprintf(name, 256, "%s", e->d_name);
    }
    closedir(d);
    return HONE_OK;
}

hone_status hn_hf_read_ranks(hn_hf_words *w, bool *found, hone_error *err)
{
    char name[256], *text;
    size_t n;
    hone_status st;
    TRY(rank_file(name, w, err));
    if (!*name) return HONE_OK;
    TRY(hn_hf_words_file(&text, &n, w, name, err));
    if (!text) return HONE_OK;
    *found = true;
    w->form = HN_HF_BPE;
    w->whole = true;
    TRY(read_rank_lines(w, text, n, err));
    TRY(merge_ranks(w, err));
    return add_known(w, name, err);
}

/* ---- tekken.json (mistralai/mistral-common:tokens/tokenizers/tekken.py) ---------------------- */

/* What files without a list mean by the first ids: programs knew them until version 7 (DEPRECATED_SPECIAL_TOKENS). */
static const char *const tekken_known[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

static hone_status tekken_without(hn_hf_words *w, const char *version, uint64_t n_special, hone_error *err)
{
    const size_t n_known = sizeof tekken_known / sizeof *tekken_known;
    char *end = NULL;
    hone_status st;
    long v = *version == 'v' ? strtol(version + 1, &end, 10) : 0;
    if (v < 1 || v > 7 || *end)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: version \"%s\" without special_tokens, which only files of up to v7 may lack: expected "
                       "a list of them",
                       w->path, HN_ESC(version, strlen(version)));
    if (n_special < n_known)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu special tokens and no list, expected at least the %zu of v7",
                       w->path, (unsigned long long)n_special, n_known);
    for (uint64_t id = 0; id < n_known; id++) {
        const hone_str text = { tekken_known[id], strlen(tekken_known[id]) };
        TRY(hn_hf_words_add(w, id, text, true, err));
    }
    return HONE_OK;
}

static hone_status tekken_special(hn_hf_words *w, const json_t *list, const char *version, uint64_t n_special,
                                  hone_error *err)
{
    hone_status st;
    if (!list || json_is_null(list)) TRY(tekken_without(w, version, n_special, err));
    else if (!json_is_array(list))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: special_tokens is %s, expected a list", w->path, hn_json_kind(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i), *rank = json_object_get(o, "rank");
        const char *s = hn_json_text_of(o, "token_str");
        char *p = hn_arena_strndup(w->arena, s, strlen(s));
        uint64_t id = json_is_integer(rank) && json_integer_value(rank) >= 0 ? (uint64_t)json_integer_value(rank) : i;
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
        if (id >= n_special)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: special token %llu, expected ranks below %llu", w->path,
                           (unsigned long long)id, (unsigned long long)n_special);
        TRY(hn_hf_words_add(w, id, (hone_str){ p, strlen(p) }, true, err));
    }
    for (uint64_t id = 0; id < n_special; id++) {
        char *p = id < w->n && w->tok[id].ptr ? NULL : hn_arena_alloc(w->arena, 32);
        if (id < w->n && w->tok[id].ptr) continue;
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
        int n = snprintf(p, 32, "<SPECIAL_%llu>", (unsigned long long)id);
        TRY(hn_hf_words_add(w, id, (hone_str){ p, (size_t)n }, true, err));
    }
    return HONE_OK;
}

static hone_status tekken_ranks(hn_hf_words *w, const json_t *vocab, uint64_t n, uint64_t n_special, hone_error *err)
{
    hone_status st;
    for (uint64_t i = 0; i < json_array_size(vocab); i++) {
        char where[40];
        const json_t *o = json_array_get(vocab, i), *rank = json_object_get(o, "rank");
        const char *bytes = hn_json_text_of(o, "token_bytes");
        snprintf(where, sizeof where, "vocab[%llu]", (unsigned long long)i);
        if (!json_is_integer(rank) || json_integer_value(rank) < 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has no rank, expected a whole number", w->path, where);
        if ((uint64_t)json_integer_value(rank) >= n) continue; /* the vocabulary is cut */
        TRY(set_bytes(w, (uint64_t)json_integer_value(rank) + n_special, bytes, strlen(bytes), where, err));
    }
    return HONE_OK;
}

static hone_status read_tekken(hn_hf_words *w, const json_t *o, hone_error *err)
{
    const json_t *config = json_object_get(o, "config");
    const json_t *size = json_object_get(config, "default_vocab_size");
    const json_t *special = json_object_get(config, "default_num_special_tokens");
    const json_t *vocab = json_object_get(o, "vocab");
    const char *pattern = hn_json_text_of(config, "pattern");
    int64_t n = json_integer_value(size), n_special = json_integer_value(special);
    hone_status st;
    if (n_special < 0 || n < n_special || n > HN_HF_FILE || !json_is_array(vocab))
        return HN_FAIL(
            err, HONE_E_FORMAT,
            "%s: %lld tokens, %lld of them special, vocab is %s; expected numbers that fit each other and a list",
            w->path, (long long)n, (long long)n_special, hn_json_kind(vocab));
    w->form = HN_HF_BPE;
    w->whole = true;
    w->add_bos = true;
    hn_hf_words_room(w, json_array_size(vocab) + (size_t)(n_special < 65536 ? n_special : 65536));
    TRY(tekken_special(w, json_object_get(o, "special_tokens"), hn_json_text_of(config, "version"), (uint64_t)n_special,
                       err));
    TRY(tekken_ranks(w, vocab, (uint64_t)(n - n_special), (uint64_t)n_special, err));
    w->bos = hn_hf_words_find(w, "<s>", 3);
    w->eos = hn_hf_words_find(w, "</s>", 4);
    w->unk = hn_hf_words_find(w, "<unk>", 5);
    w->pad = hn_hf_words_find(w, "<pad>", 5);
    char *rules = hn_arena_alloc(w->arena, strlen(pattern) + 16);
    if (!rules) return HN_FAIL(err, HONE_E_NOMEM, "%s: pattern", w->path);
    snprintf(rules, strlen(pattern) + 16, "regex %s\n", pattern);
    if (!w->t->pre && !(w->pre = hn_hf_pre_of(rules, true, w)))
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: config.pattern is one that hone does not know (choose the one that fits with --pre KIND): %s", w->path,
            HN_ESC(pattern, strlen(pattern)));
    return merge_ranks(w, err);
}

hone_status hn_hf_read_tekken(hn_hf_words *w, bool *found, hone_error *err)
{
    json_t *o;
    hone_status st = hn_hf_words_tree(&o, w, "tekken.json", err);
    if (st != HONE_OK || !o) return st;
    *found = true;
    st = read_tekken(w, o, err);
    json_decref(o);
    return st;
}
