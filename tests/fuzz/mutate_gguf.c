/* A structural mutator for GGUF: knows where counts, lengths, types, dimensions and
 * offsets stand in a sound file and damages exactly those, besides bits, ranges and
 * ends. Deterministic: mutant I of a seed is always the same bytes.
 *     mutate_gguf [-seed=N] [-only=I] [-model] N FILE|FOLDER…
 * A FILE of tests/golden/families (.json) is the model of that vector.
 * Each mutant is parsed and, if accepted, walked in full, under a ceiling of memory
 * (64 KiB + 16 bytes per byte of the file) and of time (5 s). Ends with
 *     N mutants, A accepted, R refused
 * With -model, accepted ones are also opened as models and run (memory is then not
 * counted: caches and scratch are the session's), and half of them differ in numbers of
 * keys and shapes alone.
 * A breach is kept as mutant-SEED-I.gguf and ends the program with 1. */
#include "../unit/family_vectors.h"
#include "run_model.h"
#include "walk_gguf.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- memory: what is held at most while one mutant is read ---------------------------- */

static uint64_t mem_live, mem_peak;
static void mem_add(size_t n)
{
    mem_live += n;
    if (mem_live > mem_peak) mem_peak = mem_live;
}
static void mem_sub(size_t n) { mem_live = n < mem_live ? mem_live - n : 0; }

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif

#ifdef WITH_ASAN
int __sanitizer_install_malloc_and_free_hooks(void (*m)(const volatile void *, size_t),
                                              void (*f)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *p);
static void on_malloc(const volatile void *p, size_t n) { (void)p, mem_add(n); }
static void on_free(const volatile void *p)
{
    if (p) mem_sub(__sanitizer_get_allocated_size(p));
}
static bool mem_watch(void) { return __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0; }
#elif defined(__GLIBC__)
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n)
{
    void *p = __libc_malloc(n);
    if (p) mem_add(malloc_usable_size(p));
    return p;
}
void *calloc(size_t n, size_t k)
{
    void *p = __libc_calloc(n, k);
    if (p) mem_add(malloc_usable_size(p));
    return p;
}
void *realloc(void *q, size_t n)
{
    size_t old = q ? malloc_usable_size(q) : 0;
    void *p = __libc_realloc(q, n);
    if (p) mem_add(malloc_usable_size(p)), mem_sub(old);
    return p;
}
void free(void *p)
{
    if (p) mem_sub(malloc_usable_size(p));
    __libc_free(p);
}
static bool mem_watch(void) { return true; }
#else
static bool mem_watch(void) { return false; }
#endif

/* ---- seeds and their structure ------------------------------------------------------------- */

typedef enum { COUNT, LENGTH, VTYPE, TTYPE, DIMS, DIM, OFFSET, VALUE, OTHER } kind;
typedef struct field {
    uint32_t at;
    uint8_t width;
    uint8_t kind;
} field;
typedef struct seed {
    uint8_t *p;
    size_t n;
    field *f;
    size_t n_f, cap_f;
    uint32_t *rec;
    size_t n_rec, cap_rec;
    size_t dir;
} seed;

static seed *seeds;
static size_t n_seeds, n_small;

