/* faults: runs a command again and again, and each time makes one system call of it fail (through
 * ptrace, so that it does not matter who in the process calls), or one allocation (through a
 * preloaded library, faults_alloc.c). After each: never half an output under the right name, no
 * temporary left, never success with less, never a crash, never a hang, and a word on stderr.
 *     faults [-all] [-only KIND] [-v] [-alloc LIBRARY] -inputs FOLDER -work FOLDER HONE TABLE [ROW]…
 * A row of the table is   name | flags | commands before, divided by ; | command   with @ for the
 * folder of inputs; it runs in the work folder. Owns the injection and the verdicts; the rows are
 * in faults.table. Linux on x86-64 and AArch64; elsewhere it exits with 77. */
#define _GNU_SOURCE
#include "faults.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGS = 64, SAMPLED = 2, SHOWN_CALLS = 8, MOST_AGAIN = 3 };

static const char *hone, *inputs, *work, *alloc_library, *only;
static bool all_places, verbose;
static long n_tried, n_wrong, n_missed; /* missed: the place did not come again */

/* ---- rows ------------------------------------------------------------------------------------- */

typedef struct row {
    char *name, *flags, *before, *command;
} row;

static char *trimmed(char *s)
{
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
    return s;
}

static bool row_of(row *r, char *line)
{
    char *part[4];
    for (int i = 0; i < 4; i++) {
        part[i] = line;
        line = strchr(line, '|');
        if (!line && i < 3) return false;
        if (i < 3) *line++ = 0;
    }
    *r = (row){ trimmed(part[0]), trimmed(part[1]), trimmed(part[2]), trimmed(part[3]) };
    return true;
}

static bool flag(const row *r, const char *name) { return strstr(r->flags, name) != NULL; }

/* The words of a command; @ becomes the folder of inputs. They stay until the program ends. */
static int words_of(char **argv, const char *command)
{
    int n = 0;
    char *copy = strdup(command);
    argv[n++] = (char *)(uintptr_t)hone;
    for (char *w = strtok(copy, " "); w && n < MAX_ARGS - 1; w = strtok(NULL, " ")) {
        char *at = strchr(w, '@'), *full = NULL;
        if (at && asprintf(&full, "%.*s%s/%s", (int)(at - w), w, inputs, at + 1) >= 0) w = full;
        argv[n++] = w;
    }
    argv[n] = NULL;
    return n;
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* What is left of a text without its numbers, names with digits in them, and white space: in place. */
static void make_skeleton(blob *b)
{
    size_t o = 0;
    for (size_t i = 0; i < b->n;) {
        size_t j = i;
        bool digit = false;
        while (j < b->n && b->p[j] && (isalnum((unsigned char)b->p[j]) || strchr(".+-_", b->p[j]))) {
            digit = digit || isdigit((unsigned char)b->p[j]);
            j++;
        }
        if (j > i && (digit || (j - i == 4 && memcmp(b->p + i, "null", 4) == 0))) b->p[o++] = '#';
        else
            while (i < j) b->p[o++] = b->p[i++];
        if (j < b->n && b->p[j] != ' ') b->p[o++] = b->p[j];
        i = j + 1;
    }
    b->n = o < b->n ? o : b->n;
}

/* Lines that count: what a measurement notes of the machine beside it comes and goes with the machine. */
static size_t lines_in(const blob *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n;) {
        size_t end = i;
        while (end < b->n && b->p[end] != '\n') end++;
        while (i < end && b->p[i] == ' ') i++;
        bool noted =
            (end - i > 4 && memcmp(b->p + i, "note", 4) == 0) || (end - i > 5 && memcmp(b->p + i, "noisy", 5) == 0);
        n += end < b->n && !noted;
        i = end + 1;
    }
    return n;
}

static bool same_bytes(const blob *a, const blob *b) { return a->n == b->n && memcmp(a->p, b->p, a->n) == 0; }

