/* Fuzzes what hone train reads: the input is one byte of settings and then a file, .jsonl, .txt, .json, .csv or .md.
 * A file that begins with a byte 0 is more than that: a byte that says what, then a table with tabs, a name that says
 * nothing, a folder of files (each a byte for its name, and a byte 0 behind it) or lines that fill the reader's buffer.
 * JSON lines are taken exactly where jansson takes them, with the same values. Whatever the file is, the
 * samples are within bounds, the numbers about them add up, the same file gives the same samples, and
 * the loader gives each once. Also a vocabulary is trained on it.
 * covers: src/train/dataset.c src/train/data_files.c src/train/data_text.c src/train/data_record.c
 * covers: src/train/data_jsonl.c src/train/data_json.c src/train/data_table.c src/train/data_chat.c
 * covers: src/train/data_window.c
 * covers: src/base/json.c src/base/json_tree.c */
#include "../unit/data_files.h"
#include "train/begin.h"
#include "train/data_parts.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

/* Numbers too large for jansson, or too long or deep for hone, are not compared; and jansson 2.14 takes a NUL byte
 * after a number for white space. */
static void check_json(const char *s, size_t n)
{
    const hn_json_rules rules = { .flags = HN_JSON_UNIQUE | HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    hn_jread j;
    hone_error err;
    json_error_t e;
    json_t *a = NULL, *b = json_loadb(s, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
    must(hn_jread_begin(&j, s, n, &rules, "fuzz", NULL, &err) == HONE_OK);
    hone_status st = hn_json_build(&a, &j);
    must(st == HONE_OK ? a != NULL : st == HONE_E_FORMAT && !a && j.expected && j.at >= s && j.at <= s + n);
    if (a && b) must(json_equal(a, b));
    else if (a) must(strstr(e.text, "integer") != NULL);
    else if (b) must(strstr(j.expected, "nesting") != NULL || (j.at < s + n && !*j.at));
    json_decref(a);
    json_decref(b);
}

static void check_lines(const char *s, size_t n)
{
    for (size_t a = 0; a < n;) {
        const char *nl = memchr(s + a, '\n', n - a);
        size_t b = nl ? (size_t)(nl - s) : n;
        check_json(s + a, b - a);
        a = b + 1;
    }
}

static void check_samples(const hn_dataset *d, int32_t seq)
{
    int64_t n_tok = 0, n_target = 0;
    must(d->n > 0 && d->stats.n_sample == d->n && d->stats.n_bad <= d->stats.n_line + 100);
    must(!d->stats.n_bad == !d->stats.first_bad[0]);
    for (int64_t i = 0; i < d->n; i++) {
        const hn_data_sample *s = &d->sample[i];
        int32_t here = 0;
        must(s->n >= 2 && s->n <= seq && s->n >= d->stats.min_len && s->n <= d->stats.max_len);
        for (int32_t t = 0; t < s->n; t++) {
            must(s->ids[t] >= 0 && s->ids[t] < DF_N && s->target[t] <= 1);
            here += t && s->target[t];
        }
        must(here > 0);
        n_tok += s->n, n_target += here;
    }
    must(n_tok == d->stats.n_tok && n_target == d->stats.n_target);
    must(d->stats.min_len <= d->stats.median_len && d->stats.median_len <= d->stats.p95_len &&
         d->stats.p95_len <= d->stats.max_len);
}

static void check_loader(const hn_dataset *d, int32_t seq, bool pack)
{
    hn_loader *l;
    hone_error e;
    hn_train_batch b;
    int64_t n_tok = 0, n_target = 0, n_doc = 0;
    must(hn_loader_new(&l, d, seq, 3, pack, true, 1, &e) == HONE_OK);
    while (hn_loader_tell(l).epoch == 0) {
        must(hn_loader_next(l, &b, &e) == HONE_OK && b.n_tok <= hn_loader_max_tok(l));
        n_tok += b.n_tok, n_target += b.n_target, n_doc += b.n_doc;
    }
    must(n_doc == d->n && n_tok == d->stats.n_tok && n_target == d->stats.n_target);
    hn_loader_free(l);
}

static void remove_folder(void) { df_end(NULL); }

/* A folder as the input says; in it a second one, or 40 within each other. */
static const char *make_folder(const char *s, size_t n, bool deep)
{
    static const char *const names[] = { "a.txt",      "b.md",  "c.jsonl", "d.csv",
                                         "sub/e.TEXT", "f.pdf", ".g.txt",  "sub/h.tsv" };
    char path[400], cmd[120];
    snprintf(cmd, sizeof cmd, "rm -rf %s/data", df_dir);
    must(system(cmd) == 0);
    size_t k = (size_t)snprintf(path, sizeof path, "%s/data", df_dir);
    must(mkdir(path, 0700) == 0);
    for (int i = 0; deep && i < 40; i++) {
        k += (size_t)snprintf(path + k, sizeof path - k, "/d");
        must(mkdir(path, 0700) == 0);
    }
    snprintf(path, sizeof path, "%s/data/sub", df_dir);
    if (n > 40) must(mkdir(path, 0700) == 0); /* else some names lead nowhere */
    while (n) {
        const char *end = memchr(s + 1, 0, n - 1);
        size_t len = end ? (size_t)(end - s) : n;
        snprintf(path, sizeof path, "%s/data/%s", df_dir, names[*s & 7]);
        FILE *f = fopen(path, "wb");
        if (f) {
            fwrite(s + 1, 1, len - 1, f);
            fclose(f);
        }
        s += len + (end != NULL), n -= len + (end != NULL);
    }
    return df_path("data");
}

/* The rest of the input again and again, with a line end behind each, until the reader must take a second piece. */
static const char *make_long(const char *name, const char *s, size_t n)
{
    const size_t most = (1 << 20) + (300 << 10);
    char *all = malloc(most + n + 1);
    size_t at = 0;
    must(all != NULL);
    while (at < most && n > 2000) {
        memcpy(all + at, s, n);
        at += n;
        all[at++] = '\n';
    }
    const char *path = df_write(name, all, at);
    free(all);
    return path;
}

static const char *make_other(const char *s, size_t n)
{
    unsigned what = n ? (unsigned char)*s : 0;
    if (n) s++, n--;
    switch (what & 7) {
    case 0: return df_write("f.tsv", s, n);
    case 1: return df_write("f.bin", s, n);
    case 2: return make_folder(s, n, false);
    case 3: return make_folder(s, n, true);
    case 4: return make_long("f.jsonl", s, n);
    case 5: return df_write("f.markdown", s, n);
    case 6: return df_path("not-there.txt");
    default: return df_write("f.ndjson", s, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hone_model *plain, *chat;
    if (!plain) {
        must(df_begin(NULL) == 0);
        atexit(remove_folder);
        plain = df_model("plain.gguf", NULL, false);
        chat = df_model(
            "chat.gguf",
            "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
            "{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
            "}}{% endif %}",
            true);
    }
    if (size < 1 || size > 1 << 16) return 0;
    unsigned how = data[0];
    bool other = (how >> 2 & 3) == 3; /* the mask that is none */
    const char *name = other ? how & 1 ? how & 2 ? "f.md" : "f.csv" : "f.json" : how & 1 ? "f.txt" : "f.jsonl";
    const char *text = (const char *)data + 1;
    bool more = size > 2 && !*text;
    const char *path = more ? make_other(text + 1, size - 2) : df_write(name, text, size - 1);
    int32_t seq = how & 2 ? 9 : 300;
    hn_data_params p = { .path = &path,
                         .n_path = 1,
                         .seq = seq,
                         .mask = (how >> 2 & 3) % 3,
                         .max_bad = how & 16 ? 1000 : 0,
                         .special = how & 32 };
    const hone_model *m = how & 64 ? plain : chat;
    hn_dataset *a = NULL, *b = NULL, *second = NULL;
    hone_error ea = { 0 }, eb = { 0 };
    if (more && (text[1] & 7) == 4) { /* long: once is enough */
        if (hn_dataset_read(&a, m, &p, &ea) == HONE_OK) check_samples(a, seq);
        hn_dataset_free(a);
        return 0;
    }
    hone_status sa = hn_dataset_read(&a, m, &p, &ea), sb = hn_dataset_read(&b, m, &p, &eb);
    must(sa == sb && !a == (sa != HONE_OK) && strcmp(ea.message, eb.message) == 0);
    if (!(how & 1) && !other && !more) check_lines(text, size - 1);
    if (a) {
        must(a->hash == b->hash);
        check_samples(a, seq);
        check_loader(a, seq, how & 128);
        int64_t n = a->n;
        if (hn_dataset_split(a, 0.3, how, &second, &ea) == HONE_OK) {
            must(a->n + second->n == n && a->n > 0 && second->n > 0);
            check_samples(second, seq);
        }
    } else {
        must(ea.message[0] && (strncmp(ea.message, df_dir, strlen(df_dir)) == 0));
    }
    hn_dataset_free(a);
    hn_dataset_free(b);
    hn_dataset_free(second);
    hn_bpe *v = NULL;
    static const char *const special[] = { "<s>", "ab" };
    if (hn_bpe_train(&v,
                     &(hn_bpe_params){
                         .path = &path, .n_path = 1, .rules = { .n_vocab = 300, .special = special, .n_special = 2 } },
                     &ea) == HONE_OK)
        must(v->n >= 258 && v->n <= 300 && v->n_pair >= v->n - 258);
    hn_bpe_free(v);
    return 0;
}
