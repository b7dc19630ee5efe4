/* hf_words_json: tokenizer.json. One pass finds its members, another reads the vocabulary in place, so that thirty
 * megabytes take no tree; the small members (normalizer, pre_tokenizer, …) become trees. Refuses to know which file
 * says bos, and templates. */
#include "forge/hf_words.h"
#include "text/text.h"

#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* Elements of what begins with b; TRY(st) stands behind the loop. */
#define EACH(b, more) for (st = hn_jread_open(&j, b, &more); st == HONE_OK && more; st = hn_jread_next(&j, b, &more))

static const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_PYTHON | HN_JSON_BIG };

typedef struct span {
    char *p;
    size_t n;
} span;

/* The members that are looked at; p NULL: absent, or null. */
typedef struct parts {
    span added, normalizer, pre, post, decoder, model;
    span vocab, merges; /* of the model */
    char type[24];      /* of the model */
    char unk[256];
    bool fallback, whole, in_place, prefix, suffix;
    int64_t unk_id;
    char split[8192], form[512]; /* the rules of pre_tokenizer; of normalizer, in words */
} parts;

static hone_status begin(hn_jread *j, span s, const hn_hf_words *w, const char *what, hone_error *err)
{
    hone_status st = hn_jread_begin(j, s.p, s.n, &rules, w->path, what, err);
    j->room = s.p;
    return st;
}

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

static hone_status value_of(hn_jread *j, span *out)
{
    bool null = hn_jread_peek(j) == 'n';
    char *p = j->room + (j->p - j->begin);
    hone_status st = hn_jread_skip(j);
    if (!null) *out = (span){ p, (size_t)(j->room + (j->p - j->begin) - p) };
    return st;
}

static hone_status text_of(hn_jread *j, char *dst, size_t cap)
{
    hone_str s;
    if (hn_jread_peek(j) != '"') return hn_jread_skip(j);
    hone_status st = hn_jread_str(j, &s);
    if (st != HONE_OK) return st;
    if (s.len >= cap) return hn_jread_fail(j, "a shorter string");
    memcpy(dst, s.ptr, s.len);
    dst[s.len] = 0;
    return HONE_OK;
}

static hone_status truth_of(hn_jread *j, bool *out)
{
    *out = hn_jread_peek(j) == 't';
    return hn_jread_skip(j);
}

static hone_status find_members(hn_hf_words *w, parts *p, span all, hone_error *err)
{
    hn_jread j;
    bool more;
    hone_str k;
    hone_status st;
    TRY(begin(&j, all, w, NULL, err));
    EACH('{', more)
    {
        span other = { 0 };
        TRY(hn_jread_key_str(&j, &k));
        TRY(value_of(&j, is(k, "added_tokens")     ? &p->added
                         : is(k, "normalizer")     ? &p->normalizer
                         : is(k, "pre_tokenizer")  ? &p->pre
                         : is(k, "post_processor") ? &p->post
                         : is(k, "decoder")        ? &p->decoder
                         : is(k, "model")          ? &p->model
                                                   : &other));
    }
    TRY(st);
    TRY(hn_jread_end(&j));
    if (!p->model.p)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: no \"model\", expected a tokenizer as Hugging Face's tokenizers write it", w->path);
    p->unk_id = -1;
    TRY(begin(&j, p->model, w, "model", err));
    EACH('{', more)
    {
        span other = { 0 };
        TRY(hn_jread_key_str(&j, &k));
        if (is(k, "type")) TRY(text_of(&j, p->type, sizeof p->type));
        else if (is(k, "unk_token")) TRY(text_of(&j, p->unk, sizeof p->unk));
        else if (is(k, "byte_fallback")) TRY(truth_of(&j, &p->fallback));
        else if (is(k, "ignore_merges")) TRY(truth_of(&j, &p->whole));
        else if (is(k, "unk_id") && hn_jread_peek(&j) != 'n') {
            uint64_t id;
            TRY(hn_jread_u64(&j, &id));
            p->unk_id = id < INT32_MAX ? (int64_t)id : -1;
        } else TRY(value_of(&j, is(k, "vocab") ? &p->vocab : is(k, "merges") ? &p->merges : &other));
    }
    TRY(st);
    if (!p->vocab.p) return HN_FAIL(err, HONE_E_FORMAT, "%s: the model has no \"vocab\"", w->path);
    return HONE_OK;
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

