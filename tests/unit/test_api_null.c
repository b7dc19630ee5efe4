/* The rule of hone.h for arguments that are not there or out of range, over every function: each is called with
 * each of its arguments spoilt in turn, and what it says and leaves is looked at. What there is to try is read from
 * the header itself, so that nothing can be forgotten. Each call is made in a child first: a crash is one more
 * failure. Knows nothing of how the functions work. */
#define _GNU_SOURCE
#include "api_calls.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- the walk ---------------------------------- */

static int n_wrong, n_crash, n_tried;

static __attribute__((format(printf, 1, 2))) void wrong(const char *fmt, ...)
{
    va_list ap;
    n_wrong++;
    va_start(ap, fmt);
    vprint_error(fmt, ap);
    va_end(ap);
}

static aw_call call(const entry *e, const char *hit, int k, hone_error *err)
{
    aw_call c = { .hit = hit, .k = k, .err = err };
    aw = &c;
    e->call();
    aw = NULL;
    return c;
}

/* Of each kind of argument, how many spoilt ones are tried. */
static int n_bad(aw_kind kind, bool pointer) { return pointer ? 1 : kind == AW_TRUST ? 0 : kind == AW_COUNT ? 2 : 3; }

/* In a child, which a crash may end: all of e's calls, or hit alone. False: it died. */
static bool survives(const entry *e, const aw_call *whole, const char *hit, int k)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
        for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL); /* cmocka would go on */
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(3);
        for (int i = 0; i < whole->n_asked; i++)
            for (int b = 0; b < n_bad(whole->asked[i].kind, whole->asked[i].pointer); b++)
                if (!hit || (!strcmp(hit, whole->asked[i].name) && b == k)) call(e, whole->asked[i].name, b, NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What a failing call must say, and one that succeeds must not touch. */
/* Numbers out of range are faults of the caller; these two are faults of what was given. */
static bool is_data(const entry *e, const char *name)
{
    if (e->call == c_sampler_pick) return !strcmp(name, "logits[2]");
    return e->call == c_template_render && !strcmp(name, "len");
}

static const char *fault_of_error(const aw_call *c, const hone_error *err, const hone_error *before)
{
    size_t n = strnlen(err->message, sizeof err->message);
    if (!c->failed) return memcmp(err, before, sizeof *err) ? "err was written by a call that succeeded" : NULL;
    if (err->code != c->st) return "err->code is not what was returned";
    if (!strcmp(err->message, before->message)) return "err->message is that of an older failure";
    if (n == 0 || n == sizeof err->message) return "err->message is empty, or does not end";
    if (strpbrk(err->message, "\n\r")) return "err->message has several lines";
    return err->file && err->line > 0 ? NULL : "err->file and err->line are not set";
}

static void check(const entry *e, const char *name, aw_kind kind, int k)
{
    hone_error err, before;
    char want[200];
    memset(&before, 0x5A, sizeof before);
    snprintf(before.message, sizeof before.message, "an older failure");
    err = before;
    aw_call c = call(e, name, k, &err), quiet = call(e, name, k, NULL);
    n_tried++;
    const char *what = name ? name : "nothing spoilt", *fault = NULL;
    bool minus_inf = e->call == c_sampler_pick && name && !strcmp(name, "logits[2]") && k == 0;
    if (c.has_status && !minus_inf) fault = fault_of_error(&c, &err, &before);
    if (c.failed != quiet.failed || (c.has_status && c.st != quiet.st)) fault = "without err it ends in another way";
    if (kind == AW_NEED && !c.failed) fault = "NULL passes for an argument";
    if (kind == AW_MAY && c.failed) fault = "refused, though it may be NULL";
    if (!c.failed && (kind == AW_RANGE || ((kind == AW_LOW || kind == AW_COUNT) && k < 2)))
        fault = "a number out of range passes";
    if (c.left) fault = c.left;
    if (c.has_status && c.failed && kind > AW_MAY && c.st != HONE_E_ARG && c.st != HONE_E_CTX && !is_data(e, name))
        fault = "neither HONE_E_ARG nor HONE_E_CTX";
    if (kind == AW_NEED && c.has_status && !fault) {
        snprintf(want, sizeof want, "%s: %s is NULL; expected ", e->name, name);
        if (c.st != HONE_E_ARG || strncmp(err.message, want, strlen(want)) || strlen(err.message) == strlen(want))
            fault = "not the words of the rule";
    }
    if (fault)
        wrong("%s, %s (%d): %s [%s: %s]\n", e->name, what, k, fault, hone_status_name(c.st),
              c.failed && c.has_status ? err.message : "");
}

static const entry *find(const char *name)
{
    for (int i = 0; i < N_ENTRY; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

/* Does the call spoil all that the header declares, and nothing else? */
static int gaps(const aw_func *f, const aw_call *whole, bool tell)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        bool there = false;
        for (int k = 0; k < whole->n_asked; k++)
            there |= !strcmp(f->arg[i].name, whole->asked[k].name) && f->arg[i].pointer == whole->asked[k].pointer;
        if (!there && tell) wrong("%s: nothing tries %s\n", f->name, f->arg[i].name);
        n += !there;
    }
    for (int k = 0; k < whole->n_asked; k++) {
        size_t len = strcspn(whole->asked[k].name, "-[");
        bool there = false;
        for (int i = 0; i < f->n; i++)
            there |= !strncmp(f->arg[i].name, whole->asked[k].name, len) && !strcspn(f->arg[i].name + len, "-[");
        if (!there && tell) wrong("%s: hone.h knows no %s\n", f->name, whole->asked[k].name);
        n += !there;
    }
    return n;
}

static char *header_text(const char *more)
{
    FILE *f = fopen("include/hone.h", "rb");
    assert_non_null(f);
    char *s = calloc(1, 1 << 20);
    size_t n = fread(s, 1, (1 << 20) - 4096, f);
    assert_true(n > 1000 && feof(f) && !fclose(f));
    snprintf(s + n, 4096, "%s", more);
    return s;
}

static void every_function_of_the_header(void **state)
{
    static aw_header h;
    char *text = header_text("");
    aw_read(&h, text);
    free(text);
    for (int i = 0; i < h.n_func; i++) {
        const entry *e = find(h.func[i].name);
        if (!e) {
            wrong("%s: not in the table of this test\n", h.func[i].name);
            continue;
        }
        aw_call whole = call(e, NULL, 0, NULL);
        check(e, NULL, AW_ANY, 0);
        if (whole.failed)
            wrong("%s: does not succeed with all its arguments (%s)\n", e->name, hone_status_name(whole.st));
        if (whole.has_status != h.func[i].status) wrong("%s: is a status returned, or not?\n", e->name);
        gaps(&h.func[i], &whole, true);
        bool lives = survives(e, &whole, NULL, 0);
        for (int k = 0; k < whole.n_asked; k++)
            for (int b = 0; b < n_bad(whole.asked[k].kind, whole.asked[k].pointer); b++) {
                if (lives || survives(e, &whole, whole.asked[k].name, b)) {
                    check(e, whole.asked[k].name, whole.asked[k].kind, b);
                } else {
                    n_crash++;
                    wrong("%s: crashes when %s is %s\n", e->name, whole.asked[k].name,
                          whole.asked[k].pointer ? "NULL" : "out of range");
                }
            }
    }
    for (int i = 0; i < N_ENTRY; i++) {
        bool there = false;
        for (int k = 0; k < h.n_func; k++) there |= !strcmp(h.func[k].name, table[i].name);
        if (!there) wrong("%s: hone.h does not declare it\n", table[i].name);
    }
    if (n_wrong) fail_msg("%d breaches of the rule in %d calls, %d of them crashes", n_wrong, n_tried, n_crash);
    assert_true(h.n_func >= 97 && n_tried > 500);
}

/* The test itself would see a function, a parameter or a member that nobody thought of. */
static void nothing_can_be_forgotten(void **state)
{
    static aw_header h;
    static const char *const more[] = {
        "HONE_API void hone_new_one(void);\n",
        "HONE_API hone_status hone_tokenize(const hone_model *m, const char *text, size_t len, int flags,\n"
        "                                   int32_t **ids, size_t *n, bool (*fn)(void *a, int b), hone_error *err);\n",
        "typedef struct hone_file_params { int a, more; } hone_file_params;\n"
        "HONE_API hone_status hone_file_open(hone_file **out, const char *path, const hone_file_params *p,\n"
        "                                    hone_error *err);\n",
        "HONE_API int64_t hone_file_find_tensor(const hone_file *f, const char *name, const char *const *or_these);\n",
        "HONE_API hone_status hone_file_check(const hone_file *f, float limit, hone_error *err);\n",
    };
    static const int want[] = { -1, 1, 3, 2, 1 };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        char *text = header_text(more[i]);
        aw_read(&h, text);
        free(text);
        const aw_func *f = &h.func[h.n_func - 1];
        const entry *e = find(f->name);
        if (want[i] < 0) {
            assert_null(e);
            continue;
        }
        assert_non_null(e);
        aw_call whole = call(e, NULL, 0, NULL);
        assert_int_equal(gaps(f, &whole, false), want[i]);
    }
}

