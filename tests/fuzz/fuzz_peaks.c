/* Fuzz target: the two other files that the laboratory reads, each its own JSON: the machine's measured peaks, and
 * answers with their sketch (two of these, a byte 0 between, are compared). The first byte says which. Also answers as
 * hone keeps them, edited as the input says, or two of them with what two objects change (an object changes items of a
 * list by their numbers; null takes a member away, and of a list all from there on).
 * covers: src/lab/machine/peaks_store.c src/lab/quality/sketch.c src/base/json_tree.c src/lab/record/record_read.c */
#include "base/json_text.h"
#include "fuzz_file.h"
#include "lab/quality/sketch.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_peaks(ff_in in)
{
    hn_peaks p;
    hone_error e = { 0 };
    char said[2000];
    hn_environ env = { 0 };
    const char *path = ff_put("peaks.json", in.p, in.n);
    json_t *o = json_loadb((const char *)in.p, in.n, JSON_REJECT_DUPLICATES, NULL);
    json_t *machine = json_object_get(o, "machine");
    const char *hash = json_string_value(json_object_get(machine, "hash")),
               *level = json_string_value(json_object_get(machine, "level"));
    snprintf(env.hash, sizeof env.hash, "%s", hash ? hash : "");
    hone_status st = hn_peaks_load(&p, path, &env, level ? level : "avx2", &e);
    FF_MUST(st == HONE_OK || e.message[0]);
    if (st == HONE_OK) {
        FF_MUST(hn_peaks_check(&p, &e) == HONE_OK && hn_peaks_decode_threads(&p) >= 1);
        for (int k = 0; k < HN_PEAK_KINDS; k++)
            for (int32_t t = 0; t < 70; t += 3) {
                double at = hn_peaks_at(&p, (hn_peak_kind)k, t);
                FF_MUST(isnan(at) || at >= 0);
                hn_peaks_most(&p, (hn_peak_kind)k, t);
            }
        hn_peaks_say(&p, said, sizeof said);
        FF_MUST(hn_peaks_store(&p, ff_path("again.json"), &e) == HONE_OK);
        hn_peaks again;
        FF_MUST(hn_peaks_load(&again, ff_path("again.json"), &env, p.level, &e) == HONE_OK);
    }
    json_decref(o);
}

/* A source of logits: which of three is greatest follows from the token before. */
static hone_status run_fake(void *arg, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    for (int32_t i = 0; i < n_tok; i++)
        for (int32_t k = 0; tokens[i].want_logits && k < 3; k++)
            *logits++ = (float)((tokens[i].id * 3 + k * 7 + tokens[i].pos) % 11) / 4;
    return HONE_OK;
}

/* Answers as hone keeps them, of that source. */
static ff_in good_answers(void)
{
    static uint8_t *good;
    static size_t n;
    static hn_answers a;
    static hn_q_prompts prompts;
    hone_error e = { 0 };
    if (!good) {
        hn_q_prompts_random(&prompts, 3);
        FF_MUST(hn_answers_run(&a, &(hn_logits_source){ .n_vocab = 3, .run = run_fake }, &prompts, &e) == HONE_OK);
        FF_MUST(hn_answers_save(&a, ff_path("good.json"), &e) == HONE_OK);
        hn_answers_free(&a);
        n = ff_get(ff_path("good.json"), &good);
    }
    return (ff_in){ good, n };
}

/* in: the others; without any: the good ones, read once. */
static void check_answers(ff_in first, ff_in in, bool with_good)
{
    static hn_answers a, b, good;
    static bool has_good;
    hone_error e = { 0 };
    hn_answers_diff d;
    const char *path = ff_put("a.json", first.p, first.n), *other = ff_put("b.json", in.p, in.n);
    hn_answers_is_file(path);
    if (with_good && !has_good) FF_MUST(has_good = hn_answers_load(&good, ff_path("good.json"), &e) == HONE_OK);
    bool one = hn_answers_load(&a, path, &e) == HONE_OK;
    FF_MUST(one || e.message[0]);
    bool two = in.n && hn_answers_load(&b, other, &e) == HONE_OK;
    const hn_answers *to = with_good ? &good : two ? &b : &a;
    if (one && hn_answers_compare(&d, &a, to, &e) == HONE_OK) json_decref(hn_answers_diff_json(&d));
    if (one) {
        FF_MUST(hn_answers_save(&a, ff_path("c.json"), &e) == HONE_OK || e.message[0]);
        json_decref(hn_answers_json(&a, false));
        double like = hn_id_similarity(a.q.ids[0], HN_Q_STEPS, to->q.ids[0], HN_Q_STEPS);
        FF_MUST(like >= 0 && like <= 1);
    }
    if (two) hn_answers_free(&b);
    if (one) hn_answers_free(&a);
}

static void change(json_t *o, const json_t *with)
{
    const char *key;
    json_t *v, *own;
    json_object_foreach((json_t *)(uintptr_t)with, key, v)
    {
        size_t i = (size_t)strtoul(key, NULL, 10);
        own = json_is_array(o) ? json_array_get(o, i) : json_object_get(o, key);
        if (json_is_object(v) && (json_is_object(own) || json_is_array(own))) change(own, v);
        else if (json_is_object(o) && json_is_null(v)) json_object_del(o, key);
        else if (json_is_object(o)) json_object_set(o, key, v);
        else if (!json_is_null(v)) json_array_set(o, i, v);
        else
            while (json_array_size(o) > i) json_array_remove(o, json_array_size(o) - 1);
    }
}

/* The good ones with what the text changes; malloc'ed. NULL: it is no object. */
static char *changed(ff_in text)
{
    ff_in good = good_answers();
    json_t *with = text.n ? json_loadb((const char *)text.p, text.n, 0, NULL) : json_object(), *o = NULL;
    if (json_is_object(with)) {
        FF_MUST((o = json_loadb((const char *)good.p, good.n, 0, NULL)));
        change(o, with);
    }
    char *out = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(with), json_decref(o);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    if (!*ff_dir) ff_begin();
    unsigned how = ff_u8(&in);
    if (how & 4) {
        ff_in first = ff_until(&in, 0);
        char *a = changed(first), *b = a ? changed(in) : NULL;
        if (b) check_answers((ff_in){ (uint8_t *)a, strlen(a) }, (ff_in){ (uint8_t *)b, strlen(b) }, false);
        free(a), free(b);
    } else if (how & 2) { /* against the good ones */
        ff_in good = good_answers();
        size_t n = good.n;
        uint8_t *edited = ff_edited(good.p, &n, &in);
        check_answers((ff_in){ edited, n }, (ff_in){ 0 }, true);
        free(edited);
    } else if (how & 1) {
        ff_in first = ff_until(&in, 0);
        check_answers(first, in, false);
    } else {
        check_peaks(in);
    }
    FF_MUST(!hn_json_lost()); /* a text that is none of JSON would be taken for lost memory from here on */
    return 0;
}