static int byte_of(hone_str s)
{
    static const char hex[] = "0123456789ABCDEF";
    if (s.len != 6 || memcmp(s.ptr, "<0x", 3) != 0 || s.ptr[5] != '>') return -1;
    const char *a = s.ptr[3] ? strchr(hex, s.ptr[3]) : NULL, *b = s.ptr[4] ? strchr(hex, s.ptr[4]) : NULL;
    return a && b ? (int)((a - hex) << 4 | (b - hex)) : -1;
}

static int32_t type_of(const hn_hf_words *w, const parts *p, hone_str s)
{
    bool bytes = w->form == HN_HF_SPM || w->form == HN_HF_RAW || (w->form == HN_HF_UNIGRAM && p->fallback);
    if (w->form != HN_HF_BPE && w->form != HN_HF_PIECES && *p->unk && is(s, p->unk)) return HN_HF_UNKNOWN;
    return bytes && byte_of(s) >= 0 ? HN_HF_BYTE : HN_HF_NORMAL;
}

/* {text: id}; of Unigram [[text, score]]. */
static hone_status read_vocab(hn_hf_words *w, const parts *p, hone_error *err)
{
    hn_jread j;
    bool more, pairs = w->form == HN_HF_UNIGRAM;
    hone_status st;
    char bracket = pairs ? '[' : '{';
    TRY(begin(&j, p->vocab, w, "vocab", err));
    hn_hf_words_room(w, p->vocab.n);
    uint64_t id = 0;
    EACH(bracket, more)
    {
        hone_str s;
        hn_jread_num x = { .d = 0 };
        if (pairs) {
            bool two;
            TRY(hn_jread_open(&j, '[', &two));
            if (!two) return hn_jread_fail(&j, "a text and its score");
            TRY(hn_jread_str(&j, &s));
            TRY(hn_jread_next(&j, '[', &two));
            if (!two) return hn_jread_fail(&j, "a score");
            TRY(hn_jread_number(&j, &x));
            TRY(hn_jread_next(&j, '[', &two));
            if (two) return hn_jread_fail(&j, "no more than a text and its score");
        } else {
            TRY(hn_jread_key_str(&j, &s));
            TRY(hn_jread_u64(&j, &id));
        }
        int32_t type = pairs && (int64_t)id == p->unk_id ? HN_HF_UNKNOWN : type_of(w, p, s);
        TRY(hn_hf_words_set(w, id, s, type, (float)x.d, err));
        if (type == HN_HF_UNKNOWN) w->unk = (int32_t)id;
        id++;
    }
    TRY(st);
    return hn_jread_end(&j);
}

/* Spaces within a part would end it: as the usual converter has it, they become U+0120. */
static char *put_part(char *to, hone_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ' ') *to++ = (char)0xC4, *to++ = (char)0xA0;
        else *to++ = s.ptr[i];
    }
    return to;
}

/* ["left", "right"] becomes "left right", in place where no part has a space. */
static hone_status read_pair(hn_hf_words *w, hn_jread *j, hone_str *out, hone_error *err)
{
    bool two;
    hone_str a, b;
    hone_status st;
    TRY(hn_jread_open(j, '[', &two));
    if (!two) return hn_jread_fail(j, "two parts");
    TRY(hn_jread_str(j, &a));
    TRY(hn_jread_next(j, '[', &two));
    if (!two) return hn_jread_fail(j, "two parts");
    TRY(hn_jread_str(j, &b));
    TRY(hn_jread_next(j, '[', &two));
    if (two) return hn_jread_fail(j, "no more than two parts");
    char *to = (char *)a.ptr;
    if ((a.len && memchr(a.ptr, ' ', a.len)) || (b.len && memchr(b.ptr, ' ', b.len))) {
        to = hn_arena_alloc(w->arena, 2 * (a.len + b.len) + 1);
        if (!to) return HN_FAIL(err, HONE_E_NOMEM, "%s: merge %llu", w->path, (unsigned long long)w->n_merge);
        char *end = put_part(to, a);
        *end++ = ' ';
        *out = (hone_str){ to, (size_t)(put_part(end, b) - to) };
        return HONE_OK;
    }
    to[a.len] = ' '; /* the quote's place, or before it */
    memmove(to + a.len + 1, b.ptr, b.len);
    *out = (hone_str){ to, a.len + 1 + b.len };
    return HONE_OK;
}

