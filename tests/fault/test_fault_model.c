/* Out of memory at every possible place of models, contexts, sessions and their files: the
 * k-th allocation fails, for k = 1, 2, … until the call succeeds. Each failure must be
 * HONE_E_NOMEM with a message, give *out NULL, leave no heap (AddressSanitizer's leak check
 * sees that in the asan flavour) and no anonymous mapping behind (counted here), and the
 * same call must succeed afterwards. */
#define _GNU_SOURCE
#include "../unit/tiny_model.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the allocator that fails (linked by --wrap; munmap and pthread_create by name) --------- */

#define HN_FAILING_ALONE
#include "failing.h"

/* A thread needs a stack. */
int pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails()) return EAGAIN;
    long keep = countdown;
    countdown = -1; /* what the system allocates for it is not ours */
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    int rc = real(id, a, fn, arg);
    countdown = keep;
    return rc;
}

/* ---- what is tried ------------------------------------------------------------------------------ */

static const tm_shape shape = TM("llama", 32, 4, 2, 8, 48, 300, 2, 1e4, 1e-5, .qkv_bias = true);
static const int32_t prompt[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3 };
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static char model_path[160], session_path[160];
static hone_model *model; /* opened while memory was plenty */
static hone_context *context;
static hone_session *session; /* holds the prompt */
static time_t n_touched = 1000000000;

/* 256 byte tokens, three control tokens, and a few words of an SPM vocabulary. */
static void add_tokenizer(tiny *m)
{
    enum { N = 300 };
    bb *b;
    tm_put_str(m, "tokenizer.ggml.model", "llama");
    b = tm_put(m, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, N);
    for (int i = 0; i < N; i++) {
        char s[16];
        if (i < 3) bb_str(b, i == 0 ? "<unk>" : i == 1 ? "<s>" : "</s>");
        else if (i < 259) snprintf(s, sizeof s, "<0x%02X>", i - 3), bb_str(b, s);
        else if (i < 285) bb_str(b, (char[]){ (char)('a' + i - 259), 0 });
        else if (i == 285) bb_str(b, "\xe2\x96\x81");
        else if (i == 286) bb_str(b, "ab");
        else if (i == 287)
            bb_str(b, "\xe2\x96\x81"
                      "ab");
        else snprintf(s, sizeof s, "w%d", i), bb_str(b, s);
    }
    b = tm_put(m, "tokenizer.ggml.scores", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_F32), bb_u64(b, N);
    for (int i = 0; i < N; i++) bb_u32(b, hn_f32_bits(i < 259 ? 0.0f : (float)(258 - i)));
    b = tm_put(m, "tokenizer.ggml.token_type", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_I32), bb_u64(b, N);
    for (int i = 0; i < N; i++) bb_u32(b, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1);
    tm_put_u32(m, "tokenizer.ggml.bos_token_id", 1);
    tm_put_u32(m, "tokenizer.ggml.eos_token_id", 2);
}

static hone_status open_model(hone_error *err)
{
    hone_model *m = (hone_model *)1;
    hone_status st = hone_model_open(&m, model_path, &(hone_model_params){ .tokenizer_pre = "default" }, err);
    if (st) {
        assert_null(m);
        return st;
    }
    hone_model_info in;
    hone_model_get_info(m, &in);
    assert_int_equal(in.n_vocab, 300);
    hone_model_close(m);
    return HONE_OK;
}

/* With a packed file that fits, that must be compared first, and that is written. */
static const char *packed_path(void) { return tm_path("fault.hpack"); }

static hone_status open_packed(hone_error *err)
{
    hone_model *m = (hone_model *)1;
    hone_status st = hone_model_open(&m, model_path, &(hone_model_params){ .packed = packed_path() }, err);
    if (st) {
        assert_null(m);
        return st;
    }
    hone_model_info in;
    hone_model_get_info(m, &in);
    assert_non_null(in.packed_path);
    hone_model_close(m);
    return HONE_OK;
}

static hone_status open_touched(hone_error *err)
{
    assert_int_equal(utimensat(AT_FDCWD, model_path, (struct timespec[2]){ { n_touched, 1 }, { n_touched, 1 } }, 0), 0);
    n_touched++;
    return open_packed(err);
}

static hone_status pack(hone_error *err)
{
    hone_packed_info in;
    hone_status st = hone_pack(model_path, &(hone_pack_params){ .file = packed_path(), .force = true, .n_threads = 3 },
                               &in, NULL, err);
    assert_true(st || in.written);
    char tmp[200];
    glob_t left;
    snprintf(tmp, sizeof tmp, "%s.hone-tmp-*", packed_path());
    assert_int_not_equal(glob(tmp, 0, NULL, &left), 0);
    return st;
}

