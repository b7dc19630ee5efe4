/* hf_tokenizer: which of a folder's files is its vocabulary, what the files about it say (special ids, bos and eos,
 * templates), and tokenizer.* of GGUF. Refuses to know the formats of vocabularies (hf_words_*.c). */
#include "forge/hf_words.h"
#include "text/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

typedef struct about { /* NULL where there is none */
    json_t *config, *map, *added, *generation;
} about;

/* ---- added tokens ---------------------------------------------------------------------------- */

static bool decimal(const char *s, uint64_t *v)
{
    *v = 0;
    if (!*s || strlen(s) > 9) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        *v = 10 * *v + (uint64_t)(*s - '0');
    }
    return true;
}

static hone_status add_copy(hn_hf_words *w, uint64_t id, const char *s, bool special, hone_error *err)
{
    char *p = hn_arena_strndup(w->arena, s, strlen(s));
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: added tokens", w->path);
    return hn_hf_words_add(w, id, (hone_str){ p, strlen(p) }, special, err);
}

/* tokenizer_config.json, then added_tokens.json, whose tokens are special only where someone said so. */
static hone_status add_tokens(hn_hf_words *w, const about *a, hone_error *err)
{
    const char *k;
    json_t *v;
    uint64_t id;
    hone_status st;
    hn_hf_words_room(w, w->n + 65536);
    json_object_foreach(json_object_get(a->config, "added_tokens_decoder"), k, v)
    {
        const char *s = hn_json_text_of(v, "content");
        if (!decimal(k, &id) || !*s)
            return HN_FAIL(
                err, HONE_E_FORMAT,
                "%s: tokenizer_config.json: added_tokens_decoder[\"%s\"], expected an id and its \"content\"",
                w->t->folder, HN_ESC(k, strlen(k)));
        TRY(add_copy(w, id, s, json_is_true(json_object_get(v, "special")), err));
    }
    json_object_foreach(a->added, k, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || !*k)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: added_tokens.json: \"%s\" is %s, expected an id", w->t->folder,
                           HN_ESC(k, strlen(k)), hn_json_kind(v));
        id = (uint64_t)json_integer_value(v);
        if (id < w->n && w->tok[id].ptr && w->tok[id].len == strlen(k) && !memcmp(w->tok[id].ptr, k, strlen(k)))
            continue;
        TRY(add_copy(w, id, k, false, err));
    }
    return HONE_OK;
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

/* Splits of tokenizers that are programs: by the class's name. */
static const char *pre_of_class(const char *name)
{
    static const char *const known[][2] = {
        { "Qwen2Tokenizer", "qwen2" },   { "QWenTokenizer", "qwen2" },           { "GPT2Tokenizer", "gpt-2" },
        { "CodeGenTokenizer", "gpt-2" }, { "RobertaTokenizer", "gpt-2" },        { "BartTokenizer", "gpt-2" },
        { "GPTNeoXTokenizer", "gpt-2" }, { "ChatGLM4Tokenizer", "chatglm-bpe" }, { "TikTokenTokenizer", "kimi-k2" },
    };
    size_t n = strlen(name);
    if (n > 4 && !strcmp(name + n - 4, "Fast")) n -= 4;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i][0]) == n && !memcmp(known[i][0], name, n)) return known[i][1];
    return NULL;
}

static bool no_word(void *arg, const char *s, size_t n)
{
    (void)arg, (void)s, (void)n;
    return true;
}

static hone_status choose_pre(hn_hf_words *w, const about *a, hone_error *err)
{
    const char *name = hn_json_text_of(a->config, "tokenizer_class");
    bool raw = w->form == HN_HF_RAW;
    if (w->form != HN_HF_BPE && !raw) {
        if (w->t->pre)
            return HN_FAIL(err, HONE_E_ARG,
                           "--pre %s: %s is no byte-level BPE, so no split is to choose; leave --pre away",
                           HN_ESC(w->t->pre, strlen(w->t->pre)), w->path);
        return HONE_OK;
    }
    if (w->t->pre) w->pre = w->t->pre;
    if (!w->pre) w->pre = pre_of_class(name);
    if (!w->pre)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: nothing says how text is divided (tokenizer_class is \"%s\"); expected tokenizer.json, or "
                       "choose the split that fits with --pre KIND",
                       w->path, HN_ESC(name, strlen(name)));
    return raw ? HONE_OK : hn_pre_words(w->pre, "", 0, no_word, NULL, err);
}

