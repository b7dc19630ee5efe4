/* hf_words_back: the tokenizer of a GGUF as transformers reads it: tokenizer.json with every id of the file in
 * its vocabulary, so that added tokens cannot move, and the small files about it. Byte-level BPE gets the expressions
 * of its pre (hf_words_split.c), SentencePiece's scores become merges. Refuses to know tensors. */
#include "base/json_tree.h"
#include "base/file.h"
#include "base/utf8.h"
#include "forge/hf_words.h"
#include "text/text.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

#define MARK "\xE2\x96\x81"

typedef struct back {
    const hn_gguf *g;
    const char *folder, *path; /* path: of g */
    hn_arena *arena;
    hn_hf_form form;
    hone_str *tok;
    float *score;
    int32_t *type;
    uint64_t n;
    hn_index ix;
    hn_gguf_array merges;
    const char *rules; /* byte-level BPE */
    bool whole, lines, add_bos, add_eos, space_prefix, merge_spaces, lowercase, strip_accents, bytes;
    hn_gguf_array charsmap;
    int32_t id[7];   /* bos eos unk sep pad cls mask */
    json_t *written; /* may be NULL */
    hone_error *err;
} back;
enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK_ID, N_ID };

/* ---- a file under way: the first failure stays ----------------------------------------------- */

typedef struct page {
    char name[200]; /* in the folder */
    hn_file *f;
    hone_status st;
    const back *b;
} page;

static void raw(page *o, const char *s, size_t n)
{
    if (o->st == HONE_OK) o->st = hn_file_put(o->f, s, n, o->b->err);
}
static void put(page *o, const char *s) { raw(o, s, strlen(s)); }
static void put_number(page *o, int64_t v)
{
    char text[32];
    raw(o, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v));
}
static void put_truth(page *o, bool v) { put(o, v ? "true" : "false"); }

/* A string of JSON. Texts of GGUF may be any bytes, those of JSON are not. */
static void put_text(page *o, const char *s, size_t n)
{
    size_t from = 0, used;
    put(o, "\"");
    for (size_t i = 0; i < n && o->st == HONE_OK; i += used) {
        unsigned char c = (unsigned char)s[i];
        if (hn_utf8_next((const unsigned char *)s + i, n - i, &used) < 0) {
            o->st =
                HN_FAIL(o->b->err, HONE_E_UNSUPPORTED,
                        "%s: \"%s\" is no UTF-8, for which tokenizer.json has no form; expected texts of characters",
                        o->b->path, HN_ESC(s, n));
            return;
        }
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) continue;
        char esc[8];
        raw(o, s + from, i - from);
        raw(o, esc, (size_t)snprintf(esc, sizeof esc, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c));
        from = i + 1;
    }
    raw(o, s + from, n - from);
    put(o, "\"");
}

static hone_status begin(page *o, const back *b, const char *name)
{
    char path[4352];
    *o = (page){ .b = b };
    snprintf(o->name, sizeof o->name, "%s", name);
    int n = snprintf(path, sizeof path, "%s/%s", b->folder, name);
    if (n < 0 || n >= (int)sizeof path) return HN_FAIL(b->err, HONE_E_ARG, "%s/%s: a path too long", b->folder, name);
    return o->st = hn_file_begin(&o->f, path, NULL, b->err);
}
/* Told before it is there: what is not told would stay behind. */
static hone_status end(page *o)
{
    json_t *written = o->b->written;
    if (o->st == HONE_OK && written && json_array_append_new(written, json_string(o->name)) != 0)
        o->st = HN_FAIL(o->b->err, HONE_E_NOMEM, "%s", o->name);
    if (o->st == HONE_OK) o->st = hn_file_end(o->f, o->b->err);
    hn_file_drop(o->f);
    return o->st;
}

/* ---- what the GGUF says ---------------------------------------------------------------------- */

static hone_status get_flag(const back *b, const char *name, bool *v)
{
    char key[80];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    return hn_gguf_get_bool(b->g, key, v, NULL, b->err);
}

static hone_status read_per_token(const back *b, const char *key, hone_kv_type type, void *dst)
{
    hn_gguf_array a;
    bool found = false;
    hone_status st = hn_gguf_get_array(b->g, key, &a, &found, b->err);
    if (st != HONE_OK || !found) return st;
    if (a.elem_type != type || a.count != b->n)
        return HN_FAIL(b->err, HONE_E_FORMAT, "%s: %s: %llu elements of type %d, expected %llu of type %d", b->path,
                       key, (unsigned long long)a.count, (int)a.elem_type, (unsigned long long)b->n, (int)type);
    memcpy(dst, a.data, 4 * a.count);
    return HONE_OK;
}