/* ---- what the walk does not come to ---------------------------------- */

/* Where there is nothing to point to, NULL will do. */
static void nothing_of_length_0(void **state)
{
    hone_error e = { 0 };
    int32_t *ids;
    hone_span *spans;
    size_t n = 77, len = 77;
    char *text;
    hone_stream *s;
    int64_t step;
    must(hone_tokenize(model, NULL, 0, 0, &ids, &n, &e), &e);
    assert_true(n == 0 && ids);
    hone_free(ids);
    must(hone_tokenize_spans(model, NULL, 0, HONE_TOK_ADD | HONE_TOK_SPECIAL, &ids, &spans, &n, &e), &e);
    hone_free(ids);
    hone_free(spans);
    must(hone_detokenize(model, NULL, 0, true, &text, &len, &e), &e);
    assert_true(len == 0 && text && !*text);
    hone_free(text);
    must(hone_stream_new(&s, model, NULL, 0, &e), &e);
    hone_stream_free(s);
    must(hone_template_render(NULL, 0, "t", "{}", NULL, &text, &n, &e), &e);
    assert_true(n == 0 && text && !*text);
    hone_free(text);
    must(hone_decode(session, NULL, 0, NULL, &e), &e);
    prefill(0);
    must(hone_decode(session, &(hone_token){ 5, 0, 0, false }, 1, NULL, &e), &e);
    must(hone_file_read_f32(file, 0, 0, 0, NULL, &e), &e);
    prefill(0);
    must(hone_session_set_adapters(session, NULL, NULL, 0, &e), &e);
    must(hone_trainer_resume(trainer, folder, &step, NULL, 0, &e), &e);
    assert_true(step > 0);
}

