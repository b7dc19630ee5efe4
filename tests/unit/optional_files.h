/* Files of a published vector with keys changed, and what is answered from them; nothing of hone writes them. */
#ifndef HN_OPTIONAL_FILES_H
#define HN_OPTIONAL_FILES_H

#include "engine/engine.h"
#include "family_vectors.h"

#include <math.h>

enum { PAGE = 64, ROWS = MAX_TOK * MAX_VOCAB };

/* The vector's key of that suffix becomes the value, NULL: is left out. */
static inline void set_key(vector *v, const char *suffix, const char *type, json_t *value)
{
    char key[96];
    json_t *kv = json_object_get(v->j, "kv");
    snprintf(key, sizeof key, "%s.%s", json_string_value(json_object_get(v->j, "arch")), suffix);
    for (size_t i = json_array_size(kv); i-- > 0;)
        if (!strcmp(json_string_value(json_array_get(json_array_get(kv, i), 0)), key)) json_array_remove(kv, i);
    if (value) json_array_append_new(kv, json_pack("[s,s,o]", key, type, value));
}

static inline json_t *numbers(int n, const int *of)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(of[i]));
    return list;
}

static inline hone_model *opened(const vector *v)
{
    hone_error err = { 0 };
    hone_model *m;
    save_without(v, tm_path("optional.gguf"), NULL);
    if (hone_model_open(&m, tm_path("optional.gguf"), NULL, &err)) fail_msg("%s: %s", v->name, err.message);
    return m;
}

static inline void refused(const vector *v, const char *words)
{
    hone_error err = { 0 };
    hone_model *m;
    save_without(v, tm_path("optional.gguf"), NULL);
    assert_int_not_equal(hone_model_open(&m, tm_path("optional.gguf"), NULL, &err), HONE_OK);
    if (!strstr(err.message, words)) fail_msg("not \"%s\": %s", words, err.message);
}

static inline void answer(const vector *v, int32_t chunk, float y[ROWS])
{
    hone_model *m = opened(v);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, PAGE, 1, chunk, HONE_CACHE_F32);
    memset(y, 0, ROWS * sizeof *y);
    tm_run(s, 0, v->tok, v->n, y);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
}

/* The farthest two logits of rows [from, to). */
static inline double apart(const vector *v, const float *a, const float *b, int from, int to)
{
    double most = 0;
    for (int i = from * v->n_vocab; i < to * v->n_vocab; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

#endif
