/* hf: a folder of transformers, from its config to the file. Owns the config (which text model it is of, which of its
 * members are known) and the order of the steps; refuses to know what members and tensors mean, which the classes'
 * rows say. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "forge/hf.h"

#include "forge/hf_tokenizer.h"

#include "gguf/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- words -------------------------------------------------------------------------------------------- */

bool hn_hf_is_word(const char *words, const char *w, size_t n)
{
    for (const char *p = words; p && *p;) {
        size_t k = strcspn(p, "| ");
        if (k == n && !memcmp(p, w, n)) return true;
        p += k;
        p += *p != 0;
    }
    return false;
}

/* ---- the config --------------------------------------------------------------------------------------- */

/* Members that change no answer: of training, of generation, of Python. */
static const char idle[] =
    "architectures model_type auto_map transformers_version transformers.js_config torch_dtype dtype _name_or_path "
    "name_or_path model_name internal_version use_cache output_past bos_token_id eos_token_id pad_token_id "
    "sep_token_id unk_token_id decoder_start_token_id "
    "initializer_range init_std attention_dropout attention_dropout_prob attention_probs_dropout_prob hidden_dropout "
    "hidden_dropout_prob embedding_dropout resid_pdrop embd_pdrop attn_pdrop residual_dropout dropout "
    "classifier_dropout output_attentions output_hidden_states output_scores return_dict return_dict_in_generate "
    "gradient_checkpointing tie_encoder_decoder is_encoder_decoder is_decoder add_cross_attention "
    "cross_attention_hidden_size chunk_size_feed_forward problem_type id2label label2id tokenizer_class prefix "
    "pruned_heads finetuning_task task_specific_params torchscript tf_legacy_loss use_bfloat16 pretraining_tp "
    "attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal "
    "_flash_attn_2_enabled use_flash_attn _experts_implementation experts_implementation cache_implementation "
    "unsloth_version unsloth_fixed unsloth_processed quantization_config_ signature_columns max_length min_length "
    "sentence_transformers sbert_ce_default_activation_function " /* of scores, which come as they are */
    "do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p "
    "repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
    "num_return_sequences forced_bos_token_id forced_eos_token_id remove_invalid_values "
    "exponential_decay_length_penalty suppress_tokens begin_suppress_tokens";

bool hn_hf_idle(const char *member) { return hn_hf_is_word(idle, member, strlen(member)); }

/* Members of a value that are not there are not of the text: a folder of several kinds of input. */
static const json_t *text_of(const json_t *root)
{
    const json_t *t = json_object_get(root, "text_config");
    if (!json_is_object(t)) t = json_object_get(root, "llm_config");
    return json_is_object(t) ? t : root;
}

/* The place of a member in its object; −1: it is not there. */
static int64_t place_of(const json_t *o, const char *key)
{
    const char *k;
    json_t *v;
    int64_t i = 0;
    json_object_foreach((json_t *)(uintptr_t)o, k, v)
    {
        if (!strcmp(k, key)) return i;
        i++;
    }
    return -1;
}

const json_t *hn_hf_get(hn_hf *f, const char *names)
{
    const json_t *found = NULL;
    for (const char *p = names; *p;) {
        char key[96];
        size_t n = strcspn(p, "|");
        snprintf(key, sizeof key, "%.*s", (int)n, p);
        int64_t at = place_of(f->config, key);
        if (at >= 0) f->read[at] = 1;
        const json_t *v = json_object_get(f->config, key);
        if (!found && v && !json_is_null(v)) found = v;
        p += n;
        p += *p != 0;
    }
    return found;
}

hone_status hn_hf_set(hn_hf *f, const char *name, json_t *v, hone_error *err)
{
    json_t *config = (json_t *)(uintptr_t)f->config;
    size_t n = json_object_size(config);
    if (json_object_set_new(config, name, v) == 0) {
        uint8_t *read = realloc(f->read, n + 2); /* the new member may be one more */
        if (read) {
            read[n + 1] = 0;
            f->read = read;
            return HONE_OK;
        }
    }
    return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", f->path, name);
}

/* A value in words fit for a message. */
static const char *shown(char dst[160], const json_t *v)
{
    char *s = v ? hn_json_dump(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    hn_escape(dst, 160, s ? s : "nothing", s ? strlen(s) : 7);
    free(s);
    return dst;
}

hone_status hn_hf_refuse(const hn_hf *f, const char *name, const json_t *v, const char *expected, hone_error *err)
{
    char value[160];
    size_t n = strcspn(name, "|");
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %s, expected %s: hone has no such formula for %s", f->path,
                   HN_ESC(name, n), shown(value, v), expected, f->of->arch);
}

