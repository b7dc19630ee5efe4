/* The packed side file: its bytes as the headers say, what is refused, when it is used,
 * when the model's data is read again, and that nothing half done stays behind. */
#define _GNU_SOURCE
#include "gguf/pack_file.h"
#include "tiny_model.h"
#include "slowed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const tm_shape shape = TM("llama", 256, 4, 2, 64, 256, 37, 2, 1e4, 1e-5, .qkv_bias = true);
static char model_path[160], pack_path[180];

typedef struct bytes {
    unsigned char *p;
    size_t n;
} bytes;

static bytes slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat sb;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &sb), 0);
    bytes b = { malloc((size_t)sb.st_size + 1), (size_t)sb.st_size };
    assert_non_null(b.p);
    assert_int_equal(fread(b.p, 1, b.n, f), b.n);
    fclose(f);
    return b;
}
static void spill(const char *path, const unsigned char *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}
static uint64_t le(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static void set_le(unsigned char *p, int n, uint64_t v)
{
    for (int i = 0; i < n; i++) p[i] = (unsigned char)(v >> (8 * i));
}
/* The checksum of header and directory, as the header file describes it. */
static void seal(unsigned char *p, uint64_t n_dir)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, p, 112);
    hn_sha256_add(&s, p + 4096, n_dir);
    hn_sha256_end(&s, p + 112);
}

static tiny *make_model(void)
{
    tiny *m = tm_new(shape);
    tm_retype(m, "token_embd.weight", HN_Q6_K);
    tm_retype(m, "output.weight", HN_Q8_0);
    tm_retype(m, "blk.0.attn_q.weight", HN_Q4_K);
    tm_retype(m, "blk.0.attn_k.weight", HN_F16);
    tm_retype(m, "blk.0.ffn_up.weight", HN_Q5_1); /* has no packed form */
    tm_retype(m, "blk.1.attn_norm.weight", HN_BF16);
    return m;
}