static void refused(hone_status st, hone_status want, const hone_error *e, const char *says)
{
    if (st != want || e->code != want || !strstr(e->message, says))
        fail_msg("%s, %s: %s; expected %s and \"%s\"", hone_status_name(st), hone_status_name(e->code), e->message,
                 hone_status_name(want), says);
}

/* A model opened for its vocabulary has no weights: no call may look for them. */
static void a_model_without_weights(void **state)
{
    static const char says[] = "opened for its vocabulary only";
    hone_error e = { 0 };
    hone_model *m;
    hone_model_info info;
    hone_session *s = (hone_session *)1;
    hone_adapter *a = (hone_adapter *)1;
    hone_trainer *t = (hone_trainer *)1;
    hone_train_params p = train_params(), full = p;
    must(hone_model_open(&m, model_path, &(hone_model_params){ .vocab_only = true }, &e), &e);
    hone_model_get_info(m, &info);
    assert_true(info.n_vocab == DF_N && !*info.arch);
    refused(hone_session_new(&s, ctx, m, NULL, &e), HONE_E_ARG, &e, says);
    refused(hone_adapter_open(&a, m, adapter_path, &e), HONE_E_ARG, &e, says);
    refused(hone_adapter_convert(m, adapter_path, out_path, true, &e), HONE_E_ARG, &e, says);
    refused(hone_trainer_new(&t, ctx, m, &p, &e), HONE_E_ARG, &e, says);
    assert_true(!s && !a && !t);
    full.full = true;
    refused(hone_trainer_new(&t, ctx, m, &full, &e), HONE_E_ARG, &e, says);
    hone_model_close(m);
}