static hone_status read_merges(hn_hf_words *w, const parts *p, hone_error *err)
{
    hn_jread j;
    bool more;
    hone_status st;
    if (!p->merges.p) return HN_FAIL(err, HONE_E_FORMAT, "%s: the model has no \"merges\", which BPE needs", w->path);
    TRY(begin(&j, p->merges, w, "merges", err));
    EACH('[', more)
    {
        hone_str s;
        if (hn_jread_peek(&j) == '[') TRY(read_pair(w, &j, &s, err));
        else TRY(hn_jread_str(&j, &s));
        TRY(hn_hf_words_merge(w, s, err));
    }
    TRY(st);
    return hn_jread_end(&j);
}

static hone_status read_added(hn_hf_words *w, const parts *p, hone_error *err)
{
    hn_jread j;
    bool more, trims = false, moved = false;
    hone_status st;
    if (!p->added.p) return HONE_OK;
    TRY(begin(&j, p->added, w, "added_tokens", err));
    hn_hf_words_room(w, w->most + p->added.n);
    EACH('[', more)
    {
        bool member, special = false, flag;
        hone_str k, content = { NULL, 0 };
        uint64_t id = UINT64_MAX;
        EACH('{', member)
        {
            TRY(hn_jread_key_str(&j, &k));
            if (is(k, "id")) TRY(hn_jread_u64(&j, &id));
            else if (is(k, "content")) TRY(hn_jread_str(&j, &content));
            else if (is(k, "special")) TRY(truth_of(&j, &special));
            else if (is(k, "lstrip") || is(k, "rstrip") || is(k, "single_word")) {
                TRY(truth_of(&j, &flag));
                trims |= flag;
            } else TRY(hn_jread_skip(&j));
        }
        TRY(st);
        if (id == UINT64_MAX || !content.ptr) return hn_jread_fail(&j, "an added token with \"id\" and \"content\"");
        if (!moved && id != w->ix.n && hn_hf_words_find(w, content.ptr, content.len) < 0) {
            hn_hf_words_note(w,
                             "%s: added token \"%s\" has id %llu behind ids without a token; transformers would move "
                             "it to %llu, hone leaves it at its row of the embedding",
                             w->path, HN_ESC(content.ptr, content.len), (unsigned long long)id,
                             (unsigned long long)w->ix.n);
            moved = true;
        }
        TRY(hn_hf_words_add(w, id, content, special, err));
    }
    TRY(st);
    if (trims)
        hn_hf_words_note(w, "%s: added tokens have lstrip, rstrip or single_word, for which GGUF has no form", w->path);
    return hn_jread_end(&j);
}

/* ---- what divides and normalises text -------------------------------------------------------- */

static void add_text(char *dst, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add_text(char *dst, size_t cap, const char *format, ...)
{
    size_t n = strlen(dst);
    va_list ap;
    va_start(ap, format);
    vsnprintf(dst + n, cap - n, format, ap);
    va_end(ap);
}

static bool truth(const json_t *o, const char *key, bool absent)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : absent;
}

/* One rule a line, in the words of hn_hf_pre_of. */
static void put_rules(char *dst, size_t cap, const json_t *o, int depth)
{
    const char *type = hn_json_text_of(o, "type"), *how = hn_json_text_of(o, "behavior");
    const json_t *list = json_object_get(o, "pretokenizers");
    if (!strcmp(type, "Sequence") && depth < 8)
        for (size_t i = 0; i < json_array_size(list); i++) put_rules(dst, cap, json_array_get(list, i), depth + 1);
    else if (!strcmp(type, "ByteLevel"))
        add_text(dst, cap, "%s%s", truth(o, "add_prefix_space", true) ? "prefix-space\n" : "",
                 truth(o, "use_regex", true) ? "gpt2\n" : "");
    else if (!strcmp(type, "Digits"))
        add_text(dst, cap, "%s\n", truth(o, "individual_digits", false) ? "digits" : "digit-runs");
    else if (!strcmp(type, "Punctuation"))
        add_text(dst, cap, "%s\n", !strcmp(how, "Contiguous") ? "punctuation" : "punctuation-apart");
    else if (!strcmp(type, "Split")) {
        const json_t *p = json_object_get(o, "pattern");
        const char *regex = hn_json_text_of(p, "Regex"), *text = hn_json_text_of(p, "String");
        bool apart = !strcmp(how, "Isolated") || (!strcmp(how, "Removed") && truth(o, "invert", false));
        if (*regex && apart) add_text(dst, cap, "regex %s\n", regex);
        else add_text(dst, cap, "split %s \"%s%s\"\n", how, regex, text);
    } else if (!strcmp(type, "Metaspace")) {
        const char *scheme = hn_json_text_of(o, "prepend_scheme");
        if (!*scheme) scheme = truth(o, "add_prefix_space", true) ? "always" : "never";
        add_text(dst, cap, "metaspace %s\n", scheme);
    } else add_text(dst, cap, "%s\n", *type ? type : "?");
}

