/* gguf_choice: which files of a repository are one model, and which of the models to take. Owns what names of files say
 * and the order of preference; what is in a file nobody looks at here. Declared in names.h. */
#include "hub/names.h"

#include "base/os.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

enum { MOST_PARTS = 512 }; /* of a split set; a name that says more is a file of its own */

/* ---- names of files ------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool hn_ends_with_gguf(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcasecmp(path + n - 5, ".gguf") == 0;
}

/* Drafts of further tokens, by the words that stand before their names. */
static const char *const drafts[] = { "mtp-", "eagle3-", "dflash-", "dspark-" };
enum { N_DRAFTS = sizeof drafts / sizeof *drafts };

static bool begins(const char *s, const char *word) { return strncasecmp(s, word, strlen(word)) == 0; }

/* Has the file's name the word, anywhere? */
static bool says(const char *path, const char *word)
{
    for (const char *p = base_of(path); *p; p++)
        if (begins(p, word)) return true;
    return false;
}

/* Importances of weights are called by the model they were measured on: by none of the types that they are for. */
static bool is_imatrix(const char *path)
{
    char tag[48];
    if (begins(base_of(path), "imatrix")) return true;
    if (!says(path, "imatrix")) return false;
    hn_gguf_tag(tag, base_of(path));
    return !*tag || strchr("BF", toupper((unsigned char)*tag));
}

bool hn_gguf_is_side(const char *path)
{
    for (size_t i = 0; i < N_DRAFTS; i++)
        if (begins(base_of(path), drafts[i])) return true;
    return says(path, "mmproj") || is_imatrix(path);
}

/* Has the name a word further on that makes a side file of it, or not? Whole models that draft for themselves, or were
 * made with an imatrix, have it there, too: their size tells. */
static bool may_be_side(const char *path)
{
    for (size_t i = 0; i < N_DRAFTS; i++)
        if (says(path, drafts[i])) return true;
    return says(path, "imatrix");
}

static size_t five_digits(const char *s)
{
    size_t n = 0;
    for (int i = 0; i < 5; i++) n = 10 * n + (size_t)(s[i] - '0');
    return n;
}

/* "-00002-of-00003" at the end of name[0..n), whose ending is gone: the part from 1 and their number, and the length
 * before it. False: it is whole. */
static bool split_part(const char *name, size_t n, size_t *part, size_t *total, size_t *stem)
{
    if (n < 16) return false;
    const char *p = name + n - 15;
    if (p[0] != '-' || strncmp(p + 6, "-of-", 4) != 0) return false;
    for (int i = 1; i < 6; i++)
        if (!isdigit((unsigned char)p[i]) || !isdigit((unsigned char)p[i + 9])) return false;
    *part = five_digits(p + 1);
    *total = five_digits(p + 10);
    *stem = n - 15;
    return *part >= 1 && *part <= *total && *total <= MOST_PARTS;
}

/* Is s[0..n) the name of a quantization: Q4_K_M, IQ3_XXS, TQ1_0, BF16, MXFP4, Q4, …? */
static bool is_type(const char *s, size_t n)
{
    static const char *const whole[] = { "F16", "F32", "BF16", "FP16", "FP32", "MXFP4", "NVFP4" };
    static const char *const begin[] = { "Q", "IQ", "TQ", "MXFP4_" };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (n == strlen(whole[i]) && strncasecmp(s, whole[i], n) == 0) return true;
    if (n == 2 && (s[0] == 'q' || s[0] == 'Q') && s[1] >= '2' && s[1] <= '8') return true;
    for (size_t i = 0; i < n; i++) /* what nobody can type, or a terminal minds, names no type */
        if (!isalnum((unsigned char)s[i]) && s[i] != '_') return false;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
        size_t k = strlen(begin[i]);
        if (n < k + 2 || n > 24 || strncasecmp(s, begin[i], k) != 0) continue;
        if (i == 3 || (isdigit((unsigned char)s[k]) && s[k + 1] == '_')) return true;
    }
    return false;
}

