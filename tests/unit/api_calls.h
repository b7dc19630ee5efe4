/* One call of every function of include/hone.h, its arguments named as there and open to be spoilt (api_walk.h), and
 * what the calls work on. Knows what each function returns and leaves when it fails; not which faults are tried. */
#ifndef HN_API_CALLS_H
#define HN_API_CALLS_H

#include "api_walk.h"
#include "train_model.h"

/* ---- what the calls work on ---------------------------------- */

static hone_file *file;
static hone_session *session;
static hone_adapter *adapter;
static hone_trainer *trainer;
static hone_stream *stream;
static hone_chat_format *format;
static hone_reply *reply;
static hone_sampler *sampler;
static hone_scheduler *scheduler; /* with no requests between the calls */
static hone_grammar *grammar;
static hone_matcher *matcher;
static int32_t letter; /* a token with text */
static hone_snapshot *snapshot;
static char model_path[160], packed_path[160], adapter_path[160], state_path[160], folder[160], config_path[160],
    shape_path[160];
static char llama2c_path[160], out_path[160], out_folder[160], txt_path[160];
/* A template with a switch for reasoning. */
#define THINKS "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<think>' if enable_thinking }}"
static const char messages[] = "[{\"role\": \"user\", \"content\": \"a\"}]";

static void must(hone_status st, const hone_error *e)
{
    if (st != HONE_OK) fail_msg("%s", e->message);
}

static hone_chat_format *new_format(void)
{
    hone_chat_format *f;
    hone_error e;
    must(hone_chat_format_new(&f, model, &(hone_chat_params){ .chat_template = THINKS }, &e), &e);
    return f;
}

static void name_path(char dst[160], const char *name) { snprintf(dst, 160, "%s", tm_path(name)); }

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

/* The least checkpoint of llama2.c: dim 32, hidden 32, 1 layer, 2 heads, 8 tokens, tied. */
static void write_llama2c(void)
{
    enum { N = 8 * 32 + 32 + 4 * 32 * 32 + 32 + 3 * 32 * 32 + 32 + 16 * 16 };
    static struct {
        int32_t head[7];
        float w[N];
    } c = { .head = { 32, 32, 1, 2, 2, 8, 16 } };
    write_file(llama2c_path, &c, sizeof c);
}

static hone_train_params train_params(void)
{
    hone_train_params p = tr_params(data);
    p.steps = 1000000;
    p.patience = 0;
    p.eval_every = 1000;
    return p;
}

static void prefill(int n)
{
    const int32_t ids[] = { 5, 6, 7 };
    const float *logits;
    assert_int_equal(hone_seq_truncate(session, 0, 0, NULL), HONE_OK);
    assert_int_equal(hone_seq_truncate(session, 1, 0, NULL), HONE_OK);
    if (n) assert_int_equal(hone_prefill(session, ids, n, &logits, NULL), HONE_OK);
}