static void pack(hone_packed_info *info)
{
    hone_error err = { 0 };
    hone_packed_info i;
    if (hone_pack(model_path, &(hone_pack_params){ .force = true }, info ? info : &i, NULL, &err))
        fail_msg("%s", err.message);
}
static hone_model *open_with(const char *packed)
{
    hone_error err = { 0 };
    hone_model *m;
    if (hone_model_open(&m, model_path, &(hone_model_params){ .packed = packed }, &err)) fail_msg("%s", err.message);
    return m;
}
static hone_model_info info_of(const hone_model *m)
{
    hone_model_info in;
    hone_model_get_info(m, &in);
    return in;
}
/* Opens and closes; the note is kept. */
static hone_model_info look(void)
{
    static char note[1000];
    hone_model *m = open_with(NULL);
    hone_model_info in = info_of(m);
    snprintf(note, sizeof note, "%s", in.packed_note);
    in.packed_note = note;
    in.packed_path = in.packed_path ? "some" : NULL;
    hone_model_close(m);
    return in;
}
static void set_mtime(const char *path, int64_t s, long ns)
{
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){ { s, ns }, { s, ns } }, 0), 0);
}
static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(tm_dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* ---- the bytes ------------------------------------------------------------------------------ */

static void every_byte_as_described(void **state)
{
    hone_packed_info info;
    tiny *m = make_model();
    pack(&info);
    assert_int_equal(info.state, HONE_PACKED_READY);
    assert_string_equal(info.path, pack_path);
    assert_int_equal(info.n_plain, 1);
    assert_int_equal(info.n_vectors, 5 + 2 * 3);
    assert_int_equal(info.n_matrices, 2 + 2 * 7 - 1);
    bytes b = slurp(pack_path);
    assert_memory_equal(b.p, "HONEPACK", 8);
    assert_int_equal(le(b.p + 8, 4), 2);
    assert_int_equal(le(b.p + 12, 4), HN_PACK_VERSION);
    assert_int_equal(le(b.p + 16, 8), b.n);
    assert_int_equal(info.size, b.n);
    uint64_t n = le(b.p + 24, 8), n_dir = le(b.p + 32, 8), end = 4096 + n_dir;
    assert_int_equal(n, info.n_matrices + info.n_vectors);
    const unsigned char *r = b.p + 4096;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t n_in = le(r + 8, 8), n_out = le(r + 16, 8), off = le(r + 24, 8), size = le(r + 32, 8),
                 len = le(r + 72, 4);
        char name[64] = "";
        assert_true(len < sizeof name);
        memcpy(name, r + 76, len);
        const tm_tensor *t = tm_find(m, name);
        assert_non_null(t);
        assert_int_equal(le(r, 4), t->type);
        assert_int_equal(n_in, t->ne[0]);
        assert_int_equal(n_out, t->ne[1]);
        assert_true(off % (i ? 64 : 4096) == 0 && off >= end && off + size <= b.n);
        end = off + size;
        /* the hash of one piece: none of these has a second */
        unsigned char h[32];
        hn_sha256 s;
        hn_sha256_init(&s), hn_sha256_add(&s, b.p + off, size), hn_sha256_end(&s, h);
        hn_sha256_init(&s), hn_sha256_add(&s, h, 32), hn_sha256_end(&s, h);
        assert_memory_equal(h, r + 40, 32);
        bool vector = strstr(name, "norm") || strstr(name, "bias");
        assert_int_equal(le(r + 4, 4), vector);
        if (vector) assert_memory_equal(b.p + off, t->f, t->ne[0] * 4);
        else if (t->type == HN_F32 || t->type == HN_F16) { /* [group][n_in][16] */
            size_t es = t->type == HN_F32 ? 4 : 2;
            assert_int_equal(size, (n_out + 15) / 16 * 16 * n_in * es);
            for (uint64_t row = 0; row < (n_out + 15) / 16 * 16; row++)
                for (uint64_t k = 0; k < n_in; k++) {
                    const unsigned char *at = b.p + off + ((row / 16 * n_in + k) * 16 + row % 16) * es;
                    if (row < n_out) assert_memory_equal(at, (char *)t->data + (row * n_in + k) * es, es);
                    else assert_int_equal(le(at, (int)es), 0);
                }
        } else if (t->type == HN_Q4_K) { /* words of a block, sixteen rows side by side */
            for (uint64_t row = 0; row < n_out; row++) {
                const hn_q4_K *q = (const hn_q4_K *)((char *)t->data + row * 144);
                const unsigned char *g = b.p + off + row / 16 * 2304;
                assert_memory_equal(g + row % 16 * 2, &q->d, 2);
                for (int w = 0; w < 32; w++) assert_memory_equal(g + 256 + w * 64 + row % 16 * 4, q->q + 4 * w, 4);
            }
        }
        r += (76 + len + 7) / 8 * 8;
    }
    assert_int_equal(r - b.p, 4096 + n_dir);
    free(b.p);
    tm_free(m);
}

/* ---- what is refused --------------------------------------------------------------------------- */

static void refused(const unsigned char *p, size_t n, hone_status want)
{
    hn_packed *f;
    hone_error err = { 0 };
    unsigned char *copy = malloc(n ? n : 1); /* so that a read past the end shows */
    assert_non_null(copy);
    memcpy(copy, p, n);
    assert_int_equal(hn_packed_parse(&f, copy, n, "damaged", &err), want);
    assert_null(f);
    assert_true(strncmp(err.message, "damaged: ", 9) == 0 && strlen(err.message) > 12);
    free(copy);
}