/* The type in a word of a name, whose own words may be divided by '_': its length, behind *skip bytes; 0: none. */
static size_t type_in(const char *s, size_t n, size_t *skip)
{
    static const char made_with[] = "_imatrix";
    const size_t k = sizeof made_with - 1;
    if (n > k && strncasecmp(s + n - k, made_with, k) == 0) n -= k;
    for (*skip = 0; *skip < n; ++*skip)
        if ((*skip == 0 || s[*skip - 1] == '_') && is_type(s + *skip, n - *skip)) return n - *skip;
    return 0;
}

void hn_gguf_tag(char tag[48], const char *path)
{
    const char *name = base_of(path), *found = NULL;
    size_t n = strlen(name), part, total, stem, len = 0;
    if (hn_ends_with_gguf(name)) n -= 5;
    if (split_part(name, n, &part, &total, &stem)) n = stem;
    for (size_t at = 0, k; at < n; at += k + 1) {
        size_t m, skip;
        for (k = 0; at + k < n && name[at + k] != '-' && name[at + k] != '.';) k++;
        m = type_in(name + at, k, &skip);
        if (!m) continue;
        found = name + at + skip;
        len = m;
    }
    bool has = found && found - name >= 3 && (found - name == 3 || !isalnum((unsigned char)found[-4]));
    if (has && begins(found - 3, "UD-")) {
        found -= 3;
        len += 3;
    }
    if (!found && name > path) { /* of a folder for each type */
        const char *end = name - 1, *folder = end;
        while (folder > path && folder[-1] != '/') folder--;
        size_t ud = begins(folder, "UD-") ? 3 : 0;
        len = (size_t)(end - folder);
        if (len > ud && is_type(folder + ud, len - ud)) found = folder;
    }
    snprintf(tag, 48, "%.*s", (int)len, found ? found : "");
}

/* "-of-12" at s, to its end: the number; 0: it is none. */
static size_t of_how_many(const char *s)
{
    s += *s == '-' || *s == '_';
    if (!begins(s, "of")) return 0;
    s += 2;
    s += *s == '-' || *s == '_';
    size_t k = strspn(s, "0123456789");
    return k >= 1 && k <= 3 && !s[k] ? strtoul(s, NULL, 10) : 0;
}

/* ".part1of2" or "-split-a" behind ".gguf": the part, its place among the others, how many they are (0: not said), and
 * the length before it. False: the file is no piece of one that was cut. */
static bool cut_part(const char *path, size_t *part, size_t *total, size_t *stem)
{
    const char *s = base_of(path);
    while (*s && !(begins(s, ".gguf") && s[5] && strchr(".-_", s[5]))) s++;
    if (!*s) return false;
    s += 5;
    *stem = (size_t)(s++ - path);
    *total = *part = 0;
    if (!begins(s, "part") && !begins(s, "split")) return false;
    s += begins(s, "part") ? 4 : 5;
    bool apart = *s && strchr(".-_", *s);
    s += apart;
    size_t n_digit = strspn(s, "0123456789");
    if (n_digit) {
        *part = n_digit <= 3 ? strtoul(s, NULL, 10) : MOST_PARTS + 1;
        if (*part > MOST_PARTS || !s[n_digit]) return *part <= MOST_PARTS;
        *total = of_how_many(s + n_digit);
        return *part >= 1 && *part <= *total && *total <= MOST_PARTS;
    }
    size_t n_letter = 0; /* a, b, …, as `split` has them */
    for (; n_letter < 4 && isalpha((unsigned char)s[n_letter]); n_letter++)
        *part = 27 * *part + (size_t)(tolower((unsigned char)s[n_letter]) - 'a' + 1);
    return apart && n_letter >= 1 && n_letter <= 3 && !s[n_letter];
}

/* ---- sets ----------------------------------------------------------------------------------------- */

typedef struct piece {
    const char *path;
    size_t stem, part, total, file; /* stem: bytes of path that the parts share; total 1, part 1: it is whole */
} piece;

static piece piece_of(const char *path, size_t file)
{
    const char *name = base_of(path);
    piece p = { path, strlen(path) - 5, 1, 1, file };
    size_t part, total, stem;
    if (split_part(name, strlen(name) - 5, &part, &total, &stem))
        p = (piece){ path, (size_t)(name - path) + stem, part, total, file };
    return p;
}

