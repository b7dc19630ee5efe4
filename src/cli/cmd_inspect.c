/* hone inspect: what is in a GGUF file. Everything it shows comes from strangers, so
 * it is escaped on the way out. */
#include "cli/inspect_memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    CHUNK = 1 << 16, /* elements decoded at a time; a multiple of every block */
    SHOW_TEXT = 4,   /* elements of an array shown to people … */
    SHOW_JSON = 16,  /* … and to programs */
    MAX_TYPES = 64
};

static const hn_opt inspect_opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "the file, as every other command takes it", .use = HN_USE_MODEL,
           .what = "the file"),
    HN_OPT("tensor", NULL, STR, "NAME", "this tensor only: its shape, and the range of its numbers"),
    HN_OPT("f32", NULL, FLAG, NULL, "with --tensor: write its numbers to standard output, raw little-endian f32"),
    HN_OPT("check", NULL, FLAG, NULL, "read all tensor data too; exit code 3 if a number is not finite"),
    HN_OPT("identity", NULL, FLAG, NULL,
           "hash all of the content, which names the file whatever it is called (once; then it is known)"),
    HN_OPT("ctx", "-c", I32, "N", "what a sequence of N positions takes in memory (default: 4096, and all it knows)",
           .min = 1, .max = 1 << 26),
    HN_OPT("kv", NULL, CHOICE, "TYPE", "the same with numbers of that type in the KV cache", .def = "f16",
           .choices = "f16|f32|q8_0"),
    HN_OPT_END,
};
static const hn_opt_group inspect_group = { "Output", inspect_opts };
static const hn_opt_group *const groups[] = { &inspect_group, NULL };

typedef struct type_count {
    const char *name;
    uint64_t n, n_bytes;
} type_count;

typedef struct summary {
    uint64_t n_params, n_bytes;
    type_count type[MAX_TYPES]; /* most bytes first */
    size_t n_type;
    hone_kv arch, name; /* type HONE_KV_STRING if there */
    /* blocks behind a model's layers, which draft further tokens; and their tensors */
    uint64_t n_block, n_draft, draft_tensors, draft_bytes;
} summary;

static uint64_t n_elements(const hone_tensor_info *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

static int by_bytes(const void *a, const void *b)
{
    const type_count *x = a, *y = b;
    return x->n_bytes > y->n_bytes ? -1 : x->n_bytes < y->n_bytes;
}

static bool key_is(const hone_kv *kv, const char *key)
{
    return kv->key.len == strlen(key) && memcmp(kv->key.ptr, key, kv->key.len) == 0;
}

/* Is key that of the family, whatever it is called? */
static bool is_own(const hone_kv *kv, const char *suffix)
{
    size_t n = strlen(suffix);
    return kv->type == HONE_KV_U32 && kv->key.len > n && memcmp(kv->key.ptr + kv->key.len - n, suffix, n) == 0;
}

static void sum_up_drafts(const hone_file *f, summary *s)
{
    uint64_t il;
    char name[32];
    for (uint64_t i = 0; s->n_draft && i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        snprintf(name, sizeof name, "%.*s", (int)(t.name.len < 31 ? t.name.len : 31), t.name.ptr);
        if (sscanf(name, "blk.%" SCNu64 ".", &il) != 1 || il >= s->n_block || il + s->n_draft < s->n_block) continue;
        s->draft_tensors++;
        s->draft_bytes += t.n_bytes;
    }
}

static void sum_up(const hone_file *f, summary *s)
{
    *s = (summary){ 0 };
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        s->n_params += n_elements(&t);
        s->n_bytes += t.n_bytes;
        size_t k = 0;
        while (k < s->n_type && strcmp(s->type[k].name, t.type_name) != 0) k++;
        if (k == MAX_TYPES) continue;
        if (k == s->n_type) s->type[s->n_type++] = (type_count){ .name = t.type_name };
        s->type[k].n++;
        s->type[k].n_bytes += t.n_bytes;
    }
    qsort(s->type, s->n_type, sizeof *s->type, by_bytes);
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        if (is_own(&kv, ".block_count")) s->n_block = kv.v.u;
        if (is_own(&kv, ".nextn_predict_layers")) s->n_draft = kv.v.u;
        if (kv.type != HONE_KV_STRING) continue;
        if (key_is(&kv, "general.architecture")) s->arch = kv;
        if (key_is(&kv, "general.name")) s->name = kv;
    }
    sum_up_drafts(f, s);
}