static hone_status verify(hone_error *err)
{
    hone_packed_info in;
    return hone_pack(model_path, &(hone_pack_params){ .file = packed_path(), .verify = true, .n_threads = 3 }, &in,
                     NULL, err);
}

static hone_status open_vocabulary(hone_error *err)
{
    hone_model *m = (hone_model *)1;
    hone_status st = hone_model_open(&m, model_path, &(hone_model_params){ .vocab_only = true }, err);
    if (st) {
        assert_null(m);
        return st;
    }
    assert_int_equal(hone_token_bos(m), 1);
    hone_model_close(m);
    return HONE_OK;
}

static hone_status new_context(hone_error *err)
{
    hone_context *c = (hone_context *)1;
    hone_status st = hone_context_new(&c, &(hone_context_params){ .n_threads = 4, .cpu = "scalar" }, err);
    if (st) {
        assert_null(c);
        return st;
    }
    assert_int_equal(hone_context_threads(c), 4);
    hone_context_free(c);
    return HONE_OK;
}

static hone_status new_session(hone_error *err)
{
    hone_session *s = (hone_session *)1;
    hone_status st =
        hone_session_new(&s, context, model,
                         &(hone_session_params){ .n_ctx = 32, .n_seq = 3, .n_chunk = 4, .cache = HONE_CACHE_F16 }, err);
    if (st) {
        assert_null(s);
        return st;
    }
    long keep = countdown;
    countdown = 0; /* from here on nothing may be allocated */
    long before = n_failed;
    const float *y;
    assert_int_equal(hone_prefill(s, prompt, N_PROMPT, &y, err), HONE_OK);
    assert_int_equal(hone_seq_copy(s, 1, 0, err), HONE_OK);
    assert_int_equal(hone_seq_truncate(s, 1, 5, err), HONE_OK);
    assert_int_equal(hone_decode(s, &(hone_token){ 1, 5, 1, false }, 1, NULL, err), HONE_OK);
    assert_int_equal(n_failed, before);
    countdown = keep;
    hone_session_free(s);
    return HONE_OK;
}

/* ---- a recurrent model --------------------------------------------------------------------------- */

static char rwkv_path[200];
static hone_model *rwkv;

static hone_status open_rwkv(hone_error *err)
{
    hone_model *m = (hone_model *)1;
    hone_status st = hone_model_open(&m, rwkv_path, NULL, err);
    if (st) assert_null(m);
    else hone_model_close(m);
    return st;
}

static bool never(void *arg) { return false; }

/* What of it allocates: the session, a checkpoint at its first use, a snapshot. */
static hone_status use_rwkv(hone_error *err)
{
    hone_session *s = (hone_session *)1;
    hone_snapshot *snap = NULL;
    hone_status st = hone_session_new(&s, context, rwkv, &(hone_session_params){ .n_seq = 2, .n_chunk = 3 }, err);
    if (st) {
        assert_null(s);
        return st;
    }
    long keep = countdown, before = n_failed;
    const float *y;
    hone_session_set_abort(s, never, NULL);
    countdown = 0;
    assert_int_equal(hone_prefill(s, prompt, N_PROMPT, &y, err), HONE_OK); /* with its copy of the state */
    assert_int_equal(hone_seq_copy(s, 1, 0, err), HONE_OK);
    assert_int_equal(n_failed, before);
    countdown = keep;
    st = hone_seq_checkpoint(s, 0, err);
    if (!st) assert_int_equal(hone_prefill(s, prompt, 1, &y, err), HONE_OK);
    if (!st) assert_int_equal(hone_seq_truncate(s, 0, N_PROMPT, err), HONE_OK);
    else assert_int_equal(hone_seq_length(s, 0), N_PROMPT);
    if (!st) st = hone_seq_snapshot(s, 0, &snap, err);
    if (st) assert_null(snap);
    else assert_int_equal(hone_seq_restore(s, 1, snap, err), HONE_OK);
    hone_snapshot_free(snap);
    hone_session_free(s);
    return st;
}

/* A sequence long enough for a tree with more buckets than it begins with. */
enum { LONG = 17 * 64 + 5 };
static hone_snapshot *long_one;

static hone_status make_long(hone_error *err)
{
    static int32_t ids[LONG];
    const float *y;
    hone_session *s;
    for (int i = 0; i < LONG; i++) ids[i] = i * 7 % 40;
    hone_status st = hone_session_new(&s, context, rwkv, NULL, err);
    if (!st) st = hone_append(s, 0, ids, LONG, &y, err);
    if (!st) st = hone_seq_snapshot(s, 0, &long_one, err);
    hone_session_free(s);
    return st;
}