/* Flags: text: figures differ from run to run; lines: so do words. */
static bool same_content(const row *r, const blob *a, const blob *b)
{
    if (same_bytes(a, b)) return true;
    if (flag(r, "any")) return (a->n == 0) == (b->n == 0);
    if (flag(r, "lines")) return lines_in(a) == lines_in(b) && (a->n == 0) == (b->n == 0);
    if (!flag(r, "text")) return false;
    blob x = blob_copy(a), y = blob_copy(b);
    make_skeleton(&x);
    make_skeleton(&y);
    bool same = same_bytes(&x, &y);
    free(x.p);
    free(y.p);
    return same;
}

/* ---- one run -------------------------------------------------------------------------------------- */

typedef struct outcome {
    finish end;
    blob out, err;
    files left;
    const blob *told; /* of the injection */
} outcome;

static void outcome_free(outcome *o)
{
    free(o->out.p);
    free(o->err.p);
    files_free(&o->left);
}

static outcome run_once(const row *r, char **argv, const files *before, injection *in)
{
    outcome o = { 0 };
    files_restore(before, work);
    in->stdin_path = NULL;
    char from[4200];
    const char *file = strstr(r->flags, "in=");
    if (file) {
        snprintf(from, sizeof from, "%s/%.*s", inputs, (int)strcspn(file + 3, " ,"), file + 3);
        in->stdin_path = from;
    }
    o.end = run_injected(argv, work, inputs, in);
    o.out = blob_of(in->out_path);
    o.err = blob_of(in->err_path);
    o.left = files_of(work);
    o.told = &in->told;
    return o;
}

/* ---- verdicts ---------------------------------------------------------------------------------------- */

/* The calls that led to the allocation that failed; "struck" stands before them. */
static void show_calls(const blob *told)
{
    char *copy = strdup(told->p), *rest = copy, *line;
    strsep(&rest, "\n");
    for (int i = 0; i < SHOWN_CALLS && rest && (line = strsep(&rest, "\n")) && *line; i++)
        printf("      at %s\n", line);
    free(copy);
}

static void report_wrong(const row *r, const char *kind, long k, const outcome *o, const char *why, const char *what)
{
    n_wrong++;
    printf("WRONG %s: %s, place %ld: %s%s (exit %d%s)\n", r->name, kind, k, why, what ? what : "", o->end.code,
           o->end.signal ? ", by a signal" : "");
    blob e = o->err;
    for (size_t i = 0, n = 0; i < e.n && n < 4; n++) {
        size_t j = i;
        while (j < e.n && e.p[j] != '\n') j++;
        printf("      | %.*s\n", (int)(j - i < 200 ? j - i : 200), e.p + i);
        i = j + 1;
    }
    if (o->told && o->told->n && strncmp(o->told->p, "struck", 6) == 0) show_calls(o->told);
    fflush(stdout);
}

/* A line of "hone: …" that is no note. */
static bool says_why(const blob *err)
{
    const char *p = err->p, *end = err->p + err->n;
    while (p && p < end && (p = memmem(p, (size_t)(end - p), "hone: ", 6))) {
        p += 6;
        if ((size_t)(end - p) < 5 || memcmp(p, "note:", 5) != 0) return true;
    }
    return false;
}

/* A file that grows by lines: what there was, and whole lines behind it. */
static bool grown_by_lines(const blob *old, const blob *now)
{
    return now->n >= old->n && memcmp(now->p, old->p, old->n) == 0 && (now->n == 0 || now->p[now->n - 1] == '\n');
}