hone_status hn_hf_number(hn_hf *f, const char *names, double absent, double *out, bool *was, hone_error *err)
{
    char value[160];
    const json_t *v = hn_hf_get(f, names);
    *out = absent;
    if (was) *was = v != NULL;
    if (!v) return HONE_OK;
    *out = json_number_value(v);
    if (json_is_number(v) && isfinite(*out)) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %.*s = %s, expected a number", f->path, (int)strcspn(names, "|"), names,
                   shown(value, v));
}

hone_status hn_hf_whole(hn_hf *f, const char *names, int64_t absent, int64_t *out, hone_error *err)
{
    double x;
    bool was;
    hone_status st;
    TRY(hn_hf_number(f, names, 0, &x, &was, err));
    *out = was ? (int64_t)(x >= 0 && x < 2147483648.0 ? x : -1) : absent;
    if (!was || (double)*out == x) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %.*s = %g, expected a whole number from 0 to 2147483647", f->path,
                   (int)strcspn(names, "|"), names, x);
}

hone_status hn_hf_truth(hn_hf *f, const char *names, bool absent, bool *out, hone_error *err)
{
    char value[160];
    const json_t *v = hn_hf_get(f, names);
    double x = json_is_boolean(v) ? json_is_true(v) : json_is_number(v) ? json_number_value(v) : -1;
    *out = v ? x == 1 : absent;
    if (!v || x == 0 || x == 1) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %.*s = %s, expected true or false", f->path, (int)strcspn(names, "|"),
                   names, shown(value, v));
}

bool hn_hf_ignored(const char *key)
{
    const char *p = getenv("HONE_IGNORE_KEYS");
    for (; p && *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n == strlen(key) && !memcmp(p, key, n)) return true;
        p += n;
    }
    return false;
}

/* Members that nobody looked at may ask for another formula. */
static hone_status check_members(const hn_hf *f, hone_error *err)
{
    char value[160];
    const char *k;
    json_t *v;
    size_t i = 0;
    json_object_foreach((json_t *)(uintptr_t)f->config, k, v)
    {
        if (f->read[i++] || json_is_null(v) || hn_hf_is_word(idle, k, strlen(k)) || hn_hf_ignored(k)) continue;
        if (f->of->idle && hn_hf_is_word(f->of->idle, k, strlen(k))) continue;
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: \"%s\": %s is unknown for a model of class %.*s: it may ask for another formula; to convert "
            "without it: HONE_IGNORE_KEYS=%s",
            f->path, HN_ESC(k, strlen(k)), shown(value, v), (int)strcspn(f->of->names, "|"), f->of->names,
            HN_ESC(k, strlen(k)));
    }
    return HONE_OK;
}

/* ---- classes ------------------------------------------------------------------------------------------ */

static const hn_hf_class *const *const lists[] = { hn_hf_dense, hn_hf_moe,     hn_hf_hybrid, hn_hf_latent, hn_hf_delta,
                                                   hn_hf_gemma, hn_hf_encoder, hn_hf_window, hn_hf_other };

bool hn_hf_never(const hn_gguf *g) { return false; }

const hn_hf_class *hn_hf_class_of(const char *arch, size_t k)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const hn_hf_class *const *c = lists[i]; *c; c++)
            if (!strcmp((*c)->arch, arch) && k-- == 0) return *c;
    return NULL;
}

const hn_hf_class *hn_hf_class_find(const char *name, const char *type)
{
    for (size_t by_type = 0; by_type < 2; by_type++)
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            for (const hn_hf_class *const *c = lists[i]; *c; c++) {
                const char *words = by_type ? (*c)->types : (*c)->names, *w = by_type ? type : name;
                if (w && words && hn_hf_is_word(words, w, strlen(w))) return *c;
            }
    return NULL;
}

static const char *first_architecture(const json_t *config)
{
    return json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
}

static hone_status find_class(hn_hf *f, hone_error *err)
{
    const char *outer = first_architecture(f->root), *name = first_architecture(f->config);
    const char *type = json_string_value(json_object_get(f->config, "model_type"));
    f->of = hn_hf_class_find(name, type);
    if (!f->of && f->config != f->root) f->of = hn_hf_class_find(outer, NULL);
    if (f->of && f->of->which) f->of = f->of->which(f);
    if (f->of) return HONE_OK;
    const char *seen = name ? name : type ? type : outer;
    if (!seen)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: names no architecture of a Hugging Face checkpoint; expected architectures: "
                       "[\"LlamaForCausalLM\"] or another of docs/CONVERT.md",
                       f->path);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: a Hugging Face checkpoint of architecture \"%s\"%s%s%s, which hone does not convert; expected "
                   "LlamaForCausalLM or another of docs/CONVERT.md",
                   f->path, HN_ESC(seen, strlen(seen)), type && type != seen ? " (model_type \"" : "",
                   type && type != seen ? HN_ESC(type, strlen(type)) : "", type && type != seen ? "\")" : "");
}