static void damaged_files_are_refused(void **state)
{
    pack(NULL);
    bytes b = slurp(pack_path);
    uint64_t n_dir = le(b.p + 32, 8);
    for (size_t n = 0; n < b.n; n += n < 5000 ? 37 : 9973) refused(b.p, n, HONE_E_FORMAT);
    refused(b.p, b.n - 1, HONE_E_FORMAT);
    for (size_t i = 0; i < 4096 + n_dir; i += i < 143 ? 1 : i == 143 ? 4096 - 143 : 3)
        for (int bit = SLOWED ? (int)(i % 8) : 0; bit < 8; bit += SLOWED ? 8 : 3) {
            b.p[i] ^= (unsigned char)(1 << bit);
            refused(b.p, b.n, i >= 8 && i < 16 ? HONE_E_UNSUPPORTED : HONE_E_FORMAT);
            b.p[i] ^= (unsigned char)(1 << bit);
        }
    /* the same with a checksum that fits: now each number must be judged */
    static const struct {
        size_t at;
        int n;
        uint64_t v;
    } bad[] = {
        { 24, 8, 0 },
        { 24, 8, 1 },
        { 24, 8, UINT64_MAX },
        { 24, 8, 1 << 20 },
        { 40, 8, 1 },
        { 32, 8, 8 },
        { 4096, 4, 9999 },
        { 4096, 4, HN_Q5_1 },
        { 4096, 4, UINT32_MAX },
        { 4100, 4, 2 },
        { 4100, 4, UINT32_MAX },
        { 4104, 8, 0 },
        { 4104, 8, 255 },
        { 4104, 8, UINT64_MAX },
        { 4104, 8, 1ull << 63 },
        { 4112, 8, 0 },
        { 4112, 8, UINT64_MAX },
        { 4112, 8, 1ull << 60 },
        { 4120, 8, 0 },
        { 4120, 8, 64 },
        { 4120, 8, UINT64_MAX - 63 },
        { 4120, 8, 1ull << 40 },
        { 4128, 8, 0 },
        { 4128, 8, UINT64_MAX },
        { 4168, 4, 0 },
        { 4168, 4, 256 },
        { 4168, 4, UINT32_MAX },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char *c = malloc(b.n);
        assert_non_null(c);
        memcpy(c, b.p, b.n);
        set_le(c + bad[i].at, bad[i].n, bad[i].v);
        seal(c, le(c + 32, 8) < b.n - 4096 ? le(c + 32, 8) : 0);
        refused(c, b.n, HONE_E_FORMAT);
        free(c);
    }
    free(b.p);
}

/* Runs a few tokens; any numbers will do. */
static void run_a_little(const hone_model *m)
{
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, m, 8, 1, 4, HONE_CACHE_F16);
    float *y = malloc(3 * 37 * sizeof *y);
    assert_non_null(y);
    tm_run(s, 0, (const int32_t[]){ 0, 36, 17 }, 3, y);
    free(y);
    hone_session_free(s);
    hone_context_free(c);
}

static void mutants_never_crash(void **state)
{
    enum { N = SLOWED ? 400 : 2000 };
    int n_used = 0, n_ignored = 0;
    pack(NULL);
    bytes b = slurp(pack_path);
    uint64_t n_dir = le(b.p + 32, 8);
    unsigned char *c = malloc(b.n + 4096);
    assert_non_null(c);
    for (int i = 0; i < N; i++) {
        uint64_t k = 0, key = 77 + (uint64_t)i;
        size_t n = b.n;
        memcpy(c, b.p, b.n);
        for (int e = 0, n_edit = 1 + (int)(hn_rand64(key, k++) % 3); e < n_edit; e++) {
            uint64_t r = hn_rand64(key, k++), v = hn_rand64(key, k++);
            size_t at = r & 1 ? 8 + r / 2 % 104 : 4096 + r / 2 % (n_dir - 8);
            if ((r >> 40) % 4 == 0) c[at] ^= (unsigned char)(1 << v % 8);
            else if ((r >> 40) % 4 == 1) set_le(c + at / 8 * 8, 8, v % 3 ? v >> (v % 64) : ~(v % 4096));
            else if ((r >> 40) % 4 == 2) set_le(c + at / 4 * 4, 4, v % 2 ? v % 64 : v);
            else n = v % 5 ? n : v % b.n;
        }
        if (n >= 4096 && le(c + 32, 8) <= n - 4096) seal(c, le(c + 32, 8));
        spill(pack_path, c, n);
        hone_model *m = open_with(NULL); /* a bad side file never keeps a model from opening */
        hone_model_info in = info_of(m);
        if (in.packed_path) n_used++;
        else {
            assert_true(in.packed_ignored && strstr(in.packed_note, "hone pack -m "));
            n_ignored++;
        }
        if (in.packed_path || i % 100 == 0) run_a_little(m);
        hone_model_close(m);
    }
    print_message("  %d mutants: %d still whole, %d ignored\n", N, n_used, n_ignored);
    assert_true(n_ignored > N / 2 && n_used > 0);
    free(c);
    free(b.p);
}

/* ---- whose file it is --------------------------------------------------------------------------- */