static int compare_stems(const piece *x, const piece *y)
{
    int k = memcmp(x->path, y->path, x->stem < y->stem ? x->stem : y->stem);
    return k ? k : x->stem < y->stem ? -1 : x->stem > y->stem;
}

static int compare_sets(const piece *x, const piece *y)
{
    int k = compare_stems(x, y);
    return k ? k : x->total < y->total ? -1 : x->total > y->total;
}

static int by_set(const void *a, const void *b, void *unused)
{
    const piece *x = a, *y = b;
    int k = compare_sets(x, y);
    (void)unused;
    return k ? k : x->part < y->part ? -1 : x->part > y->part;
}

static int by_bytes(const void *a, const void *b, void *unused)
{
    const hn_gguf_set *x = a, *y = b;
    (void)unused;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes ? 1 : strcmp(x->tag, y->tag);
}

/* One set out of pieces p[0..n), which are sorted by part. */
static bool make_set(hn_gguf_set *s, const piece *p, size_t n, const hn_repo_file *files)
{
    s->n_file = s->n_missing = p->total;
    s->file = malloc(p->total * sizeof *s->file);
    if (!s->file) return false;
    for (size_t i = 0; i < p->total; i++) s->file[i] = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t *at = &s->file[p[i].part - 1];
        if (*at != SIZE_MAX) continue; /* named twice */
        *at = p[i].file;
        s->n_missing--;
        if (!hn_add_u64(s->bytes, files[p[i].file].size, &s->bytes)) s->bytes = UINT64_MAX;
    }
    hn_gguf_tag(s->tag, p->path);
    return true;
}

/* Sets s[0..n) of one stem, the one of the fewest files first: which of them are the first whole one again? Its bytes
 * tell: each file has a header of its own, and no other quantization is as near. */
static void find_again(hn_gguf_set *s, size_t n)
{
    size_t kept = 0;
    while (kept < n && s[kept].n_missing) kept++;
    for (size_t i = 0; kept < n && i < n; i++) {
        uint64_t is = s[i].bytes, expected = s[kept].bytes, near = expected / 64;
        bool less = is < expected && expected - is > near, more = is > expected && is - expected > near;
        s[i].again = i != kept && !more && (!less || s[i].n_missing);
    }
}

/* One cut file out of pieces p[0..n), which are sorted by part. */
static bool make_cut(hn_gguf_cut *c, const piece *p, size_t n, const hn_repo_file *files)
{
    c->file = malloc(n * sizeof *c->file);
    if (!c->file) return false;
    c->total = p->total;
    c->stem = p->stem;
    for (size_t i = 0; i < n; i++) {
        if (i && p[i].part == p[i - 1].part) continue; /* named twice */
        c->file[c->n_file++] = p[i].file;
        if (!hn_add_u64(c->bytes, files[p[i].file].size, &c->bytes)) c->bytes = UINT64_MAX;
    }
    hn_gguf_tag(c->tag, p->path);
    return true;
}

static int by_bytes_of_cuts(const void *a, const void *b, void *unused)
{
    const hn_gguf_cut *x = a, *y = b;
    (void)unused;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes ? 1 : strcmp(x->tag, y->tag);
}

static bool find_cuts(hn_gguf_sets *out, const hn_repo_file *files, size_t n)
{
    size_t n_piece = 0, k;
    piece c = { 0 };
    for (size_t i = 0; i < n; i++) n_piece += cut_part(files[i].path, &c.part, &c.total, &c.stem);
    if (!n_piece) return true;
    piece *p = calloc(n_piece, sizeof *p);
    bool good = p && (out->cut = calloc(n_piece, sizeof *out->cut));
    n_piece = 0;
    for (size_t i = 0; good && i < n; i++) {
        c.path = files[i].path;
        c.file = i;
        if (cut_part(c.path, &c.part, &c.total, &c.stem) && !hn_gguf_is_side(c.path)) p[n_piece++] = c;
    }
    if (good) hn_os_sort(p, n_piece, sizeof *p, by_set, NULL);
    for (size_t i = 0; good && i < n_piece; i += k) {
        for (k = 1; i + k < n_piece && compare_sets(&p[i], &p[i + k]) == 0;) k++;
        good = make_cut(&out->cut[out->n_cut++], p + i, k, files);
    }
    free(p);
    if (good) hn_os_sort(out->cut, out->n_cut, sizeof *out->cut, by_bytes_of_cuts, NULL);
    return good;
}