/* After a failure: each file as it was or as it becomes, none that is neither. */
static void judge_files(const row *r, const char *kind, long k, const outcome *o, const files *before,
                        const outcome *good)
{
    for (size_t i = 0; i < before->n; i++)
        if (!flag(r, "fresh") && !files_find(&o->left, before->file[i].path) &&
            files_find(&good->left, before->file[i].path))
            report_wrong(r, kind, k, o, "gone: ", before->file[i].path);
    for (size_t i = 0; i < o->left.n; i++) {
        const file *f = &o->left.file[i], *old = files_find(before, f->path), *new = files_find(&good->left, f->path);
        if (old && same_bytes(&f->content, &old->content)) continue;
        if (new &&same_content(r, &f->content, &new->content)) continue;
        const blob nothing = { "", 0 };
        bool grows = strstr(f->path, ".jsonl") ||
                     (strstr(f->path, ".md") && new &&grown_by_lines(&f->content, &new->content)) ||
                     (old && new &&grown_by_lines(&old->content, &new->content));
        if (grows && grown_by_lines(old && !flag(r, "fresh") ? &old->content : &nothing, &f->content)) continue;
        if (!old && !new) {
            const char *also = strstr(r->flags, "also=");
            if (also && strncmp(f->path, also + 5, strcspn(also + 5, " ,")) == 0) continue;
            report_wrong(r, kind, k, o, "left behind: ", f->path);
        } else {
            report_wrong(r, kind, k, o, "half written: ", f->path);
        }
    }
}

/* What it could do without, and names: in place of a part of the output, in a note, in a record. */
static bool names(const outcome *o, const char *why)
{
    size_t n = strlen(why);
    if (memmem(o->out.p, o->out.n, why, n) || memmem(o->err.p, o->err.n, why, n)) return true;
    for (size_t i = 0; i < o->left.n; i++)
        if (memmem(o->left.file[i].content.p, o->left.file[i].content.n, why, n)) return true;
    return false;
}

/* Of memory in hone's own words, too, if they are not those of a run in which nothing fails. */
static bool is_told(const outcome *o, int error, const outcome *good)
{
    static const char no_memory[] = "no memory for";
    if (error <= 0) return false;
    return names(o, strerror(error)) || (error == ENOMEM && names(o, no_memory) && !names(good, no_memory));
}

/* After success: all of it. */
static void judge_success(const row *r, const char *kind, long k, const outcome *o, const outcome *good)
{
    if (!same_content(r, &o->out, &good->out)) {
        report_wrong(r, kind, k, o, "success, but another output", NULL);
        if (verbose) printf("--- was\n%.*s\n--- is\n%.*s\n", (int)good->out.n, good->out.p, (int)o->out.n, o->out.p);
    }
    for (size_t i = 0; i < good->left.n; i++) {
        const file *f = files_find(&o->left, good->left.file[i].path);
        if (!f) report_wrong(r, kind, k, o, "success without ", good->left.file[i].path);
        else if (!same_content(r, &f->content, &good->left.file[i].content)) {
            report_wrong(r, kind, k, o, "success with another ", f->path);
            if (verbose) printf("--- was\n%s\n--- is\n%s\n", good->left.file[i].content.p, f->content.p);
        }
    }
    for (size_t i = 0; i < o->left.n; i++)
        if (!files_find(&good->left, o->left.file[i].path))
            report_wrong(r, kind, k, o, "success leaves ", o->left.file[i].path);
}

/* After success without a part that is named: files say other things, but there are all of them and no more, unless
 * one is named that could not be written, or removed. */
static void judge_told(const row *r, const char *kind, long k, const outcome *o, const outcome *good)
{
    for (size_t i = 0; i < good->left.n; i++) {
        const char *path = good->left.file[i].path;
        if (!files_find(&o->left, path) && !names(o, path)) report_wrong(r, kind, k, o, "success without ", path);
    }
    for (size_t i = 0; i < o->left.n; i++) {
        const char *path = o->left.file[i].path;
        if (!files_find(&good->left, path) && !names(o, path)) report_wrong(r, kind, k, o, "success leaves ", path);
    }
}

/* A judgement that was made, and all of it told; where the telling failed, the judgement is the exit code still. */
static bool is_verdict(const outcome *o)
{
    return o->end.code == 0 || (o->end.code >= 10 && o->end.code <= 13 && (o->out.n || !says_why(&o->err)));
}

