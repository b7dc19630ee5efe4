/* Out of memory while data is read, divided and given out, a vocabulary is trained and models are
 * written: the k-th allocation fails, for k = 1, 2, … until the call succeeds. Each failure must be
 * HONE_E_NOMEM with a message, give nothing, and leak nothing; what succeeds all the same is what it would have been.
 */
#include "../unit/data_files.h"
#include "forge/init.h"
#include "forge/trained.h"
#include "train/begin.h"
#include "train/train.h"

#include <jansson.h>
#include <sys/mman.h>

#include "fail_each.h"

/* ---- what is tried ----------------------------------------------------------------------- */

static hone_model *chat, *plain;
static char file[8][160];
static uint64_t expected; /* what fn made when nothing failed; 0: not known yet */

static void same(uint64_t hash)
{
    if (!expected) expected = hash;
    assert_true(hash == expected);
}

static hone_status read_file(const hone_model *m, const char *path, hone_error *err)
{
    hn_dataset *d = (hn_dataset *)1;
    hone_status st = hn_dataset_read(
        &d, m, &(hn_data_params){ .path = &path, .n_path = 1, .seq = 12, .mask = HN_MASK_PROMPT, .max_bad = 1 }, err);
    if (st) assert_null(d);
    else same(hn_fnv1a(d->hash, d->stats.first_bad, strlen(d->stats.first_bad)));
    hn_dataset_free(d);
    return st;
}
static hone_status read_txt(hone_error *err) { return read_file(plain, file[0], err); }
static hone_status read_texts(hone_error *err) { return read_file(plain, file[1], err); }
static hone_status read_pairs(hone_error *err) { return read_file(plain, file[2], err); }
static hone_status read_chat(hone_error *err) { return read_file(chat, file[3], err); }
static hone_status read_sharegpt(hone_error *err) { return read_file(chat, file[4], err); }
static hone_status read_alpaca(hone_error *err) { return read_file(chat, file[5], err); }
static hone_status read_turns(hone_error *err) { return read_file(chat, file[7], err); }
static hone_status read_folder(hone_error *err) { return read_file(plain, file[6], err); }

static hone_status divide(hone_error *err)
{
    const char *path = file[1];
    hn_dataset *a = NULL, *b = (hn_dataset *)1;
    hn_loader *l = (hn_loader *)1;
    hone_status st =
        hn_dataset_read(&a, plain, &(hn_data_params){ .path = &path, .n_path = 1, .seq = 12, .max_bad = 1 }, err);
    if (st) return st;
    int64_t n = a->n;
    uint64_t hash = a->hash;
    if ((st = hn_dataset_split(a, 0.5, 1, &b, err)) != HONE_OK) {
        assert_null(b);
        assert_true(a->n == n && a->hash == hash); /* still whole */
    } else if ((st = hn_loader_new(&l, a, 12, 2, true, true, 1, err)) != HONE_OK) {
        assert_null(l);
    } else {
        hn_train_batch batch;
        assert_int_equal(hn_loader_next(l, &batch, err), HONE_OK);
        same(a->hash ^ (uint64_t)batch.n_tok);
        hn_loader_free(l);
    }
    hn_dataset_free(b);
    hn_dataset_free(a);
    return st;
}

static hone_status train_tokenizer(hone_error *err)
{
    static const char *const special[] = { "<|eos|>" };
    hn_bpe *b = (hn_bpe *)1;
    const char *paths[] = { file[0], file[2] };
    hone_status st = hn_bpe_train(
        &b,
        &(hn_bpe_params){ .path = paths, .n_path = 2, .rules = { .n_vocab = 262, .special = special, .n_special = 1 } },
        err);
    if (st) assert_null(b);
    else {
        uint64_t h = 1;
        for (int32_t i = 0; i < b->n_pair; i++) h = hn_fnv1a(h, &b->pair[i], sizeof *b->pair);
        same(h);
        hn_init p = { .config = df_path("config.json"), .bpe = b, .bos = -1, .eos = 0, .seed = 1 };
        st = hn_init_model(df_path("init.gguf"), &p, err);
    }
    hn_bpe_free(b);
    return st;
}

static hone_model *base;
static hn_param param;

static hone_status write_model(hone_error *err)
{
    const hn_trained_tensor at = { param.name, param.p, param.rows, param.cols };
    hn_init p = { .config = df_path("config.json"), .tokenizer = base, .seed = 1 };
    hone_status st = hn_init_model(df_path("init2.gguf"), &p, err);
    return st ? st
              : hn_write_trained(df_path("trained.gguf"), base,
                                 &(hn_trained){ .tensor = &at, .n_tensor = 1, .type = "F16" }, err);
}

/* What is written without a failure becomes known anew. */
static void fail_anew(hone_status (*fn)(hone_error *))
{
    expected = 0;
    fail_each(fn);
}