static hone_status read_words(hn_hf_words *w, hone_error *err)
{
    bool found = false;
    hone_status st;
    TRY(hn_hf_read_json(w, &found, err));
    TRY(hn_hf_read_sentencepiece(w, &found, err));
    if (!found) TRY(hn_hf_read_merges(w, &found, err));
    if (!found) TRY(hn_hf_read_ranks(w, &found, err));
    if (!found) TRY(hn_hf_read_tekken(w, &found, err));
    if (!found)
        return HN_FAIL(err, HONE_E_IO,
                       "%s: no vocabulary; expected tokenizer.json, tokenizer.model, spiece.model, vocab.json and "
                       "merges.txt, *.tiktoken or tekken.json in the folder",
                       w->t->folder);
    return w->n ? HONE_OK : HN_FAIL(err, HONE_E_FORMAT, "%s: no tokens, expected a vocabulary", w->path);
}

/* BERT's continuations lose their mark, other words get one, as GGUF has it. */
static hone_status mark_pieces(hn_hf_words *w, hone_error *err)
{
    for (uint64_t i = 0; i < w->n; i++) {
        hone_str s = w->tok[i];
        if (!s.ptr || (s.len && s.ptr[0] == '[' && s.ptr[s.len - 1] == ']')) continue;
        if (s.len > 2 && s.ptr[0] == '#' && s.ptr[1] == '#') {
            w->tok[i] = (hone_str){ s.ptr + 2, s.len - 2 };
            continue;
        }
        char *p = hn_arena_alloc(w->arena, s.len + 4);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
        memcpy(p, "\xE2\x96\x81", 3);
        memcpy(p + 3, s.ptr, s.len);
        w->tok[i] = (hone_str){ p, s.len + 3 };
    }
    return HONE_OK;
}

/* Ids without a token, and rows of the embedding behind the last one. */
static hone_status pad(hn_hf_words *w, hone_error *err)
{
    uint64_t n = w->t->n_vocab ? w->t->n_vocab : w->n, missing = 0;
    hone_status st;
    for (uint64_t id = 0; id < n; id++) {
        if (id < w->n && w->tok[id].ptr) continue;
        char *p = hn_arena_alloc(w->arena, 32);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: tokens", w->path);
        size_t len = (size_t)snprintf(p, 32, "[PAD%llu]", (unsigned long long)id);
        missing += id < w->n;
        TRY(hn_hf_words_set(w, id, (hone_str){ p, len }, HN_HF_UNUSED, w->form == HN_HF_SPM ? -1000.0f : 0.0f, err));
    }
    if (w->beyond.ptr)
        hn_hf_words_note(w,
                         "%s: added tokens behind the %llu rows of the embedding are left out; the first is \"%s\", id "
                         "%llu",
                         w->t->folder, (unsigned long long)n, HN_ESC(w->beyond.ptr, w->beyond.len),
                         (unsigned long long)w->beyond_id);
    if (missing)
        hn_hf_words_note(w, "%s: %llu ids have no token; they are named [PADn] and unused", w->path,
                         (unsigned long long)missing);
    return HONE_OK;
}

/* ---- special ids ----------------------------------------------------------------------------- */

/* "x", or {"content": "x"} */
static const char *content_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_object(v) ? hn_json_text_of(v, "content") : hn_json_text_of(o, key);
}

static int32_t find_text(const hn_hf_words *w, const char *s) { return hn_hf_words_find(w, s, strlen(s)); }

static bool added_type(const hn_hf_words *w, int32_t id)
{
    return id >= 0 && (w->type[id] == HN_HF_CONTROL || w->type[id] == HN_HF_USER);
}

