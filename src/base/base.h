/* base: what every room uses. Errors, checked sizes, arena, thread pool, CPU
 * level, debug switches, counter-based random numbers. Knows nothing of models. */
#ifndef HN_BASE_H
#define HN_BASE_H

#include "hone.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Enumerations in large tables are as small as they can be: each table is in the program, and most are in the library
 * too. */
#define HN_SMALL __attribute__((packed))

/* ---- errors ---------------------------------------------------------------- */

/* The one place failures are born: fills err (NULL allowed) and returns code. */
hone_status hn_fail(hone_error *err, hone_status code, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
#define HN_FAIL(err, code, ...) hn_fail((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* The rule of hone.h for NULL, at the head of a public function and after its outputs were set: returns
 * HONE_E_ARG with "FUNCTION: PARAMETER is NULL; expected WHAT". Hence ptr must be spelt as hone.h spells it. */
#define HN_NEED(err, ptr, what)                                                                             \
    do {                                                                                                    \
        if (!(ptr)) return HN_FAIL((err), HONE_E_ARG, "%s: %s is NULL; expected %s", __func__, #ptr, what); \
    } while (0)
/* The same for each entry of list[n]; n < 0 counts as 0. */
#define HN_NEED_EACH(err, list, n, what)                                                                \
    do {                                                                                                \
        for (int64_t need_i = 0; need_i < (int64_t)(n); need_i++)                                       \
            if (!(list)[need_i])                                                                        \
                return HN_FAIL((err), HONE_E_ARG, "%s: %s[%lld] is NULL; expected %s", __func__, #list, \
                               (long long)need_i, what);                                                \
    } while (0)

/* Writes untrusted bytes for a message: control characters, marks of direction, characters nobody sees
 * (hn_hides_in_name), the backslash and invalid UTF-8 become \xHH, byte by byte; cut with "…" at cap. Returns dst. */
char *hn_escape(char *dst, size_t cap, const char *s, size_t len);
#define HN_ESC(s, n) hn_escape((char[160]){ 0 }, 160, (s), (n))
/* n bytes as 2·n small hexadecimal digits and a NUL. Returns dst. */
char *hn_hex(char *dst, const void *p, size_t n);

/* ---- checked sizes ----------------------------------------------------------- */

static inline bool hn_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool hn_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
/* True if [off, off+len) lies in [0, size). */
static inline bool hn_in_range(uint64_t off, uint64_t len, uint64_t size) { return len <= size && off <= size - len; }
/* x rounded up to a power of two a; false on overflow. */
static inline bool hn_round_up(uint64_t x, uint64_t a, uint64_t *out)
{
    if (!hn_add_u64(x, a - 1, &x)) return false;
    *out = x & ~(a - 1);
    return true;
}

/* ---- arena: 64-byte aligned blocks, all freed together ------------------------ */

typedef struct hn_arena hn_arena;
hn_arena *hn_arena_new(void);                      /* NULL: out of memory */
void *hn_arena_alloc(hn_arena *a, size_t n_bytes); /* zeroed; NULL: out of memory */
char *hn_arena_strndup(hn_arena *a, const char *s, size_t n);
size_t hn_arena_bytes(const hn_arena *a);
void hn_arena_free(hn_arena *a);

/* Large zero-filled anonymous memory, untouched until used; page aligned. NULL: refused. */
void *hn_pages_alloc(size_t n_bytes);
/* The same in huge pages where the system has them: for what fills from the front. */
void *hn_pages_alloc_huge(size_t n_bytes);
void hn_pages_free(void *p, size_t n_bytes);

/* ---- thread pool ----------------------------------------------------------------- */

/* Persistent workers that spin briefly and then sleep. hn_pool_run splits work in
 * chunks handed out by an atomic counter: a worker that is not scheduled takes
 * none, so nobody waits for it. Which thread runs a chunk must not matter. A worker
 * keeps off the CPU of the caller, so a job has one CPU less to see, and so has a
 * thread or a program that it starts. */
typedef struct hn_pool hn_pool;
typedef void hn_pool_fn(void *arg, int64_t chunk, int32_t thread);
hone_status hn_pool_new(hn_pool **out, int32_t n_threads, hone_error *err);
void hn_pool_free(hn_pool *p);
int32_t hn_pool_threads(const hn_pool *p);
/* From now on only threads [0, n) take chunks, 1 ≤ n ≤ threads. Not within hn_pool_run. */
void hn_pool_limit(hn_pool *p, int32_t n);
int32_t hn_pool_active(const hn_pool *p);
int64_t hn_pool_handed(const hn_pool *p); /* chunks of all its jobs so far */
/* Calls fn for the stack of each worker, where the system tells where they are. */
typedef void hn_block_fn(void *arg, const void *p, size_t n);
void hn_pool_stacks(const hn_pool *p, hn_block_fn *fn, void *arg);
/* Calls fn(arg, c, t) once for each chunk c in [0, n_chunk), t in [0, threads);
 * returns when all are done. One caller at a time; not from within fn. */
void hn_pool_run(hn_pool *p, hn_pool_fn *fn, void *arg, int64_t n_chunk);

/* ---- CPU ----------------------------------------------------------------------------- */

/* In order of preference: the last that a machine has is its best. Each level of an architecture includes those before
 * it, but one: AVX512 includes AVX2 and not AVX_VNNI, which some CPUs with AVX-512 lack. */
typedef enum hn_cpu_level {
    HN_CPU_SCALAR = 0,
    HN_CPU_AVX2,
    HN_CPU_AVX_VNNI, /* AVX2 with vpdpbusd and vpdpwssd of 256 bits, VEX-encoded */
    HN_CPU_AVX512,
    HN_CPU_NEON,
    HN_CPU_NEON_DOTPROD,
    HN_CPU_NEON_I8MM,
    HN_CPU_LEVELS
} hn_cpu_level;
const char *hn_cpu_level_name(hn_cpu_level l);
bool hn_cpu_built(hn_cpu_level l); /* a level of this architecture */
bool hn_cpu_has(hn_cpu_level l);   /* built, and the CPU and the system allow it */
bool hn_cpu_has_bf16(void);        /* the dot product of bf16 pairs of AVX-512 */
hn_cpu_level hn_cpu_best(void);
/* name NULL: HONE_CPU, else the best. */
hone_status hn_cpu_choose(hn_cpu_level *out, const char *name, hone_error *err);
int32_t hn_cpu_count(void);         /* cores this process may use, or its control groups allow: threads by default */
uint64_t hn_memory_available(void); /* bytes, of the machine or of what control groups leave; 0 if unknown */
uint64_t hn_memory_total(void);     /* of the machine or of the least control group, 0 if unknown */

/* ---- switches of the environment: one table, shown by `hone env` and the manual ------ */

typedef struct hn_env_switch {
    const char *name, *help;
    bool secret; /* its value is shown to nobody */
} hn_env_switch;
extern const hn_env_switch hn_env_switches[]; /* ends with name NULL */

/* ---- logging: off unless HONE_LOG is set; stderr ------------------------------------ */
void hn_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- counter-based random numbers ---------------------------------------------------- */

/* splitmix64 finalizer (Steele, Lea, Flood 2014): a bijection on 64 bits. */
static inline uint64_t hn_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* The k-th number of stream `key`. */
static inline uint64_t hn_rand64(uint64_t key, uint64_t k) { return hn_mix64(key + (k + 1) * 0x9E3779B97F4A7C15u); }
/* Uniform in [0, 1), 24 bits. */
static inline float hn_rand_f32(uint64_t key, uint64_t k) { return (float)(hn_rand64(key, k) >> 40) * 0x1p-24f; }

/* FNV-1a, 64 bits. */
static inline uint64_t hn_fnv1a(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}
#define HN_FNV_INIT 0xcbf29ce484222325u

/* ---- SHA-256 (FIPS 180-4) ---------------------------------------------------------------- */
typedef struct hn_sha256 {
    uint32_t h[8];
    uint64_t n;
    unsigned char buf[64];
} hn_sha256;
void hn_sha256_init(hn_sha256 *s);
void hn_sha256_add(hn_sha256 *s, const void *p, size_t n);
void hn_sha256_end(hn_sha256 *s, unsigned char out[32]);

#endif