static int begin(void **state)
{
    static const char shape[] = "{\"arch\": \"llama\", \"n_layer\": 1, \"n_embd\": 32, \"n_head\": 2, \"n_ff\": 32}";
    static const char config[] = "{\"arch\": \"llama\", \"n_layer\": 1, \"n_embd\": 32, \"n_head\": 2, \"n_ff\": 32,"
                                 " \"n_vocab\": 300}";
    hone_error e = { 0 };
    hone_train_step step;
    setenv("HONE_PACKED", "off", 1);
    unsetenv("HONE_THREADS");
    if (tr_begin(state, NULL, 1, 12)) return -1; /* one thread: a child of ours has the pool, too */
    name_path(model_path, "model.gguf");
    name_path(packed_path, "model.hpack");
    name_path(adapter_path, "adapter.gguf");
    name_path(state_path, "session.bin");
    name_path(folder, "checkpoints");
    name_path(config_path, "config.json");
    name_path(shape_path, "shape.json");
    name_path(llama2c_path, "llama2c.bin");
    name_path(out_path, "out.gguf");
    name_path(out_folder, "out");
    name_path(txt_path, "text.txt");
    write_file(config_path, config, sizeof config - 1);
    write_file(shape_path, shape, sizeof shape - 1);
    write_file(txt_path, "the sea is wide, the sea is deep", 32);
    write_llama2c();
    must(hone_file_open(&file, model_path, &e), &e);
    session = tm_session(ctx, model, 32, 2, 8, HONE_CACHE_F16);
    trainer = tr_new(ctx, model, train_params());
    must(hone_trainer_step(trainer, &step, &e), &e);
    must(hone_trainer_write(trainer, adapter_path, &e), &e);
    must(hone_trainer_save(trainer, folder, 0, &e), &e);
    must(hone_adapter_open(&adapter, model, adapter_path, &e), &e);
    must(hone_stream_new(&stream, model, NULL, 0, &e), &e);
    format = new_format();
    must(hone_reply_new(&reply, format, NULL, NULL, 0, &e), &e);
    hone_sampler_params sp;
    hone_sampler_defaults(&sp);
    sp.presence_penalty = 1;
    must(hone_sampler_new(&sampler, 4, &sp, &e), &e);
    must(hone_grammar_compile(&grammar, &(hone_grammar_params){ HONE_GRAMMAR_REGEX, "[^]*", 4, .strict = true }, &e),
         &e);
    must(hone_matcher_new(&matcher, grammar, model, &e), &e);
    const hone_scheduler_params few = { .session = { .n_ctx = 32, .n_seq = 2, .n_chunk = 8 } };
    must(hone_scheduler_new(&scheduler, ctx, model, &few, &e), &e);
    for (size_t len = 0; len == 0 && letter < 100; letter += len == 0)
        if (hone_token_is_eog(model, letter) || !hone_token_piece(model, letter, false, &len)) len = 0;
    must(hone_pack(model_path, &(hone_pack_params){ .file = packed_path, .n_threads = 1 }, NULL, NULL, &e), &e);
    prefill(2);
    must(hone_session_save(session, state_path, &e), &e);
    must(hone_seq_snapshot(session, 0, &snapshot, &e), &e);
    return 0;
}

static int end(void **state)
{
    hone_file_close(file);
    hone_session_free(session);
    hone_adapter_close(adapter);
    hone_trainer_free(trainer);
    hone_stream_free(stream);
    hone_reply_free(reply);
    hone_chat_format_free(format);
    hone_scheduler_free(scheduler);
    hone_sampler_free(sampler);
    hone_matcher_free(matcher);
    hone_grammar_free(grammar);
    hone_snapshot_free(snapshot);
    return tr_end(state);
}

/* ---- the calls: versions, contexts, files, models ---------------------------------- */

static bool all_zero(const void *p, size_t n)
{
    const unsigned char *b = p;
    while (n && !b[n - 1]) n--;
    return n == 0;
}
#define ZERO(x) all_zero(&(x), sizeof(x))

static void c_version(void) { NEUTRAL(!*hone_version()); }
static void c_build_info(void) { NEUTRAL(!*hone_build_info()); }
static void c_status_name(void) { NEUTRAL(!strcmp(hone_status_name(RANGE("s", HONE_E_IO)), "HONE_E_?")); }