/* Normalizers, one a line. */
static void put_forms(char *dst, size_t cap, const json_t *o, int depth)
{
    const char *type = hn_json_text_of(o, "type");
    const json_t *list = json_object_get(o, "normalizers"), *p = json_object_get(o, "pattern");
    if (!strcmp(type, "Sequence") && depth < 8)
        for (size_t i = 0; i < json_array_size(list); i++) put_forms(dst, cap, json_array_get(list, i), depth + 1);
    else if (!strcmp(type, "Prepend")) add_text(dst, cap, "prepend %s\n", hn_json_text_of(o, "prepend"));
    else if (!strcmp(type, "Replace"))
        add_text(dst, cap, "replace \"%s%s\" by \"%s\"\n", hn_json_text_of(p, "Regex"), hn_json_text_of(p, "String"),
                 hn_json_text_of(o, "content"));
    else if (!strcmp(type, "Strip"))
        add_text(dst, cap, "strip%s%s\n", truth(o, "strip_left", true) ? " left" : "",
                 truth(o, "strip_right", true) ? " right" : "");
    else add_text(dst, cap, "%s\n", *type ? type : "?");
}

static const json_t *find_type(const json_t *o, const char *list, const char *type, int depth)
{
    if (!strcmp(hn_json_text_of(o, "type"), type)) return o;
    const json_t *l = json_object_get(o, list);
    for (size_t i = 0; depth < 8 && i < json_array_size(l); i++) {
        const json_t *x = find_type(json_array_get(l, i), list, type, depth + 1);
        if (x) return x;
    }
    return NULL;
}

static hone_status tree_of(json_t **out, span s, const hn_hf_words *w, const char *what, hone_error *err)
{
    hn_jread j;
    *out = NULL;
    if (!s.p) return HONE_OK;
    hone_status st = hn_jread_begin(&j, s.p, s.n, &rules, w->path, what, err);
    return st == HONE_OK ? hn_json_build(out, &j) : st;
}

static hone_status refuse(const hn_hf_words *w, const parts *p, const char *what, hone_error *err)
{
    char shown[900];
    snprintf(shown, sizeof shown, "%s%.100s%s%.600s", *p->form ? "normalizer: " : "", p->form,
             *p->split ? "pre_tokenizer: " : "no pre_tokenizer\n", p->split);
    for (char *c = shown; *c; c++)
        if (*c == '\n') *c = c[1] ? ';' : 0;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s: %s", w->path, what, shown);
}

#define MARK "\xE2\x96\x81"

/* Characters' BPE and Unigram: how spaces are marked. */
static hone_status read_spaces(hn_hf_words *w, const parts *p, bool unigram, hone_error *err)
{
    static const char *const known[] = { "prepend " MARK,
                                         "replace \" \" by \"" MARK "\"",
                                         "Precompiled",
                                         "replace \" {2,}\" by \" \"",
                                         "replace \" {2,}\" by \"" MARK "\"",
                                         "strip right",
                                         "strip left right",
                                         "replace \"\\A +| +\\z\" by \"\"" };
    bool prefix = false, merges = false, marked = false;
    for (const char *s = p->form; *s;) {
        size_t n = strcspn(s, "\n"), i = 0, most = unigram ? sizeof known / sizeof *known : 2;
        while (i < most && !(strlen(known[i]) == n && !memcmp(known[i], s, n))) i++;
        if (i == most) return refuse(w, p, "a normalizer that GGUF has no form for", err);
        prefix |= i == 0;
        marked |= i == 1;
        merges |= i >= 3 && i != 5;
        if (i >= 5 && i < 7 && !strstr(p->form, "Precompiled"))
            hn_hf_words_note(w, "%s: tabs and newlines around a text are stripped; in GGUF only spaces are", w->path);
        s += n + (s[n] == '\n');
    }
    for (const char *s = p->split; *s;) {
        size_t n = strcspn(s, "\n");
        if (n > 10 && !memcmp(s, "metaspace ", 10)) {
            marked = true;
            prefix |= memcmp(s + 10, "never", n - 10 < 5 ? n - 10 : 5) != 0;
            if (n == 15 && !memcmp(s + 10, "first", 5))
                hn_hf_words_note(
                    w, "%s: a space goes before the text, but not behind special tokens; GGUF says it of both",
                    w->path);
        } else if (n == 15 && !memcmp(s, "WhitespaceSplit", 15)) merges = true;
        else if (n < 24 || memcmp(s, "split MergedWithPrevious", 24) != 0)
            return refuse(w, p, "a pre_tokenizer that GGUF has no form for", err);
        s += n + (s[n] == '\n');
    }
    if (!marked) return refuse(w, p, "expected spaces that become U+2581, seen other rules", err);
    hn_hf_words_spaces(w, prefix, merges);
    return HONE_OK;
}