static double bits_per_weight(uint64_t n_bytes, uint64_t n) { return n ? 8.0 * (double)n_bytes / (double)n : 0; }

static const char *kind_name(hone_kv_type t)
{
    static const char *const names[] = { "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64" };
    return (size_t)t < sizeof names / sizeof *names ? names[t] : "?";
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* Text as it is where it is valid UTF-8, else with \xHH for what is not. */
static json_t *json_text(const char *s, size_t len)
{
    json_t *j = json_stringn(s, len);
    if (j || len > (SIZE_MAX - 16) / 4) return j;
    char *e = malloc(4 * len + 16);
    if (!e) return NULL;
    j = json_string(hn_escape(e, 4 * len + 16, s, len));
    free(e);
    return j;
}

/* Numbers JSON cannot hold become strings: integers from 2^63, nan, inf. */
static json_t *json_value(const hone_kv *kv)
{
    char buf[64];
    switch (kv->type) {
    case HONE_KV_U8:
    case HONE_KV_U16:
    case HONE_KV_U32:
    case HONE_KV_U64:
        if (kv->v.u <= INT64_MAX) return json_integer((json_int_t)kv->v.u);
        snprintf(buf, sizeof buf, "%" PRIu64, kv->v.u);
        return json_string(buf);
    case HONE_KV_I8:
    case HONE_KV_I16:
    case HONE_KV_I32:
    case HONE_KV_I64: return json_integer(kv->v.i);
    case HONE_KV_F32:
    case HONE_KV_F64:
        if (isfinite(kv->v.f)) return json_real(kv->v.f);
        return json_string(isnan(kv->v.f) ? "nan" : kv->v.f > 0 ? "inf" : "-inf");
    case HONE_KV_BOOL: return json_boolean(kv->v.b);
    case HONE_KV_STRING: return json_text(kv->v.s.ptr, kv->v.s.len);
    case HONE_KV_ARRAY:
        return json_pack("{s:s, s:I}", "elem_type", kind_name(kv->elem_type), "count", (json_int_t)kv->count);
    }
    return NULL;
}

static const char *packed_state(const hone_packed_info *p)
{
    switch (p->state) {
    case HONE_PACKED_READY: return "ready";
    case HONE_PACKED_TOUCHED: return "to be compared";
    case HONE_PACKED_UNUSABLE: return "unusable";
    default: return "none";
    }
}

/* What is known of the file's content, or "". With --identity it has been computed by now. */
static const char *identity_of(const hone_file *f, char hex[65])
{
    hone_error err;
    if (hone_file_identity(f, true, hex, NULL, &err) != HONE_OK) hn_cli_note("%s", err.message);
    return hex;
}

/* {"type", "value"}, or for arrays {"type", "elem_type", "count", "head": [first elements]} */
static json_t *json_entry(const hone_file *f, uint64_t i, const hone_kv *kv)
{
    json_t *o = json_pack("{s:s}", "type", kind_name(kv->type));
    if (kv->type != HONE_KV_ARRAY) {
        json_object_set_new(o, "value", json_value(kv));
        return o;
    }
    json_object_set_new(o, "elem_type", json_string(kind_name(kv->elem_type)));
    json_object_set_new(o, "count", json_integer((json_int_t)kv->count));
    json_t *head = json_array();
    hone_kv e;
    for (uint64_t k = 0; k < SHOW_JSON && hone_file_kv_elem(f, i, k, &e); k++)
        json_array_append_new(head, json_value(&e));
    json_object_set_new(o, "head", head);
    return o;
}

static json_t *json_metadata(const hone_file *f)
{
    json_t *o = json_object();
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        char *key = malloc(kv.key.len + 1); /* valid UTF-8 without NUL: the reader saw to it */
        if (!key) {
            json_decref(o);
            return NULL;
        }
        memcpy(key, kv.key.ptr, kv.key.len);
        key[kv.key.len] = 0;
        json_object_set_new(o, key, json_entry(f, i, &kv));
        free(key);
    }
    return o;
}

