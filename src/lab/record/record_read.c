/* record_read: shapes of what the laboratory reads. Owns which field is of which kind; refuses to
 * know what is done with it. */
#define _GNU_SOURCE
#include "lab/record/record_read.h"
#include "base/json_tree.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <ctype.h>
#include <stdlib.h>

/* ---- one value ------------------------------------------------------------------------------- */

static bool is_name(const char *s, size_t n)
{
    bool ok = n > 0 && n <= 128 && isalnum((unsigned char)s[0]);
    for (size_t i = 0; i < n && ok; i++)
        ok = (unsigned char)s[i] < 0x80 && s[i] && (isalnum((unsigned char)s[i]) || strchr("._-+", s[i]));
    return ok;
}

const char *hn_record_text(const json_t *o, const char *key) { return hn_json_text_of(o, key); }
double hn_record_number(const json_t *o, const char *key) { return hn_json_number_of(o, key); }

static unsigned kind_of(json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_STRING: return HN_IS_STRING | (is_name(json_string_value(v), json_string_length(v)) ? HN_IS_NAME : 0);
    case JSON_INTEGER: return HN_IS_WHOLE | HN_IS_NUMBER;
    case JSON_REAL: return HN_IS_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return HN_IS_BOOL;
    case JSON_ARRAY: return HN_IS_ARRAY;
    case JSON_OBJECT: return HN_IS_OBJECT;
    case JSON_NULL: return HN_IS_NULL;
    }
    return 0;
}

static bool within(json_t *v, const hn_shape *s)
{
    if (s->least == 0 && s->most == 0) return true;
    double x = json_is_number(v)   ? json_number_value(v)
               : json_is_array(v)  ? (double)json_array_size(v)
               : json_is_string(v) ? (double)json_string_length(v)
                                   : s->least;
    return x >= s->least && x <= s->most;
}

static void say_expected(char *dst, size_t cap, const hn_shape *s)
{
    static const struct {
        unsigned is;
        const char *word;
    } words[] = { { HN_IS_NAME, "a plain name" }, { HN_IS_STRING, "a string" },    { HN_IS_WHOLE, "a whole number" },
                  { HN_IS_NUMBER, "a number" },   { HN_IS_BOOL, "true or false" }, { HN_IS_ARRAY, "an array" },
                  { HN_IS_OBJECT, "an object" },  { HN_IS_NULL, "null" } };
    size_t n = 0;
    dst[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && n < cap; i++)
        if (s->is & words[i].is) n += (size_t)snprintf(dst + n, cap - n, "%s%s", n ? " or " : "", words[i].word);
    if ((s->least != 0 || s->most != 0) && n < cap) {
        bool many = !(s->is & (HN_IS_WHOLE | HN_IS_NUMBER));
        snprintf(dst + n, cap - n, " of %.10g to %.10g%s", s->least, s->most,
                 !many                 ? ""
                 : s->is & HN_IS_ARRAY ? " elements"
                                       : " bytes");
    }
}

static void say_seen(char *dst, size_t cap, json_t *v)
{
    char part[100];
    if (json_is_string(v))
        snprintf(dst, cap, "\"%s\"", hn_escape(part, sizeof part, json_string_value(v), json_string_length(v)));
    else if (json_is_number(v)) snprintf(dst, cap, "%.17g", json_number_value(v));
    else if (json_is_array(v)) snprintf(dst, cap, "an array of %zu", json_array_size(v));
    else snprintf(dst, cap, "%s", hn_json_kind(v));
}

/* ---- a path ---------------------------------------------------------------------------------- */

typedef struct walk {
    const hn_shape *s;
    char at[240]; /* the way to the value looked at, for words */
    char *why;
    size_t cap;
} walk;

static bool refuse(walk *w, json_t *v)
{
    char seen[140], expected[160];
    say_seen(seen, sizeof seen, v);
    say_expected(expected, sizeof expected, w->s);
    snprintf(w->why, w->cap, "field %s is %s, expected %s", w->at, v ? seen : "missing", expected);
    return false;
}

static bool step(walk *w, json_t *v, const char *rest);

/* The value of one more name, or of an element, of what is at w->at. */
static bool into(walk *w, json_t *v, const char *rest, const char *fmt, const char *name, size_t i)
{
    size_t n = strlen(w->at);
    char shown[100];
    if (name)
        snprintf(w->at + n, sizeof w->at - n, fmt, n ? "." : "", hn_escape(shown, sizeof shown, name, strlen(name)));
    else snprintf(w->at + n, sizeof w->at - n, fmt, i);
    bool ok = step(w, v, rest);
    w->at[n] = 0;
    return ok;
}