static hone_status read_tokens(back *b)
{
    hn_gguf_array a;
    bool found = false;
    hone_status st;
    uint64_t pos = 0;
    TRY(hn_gguf_get_array(b->g, "tokenizer.ggml.tokens", &a, &found, b->err));
    if (!found || a.elem_type != HONE_KV_STRING || a.count > INT32_MAX / 4)
        return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.tokens: expected a list of strings", b->path);
    b->n = a.count;
    b->tok = hn_arena_alloc(b->arena, (b->n + 1) * sizeof *b->tok);
    b->score = hn_arena_alloc(b->arena, (b->n + 1) * sizeof *b->score);
    b->type = hn_arena_alloc(b->arena, (b->n + 1) * sizeof *b->type);
    if (!b->tok || !b->score || !b->type)
        return HN_FAIL(b->err, HONE_E_NOMEM, "%s: %llu tokens", b->path, (unsigned long long)b->n);
    for (uint64_t i = 0; i < b->n; i++) {
        if (!hn_gguf_next_str(&a, &pos, &b->tok[i]))
            return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.tokens ends at token %llu", b->path,
                           (unsigned long long)i);
        b->type[i] = HN_HF_NORMAL;
    }
    TRY(read_per_token(b, "tokenizer.ggml.scores", HONE_KV_F32, b->score));
    TRY(read_per_token(b, "tokenizer.ggml.token_type", HONE_KV_I32, b->type));
    for (uint64_t i = 0; i < b->n; i++) {
        float x = b->score[i];
        if (isnan(x) || (b->form == HN_HF_UNIGRAM && isinf(x)))
            return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.scores[%llu] is %g; expected a number", b->path,
                           (unsigned long long)i, (double)x);
        if (b->type[i] < 0 || b->type[i] > HN_HF_BYTE)
            return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.token_type[%llu] is %d; expected 0 to %d",
                           b->path, (unsigned long long)i, (int)b->type[i], HN_HF_BYTE);
    }
    return HONE_OK;
}

static hone_status read_form(back *b, bool *none)
{
    static const char *const models[] = { "gpt2", "gemma4", "llama", "t5", "bert" };
    hone_str model = { "none", 4 }, pre = { "default", 7 };
    char name[64];
    size_t i = 0;
    hone_status st;
    TRY(hn_gguf_get_str(b->g, "tokenizer.ggml.model", &model, NULL, b->err));
    TRY(hn_gguf_get_str(b->g, "tokenizer.ggml.pre", &pre, NULL, b->err));
    snprintf(name, sizeof name, "%.*s", (int)(model.len < 60 ? model.len : 60), model.ptr);
    *none = !strcmp(name, "none") || !strcmp(name, "no_vocab");
    if (*none) return HONE_OK;
    while (i < 5 && strcmp(models[i], name)) i++;
    if (i == 5)
        return HN_FAIL(b->err, HONE_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.model is \"%s\", for which transformers has no form; expected gpt2, gemma4, "
                       "llama, t5 or bert",
                       b->path, HN_ESC(model.ptr, model.len));
    b->form = (hn_hf_form)i;
    b->lines = b->form == HN_HF_RAW;
    if (b->form != HN_HF_BPE) return HONE_OK;
    snprintf(name, sizeof name, "%.*s", (int)(pre.len < 60 ? pre.len : 60), pre.ptr);
    if (!strcmp(name, "sarvam-moe") || !strcmp(name, "granite-embed-multi-311m") || !strcmp(name, "gemma4")) {
        b->form = HN_HF_RAW;
        b->lines = *name != 's';
        return HONE_OK;
    }
    b->rules = hn_hf_rules_of(name, &b->whole);
    return b->rules ? HONE_OK
                    : HN_FAIL(b->err, HONE_E_UNSUPPORTED,
                              "%s: tokenizer.ggml.pre is \"%s\", whose rules hone has no expression for", b->path,
                              HN_ESC(pre.ptr, pre.len));
}

static hone_status read_ids(back *b)
{
    static const char *const keys[] = { "bos", "eos", "unknown", "seperator", "padding", "cls", "mask" };
    hone_status st;
    for (int i = 0; i < N_ID; i++) {
        char key[64];
        uint32_t v = UINT32_MAX;
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", keys[i]);
        TRY(hn_gguf_get_u32(b->g, key, &v, NULL, b->err));
        b->id[i] = v < b->n ? (int32_t)v : -1;
    }
    if (b->form == HN_HF_SPM)
        for (int i = 0; i < 3; i++) { /* SentencePiece's own */
            static const int32_t usual[] = { 1, 2, 0 };
            if (b->id[i] < 0 && (uint64_t)usual[i] < b->n) b->id[i] = usual[i];
        }
    if (b->form == HN_HF_PIECES) { /* cls stands for bos in some files */
        if (b->id[CLS] < 0) b->id[CLS] = b->id[BOS];
        if (b->id[SEP] < 0) b->id[SEP] = b->id[EOS];
    }
    return HONE_OK;
}