/* What is kept, or some of it, goes without a trace; and what could not be kept can be at once. */
static hone_status keep_long(hone_error *err)
{
    hone_session *s;
    hone_prefix_info info;
    hone_status st = hone_session_new(&s, context, rwkv, &(hone_session_params){ .n_kept_states = 1 }, err);
    if (st) return st;
    assert_int_equal(hone_seq_restore(s, 0, long_one, err), HONE_OK);
    st = hone_seq_keep(s, 0, err);
    hone_session_prefix_info(s, &info);
    assert_true(hone_seq_length(s, 0) == LONG && info.n_states == !st && info.n_nodes == (st ? 0 : 18));
    if (st) assert_int_equal(hone_seq_keep(s, 0, NULL), HONE_OK);
    hone_session_free(s);
    return st;
}

static hone_status save(hone_error *err) { return hone_session_save(session, session_path, err); }

static hone_status load(hone_error *err)
{
    hone_status st = hone_session_load(session, session_path, err);
    assert_int_equal(hone_seq_length(session, 0), N_PROMPT);
    return st;
}

/* With a fresh model: its tokenizer is built at the first call. */
static hone_model *fresh;
static const char text[] = "ab c\xc3\xa9 ab abab zzz 12";

static hone_status tokenize(hone_error *err)
{
    int32_t *ids = (int32_t *)1;
    size_t n = 1;
    hone_status st = hone_tokenize(fresh, text, sizeof text - 1, HONE_TOK_ADD, &ids, &n, err);
    if (st) {
        assert_null(ids);
        assert_int_equal(n, 0);
        return st;
    }
    assert_true(n > 8);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 287);
    char *back = (char *)1;
    size_t len = 1;
    st = hone_detokenize(fresh, ids + 1, n - 1, true, &back, &len, err);
    hone_free(ids);
    if (st) {
        assert_null(back);
        return st;
    }
    assert_int_equal(len, sizeof text - 1);
    assert_memory_equal(back, text, len);
    hone_free(back);
    return HONE_OK;
}

static hone_status stream(hone_error *err)
{
    hone_stream *s = (hone_stream *)1;
    static const char *const stops[] = { "stop", "ab!" };
    hone_status st = hone_stream_new(&s, fresh, stops, 2, err);
    if (st) {
        assert_null(s);
        return st;
    }
    for (int i = 0; i < 40 && !st; i++) {
        const char *p;
        size_t n;
        bool stopped;
        st = hone_stream_push(s, 286, &p, &n, &stopped, err);
        if (!st) assert_false(stopped);
        if (!st && i == 39) st = hone_stream_flush(s, &p, &n, err);
    }
    hone_stream_free(s);
    return st;
}

/* Fails each allocation of fn in turn; needs_fresh: on a new model each time. */
static void fail_each(hone_status (*fn)(hone_error *), bool needs_fresh)
{
    hone_error err;
    long k = 0;
    for (;; k++) {
        if (needs_fresh) assert_int_equal(hone_model_open(&fresh, model_path, NULL, &err), HONE_OK);
        memset(&err, 0, sizeof err);
        int before = n_maps;
        n_failed = 0;
        countdown = k;
        hone_status st = fn(&err);
        countdown = -1;
        assert_int_equal(n_maps, before);
        bool done = !n_failed;
        if (done) assert_int_equal(st, HONE_OK);
        else if (st != HONE_OK) { /* OK: it can do without that memory */
            if (st != HONE_E_NOMEM) fail_msg("allocation %ld: %s, %s", k, hone_status_name(st), err.message);
            assert_int_equal(err.code, HONE_E_NOMEM);
            assert_true(err.message[0] != 0);
        }
        hone_error e2 = { 0 };
        if (fn(&e2)) fail_msg("after allocation %ld had failed: %s", k, e2.message); /* at once, on the same model */
        assert_int_equal(n_maps, before);
        if (needs_fresh) hone_model_close(fresh);
        fresh = NULL;
        assert_true(k < 100000);
        if (done) break;
    }
    print_message("  %ld allocations\n", k);
    assert_true(k > 0); /* else nothing was tried */
}

static void opening(void **state) { fail_each(open_model, false); }
static void packing(void **state) { fail_each(pack, false); }
static void verifying(void **state) { fail_each(verify, false); }
static void opening_packed(void **state) { fail_each(open_packed, false); }
static void opening_touched(void **state) { fail_each(open_touched, false); }
static void opening_vocabulary(void **state) { fail_each(open_vocabulary, false); }
static void making_context(void **state) { fail_each(new_context, false); }
static void making_session(void **state) { fail_each(new_session, false); }
static void opening_rwkv(void **state) { fail_each(open_rwkv, false); }
static void using_rwkv(void **state) { fail_each(use_rwkv, false); }
static void keeping(void **state) { fail_each(keep_long, false); }
static void tokenizing(void **state) { fail_each(tokenize, true); }
static void streaming(void **state) { fail_each(stream, true); }