static void belongs_to_its_data(void **state)
{
    hone_model_info in;
    hone_error err = { 0 };
    unlink(pack_path);
    in = look();
    assert_true(!in.packed_path && !in.packed_ignored && strstr(in.packed_note, "no packed file"));
    uint64_t plain_bytes = in.n_bytes;
    pack(NULL);
    in = look();
    assert_true(in.packed_path && !in.packed_compared && in.packed_bytes > 0);
    assert_true(in.n_bytes > in.packed_bytes && in.n_bytes < plain_bytes + plain_bytes / 3); /* 37 rows take 48 */
    hone_model *m = open_with("off");
    assert_true(!info_of(m).packed_path && info_of(m).n_bytes == plain_bytes && !info_of(m).packed_ignored);
    hone_model_close(m);

    /* touched: checked once, then trusted again */
    set_mtime(model_path, 1700000000, 5);
    in = look();
    assert_true(in.packed_path && in.packed_compared && strstr(in.packed_note, "is right"));
    in = look();
    assert_true(in.packed_path && !in.packed_compared);
    set_mtime(pack_path, 1700000000, 5);
    assert_true(look().packed_compared && !look().packed_compared);
    /* a model cut out of a larger file system: whole seconds */
    set_mtime(model_path, 1600000000, 0);
    assert_true(look().packed_compared && !look().packed_compared);

    /* another byte, another time: other data */
    bytes b = slurp(model_path);
    b.p[b.n - 1000] ^= 1;
    spill(model_path, b.p, b.n);
    in = look();
    assert_true(!in.packed_path && in.packed_ignored && strstr(in.packed_note, "other tensor data"));
    assert_int_equal(hone_model_open(&m, model_path, &(hone_model_params){ .packed = pack_path }, &err), HONE_E_FORMAT);
    assert_true(strstr(err.message, pack_path) && strstr(err.message, model_path));
    /* back at the old time, of the old size: still other data, and that is told */
    set_mtime(model_path, 1600000000, 0);
    in = look();
    assert_true(!in.packed_path && in.packed_ignored && strstr(in.packed_note, "other tensor data"));
    hone_packed_info info;
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .verify = true }, &info, NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "other tensor data"));
    b.p[b.n - 1000] ^= 1;
    spill(model_path, b.p, b.n);
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .verify = true }, &info, NULL, &err), HONE_OK);
    in = look(); /* which verify has proven already */
    assert_true(in.packed_path && !in.packed_compared);

    /* other metadata, the same weights: another identity, and the packed file still serves */
    tiny *named = make_model();
    tm_put_str(named, "general.name", "the same under another name");
    tm_save(named, model_path);
    tm_free(named);
    in = look();
    assert_true(in.packed_path && in.packed_compared);
    spill(model_path, b.p, b.n);

    /* another model of other shapes */
    tiny *t = make_model();
    tm_retype(t, "blk.1.ffn_down.weight", HN_F16);
    tm_save(t, model_path);
    in = look();
    assert_true(in.packed_ignored && strstr(in.packed_note, "other tensors"));
    tm_free(t);
    spill(model_path, b.p, b.n);
    free(b.p);

    assert_int_equal(hone_model_open(&m, model_path, &(hone_model_params){ .packed = "/nowhere/x" }, &err), HONE_E_IO);
    assert_int_equal(setenv("HONE_PACKED", "off", 1), 0);
    assert_true(!look().packed_path);
    assert_int_equal(unsetenv("HONE_PACKED"), 0);
}

/* The logits of three tokens, as bytes. */
static void answer_of(const hone_model *m, float y[3 * 37])
{
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, m, 8, 1, 4, HONE_CACHE_F16);
    tm_run(s, 0, (const int32_t[]){ 0, 36, 17 }, 3, y);
    hone_session_free(s);
    hone_context_free(c);
}
/* The model answers as it does without a packed file. */
static void answers_right(const char *what)
{
    float want[3 * 37], got[3 * 37];
    hone_model *m = open_with("off");
    answer_of(m, want);
    hone_model_close(m);
    m = open_with(NULL);
    answer_of(m, got);
    hone_model_close(m);
    if (memcmp(want, got, sizeof got) != 0) fail_msg("%s: another answer", what);
}

/* What a disk or a hand did to the numbers is seen before anything is answered from them: in every entry, with the
 * old time put back, after a touch of the model, where another file took the name. */