static hone_status read_back(back *b, bool *none)
{
    hone_status st;
    bool found = false;
    TRY(read_form(b, none));
    if (*none) return HONE_OK;
    TRY(read_tokens(b));
    TRY(read_ids(b));
    b->add_bos = b->form == HN_HF_SPM || b->lines;
    b->add_eos = b->form == HN_HF_UNIGRAM;
    b->space_prefix = b->form == HN_HF_SPM;
    b->lowercase = true;
    TRY(get_flag(b, "add_bos_token", &b->add_bos));
    TRY(get_flag(b, "add_eos_token", &b->add_eos));
    TRY(get_flag(b, "add_space_prefix", &b->space_prefix));
    TRY(get_flag(b, "remove_extra_whitespaces", &b->merge_spaces));
    TRY(get_flag(b, "normalizer.lowercase", &b->lowercase));
    b->strip_accents = b->lowercase;
    for (uint64_t i = 0; i < b->n && !b->bytes; i++) b->bytes = b->type[i] == HN_HF_BYTE;
    TRY(get_flag(b, "normalizer.strip_accents", &b->strip_accents));
    if (b->form == HN_HF_UNIGRAM)
        TRY(hn_gguf_get_array(b->g, "tokenizer.ggml.precompiled_charsmap", &b->charsmap, &found, b->err));
    if (found && b->charsmap.elem_type != HONE_KV_U8 && b->charsmap.elem_type != HONE_KV_I8)
        return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.precompiled_charsmap: expected bytes", b->path);
    if (b->form == HN_HF_BPE || b->form == HN_HF_RAW)
        TRY(hn_gguf_get_array(b->g, "tokenizer.ggml.merges", &b->merges, &found, b->err));
    if (b->merges.count && b->merges.elem_type != HONE_KV_STRING)
        return HN_FAIL(b->err, HONE_E_FORMAT, "%s: tokenizer.ggml.merges: expected strings", b->path);
    return HONE_OK;
}

/* BERT's marks; raw BPE and SentencePiece keep theirs. Two tokens of one text cannot both be in a vocabulary. */
static hone_status name_tokens(back *b)
{
    for (uint64_t i = 0; i < b->n; i++) {
        hone_str s = b->tok[i];
        int64_t dup;
        bool bracket = s.len && s.ptr[0] == '[' && s.ptr[s.len - 1] == ']';
        if (b->form == HN_HF_PIECES && !bracket) {
            bool word = s.len > 3 && !memcmp(s.ptr, MARK, 3); /* no word is empty */
            char *p = hn_arena_alloc(b->arena, s.len + 3);
            if (!p) return HN_FAIL(b->err, HONE_E_NOMEM, "%s: tokens", b->path);
            memcpy(p, "##", 2);
            memcpy(p + 2, s.ptr, s.len);
            b->tok[i] = word ? (hone_str){ s.ptr + 3, s.len - 3 } : (hone_str){ p, s.len + 2 };
        }
        if (!hn_index_add(&b->ix, b->tok, sizeof *b->tok, (uint32_t)i, &dup))
            return HN_FAIL(b->err, HONE_E_NOMEM, "%s: index of tokens", b->path);
        if (dup >= 0)
            return HN_FAIL(b->err, HONE_E_UNSUPPORTED,
                           "%s: tokens %lld and %llu are both \"%s\", for which tokenizer.json has no form", b->path,
                           (long long)dup, (unsigned long long)i, HN_ESC(b->tok[i].ptr, b->tok[i].len));
    }
    return HONE_OK;
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

static bool is_added(const back *b, uint64_t i)
{
    return b->tok[i].len && (b->type[i] == HN_HF_CONTROL || b->type[i] == HN_HF_USER ||
                             (b->type[i] == HN_HF_UNKNOWN && b->form != HN_HF_BPE));
}

static void put_added(page *o, const char *id_key, uint64_t i)
{
    const back *b = o->b;
    put(o, "{ ");
    if (id_key) put(o, id_key), put_number(o, (int64_t)i), put(o, ", ");
    put(o, "\"content\": ");
    put_text(o, b->tok[i].ptr, b->tok[i].len);
    put(o, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": ");
    put_truth(o, b->type[i] != HN_HF_USER);
    put(o, " }");
}

static void put_all_added(page *o)
{
    bool first = true;
    put(o, "  \"added_tokens\": [");
    for (uint64_t i = 0; i < o->b->n; i++) {
        if (!is_added(o->b, i)) continue;
        put(o, first ? "\n    " : ",\n    ");
        put_added(o, "\"id\": ", i);
        first = false;
    }
    put(o, "\n  ],\n");
}

static void put_base64(page *o, const unsigned char *p, uint64_t n)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint64_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        char q[4] = { abc[v >> 18], abc[v >> 12 & 63], i + 1 < n ? abc[v >> 6 & 63] : '=',
                      i + 2 < n ? abc[v & 63] : '=' };
        raw(o, q, 4);
    }
}