/* A number, or the first of a list, that is a token. */
static int32_t id_of(const hn_hf_words *w, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!v && json_is_object(json_object_get(o, "text_config")))
        v = json_object_get(json_object_get(o, "text_config"), key);
    if (json_is_array(v)) v = json_array_get(v, 0);
    json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    return id >= 0 && id < (json_int_t)w->n ? (int32_t)id : -1;
}

static hone_status put_id(hn_gguf_writer *out, const char *name, int32_t id, hone_error *err)
{
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", name);
    return id < 0 ? HONE_OK : hn_gguf_put_u32(out, key, (uint32_t)id, err);
}

static const struct {
    const char *config, *id, *key;
} specials[] = {
    { "bos_token", "bos_token_id", "bos" },     { "eos_token", "eos_token_id", "eos" },
    { "unk_token", "unk_token_id", "unknown" }, { "sep_token", "sep_token_id", "seperator" },
    { "pad_token", "pad_token_id", "padding" }, { "cls_token", "cls_token_id", "cls" },
    { "mask_token", "mask_token_id", "mask" },
};
enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, N_SPECIAL };

static void find_specials(const hn_hf_words *w, const about *a, int32_t id[N_SPECIAL])
{
    int32_t said[N_SPECIAL] = { w->bos, w->eos, w->unk, -1, w->pad, -1, -1 };
    for (int i = 0; i < N_SPECIAL; i++) {
        const char *s = content_of(a->config, specials[i].config);
        if (!*s) s = content_of(a->map, specials[i].config);
        id[i] = *s ? find_text(w, s) : -1;
        if (id[i] < 0) id[i] = id_of(w, w->t->config, specials[i].id);
        if (id[i] < 0) id[i] = said[i];
    }
}

enum { MAX_EOS = 64 };

/* Ids that end a text: a number, or a list of them. */
static hone_status add_eos(const hn_hf_words *w, const json_t *o, int32_t *ids, size_t *n, hone_error *err)
{
    const json_t *v = json_object_get(o, "eos_token_id");
    size_t many = json_is_array(v) ? json_array_size(v) : v && !json_is_null(v) ? 1 : 0;
    for (size_t i = 0; i < many && *n < MAX_EOS; i++) {
        const json_t *x = json_is_array(v) ? json_array_get(v, i) : v;
        json_int_t id = json_integer_value(x);
        if (!json_is_integer(x))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: eos_token_id has %s, expected whole numbers", w->t->folder,
                           hn_json_kind(x));
        bool there = id < 0 || id >= (json_int_t)w->n;
        if (there)
            hn_hf_words_note(w, "%s: eos_token_id %lld is no token of %llu; it ends nothing", w->t->folder,
                             (long long)id, (unsigned long long)w->n);
        for (size_t k = 0; k < *n; k++) there |= ids[k] == id;
        if (!there) ids[(*n)++] = (int32_t)id;
    }
    return HONE_OK;
}

/* The first of the names, separated by spaces, that someone added to the vocabulary; −1: none. */
static int32_t by_name(const hn_hf_words *w, const char *names)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, " ");
        int32_t id = hn_hf_words_find(w, p, n);
        if (added_type(w, id)) return id;
        p += n + (p[n] == ' ');
    }
    return -1;
}

#define FW "\xEF\xBD\x9C"
#define SP "\xE2\x96\x81"
static const char eot_names[] =
    "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> "
    "[EOT] <" FW "end" SP "of" SP "sentence" FW "> <end_of_utterance>";
static const struct {
    const char *key, *names;
} fim[] = {
    { "fim_pre",
      "<|fim_prefix|> <fim-prefix> <fim_prefix> <" FW "fim" SP "begin" FW "> <PRE> " SP "<PRE> <|code_prefix|>" },
    { "fim_suf",
      "<|fim_suffix|> <fim-suffix> <fim_suffix> <" FW "fim" SP "hole" FW "> <SUF> " SP "<SUF> <|code_suffix|>" },
    { "fim_mid",
      "<|fim_middle|> <fim-middle> <fim_middle> <" FW "fim" SP "end" FW "> <MID> " SP "<MID> <|code_middle|>" },
    { "fim_pad", "<|fim_pad|> <fim-pad> <fim_pad> <PAD>" },
    { "fim_rep", "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>" },
    { "fim_sep", "<|file_sep|>" },
};