hone_status hn_gguf_sets_of(hn_gguf_sets *out, const hn_repo_file *files, size_t n, hone_error *err)
{
    *out = (hn_gguf_sets){ 0 };
    piece *p = calloc(n ? n : 1, sizeof *p);
    size_t n_piece = 0;
    bool good = p && (out->set = calloc(n ? n : 1, sizeof *out->set));
    for (size_t i = 0; good && i < n; i++)
        if (hn_ends_with_gguf(files[i].path) && !hn_gguf_is_side(files[i].path))
            p[n_piece++] = piece_of(files[i].path, i);
    if (good) hn_os_sort(p, n_piece, sizeof *p, by_set, NULL);
    for (size_t i = 0, begin = 0, k; good && i < n_piece; i += k) {
        for (k = 1; i + k < n_piece && compare_sets(&p[i], &p[i + k]) == 0;) k++;
        good = make_set(&out->set[out->n++], p + i, k, files);
        if (i + k < n_piece && compare_stems(&p[i], &p[i + k]) == 0) continue;
        find_again(out->set + begin, out->n - begin);
        begin = out->n;
    }
    free(p);
    if (!good || !find_cuts(out, files, n)) {
        hn_gguf_sets_free(out);
        return HN_FAIL(err, HONE_E_NOMEM, "the list of %zu files", n);
    }
    hn_os_sort(out->set, out->n, sizeof *out->set, by_bytes, NULL);
    return HONE_OK;
}

void hn_gguf_sets_free(hn_gguf_sets *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->set[i].file);
    for (size_t i = 0; i < s->n_cut; i++) free(s->cut[i].file);
    free(s->set);
    free(s->cut);
    *s = (hn_gguf_sets){ 0 };
}

static const char *first_of(const hn_gguf_set *s, const hn_repo_file *files)
{
    for (size_t i = 0; i < s->n_file; i++)
        if (s->file[i] != SIZE_MAX) return files[s->file[i]].path;
    return "";
}

static double gib(uint64_t bytes) { return (double)bytes / 0x1p30; }

char *hn_gguf_cut_words(char dst[HN_CUT_WORDS], const hn_gguf_cut *cut)
{
    if (cut->total > cut->n_file)
        snprintf(dst, HN_CUT_WORDS, "%zu parts, of which %zu are there", cut->total, cut->n_file);
    else snprintf(dst, HN_CUT_WORDS, "%zu parts", cut->n_file);
    return dst;
}

char *hn_gguf_sets_words(char *dst, size_t cap, const hn_gguf_sets *sets)
{
    size_t at = 0;
    if (cap) *dst = 0;
    for (size_t i = 0; i < sets->n + sets->n_cut && at < cap; i++) {
        const hn_gguf_set *s = i < sets->n ? &sets->set[i] : NULL;
        const hn_gguf_cut *c = s ? NULL : &sets->cut[i - sets->n];
        const char *tag = s ? s->tag : c->tag;
        char parts[HN_CUT_WORDS], more[HN_CUT_WORDS + 16] = "";
        if (s && s->again) continue;
        if (c) snprintf(more, sizeof more, " (cut into %s)", hn_gguf_cut_words(parts, c));
        else if (s->n_missing) snprintf(more, sizeof more, " (incomplete)");
        if (at + 60 + strlen(more) > cap) {
            snprintf(dst + at, cap - at, ", …");
            break;
        }
        at += (size_t)snprintf(dst + at, cap - at, "%s%s %.2f GiB%s", at ? ", " : "", *tag ? tag : "unnamed",
                               gib(s ? s->bytes : c->bytes), more);
    }
    return dst;
}

/* ---- the choice -------------------------------------------------------------------------------------- */

uint64_t hn_memory_for(uint64_t bytes)
{
    uint64_t need;
    return hn_add_u64(bytes, bytes / 8 + (256u << 20), &need) ? need : UINT64_MAX;
}