static void put_normalizer(page *o)
{
    const back *b = o->b;
    static const char replace[] =
        "{ \"type\": \"Replace\", \"pattern\": { \"String\": \" \" }, \"content\": \"" MARK "\" }";
    put(o, "  \"normalizer\": ");
    if (b->form == HN_HF_SPM && b->space_prefix)
        put(o, "{ \"type\": \"Sequence\", \"normalizers\": [{ \"type\": \"Prepend\", \"prepend\": \"" MARK "\" }, "),
            put(o, replace), put(o, "] }");
    else if (b->form == HN_HF_SPM || b->form == HN_HF_RAW) put(o, replace);
    else if (b->form == HN_HF_PIECES) {
        put(o, "{ \"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
               "\"strip_accents\": ");
        put_truth(o, b->strip_accents);
        put(o, ", \"lowercase\": ");
        put_truth(o, b->lowercase);
        put(o, " }");
    } else if (b->form == HN_HF_UNIGRAM && (b->charsmap.count || b->merge_spaces)) {
        put(o, "{ \"type\": \"Sequence\", \"normalizers\": [");
        if (b->charsmap.count) {
            put(o, "{ \"type\": \"Precompiled\", \"precompiled_charsmap\": \"");
            put_base64(o, b->charsmap.data, b->charsmap.count);
            put(o, b->merge_spaces ? "\" }, " : "\" }");
        }
        if (b->merge_spaces)
            put(o, "{ \"type\": \"Replace\", \"pattern\": { \"Regex\": \"\\\\A +| +\\\\z\" }, \"content\": \"\" }, { "
                   "\"type\": "
                   "\"Replace\", \"pattern\": { \"Regex\": \" {2,}\" }, \"content\": \" \" }");
        put(o, "] }");
    } else put(o, "null");
    put(o, ",\n");
}

static void put_rule(page *o, const char *rule, size_t n)
{
    static const char level[] = "{ \"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
                                "\"use_regex\": true }";
    if (n > 6 && !memcmp(rule, "regex ", 6)) {
        put(o, "{ \"type\": \"Split\", \"pattern\": { \"Regex\": ");
        put_text(o, rule + 6, n - 6);
        put(o, " }, \"behavior\": \"Isolated\", \"invert\": false }");
    } else if (n == 4 && !memcmp(rule, "gpt2", 4)) put(o, level);
    else if (n > 10 && !memcmp(rule, "punctuation", 11))
        put(o, n > 11 ? "{ \"type\": \"Punctuation\", \"behavior\": \"Isolated\" }"
                      : "{ \"type\": \"Punctuation\", \"behavior\": \"Contiguous\" }");
    else
        put(o, n > 6 ? "{ \"type\": \"Digits\", \"individual_digits\": false }"
                     : "{ \"type\": \"Digits\", \"individual_digits\": true }");
}

/* How Unigram marks spaces, there and back. */
static void put_metaspace(page *o)
{
    put(o, "{ \"type\": \"Metaspace\", \"replacement\": \"" MARK "\", \"prepend_scheme\": \"");
    put(o, o->b->space_prefix || o->b->merge_spaces ? "always" : "never");
    put(o, "\", \"split\": true }");
}

static void put_split(page *o)
{
    const back *b = o->b;
    put(o, "  \"pre_tokenizer\": ");
    if (b->form == HN_HF_BPE) {
        put(o, "{ \"type\": \"Sequence\", \"pretokenizers\": [\n");
        bool level = strstr(b->rules, "gpt2\n") != NULL;
        for (const char *p = b->rules; *p;) {
            size_t n = strcspn(p, "\n");
            put(o, p == b->rules ? "    " : ",\n    ");
            put_rule(o, p, n);
            p += n + (p[n] == '\n');
        }
        if (!level)
            put(o,
                ",\n    { \"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": "
                "false }");
        put(o, "\n  ] }");
    } else if (b->form == HN_HF_PIECES) put(o, "{ \"type\": \"BertPreTokenizer\" }");
    else if (b->form == HN_HF_UNIGRAM) put_metaspace(o);
    else if (b->form == HN_HF_RAW && b->lines)
        put(o, "{ \"type\": \"Split\", \"pattern\": { \"Regex\": \"[^\\\\n]+|[\\\\n]+\" }, \"behavior\": \"Isolated\", "
               "\"invert\": false }");
    else put(o, "null");
    put(o, ",\n");
}

static void put_piece(page *o, int32_t id, int type)
{
    put(o, "{ \"SpecialToken\": { \"id\": ");
    put_text(o, o->b->tok[id].ptr, o->b->tok[id].len);
    put(o, type ? ", \"type_id\": 1 } }" : ", \"type_id\": 0 } }");
}

static void put_known(page *o, int32_t id)
{
    put_text(o, o->b->tok[id].ptr, o->b->tok[id].len);
    put(o, ": { \"id\": ");
    put_text(o, o->b->tok[id].ptr, o->b->tok[id].len);
    put(o, ", \"ids\": [");
    put_number(o, id);
    put(o, "], \"tokens\": [");
    put_text(o, o->b->tok[id].ptr, o->b->tok[id].len);
    put(o, "] }");
}

/* BERT: [CLS] A [SEP] B [SEP]; RoBERTa: <s> A </s> </s> B </s>; T5: A </s> B </s>; others begin and end twice. Kinds of
 * text, which most models have one of, are BERT's and LLaMA's. */