/* What ends a turn, besides eos: of the ids that the folder lists the one with a known name, then the next. also:
 * another id that ends a text; −1: none. */
static hone_status put_ends(hn_gguf_writer *out, const hn_hf_words *w, const about *a, int32_t eos, int32_t also,
                            hone_error *err)
{
    int32_t ids[MAX_EOS], eot = -1, eom = -1;
    size_t n = 0;
    hone_status st;
    if (eos >= 0) ids[n++] = eos;
    if (also >= 0 && also != eos) ids[n++] = also;
    TRY(add_eos(w, w->t->config, ids, &n, err));
    TRY(add_eos(w, json_object_get(w->t->config, "text_config"), ids, &n, err));
    TRY(add_eos(w, a->generation, ids, &n, err));
    for (const char *p = eot_names; *p && eot < 0;) {
        size_t len = strcspn(p, " ");
        for (size_t i = 0; i < n && eot < 0; i++)
            if (ids[i] != eos && ids[i] == hn_hf_words_find(w, p, len)) eot = ids[i];
        p += len + (p[len] == ' ');
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == eos || ids[i] == eot) continue;
        if (eot < 0) eot = ids[i];
        else if (eom < 0) eom = ids[i];
    }
    if (eot < 0) eot = by_name(w, eot_names);
    if (eom < 0) eom = by_name(w, "<|eom_id|>");
    TRY(put_id(out, "eot", eot, err));
    TRY(put_id(out, "eom", eom, err));
    for (size_t i = 0; i < sizeof fim / sizeof *fim; i++) TRY(put_id(out, fim[i].key, by_name(w, fim[i].names), err));
    return n > 1 ? hn_gguf_put_array(out, "tokenizer.ggml.eos_token_ids", HONE_KV_I32, ids, n, err) : HONE_OK;
}

/* What is never to be picked, as generation_config.json lists it. */
static hone_status put_suppressed(hn_gguf_writer *out, const hn_hf_words *w, const about *a, hone_error *err)
{
    const json_t *list = json_object_get(a->generation, "suppress_tokens");
    size_t many = json_is_array(list) ? json_array_size(list) : 0, n = 0;
    int32_t *ids = many ? hn_arena_alloc(w->arena, many * sizeof *ids) : NULL;
    if (!many) return HONE_OK;
    if (!ids) return HN_FAIL(err, HONE_E_NOMEM, "%s: suppress_tokens", w->t->folder);
    for (size_t i = 0; i < many; i++) {
        const json_t *x = json_array_get(list, i);
        json_int_t id = json_integer_value(x);
        if (!json_is_integer(x))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: suppress_tokens has %s, expected whole numbers", w->t->folder,
                           hn_json_kind(x));
        if (id >= 0 && id < (json_int_t)w->n) ids[n++] = (int32_t)id;
        else
            hn_hf_words_note(w, "%s: suppress_tokens %lld is no token of %llu", w->t->folder, (long long)id,
                             (unsigned long long)w->n);
    }
    return n ? hn_gguf_put_array(out, "tokenizer.ggml.suppress_tokens", HONE_KV_I32, ids, n, err) : HONE_OK;
}

/* ---- templates ------------------------------------------------------------------------------- */

enum { MAX_TEMPLATES = 32 };
typedef struct templates {
    hone_str text[MAX_TEMPLATES], name[MAX_TEMPLATES]; /* name "": the usual one */
    size_t n;
} templates;