/* rest: what of the path is still to go from v. */
static bool step(walk *w, json_t *v, const char *rest)
{
    if (!*rest) {
        if (!v) return !(w->s->is & HN_IS_REQUIRED) || refuse(w, v);
        return ((kind_of(v) & w->s->is & ~(unsigned)HN_IS_REQUIRED) && within(v, w->s)) || refuse(w, v);
    }
    if (strncmp(rest, "[]", 2) == 0) {
        json_t *one;
        size_t i;
        json_array_foreach(v, i, one) if (!into(w, one, rest + 2, "[%zu]", NULL, i)) return false;
        return true;
    }
    if (*rest == '.') rest++;
    if (!json_is_object(v)) return true;
    size_t n = strcspn(rest, ".[");
    if (n == 1 && *rest == '*') {
        const char *key;
        json_t *one;
        json_object_foreach(v, key, one) if (!into(w, one, rest + 1, "%s%s", key, 0)) return false;
        return true;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, rest);
    return into(w, json_object_get(v, name), rest + n, "%s%s", name, 0);
}

bool hn_shape_fits(json_t *o, const hn_shape *shape, char *why, size_t cap)
{
    why[0] = 0;
    if (!json_is_object(o)) {
        snprintf(why, cap, "it is %s, expected an object", hn_json_kind(o));
        return false;
    }
    for (; shape->path; shape++) {
        walk w = { .s = shape, .why = why, .cap = cap };
        if (!step(&w, o, shape->path)) return false;
    }
    return true;
}

/* ---- shapes ----------------------------------------------------------------------------------- */

enum {
    TEXT = HN_IS_STRING,
    TEXT_0 = HN_IS_STRING | HN_IS_NULL,
    NUMBER_0 = HN_IS_NUMBER | HN_IS_NULL,
    WHOLE_0 = HN_IS_WHOLE | HN_IS_NULL,
    BOOL_0 = HN_IS_BOOL | HN_IS_NULL,
    LIST_0 = HN_IS_ARRAY | HN_IS_NULL,
    OBJECT = HN_IS_OBJECT,
    OBJECT_0 = HN_IS_OBJECT | HN_IS_NULL
};
#define COUNT 9007199254740992.0 /* whole in a double */
#define SMALL 2147483647.0
#define FIELD(path, is) \
    {                   \
        path, is, 0, 0  \
    }
#define UP_TO(path, is, most) \
    {                         \
        path, is, 0, most     \
    }
#define RANGE(path, is, least, most) \
    {                                \
        path, is, least, most        \
    }

/* The run for the quality hash, whoever keeps it. */
#define QUALITY_DETAIL                                                                                              \
    FIELD("quality_detail", OBJECT_0), FIELD("quality_detail.hash", TEXT_0), FIELD("quality_detail.valid", BOOL_0), \
        FIELD("quality_detail.reason", TEXT_0), FIELD("quality_detail.outer", OBJECT_0),                            \
        FIELD("quality_detail.ids", LIST_0), FIELD("quality_detail.ids[]", HN_IS_ARRAY),                            \
        UP_TO("quality_detail.ids[][]", HN_IS_WHOLE, SMALL)