static void put_pair_template(page *o, int32_t first, int32_t last)
{
    static const hn_vocab_kind kind_of[] = { HN_VOCAB_BPE, HN_VOCAB_BPE, HN_VOCAB_SPM, HN_VOCAB_UGM, HN_VOCAB_WPM };
    const back *b = o->b;
    bool bert = b->form == HN_HF_PIECES, twice = hn_vocab_parts_twice(b->g, kind_of[b->form]),
         kinds = bert || b->form == HN_HF_SPM;
    put(o, "], \"pair\": [");
    if (first >= 0) put_piece(o, first, 0), put(o, ", ");
    put(o, "{ \"Sequence\": { \"id\": \"A\", \"type_id\": 0 } }, ");
    if (last >= 0) put_piece(o, last, 0), put(o, ", ");
    if (first >= 0 && last >= 0 && twice) put_piece(o, last, 0), put(o, ", ");
    else if (first >= 0 && !bert) put_piece(o, first, kinds), put(o, ", ");
    put(o, "{ \"Sequence\": { \"id\": \"B\", \"type_id\": ");
    put(o, kinds ? "1 } }" : "0 } }");
    if (last >= 0) put(o, ", "), put_piece(o, last, kinds);
}

static void put_post(page *o)
{
    const back *b = o->b;
    bool bert = b->form == HN_HF_PIECES;
    int32_t first = bert ? b->id[CLS] : b->add_bos ? b->id[BOS] : -1;
    int32_t last = bert ? b->id[SEP] : b->add_eos ? b->id[EOS] : -1;
    put(o, "  \"post_processor\": ");
    if (first < 0 && last < 0) {
        put(o, b->form == HN_HF_BPE
                   ? "{ \"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, "
                     "\"use_regex\": false },\n"
                   : "null,\n");
        return;
    }
    put(o, "{ \"type\": \"TemplateProcessing\", \"single\": [");
    if (first >= 0) put_piece(o, first, 0), put(o, ", ");
    put(o, "{ \"Sequence\": { \"id\": \"A\", \"type_id\": 0 } }");
    if (last >= 0) put(o, ", "), put_piece(o, last, 0);
    put_pair_template(o, first, last);
    put(o, "], \"special_tokens\": { ");
    if (first >= 0) put_known(o, first);
    if (last >= 0 && last != first) put(o, first >= 0 ? ", " : ""), put_known(o, last);
    put(o, " } },\n");
}

static void put_decoder(page *o)
{
    const back *b = o->b;
    put(o, "  \"decoder\": ");
    if (b->form == HN_HF_BPE)
        put(o,
            "{ \"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true },\n");
    else if (b->form == HN_HF_PIECES) put(o, "{ \"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false },\n");
    else if (b->form == HN_HF_UNIGRAM)
        put(o, b->bytes ? "{ \"type\": \"Sequence\", \"decoders\": [{ \"type\": \"ByteFallback\" }, " : ""),
            put_metaspace(o), put(o, b->bytes ? "] },\n" : ",\n");
    else
        put(o, "{ \"type\": \"Sequence\", \"decoders\": [{ \"type\": \"Replace\", \"pattern\": { \"String\": \"" MARK
               "\" }, \"content\": \" \" }, { \"type\": \"ByteFallback\" }, { \"type\": \"Fuse\" }"),
            put(o, b->form == HN_HF_SPM && b->space_prefix
                       ? ", { \"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0 }] },\n"
                       : "] },\n");
}

/* ---- merges ---------------------------------------------------------------------------------- */

typedef struct split {
    float score; /* of the result */
    int32_t left, right, id;
} split;

/* The best results first; of one result in the order of its parts (huggingface/transformers:
 * convert_slow_tokenizer.py, generate_merges). */