static void damaged_numbers_are_not_used(void **state)
{
    hone_error err;
    hone_model *m;
    pack(NULL);
    set_mtime(pack_path, 1500000000, 7);
    assert_true(look().packed_path != NULL);
    bytes b = slurp(pack_path);
    uint64_t n_dir = le(b.p + 32, 8), i = 0;
    for (const unsigned char *r = b.p + 4096; r < b.p + 4096 + n_dir; i++, r += (76 + le(r + 72, 4) + 7) / 8 * 8) {
        size_t off = le(r + 24, 8), size = le(r + 32, 8), at = off + hn_rand64(6, i) % size;
        char name[80] = "";
        memcpy(name, r + 76, le(r + 72, 4));
        b.p[at] ^= 0x80;
        if (i % 2) { /* a new file of that name */
            spill(tm_path("new"), b.p, b.n);
            assert_int_equal(rename(tm_path("new"), pack_path), 0);
        } else spill(pack_path, b.p, b.n);
        set_mtime(pack_path, 1500000000, 7);
        if (i % 3 == 0) set_mtime(model_path, 1500000000 + (int64_t)i, 0);
        hone_model_info in = look();
        assert_true(!in.packed_path && in.packed_ignored);
        if (!strstr(in.packed_note, "damaged") || !strstr(in.packed_note, name))
            fail_msg("%s: %s", name, in.packed_note);
        assert_non_null(strstr(in.packed_note, "hone pack -m"));
        if (i % 4 == 0) answers_right(name);
        assert_int_equal(hone_model_open(&m, model_path, &(hone_model_params){ .packed = pack_path }, &err),
                         HONE_E_FORMAT);
        assert_true(strstr(err.message, "damaged") && strstr(err.message, name));
        b.p[at] ^= 0x80;
    }
    spill(pack_path, b.p, b.n);
    hone_model_info in = look();
    assert_true(in.packed_path && in.packed_compared);
    answers_right("whole again");
    free(b.p);
}

/* Reproducible images give every file the same size and time. */
static void another_model_of_the_same_time_is_told_apart(void **state)
{
    tiny *t = make_model();
    tm_save(t, model_path);
    set_mtime(model_path, 1, 0);
    pack(NULL);
    bytes was = slurp(model_path);
    assert_true(look().packed_path != NULL);
    for (int how = 0; how < 2; how++) {
        tm_tensor *w = tm_find(t, how ? "blk.1.attn_norm.weight" : "blk.1.ffn_down.weight");
        w->f[w->ne[0] * w->ne[1] / 2] += 0.25f;
        tm_encode(w, w->type);
        tm_save(t, tm_path("new.gguf"));
        set_mtime(tm_path("new.gguf"), 1, 0);
        assert_int_equal(rename(tm_path("new.gguf"), model_path), 0);
        struct stat sb;
        assert_int_equal(stat(model_path, &sb), 0);
        assert_true((size_t)sb.st_size == was.n && sb.st_mtime == 1);
        hone_model_info in = look();
        assert_true(!in.packed_path && in.packed_ignored && strstr(in.packed_note, "other tensor data"));
        answers_right("another model");
    }
    free(was.p);
    tm_free(t);
}

static void identity(const char *path, char hex[65])
{
    hone_error err;
    hone_model *m;
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &err)) fail_msg("%s", err.message);
    if (hone_model_identity(m, hex, NULL, &err)) fail_msg("%s", err.message);
    hone_model_close(m);
}

/* By identity.h, from the bytes of the file. */
static void identity_from_bytes(const tiny *t, const char *path, char hex[65])
{
    hn_gguf *g;
    hone_error err;
    unsigned char d[32], data[32];
    hn_sha256 all, s;
    if (hn_gguf_open(&g, path, &err)) fail_msg("%s", err.message);
    bytes b = slurp(path);
    uint64_t first = UINT64_MAX, n_dir;
    hn_sha256_init(&all);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *x = hn_gguf_tensor_at(g, i);
        char name[80] = "", line[200];
        memcpy(name, x->name.ptr, x->name.len);
        const tm_tensor *w = tm_find((tiny *)(uintptr_t)t, name);
        int n = snprintf(line, sizeof line, "%s\n%d %d %d 1 1\n", name, (int)w->type, (int)w->ne[0], (int)w->ne[1]);
        hn_sha256_add(&all, line, (size_t)n);
        hn_sha256_init(&s), hn_sha256_add(&s, w->data, w->n_bytes), hn_sha256_end(&s, d); /* one piece each */
        hn_sha256_init(&s), hn_sha256_add(&s, d, 32), hn_sha256_end(&s, d);
        hn_sha256_add(&all, d, 32);
        if (x->offset < first) first = x->offset;
    }
    hn_sha256_end(&all, data);
    hn_gguf_directory(g, 0, &n_dir);
    hn_sha256_init(&s), hn_sha256_add(&s, b.p, n_dir), hn_sha256_end(&s, d);
    hn_sha256_init(&s), hn_sha256_add(&s, d, 32), hn_sha256_end(&s, d);
    hn_sha256_init(&all);
    hn_sha256_add(&all, "hone content 1\n", 15);
    hn_sha256_add(&all, d, 32);
    hn_sha256_add(&all, data, 32);
    hn_sha256_end(&all, d);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
    free(b.p);
    hn_gguf_close(g);
}