static uint64_t get(const uint8_t *p, int w)
{
    uint64_t v = 0;
    for (int i = 0; i < w; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static void put(uint8_t *p, int w, uint64_t v)
{
    for (int i = 0; i < w; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static size_t mark(seed *s, size_t at, int width, kind k)
{
    if (s->n_f == s->cap_f) {
        s->cap_f = s->cap_f ? 2 * s->cap_f : 256;
        s->f = realloc(s->f, s->cap_f * sizeof *s->f);
        if (!s->f) exit(2);
    }
    if (at + (size_t)width <= s->n) s->f[s->n_f++] = (field){ (uint32_t)at, (uint8_t)width, (uint8_t)k };
    return at + (size_t)width;
}

static void record(seed *s, size_t at)
{
    if (s->n_rec == s->cap_rec) {
        s->cap_rec = s->cap_rec ? 2 * s->cap_rec : 64;
        s->rec = realloc(s->rec, s->cap_rec * sizeof *s->rec);
        if (!s->rec) exit(2);
    }
    s->rec[s->n_rec++] = (uint32_t)at;
}

static size_t scan_str(seed *s, size_t at)
{
    if (at + 8 > s->n) return s->n + 1;
    mark(s, at, 8, LENGTH);
    uint64_t n = get(s->p + at, 8);
    return n <= s->n - at - 8 ? at + 8 + n : s->n + 1;
}

/* Beyond the end: s->n + 1. Stops there quietly; a seed need not be sound. */
static size_t scan_value(seed *s, size_t at, uint32_t type)
{
    static const uint8_t size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    if (at > s->n || type > 12) return s->n + 1;
    if (size[type]) return mark(s, at, size[type], VALUE);
    if (type == 8) return scan_str(s, at);
    if (at + 12 > s->n) return s->n + 1;
    uint32_t et = (uint32_t)get(s->p + at, 4);
    uint64_t n = get(s->p + at + 4, 8);
    mark(s, at, 4, VTYPE);
    at = mark(s, at + 4, 8, COUNT);
    if (et <= 12 && size[et]) {
        if (n > (s->n - at) / size[et]) return s->n + 1;
        for (uint64_t i = 0; i < n && i < 16; i++) mark(s, at + i * size[et], size[et], VALUE);
        return at + n * size[et];
    }
    for (uint64_t i = 0; i < n && at <= s->n; i++) at = scan_value(s, at, et);
    return at;
}

static void scan(seed *s)
{
    if (s->n < 24) return;
    mark(s, 4, 4, OTHER);
    mark(s, 8, 8, COUNT);
    mark(s, 16, 8, COUNT);
    uint64_t n_t = get(s->p + 8, 8), n_kv = get(s->p + 16, 8);
    size_t at = 24;
    for (uint64_t i = 0; i < n_kv && at + 12 <= s->n; i++) {
        record(s, at);
        at = scan_str(s, at);
        if (at + 4 > s->n) return;
        uint32_t t = (uint32_t)get(s->p + at, 4);
        at = scan_value(s, mark(s, at, 4, VTYPE), t);
    }
    for (uint64_t i = 0; i < n_t && at + 24 <= s->n; i++) {
        record(s, at);
        at = scan_str(s, at);
        if (at + 4 > s->n) return;
        uint64_t nd = get(s->p + at, 4);
        at = mark(s, at, 4, DIMS);
        for (uint64_t k = 0; k < nd && k < 4 && at + 8 <= s->n; k++) at = mark(s, at, 8, DIM);
        at = mark(s, at, 4, TTYPE);
        at = mark(s, at, 8, OFFSET);
    }
    if (at <= s->n) record(s, at);
    s->dir = at <= s->n ? at : s->n;
}

static int by_size(const void *a, const void *b)
{
    const seed *x = a, *y = b;
    return x->n < y->n ? -1 : x->n > y->n;
}

static void load_seeds(const char *path)
{
    struct stat sb;
    if (stat(path, &sb) != 0) {
        perror(path);
        exit(2);
    }
    if (S_ISDIR(sb.st_mode)) {
        struct dirent **e;
        int n = scandir(path, &e, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char sub[4096];
            snprintf(sub, sizeof sub, "%s/%s", path, e[i]->d_name);
            if (e[i]->d_name[0] != '.') load_seeds(sub);
            free(e[i]);
        }
        if (n >= 0) free(e);
        return;
    }
    char made[] = "/tmp/hone-mutate-XXXXXX";
    bool of_family = ends(path, ".json");
    if (of_family) {
        const char *name = strrchr(path, '/');
        int fd = mkstemp(made);
        if (fd < 0 || close(fd) != 0) exit(2);
        vector v = load(name ? name + 1 : path);
        save_as(&v, made, NULL, AS_IS);
        json_decref(v.j);
        if (stat(made, &sb) != 0) exit(2);
    }
    FILE *f = fopen(of_family ? made : path, "rb");
    if (of_family) unlink(made);
    seed s = { .n = (size_t)sb.st_size };
    s.p = malloc(s.n + 1);
    if (!f || !s.p || fread(s.p, 1, s.n, f) != s.n) {
        perror(path);
        exit(2);
    }
    fclose(f);
    if (s.n > 7 && !memcmp(s.p, "vector ", 7)) { /* words of fuzz_model's, no file */
        free(s.p);
        return;
    }
    scan(&s);
    seeds = realloc(seeds, (n_seeds + 1) * sizeof *seeds);
    if (!seeds) exit(2);
    seeds[n_seeds++] = s;
}

/* ---- mutation ---------------------------------------------------------------------------------- */

static uint64_t stream, drawn;
static uint64_t draw(uint64_t below) { return below ? hn_rand64(stream, drawn++) % below : 0; }

static uint64_t interesting(kind k, uint64_t old, size_t size)
{
    static const uint64_t general[] = { 0,
                                        1,
                                        2,
                                        3,
                                        7,
                                        8,
                                        12,
                                        13,
                                        31,
                                        32,
                                        63,
                                        64,
                                        255,
                                        256,
                                        65535,
                                        65536,
                                        1 << 24,
                                        (1 << 24) + 1,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x2000000000000000,
                                        0x4000000000000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        0xFFFFFFFFFFFFFFE0,
                                        0xFFFFFFFFFFFFFFF8,
                                        0xFFFFFFFFFFFFFFFF };
    switch (draw(6)) {
    case 0: return old + draw(17) - 8;
    case 1: return old * 2;
    case 2: return size - draw(64);
    case 3:
        if (k == VTYPE) return draw(14);
        if (k == TTYPE) return draw(48);
        if (k == DIMS) return draw(6);
        if (k == OFFSET) return 32 * draw(size / 16 + 2);
        if (k == DIM) return 32 * draw(40);
        return draw(size + 1);
    default: return general[draw(sizeof general / sizeof *general)];
    }
}

/* Another number in a sound file: what a model is made of, not what a file is. */
static void mutate_value(const seed *s, uint8_t *buf, size_t n)
{
    static const uint32_t floats[] = { 0x7FC00000, 0x7F800000, 0xFF800000, 0xBF800000, 0x3F800000,
                                       0x00000000, 0x00000001, 0x7149F2CA, 0x3727C5AC, 0x461C4000 };
    for (int i = 0; i < 50 && s->n_f; i++) {
        field f = s->f[draw(s->n_f)];
        if (f.at + f.width > n || (f.kind != VALUE && (f.kind != DIM || draw(8)))) continue;
        uint64_t old = get(buf + f.at, f.width), new = draw(80);
        if (draw(3) == 0) new = old + draw(5) - 2;
        else if (draw(4) == 0) new = draw(2) ? old * 2 : old / 2;
        else if (draw(4) == 0) new = f.width == 4 ? floats[draw(sizeof floats / sizeof *floats)] : ~(uint64_t)0;
        put(buf + f.at, f.width, new);
        return;
    }
}

/* buf holds *n bytes of s, possibly changed already; cap allows growth. */
static void mutate(const seed *s, uint8_t *buf, size_t *n, size_t cap)
{
    size_t at, k, to;
    switch (draw(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: /* a field */
        if (!s->n_f) break;
        {
            field f = s->f[draw(4) ? draw(s->n_f) : draw(s->n_f < 40 ? s->n_f : 40)];
            if (f.at + f.width <= *n) put(buf + f.at, f.width, interesting((kind)f.kind, get(buf + f.at, f.width), *n));
        }
        break;
    case 5: /* bits of the directory, or of anything */
        for (uint64_t c = 1 + draw(8); c > 0; c--) {
            at = draw(draw(8) && s->dir < *n ? s->dir : *n);
            if (at < *n) buf[at] ^= (uint8_t)(1u << draw(8));
        }
        break;
    case 6: /* an end: anywhere, or where a record begins */
        at = s->n_rec && draw(2) ? s->rec[draw(s->n_rec)] : draw(*n + 1);
        if (at <= *n) *n = at;
        break;
    case 7:
    case 8: { /* a record twice or not at all, the count made to agree or not */
        if (s->n_rec < 2) break;
        size_t r = draw(s->n_rec - 1);
        at = s->rec[r], to = s->rec[r + 1], k = to - at;
        if (to > *n || at < 24) break;
        uint64_t n_kv = get(buf + 16, 8);
        int count_at = r < n_kv ? 16 : 8;
        bool fix = draw(3) != 0;
        if (draw(2)) {
            if (*n + k > cap) break;
            memmove(buf + to + k, buf + to, *n - to);
            memcpy(buf + to, buf + at, k);
            *n += k;
            if (fix) put(buf + count_at, 8, get(buf + count_at, 8) + 1);
            if (draw(2) && k > 9) buf[to + 8] ^= 1; /* another name */
        } else {
            memmove(buf + at, buf + to, *n - to);
            *n -= k;
            if (fix) put(buf + count_at, 8, get(buf + count_at, 8) - 1);
        }
        break;
    }
    case 9: { /* splice: the rest of another seed */
        const seed *o = &seeds[draw(n_small ? n_small : n_seeds)];
        if (!o->n_rec) break;
        size_t from = draw(2) ? o->rec[draw(o->n_rec)] : draw(o->n);
        at = s->n_rec && draw(2) ? s->rec[draw(s->n_rec)] : draw(*n + 1);
        if (at > *n || at + (o->n - from) > cap) break;
        memcpy(buf + at, o->p + from, o->n - from);
        *n = at + (o->n - from);
        break;
    }
    case 10: /* a range repeated in place */
        at = draw(*n + 1);
        k = draw(*n - at < 200 ? *n - at + 1 : 200);
        if (*n + k > cap) break;
        memmove(buf + at + k, buf + at, *n - at);
        *n += k;
        break;
    default: { /* two fields change places */
        if (s->n_f < 2) break;
        field a = s->f[draw(s->n_f)], b = s->f[draw(s->n_f)];
        int w = a.width < b.width ? a.width : b.width;
        if (a.at + a.width > *n || b.at + b.width > *n) break;
        uint64_t x = get(buf + a.at, w), y = get(buf + b.at, w);
        put(buf + a.at, w, y);
        put(buf + b.at, w, x);
    }
    }
}

/* ---- the run -------------------------------------------------------------------------------------- */

static const uint8_t *now_p;
static size_t now_n;
static uint64_t now_i, seed_no = 1;

static void keep(void)
{
    char name[96];
    snprintf(name, sizeof name, "mutant-%llu-%llu.gguf", (unsigned long long)seed_no, (unsigned long long)now_i);
    FILE *f = fopen(name, "wb");
    if (f) {
        fwrite(now_p, 1, now_n, f);
        fclose(f);
    }
    fprintf(stderr, "mutant %llu kept as %s (%zu bytes)\n", (unsigned long long)now_i, name, now_n);
}

static void died(int sig)
{
    if (sig == SIGALRM) fprintf(stderr, "a mutant takes longer than four minutes\n");
    keep();
    _exit(1);
}

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    uint64_t runs = 0, only = 0, accepted = 0, refused = 0;
    bool have_runs = false, models = false;
    uint64_t n_ran = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-seed=", 6) == 0) seed_no = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "-only=", 6) == 0) only = strtoull(argv[i] + 6, NULL, 10);
        else if (strcmp(argv[i], "-model") == 0) models = true;
        else if (!have_runs) runs = strtoull(argv[i], NULL, 10), have_runs = true;
        else load_seeds(argv[i]);
    }
    if (!runs || !n_seeds) {
        fprintf(stderr, "usage: mutate_gguf [-seed=N] [-only=I] N FILE|FOLDER...\n");
        return 2;
    }
    qsort(seeds, n_seeds, sizeof *seeds, by_size);
    size_t largest = seeds[n_seeds - 1].n, cap = largest + 65536;
    for (size_t i = 0; i < n_seeds; i++) n_small += seeds[i].n <= 256 << 10;
    uint8_t *buf = malloc(cap);
    if (!buf) return 2;
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep);
    for (int i = 0; i < 4 && !__sanitizer_set_death_callback; i++)
        signal((int[]){ SIGSEGV, SIGBUS, SIGABRT, SIGFPE }[i], died);
    signal(SIGALRM, died);
    bool watched = mem_watch();
    if (!watched) printf("memory is not watched: no way to count allocations here\n");
    double worst_s = 0, worst_ratio = 0;
    for (now_i = 1; now_i <= runs; now_i++) {
        stream = hn_mix64(seed_no) ^ hn_mix64(now_i * 0x9E3779B97F4A7C15u);
        drawn = 0;
        /* large seeds now and then: they cost a thousand small ones */
        const seed *s = n_small && draw(500) ? &seeds[draw(n_small)] : &seeds[draw(n_seeds)];
        size_t n = s->n;
        if (only && only != now_i) continue;
        memcpy(buf, s->p, n);
        bool values = models && draw(2);
        for (uint64_t k = draw(2) ? 1 : 1 + draw(4); k > 0; k--)
            if (values) mutate_value(s, buf, n);
            else mutate(s, buf, &n, cap);
        uint8_t *exact = malloc(n ? n : 1); /* its own block, so that sanitizers see the end */
        if (!exact) return 2;
        memcpy(exact, buf, n);
        now_p = exact, now_n = n;
        mem_live = mem_peak = 0;
        alarm(240);
        double t0 = cpu_s();
        bool ok = walk_gguf(exact, n);
        uint64_t held = mem_peak;
        if (ok && models) n_ran += run_model(exact, n);
        double t = cpu_s() - t0;
        alarm(0);
        uint64_t ceiling = 65536 + 16 * (uint64_t)n;
        if (held > ceiling || t > 5) {
            fprintf(stderr,
                    "mutant %llu of %zu bytes: %llu bytes held (at most %llu expected), %.2f s (at most 5 expected)\n",
                    (unsigned long long)now_i, n, (unsigned long long)held, (unsigned long long)ceiling, t);
            keep();
            return 1;
        }
        if (t > worst_s) worst_s = t;
        if ((double)held / (double)ceiling > worst_ratio) worst_ratio = (double)held / (double)ceiling;
        accepted += ok, refused += !ok;
        free(exact);
    }
    printf("slowest %.3f s; memory at most %.0f %% of the ceiling\n", worst_s, 100 * worst_ratio);
    if (models) printf("%llu ran as models\n", (unsigned long long)n_ran);
    printf("%llu mutants, %llu accepted, %llu refused\n", (unsigned long long)(accepted + refused),
           (unsigned long long)accepted, (unsigned long long)refused);
    free(buf);
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].p), free(seeds[i].f), free(seeds[i].rec);
    free(seeds);
    return 0;
}