uint64_t hn_memory_for_models(void) { return hn_memory_total() / 8 * 7; }

/* The first of these that is there and fits is taken, of one name UD- (a mixture made for the model) before the plain
 * one. Q4_K_M is where most of the quality is for the bytes that each token reads; above it up to Q8_0; then what is
 * smaller, the best first. */
static const char *const preferred[] = {
    "Q4_K_M",  "Q4_K",    "Q4_K_XL", "MXFP4",  "MXFP4_MOE", "Q4_K_L", "Q4",     "Q5_K_M",  "Q5_K",   "Q5_K_XL",
    "Q5_K_S",  "Q5_K_L",  "Q5",      "Q6_K",   "Q6_K_S",    "Q6_K_M", "Q6_K_L", "Q6_K_XL", "Q6",     "Q8_0",
    "Q8",      "Q8_K_XL", "Q5_1",    "Q5_0",   "Q4_K_S",    "Q4_1",   "Q4_0",   "NVFP4",   "IQ4_NL", "IQ4_NL_XL",
    "IQ4_XS",  "Q3_K_XL", "Q3_K_L",  "Q3_K_M", "Q3_K",      "Q3",     "IQ3_M",  "Q3_K_S",  "IQ3_S",  "IQ3_XS",
    "IQ3_XXS", "Q2_K_XL", "Q2_K_L",  "Q2_K",   "Q2",        "Q2_K_S", "IQ2_M",  "IQ2_S",   "IQ2_XS", "IQ2_XXS",
    "IQ1_M",   "IQ1_S",   "TQ2_0",   "TQ1_0",  "BF16",      "F16",    "FP16",   "F32",     "FP32",
};
enum { N_PREFERRED = sizeof preferred / sizeof *preferred };
static const uint64_t SMALL = (uint64_t)2 << 30;

typedef struct choosing {
    const hn_gguf_sets *sets;
    const hn_repo_file *files;
    const hn_name *name;
    uint64_t memory;
    uint64_t most; /* weights of the largest that belongs */
    hone_error *err;
    char text[1200]; /* the name */
    char words[500]; /* what is there */
} choosing;

static bool fits(const choosing *c, const hn_gguf_set *s) { return !c->memory || hn_memory_for(s->bytes) <= c->memory; }

/* Does a set belong to the folder that the name says, if any? */
static bool belongs(const choosing *c, const hn_gguf_set *s)
{
    const char *folder = c->name->folder ? c->name->path : "", *path = first_of(s, c->files);
    size_t n = strlen(folder);
    return !n || (strncmp(path, folder, n) == 0 && path[n] == '/');
}

/* What the name means of what is cut, if anything. */
static const hn_gguf_cut *cut_meant(const choosing *c)
{
    const hn_name *name = c->name;
    size_t n = strlen(name->path);
    for (size_t i = 0; i < c->sets->n_cut; i++) {
        const hn_gguf_cut *cut = &c->sets->cut[i];
        const char *path = c->files[cut->file[0]].path, *tag = cut->tag;
        bool there = !n || (strncmp(path, name->path, n) == 0 && (name->folder ? path[n] == '/' : cut->stem == n));
        if (!there) continue;
        if (!*name->tag || strcasecmp(tag, name->tag) == 0) return cut;
        if (strncasecmp(tag, "UD-", 3) == 0 && strcasecmp(tag + 3, name->tag) == 0) return cut;
    }
    return NULL;
}

/* May the name stand in a command that somebody types off, as it is? */
static bool is_plain(const char *s)
{
    if (*s == '-') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("/._-:@+,", *s)) return false;
    return true;
}