static bool file_is(const char *path, const unsigned char *p, size_t n)
{
    unsigned char *q = malloc(n + 1);
    FILE *f = fopen(path, "rb");
    assert_true(q && f);
    bool same = fread(q, 1, n + 1, f) == n && !memcmp(p, q, n);
    fclose(f);
    free(q);
    return same;
}

/* A save that fails leaves the file of before. */
static void saving(void **state)
{
    hone_error err;
    static const unsigned char old[] = "HONESES2 what was there";
    for (long k = 0;; k++) {
        FILE *f = fopen(session_path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(old, 1, sizeof old, f), sizeof old);
        fclose(f);
        n_failed = 0;
        countdown = k;
        hone_status st = save(&err);
        countdown = -1;
        if (st == HONE_OK) {
            assert_false(file_is(session_path, old, sizeof old));
            if (!n_failed) break;
        } else {
            assert_int_equal(st, HONE_E_NOMEM);
            assert_true(file_is(session_path, old, sizeof old));
        }
    }
    fail_each(save, false);
}

/* Loading may not need memory at all. */
static void loading(void **state)
{
    hone_error err;
    assert_int_equal(save(&err), HONE_OK);
    for (long k = 0;; k++) {
        n_failed = 0;
        countdown = k;
        hone_status st = load(&err);
        countdown = -1;
        if (!n_failed) {
            assert_int_equal(st, HONE_OK);
            break;
        }
        if (st) assert_int_equal(st, HONE_E_NOMEM);
    }
}

static int set_up(void **state)
{
    hone_error err;
    const float *y;
    if (tm_make_dir(state)) return -1;
    snprintf(model_path, sizeof model_path, "%s", tm_path("model.gguf"));
    snprintf(session_path, sizeof session_path, "%s", tm_path("a.session"));
    tiny *m = tm_new(shape);
    add_tokenizer(m);
    for (int i = 0; i < m->n_t; i++)
        if (strstr(m->t[i].name, "norm")) tm_encode(&m->t[i], HN_F16); /* widened into the arena */
    tm_save_raw(m, model_path);
    tm_free(m);
    if (hone_model_open(&model, model_path, NULL, &err)) return -1;
    if (hone_context_new(&context, &(hone_context_params){ .n_threads = 2 }, &err)) return -1;
    if (hone_session_new(&session, context, model,
                         &(hone_session_params){ .n_ctx = 64, .n_seq = 2, .n_chunk = 7, .cache = HONE_CACHE_F16 },
                         &err))
        return -1;
    if (hone_prefill(session, prompt, N_PROMPT, &y, &err)) return -1;
    static const char config[] =
        "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":32,\"head_dim\":8,\"n_ff\":48,\"n_vocab\":40}";
    char json[220];
    snprintf(rwkv_path, sizeof rwkv_path, "%s", tm_path("rwkv.gguf"));
    snprintf(json, sizeof json, "%s.json", rwkv_path);
    FILE *f = fopen(json, "w");
    if (!f || fputs(config, f) < 0 || fclose(f)) return -1;
    if (hone_synth(&(hone_synth_params){ .config_path = json, .type = "F16", .seed = 1, .n_threads = 1 }, rwkv_path,
                   NULL, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    unlink(json);
    return hone_model_open(&rwkv, rwkv_path, NULL, &err) || make_long(&err) ? -1 : 0;
}
static int discard(void **state)
{
    hone_snapshot_free(long_one);
    hone_session_free(session);
    hone_context_free(context);
    hone_model_close(model);
    hone_model_close(rwkv);
    if (n_maps) return -1;
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening),        cmocka_unit_test(opening_vocabulary),
        cmocka_unit_test(making_context), cmocka_unit_test(making_session),
        cmocka_unit_test(opening_rwkv),   cmocka_unit_test(using_rwkv),
        cmocka_unit_test(packing),        cmocka_unit_test(verifying),
        cmocka_unit_test(opening_packed), cmocka_unit_test(opening_touched),
        cmocka_unit_test(saving),         cmocka_unit_test(loading),
        cmocka_unit_test(keeping),        cmocka_unit_test(tokenizing),
        cmocka_unit_test(streaming),
    };
    return cmocka_run_group_tests(tests, set_up, discard);
}