/* Later ones of a name count. */
static hone_status keep(templates *t, hn_hf_words *w, const char *name, const char *s, size_t n, hone_error *err)
{
    char *id = hn_arena_strndup(w->arena, name, strlen(name)), *text = hn_arena_strndup(w->arena, s, n);
    if (!id || !text) return HN_FAIL(err, HONE_E_NOMEM, "%s: chat template", w->t->folder);
    for (char *c = id; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))) *c = '_';
    if (!strcmp(id, "default")) *id = 0;
    size_t k = 0;
    while (k < t->n && strcmp(t->name[k].ptr, id)) k++;
    if (k == MAX_TEMPLATES)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d chat templates", w->t->folder, MAX_TEMPLATES);
    if (k == t->n) t->n++;
    t->name[k] = (hone_str){ id, strlen(id) };
    t->text[k] = (hone_str){ text, n };
    return HONE_OK;
}

static hone_status keep_value(templates *t, hn_hf_words *w, const json_t *v, hone_error *err)
{
    hone_status st;
    if (json_is_string(v)) return keep(t, w, "", json_string_value(v), json_string_length(v), err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *o = json_array_get(v, i), *s = json_object_get(o, "template");
        if (!json_is_string(s) || !*hn_json_text_of(o, "name"))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: chat_template[%zu], expected an object with \"name\" and \"template\"", w->t->folder,
                           i);
        TRY(keep(t, w, hn_json_text_of(o, "name"), json_string_value(s), json_string_length(s), err));
    }
    return HONE_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names of the templates in a folder, sorted; one that is absent has none. */
static hone_status list_folder(char *names[MAX_TEMPLATES], size_t *n, const char *path, hn_hf_words *w, hone_error *err)
{
    DIR *d = opendir(path);
    int unread = d || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    hone_status st = HONE_OK;
    *n = 0;
    for (struct dirent *e; d && st == HONE_OK && (errno = 0, e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len <= 6 || strcmp(e->d_name + len - 6, ".jinja")) continue;
        if (*n == MAX_TEMPLATES)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d chat templates", path, MAX_TEMPLATES);
        else if (!(names[*n] = hn_arena_strndup(w->arena, e->d_name, len)))
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: chat templates", path);
        else ++*n;
    }
    if (d) {
        unread = st == HONE_OK ? errno : 0; /* the end of a folder leaves it 0 */
        closedir(d);
    }
    if (unread) return HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", path, strerror(unread));
    if (*n) qsort(names, *n, sizeof *names, by_text);
    return st;
}

static hone_status keep_folder(templates *t, hn_hf_words *w, hone_error *err)
{
    static const char sub[] = "additional_chat_templates";
    char *names[MAX_TEMPLATES], path[4352];
    size_t n, len;
    snprintf(path, sizeof path, "%s/%s", w->t->folder, sub);
    hone_status st = list_folder(names, &n, path, w, err);
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        char *text;
        snprintf(path, sizeof path, "%s/%s", sub, names[i]);
        st = hn_hf_words_file(&text, &len, w, path, err);
        names[i][strlen(names[i]) - 6] = 0;
        if (st == HONE_OK && text) st = keep(t, w, names[i], text, len, err);
    }
    return st;
}

static hone_status put_templates(hn_gguf_writer *out, hn_hf_words *w, const about *a, hone_error *err)
{
    templates *t = calloc(1, sizeof *t);
    json_t *alone = NULL;
    hone_str names[MAX_TEMPLATES];
    size_t n = 0, len;
    char *text;
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: chat templates", w->t->folder);
    hone_status st = hn_hf_words_tree(&alone, w, "chat_template.json", err);
    if (st == HONE_OK && alone) st = keep_value(t, w, json_object_get(alone, "chat_template"), err);
    json_decref(alone);
    if (st == HONE_OK) st = keep_value(t, w, json_object_get(a->config, "chat_template"), err);
    if (st == HONE_OK) st = keep_folder(t, w, err);
    if (st == HONE_OK) st = hn_hf_words_file(&text, &len, w, "chat_template.jinja", err);
    if (st == HONE_OK && text) st = keep(t, w, "", text, len, err);
    for (size_t i = 0; i < t->n && st == HONE_OK; i++) {
        char key[200];
        bool usual = !t->name[i].len;
        if (!usual) names[n++] = t->name[i];
        snprintf(key, sizeof key, "tokenizer.chat_template%s%.128s", usual ? "" : ".", t->name[i].ptr);
        st = hn_gguf_put_str(out, key, t->text[i].ptr, t->text[i].len, err);
    }
    if (st == HONE_OK && n) st = hn_gguf_put_str_array(out, "tokenizer.chat_templates", names, n, err);
    free(t);
    return st;
}

