/* A plain driver for fuzz targets, for compilers without libFuzzer. Owns replaying a
 * corpus and simple mutations of it; refuses to know what the bytes mean. Options are
 * spelled as libFuzzer's, so scripts need not know which one they call:
 *     fuzz_x [-runs=N] [-seed=N] [-max_len=BYTES] [-timeout=SECONDS] [FILE | FOLDER]…
 * Replays every file, then runs N mutated inputs. An input that ends the program, or
 * takes longer than the timeout (60 s: far more than any, whatever the machine), is kept as crash-SEED-ROUND in the
 * current folder. */
#include "edits.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input *corpus;
static size_t n_corpus, cap_corpus;
static size_t max_len = 1 << 20;
static unsigned timeout_s = 60;
static uint64_t seed = 1, rng, round_now;
static const uint8_t *now_data; /* the input being run, for the death callback */
static size_t now_size;

static void keep(void)
{
    char name[96];
    snprintf(name, sizeof name, "crash-%llu-%llu", (unsigned long long)seed, (unsigned long long)round_now);
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0) return;
    for (size_t off = 0; off < now_size;) {
        ssize_t k = write(fd, now_data + off, now_size - off);
        if (k <= 0) break;
        off += (size_t)k;
    }
    close(fd);
    fprintf(stderr, "the input is kept as %s (%zu bytes)\n", name, now_size);
}

static void died(int sig)
{
    if (sig == SIGALRM) fprintf(stderr, "an input takes longer than %u seconds\n", timeout_s);
    keep();
    signal(sig, SIG_DFL);
    raise(sig == SIGALRM ? SIGABRT : sig);
}

static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1); /* its own block, so that ASan sees the end */
    if (!exact) exit(2);
    if (size) memcpy(exact, data, size);
    now_data = exact;
    now_size = size;
    alarm(timeout_s);
    LLVMFuzzerTestOneInput(exact, size);
    alarm(0);
    free(exact);
}

static void add(uint8_t *data, size_t size)
{
    if (n_corpus == cap_corpus) {
        cap_corpus = cap_corpus ? 2 * cap_corpus : 64;
        corpus = realloc(corpus, cap_corpus * sizeof *corpus);
        if (!corpus) exit(2);
    }
    corpus[n_corpus++] = (input){ data, size };
}

static void load(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(2);
    }
    if (S_ISDIR(st.st_mode)) {
        struct dirent **names;
        int n = scandir(path, &names, NULL, alphasort); /* the same order everywhere */
        for (int i = 0; i < n; i++) {
            char sub[4096];
            snprintf(sub, sizeof sub, "%s/%s", path, names[i]->d_name);
            if (names[i]->d_name[0] != '.') load(sub);
            free(names[i]);
        }
        if (n >= 0) free(names);
        return;
    }
    FILE *f = fopen(path, "rb");
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size + 1);
    if (!f || !data || fread(data, 1, size, f) != size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    add(data, size);
}

static uint64_t draw(uint64_t below) /* xorshift64*, good enough to choose bytes */
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return below ? (rng * 0x2545F4914F6CDD1Du >> 16) % below : 0;
}

/* Positions near the beginning are likelier: that is where headers live. */
static size_t place(size_t size)
{
    size_t span = size;
    for (uint64_t k = draw(4); k > 0 && span > 64; k--) span /= 8;
    return (size_t)draw(span ? span : 1);
}

static size_t mutate(uint8_t *buf, size_t size, size_t cap)
{
    for (uint64_t k = 1 + draw(6); k > 0; k--) {
        size_t p = place(size), n;
        switch (draw(9)) {
        case 0: ed_flip(buf, size, p, (unsigned)draw(8)); break;
        case 1: ed_set(buf, size, p, 1, draw(256)); break;
        case 2:
        case 3: /* a number at the border of its type */
            n = (size_t)1 << draw(4);
            ed_set(buf, size, p, n, ed_border[draw(ED_BORDERS)]);
            break;
        case 4: /* a number slightly off */
            n = (size_t)1 << draw(4);
            ed_shift(buf, size, p, n, (int64_t)draw(17) - 8);
            break;
        case 5: size = (size_t)draw(size + 1); break; /* cut */
        case 6:                                       /* remove a piece */
            size = ed_remove(buf, size, p, (size_t)draw(size - p < 64 ? size - p + 1 : 64));
            break;
        case 7: /* repeat a piece */
            size = ed_repeat(buf, size, cap, p, (size_t)draw(size - p < 64 ? size - p + 1 : 64));
            break;
        default: { /* a piece of another input */
            const input *o = &corpus[draw(n_corpus)];
            size_t q = place(o->size);
            n = (size_t)draw(o->size - q < 256 ? o->size - q + 1 : 256);
            ed_put(buf, size, p, o->data + q, n);
        }
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    uint64_t runs = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0) runs = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "-seed=", 6) == 0) seed = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "-max_len=", 9) == 0) max_len = strtoull(argv[i] + 9, NULL, 10);
        else if (strncmp(argv[i], "-timeout=", 9) == 0) timeout_s = (unsigned)strtoull(argv[i] + 9, NULL, 10);
        else if (argv[i][0] == '-') fprintf(stderr, "%s: not an option of this driver, ignored\n", argv[i]);
        else load(argv[i]);
    }
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep);
    else
        for (size_t i = 0; i < 4; i++) signal((int[]){ SIGSEGV, SIGBUS, SIGABRT, SIGFPE }[i], died);
    signal(SIGALRM, died);
    size_t given = n_corpus;
    if (!n_corpus) add(calloc(1, 1), 0);
    for (size_t i = 0; i < n_corpus; i++) run(corpus[i].data, corpus[i].size);
    size_t largest = 4096;
    for (size_t i = 0; i < n_corpus; i++)
        if (corpus[i].size > largest) largest = corpus[i].size;
    size_t cap = largest < max_len ? largest + 4096 : max_len;
    uint8_t *buf = malloc(cap);
    if (!buf) return 2;
    for (round_now = 1; round_now <= runs; round_now++) {
        rng = (seed * 0x9E3779B97F4A7C15u) ^ (round_now * 0xBF58476D1CE4E5B9u); /* each round alone can be repeated */
        if (!rng) rng = 1;
        draw(2);
        const input *in = &corpus[draw(n_corpus)];
        size_t size = in->size < cap ? in->size : cap;
        if (size) memcpy(buf, in->data, size);
        size = mutate(buf, size, cap);
        run(buf, size);
    }
    printf("%zu inputs replayed, %llu mutated\n", given, (unsigned long long)runs);
    free(buf);
    for (size_t i = 0; i < n_corpus; i++) free(corpus[i].data);
    free(corpus);
    return 0;
}