static hone_status read_split(hn_hf_words *w, parts *p, const json_t *normalizer, hone_error *err)
{
    if (w->form == HN_HF_PIECES) {
        const json_t *b = find_type(normalizer, "normalizers", "BertNormalizer", 0);
        if (!b || strcmp(p->form, "BertNormalizer\n") || strcmp(p->split, "BertPreTokenizer\n") ||
            !truth(b, "clean_text", true) || !truth(b, "handle_chinese_chars", true))
            return refuse(w, p, "expected WordPiece with BertNormalizer and BertPreTokenizer, seen other rules", err);
        w->lowercase = truth(b, "lowercase", true);
        w->strip_accents = truth(b, "strip_accents", w->lowercase);
        return HONE_OK;
    }
    if (w->form != HN_HF_BPE) return read_spaces(w, p, w->form == HN_HF_UNIGRAM, err);
    if (!strcmp(p->form, "NFC\n"))
        hn_hf_words_note(
            w, "%s: text is normalised (NFC), for which GGUF has no form: decomposed letters divide otherwise",
            w->path);
    else if (*p->form && !w->t->pre) return refuse(w, p, "a normalizer that GGUF has no form for", err);
    if (w->t->pre) return HONE_OK;
    if (!(w->pre = hn_hf_pre_of(p->split, p->whole, w)))
        return refuse(w, p, "a split of text that hone does not know (choose the one that fits with --pre KIND)", err);
    return HONE_OK;
}

/* ---- whether bos and eos are added ----------------------------------------------------------- */

static int32_t piece_id(const hn_hf_words *w, const json_t *o)
{
    const char *s = hn_json_text_of(json_object_get(o, "SpecialToken"), "id");
    return *s ? hn_hf_words_find(w, s, strlen(s)) : -1;
}

/* What stands between two texts: one separator, or two as in RoBERTa; of other templates nothing is said. */
static void read_pair_template(hn_hf_words *w, const json_t *pair)
{
    int sequences = 0, between = 0, others = 0;
    for (size_t i = 0; i < json_array_size(pair); i++) {
        const json_t *x = json_array_get(pair, i);
        if (json_object_get(x, "Sequence")) sequences++;
        else if (sequences == 1) piece_id(w, x) == w->last ? between++ : others++;
    }
    if (sequences == 2 && w->last >= 0 && !others && (between == 1 || between == 2)) w->add_sep = between == 2;
}

static void read_post(hn_hf_words *w, const json_t *post)
{
    const json_t *t = find_type(post, "processors", "TemplateProcessing", 0);
    const json_t *single = json_object_get(t, "single");
    size_t n = json_array_size(single);
    if (t) {
        int32_t first = n ? piece_id(w, json_array_get(single, 0)) : -1;
        int32_t last = n ? piece_id(w, json_array_get(single, n - 1)) : -1;
        w->add_bos = first >= 0;
        w->add_eos = last >= 0;
        if (first >= 0) w->bos = first;
        if (last >= 0) w->eos = last;
        w->first = first;
        w->last = last;
        read_pair_template(w, json_object_get(t, "pair"));
        return;
    }
    bool roberta = find_type(post, "processors", "RobertaProcessing", 0) != NULL;
    if (!roberta && !find_type(post, "processors", "BertProcessing", 0)) return;
    w->add_bos = w->add_eos = true;
    w->add_sep = roberta;
}

