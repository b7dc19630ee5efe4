/* Snapshots in files, and what slots of a scheduler hold: what comes back answers like what went, and is found by the
 * requests it belongs to, by no others; files that are damaged, or of something else, are refused and change
 * nothing. */
#include "engine/scheduler.h"
#include "tiny_rwkv.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { N_CTX = 512, N_PROMPT = 300, N_NEW = 8 };

static hone_context *ctx;
static hone_model *llama, *rwkv;
static int32_t prompt[N_PROMPT];

static hone_model *open_saved(tiny *t, const char *name)
{
    hone_error err = { 0 };
    hone_model *m;
    tm_save_raw(t, tm_path(name));
    tm_free(t);
    if (hone_model_open(&m, tm_path(name), &(hone_model_params){ .packed = "off" }, &err)) fail_msg("%s", err.message);
    return m;
}

/* ---- a scheduler, one request at a time ------------------------------------------------------------- */

typedef struct heard {
    int32_t id[N_NEW], n, n_cached;
} heard;

static bool hear(void *arg, const hone_event *e)
{
    heard *h = arg;
    if (e->kind == HONE_EVENT_PROMPT && e->n_cached > h->n_cached) h->n_cached = e->n_cached;
    if (e->kind == HONE_EVENT_TOKEN) h->id[h->n++] = e->id;
    return true;
}

static hone_scheduler *open_scheduler(const hone_model *m)
{
    hone_error err = { 0 };
    hone_scheduler *s;
    const hone_scheduler_params p = { .session = { .n_ctx = N_CTX, .n_seq = 2, .n_chunk = 64 } };
    if (hone_scheduler_new(&s, ctx, m, &p, &err)) fail_msg("%s", err.message);
    return s;
}

static heard answer(hone_scheduler *s, uint64_t scope, int32_t n_prompt)
{
    hone_error err = { 0 };
    heard h = { 0 };
    uint64_t id;
    bool worked = true;
    hone_request r = { .prompt = prompt,
                       .n_prompt = n_prompt,
                       .max_tokens = N_NEW,
                       .n_logprobs = -1,
                       .ignore_eog = true,
                       .scope = scope,
                       .event = hear,
                       .arg = &h };
    hone_sampler_defaults(&r.sampling);
    r.sampling.seed = 7;
    if (hone_scheduler_submit(s, &r, &id, &err)) fail_msg("%s", err.message);
    while (worked)
        if (hone_scheduler_step(s, &worked, &err)) fail_msg("%s", err.message);
    assert_int_equal(h.n, N_NEW);
    return h;
}

static int32_t full_slot(const hone_scheduler *s)
{
    hone_slot_info info;
    for (int32_t i = 0; hone_scheduler_slot(s, i, &info); i++)
        if (info.n_past) return i;
    fail_msg("no slot holds anything");
    return -1;
}

/* ---- what comes back -------------------------------------------------------------------------------- */

/* Saved from one scheduler, brought to another: the same prompt then finds it, and has the same answer. */
static void found_again(const hone_model *m, const char *name)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    hone_scheduler *s = open_scheduler(m);
    int32_t n = 0;
    heard first = answer(s, 5, N_PROMPT);
    int32_t slot = full_slot(s);
    assert_int_equal(first.n_cached, 0);
    if (hone_scheduler_snapshot(s, slot, &snap, &err)) fail_msg("%s", err.message);
    int32_t length = hone_snapshot_length(snap);
    assert_true(length >= N_PROMPT);
    if (hone_snapshot_save(snap, tm_path(name), &err)) fail_msg("%s", err.message);
    if (hone_snapshot_save(snap, tm_path(name), &err)) fail_msg("over itself: %s", err.message);
    hone_snapshot_free(snap);
    assert_int_equal(hone_scheduler_erase(s, slot, &n, &err), HONE_OK);
    assert_int_equal(n, length);
    hone_scheduler_free(s);

    s = open_scheduler(m);
    if (hone_snapshot_load(&snap, m, tm_path(name), &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_snapshot_length(snap), length);
    if (hone_scheduler_restore(s, 1, snap, NULL, NULL, 0, &err)) fail_msg("%s", err.message);
    heard other = answer(s, 6, N_PROMPT); /* another scope finds nothing, and has the same answer */
    assert_int_equal(other.n_cached, 0);
    assert_memory_equal(other.id, first.id, sizeof first.id);

    /* a recurrent state is had where it was, behind the answer, and not before; a KV cache anywhere */
    if (hone_scheduler_restore(s, 1, snap, NULL, NULL, 0, &err)) fail_msg("%s", err.message);
    heard again = answer(s, 5, N_PROMPT);
    hone_model_info info;
    hone_model_get_info(m, &info);
    assert_int_equal(again.n_cached, info.recurrent ? 0 : N_PROMPT - 1);
    assert_memory_equal(again.id, first.id, sizeof first.id);
    hone_snapshot_free(snap);
    hone_scheduler_free(s);
}