static json_t *json_tensor(const hone_file *f, uint64_t i)
{
    hone_tensor_info t;
    hone_file_tensor(f, i, &t);
    json_t *o = json_object(), *shape = json_array();
    json_object_set_new(o, "name", json_text(t.name.ptr, t.name.len));
    json_object_set_new(o, "type", json_string(t.type_name));
    for (int32_t d = 0; d < t.n_dim; d++) json_array_append_new(shape, json_integer((json_int_t)t.ne[d]));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "n_elements", json_integer((json_int_t)n_elements(&t)));
    json_object_set_new(o, "bytes", json_integer((json_int_t)t.n_bytes));
    json_object_set_new(o, "offset", json_integer((json_int_t)t.offset));
    json_object_set_new(o, "part", json_integer(t.part));
    return o;
}

static json_t *json_head(const hone_file *f, const char *path, const summary *s)
{
    json_t *o = hn_json_new("hone.inspect/1");
    json_object_set_new(o, "file", json_text(path, strlen(path)));
    json_object_set_new(o, "version", json_integer(hone_file_version(f)));
    json_object_set_new(o, "size", json_integer((json_int_t)hone_file_size(f)));
    json_object_set_new(o, "n_parts", json_integer(hone_file_n_parts(f)));
    json_object_set_new(o, "architecture", s->arch.type == HONE_KV_STRING ? json_value(&s->arch) : json_null());
    json_object_set_new(o, "name", s->name.type == HONE_KV_STRING ? json_value(&s->name) : json_null());
    json_object_set_new(o, "n_params", json_integer((json_int_t)s->n_params));
    json_object_set_new(o, "tensor_bytes", json_integer((json_int_t)s->n_bytes));
    json_object_set_new(o, "bits_per_weight",
                        s->n_params ? json_real(bits_per_weight(s->n_bytes, s->n_params)) : json_null());
    json_object_set_new(o, "not_run",
                        json_pack("{s:I, s:I, s:I}", "blocks", (json_int_t)s->n_draft, "tensors",
                                  (json_int_t)s->draft_tensors, "bytes", (json_int_t)s->draft_bytes));
    return o;
}

static int print_json(const hone_file *f, const char *path, const summary *s, const hn_inspect_costs *costs)
{
    json_t *o = json_head(f, path, s), *types = json_object(), *tensors = json_array();
    for (size_t k = 0; k < s->n_type; k++)
        json_object_set_new(
            types, s->type[k].name,
            json_pack("{s:I, s:I}", "tensors", (json_int_t)s->type[k].n, "bytes", (json_int_t)s->type[k].n_bytes));
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) json_array_append_new(tensors, json_tensor(f, i));
    char hex[65];
    hone_packed_info packed;
    hone_error err;
    json_object_set_new(o, "identity", *identity_of(f, hex) ? json_string(hex) : json_null());
    if (hone_packed_find(path, NULL, &packed, &err) != HONE_OK) {
        if (err.code == HONE_E_NOMEM) hn_json_lose();
        json_object_set_new(o, "packed",
                            json_pack("{s:s, s:n, s:o, s:s}", "state", "unknown", "file", "note",
                                      json_text(err.message, strlen(err.message)), "note_several", ""));
    } else
        json_object_set_new(
            o, "packed",
            json_pack("{s:s, s:o, s:s, s:s}", "state", packed_state(&packed), "file",
                      packed.state == HONE_PACKED_NONE ? json_null() : json_text(packed.path, strlen(packed.path)),
                      "note", packed.note, "note_several", packed.note_several));
    json_object_set_new(o, "sequence", hn_inspect_json_memory(costs));
    json_object_set_new(o, "types", types);
    json_object_set_new(o, "metadata", json_metadata(f));
    json_object_set_new(o, "tensors", tensors);
    return hn_json_print(o);
}

/* ---- text --------------------------------------------------------------------------------------- */

static void print_value(const hone_kv *kv)
{
    char buf[120];
    switch (kv->type) {
    case HONE_KV_U8:
    case HONE_KV_U16:
    case HONE_KV_U32:
    case HONE_KV_U64: hn_out_printf("%" PRIu64, kv->v.u); break;
    case HONE_KV_I8:
    case HONE_KV_I16:
    case HONE_KV_I32:
    case HONE_KV_I64: hn_out_printf("%" PRId64, kv->v.i); break;
    case HONE_KV_F32: hn_out_printf("%.9g", kv->v.f); break;
    case HONE_KV_F64: hn_out_printf("%.17g", kv->v.f); break;
    case HONE_KV_BOOL: hn_out_printf("%s", kv->v.b ? "true" : "false"); break;
    case HONE_KV_STRING: hn_out_printf("\"%s\"", hn_escape(buf, sizeof buf, kv->v.s.ptr, kv->v.s.len)); break;
    case HONE_KV_ARRAY: hn_out_printf("%s[%" PRIu64 "]", kind_name(kv->elem_type), kv->count); break;
    }
}