static void txt(void **state) { fail_anew(read_txt); }
static void texts(void **state) { fail_anew(read_texts); }
static void pairs(void **state) { fail_anew(read_pairs); }
static void chats(void **state) { fail_anew(read_chat); }
static void sharegpt(void **state) { fail_anew(read_sharegpt); }
static void turns(void **state) { fail_anew(read_turns); }
static void alpaca(void **state) { fail_anew(read_alpaca); }
static void folder(void **state) { fail_anew(read_folder); }
static void dividing(void **state) { fail_anew(divide); }
static void tokenizer(void **state) { fail_anew(train_tokenizer); }
static void writing(void **state) { fail_anew(write_model); }

static int setup(void **state)
{
    static const struct {
        const char *name, *text;
    } files[6] = {
        { "a.txt", "one two\nthree ab ab ab" },
        { "b.jsonl",
          "{\"text\": \"one ab ab\"}\nbad\n{\"text\": \"a text that goes on in samples\"}\n{\"text\": \"x\"}\n" },
        { "c.jsonl", "{\"prompt\": \"q\", \"completion\": \"a\"}\n{\"prompt\": \"q\", \"completion\": \"a longer "
                     "answer than fits\"}\n" },
        { "d.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": "
                     "\"a\"}, {\"role\": \"user\", \"content\": \"q\"},"
                     " {\"role\": \"assistant\", \"content\": \"a\"}]}\n" },
        { "e.jsonl",
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"a\", "
          "\"weight\": 1}]}\n"
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"function_call\", \"value\": "
          "\"{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {}}\"}], \"system\": \"s\", \"tools\": \"[{\\\"name\\\": "
          "\\\"f\\\"}]\"}\n" },
        { "f.jsonl", "{\"instruction\": \"q\", \"input\": \"i\", \"output\": \"a\"}\n"
                     "{\"instruction\": \"q\", \"output\": \"a\", \"system\": \"s\", \"history\": [[\"q\", \"a\"]], "
                     "\"tools\": [{\"name\": \"f\"}]}\n" },
    };
    static const char config[] = "{\"arch\": \"llama\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"n_ff\": 16}";
    static const char *const special[] = { "<|eos|>" };
    hone_error e = { 0 };
    hn_bpe *b;
    json_set_alloc_funcs(malloc, free); /* the allocator that fails, here too */
    if (df_begin(state) != 0) return -1;
    for (int i = 0; i < 6; i++)
        snprintf(file[i], sizeof file[i], "%s", df_write(files[i].name, files[i].text, strlen(files[i].text)));
    snprintf(file[6], sizeof file[6], "%s", df_path("folder"));
    if (mkdir(file[6], 0700) != 0) return -1;
    snprintf(
        file[7], sizeof file[7], "%s",
        DF_FILE("turns.json",
                "[{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"completion\": [{\"role\": \"assistant\", "
                "\"content\": \"a\"}]}]"));
    DF_FILE("folder/a.md", "# One\ntext that goes on in samples\n# Two\nab\n");
    DF_FILE("folder/b.json", "[{\"text\": \"one\"}, {\"text\": \"two\"}]");
    DF_FILE("folder/c.csv", "prompt,completion\nq,\"a\"\nq\n");
    df_write("config.json", config, sizeof config - 1);
    chat = df_model("chat.gguf",
                    "{% for m in messages %}<{{ m.content }}>{% endfor %}{% if add_generation_prompt %}<{% endif %}",
                    true);
    plain = df_model("plain.gguf", NULL, false);
    const char *path = file[0];
    if (hn_bpe_train(&b,
                     &(hn_bpe_params){
                         .path = &path, .n_path = 1, .rules = { .n_vocab = 260, .special = special, .n_special = 1 } },
                     &e))
        fail_msg("%s", e.message);
    hn_init p = { .config = df_path("config.json"), .bpe = b, .bos = -1, .eos = 0, .seed = 1 };
    if (hn_init_model(df_path("base.gguf"), &p, &e) || hone_model_open(&base, df_path("base.gguf"), NULL, &e))
        fail_msg("%s", e.message);
    hn_bpe_free(b);
    const hn_vocab *v;
    assert_int_equal(hn_model_vocab(base, &v, &e), HONE_OK);
    param = (hn_param){ .name = "blk.0.attn_q.weight", .rows = 8, .cols = 8, .p = calloc(64, sizeof(float)) };
    return 0;
}

static int teardown(void **state)
{
    hone_model_close(chat);
    hone_model_close(plain);
    hone_model_close(base);
    free(param.p);
    return df_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(txt),      cmocka_unit_test(texts),     cmocka_unit_test(pairs),   cmocka_unit_test(chats),
        cmocka_unit_test(sharegpt), cmocka_unit_test(alpaca),    cmocka_unit_test(turns),   cmocka_unit_test(folder),
        cmocka_unit_test(dividing), cmocka_unit_test(tokenizer), cmocka_unit_test(writing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