static void it_is_found_again(void **state)
{
    found_again(llama, "llama.snapshot");
    found_again(rwkv, "rwkv.snapshot");
}

/* A recurrent state is found by a prompt that goes on from where it was. */
static void a_state_is_found_by_what_follows(void **state)
{
    enum { HALF = 100 };
    hone_error err = { 0 };
    hone_snapshot *snap;
    hone_session *from = tm_session(ctx, rwkv, N_CTX, 1, 64, HONE_CACHE_F32);
    const float *logits;
    if (hone_append(from, 0, prompt, HALF, &logits, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_seq_snapshot(from, 0, &snap, &err), HONE_OK);
    if (hone_snapshot_save(snap, tm_path("half.snapshot"), &err)) fail_msg("%s", err.message);
    hone_snapshot_free(snap);
    hone_session_free(from);

    hone_scheduler *alone = open_scheduler(rwkv), *s = open_scheduler(rwkv);
    heard want = answer(alone, 0, N_PROMPT);
    if (hone_snapshot_load(&snap, rwkv, tm_path("half.snapshot"), &err)) fail_msg("%s", err.message);
    if (hone_scheduler_restore(s, 0, snap, NULL, NULL, 0, &err)) fail_msg("%s", err.message);
    heard is = answer(s, 0, N_PROMPT);
    assert_int_equal(is.n_cached, HALF);
    assert_memory_equal(is.id, want.id, sizeof want.id);
    hone_snapshot_free(snap);
    hone_scheduler_free(s);
    hone_scheduler_free(alone);
}

/* ---- what is refused -------------------------------------------------------------------------------- */

static void put_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static void refused(const hone_model *m, const char *path, hone_status want, const char *word)
{
    hone_error err = { 0 };
    hone_snapshot *snap = (hone_snapshot *)1;
    hone_status st = hone_snapshot_load(&snap, m, path, &err);
    if (st != want || snap || !strstr(err.message, word))
        fail_msg("%s (%s), expected %s with '%s'", hone_status_name(st), err.message, hone_status_name(want), word);
}

static void what_is_wrong_is_refused(void **state)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    char path[160], damaged[160];
    snprintf(path, sizeof path, "%s", tm_path("a.snapshot"));
    snprintf(damaged, sizeof damaged, "%s", tm_path("damaged"));
    static unsigned char whole[1 << 20], bad[1 << 20];
    hone_scheduler *s = open_scheduler(llama);
    answer(s, 0, 40);
    assert_int_equal(hone_scheduler_snapshot(s, full_slot(s), &snap, &err), HONE_OK);
    if (hone_snapshot_save(snap, path, &err)) fail_msg("%s", err.message);
    FILE *f = fopen(path, "rb");
    size_t n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    assert_true(n > 200 && n < sizeof whole);

    refused(rwkv, path, HONE_E_ARG, "another model");
    refused(llama, tm_path("none"), HONE_E_IO, "cannot open");
    for (size_t i = 0; i < n; i += i < 120 ? 1 : 997) { /* each byte of its head, some of the others */
        memcpy(bad, whole, n);
        bad[i] ^= 0x41;
        put_file(damaged, bad, n);
        refused(llama, damaged, HONE_E_FORMAT, i < 8 ? "not a snapshot" : "");
    }
    for (size_t i = 0; i < n; i += i < 120 ? 7 : n / 9) {
        put_file(damaged, whole, i);
        refused(llama, damaged, HONE_E_FORMAT, "");
    }

    /* what is there and no snapshot stays, the model first of all */
    put_file(damaged, "a diary", 7);
    assert_int_equal(hone_snapshot_save(snap, damaged, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "no snapshot"));
    assert_int_equal(hone_snapshot_save(snap, tm_path("llama.gguf"), &err), HONE_E_ARG);

    /* a slot that is taken; none at all; nothing to find; a shape that does not fit */
    uint64_t id;
    hone_request r = { .prompt = prompt, .n_prompt = 9, .max_tokens = 5, .n_logprobs = -1 };
    bool worked;
    int32_t slot = 0, n_erased;
    hone_slot_info info;
    hone_sampler_defaults(&r.sampling);
    assert_int_equal(hone_scheduler_submit(s, &r, &id, &err), HONE_OK);
    assert_int_equal(hone_scheduler_step(s, &worked, &err), HONE_OK);
    while (hone_scheduler_slot(s, slot, &info) && !info.running) slot++;
    assert_int_equal(hone_scheduler_restore(s, slot, snap, NULL, NULL, 0, &err), HONE_E_BUSY);
    assert_int_equal(hone_scheduler_erase(s, slot, &n_erased, &err), HONE_E_BUSY);
    assert_int_equal(hone_scheduler_erase(s, 2, &n_erased, &err), HONE_E_ARG);
    hone_scheduler_cancel(s, id);
    while (worked) assert_int_equal(hone_scheduler_step(s, &worked, &err), HONE_OK);
    hone_snapshot *none;
    assert_int_equal(hone_scheduler_erase(s, 0, &n_erased, &err), HONE_OK);
    assert_int_equal(hone_scheduler_snapshot(s, 0, &none, &err), HONE_OK);
    assert_int_equal(hone_scheduler_restore(s, 0, none, NULL, NULL, 0, &err), HONE_E_ARG);
    hone_snapshot_free(none);
    hone_session *q8 = tm_session(ctx, llama, N_CTX, 1, 64, HONE_CACHE_Q8_0), *tight = NULL;
    assert_int_equal(hone_seq_restore(q8, 0, snap, &err), HONE_E_ARG);
    hone_session_free(q8);
    tight = tm_session(ctx, llama, 16, 1, 16, HONE_CACHE_F16);
    assert_int_equal(hone_seq_restore(tight, 0, snap, &err), HONE_E_CTX);
    hone_session_free(tight);
    hone_snapshot_free(snap);
    hone_scheduler_free(s);
}