static void print_metadata(const hone_file *f)
{
    hn_out_printf("\nmetadata: %" PRIu64 " entries\n", hone_file_n_kv(f));
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv, e;
        hone_file_kv(f, i, &kv);
        char type[48];
        if (kv.type == HONE_KV_ARRAY) snprintf(type, sizeof type, "%s[%" PRIu64 "]", kind_name(kv.elem_type), kv.count);
        else snprintf(type, sizeof type, "%s", kind_name(kv.type));
        hn_out_printf("  %-44s %-16s ", HN_ESC(kv.key.ptr, kv.key.len), type);
        if (kv.type != HONE_KV_ARRAY) print_value(&kv);
        for (uint64_t k = 0; kv.type == HONE_KV_ARRAY && k < SHOW_TEXT && hone_file_kv_elem(f, i, k, &e); k++) {
            if (k) hn_out_printf(", ");
            print_value(&e);
        }
        if (kv.type == HONE_KV_ARRAY && kv.count > SHOW_TEXT) hn_out_printf(", …");
        if (kv.type == HONE_KV_STRING && kv.v.s.len > 100) hn_out_printf(" (%zu bytes)", kv.v.s.len);
        hn_out_printf("\n");
    }
}

static const char *shape_text(char *buf, size_t cap, const hone_tensor_info *t)
{
    size_t o = (size_t)snprintf(buf, cap, "[");
    for (int32_t d = 0; d < t->n_dim; d++)
        o += (size_t)snprintf(buf + o, cap - o, "%s%" PRIu64, d ? ", " : "", t->ne[d]);
    snprintf(buf + o, cap - o, "]");
    return buf;
}

static void print_tensors(const hone_file *f)
{
    hn_out_printf("\ntensors: %" PRIu64 "; shapes as stored, row length first\n", hone_file_n_tensors(f));
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        char shape[128];
        hone_file_tensor(f, i, &t);
        hn_out_printf("  %-40s %-8s %-22s %14" PRIu64 " bytes  %7.4f bits\n", HN_ESC(t.name.ptr, t.name.len),
                      t.type_name, shape_text(shape, sizeof shape, &t), t.n_bytes,
                      bits_per_weight(t.n_bytes, n_elements(&t)));
    }
}

static void print_line(const char *label, const hone_kv *kv)
{
    if (kv->type == HONE_KV_STRING) hn_out_printf("%-16s %s\n", label, HN_ESC(kv->v.s.ptr, kv->v.s.len));
}

static int print_text(const hone_file *f, const char *path, const summary *s, const hn_inspect_costs *costs)
{
    hn_out_printf("%-16s %s\n", "file", HN_ESC(path, strlen(path)));
    hn_out_printf("%-16s GGUF %" PRIu32, "format", hone_file_version(f));
    if (hone_file_n_parts(f) > 1) hn_out_printf(", %" PRId32 " parts", hone_file_n_parts(f));
    hn_out_printf("\n%-16s %" PRIu64 " bytes (%.1f MiB)\n", "size", hone_file_size(f),
                  (double)hone_file_size(f) / 0x1p20);
    print_line("architecture", &s->arch);
    print_line("name", &s->name);
    hn_out_printf("%-16s %" PRIu64 " (%.3f billion)\n", "parameters", s->n_params, (double)s->n_params / 1e9);
    hn_out_printf("%-16s %" PRIu64 " (%.1f MiB)\n", "tensor bytes", s->n_bytes, (double)s->n_bytes / 0x1p20);
    if (s->n_params) hn_out_printf("%-16s %.4f\n", "bits per weight", bits_per_weight(s->n_bytes, s->n_params));
    for (size_t k = 0; k < s->n_type; k++)
        hn_out_printf("%-16s %-8s %6" PRIu64 " tensors %12.1f MiB\n", k ? "" : "types", s->type[k].name, s->type[k].n,
                      (double)s->type[k].n_bytes / 0x1p20);
    if (s->draft_tensors)
        hn_out_printf("%-16s the last %" PRIu64 " of %" PRIu64 " blocks, which draft further tokens: %" PRIu64
                      " tensors, %.1f MiB\n",
                      "not run", s->n_draft, s->n_block, s->draft_tensors, (double)s->draft_bytes / 0x1p20);
    char hex[65];
    hone_packed_info packed;
    hone_error err;
    if (*identity_of(f, hex)) hn_out_printf("%-16s %s\n", "identity", hex);
    hone_status st = hone_packed_find(path, NULL, &packed, &err);
    if (st == HONE_E_NOMEM) return hn_cli_fail(&err);
    if (st != HONE_OK) hn_out_printf("%-16s unknown: %s\n", "packed file", err.message);
    else if (packed.state != HONE_PACKED_NONE)
        hn_out_printf("%-16s %s: %s%s%s\n", "packed file", HN_ESC(packed.path, strlen(packed.path)),
                      packed_state(&packed), packed.note[0] ? ": " : "", packed.note);
    if (st == HONE_OK && packed.note_several[0] && strcmp(packed.note, packed.note_several) != 0)
        hn_out_printf("%-16s for several answers at once: %s\n", "", packed.note_several);
    hn_inspect_print_memory(costs);
    print_metadata(f);
    print_tensors(f);
    return HN_EXIT_OK;
}