/* Records of any age: what was never written may be missing, and is no string today if it once was a number. */
static const hn_shape bench[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                                  FIELD("id", TEXT),
                                  FIELD("record", TEXT_0),
                                  FIELD("ts", TEXT_0),
                                  FIELD("title", TEXT_0),
                                  FIELD("change", TEXT_0),
                                  FIELD("valid", BOOL_0),
                                  FIELD("invalid_reason", TEXT_0),
                                  FIELD("unit", TEXT_0 | OBJECT),
                                  FIELD("unit.*", TEXT_0),
                                  FIELD("better", TEXT_0 | OBJECT),
                                  FIELD("better.*", TEXT_0),
                                  FIELD("quality", TEXT_0),
                                  QUALITY_DETAIL,
                                  FIELD("env", OBJECT_0 | TEXT),
                                  FIELD("env.hash", TEXT_0),
                                  FIELD("env.cores", NUMBER_0),
                                  FIELD("env.cores_online", NUMBER_0),
                                  FIELD("env.mem_total_mb", NUMBER_0),
                                  FIELD("git", OBJECT_0),
                                  FIELD("git.commit", TEXT_0),
                                  FIELD("git.dirty", BOOL_0),
                                  FIELD("build", OBJECT_0 | TEXT),
                                  FIELD("build.cc", TEXT_0),
                                  FIELD("build.flags", TEXT_0),
                                  FIELD("engine", OBJECT_0 | TEXT),
                                  FIELD("engine.version", TEXT_0),
                                  FIELD("engine.name", TEXT_0),
                                  FIELD("model", OBJECT_0 | TEXT),
                                  FIELD("model.path_name", TEXT_0),
                                  FIELD("model.name", TEXT_0),
                                  FIELD("model.path", TEXT_0),
                                  FIELD("model.fingerprint", TEXT_0),
                                  FIELD("model.sha256", TEXT_0),
                                  UP_TO("model.params", NUMBER_0, 1e300),
                                  UP_TO("model.bytes", NUMBER_0, 1e300),
                                  FIELD("config", OBJECT_0),
                                  UP_TO("config.threads", WHOLE_0, SMALL),
                                  UP_TO("config.n_prompt", WHOLE_0, SMALL),
                                  UP_TO("config.n_gen", WHOLE_0, SMALL),
                                  UP_TO("config.depth", WHOLE_0, SMALL),
                                  UP_TO("config.chunk", WHOLE_0, SMALL),
                                  FIELD("config.kv", TEXT_0),
                                  FIELD("config.cpu", TEXT_0),
                                  FIELD("config.weights", TEXT_0),
                                  FIELD("config.variant", TEXT_0),
                                  FIELD("samples", LIST_0),
                                  FIELD("samples[]", NUMBER_0 | TEXT | OBJECT),
                                  FIELD("samples[].*", NUMBER_0 | TEXT | HN_IS_BOOL | LIST_0 | OBJECT),
                                  FIELD("samples[].ids", LIST_0),
                                  UP_TO("samples[].ids[]", HN_IS_WHOLE, SMALL),
                                  FIELD("samples[].gaps_ms", LIST_0),
                                  FIELD("samples[].gaps_ms[]", NUMBER_0),
                                  FIELD("stats", OBJECT_0),
                                  FIELD("stats.*", NUMBER_0 | LIST_0 | OBJECT),
                                  UP_TO("stats.n", WHOLE_0 | OBJECT, COUNT),
                                  FIELD("stats.median", NUMBER_0 | OBJECT),
                                  FIELD("stats.ci95", LIST_0 | OBJECT),
                                  FIELD("stats.ci95[]", NUMBER_0),
                                  UP_TO("stats.*.n", WHOLE_0, COUNT),
                                  FIELD("stats.*.median", NUMBER_0),
                                  FIELD("stats.*.ci95", LIST_0),
                                  FIELD("stats.*.ci95[]", NUMBER_0),
                                  FIELD("allocs", OBJECT_0),
                                  FIELD("allocs.*", NUMBER_0 | TEXT | OBJECT),
                                  FIELD("allocs.prompt.*", NUMBER_0 | TEXT),
                                  FIELD("roofline", OBJECT_0),
                                  FIELD("roofline.*", NUMBER_0 | TEXT | HN_IS_BOOL | OBJECT),
                                  FIELD("roofline.peaks.*", TEXT_0),
                                  FIELD("memory", OBJECT_0),
                                  FIELD("memory.*", NUMBER_0 | TEXT | LIST_0 | OBJECT | HN_IS_BOOL),
                                  FIELD("profile", OBJECT_0),
                                  FIELD("ledger", OBJECT_0),
                                  FIELD(NULL, 0) };

static const hn_shape ab[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                               FIELD("ts", TEXT_0),
                               FIELD("id", TEXT_0),
                               FIELD("metric", TEXT_0),
                               FIELD("unit", TEXT_0),
                               FIELD("note", TEXT_0),
                               FIELD("a", TEXT_0 | OBJECT),
                               FIELD("b", TEXT_0 | OBJECT),
                               FIELD("a.label", TEXT_0),
                               FIELD("b.label", TEXT_0),
                               FIELD("a.quality", TEXT_0),
                               FIELD("b.quality", TEXT_0),
                               FIELD("ratio", NUMBER_0),
                               FIELD("ci95", LIST_0),
                               FIELD("ci95[]", NUMBER_0),
                               FIELD("margin", NUMBER_0),
                               FIELD("verdict", TEXT_0),
                               FIELD("results", LIST_0),
                               FIELD("results[]", OBJECT),
                               FIELD("rounds", LIST_0 | HN_IS_WHOLE),
                               FIELD("aa_half_width", NUMBER_0),
                               FIELD("env", OBJECT_0 | TEXT),
                               FIELD(NULL, 0) };

