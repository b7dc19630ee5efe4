/* hone bench -p 128,512 -t 1,2, or 1-8*2 as llama-bench has ranges: lists where a number is expected measure every
 * combination, one after the other, each as if it had been asked for alone. Owns the expansion; refuses to know what is
 * measured. */
#include "cli/bench/bench_command.h"

#include <stdlib.h>

enum { MAX_LISTS = 4, MAX_ITEMS = 32, MAX_CELLS = 256 };

typedef struct list {
    int at;           /* argv[at] holds it */
    const char *head; /* what stands before the items there: "--n-prompt=", or "" */
    char *text;       /* the items, cut apart */
    char *item[MAX_ITEMS];
    int n;
} list;

/* Of `word`: "" when its value is the next word, "--NAME=" when it follows, NULL: none of these options. */
static const char *head_of(const char *word)
{
    static const char *const names[] = { "--n-prompt=", "--n-gen=", "--depth=", "--threads=" };
    static const char letters[] = "pndt";
    if (word[0] == '-' && word[1] && strchr(letters, word[1]) && !word[2]) return "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) == 0) return names[i];
        if (strlen(word) == n - 1 && strncmp(word, names[i], n - 1) == 0) return "";
    }
    return NULL;
}

/* Whole numbers with commas, and ranges FIRST-LAST, FIRST-LAST+STEP, FIRST-LAST*FACTOR between them; anything else is
 * left to the parser, which says what is wrong. */
static bool is_list(const char *s)
{
    return strpbrk(s, ",-") && strchr("0123456789", s[0]) && strchr("0123456789", s[strlen(s) - 1]) &&
           !strstr(s, ",,") && strspn(s, "0123456789,-+*") == strlen(s);
}

/* Ranges written out: "1-8*2,9" becomes "1,2,4,8,9". malloc'ed; NULL: no list, too long, or no memory. */
static char *written_out(const char *s)
{
    enum { ROOM = MAX_ITEMS * 12 };
    char *out = malloc(ROOM), *end = NULL;
    size_t n = 0;
    int items = 0;
    for (bool ok = out != NULL; ok; s = end + 1) {
        long long first = strtoll(s, &end, 10), last = first, by = 1;
        bool times = false;
        if (*end == '-') last = strtoll(end + 1, &end, 10);
        if (*end == '+' || *end == '*') {
            times = *end == '*';
            by = strtoll(end + 1, &end, 10);
        }
        ok = (*end == ',' || !*end) && first >= 0 && first <= last && last < 1000000000 && by > times &&
             by < 1000000000 && (first || !times);
        for (long long v = first; ok && v <= last; v = times ? v * by : v + by) {
            ok = ++items <= MAX_ITEMS;
            if (ok) n += (size_t)snprintf(out + n, ROOM - n, "%s%lld", n ? "," : "", v);
        }
        if (ok && !*end) return out;
        if (!ok) break;
    }
    free(out);
    return NULL;
}

static int lists_of(list *l, int argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0 && n < MAX_LISTS; i++) {
        const char *head = head_of(argv[i]);
        if (!head || (!*head && i + 1 == argc)) continue;
        int at = *head ? i : i + 1;
        const char *value = argv[at] + strlen(head);
        char *text = is_list(value) ? written_out(value) : NULL;
        if (text) l[n++] = (list){ .at = at, .head = head, .text = text };
        i = at;
    }
    return n;
}

bool hn_bench_is_grid(int argc, char **argv)
{
    list l[MAX_LISTS];
    int n = lists_of(l, argc, argv);
    for (int i = 0; i < n; i++) free(l[i].text);
    return n > 0;
}

/* Runs one cell; the words that differ are said before it, on a terminal's or a file's own line, not into JSON. */
static int run_cell(const list *l, int n, int cell, int argc, char **argv, hn_bench_cell *run)
{
    char **copy = malloc(((size_t)argc + 1) * sizeof *copy), word[MAX_LISTS][64];
    bool json = false;
    if (!copy) return hn_cli_error(HN_EXIT_NOMEM, "no memory for a line of the grid");
    memcpy(copy, argv, ((size_t)argc) * sizeof *copy);
    copy[argc] = NULL;
    for (int i = 0; i < argc; i++) { /* a result for programs, or a table: nothing between its lines */
        bool format = strncmp(argv[i], "--format", 8) == 0;
        json = json || strcmp(argv[i], "--json") == 0 || (format && !strstr(argv[i], "text"));
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc) json = strcmp(argv[i + 1], "text") != 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        snprintf(word[i], sizeof word[i], "%.20s%.40s", l[i].head, l[i].item[cell % l[i].n]);
        cell /= l[i].n;
        copy[l[i].at] = word[i];
    }
    for (int i = 0; i < n && !json; i++)
        hn_out_printf("%s%s%s%s", i ? " " : "== ", *l[i].head ? "" : argv[l[i].at - 1], *l[i].head ? "" : " ", word[i]);
    if (!json) hn_out_printf("\n");
    int rc = run(argc, copy);
    if (!json) hn_out_printf("\n");
    free(copy);
    return rc;
}

int hn_bench_grid(int argc, char **argv, hn_bench_cell *run)
{
    list l[MAX_LISTS];
    int n = lists_of(l, argc, argv), cells = 1, rc = 0;
    for (int i = 0; i < n; i++) {
        char *save = NULL;
        for (char *w = l[i].text ? strtok_r(l[i].text, ",", &save) : NULL; w && l[i].n < MAX_ITEMS;
             w = strtok_r(NULL, ",", &save))
            l[i].item[l[i].n++] = w;
        if (l[i].n == 0) rc = hn_cli_error(HN_EXIT_NOMEM, "no memory for a grid");
        cells *= l[i].n;
        if (cells > MAX_CELLS && rc == 0)
            rc = hn_cli_error(HN_EXIT_USAGE, "a grid of more than %d measurements; give shorter lists", MAX_CELLS);
    }
    for (int cell = 0; cell < cells && rc != HN_EXIT_INTERRUPTED && rc != HN_EXIT_USAGE && rc != HN_EXIT_NOMEM;
         cell++) {
        int code = run_cell(l, n, cell, argc, argv, run);
        if (code) rc = code;
    }
    for (int i = 0; i < n; i++) free(l[i].text);
    return rc;
}