static void judge(const row *r, const char *kind, int error, long k, const outcome *o, const files *before,
                  const outcome *good)
{
    n_tried++;
    bool told = !o->end.hung && is_told(o, error, good);
    if (o->end.hung) report_wrong(r, kind, k, o, "it did not end", NULL);
    else if (o->end.signal) report_wrong(r, kind, k, o, "it died of signal ", strsignal(o->end.signal));
    else if (o->end.code == good->end.code || (flag(r, "verdict") && error >= 0 && is_verdict(o)))
        told ? judge_told(r, kind, k, o, good) : judge_success(r, kind, k, o, good);
    else {
        if (!says_why(&o->err)) report_wrong(r, kind, k, o, "it failed without a word", NULL);
        judge_files(r, kind, k, o, before, good);
    }
}

/* ---- all places of a row ------------------------------------------------------------------------------ */

/* Which of n places are tried: all, or the first, the last, and some between that differ from row to row. */
static bool is_tried(long k, long n, unsigned seed)
{
    if (all_places || n <= SAMPLED || k == 1 || k == n) return true;
    return k == 2 + (long)(seed % (unsigned)(n - 2 > 0 ? n - 2 : 1));
}

static unsigned seed_of(const char *s, unsigned h)
{
    while (*s) h = h * 31 + (unsigned char)*s++;
    return h;
}

static void try_place(const row *r, char **argv, const files *before, const outcome *good, injection *in,
                      const char *kind, long k)
{
    int error = in->to_full ? -ENOSPC : in->alloc_library ? ENOMEM : in->kind ? in->kind->error : 0;
    in->k = k;
    outcome o = run_once(r, argv, before, in);
    for (int again = 0; again < MOST_AGAIN && in->alloc_library && !in->struck;
         again++) { /* what the stack had moved */
        outcome_free(&o);
        o = run_once(r, argv, before, in);
    }
    if (in->struck || in->to_full) judge(r, kind, error, k, &o, before, good);
    else n_missed++;
    outcome_free(&o);
    in->k = 0;
}

static void try_places(const row *r, char **argv, const files *before, const outcome *good, injection *in,
                       const char *kind, long n)
{
    for (long k = 1; k <= n; k++)
        if (is_tried(k, n, seed_of(r->name, seed_of(kind, 7)))) try_place(r, argv, before, good, in, kind, k);
}