/* Numbers and rotations of the class that the config leaves out, or has null. */
static hone_status put_usual(hn_hf *f, hone_error *err)
{
    for (const char *p = f->of->usual; p && *p; p += *p == '|') {
        char name[96];
        size_t n = strcspn(p, " ");
        char *end;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        long value = strtol(p + n, &end, 10);
        const json_t *v = json_object_get(f->config, name);
        if ((!v || json_is_null(v)) &&
            json_object_set_new((json_t *)(uintptr_t)f->config, name, json_integer(value)) != 0)
            return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", f->path, name);
        p = end;
    }
    bool turns = json_object_size(json_object_get(f->config, "rope_parameters")) ||
                 json_object_size(json_object_get(f->config, "rope_scaling"));
    if (f->of->rope && !turns) {
        json_t *rope;
        hone_status st = hn_json_tree(&rope, f->of->rope, strlen(f->of->rope), NULL, f->path, err);
        if (st != HONE_OK) return st;
        if (json_object_set_new((json_t *)(uintptr_t)f->config, "rope_parameters", rope) != 0)
            return HN_FAIL(err, HONE_E_NOMEM, "%s: rope_parameters", f->path);
    }
    free(f->read);
    f->read = calloc(json_object_size(f->config) + 1, 1);
    return f->read ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: its members", f->path);
}

static hone_status load_config(hn_hf *f, const char *path, hone_error *err)
{
    const hn_json_rules rules = { .max_bytes = HN_CONFIG_BYTES,
                                  .max_depth = 40,
                                  .flags = HN_JSON_UNIQUE | HN_JSON_PYTHON | HN_JSON_BIG };
    hone_status st;
    TRY(hn_json_tree_file(&f->root, path, &rules, err));
    if (!json_is_object(f->root))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: is %s, expected an object", path, hn_json_kind(f->root));
    f->path = path;
    f->config = text_of(f->root);
    f->read = calloc(json_object_size(f->config) + 1, 1);
    f->used = calloc(f->c->n + 1, sizeof *f->used);
    f->arena = hn_arena_new();
    return f->read && f->used && f->arena ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: its members", path);
}

/* What stands in the folder for "model." and "lm_head": the embedding's name tells. */
static hone_status find_prefix(hn_hf *f, hone_error *err)
{
    static const char *const roots[] = { "",
                                         "language_model.",
                                         "model.language_model.",
                                         "language_model.model.",
                                         "model.text_model.",
                                         "text_model.",
                                         "roberta." };
    const char *root = f->of->root ? f->of->root : "model.", *embd = "embed_tokens";
    for (const hn_hf_name *n = f->of->tensors; n && n->gguf; n++)
        if (!strcmp(n->gguf, "token_embd")) embd = n->hf;
    for (size_t i = 0; i <= sizeof roots / sizeof *roots; i++) {
        char name[160];
        snprintf(f->prefix, sizeof f->prefix, "%s", i ? roots[i - 1] : root);
        snprintf(name, sizeof name, "%s%s.weight", f->prefix, embd);
        if (!hn_ckpt_find(f->c, name, strlen(name))) continue;
        snprintf(f->head, sizeof f->head, "%s",
                 hn_ckpt_find(f->c, "language_model.lm_head.weight", 29) ? "language_model.lm_head" : "lm_head");
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_FORMAT, "%s: has no tensor %s%s.weight, which a model of class %.*s begins with",
                   f->c->path, root, embd, (int)strcspn(f->of->names, "|"), f->of->names);
}

/* ---- metadata ------------------------------------------------------------------------------------------ */

/* The model's own reader says what the keys mean, and what is wrong with them. */
static hone_status read_numbers(hn_hf *f, hone_error *err)
{
    hn_gguf *keys = NULL;
    int64_t n_vocab;
    size_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "vocab_size", 0, &n_vocab, err));
    TRY(hn_gguf_write_keys(f->w, &f->keys, &n, err));
    TRY(hn_gguf_parse(&keys, f->keys, n, f->path, err));
    TRY(hn_model_from_keys(&f->m, keys, (int32_t)n_vocab, err));
    if (f->of->tune) f->of->tune(f);
    return HONE_OK;
}