/* ---- one tensor ------------------------------------------------------------------------------------- */

/* Calls fn on the whole tensor, decoded, piece by piece. */
static int each_chunk(const hone_file *f, uint64_t i, void (*fn)(void *arg, const float *y, uint64_t n), void *arg)
{
    hone_tensor_info t;
    hone_error err;
    hone_file_tensor(f, i, &t);
    uint64_t total = n_elements(&t);
    float *y = malloc(CHUNK * sizeof *y);
    if (!y) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for %d numbers", CHUNK);
    int code = HN_EXIT_OK;
    for (uint64_t at = 0; at < total && code == HN_EXIT_OK && !hn_out_failed(); at += CHUNK) {
        uint64_t n = total - at < CHUNK ? total - at : CHUNK;
        if (hn_interrupted()) code = hn_exit_code(HONE_E_INTERRUPTED);
        else if (hone_file_read_f32(f, i, at, n, y, &err) != HONE_OK) code = hn_cli_fail(&err);
        else fn(arg, y, n);
    }
    free(y);
    return hn_out_failed() ? HN_EXIT_FAILURE : code;
}

static void write_chunk(void *unused, const float *y, uint64_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    hn_out_write(y, (size_t)n * sizeof *y);
#else
    for (uint64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &y[i], 4);
        u = __builtin_bswap32(u);
        hn_out_write(&u, 4);
    }
#endif
}

typedef struct stats {
    uint64_t n, n_nan, n_inf, n_zero; /* n: finite numbers */
    double min, max, sum, sum2;
} stats;

static void add_chunk(void *arg, const float *y, uint64_t n)
{
    stats *s = arg;
    for (uint64_t i = 0; i < n; i++) {
        double x = (double)y[i];
        if (isnan(x)) s->n_nan++;
        else if (isinf(x)) s->n_inf++;
        else {
            if (!s->n || x < s->min) s->min = x;
            if (!s->n || x > s->max) s->max = x;
            s->n++;
            s->n_zero += x == 0;
            s->sum += x;
            s->sum2 += x * x;
        }
    }
}