/* A model without a tokenizer is no reason to crash either. */
static void a_model_without_tokenizer(void **state)
{
    static const char says[] = "no tokenizer";
    hone_error e = { 0 };
    tiny *shape = tm_new((tm_shape)TM("llama", 16, 2, 1, 8, 24, 40, 1, 10000, 1e-5, .tied = true));
    hone_model *m = tm_open(shape);
    hone_train_params p = train_params();
    hone_chat_params chat = { .messages = messages, .chat_template = "chatml" };
    hone_chat_text text;
    hone_stream *s;
    hone_trainer *t;
    hone_str source;
    int32_t *ids;
    char *out;
    size_t n;
    tm_free(shape);
    refused(hone_tokenize(m, "a", 1, 0, &ids, &n, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_detokenize(m, &(int32_t){ 1 }, 1, false, &out, &n, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_stream_new(&s, m, NULL, 0, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_chat_render(m, &chat, &text, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_chat_tokenize(m, &chat, &ids, &n, &e), HONE_E_UNSUPPORTED, &e, says);
    chat.add_generation_prompt = true;
    refused(hone_chat_mark(m, &chat, &(int32_t){ 1 }, 1, &n, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_trainer_new(&t, ctx, m, &p, &e), HONE_E_UNSUPPORTED, &e, says);
    refused(hone_chat_template(m, true, &source, &e), HONE_E_UNSUPPORTED, &e, "no chat template");
    assert_true(!hone_token_piece(m, 1, true, &n) && n == 0 && !hone_token_is_eog(m, 1));
    assert_true(hone_token_bos(m) == -1 && hone_token_eos(m) == -1);
    hone_model_close(m);
}

/* What belongs to one model is refused by sessions and trainers of another. */
static void things_of_another_model(void **state)
{
    hone_error e = { 0 };
    char path[200];
    int64_t step = 77;
    hone_model *m = tr_model("other.gguf", 0.5f);
    hone_session *s = tm_session(ctx, m, 32, 2, 8, HONE_CACHE_F16);
    hone_train_params p = train_params();
    hone_trainer *t = tr_new(ctx, m, p);
    hone_adapter *a;
    prefill(2);
    must(hone_session_save(session, state_path, &e), &e);
    refused(hone_seq_restore(s, 0, snapshot, &e), HONE_E_ARG, &e, "another model");
    refused(hone_session_set_adapters(s, &adapter, NULL, 1, &e), HONE_E_ARG, &e, "another model");
    must(hone_adapter_open(&a, m, adapter_path, &e), &e);
    hone_adapter *both[] = { adapter, a };
    prefill(0);
    refused(hone_session_set_adapters(session, both, NULL, 2, &e), HONE_E_ARG, &e, "another model");
    assert_true(hone_session_adapters_hash(session) == 0 && hone_seq_length(s, 0) == 0);
    must(hone_trainer_save(trainer, folder, 1, &e), &e);
    refused(hone_trainer_resume(t, folder, &step, NULL, 0, &e), HONE_E_ARG, &e, "base");
    assert_int_equal(step, 0);
    snprintf(path, sizeof path, "%s/nothing.ckpt", folder);
    refused(hone_trainer_load(t, path, &e), HONE_E_IO, &e, "nothing.ckpt");
    hone_adapter_close(a);
    hone_trainer_free(t);
    hone_session_free(s);
    hone_model_close(m);
}

/* A trainer that is a plan tells what would be, and does nothing. */
static void a_plan(void **state)
{
    hone_error e = { 0 };
    hone_train_params p = train_params();
    hone_train_step step;
    hone_train_status status;
    hone_train_info info;
    double loss;
    p.plan_only = true;
    hone_trainer *t = tr_new(ctx, model, p);
    hone_trainer_get_info(t, &info);
    hone_trainer_get_status(t, &status);
    assert_true(info.steps == p.steps && status.step == 0 && *hone_trainer_settings(t));
    refused(hone_trainer_step(t, &step, &e), HONE_E_ARG, &e, "plan");
    refused(hone_trainer_validate(t, &loss, &e), HONE_E_ARG, &e, "plan");
    refused(hone_trainer_save(t, folder, 1, &e), HONE_E_ARG, &e, "plan");
    refused(hone_trainer_load(t, model_path, &e), HONE_E_ARG, &e, "plan");
    refused(hone_trainer_write(t, out_path, &e), HONE_E_ARG, &e, "plan");
    refused(hone_trainer_write_peft(t, out_folder, &e), HONE_E_ARG, &e, "plan");
    hone_trainer_free(t);
}

static int count_checkpoints(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *x; (x = readdir(d));) n += x->d_name[0] != '.';
    closedir(d);
    return n;
}

/* keep 0 removes none, 1 leaves this one alone. */
static void keep_says_how_many(void **state)
{
    hone_error e = { 0 };
    hone_train_step step;
    char dir[160];
    name_path(dir, "kept");
    for (int i = 1; i <= 3; i++) {
        must(hone_trainer_step(trainer, &step, &e), &e);
        must(hone_trainer_save(trainer, dir, 0, &e), &e);
        assert_int_equal(count_checkpoints(dir), i);
    }
    refused(hone_trainer_save(trainer, dir, -1, &e), HONE_E_ARG, &e, "keep -1");
    must(hone_trainer_save(trainer, dir, 2, &e), &e);
    assert_int_equal(count_checkpoints(dir), 2);
    must(hone_trainer_save(trainer, dir, 1, &e), &e);
    assert_int_equal(count_checkpoints(dir), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_can_be_forgotten),
        cmocka_unit_test(every_function_of_the_header),
        cmocka_unit_test(nothing_of_length_0),
        cmocka_unit_test(a_model_without_weights),
        cmocka_unit_test(a_model_without_tokenizer),
        cmocka_unit_test(things_of_another_model),
        cmocka_unit_test(a_plan),
        cmocka_unit_test(keep_says_how_many),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