static void identity_is_of_the_content(void **state)
{
    char a[65], c[65];
    tiny *t = make_model();
    tm_save(t, model_path);
    identity(model_path, a);
    assert_int_equal(strlen(a), 64);
    identity_from_bytes(t, model_path, c);
    assert_string_equal(a, c);
    /* a copy, a link, another time: the same; any other byte: not */
    bytes b = slurp(model_path);
    spill(tm_path("copy.gguf"), b.p, b.n);
    identity(tm_path("copy.gguf"), c);
    assert_string_equal(a, c);
    set_mtime(model_path, 12345, 6);
    identity(model_path, c);
    assert_string_equal(a, c);
    for (int i = 0; i < 20; i++) {
        size_t at = b.n - 1 - (size_t)(hn_rand64(8, (uint64_t)i) % (b.n / 2)); /* of the weights */
        b.p[at] ^= 4;
        spill(tm_path("copy.gguf"), b.p, b.n);
        set_mtime(tm_path("copy.gguf"), 12345, 6);
        identity(tm_path("copy.gguf"), c);
        assert_string_not_equal(a, c);
        b.p[at] ^= 4;
    }
    free(b.p);
    tm_free(t);
}

/* Records that are damaged, or of nobody, count as none; without a place to keep them every start checks. */
static void what_is_kept_is_not_believed_blindly(void **state)
{
    char state_dir[300], path[700];
    int n = 0;
    tiny *t = make_model();
    tm_save(t, model_path);
    tm_free(t);
    pack(NULL);
    assert_true(look().packed_path && !look().packed_compared);
    snprintf(state_dir, sizeof state_dir, "%s/hone/known", getenv("XDG_STATE_HOME"));
    DIR *d = opendir(state_dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", state_dir, e->d_name);
        bytes b = slurp(path);
        for (size_t at = 0; at < b.n; at += 7) {
            b.p[at] ^= 1;
            spill(path, b.p, b.n);
            hone_model_info in = look();
            assert_true(in.packed_path != NULL); /* and the record is written anew where it was of these files */
            b.p[at] ^= 1;
        }
        n++;
        free(b.p);
    }
    closedir(d);
    assert_true(n >= 2);
    char *keep = strdup(getenv("XDG_STATE_HOME")), *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    for (int i = 0; i < 2; i++) {
        hone_model_info in = look();
        assert_true(in.packed_path && in.packed_compared && strstr(in.packed_note, "XDG_STATE_HOME"));
    }
    setenv("XDG_STATE_HOME", keep, 1);
    if (home) setenv("HOME", home, 1);
    free(keep);
    free(home);
    assert_true(look().packed_path != NULL);
}

/* Numbers that differ are found, wherever they stand. */
static void verify_reads_every_byte(void **state)
{
    hone_error err;
    hone_packed_info info;
    pack(NULL);
    bytes b = slurp(pack_path);
    uint64_t n_dir = le(b.p + 32, 8);
    const unsigned char *r = b.p + 4096;
    for (uint64_t i = 0; r < b.p + 4096 + n_dir; i++, r += (76 + le(r + 72, 4) + 7) / 8 * 8) {
        size_t off = le(r + 24, 8), size = le(r + 32, 8), at = off + hn_rand64(5, i) % size;
        b.p[at] ^= 0x10;
        spill(pack_path, b.p, b.n);
        assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .verify = true }, &info, NULL, &err),
                         HONE_E_FORMAT);
        char name[80] = "";
        memcpy(name, r + 76, le(r + 72, 4));
        assert_true(strstr(err.message, "damaged") && strstr(err.message, name));
        b.p[at] ^= 0x10;
    }
    spill(pack_path, b.p, b.n);
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .verify = true }, &info, NULL, &err), HONE_OK);
    free(b.p);
}