static void c_context_new(void)
{
    hone_context *out = (hone_context *)1;
    hone_context_params p = { .n_threads = RANGE("params->n_threads", 1),
                              .cpu = MAY("params->cpu", "scalar"),
                              .n_threads_batch = RANGE("params->n_threads_batch", 1) };
    STATUS(hone_context_new(NEED("out", &out), MAY("params", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_context_free(out);
}
static void c_context_free(void)
{
    hone_context *x;
    assert_int_equal(hone_context_new(&x, &(hone_context_params){ .n_threads = 1 }, NULL), HONE_OK);
    hone_context_free(MAY("ctx", x));
    NEUTRAL(false);
    if (aw_is("ctx")) hone_context_free(x);
}
static void c_context_cpu(void) { NEUTRAL(!*hone_context_cpu(NEED("ctx", ctx))); }
static void c_context_threads(void) { NEUTRAL(!hone_context_threads(NEED("ctx", ctx))); }
static void c_context_threads_batch(void) { NEUTRAL(!hone_context_threads_batch(NEED("ctx", ctx))); }

static void c_file_open(void)
{
    hone_file *out = (hone_file *)1;
    STATUS(hone_file_open(NEED("out", &out), NEED("path", model_path), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_file_close(out);
}
static void c_file_close(void)
{
    hone_file *f;
    assert_int_equal(hone_file_open(&f, model_path, NULL), HONE_OK);
    hone_file_close(MAY("f", f));
    NEUTRAL(false);
    if (aw_is("f")) hone_file_close(f);
}
static void c_file_version(void) { NEUTRAL(!hone_file_version(NEED("f", file))); }
static void c_file_size(void) { NEUTRAL(!hone_file_size(NEED("f", file))); }
static void c_file_n_parts(void) { NEUTRAL(!hone_file_n_parts(NEED("f", file))); }
static void c_file_n_kv(void) { NEUTRAL(!hone_file_n_kv(NEED("f", file))); }
static void c_file_n_tensors(void) { NEUTRAL(!hone_file_n_tensors(NEED("f", file))); }
static void c_file_kv(void)
{
    hone_kv out;
    memset(&out, 1, sizeof out);
    hone_file_kv(NEED("f", file), RANGE("i", (uint64_t)0), NEED("out", &out));
    NEUTRAL(aw_is("out") || out.count == 0);
    EMPTY("out", out.key.len == 0 && !*out.key.ptr && out.type == 0 && out.v.u == 0);
}
static void c_file_kv_elem(void)
{
    hone_kv out;
    uint64_t tokens = 0;
    for (hone_kv kv = { 0 }; kv.type != HONE_KV_ARRAY; tokens++) hone_file_kv(file, tokens, &kv);
    memset(&out, 1, sizeof out);
    bool ok = hone_file_kv_elem(NEED("f", file), RANGE("kv", tokens - 1), RANGE("i", (uint64_t)1), NEED("out", &out));
    NEUTRAL(!ok);
    EMPTY("out", out.key.len == 0 && !*out.key.ptr && out.type == 0 && out.count == 0);
}
static void c_file_tensor(void)
{
    hone_tensor_info out;
    memset(&out, 1, sizeof out);
    hone_file_tensor(NEED("f", file), RANGE("i", (uint64_t)0), NEED("out", &out));
    NEUTRAL(aw_is("out") || out.n_bytes == 0);
    EMPTY("out", out.name.len == 0 && !*out.name.ptr && !*out.type_name && out.n_dim == 0);
}
static void c_file_find_tensor(void)
{
    NEUTRAL(hone_file_find_tensor(NEED("f", file), NEED("name", "token_embd.weight")) == -1);
}
static void c_file_read_f32(void)
{
    float x;
    STATUS(hone_file_read_f32(NEED("f", file), RANGE("i", (uint64_t)0), RANGE("first", (uint64_t)0),
                              RANGE("n", (uint64_t)1), NEED("dst", &x), aw->err));
}
static hone_progress progress(void); /* below */
static void c_file_check(void) { STATUS(hone_file_check(NEED("f", file), aw->err)); }
static void c_file_identity(void)
{
    hone_progress pr = progress();
    char hex[65] = "x";
    STATUS(hone_file_identity(NEED("f", file), false, NEED("hex", hex), MAY("pr", &pr), aw->err));
    EMPTY("hex", !hex[0]);
}
static void c_mapped_file_at(void)
{
    const char *path = "x";
    uint64_t offset = 1, size = 1;
    hone_kv kv;
    hone_file_kv(file, 0, &kv); /* its key lies in the mapping */
    NEUTRAL(
        !hone_mapped_file_at(NEED("addr", kv.key.ptr), MAY("path", &path), MAY("offset", &offset), MAY("size", &size)));
}
static void c_type_block(void)
{
    uint32_t elems = 1, bytes = 1;
    const char *name = "x";
    NEUTRAL(
        !hone_type_block(RANGE("type", (uint32_t)0), MAY("elems", &elems), MAY("bytes", &bytes), MAY("name", &name)));
    EMPTY("elems", elems == 0 && bytes == 0 && !name);
}

static void c_model_open(void)
{
    hone_model *out = (hone_model *)1;
    hone_progress pr = { 0 };
    hone_model_params p = { .tokenizer_pre = MAY("params->tokenizer_pre", "gpt-2"),
                            .packed = MAY("params->packed", "off"),
                            .progress = MAY("params->progress", &pr),
                            .ignore_keys = MAY("params->ignore_keys", "llama.nothing"),
                            .n_answers = ANY("params->n_answers", 4) };
    STATUS(hone_model_open(NEED("out", &out), NEED("path", model_path), MAY("params", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_model_close(out);
}
static void c_model_close(void)
{
    hone_model *m;
    assert_int_equal(hone_model_open(&m, model_path, NULL, NULL), HONE_OK);
    hone_model_close(MAY("m", m));
    NEUTRAL(false);
    if (aw_is("m")) hone_model_close(m);
}
static void c_model_get_info(void)
{
    hone_model_info out;
    memset(&out, 1, sizeof out);
    hone_model_get_info(NEED("m", model), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.arch);
    EMPTY("out", ZERO(out));
}

static void c_model_identity(void)
{
    hone_progress pr = progress();
    char hex[65] = "x";
    STATUS(hone_model_identity(NEED("m", model), NEED("hex", hex), MAY("pr", &pr), aw->err));
    EMPTY("hex", !hex[0]);
}

#include "api_calls_text.h"
#include "api_calls_reply.h"
#include "api_calls_session.h"
#include "api_calls_keep.h"

/* ---- sampling ---------------------------------- */

static void c_sampler_defaults(void)
{
    hone_sampler_params p;
    hone_sampler_defaults(NEED("p", &p));
    NEUTRAL(aw_is("p"));
}
static void c_sampler_new(void)
{
    hone_sampler *out = (hone_sampler *)1;
    hone_sampler_params p = { .temp = RANGE("p->temp", 1.0f),
                              .top_k = LOW("p->top_k", 4),
                              .top_p = RANGE("p->top_p", 0.9f),
                              .min_p = RANGE("p->min_p", 0.1f),
                              .repeat_penalty = RANGE("p->repeat_penalty", 1.1f),
                              .presence_penalty = RANGE("p->presence_penalty", 0.0f),
                              .frequency_penalty = RANGE("p->frequency_penalty", 0.0f),
                              .penalty_last_n = ANY("p->penalty_last_n", 8),
                              .seed = ANY("p->seed", (uint64_t)1) };
    STATUS(hone_sampler_new(NEED("out", &out), RANGE("n_vocab", 4), MAY("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_sampler_free(out);
}
static void c_sampler_free(void)
{
    hone_sampler *s;
    assert_int_equal(hone_sampler_new(&s, 4, NULL, NULL), HONE_OK);
    hone_sampler_free(MAY("s", s));
    NEUTRAL(false);
    if (aw_is("s")) hone_sampler_free(s);
}
static void c_sampler_pick(void)
{
    const float logits[] = { 1, 2, RANGE("logits[2]", 3.0f), 0 };
    int32_t id = 77;
    /* -infinity alone is a logit like others */
    STATUS(hone_sampler_pick(NEED("s", sampler), NEED("logits", logits), ANY("seq", 0), ANY("pos", 0), NEED("id", &id),
                             aw->err));
    if (aw_is("logits[2]") && aw->k == 0) aw->failed = true, aw->st = HONE_E_NUMERIC, aw->left = NULL;
    else EMPTY("id", id == -1);
}
static void c_sampler_pick_from(void)
{
    const float logits[] = { 1, 2, 3, 0 };
    const uint64_t allowed[] = { 15 };
    hone_bias bias[] = { { RANGE("p->bias[0].id", 1), 1 } };
    hone_pick p = { MAY("p->allowed", allowed), NEED("p->bias", bias), TRUST("p->n_bias", 1), ANY("p->choice", 0),
                    ANY("p->pos", 0) };
    int32_t id = 77;
    STATUS(hone_sampler_pick_from(NEED("s", sampler), NEED("logits", logits), NEED("p", &p), NEED("id", &id), aw->err));
    EMPTY("id", id == -1);
}
static void c_sampler_suppress(void)
{
    STATUS(hone_sampler_suppress(NEED("s", sampler), NEED("model", model), aw->err));
}
static void c_sampler_accept(void)
{
    hone_sampler_accept(NEED("s", sampler), ANY("id", 2));
    NEUTRAL(aw_is("s"));
}
static void c_sampler_reset(void)
{
    hone_sampler_reset(NEED("s", sampler));
    NEUTRAL(aw_is("s"));
}

#include "api_calls_grammar.h"
#include "api_calls_scheduler.h"

/* ---- files that are made ---------------------------------- */

static void hear(void *arg, uint64_t done, uint64_t total) {}
static hone_progress progress(void)
{
    return (hone_progress){ .fn = MAY("pr->fn", hear),
                            .arg = MAY("pr->arg", ctx),
                            .abort_fn = MAY("pr->abort_fn", stop_never) };
}

static void c_pack(void)
{
    hone_packed_info out;
    hone_progress pr = progress();
    hone_pack_params p = { .file = MAY("p->file", packed_path), .n_threads = RANGE("p->n_threads", 1), .force = true };
    memset(&out, 1, sizeof out);
    STATUS(hone_pack(NEED("model", model_path), MAY("p", &p), MAY("out", &out), MAY("pr", &pr), aw->err));
    if (aw_is("model")) EMPTY("out", ZERO(out)); /* later failures leave what was found */
}
static void c_packed_find(void)
{
    hone_packed_info out;
    memset(&out, 1, sizeof out);
    STATUS(hone_packed_find(NEED("model", model_path), MAY("file", packed_path), NEED("out", &out), aw->err));
    EMPTY("out", ZERO(out));
}
static void c_packed_describe(void)
{
    hone_packed_info out;
    memset(&out, 1, sizeof out);
    STATUS(hone_packed_describe(NEED("file", packed_path), NEED("out", &out), aw->err));
    EMPTY("out", ZERO(out));
}
static void c_convert(void)
{
    hone_progress pr = progress();
    STATUS(hone_convert(NEED("src", llama2c_path), MAY("tokenizer", (const char *)NULL), MAY("type", "F32"),
                        NEED("dst", out_path), MAY("pr", &pr), aw->err));
}
static void hear_note(void *arg, const char *text) {}
static void c_convert_with(void)
{
    hone_progress pr = progress();
    hone_convert_params p = { .tokenizer = MAY("p->tokenizer", (const char *)NULL),
                              .type = MAY("p->type", "F32"),
                              .pre = MAY("p->pre", "default"),
                              .note = MAY("p->note", hear_note),
                              .note_arg = MAY("p->note_arg", (void *)NULL) };
    STATUS(hone_convert_with(NEED("src", llama2c_path), NEED("dst", out_path), MAY("p", &p), MAY("pr", &pr), aw->err));
}
static void hear_merge(void *arg, const hone_merge_tensor *t) {}
static void c_merge(void)
{
    hone_progress pr = progress();
    const char *list[] = { adapter_path, NEED("p->adapters[1]", adapter_path) };
    float scales[] = { 1, RANGE("p->scales[1]", 0.5f) };
    hone_merge_params p = { .base = NEED("p->base", model_path),
                            .adapters = NEED("p->adapters", list),
                            .scales = MAY("p->scales", scales),
                            .n_adapters = COUNT("p->n_adapters", 2),
                            .type = MAY("p->type", "keep"),
                            .report = MAY("p->report", hear_merge),
                            .report_arg = MAY("p->report_arg", ctx) };
    STATUS(hone_merge(NEED("p", &p), NEED("dst", out_path), MAY("pr", &pr), aw->err));
}
static void c_synth_presets(void)
{
    const hone_synth_preset *list;
    NEUTRAL(!hone_synth_presets(MAY("out", &list)));
}
static void c_synth(void)
{
    hone_progress pr = progress();
    hone_synth_params p = { .preset = MAY("p->preset", (const char *)NULL),
                            .n_layer = RANGE("p->n_layer", 0),
                            .config_path = NEED("p->config_path", config_path),
                            .type = MAY("p->type", "F16"),
                            .seed = ANY("p->seed", (uint64_t)1),
                            .n_threads = RANGE("p->n_threads", 1) };
    STATUS(hone_synth(NEED("p", &p), NEED("dst", out_path), MAY("pr", &pr), aw->err));
}

#include "api_calls_train.h"

/* ---- all of them ---------------------------------- */

typedef struct entry {
    const char *name;
    void (*call)(void);
} entry;
#define E(name)                 \
    {                           \
        "hone_" #name, c_##name \
    }
static const entry table[] = {
    E(version),
    E(build_info),
    E(status_name),
    E(context_new),
    E(context_free),
    E(context_cpu),
    E(context_threads),
    E(context_threads_batch),
    E(file_open),
    E(file_close),
    E(file_version),
    E(file_size),
    E(file_n_parts),
    E(file_n_kv),
    E(file_kv),
    E(file_kv_elem),
    E(file_n_tensors),
    E(file_tensor),
    E(file_find_tensor),
    E(file_read_f32),
    E(file_check),
    E(file_identity),
    E(mapped_file_at),
    E(type_block),
    E(model_open),
    E(model_close),
    E(model_get_info),
    E(model_identity),
    E(tokenize),
    E(tokenize_spans),
    E(token_piece),
    E(detokenize),
    E(token_is_eog),
    E(token_kind),
    E(token_bos),
    E(token_eos),
    E(token_fim),
    E(free),
    E(stream_new),
    E(stream_free),
    E(stream_push),
    E(stream_flush),
    E(chat_format_new),
    E(chat_format_free),
    E(chat_format_json),
    E(chat_think),
    E(reply_new),
    E(reply_open),
    E(reply_mask),
    E(reply_mask_within),
    E(reply_stop),
    E(reply_settled),
    E(reply_notes),
    E(reply_free),
    E(reply_push),
    E(reply_flush),
    E(chat_render),
    E(chat_text_free),
    E(chat_tokenize),
    E(chat_mark),
    E(chat_template),
    E(template_render),
    E(session_new),
    E(session_free),
    E(decode),
    E(prefill),
    E(run_batch),
    E(append),
    E(seq_sync),
    E(seq_match),
    E(embed_width),
    E(embed),
    E(rank_tokenize),
    E(session_set_abort),
    E(session_set_profile),
    E(session_n_ctx),
    E(seq_length),
    E(seq_truncate),
    E(seq_copy),
    E(seq_checkpoint),
    E(seq_rewind),
    E(seq_keep),
    E(seq_set_scope),
    E(session_prefix_info),
    E(session_drop_prefixes),
    E(seq_set_adapters),
    E(seq_adapters_hash),
    E(seq_snapshot),
    E(seq_restore),
    E(snapshot_save),
    E(snapshot_load),
    E(snapshot_free),
    E(snapshot_length),
    E(snapshot_bytes),
    E(session_save),
    E(session_load),
    E(session_get_memory),
    E(model_sequence_cost),
    E(session_memory_use),
    E(adapter_open),
    E(adapter_close),
    E(adapter_get_info),
    E(adapter_convert),
    E(session_set_adapters),
    E(session_adapters_hash),
    E(sampler_defaults),
    E(sampler_new),
    E(sampler_free),
    E(sampler_pick),
    E(sampler_pick_from),
    E(sampler_suppress),
    E(sampler_accept),
    E(grammar_compile),
    E(grammar_free),
    E(grammar_notes),
    E(matcher_new),
    E(matcher_clone),
    E(matcher_free),
    E(matcher_accept),
    E(matcher_accept_text),
    E(matcher_can_end),
    E(matcher_rollback),
    E(matcher_mask),
    E(matcher_mask_within),
    E(sampler_reset),
    E(logprobs),
    E(scheduler_new),
    E(scheduler_beside),
    E(scheduler_free),
    E(scheduler_submit),
    E(scheduler_cancel),
    E(scheduler_hold),
    E(scheduler_step),
    E(scheduler_get_stats),
    E(scheduler_slot),
    E(scheduler_snapshot),
    E(scheduler_erase),
    E(scheduler_restore),
    E(scheduler_n_ctx),
    E(pack),
    E(packed_find),
    E(packed_describe),
    E(convert),
    E(convert_with),
    E(merge),
    E(synth_presets),
    E(synth),
    E(train_defaults),
    E(init_model),
    E(trainer_new),
    E(trainer_free),
    E(trainer_get_info),
    E(trainer_get_status),
    E(trainer_settings),
    E(trainer_step),
    E(trainer_validate),
    E(trainer_save),
    E(trainer_load),
    E(trainer_resume),
    E(train_checkpoints),
    E(trainer_write),
    E(trainer_write_peft),
};
enum { N_ENTRY = sizeof table / sizeof *table };

#endif