/* ", then cat A B … Z > NAME", of names without folders; "": one of them is none for a shell, or there is no room. */
static char *join_command(char *dst, size_t cap, const choosing *c, const hn_gguf_cut *cut)
{
    enum { SHOWN = 4 };
    size_t at = (size_t)snprintf(dst, cap, ", then cat");
    for (size_t i = 0; i < cut->n_file && at < cap; i++) {
        const char *path = c->files[cut->file[i]].path;
        bool cut_short = cut->n_file > SHOWN && i >= 2 && i + 1 < cut->n_file;
        if (!is_plain(path)) *dst = 0;
        if (!is_plain(path)) return dst;
        if (!cut_short) at += (size_t)snprintf(dst + at, cap - at, " %s", base_of(path));
        else if (i == 2) at += (size_t)snprintf(dst + at, cap - at, " …");
    }
    const char *first = c->files[cut->file[0]].path, *name = base_of(first);
    if (at < cap)
        at += (size_t)snprintf(dst + at, cap - at, " > %.*s", (int)(cut->stem - (size_t)(name - first)), name);
    if (at >= cap) *dst = 0; /* half a command is none */
    return dst;
}

static hone_status cut_up(const choosing *c, const hn_gguf_cut *cut)
{
    const char *first = c->files[cut->file[0]].path;
    char parts[HN_CUT_WORDS], text[HN_NAME_URL_MAX], command[600];
    hn_name one = { .kind = HN_NAME_HUB };
    memcpy(one.repo, c->name->repo, sizeof one.repo);
    memcpy(one.rev, c->name->rev, sizeof one.rev);
    snprintf(one.path, sizeof one.path, "%s", first);
    hn_name_text(text, sizeof text, &one);
    bool asked = *c->name->tag || (*c->name->path && !c->name->folder);
    return HN_FAIL(c->err, asked ? HONE_E_ARG : HONE_E_UNSUPPORTED,
                   "%s: %s is cut into %s that must be joined in their order: hone pull %s and so on%s", c->text,
                   HN_ESC(first, cut->stem), hn_gguf_cut_words(parts, cut), HN_ESC(text, strlen(text)),
                   join_command(command, sizeof command, c, cut));
}

static hone_status by_path(const choosing *c, size_t *which)
{
    for (size_t i = 0; i < c->sets->n; i++)
        for (size_t k = 0; k < c->sets->set[i].n_file; k++) {
            size_t f = c->sets->set[i].file[k];
            if (f == SIZE_MAX || strcmp(c->files[f].path, c->name->path) != 0) continue;
            *which = i;
            return HONE_OK;
        }
    if (cut_meant(c)) return cut_up(c, cut_meant(c));
    return HN_FAIL(c->err, HONE_E_ARG, "%s: no such model in the repository; there are %s", c->text, c->words);
}

static hone_status several(const choosing *c, size_t a, size_t b)
{
    const char *x = first_of(&c->sets->set[a], c->files), *y = first_of(&c->sets->set[b], c->files);
    char text[HN_NAME_URL_MAX];
    hn_name one = { .kind = HN_NAME_HUB };
    memcpy(one.repo, c->name->repo, sizeof one.repo);
    memcpy(one.rev, c->name->rev, sizeof one.rev);
    snprintf(one.path, sizeof one.path, "%s", x);
    hn_name_text(text, sizeof text, &one);
    return HN_FAIL(c->err, HONE_E_ARG, "%s means several models, %s and %s; expected one of them, as in %s", c->text,
                   HN_ESC(x, strlen(x)), HN_ESC(y, strlen(y)), HN_ESC(text, strlen(text)));
}

/* About how many weights a set has, by its bytes and the bits that its type's name says: files of types of one bit have
 * at least two, as their embedding has more. */
static uint64_t weights_of(const hn_gguf_set *s)
{
    size_t digits = strcspn(s->tag, "0123456789");
    uint64_t bits = strtoul(s->tag + digits, NULL, 10);
    return s->bytes / (bits == 1 ? 2 : bits ? bits : 8);
}

/* Which sets may be meant. */
typedef enum meant {
    NO_SMALLER, /* none but those about as large as the largest: others are drafts of it, or other models */
    NO_DRAFTS,  /* smaller ones, too, but for those whose names say that they may be drafts */
    ALL
} meant;

static bool may_be(const choosing *c, const hn_gguf_set *s, meant m)
{
    if (s->again || !belongs(c, s)) return false;
    if (m == ALL || s->n_missing || weights_of(s) >= c->most / 4) return true;
    return m == NO_DRAFTS && !may_be_side(first_of(s, c->files));
}