/* ---- tokenizer.* ----------------------------------------------------------------------------- */

static hone_status put_flag(hn_gguf_writer *out, const char *name, bool v, hone_error *err)
{
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    return hn_gguf_put_bool(out, key, v, err);
}

static hone_status put_words(hn_gguf_writer *out, const hn_hf_words *w, hone_error *err)
{
    static const char *const models[] = { "gpt2", "gpt2", "llama", "t5", "bert" };
    const char *model = w->form == HN_HF_RAW && !strcmp(w->pre, "gemma4") ? "gemma4" : models[w->form];
    const char *pre = w->pre ? w->pre : "default";
    hone_status st;
    TRY(hn_gguf_put_str(out, "tokenizer.ggml.model", model, strlen(model), err));
    TRY(hn_gguf_put_str(out, "tokenizer.ggml.pre", pre, strlen(pre), err));
    TRY(hn_gguf_put_str_array(out, "tokenizer.ggml.tokens", w->tok, w->n, err));
    if (w->form == HN_HF_SPM || w->form == HN_HF_UNIGRAM)
        TRY(hn_gguf_put_array(out, "tokenizer.ggml.scores", HONE_KV_F32, w->score, w->n, err));
    TRY(hn_gguf_put_array(out, "tokenizer.ggml.token_type", HONE_KV_I32, w->type, w->n, err));
    if (w->form == HN_HF_BPE || w->form == HN_HF_RAW)
        TRY(hn_gguf_put_str_array(out, "tokenizer.ggml.merges", w->merge, w->n_merge, err));
    if (w->form == HN_HF_SPM || w->form == HN_HF_UNIGRAM) TRY(put_flag(out, "add_space_prefix", w->space_prefix, err));
    if (w->form == HN_HF_UNIGRAM) {
        TRY(put_flag(out, "remove_extra_whitespaces", w->merge_spaces, err));
        if (w->n_charsmap)
            TRY(hn_gguf_put_array(out, "tokenizer.ggml.precompiled_charsmap", HONE_KV_U8, w->charsmap, w->n_charsmap,
                                  err));
    }
    if (w->form == HN_HF_PIECES) {
        TRY(put_flag(out, "normalizer.lowercase", w->lowercase != 0, err));
        TRY(put_flag(out, "normalizer.strip_accents", w->strip_accents < 0 ? w->lowercase : w->strip_accents, err));
    }
    return HONE_OK;
}

static bool added_flag(const json_t *config, const char *key, int said)
{
    const json_t *v = json_object_get(config, key);
    return json_is_boolean(v) ? json_is_true(v) : said > 0;
}

hone_status hn_hf_tokenizer_types(hn_gguf_writer *out, const json_t *config, hone_error *err)
{
    const json_t *n = json_object_get(config, "type_vocab_size");
    if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) >= 65536) return HONE_OK;
    return hn_gguf_put_u32(out, "tokenizer.ggml.token_type_count", (uint32_t)json_integer_value(n), err);
}

/* What is put around a text is what the tokenizer's template names, which need not be the tokens that the config calls
 * bos and eos: Qwen3-Embedding ends texts with <|endoftext|>, and its eos_token is <|im_end|>. GGUF has one key.
 * Returns what was eos before, −1: it stays. */
static int32_t take_template(const hn_hf_words *w, int32_t id[N_SPECIAL], bool bos, bool eos)
{
    int32_t before = id[EOS];
    if (bos && w->first >= 0) id[BOS] = w->first;
    if (!eos || w->last < 0 || w->last == before) return -1;
    id[EOS] = w->last;
    hn_hf_words_note(w, "%s: texts end with token %d, as the tokenizer's template has it, not with eos_token, %d",
                     w->t->folder, w->last, before);
    return before;
}