static const hn_shape gate[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                                 FIELD("ts", TEXT_0),
                                 FIELD("baseline", TEXT_0),
                                 FIELD("quality_differs", TEXT_0),
                                 FIELD("verdict", TEXT_0),
                                 FIELD("rows", LIST_0),
                                 FIELD("rows[]", OBJECT),
                                 FIELD("records", LIST_0),
                                 FIELD("notes", LIST_0),
                                 FIELD(NULL, 0) };

static const hn_shape train[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                                  FIELD("kind", TEXT_0),
                                  FIELD("ts", TEXT_0),
                                  UP_TO("step", WHOLE_0, COUNT),
                                  FIELD("loss", NUMBER_0 | TEXT),
                                  FIELD("val_loss", NUMBER_0 | TEXT),
                                  FIELD("base", OBJECT_0 | TEXT),
                                  FIELD(NULL, 0) };

const hn_shape hn_shape_baseline[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                                       FIELD("name", HN_IS_NAME | HN_IS_REQUIRED),
                                       FIELD("ts", TEXT | HN_IS_REQUIRED),
                                       FIELD("env", OBJECT | HN_IS_REQUIRED),
                                       FIELD("env.hash", TEXT | HN_IS_REQUIRED),
                                       FIELD("git", OBJECT_0),
                                       FIELD("git.commit", TEXT_0),
                                       FIELD("git.dirty", BOOL_0),
                                       FIELD("build", OBJECT_0),
                                       FIELD("build.cc", TEXT_0),
                                       FIELD("build.flags", TEXT_0),
                                       FIELD("engine", OBJECT_0),
                                       FIELD("engine.version", TEXT_0),
                                       FIELD("model", OBJECT_0 | HN_IS_REQUIRED),
                                       RANGE("model.path", TEXT | HN_IS_REQUIRED, 1, 4095),
                                       UP_TO("model.bytes", HN_IS_WHOLE | HN_IS_REQUIRED, COUNT),
                                       RANGE("model.sha256", TEXT | HN_IS_REQUIRED, 1, 64),
                                       RANGE("model.files", HN_IS_ARRAY | HN_IS_REQUIRED, 1, 100000),
                                       FIELD("model.files[]", OBJECT),
                                       FIELD("model.files[].name", TEXT | HN_IS_REQUIRED),
                                       UP_TO("model.files[].bytes", HN_IS_WHOLE | HN_IS_REQUIRED, COUNT),
                                       RANGE("model.files[].sha256", TEXT | HN_IS_REQUIRED, 1, 64),
                                       FIELD("quality", TEXT_0),
                                       QUALITY_DETAIL,
                                       RANGE("ids", HN_IS_ARRAY | HN_IS_REQUIRED, 1, 1 << 16),
                                       FIELD("ids[]", HN_IS_NAME),
                                       UP_TO("args", HN_IS_ARRAY | HN_IS_REQUIRED, 256),
                                       FIELD("args[]", TEXT),
                                       RANGE("records", HN_IS_ARRAY | HN_IS_REQUIRED, 1, 1 << 20),
                                       FIELD("records[]", OBJECT),
                                       FIELD("sum", TEXT | HN_IS_REQUIRED),
                                       FIELD(NULL, 0) };

const hn_shape hn_shape_answers[] = { FIELD("schema", TEXT | HN_IS_REQUIRED),
                                      FIELD("hash", TEXT_0),
                                      FIELD("full", TEXT_0),
                                      FIELD("outer", OBJECT_0),
                                      FIELD("covers", OBJECT_0),
                                      RANGE("vocab_sha256", TEXT | HN_IS_REQUIRED, 64, 64),
                                      FIELD("label", TEXT_0),
                                      FIELD("prompts", TEXT | HN_IS_REQUIRED),
                                      FIELD("reason", TEXT_0),
                                      RANGE("n_vocab", HN_IS_WHOLE | HN_IS_REQUIRED, 1, SMALL),
                                      FIELD("valid", BOOL_0),
                                      UP_TO("distinct", WHOLE_0, SMALL),
                                      FIELD("ids", HN_IS_ARRAY | HN_IS_REQUIRED),
                                      FIELD("ids[]", HN_IS_ARRAY),
                                      UP_TO("ids[][]", HN_IS_WHOLE, SMALL),
                                      FIELD("sketch", HN_IS_ARRAY | HN_IS_REQUIRED),
                                      FIELD("sketch[]", OBJECT),
                                      FIELD("sketch[].lse", HN_IS_NUMBER | HN_IS_REQUIRED),
                                      FIELD("sketch[].ids", HN_IS_ARRAY | HN_IS_REQUIRED),
                                      UP_TO("sketch[].ids[]", HN_IS_WHOLE, SMALL),
                                      FIELD("sketch[].logits", HN_IS_ARRAY | HN_IS_REQUIRED),
                                      FIELD("sketch[].logits[]", HN_IS_NUMBER),
                                      FIELD("model", OBJECT_0 | TEXT),
                                      FIELD("config", OBJECT_0),
                                      FIELD(NULL, 0) };