/* ---- what is nobody else's -------------------------------------------------------------------------- */

static unsigned char *read_whole(const char *path, size_t *n)
{
    static unsigned char bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    *n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    assert_true(f && *n && *n < sizeof bytes && fclose(f) == 0);
    unsigned char *p = malloc(*n);
    memcpy(p, bytes, *n);
    return p;
}

/* A sequence of n positions, in pages that another conversation had before or in new ones: as it is saved. */
static unsigned char *saved_after(const hone_model *m, hone_kv_cache_type cache, bool other, int32_t n, size_t *size)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    const float *logits;
    hone_session *s = tm_session(ctx, m, N_CTX, 1, 64, cache);
    if (other) {
        if (hone_append(s, 0, prompt + 7, N_PROMPT - 7, &logits, &err)) fail_msg("%s", err.message);
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
    }
    if (hone_append(s, 0, prompt, n, &logits, &err)) fail_msg("%s", err.message);
    if (hone_seq_snapshot(s, 0, &snap, &err)) fail_msg("%s", err.message);
    if (hone_snapshot_save(snap, tm_path("own.snapshot"), &err)) fail_msg("%s", err.message);
    hone_snapshot_free(snap);
    hone_session_free(s);
    return read_whole(tm_path("own.snapshot"), size);
}