/* Where the config says what each layer sees, the plan must say the same. */
static hone_status check_layers(hn_hf *f, hone_error *err)
{
    const json_t *kinds = hn_hf_get(f, "layer_types"), *turns = hn_hf_get(f, "no_rope_layers");
    double limit = json_number_value(hn_hf_get(f, "sliding_window")); /* hone runs no more positions: all are seen */
    const bool scaled = hn_hf_is_word("gemma2|gemma3|gemma-embedding", f->of->arch, strlen(f->of->arch));
    const json_t *scalar = scaled ? hn_hf_get(f, "query_pre_attn_scalar") : NULL;
    double q = scaled && !scalar ? 256 : json_number_value(scalar); /* whatever the width of a head is */
    for (int32_t il = 0; il < f->m->hp.n_layer; il++) {
        const hn_layer_plan *p = &f->m->plan[il];
        const char *k = json_string_value(json_array_get(kinds, (size_t)il));
        const char *want = p->window ? "sliding_attention" : p->chunk ? "chunked_attention" : "full_attention";
        bool attends = hn_plan_has_positions(p);
        bool all = !p->window && !strcmp(k ? k : "", "sliding_attention") && limit >= f->m->hp.n_ctx_train;
        /* as transformers saves it; or full_attention */
        all |= f->m->hp.index.block && !strcmp(k ? k : "", "indexed_attention");
        if (k && attends && !all && strcmp(k, want) && strcmp(k, "attention"))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: layer_types[%d] = \"%s\", expected \"%s\" as %s has it",
                           f->path, (int)il, HN_ESC(k, strlen(k)), want, f->of->arch);
        if (q > 0 && fabs((double)p->scale * sqrt(q) - 1) > 1e-5)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: query_pre_attn_scalar = %g%s, expected %g as %s has it",
                           f->path, q, scalar ? "" : ", as it is not said", 1 / ((double)p->scale * (double)p->scale),
                           f->of->arch);
        const json_t *t = json_array_get(turns, (size_t)il);
        if (json_is_integer(t) && (json_integer_value(t) != 0) != (p->rope >= 0))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: no_rope_layers[%d] = %d, expected %d as %s has it", f->path,
                           (int)il, (int)json_integer_value(t), p->rope >= 0, f->of->arch);
    }
    return HONE_OK;
}

hone_status hn_hf_follow(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_put_general(f, err));
    TRY(hn_hf_put_keys(f, err));
    TRY(read_numbers(f, err));
    TRY(check_layers(f, err));
    TRY(hn_hf_plan(f, err));
    return check_members(f, err);
}

static hone_status put_metadata(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_follow(f, err));
    TRY(hn_hf_types(f, err));
    return hn_hf_put_file(f, err);
}

/* ---- the tokenizer --------------------------------------------------------------------------------------- */

/* Without any vocabulary the file runs on ids alone. */
static hone_status put_tokenizer(hn_hf *f, hone_error *err)
{
    const hn_convert *a = f->a;
    const hn_hf_tokenizer t = { .folder = a->tokenizer ? a->tokenizer : f->c->path,
                                .config = f->root,
                                .arch = f->of->arch,
                                .pre = a->pre,
                                .n_vocab = (uint64_t)f->m->hp.n_vocab,
                                .note = a->note,
                                .note_arg = a->note_arg };
    struct stat sb;
    bool has;
    hone_status st;
    if (a->tokenizer && (stat(a->tokenizer, &sb) != 0 || !S_ISDIR(sb.st_mode)))
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: the tokenizer of a folder of transformers, expected a folder with its files",
                       HN_ESC(a->tokenizer, strlen(a->tokenizer)));
    TRY(hn_hf_tokenizer_there(&has, t.folder, err));
    return has || a->tokenizer ? hn_hf_tokenizer_put(f->w, &t, err) : hn_hf_tokenizer_types(f->w, f->root, err);
}

void hn_hf_drop(hn_hf *f)
{
    hone_model_close(f->m);
    hn_gguf_writer_free(f->w);
    free(f->keys);
    free(f->t);
    free(f->v);
    free(f->read);
    free(f->used);
    free(f->stored);
    hn_arena_free(f->arena);
    json_decref(f->root);
}

hone_status hn_convert_hf(const hn_convert *a, hn_ckpt *c, hone_error *err)
{
    hn_hf f = { .a = a, .c = c, .exact = !a->type };
    hone_status st = load_config(&f, c->config.path, err);
    if (st == HONE_OK) st = find_class(&f, err);
    if (st == HONE_OK) st = put_usual(&f, err);
    if (st == HONE_OK) st = hn_hf_find_stored(&f, err);
    if (st == HONE_OK) st = find_prefix(&f, err);
    if (st == HONE_OK) st = hn_gguf_writer_new(&f.w, err);
    if (st == HONE_OK) st = put_metadata(&f, err);
    if (st == HONE_OK) st = put_tokenizer(&f, err);
    if (st == HONE_OK) st = hn_hf_write(&f, err);
    hn_hf_drop(&f);
    return st;
}