bool hn_record_fits(json_t *record, char *why, size_t cap)
{
    static const struct {
        const char *begin;
        const hn_shape *shape;
    } known[] = { { "hone.bench/", bench }, { "hone.ab/", ab }, { "hone.gate/", gate }, { "hone.train/", train } };
    const char *schema = hn_json_text_of(record, "schema");
    why[0] = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(schema, known[i].begin, strlen(known[i].begin)) == 0)
            return hn_shape_fits(record, known[i].shape, why, cap);
    return true;
}

/* ---- settings ---------------------------------------------------------------------------------- */

enum { MAX_TOKENS = 1 << 24 };

/* kind: 'i' a whole number, 'f' a number, 'l' whole numbers with commas, 'c' one of the words, 'n' a name, 'u' a seed,
 * 0 a flag */
typedef struct setting {
    const char *name;
    char kind;
    double least, most;
    const char *words;
} setting;
static const setting settings[] = { { "n-prompt", 'i', 0, MAX_TOKENS, NULL },
                                    { "n-gen", 'i', 0, MAX_TOKENS, NULL },
                                    { "depth", 'i', 0, MAX_TOKENS, NULL },
                                    { "threads", 'i', 1, 1024, NULL },
                                    { "threads-batch", 'i', 1, 1024, NULL },
                                    { "chunk", 'i', 1, 65536, NULL },
                                    { "warmup", 'i', 0, 10000, NULL },
                                    { "warm-up-time", 'f', 0, 86400, NULL },
                                    { "measurement-time", 'f', 0, 86400, NULL },
                                    { "seed", 'u', 0, 0, NULL },
                                    { "columns", 'l', 1, 65536, NULL },
                                    { "counts", 'l', 1, 1e9, NULL },
                                    { "kv", 'c', 0, 0, "f16|f32|q8_0" },
                                    { "cpu", 'c', 0, 0, "scalar|avx2|avx_vnni|avx512|neon|neon_dotprod|neon_i8mm" },
                                    { "layout", 'c', 0, 0, "plain|packed|both" },
                                    { "packed", 'c', 0, 0, "auto|off|given" },
                                    { "quality", 'c', 0, 0, "full|quick" },
                                    { "pre", 'n', 0, 0, NULL },
                                    { "preset", 'n', 0, 0, NULL },
                                    { "allow-paging", 0, 0, 0, NULL },
                                    { "quick", 0, 0, 0, NULL } };

bool hn_settings_id(const char *id)
{
    size_t n = strlen(id);
    bool ok = n > 0 && n <= 128 && isalnum((unsigned char)id[0]);
    for (size_t i = 0; i < n && ok; i++) ok = isalnum((unsigned char)id[i]) || strchr("._-+*?[]", id[i]);
    return ok;
}

static bool among(const char *words, const char *value)
{
    size_t n = strlen(value);
    for (const char *w = words; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL)
        if (n && strcspn(w, "|") == n && strncmp(w, value, n) == 0) return true;
    return false;
}