static int by_score(const void *a, const void *b)
{
    const split *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static int32_t part_of(const back *b, const char *s, size_t n)
{
    int64_t id = hn_index_find(&b->ix, b->tok, sizeof *b->tok, s, n);
    return id >= 0 && b->type[id] == HN_HF_NORMAL ? (int32_t)id : -1;
}

enum { SPLIT_BYTES = 512 }; /* longer tokens have no merges: only a file that means harm has them */

static hone_status find_splits(const back *b, split **out, size_t *n)
{
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    for (uint64_t id = 0; id < b->n; id++) {
        hone_str s = b->tok[id];
        if (b->type[id] != HN_HF_NORMAL || s.len > SPLIT_BYTES) continue;
        for (size_t i = 1; i < s.len; i++) {
            if (((unsigned char)s.ptr[i] & 0xC0) == 0x80) continue;
            int32_t left = part_of(b, s.ptr, i), right = left < 0 ? -1 : part_of(b, s.ptr + i, s.len - i);
            if (right < 0) continue;
            if (*n == cap) {
                split *p = realloc(*out, (cap = cap ? 2 * cap : 4096) * sizeof *p);
                if (!p) return HN_FAIL(b->err, HONE_E_NOMEM, "%s: %zu merges", b->path, cap);
                *out = p;
            }
            (*out)[(*n)++] = (split){ b->score[id], left, right, (int32_t)id };
        }
    }
    if (*n) qsort(*out, *n, sizeof **out, by_score);
    return HONE_OK;
}

static void put_pair(page *o, bool first, hone_str left, hone_str right)
{
    put(o, first ? "\n      [" : ",\n      [");
    put_text(o, left.ptr, left.len);
    put(o, ", ");
    put_text(o, right.ptr, right.len);
    put(o, "]");
}

static void put_merges(page *o)
{
    const back *b = o->b;
    put(o, ",\n    \"merges\": [");
    if (b->form == HN_HF_SPM) {
        split *s = NULL;
        size_t n = 0;
        o->st = o->st == HONE_OK ? find_splits(b, &s, &n) : o->st;
        for (size_t i = 0; o->st == HONE_OK && i < n; i++) put_pair(o, !i, b->tok[s[i].left], b->tok[s[i].right]);
        free(s);
    } else {
        uint64_t pos = 0;
        hone_str m;
        for (uint64_t i = 0; o->st == HONE_OK && hn_gguf_next_str(&b->merges, &pos, &m); i++) {
            const char *sp = m.len > 1 ? memchr(m.ptr + 1, ' ', m.len - 1) : NULL;
            if (!sp) {
                o->st = HN_FAIL(b->err, HONE_E_FORMAT, "%s: merge %llu is \"%s\", expected two parts", b->path,
                                (unsigned long long)i, HN_ESC(m.ptr, m.len));
                return;
            }
            size_t left = (size_t)(sp - m.ptr);
            put_pair(o, !i, (hone_str){ m.ptr, left }, (hone_str){ sp + 1, m.len - left - 1 });
        }
    }
    put(o, "\n    ]");
}

/* "[PAD7]" of token 7, which nobody made: it is left out, and comes again where the embedding has more rows. */
static bool is_pad(const back *b, uint64_t i)
{
    char name[32];
    int n = snprintf(name, sizeof name, "[PAD%llu]", (unsigned long long)i);
    return b->type[i] == HN_HF_UNUSED && b->tok[i].len == (size_t)n && !memcmp(b->tok[i].ptr, name, (size_t)n);
}

static void put_vocab(page *o)
{
    const back *b = o->b;
    bool pairs = b->form == HN_HF_UNIGRAM, first = true;
    put(o, pairs ? ",\n    \"vocab\": [" : ",\n    \"vocab\": {");
    for (uint64_t i = 0; i < b->n && o->st == HONE_OK; i++) {
        if (!pairs && is_pad(b, i)) continue;
        put(o, first ? "\n      " : ",\n      ");
        first = false;
        if (pairs) put(o, "[");
        put_text(o, b->tok[i].ptr, b->tok[i].len);
        put(o, pairs ? ", " : ": ");
        char x[40];
        if (pairs) raw(o, x, (size_t)snprintf(x, sizeof x, "%.9g]", (double)b->score[i]));
        else put_number(o, (int64_t)i);
    }
    put(o, pairs ? "\n    ]" : "\n    }");
}

static void put_model(page *o)
{
    const back *b = o->b;
    bool chars = b->form == HN_HF_SPM || b->form == HN_HF_RAW;
    put(o, "  \"model\": {\n    \"type\": ");
    put(o, b->form == HN_HF_UNIGRAM ? "\"Unigram\"" : b->form == HN_HF_PIECES ? "\"WordPiece\"" : "\"BPE\"");
    if (b->form == HN_HF_UNIGRAM) {
        put(o, ",\n    \"unk_id\": ");
        if (b->id[UNK] >= 0) put_number(o, b->id[UNK]);
        else put(o, "null");
        put(o, ",\n    \"byte_fallback\": ");
        put_truth(o, b->bytes);
        put_vocab(o);
    } else {
        int32_t unk = b->form == HN_HF_BPE ? -1 : b->id[UNK];
        put(o, ",\n    \"unk_token\": ");
        if (unk >= 0) put_text(o, b->tok[unk].ptr, b->tok[unk].len);
        else put(o, b->form == HN_HF_PIECES ? "\"[UNK]\"" : "null");
        if (b->form == HN_HF_PIECES)
            put(o, ",\n    \"continuing_subword_prefix\": \"##\",\n    \"max_input_chars_per_word\": 100");
        else {
            put(o, ",\n    \"dropout\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": "
                   "null");
            put(o, ",\n    \"fuse_unk\": ");
            put_truth(o, chars);
            put(o, ",\n    \"byte_fallback\": ");
            put_truth(o, chars);
            put(o, ",\n    \"ignore_merges\": ");
            put_truth(o, b->whole);
        }
        put_vocab(o);
        if (b->form != HN_HF_PIECES) put_merges(o);
    }
    put(o, "\n  }\n}\n");
}

static hone_status write_tokenizer(const back *b)
{
    page o;
    hone_status st = begin(&o, b, "tokenizer.json");
    if (st != HONE_OK) return st;
    put(&o, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    put_all_added(&o);
    put_normalizer(&o);
    put_split(&o);
    put_post(&o);
    put_decoder(&o);
    put_model(&o);
    return end(&o);
}

/* ---- tokenizer.model: scores, which merges only imitate -------------------------------------- */

static size_t put_wire(unsigned char *p, uint64_t v)
{
    size_t n = 0;
    for (; v > 127; v >>= 7) p[n++] = (unsigned char)(v | 128);
    p[n++] = (unsigned char)v;
    return n;
}
/* A field of a number; −1 as protobuf has it, in ten bytes. */
static size_t put_field(unsigned char *p, unsigned number, int64_t v)
{
    size_t n = put_wire(p, number << 3);
    return n + put_wire(p + n, (uint64_t)v);
}

static void put_sp_piece(page *o, uint64_t i)
{
    const back *b = o->b;
    unsigned char head[32], tail[8] = { 0x15 }, length[16];
    size_t n = put_wire(head, 0x0A), n_length;
    n += put_wire(head + n, b->tok[i].len);
    memcpy(tail + 1, &b->score[i], 4);
    tail[5] = 0x18;
    tail[6] = (unsigned char)(b->type[i] ? b->type[i] : HN_HF_UNUSED);
    length[0] = 0x0A;
    n_length = 1 + put_wire(length + 1, n + b->tok[i].len + 7);
    raw(o, (const char *)length, n_length);
    raw(o, (const char *)head, n);
    raw(o, b->tok[i].ptr, b->tok[i].len);
    raw(o, (const char *)tail, 7);
}

/* SentencePiece's own file beside tokenizer.json, so that the way to GGUF gives the same scores again. */
static hone_status write_pieces(const back *b)
{
    unsigned char spec[128], length[16];
    page o;
    hone_status st;
    for (uint64_t i = 0; i < b->n; i++)
        if (!b->tok[i].len || !(b->score[i] - b->score[i] == 0.0f)) return HONE_OK; /* it has no form for those */
    TRY(begin(&o, b, "tokenizer.model"));
    for (uint64_t i = 0; i < b->n; i++) put_sp_piece(&o, i);
    size_t n = put_field(spec, 3, 2); /* BPE */
    n += put_field(spec + n, 35, 1);
    for (unsigned k = 0; k < 4; k++) {
        static const int order[] = { UNK, BOS, EOS, PAD };
        n += put_field(spec + n, 40 + k, b->id[order[k]]);
    }
    length[0] = 0x12;
    raw(&o, (const char *)length, 1 + put_wire(length + 1, n));
    raw(&o, (const char *)spec, n);
    n = put_field(spec, 3, b->space_prefix);
    n += put_field(spec + n, 4, 0);
    n += put_field(spec + n, 5, 1);
    length[0] = 0x1A;
    raw(&o, (const char *)length, 1 + put_wire(length + 1, n));
    raw(&o, (const char *)spec, n);
    return end(&o);
}

/* ---- the files about it ---------------------------------------------------------------------- */

static bool put_specials(page *o)
{
    static const char *const names[] = { "bos", "eos", "unk", "sep", "pad", "cls", "mask" };
    const back *b = o->b;
    bool any = false;
    for (int i = 0; i < N_ID; i++) {
        if (b->id[i] < 0 || (b->form == HN_HF_PIECES && i < 2)) continue;
        put(o, any ? ",\n  \"" : "\n  \"");
        put(o, names[i]);
        put(o, "_token\": ");
        put_text(o, b->tok[b->id[i]].ptr, b->tok[b->id[i]].len);
        any = true;
    }
    return any;
}

static hone_status write_about(const back *b)
{
    page o;
    bool first = true;
    hone_status st;
    TRY(begin(&o, b, "special_tokens_map.json"));
    put(&o, "{");
    put_specials(&o);
    put(&o, "\n}\n");
    TRY(end(&o));
    TRY(begin(&o, b, "tokenizer_config.json"));
    put(&o, "{");
    put(&o, put_specials(&o) ? ",\n" : "\n");
    if (b->form != HN_HF_PIECES) {
        put(&o, "  \"add_bos_token\": ");
        put_truth(&o, b->add_bos);
        put(&o, ",\n  \"add_eos_token\": ");
        put_truth(&o, b->add_eos);
        put(&o, ",\n");
    }
    if (b->form == HN_HF_SPM) put(&o, "  \"add_prefix_space\": "), put_truth(&o, b->space_prefix), put(&o, ",\n");
    put(&o, "  \"clean_up_tokenization_spaces\": false,\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n");
    put(&o, "  \"model_input_names\": [\"input_ids\", "); /* absent, kinds of text are among them */
    put(&o, b->form == HN_HF_PIECES ? "\"token_type_ids\", \"attention_mask\"],\n" : "\"attention_mask\"],\n");
    put(&o, "  \"added_tokens_decoder\": {");
    for (uint64_t i = 0; i < b->n; i++) {
        if (!is_added(b, i)) continue;
        put(&o, first ? "\n    \"" : ",\n    \"");
        put_number(&o, (int64_t)i);
        put(&o, "\": ");
        put_added(&o, NULL, i);
        first = false;
    }
    put(&o, "\n  }\n}\n");
    return end(&o);
}

/* Ids of a key as a list; NULL: it is absent, or has fewer than least. */
static json_t *ids_of(const back *b, const char *key, uint64_t least, hone_status *st)
{
    hn_gguf_array a;
    bool found = false;
    *st = hn_gguf_get_array(b->g, key, &a, &found, b->err);
    if (*st != HONE_OK || !found || a.count < least) return NULL;
    if (a.elem_type != HONE_KV_I32 && a.elem_type != HONE_KV_U32) return NULL;
    json_t *list = json_array();
    for (uint64_t i = 0; i < a.count; i++) {
        int32_t id;
        memcpy(&id, a.data + 4 * i, 4);
        if (id >= 0 && (uint64_t)id < b->n) json_array_append_new(list, json_integer(id));
    }
    return list;
}

static json_t *ends_of(const back *b, hone_status *st)
{
    json_t *list = ids_of(b, "tokenizer.ggml.eos_token_ids", 2, st);
    return list || *st != HONE_OK || b->id[EOS] < 0 ? list : json_integer(b->id[EOS]);
}

static hone_status write_generation(const back *b, const json_t *more)
{
    page o;
    hone_status st;
    json_t *all = more ? json_copy((json_t *)(uintptr_t)more) : json_object(), *eos = ends_of(b, &st);
    if (st != HONE_OK) {
        json_decref(all);
        return st;
    }
    json_t *never = ids_of(b, "tokenizer.ggml.suppress_tokens", 1, &st);
    if (st != HONE_OK) {
        json_decref(eos);
        json_decref(all);
        return st;
    }
    bool lost = !all;
    if (never) lost |= json_object_set_new(all, "suppress_tokens", never) != 0;
    if (eos) lost |= json_object_set_new(all, "eos_token_id", eos) != 0;
    if (b->id[BOS] >= 0) lost |= json_object_set_new(all, "bos_token_id", json_integer(b->id[BOS])) != 0;
    if (b->id[PAD] >= 0) lost |= json_object_set_new(all, "pad_token_id", json_integer(b->id[PAD])) != 0;
    char *text = lost || !json_object_size(all) ? NULL : hn_json_dump(all, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    bool empty = !lost && !json_object_size(all);
    json_decref(all);
    if (empty) return HONE_OK;
    if (!text) return HN_FAIL(b->err, HONE_E_NOMEM, "%s/generation_config.json", b->folder);
    st = begin(&o, b, "generation_config.json");
    if (st == HONE_OK) {
        put(&o, text);
        put(&o, "\n");
        st = end(&o);
    }
    free(text);
    return st;
}

static hone_status write_template(const back *b, const char *key, const char *name)
{
    hone_str s;
    bool found = false;
    page o;
    hone_status st = hn_gguf_get_str(b->g, key, &s, &found, b->err);
    if (st != HONE_OK || !found) return st;
    TRY(begin(&o, b, name));
    raw(&o, s.ptr, s.len);
    return end(&o);
}

static hone_status write_templates(const back *b)
{
    static const char prefix[] = "tokenizer.chat_template.";
    hone_status st;
    TRY(write_template(b, "tokenizer.chat_template", "chat_template.jinja"));
    for (uint64_t i = 0; i < hn_gguf_n_kv(b->g); i++) {
        hone_kv kv;
        char name[4352], key[160];
        bool plain = true;
        hn_gguf_kv(b->g, i, &kv);
        size_t n = sizeof prefix - 1;
        if (kv.key.len <= n || kv.key.len > 150 || memcmp(kv.key.ptr, prefix, n)) continue;
        for (size_t k = n; k < kv.key.len; k++) {
            char c = kv.key.ptr[k];
            plain &= c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        }
        if (!plain) continue;
        snprintf(key, sizeof key, "%.*s", (int)kv.key.len, kv.key.ptr);
        snprintf(name, sizeof name, "%s/additional_chat_templates/%s.jinja", b->folder, key + n);
        TRY(hn_file_make_folders(name, b->err));
        TRY(write_template(b, key, name + strlen(b->folder) + 1));
    }
    return HONE_OK;
}

hone_status hn_hf_tokenizer_write(const char *folder, const hn_gguf *g, const json_t *generation, json_t *written,
                                  hone_error *err)
{
    back b = { .g = g, .folder = folder, .path = hn_gguf_path(g), .written = written, .err = err };
    bool none = false;
    for (int i = 0; i < N_ID; i++) b.id[i] = -1;
    b.arena = hn_arena_new();
    hone_status st = b.arena ? read_back(&b, &none) : HN_FAIL(err, HONE_E_NOMEM, "%s: tokenizer", b.path);
    if (st == HONE_OK && !none) st = name_tokens(&b);
    if (st == HONE_OK && !none) st = write_tokenizer(&b);
    if (st == HONE_OK && !none && b.form == HN_HF_SPM) st = write_pieces(&b);
    if (st == HONE_OK && !none) st = write_about(&b);
    if (st == HONE_OK && !none) st = write_templates(&b);
    if (st == HONE_OK) st = write_generation(&b, generation);
    hn_index_free(&b.ix);
    hn_arena_free(b.arena);
    return st;
}