/* How many sets of this tag there are, and the first two of them. The same model made with an imatrix has a name of
 * its own: the tag means the plain one, unless that lacks parts and the other one is whole. */
static size_t by_tag(const choosing *c, const char *tag, meant m, size_t which[2])
{
    size_t n = 0, n_plain = 0, plain = 0, n_made = 0, made = 0;
    for (size_t i = 0; i < c->sets->n; i++) {
        const hn_gguf_set *s = &c->sets->set[i];
        if (!may_be(c, s, m) || strcasecmp(s->tag, tag) != 0) continue;
        if (n < 2) which[n] = i;
        n++;
        if (!says(first_of(s, c->files), "imatrix")) {
            plain = i;
            n_plain++;
        } else if (!s->n_missing && may_be(c, s, NO_SMALLER)) { /* no imatrix itself */
            made = i;
            n_made++;
        }
    }
    if (n_plain != 1) return n;
    which[0] = c->sets->set[plain].n_missing && n_made == 1 ? made : plain;
    return 1;
}

/* What the user typed: that, else the UD- one of the name. */
static hone_status by_own_tag(const choosing *c, size_t *which)
{
    char ud[sizeof c->name->tag + 3];
    size_t n = 0, of_tag[2];
    snprintf(ud, sizeof ud, "UD-%s", c->name->tag);
    for (int i = 0; i < 4 && !n; i++) n = by_tag(c, i < 2 ? c->name->tag : ud, i % 2 ? ALL : NO_DRAFTS, of_tag);
    if (n > 1) return several(c, of_tag[0], of_tag[1]);
    if (n) *which = of_tag[0];
    if (n) return HONE_OK;
    if (cut_meant(c)) return cut_up(c, cut_meant(c));
    return HN_FAIL(c->err, HONE_E_ARG, "%s: no model of type %s there; there are %s", c->text, c->name->tag, c->words);
}

static bool may_be_taken(const choosing *c, size_t which, uint64_t bytes)
{
    const hn_gguf_set *s = &c->sets->set[which];
    return !s->n_missing && fits(c, s) && s->bytes <= bytes;
}

/* The first in the order above that fits, at most `bytes`; *found: there is one. Several of its type are a question
 * for people; of a type that is not taken nobody is asked. */
static hone_status by_order(const choosing *c, const char *const *order, size_t n_order, uint64_t bytes, meant m,
                            size_t *which, bool *found)
{
    char tag[16];
    size_t of_tag[2];
    *found = false;
    for (size_t i = 0; i < 2 * n_order; i++) {
        snprintf(tag, sizeof tag, "%s%s", i % 2 ? "" : "UD-", order[i / 2]);
        size_t n = by_tag(c, tag, m, of_tag);
        if (!n || !(may_be_taken(c, of_tag[0], bytes) || (n > 1 && may_be_taken(c, of_tag[1], bytes)))) continue;
        if (n > 1) return several(c, of_tag[0], of_tag[1]);
        *which = of_tag[0];
        *found = true;
        return HONE_OK;
    }
    return HONE_OK;
}

/* What means this set and no other, whatever its size: by its type where no other has it, else by its path. */
static void name_of(char *dst, size_t cap, const choosing *c, const hn_gguf_set *s)
{
    size_t of_tag[2];
    hn_name n = { .kind = HN_NAME_HUB };
    snprintf(n.repo, sizeof n.repo, "%s", c->name->repo);
    snprintf(n.rev, sizeof n.rev, "%s", c->name->rev);
    bool its = *s->tag && !c->name->folder && by_tag(c, s->tag, ALL, of_tag) == 1 && s == &c->sets->set[of_tag[0]];
    if (its) snprintf(n.tag, sizeof n.tag, "%s", s->tag);
    else snprintf(n.path, sizeof n.path, "%s", first_of(s, c->files));
    hn_name_text(dst, cap, &n);
}