/* ---- writing --------------------------------------------------------------------------------------- */

static int asked;
static bool stop_at_second(void *arg) { return ++asked >= *(int *)arg; }

static void nothing_half_done_stays(void **state)
{
    hone_error err;
    hone_packed_info info;
    unlink(pack_path);
    int before = n_files(), at = 2;
    for (at = 1; at <= 2; at++) {
        hone_progress pr = { NULL, &at, stop_at_second };
        asked = 0;
        assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .n_threads = 1 }, &info, &pr, &err),
                         HONE_E_INTERRUPTED);
        assert_int_equal(n_files(), before);
    }
    /* a limit of size, known before anything is packed */
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(hone_pack(model_path, NULL, &info, NULL, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "file size limit"));
    assert_int_equal(n_files(), before);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    /* and one that comes while it is written */
    hn_packed_writer *w;
    hn_packed_entry e = { .name = { "a", 1 }, .type = HN_F32, .n_in = 1000, .n_out = 1000 };
    assert_int_equal(hn_packed_begin(&w, pack_path, &e, 1, &err), HONE_OK);
    assert_int_equal(n_files(), before + 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    static char zeros[200000];
    int error = hn_packed_write(w, 4096, zeros, sizeof zeros);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(error != 0);
    assert_int_equal(hn_packed_failed(w, error, &err), HONE_E_IO);
    assert_true(strstr(err.message, pack_path) && strstr(err.message, "nothing is left"));
    hn_packed_writer_free(w);
    assert_int_equal(n_files(), before);
    /* what is not ours is not replaced */
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .file = model_path, .force = true }, &info, NULL, &err),
                     HONE_E_ARG);
    spill(pack_path, (const unsigned char *)"precious", 8);
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .force = true }, &info, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "not a packed file"));
    bytes b = slurp(pack_path);
    assert_true(b.n == 8 && !memcmp(b.p, "precious", 8));
    free(b.p);
    unlink(pack_path);
    assert_int_equal(hone_pack(model_path, &(hone_pack_params){ .file = "/proc/x.hpack" }, &info, NULL, &err),
                     HONE_E_IO);
    assert_int_equal(hone_pack("/nowhere.gguf", NULL, &info, NULL, &err), HONE_E_IO);
    /* an older version is replaced without asking, a good one is left alone */
    assert_int_equal(hone_pack(model_path, NULL, &info, NULL, &err), HONE_OK);
    assert_true(info.written);
    assert_int_equal(hone_pack(model_path, NULL, &info, NULL, &err), HONE_OK);
    assert_false(info.written);
    b = slurp(pack_path);
    b.p[12]++;
    spill(pack_path, b.p, b.n);
    hone_model_info in = look();
    char other[16];
    snprintf(other, sizeof other, "version 2.%d", HN_PACK_VERSION + 1);
    assert_true(in.packed_ignored && strstr(in.packed_note, other) && strstr(in.packed_note, "hone pack -m"));
    assert_int_equal(hone_pack(model_path, NULL, &info, NULL, &err), HONE_OK);
    assert_true(info.written && look().packed_path);
    free(b.p);
    assert_int_equal(n_files(), before + 1);
}

static int set_up(void **state)
{
    if (tm_make_dir(state)) return -1;
    snprintf(model_path, sizeof model_path, "%s", tm_path("m.gguf"));
    snprintf(pack_path, sizeof pack_path, "%s.hpack", model_path);
    tiny *m = make_model();
    tm_save(m, model_path);
    tm_free(m);
    set_mtime(model_path, 1500000000, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_as_described),      cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(mutants_never_crash),          cmocka_unit_test(verify_reads_every_byte),
        cmocka_unit_test(nothing_half_done_stays),      cmocka_unit_test(belongs_to_its_data),
        cmocka_unit_test(damaged_numbers_are_not_used), cmocka_unit_test(another_model_of_the_same_time_is_told_apart),
        cmocka_unit_test(identity_is_of_the_content),   cmocka_unit_test(what_is_kept_is_not_believed_blindly),
    };
    return cmocka_run_group_tests(tests, set_up, tm_remove_dir);
}