static hone_status find_form(hn_hf_words *w, parts *p, const json_t *decoder, const json_t *pre, hone_error *err)
{
    bool bytes = find_type(pre, "pretokenizers", "ByteLevel", 0) || find_type(decoder, "decoders", "ByteLevel", 0);
    bool gemma4 = w->t->arch && !strncmp(w->t->arch, "gemma4", 6);
    bool raw = gemma4 || (w->t->pre && (!strcmp(w->t->pre, "gemma4") || !strcmp(w->t->pre, "sarvam-moe") ||
                                        !strcmp(w->t->pre, "granite-embed-multi-311m")));
    if (!strcmp(p->type, "Unigram")) w->form = HN_HF_UNIGRAM;
    else if (!strcmp(p->type, "WordPiece")) w->form = HN_HF_PIECES;
    else if (strcmp(p->type, "BPE") && *p->type)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: model is of type %s, expected BPE, Unigram or WordPiece", w->path,
                       HN_ESC(p->type, strlen(p->type)));
    else if (bytes) w->form = HN_HF_BPE;
    else if (raw) w->form = HN_HF_RAW, w->pre = gemma4 ? "gemma4" : w->t->pre;
    else if (p->fallback) w->form = HN_HF_SPM;
    else
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: BPE without ByteLevel and without byte_fallback, expected one of both", w->path);
    return HONE_OK;
}

static hone_status read_all(hn_hf_words *w, parts *p, json_t *tree[4], hone_error *err)
{
    hone_status st;
    TRY(tree_of(&tree[0], p->normalizer, w, "normalizer", err));
    TRY(tree_of(&tree[1], p->pre, w, "pre_tokenizer", err));
    TRY(tree_of(&tree[2], p->post, w, "post_processor", err));
    TRY(tree_of(&tree[3], p->decoder, w, "decoder", err));
    TRY(find_form(w, p, tree[3], tree[1], err));
    if (tree[0]) put_forms(p->form, sizeof p->form, tree[0], 0);
    if (tree[1]) put_rules(p->split, sizeof p->split, tree[1], 0);
    TRY(read_vocab(w, p, err));
    TRY(read_added(w, p, err));
    w->whole = p->whole;
    if (w->unk < 0 && *p->unk) w->unk = hn_hf_words_find(w, p->unk, strlen(p->unk));
    TRY(read_split(w, p, tree[0], err));
    read_post(w, tree[2]);
    const json_t *map = find_type(tree[0], "normalizers", "Precompiled", 0);
    const char *text = hn_json_text_of(map, "precompiled_charsmap");
    if (w->form == HN_HF_UNIGRAM && *text) {
        w->n_charsmap = strlen(text);
        char *bytes = hn_arena_strndup(w->arena, text, w->n_charsmap);
        if (!bytes) return HN_FAIL(err, HONE_E_NOMEM, "%s: precompiled_charsmap", w->path);
        int64_t n = hn_hf_base64(bytes, bytes, w->n_charsmap);
        if (n < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: precompiled_charsmap is not base64", w->path);
        w->charsmap = bytes;
        w->n_charsmap = (size_t)n;
    }
    if (w->form == HN_HF_UNIGRAM || w->form == HN_HF_PIECES) return HONE_OK;
    TRY(read_merges(w, p, err));
    return hn_hf_words_merged(w, w->form == HN_HF_SPM, err);
}

hone_status hn_hf_read_vocab(hn_hf_words *w, char *text, size_t n, hone_error *err)
{
    parts *p = calloc(1, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s", w->path);
    p->vocab = (span){ text, n };
    hone_status st = read_vocab(w, p, err);
    free(p);
    return st;
}

hone_status hn_hf_read_json(hn_hf_words *w, bool *found, hone_error *err)
{
    span all;
    json_t *tree[4] = { NULL };
    hone_status st = hn_hf_words_file(&all.p, &all.n, w, "tokenizer.json", err);
    *found = all.p != NULL;
    if (st != HONE_OK || !all.p) return st;
    parts *p = calloc(1, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s", w->path);
    st = find_members(w, p, all, err);
    if (st == HONE_OK) st = read_all(w, p, tree, err);
    for (int i = 0; i < 4; i++) json_decref(tree[i]);
    free(p);
    return st;
}