/* Writes the value again, as hone writes such values; false: it is none. */
static bool rebuild(char *dst, size_t cap, const setting *s, const char *value)
{
    hn_jread j;
    hn_jread_num v;
    size_t n = 0;
    const char *p = value;
    dst[0] = 0;
    if (s->kind == 'c') return among(s->words, value) && snprintf(dst, cap, "%s", value) < (int)cap;
    if (s->kind == 'n') return is_name(value, strlen(value)) && snprintf(dst, cap, "%s", value) < (int)cap;
    do { /* a list of one, or of several */
        size_t len = s->kind == 'l' ? strcspn(p, ",") : strlen(p);
        if (len == 0 || isspace((unsigned char)*p) ||
            hn_jread_begin(&j, p, len, NULL, "setting", NULL, NULL) != HONE_OK)
            return false;
        if (hn_jread_number(&j, &v) != HONE_OK || j.p != j.end) return false;
        if (s->kind != 'f' && v.kind == HN_JSON_REAL) return false;
        if (s->kind == 'u' && v.kind == HN_JSON_INT && v.i < 0) return false;
        if (s->kind != 'u' && !(v.d >= s->least && v.d <= s->most)) return false;
        if (s->kind == 'f') n += (size_t)snprintf(dst + n, cap - n, "%.9g", v.d);
        else n += (size_t)snprintf(dst + n, cap - n, "%s%llu", n ? "," : "", (unsigned long long)v.u);
        p += len;
    } while (n < cap && *p++ == ',');
    return n < cap;
}

static void say_setting(char *dst, size_t cap, const setting *s)
{
    if (s->kind == 'c') snprintf(dst, cap, "--%s=%s", s->name, s->words);
    else if (s->kind == 'n') snprintf(dst, cap, "--%s=NAME", s->name);
    else if (s->kind == 'u') snprintf(dst, cap, "--%s=N", s->name);
    else if (s->kind == 0) snprintf(dst, cap, "--%s alone", s->name);
    else
        snprintf(dst, cap, "--%s=%s of %.10g to %.10g", s->name, s->kind == 'l' ? "numbers" : "a number", s->least,
                 s->most);
}

/* One of args as an option, malloc'ed in *out. */
static hone_status read_setting(char **out, json_t *arg, size_t i, const char *packed, hone_error *err)
{
    const char *text = json_string_value(arg);
    size_t len = json_string_length(arg);
    char value[300], seen[160], expected[200] = "";
    *out = NULL;
    if (!text)
        return HN_FAIL(err, HONE_E_ARG, "args[%zu] is %s, expected a text such as --threads=2", i, hn_json_kind(arg));
    hn_escape(seen, sizeof seen, text, len);
    const char *eq = strlen(text) == len && strncmp(text, "--", 2) == 0 ? text + strcspn(text, "=") : NULL;
    for (size_t k = 0; eq && k < sizeof settings / sizeof *settings; k++) {
        const setting *s = &settings[k];
        if ((size_t)(eq - text) - 2 != strlen(s->name) || strncmp(text + 2, s->name, strlen(s->name)) != 0) continue;
        bool ok = s->kind ? *eq && rebuild(value, sizeof value, s, eq + 1) : !*eq;
        say_setting(expected, sizeof expected, s);
        if (!ok) break;
        bool given = strcmp(s->name, "packed") == 0 && strcmp(value, "given") == 0;
        if (given && !packed)
            return HN_FAIL(err, HONE_E_ARG,
                           "args[%zu]: it was measured with a packed file of its own; expected "
                           "--packed FILE",
                           i);
        int n = s->kind ? asprintf(out, "--%s=%s", s->name, given ? packed : value) : asprintf(out, "--%s", s->name);
        if (n >= 0) return HONE_OK;
        *out = NULL;
        return HN_FAIL(err, HONE_E_NOMEM, "settings of a measurement");
    }
    if (expected[0]) return HN_FAIL(err, HONE_E_ARG, "args[%zu] is '%s', expected %s", i, seen, expected);
    return HN_FAIL(err, HONE_E_ARG,
                   "args[%zu] is '%s': not a setting that is taken from a file; expected lengths, "
                   "threads, kinds of cache and kernels, as --n-prompt=512",
                   i, seen);
}

hone_status hn_settings_read(json_t **out, json_t *args, const char *packed, hone_error *err)
{
    json_t *all = json_array(), *arg;
    hone_status st = all ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "settings of a measurement");
    size_t i;
    *out = NULL;
    if (st == HONE_OK && args && !json_is_array(args))
        st = HN_FAIL(err, HONE_E_ARG, "args is %s, expected an array", hn_json_kind(args));
    json_array_foreach(args, i, arg)
    {
        char *text = NULL;
        if (st == HONE_OK) st = read_setting(&text, arg, i, packed, err);
        if (st == HONE_OK && json_array_append_new(all, hn_lab_str(text)) != 0)
            st = HN_FAIL(err, HONE_E_NOMEM, "settings of a measurement");
        free(text);
    }
    if (st == HONE_OK) *out = all;
    else json_decref(all);
    return st;
}