/* Without a tag: see hn_gguf_choose. */
static hone_status by_memory(const choosing *c, size_t *which, char *why, size_t cap)
{
    static const char *const small[] = { "Q8_0", "Q8" };
    size_t n = 0, only = 0;
    bool found = false, is_small = false;
    uint64_t least = UINT64_MAX;
    hone_status st;
    for (size_t i = 0; i < c->sets->n; i++) {
        const hn_gguf_set *s = &c->sets->set[i];
        if (!may_be(c, s, NO_DRAFTS)) continue;
        if (s->bytes < least) only = i, least = s->bytes;
        n++;
    }
    if (!n && cut_meant(c)) return cut_up(c, cut_meant(c));
    if (!n) return HN_FAIL(c->err, HONE_E_ARG, "%s: no model in this folder; there are %s", c->text, c->words);
    for (meant m = NO_SMALLER; m <= NO_DRAFTS && n > 1 && !found; m++) {
        if ((st = by_order(c, small, 2, SMALL, m, which, &is_small)) != HONE_OK) return st;
        if (is_small) found = true;
        else if ((st = by_order(c, preferred, N_PREFERRED, UINT64_MAX, m, which, &found)) != HONE_OK) return st;
    }
    if (found) {
        const hn_gguf_set *s = &c->sets->set[*which];
        snprintf(why, cap, "%s of %zu: %.2f GiB%s%.2f GiB%s; %s", s->tag, n, gib(s->bytes),
                 c->memory ? ", of the " : " of ", c->memory ? gib(c->memory) : gib(s->bytes),
                 c->memory ? " that models may take here" : "",
                 is_small                        ? "small models lose least as Q8_0"
                 : !strcasecmp(s->tag, "Q4_K_M") ? "most of the quality for the bytes each token reads"
                                                 : "the best that is there and fits");
        return HONE_OK;
    }
    const hn_gguf_set *s = &c->sets->set[only];
    char name[HN_NAME_PATH_MAX + 3 * HN_NAME_PART];
    name_of(name, sizeof name, c, s);
    if (!fits(c, s))
        return HN_FAIL(
            c->err, HONE_E_NOMEM,
            "%s: the smallest model there has %.2f GiB and would need some %.2f GiB, but models may take %.2f "
            "GiB of this machine's memory; %s takes it all the same",
            c->text, gib(s->bytes), gib(hn_memory_for(s->bytes)), gib(c->memory), HN_ESC(name, strlen(name)));
    if (n > 1)
        return HN_FAIL(c->err, HONE_E_ARG,
                       "%s: %zu models, none of a type that hone would choose by itself; expected :TAG "
                       "or a file of %s",
                       c->text, n, c->words);
    *which = only;
    snprintf(why, cap, "the only one there, %.2f GiB", gib(s->bytes));
    return HONE_OK;
}

hone_status hn_gguf_choose(size_t *which, char *why, size_t cap, const hn_gguf_sets *sets, const hn_repo_file *files,
                           const hn_name *name, uint64_t memory, hone_error *err)
{
    choosing c = { .sets = sets, .files = files, .name = name, .memory = memory, .err = err };
    hone_status st;
    *which = 0;
    if (cap) *why = 0;
    char text[1200];
    hn_name_text(text, sizeof text, name);
    snprintf(c.text, sizeof c.text, "%s", HN_ESC(text, strlen(text)));
    hn_gguf_sets_words(c.words, sizeof c.words, sets);
    for (size_t i = 0; i < sets->n; i++)
        if (belongs(&c, &sets->set[i]) && weights_of(&sets->set[i]) > c.most) c.most = weights_of(&sets->set[i]);
    if (!sets->n && !sets->n_cut) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: no GGUF file of a model there", c.text);
    if (*name->path && !name->folder) {
        st = by_path(&c, which);
        snprintf(why, cap, "the file that was named");
    } else if (*name->tag) {
        st = by_own_tag(&c, which);
        snprintf(why, cap, "the type that was named");
    } else st = by_memory(&c, which, why, cap);
    if (st != HONE_OK) return st;
    const hn_gguf_set *s = &sets->set[*which];
    for (size_t i = 0; i < s->n_file; i++)
        if (s->file[i] == SIZE_MAX)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: part %zu of %zu is missing, beside %s", c.text, i + 1, s->n_file,
                           HN_ESC(first_of(s, files), strlen(first_of(s, files))));
    return HONE_OK;
}
