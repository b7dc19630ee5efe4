/* Fuzz target: stored baselines, as hone lab baseline writes them and hone lab gate reads them. The input is JSON, a
 * byte 0, and JSON of the records of today (without it, those of the baseline); the checksum is made to fit. A
 * baseline that is accepted can be compared with anything, and every verdict is one.
 * covers: src/lab/judge/baseline.c src/lab/record/record_read.c src/base/json_tree.c */
#include "cli/lab/gate_settings.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the file states it: SHA-256 of everything but itself. */
static void fix_sum(json_t *b)
{
    char hex[65];
    unsigned char sum[32];
    hn_sha256 h;
    json_object_del(b, "sum");
    char *s = json_dumps(b, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (!s) return;
    hn_sha256_init(&h);
    hn_sha256_add(&h, s, strlen(s));
    hn_sha256_end(&h, sum);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    json_object_set_new(b, "sum", json_string(hex));
    free(s);
}

static void compare(json_t *b, json_t *now, const hn_baseline_rule *rule)
{
    hn_baseline_row *rows = NULL;
    size_t n = 0;
    hone_error e = { 0 };
    char text[2000];
    hone_status st = hn_baseline_compare(&rows, &n, b, now, rule, &e);
    FF_MUST(st == HONE_OK || e.message[0]);
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        FF_MUST(rows[i].id && rows[i].metric && rows[i].unit && (unsigned)rows[i].verdict < HN_AB_VERDICTS);
        json_decref(hn_baseline_row_json(&rows[i]));
    }
    if (st == HONE_OK) FF_MUST((unsigned)hn_baseline_verdict(rows, n) < HN_AB_VERDICTS);
    if (st == HONE_OK) json_decref(hn_gate_rows_json(rows, n));
    free(rows);
    hn_gate_when(text, sizeof text, b);
    json_t *was = json_array_get(json_object_get(b, "records"), 0), *is = json_array_get(now, 0);
    hn_environ_differ(text, sizeof text, json_object_get(was, "env"), json_object_get(is, "env"));
    text[0] = 0;
    hn_quality_differ(text, sizeof text, json_object_get(b, "quality"), json_object_get(is, "quality"));
    text[0] = 0;
    hn_model_bytes_differ(text, sizeof text, json_object_get(b, "model"), json_object_get(is, "model"));
    text[0] = 0;
    hn_gate_answers_differ(text, sizeof text, was, is);
}

/* Made anew of what was read: name, records and the rest come from the input. */
static void make_again(json_t *b, const char *path)
{
    hone_error e = { 0 };
    json_t *again = NULL, *bytes = NULL;
    const char *name = json_string_value(json_object_get(b, "name"));
    char file[400] = "", **names;
    size_t n;
    if (!name) name = "";
    hone_status st = hn_baseline_make(&again, name, json_object_get(b, "records"), json_object_get(b, "model"),
                                      json_object_get(b, "quality_detail"), json_object_get(b, "args"), &e);
    FF_MUST((st == HONE_OK) == (again != NULL) && (again || e.message[0]));
    if (hn_baseline_path(file, sizeof file, ff_dir, name, &e) == HONE_OK) {
        FF_MUST(!strchr(file + strlen(ff_dir) + 1, '/'));
        if (again) FF_MUST(hn_baseline_store(again, file, &e) == HONE_OK);
    }
    json_decref(again);
    FF_MUST(hn_baseline_list(&names, &n, ff_dir, &e) == HONE_OK);
    hn_baseline_list_free(names, n);
    if (access(file, F_OK) == 0) unlink(file);
    FF_MUST(hn_model_bytes(&bytes, path, NULL, &e) == HONE_OK);
    json_decref(bytes);
    /* the same in two files, of which one may be missing */
    const char *second = ff_path("m-00002-of-00002.gguf");
    ff_put("m-00001-of-00002.gguf", name, strlen(name));
    if (strlen(name) & 1) ff_put("m-00002-of-00002.gguf", "b", 1);
    st = hn_model_bytes(&bytes, ff_path("m-00001-of-00002.gguf"), NULL, &e);
    FF_MUST((st == HONE_OK) == (access(second, F_OK) == 0));
    if (st == HONE_OK) json_decref(bytes);
    unlink(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    hone_error e = { 0 };
    json_t *b = NULL;
    if (!*ff_dir) ff_begin();
    ff_in first = ff_until(&in, 0);
    json_t *o = json_loadb((const char *)first.p, first.n, 0, NULL);
    const char *path = ff_path("b.json");
    if (json_is_object(o)) {
        fix_sum(o);
        char *text = json_dumps(o, JSON_REAL_PRECISION(12));
        FF_MUST(text);
        ff_put("b.json", text, strlen(text));
        free(text);
    } else {
        ff_put("b.json", first.p, first.n);
    }
    json_decref(o);
    hone_status st = hn_baseline_load(&b, path, &e);
    FF_MUST((st == HONE_OK) == (b != NULL) && (b || strstr(e.message, path) || e.message[0]));
    if (b) {
        json_t *now = in.n ? json_loadb((const char *)in.p, in.n, 0, NULL) : json_incref(json_object_get(b, "records"));
        if (!json_is_array(now)) json_decref(now), now = json_array();
        compare(b, now, &(hn_baseline_rule){ .alpha = 0.05 });
        compare(b, now, &(hn_baseline_rule){ .metrics = "all", .margin = 0.02, .alpha = 0.01 });
        compare(b, now, &(hn_baseline_rule){ .metrics = "decode,rss", .alpha = 0.05 });
        json_decref(now);
        make_again(b, path);
        FF_MUST(hn_baseline_store(b, ff_path("again.json"), &e) == HONE_OK);
        json_t *again;
        st = hn_baseline_load(&again, ff_path("again.json"), &e); /* reals keep 12 digits: the sum may differ once */
        FF_MUST(st == HONE_OK || st == HONE_E_FORMAT);
        json_decref(again);
        json_decref(b);
    }
    return 0;
}