static hone_status put_all(hn_gguf_writer *out, hn_hf_words *w, const about *a, hone_error *err)
{
    int32_t id[N_SPECIAL];
    bool pieces = w->form == HN_HF_PIECES, bos = added_flag(a->config, "add_bos_token", w->add_bos),
         eos = added_flag(a->config, "add_eos_token", w->add_eos);
    hone_status st;
    const json_t *prefix = json_object_get(a->config, "add_prefix_space");
    if (w->form == HN_HF_SPM && json_is_boolean(prefix)) w->space_prefix = json_is_true(prefix);
    find_specials(w, a, id);
    int32_t also = take_template(w, id, !pieces && bos, !pieces && eos);
    for (int i = 0; i < N_SPECIAL; i++) TRY(put_id(out, specials[i].key, id[i], err));
    TRY(put_ends(out, w, a, id[EOS], also, err));
    TRY(put_suppressed(out, w, a, err));
    if (pieces) TRY(mark_pieces(w, err));
    if (w->form == HN_HF_SPM || w->form == HN_HF_RAW) TRY(hn_hf_words_unmark(w, err));
    TRY(put_words(out, w, err));
    TRY(hn_hf_tokenizer_types(out, w->t->config, err));
    if (!pieces) {
        TRY(put_flag(out, "add_bos_token", bos, err));
        TRY(put_flag(out, "add_eos_token", eos, err));
        if (w->add_sep >= 0 && w->add_sep != (w->form == HN_HF_UNIGRAM)) /* unlike what is taken for granted */
            TRY(put_flag(out, "add_sep_token", w->add_sep, err));
    }
    return put_templates(out, w, a, err);
}

static hone_status read_about(about *a, hn_hf_words *w, hone_error *err)
{
    hone_status st;
    const char *path = w->path;
    TRY(hn_hf_words_tree(&a->config, w, "tokenizer_config.json", err));
    TRY(hn_hf_words_tree(&a->map, w, "special_tokens_map.json", err));
    TRY(hn_hf_words_tree(&a->added, w, "added_tokens.json", err));
    TRY(hn_hf_words_tree(&a->generation, w, "generation_config.json", err));
    w->path = path;
    return HONE_OK;
}

hone_status hn_hf_tokenizer_there(bool *there, const char *folder, hone_error *err)
{
    static const char *const names[] = { "tokenizer.json",          "tokenizer.model", "spiece.model",
                                         "sentencepiece.bpe.model", "vocab.json",      "tekken.json" };
    DIR *d = opendir(folder);
    *there = false;
    int unread = d ? 0 : errno;
    for (struct dirent *e; d && !*there && (errno = 0, e = readdir(d));) {
        size_t n = strlen(e->d_name);
        *there = (n > 9 && !strcmp(e->d_name + n - 9, ".tiktoken")) || !strcmp(e->d_name, "tiktoken.model");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) *there |= !strcmp(e->d_name, names[i]);
    }
    if (d) {
        unread = *there ? 0 : errno; /* the end of a folder leaves it 0 */
        closedir(d);
    }
    return unread ? HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", folder, strerror(unread)) : HONE_OK;
}

hone_status hn_hf_tokenizer_put(hn_gguf_writer *out, const hn_hf_tokenizer *t, hone_error *err)
{
    hn_hf_words w;
    about a = { 0 };
    hone_status st = hn_hf_words_begin(&w, t, err);
    if (st == HONE_OK) st = read_about(&a, &w, err);
    if (st == HONE_OK) st = read_words(&w, err);
    if (st == HONE_OK) st = add_tokens(&w, &a, err);
    if (st == HONE_OK) st = choose_pre(&w, &a, err);
    if (st == HONE_OK) st = pad(&w, err);
    if (st == HONE_OK) st = put_all(out, &w, &a, err);
    json_decref(a.config);
    json_decref(a.map);
    json_decref(a.added);
    json_decref(a.generation);
    hn_hf_words_free(&w);
    return st;
}