/* The lines "site ID HITS" of a run in which nothing failed. */
static size_t sites_of(alloc_site **sites, const blob *told)
{
    size_t n = 0;
    alloc_site s;
    *sites = NULL;
    for (const char *p = told->p; p && sscanf(p, "site %19s %ld", s.id, &s.hits) == 2; n++) {
        *sites = realloc(*sites, (n + 1) * sizeof **sites);
        if (!*sites) abort();
        (*sites)[n] = s;
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    return n;
}

/* Of each site the first allocation, the second and the last: the first time, a later time, and when all else is there.
 * There can be millions of allocations, but hardly more than a thousand sites. */
static void try_allocations(const row *r, char **argv, const files *before, const outcome *good, injection *in)
{
    alloc_site *sites;
    size_t n = sites_of(&sites, &in->told);
    for (size_t i = 0; i < n; i++) {
        const long hits[3] = { 1, 2, sites[i].hits };
        in->site = &sites[i];
        if (!is_tried((long)i + 1, (long)n, seed_of(r->name, seed_of("alloc", 7)))) continue;
        for (int h = 0; h < 3; h++)
            if (hits[h] <= sites[i].hits && (h == 0 || hits[h] > hits[h - 1]) && (all_places || h == 0 || i + 1 == n))
                try_place(r, argv, before, good, in, "alloc", hits[h]);
    }
    in->site = NULL;
    free(sites);
}

/* What the row's command does where nothing fails; false where it does not. */
static bool try_good(const row *r, char **argv, const files *before, injection *in, outcome *good)
{
    in->count_only = true;
    in->alloc_library = flag(r, "noalloc") ? NULL : alloc_library;
    *good = run_once(r, argv, before, in);
    in->count_only = false;
    in->alloc_library = NULL;
    bool fails = flag(r, "verdict") ? good->end.code != 0 && good->end.code < 10 : good->end.code != 0;
    if (fails || good->end.signal) report_wrong(r, "nothing fails", 0, good, "expected exit 0", NULL);
    return !fails && !good->end.signal;
}

static void try_row(row *r, const char *temp)
{
    char *argv[MAX_ARGS], out[4200], err[4200], told[4200];
    files nothing = { 0 };
    snprintf(out, sizeof out, "%.4000s/stdout", temp);
    snprintf(err, sizeof err, "%.4000s/stderr", temp);
    snprintf(told, sizeof told, "%.4000s/told", temp);
    injection in = { .out_path = out, .err_path = err, .alloc_path = told };
    files_restore(&nothing, work);
    char *rest = r->before;
    for (char *one; *rest && (one = strsep(&rest, ";"));) {
        words_of(argv, trimmed(one));
        finish f =
            run_injected(argv, work, inputs,
                         &(injection){ .out_path = out, .err_path = err, .alloc_path = told, .count_only = true });
        if (f.code != 0 || f.signal) {
            blob e = blob_of(err);
            printf("WRONG %s: before it, `%s` ended with %d: %.*s\n", r->name, one, f.code, (int)e.n, e.p);
            n_wrong++;
            return;
        }
        if (!rest) break;
    }
    files before = files_of(work);
    words_of(argv, r->command);
    outcome good;
    long tried = n_tried, missed = n_missed;
    if (!try_good(r, argv, &before, &in, &good)) return;
    long n_of[64];
    for (int i = 0; fault_kinds[i].name; i++) n_of[i] = in.n_calls[fault_kinds[i].class];
    for (int i = 0; fault_kinds[i].name; i++) {
        if (only && !strstr(fault_kinds[i].name, only)) continue;
        if (!all_places && !fault_kinds[i].sampled) continue;
        in.kind = &fault_kinds[i];
        try_places(r, argv, &before, &good, &in, fault_kinds[i].name, n_of[i]);
    }
    in.kind = NULL;
    if (alloc_library && !flag(r, "noalloc") && (!only || strcmp(only, "alloc") == 0)) {
        in.alloc_library = alloc_library;
        try_allocations(r, argv, &before, &good, &in);
        in.alloc_library = NULL;
    }
    if (good.out.n && access("/dev/full", W_OK) == 0 && (!only || strcmp(only, "full") == 0)) {
        in.to_full = true;
        try_places(r, argv, &before, &good, &in, "standard output full", 1);
        in.to_full = false;
    }
    printf("done  %s: %ld failures, %ld places that did not come again\n", r->name, n_tried - tried, n_missed - missed);
    fflush(stdout);
    outcome_free(&good);
    files_free(&before);
}

int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-all") == 0) all_places = true;
        else if (strcmp(argv[i], "-v") == 0) verbose = true;
        else if (i + 1 >= argc) break;
        else if (strcmp(argv[i], "-only") == 0) only = argv[++i];
        else if (strcmp(argv[i], "-alloc") == 0) alloc_library = argv[++i];
        else if (strcmp(argv[i], "-inputs") == 0) inputs = argv[++i];
        else if (strcmp(argv[i], "-work") == 0) work = argv[++i];
    }
    if (argc - i < 2 || !inputs || !work) {
        fprintf(stderr,
                "usage: faults [-all] [-only KIND] [-alloc LIBRARY] -inputs FOLDER -work FOLDER HONE TABLE [ROW]...\n");
        return 2;
    }
    if (!can_inject()) {
        puts("SKIP: no process may be traced here");
        return 77;
    }
    char temp[4096];
    snprintf(temp, sizeof temp, "%s.run", work);
    files_make_folder(work);
    files_make_folder(temp);
    hone = argv[i];
    blob table = blob_of(argv[i + 1]);
    char *rest = table.p, *line;
    while (rest && (line = strsep(&rest, "\n"))) {
        row r;
        bool wanted = argc - i == 2;
        if (*line == '#' || !row_of(&r, line)) continue;
        for (int k = i + 2; k < argc; k++) wanted = wanted || strcmp(argv[k], r.name) == 0;
        if (wanted) try_row(&r, temp);
    }
    printf("%ld failures injected, %ld wrong, %ld places that did not come again\n", n_tried, n_wrong, n_missed);
    return n_wrong != 0;
}