static int show_tensor(const hn_cli *cli, const hone_file *f, uint64_t i, const char *path, const summary *sum)
{
    stats s = { 0 };
    int code = each_chunk(f, i, add_chunk, &s);
    if (code != HN_EXIT_OK) return code;
    double mean = s.n ? s.sum / (double)s.n : 0, rms = s.n ? sqrt(s.sum2 / (double)s.n) : 0;
    if (cli->json) {
        json_t *o = json_head(f, path, sum), *t = json_tensor(f, i);
        json_object_set_new(t, "min", s.n ? json_real(s.min) : json_null());
        json_object_set_new(t, "max", s.n ? json_real(s.max) : json_null());
        json_object_set_new(t, "mean", s.n ? json_real(mean) : json_null());
        json_object_set_new(t, "rms", s.n ? json_real(rms) : json_null());
        json_object_set_new(t, "n_zero", json_integer((json_int_t)s.n_zero));
        json_object_set_new(t, "n_nan", json_integer((json_int_t)s.n_nan));
        json_object_set_new(t, "n_inf", json_integer((json_int_t)s.n_inf));
        json_object_set_new(o, "tensor", t);
        return hn_json_print(o);
    }
    hone_tensor_info t;
    char shape[128];
    hone_file_tensor(f, i, &t);
    hn_out_printf("%-16s %s\n%-16s %s\n%-16s %s\n", "tensor", HN_ESC(t.name.ptr, t.name.len), "type", t.type_name,
                  "shape", shape_text(shape, sizeof shape, &t));
    hn_out_printf("%-16s %" PRIu64 "\n%-16s %" PRIu64 " (%.4f bits each)\n", "elements", n_elements(&t), "bytes",
                  t.n_bytes, bits_per_weight(t.n_bytes, n_elements(&t)));
    hn_out_printf("%-16s %" PRIu64 " in the data section of part %" PRId32 "\n", "offset", t.offset, t.part + 1);
    if (s.n)
        hn_out_printf("%-16s %.9g\n%-16s %.9g\n%-16s %.9g\n%-16s %.9g\n", "min", s.min, "max", s.max, "mean", mean,
                      "rms", rms);
    hn_out_printf("%-16s %" PRIu64 " zero, %" PRIu64 " NaN, %" PRIu64 " infinite\n", "of them", s.n_zero, s.n_nan,
                  s.n_inf);
    return HN_EXIT_OK;
}

static int no_such_tensor(const hone_file *f, const char *path, const char *name)
{
    uint64_t n = hone_file_n_tensors(f);
    char **names = calloc(n ? n : 1, sizeof *names);
    for (uint64_t i = 0; names && i < n; i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        names[i] = strndup(t.name.ptr, t.name.len); /* NULLs are skipped */
    }
    const char *near = names ? hn_nearest(name, (const char *const *)names, n) : NULL;
    int code = hn_cli_error(HN_EXIT_FAILURE, "%s: no tensor '%s' among %" PRIu64 "%s%s%s", HN_ESC(path, strlen(path)),
                            HN_ESC(name, strlen(name)), n, near ? "; did you mean '" : "; hone inspect lists them",
                            near ? HN_ESC(near, strlen(near)) : "", near ? "'?" : "");
    for (uint64_t i = 0; names && i < n; i++) free(names[i]);
    free(names);
    return code;
}

static int one_tensor(const hn_cli *cli, const hone_file *f, const char *path, const summary *s)
{
    const char *name = hn_opts_str(cli->opts, "tensor");
    int64_t i = hone_file_find_tensor(f, name);
    if (i < 0) return no_such_tensor(f, path, name);
    if (!hn_opts_flag(cli->opts, "f32")) return show_tensor(cli, f, (uint64_t)i, path, s);
    return each_chunk(f, (uint64_t)i, write_chunk, NULL);
}

/* A packed file explains itself; its tensors are those of the model. */
static int inspect_packed(const hn_cli *cli, const hone_packed_info *p)
{
    if (hn_opts_given(cli->opts, "ctx") || hn_opts_given(cli->opts, "kv"))
        return hn_cli_usage(cli, "--ctx and --kv ask what a sequence takes, but a packed file is no model of its own");
    bool good = p->state == HONE_PACKED_READY;
    if (hn_opts_given(cli->opts, "tensor") || hn_opts_flag(cli->opts, "check"))
        return hn_cli_usage(cli,
                            "%s is a packed file; expected the model it was made from (hone pack -m MODEL --verify "
                            "checks a packed file)",
                            HN_ESC(p->path, strlen(p->path)));
    if (!good) return hn_cli_error(HN_EXIT_MODEL, "%s; hone pack -m MODEL makes a new one", p->note);
    if (cli->json) {
        json_t *o = hn_json_new("hone.inspect.packed/1");
        json_object_set_new(o, "file", json_text(p->path, strlen(p->path)));
        json_object_set_new(o, "size", json_integer((json_int_t)p->size));
        json_object_set_new(o, "matrices", json_integer(p->n_matrices));
        json_object_set_new(o, "vectors", json_integer(p->n_vectors));
        json_object_set_new(o, "data_sha256", json_string(p->data_sha256));
        json_object_set_new(o, "note", p->note[0] ? json_string(p->note) : json_null());
        return hn_json_print(o);
    }
    hn_out_printf("%-16s %s\n%-16s packed weights of a model (hone pack)\n", "file", HN_ESC(p->path, strlen(p->path)),
                  "format");
    hn_out_printf("%-16s %" PRIu64 " bytes (%.1f MiB)\n%-16s %" PRIu32 " matrices packed, %" PRIu32 " vectors\n",
                  "size", p->size, (double)p->size / 0x1p20, "holds", p->n_matrices, p->n_vectors);
    hn_out_printf("%-16s %s\n", "made from data", p->data_sha256);
    if (p->note[0]) hn_out_printf("%-16s %s\n", "note", p->note);
    return HN_EXIT_OK;
}