/* Another conversation leaves nothing in a snapshot: its bytes are those of a session that never had one. */
static void nothing_of_others_is_in_it(void **state)
{
    static const int32_t lengths[] = { 1, 15, 16, 17, 69, 128, 250 };
    static const hone_kv_cache_type caches[] = { HONE_CACHE_F16, HONE_CACHE_F32, HONE_CACHE_Q8_0 };
    hone_model *windowed = open_saved(tm_new(tm_gemma3), "gemma3.gguf");
    const hone_model *models[] = { llama, windowed, rwkv };
    for (size_t k = 0; k < 3; k++)
        for (size_t c = 0; c < (models[k] == rwkv ? 1 : 3); c++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                size_t n_alone, n_after;
                unsigned char *alone = saved_after(models[k], caches[c], false, lengths[i], &n_alone);
                unsigned char *after = saved_after(models[k], caches[c], true, lengths[i], &n_after);
                assert_int_equal(n_alone, n_after);
                if (memcmp(alone, after, n_alone) != 0)
                    fail_msg("model %zu, cache %zu, %d positions: something of another", k, c, lengths[i]);
                free(alone);
                free(after);
            }
    hone_model_close(windowed);
}

/* Where a name is not free and is no snapshot, or nobody can tell, it stays what it is. */
static void what_is_no_file_stays(void **state)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct stat sb;
    hone_scheduler *s = open_scheduler(llama);
    answer(s, 0, 40);
    int32_t slot = full_slot(s);
    assert_int_equal(hone_scheduler_snapshot(s, slot, &snap, &err), HONE_OK);

    assert_int_equal(mkfifo(tm_path("pipe"), 0600), 0); /* nobody writes to it: opening it must not wait */
    assert_int_not_equal(hone_snapshot_save(snap, tm_path("pipe"), &err), HONE_OK);
    assert_true(stat(tm_path("pipe"), &sb) == 0 && S_ISFIFO(sb.st_mode));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", tm_path("socket"));
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(hone_snapshot_save(snap, tm_path("socket"), &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "a name that is free"));
    close(fd);
    if (geteuid() != 0) { /* the superuser reads all */
        put_file(tm_path("secret"), "HONESNP1", 8);
        assert_int_equal(chmod(tm_path("secret"), 0200), 0);
        assert_int_equal(hone_snapshot_save(snap, tm_path("secret"), &err), HONE_E_IO);
    }

    /* others could read what was there: not what replaces it */
    if (hone_snapshot_save(snap, tm_path("open"), &err)) fail_msg("%s", err.message);
    assert_int_equal(chmod(tm_path("open"), 0644), 0);
    if (hone_snapshot_save(snap, tm_path("open"), &err)) fail_msg("%s", err.message);
    assert_true(stat(tm_path("open"), &sb) == 0 && (sb.st_mode & 0777) == 0600);
    hone_snapshot_free(snap);
    hone_scheduler_free(s);
}