static int compute_identity(const hone_file *f)
{
    char hex[65];
    hone_error err;
    hone_progress pr = { hn_progress_fn, "hashing the content", hn_abort_fn };
    hone_status st = hone_file_identity(f, false, hex, &pr, &err);
    hn_progress_end();
    return st == HONE_OK ? HN_EXIT_OK : hn_cli_fail(&err);
}

/* All of a file; memory is told where it is a model that runs here, and where it is none, missed only if asked for. */
static int whole(const hn_cli *cli, const hone_file *f, const char *path, const summary *s)
{
    const hn_opts *o = cli->opts;
    hn_inspect_costs costs;
    hone_error err;
    bool asked = hn_opts_given(o, "ctx") || hn_opts_given(o, "kv");
    int32_t n_ctx = hn_opts_given(o, "ctx") ? hn_opts_i32(o, "ctx") : 0;
    hone_status st = hn_inspect_memory(&costs, path, n_ctx, hn_opts_str(o, "kv"), &err);
    bool no_model = st == HONE_E_UNSUPPORTED || st == HONE_E_FORMAT;
    if (st != HONE_OK && (asked || !no_model)) return hn_cli_fail_model(&err);
    if (st != HONE_OK) costs.n = 0;
    return cli->json ? print_json(f, path, s, &costs) : print_text(f, path, s, &costs);
}

static int inspect(const hn_cli *cli)
{
    const char *path = hn_opts_str(cli->opts, "model");
    bool tensor = hn_opts_given(cli->opts, "tensor"), f32 = hn_opts_flag(cli->opts, "f32");
    if (!path) return hn_cli_usage(cli, "missing argument: inspect needs FILE");
    if (f32 && !tensor) return hn_cli_usage(cli, "--f32 needs --tensor NAME");
    if (tensor && (hn_opts_given(cli->opts, "ctx") || hn_opts_given(cli->opts, "kv")))
        return hn_cli_usage(cli, "--ctx and --kv ask what a sequence takes, --tensor for one tensor: choose one");
    if (f32 && cli->json) return hn_cli_usage(cli, "--f32 writes raw numbers, --json text: choose one");
    if (f32 && hn_out_is_tty())
        return hn_cli_usage(cli, "--f32 writes raw numbers, but standard output is a terminal; redirect it to a file");
    hone_file *f;
    hone_error err;
    hone_packed_info packed;
    if (hone_packed_describe(path, &packed, &err) == HONE_OK) return inspect_packed(cli, &packed);
    if (hone_file_open(&f, path, &err) != HONE_OK) {
        int code = hn_cli_fail_model(&err);
        if (err.code == HONE_E_IO) hn_cli_advise_model(path);
        return code;
    }
    summary s;
    sum_up(f, &s);
    int code = HN_EXIT_OK;
    if (hn_opts_flag(cli->opts, "identity")) code = compute_identity(f);
    if (code != HN_EXIT_OK) { /* it has been said */
    } else if (hn_opts_flag(cli->opts, "check") && hone_file_check(f, &err) != HONE_OK) {
        hn_cli_fail(&err);
        code = HN_EXIT_MODEL;
    } else code = tensor ? one_tensor(cli, f, path, &s) : whole(cli, f, path, &s);
    hone_file_close(f);
    return code;
}

const hn_command hn_command_inspect = {
    .name = "inspect",
    .summary = "Show metadata and tensors of a GGUF file",
    .args = "FILE",
    .takes = "model",
    .groups = groups,
    .examples = "hone inspect model.gguf\n"
                "hone inspect model.gguf --json | jq .metadata\n"
                "hone inspect model.gguf --ctx 32768 --kv q8_0\n"
                "hone inspect model.gguf --tensor output_norm.weight --f32 >norm.f32\n",
    .run = inspect,
};