/* A snapshot that does not fit leaves a slot what it has. */
static void a_slot_keeps_what_it_had(void **state)
{
    hone_error err = { 0 };
    hone_snapshot *foreign, *wrong;
    hone_slot_info before, after;
    hone_scheduler *s = open_scheduler(llama), *r = open_scheduler(rwkv);
    answer(s, 0, N_PROMPT);
    answer(r, 0, 40);
    int32_t slot = full_slot(s);
    hone_scheduler_slot(s, slot, &before);
    assert_int_equal(hone_scheduler_snapshot(r, full_slot(r), &foreign, &err), HONE_OK);
    assert_int_equal(hone_scheduler_restore(s, slot, foreign, NULL, NULL, 0, &err), HONE_E_ARG);

    hone_session *q8 = tm_session(ctx, llama, N_CTX, 1, 64, HONE_CACHE_Q8_0);
    const float *logits;
    if (hone_append(q8, 0, prompt, 20, &logits, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_seq_snapshot(q8, 0, &wrong, &err), HONE_OK);
    assert_int_equal(hone_scheduler_restore(s, slot, wrong, NULL, NULL, 0, &err), HONE_E_ARG);
    assert_true(hone_scheduler_slot(s, slot, &after) && after.n_past == before.n_past && before.n_past > N_PROMPT);
    hone_snapshot_free(wrong);
    hone_snapshot_free(foreign);

    /* what no request could find again is not saved in the first place */
    s->ses->mem->n_ids[slot]--;
    assert_int_equal(hone_scheduler_snapshot(s, slot, &wrong, &err), HONE_E_ARG);
    assert_true(!wrong && strstr(err.message, "ids are not known"));
    s->ses->mem->n_ids[slot]++;
    hone_session_free(q8);
    hone_scheduler_free(r);
    hone_scheduler_free(s);
}

/* Two handles of one content are one model; the same numbers and other weights are not. */
static void it_is_of_the_content(void **state)
{
    hone_error err = { 0 };
    hone_snapshot *snap;
    const float *logits;
    float want[16];
    tiny *t = tm_new(tm_llama), *o = tm_new(tm_llama);
    tm_find(o, "output_norm.weight")->f[3] += 0.5f;
    tm_encode(tm_find(o, "output_norm.weight"), HN_F32);
    hone_model *again = open_saved(t, "again.gguf"), *like = open_saved(o, "like.gguf");
    hone_session *s = tm_session(ctx, llama, N_CTX, 1, 64, HONE_CACHE_F16),
                 *theirs = tm_session(ctx, again, N_CTX, 1, 64, HONE_CACHE_F16),
                 *other = tm_session(ctx, like, N_CTX, 1, 64, HONE_CACHE_F16);
    if (hone_append(s, 0, prompt, 100, &logits, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_seq_snapshot(s, 0, &snap, &err), HONE_OK);
    if (hone_append(s, 0, prompt + 100, 1, &logits, &err)) fail_msg("%s", err.message);
    memcpy(want, logits, sizeof want);
    if (hone_seq_restore(theirs, 0, snap, &err)) fail_msg("%s", err.message);
    if (hone_append(theirs, 0, prompt + 100, 1, &logits, &err)) fail_msg("%s", err.message);
    assert_memory_equal(logits, want, sizeof want);
    assert_int_equal(hone_seq_restore(other, 0, snap, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "another model"));

    hone_scheduler *c = open_scheduler(again);
    if (hone_scheduler_restore(c, 0, snap, NULL, NULL, 0, &err)) fail_msg("%s", err.message);
    hone_scheduler_free(c);
    hone_snapshot_free(snap);
    hone_session_free(other);
    hone_session_free(theirs);
    hone_session_free(s);
    hone_model_close(like);
    hone_model_close(again);
}

static int begin(void **state)
{
    if (tm_make_dir(state)) return -1;
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(hn_mix64((uint64_t)i) % 16);
    ctx = tm_context(NULL, 2);
    rwkv = open_saved(rw_new(&rw_vec7), "rwkv.gguf");
    llama = open_saved(tm_new(tm_llama), "llama.gguf");
    return 0;
}
static int end(void **state)
{
    hone_model_close(rwkv);
    hone_model_close(llama);
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_found_again),        cmocka_unit_test(a_state_is_found_by_what_follows),
        cmocka_unit_test(what_is_wrong_is_refused), cmocka_unit_test(nothing_of_others_is_in_it),
        cmocka_unit_test(what_is_no_file_stays),    cmocka_unit_test(a_slot_keeps_what_it_had),
        cmocka_unit_test(it_is_of_the_content),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
