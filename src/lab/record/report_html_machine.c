/* What bounds and holds a measurement, on the page: rooflines, memory, profiles, what differs between the machines.
 * Owns what stands where; the drawings are report_plots.c's. */
#include "base/os.h"
#include "lab/record/report_html.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_ENVIRONS = 4, MAX_SPOTS = 40, MAX_STACKS = 10, MAX_OPS = 16, KINDS = 7 };

/* ---- roofline ------------------------------------------------------------------------------------- */

typedef struct roofs {
    hn_rep_roof roof[16];
    char name[16][48];
    size_t n;
} roofs;

static void add_roof(roofs *r, const char *kind, long threads, double value, bool bytes)
{
    char name[48];
    size_t k = 0;
    if (!(value > 0)) return;
    snprintf(name, sizeof name, "%.20s, %ld thread%s", kind, threads, threads == 1 ? "" : "s");
    while (k < r->n && strcmp(r->name[k], name) != 0) k++;
    if (k == r->n && r->n == 16) return;
    if (k == r->n) {
        memcpy(r->name[k], name, sizeof name);
        r->roof[r->n++] = (hn_rep_roof){ r->name[k], value, bytes };
    } else r->roof[k].value = fmax(r->roof[k].value, value);
}

static void peaks_roofs(roofs *r, json_t *peaks)
{
    static const char *const kinds[] = { "read", "int8", "f32" };
    for (size_t k = 0; k < 3; k++) {
        json_t *points = json_object_get(json_object_get(peaks, kinds[k]), "points"),
               *last = json_array_get(points, json_array_size(points) ? json_array_size(points) - 1 : 0);
        if (json_is_object(last))
            add_roof(r, kinds[k], (long)hn_rep_int(last, "threads"), hn_record_number(last, "best"), k == 0);
    }
}

typedef struct spots {
    hn_rep_spot s[MAX_SPOTS];
    char name[MAX_SPOTS][256];
    double pct[MAX_SPOTS];
    char bound[MAX_SPOTS][24];
    size_t n, all;
} spots;

static void add_spot(spots *p, double intensity, double gops, double pct, const char *bound, const char *id,
                     const char *what, const char *label)
{
    if (!(intensity > 0 && gops > 0 && isfinite(intensity) && isfinite(gops))) return;
    if (p->all++ >= MAX_SPOTS) return;
    size_t k = p->n++;
    snprintf(p->name[k], sizeof p->name[k], "%s%s%s%s%s", id, *what ? " " : "", what, *label ? ", " : "", label);
    snprintf(p->bound[k], sizeof p->bound[k], "%s", bound);
    p->pct[k] = pct;
    p->s[k] = (hn_rep_spot){ intensity, gops, (int)p->n, p->name[k] };
}

static void find_spots(spots *p, roofs *roof, const hn_report *r)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        json_t *o = r->rows[i].record, *f = json_object_get(o, "roofline"), *config = json_object_get(o, "config");
        const char *id = hn_record_id(o), *label = r->rows[i].label, *kind = hn_record_text(f, "roof");
        double pct = hn_record_number(f, "pct"), value = hn_record_number(f, "roof_value"),
               bytes = hn_record_number(f, "bytes");
        double ops = hn_record_number(f, "ops");
        long threads = (long)hn_rep_int(config, "threads");
        bool read = strcmp(kind, "read") == 0;
        if (json_is_false(json_object_get(o, "valid"))) continue;
        if (isfinite(value) && pct > 0) {
            add_roof(roof, kind, threads > 0 ? threads : 1, value, read);
            add_spot(p, ops / bytes, 0.01 * pct * value * (read ? ops / bytes : 1), pct, kind, id, "", label);
        }
        double per_token = hn_record_number(f, "bytes_per_token"),
               params = hn_record_number(json_object_get(o, "model"), "params"),
               n_prompt = hn_record_number(config, "n_prompt"), chunk = hn_record_number(config, "chunk");
        if (!(per_token > 0 && params > 0)) continue;
        double in = 2 * params / per_token, batch = chunk > 0 ? fmin(chunk, n_prompt) : n_prompt;
        add_roof(roof, "read", threads > 0 ? threads : 1, hn_record_number(f, "roof_gb_s"), true);
        add_spot(p, in, hn_record_number(f, "gb_s") * in, pct, "read", id, "decode", label);
        if (batch > 0)
            add_spot(p, in * batch, hn_record_number(f, "prefill_gops"), hn_record_number(f, "prefill_pct"),
                     "arithmetic", id, "prefill", label);
    }
}

/* Arithmetic before reading, high before low: as they lie in the drawing. */
static int by_roof(const void *a, const void *b)
{
    const hn_rep_roof *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes ? 1 : -1;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

void hn_html_roofline(FILE *f, const hn_report *r)
{
    spots *p = calloc(1, sizeof *p);
    roofs *roof = calloc(1, sizeof *roof);
    if (!p || !roof) hn_json_lose();
    if (p && roof) find_spots(p, roof, r);
    if (p && roof && json_array_size(r->peaks)) {
        roof->n = 0; /* measured as such: better than what single results repeat of it */
        peaks_roofs(roof, json_array_get(r->peaks, json_array_size(r->peaks) - 1));
    }
    if (roof) qsort(roof->roof, roof->n, sizeof *roof->roof, by_roof);
    if (p && roof && p->n) {
        hn_html_section(
            f, "roofline", "Roofline",
            roof->n
                ? "How much arithmetic per byte read, and how fast. Below the slanted line memory is the limit, "
                  "below the level ones arithmetic. The roofs were measured on the machine; "
                  "operations per byte follow from the shapes, with weights read once per call."
                : "How much arithmetic per byte read, and how fast; operations per byte follow from the shapes, with "
                  "weights read once per call. No lines are drawn: nobody has measured what this machine can do, "
                  "which hone lab peaks does.");
        put(f, "<figure>");
        hn_rep_plot_roofline(f, roof->roof, roof->n, p->s, p->n);
        put(f, "</figure>\n<table class=\"fold\"><thead><tr><th>Measurement</th><th class=\"r\">Operations<br/>per "
               "byte</th><th class=\"r\">10\xE2\x81\xB9 operations/s</th><th>Of the roof</th>"
               "</tr></thead>\n<tbody>\n");
        for (size_t i = 0; i < p->n; i++) {
            char a[HN_REP_NUM], b[HN_REP_NUM];
            fprintf(f, "<tr><th scope=\"row\" class=\"all\"><b class=\"num\">%d</b>\xC2\xA0 ", p->s[i].number);
            text2(f, "", p->name[i], "</th>");
            fprintf(f,
                    "<td class=\"r\" data-h=\"operations per byte\">%s</td><td class=\"r\" data-h=\"10\xE2\x81\xB9 "
                    "operations/s\">%s</td><td data-h=\"of the roof\">",
                    hn_rep_num(a, p->s[i].intensity, 3), hn_rep_num(b, p->s[i].gops, 3));
            hn_html_meter(f, p->pct[i], p->bound[i]);
            put(f, "</td></tr>\n");
        }
        put(f, "</tbody></table>\n");
        hn_html_left_out(f, p->n, p->all, "measurements");
        put(f, "</section>\n");
    }
    free(p);
    free(roof);
}

/* ---- memory and profile ------------------------------------------------------------------------------- */

static void parts_list(FILE *f, const hn_rep_part *p, size_t n, const char *unit)
{
    char num[HN_REP_NUM];
    put(f, "<ul class=\"parts\">");
    for (size_t i = 0; i < n; i++) {
        if (!(p[i].value >= 0)) continue;
        fprintf(f,
                "<li><svg width=\"11\" height=\"11\" aria-hidden=\"true\"><rect class=\"k%d\" width=\"11\" "
                "height=\"11\" rx=\"2\"/></svg>",
                p[i].kind % 7);
        text(f, p[i].name);
        fprintf(f, " <b>%s</b> %s</li>", hn_rep_num(num, p[i].value, 3), unit);
    }
    put(f, "</ul>\n");
}

static double mb(json_t *o, const char *key) { return hn_record_number(o, key); }

static void memory_rows(FILE *f, const hn_report *r, size_t *shown, size_t *all, bool draw)
{
    double full = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->n_rows; i++) {
            json_t *o = r->rows[i].record, *m = json_object_get(o, "memory");
            double anon = mb(m, "peak_anon_mb"), model = mb(m, "model_resident_mb"), hwm = mb(m, "hwm_mb");
            if (!(anon >= 0) || !(model >= 0) || !hn_record_is_plain(o)) continue;
            if (pass == 0) {
                ++*all;
                full = fmax(full, fmax(anon + model, isfinite(hwm) ? hwm : 0));
                continue;
            }
            if (!draw || *shown == MAX_STACKS) continue;
            ++*shown;
            hn_rep_part p[] = { { "model pages in memory", model, 0 }, { "anonymous memory, at its peak", anon, 1 } };
            char num[HN_REP_NUM], t[200];
            text2(f, "<div><h3>", r->rows[i].label, "</h3>");
            snprintf(t, sizeof t, "Memory: %s MB altogether", hn_rep_num(num, anon + model, 3));
            hn_rep_plot_bar(f, p, 2, full, hwm, "MB", t);
            parts_list(f, p, 2, "MB");
            put(f, "<p class=\"note\">");
            if (isfinite(hwm))
                fprintf(f, "Black line: high-water mark of everything resident, %s MB. ", hn_rep_num(num, hwm, 3));
            static const struct {
                const char *key, *name;
            } reserved[] = { { "cache_mb", "KV cache" }, { "scratch_mb", "scratch" }, { "logits_mb", "logits" } };
            int k = 0;
            for (int c = 0; c < 3; c++)
                if (isfinite(mb(m, reserved[c].key)))
                    fprintf(f, "%s%s %s MB", k++ ? ", " : "Reserved: ", reserved[c].name,
                            hn_rep_num(num, mb(m, reserved[c].key), 3));
            put(f, k ? ".</p></div>\n" : "</p></div>\n");
        }
}

/* A ledger: named parts in bytes or MB, and the peak that they should sum to. */
static size_t ledger_parts(hn_rep_part *p, size_t cap, json_t *o, double *peak)
{
    json_t *parts = json_object_get(o, "parts"), *one;
    size_t n = 0, i;
    const char *key;
    *peak = mb(o, "measured_mb");
    if (!isfinite(*peak)) *peak = mb(o, "peak_mb");
    if (json_is_object(parts)) json_object_foreach(parts, key, one)
        {
            if (n < cap && json_is_number(one) && json_number_value(one) >= 0)
                p[n] = (hn_rep_part){ key, json_number_value(one), (int)n }, n++;
        }
    json_array_foreach(parts, i, one)
    {
        double v = mb(one, "mb");
        if (!isfinite(v)) v = 1e-6 * mb(one, "bytes");
        const char *name = hn_record_text(one, "part");
        if (n < cap && v >= 0) p[n] = (hn_rep_part){ *name ? name : hn_record_text(one, "name"), v, (int)n }, n++;
    }
    return n;
}

static int by_value(const void *a, const void *b)
{
    const hn_rep_part *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

/* "stacks 0.1 MB, program 3.2 MB" */
static void all_parts(char *dst, size_t cap, const hn_rep_part *p, size_t n)
{
    char num[HN_REP_NUM];
    size_t at = 0;
    for (size_t i = 0; i < n && at + 1 < cap; i++)
        at += (size_t)snprintf(dst + at, cap - at, "%s%.60s %s MB", i ? ", " : "", p[i].name,
                               hn_rep_num(num, p[i].value, 2));
}

void hn_html_memory(FILE *f, const hn_report *r)
{
    size_t all = 0, shown = 0, i, n_ledgers = json_array_size(r->ledgers);
    json_t *o;
    memory_rows(f, r, &shown, &all, false);
    if (all == 0 && n_ledgers == 0) return;
    hn_html_section(
        f, "memory", "Memory",
        "What a run holds. Pages of the model file can be given back at any time; anonymous memory cannot.");
    put(f, "<div class=\"stacks\">\n");
    json_array_foreach(r->ledgers, i, o)
    {
        hn_rep_part p[16];
        double peak, sum = 0;
        size_t n = ledger_parts(p, 16, o, &peak);
        char num[HN_REP_NUM], b[HN_REP_NUM], t[120], names[1024] = "";
        if (n == 0 || i >= MAX_STACKS) continue;
        for (size_t k = 0; k < n; k++) sum += p[k].value;
        qsort(p, n, sizeof *p, by_value);
        size_t drawn = n;
        if (n > KINDS) { /* more than colours that can be told apart: the small ones as one */
            double rest = 0;
            for (size_t k = KINDS - 1; k < n; k++) rest += p[k].value;
            all_parts(names, sizeof names, p + KINDS - 1, n - KINDS + 1);
            p[KINDS - 1] = (hn_rep_part){ "smaller parts", rest, 0 };
            drawn = KINDS;
        }
        for (size_t k = 0; k < drawn; k++) p[k].kind = drawn == n ? (int)k : k == KINDS - 1 ? 5 : k == 5 ? 6 : (int)k;
        text2(f, "<div><h3>Ledger", hn_record_text(json_object_get(o, "model"), "path_name")[0] ? " of " : "", "");
        text2(f, "", hn_record_text(json_object_get(o, "model"), "path_name"), "</h3>");
        snprintf(t, sizeof t, "Parts sum to %s MB", hn_rep_num(num, sum, 3));
        hn_rep_plot_bar(f, p, drawn, fmax(sum, isfinite(peak) ? peak : 0), peak, "MB", t);
        parts_list(f, p, drawn, "MB");
        if (names[0]) text2(f, "<p class=\"note\">Smaller parts: ", names, ".</p>");
        if (isfinite(peak))
            fprintf(f, "<p class=\"note\">Parts sum to %s MB; black line: the measured peak, %s MB.</p>",
                    hn_rep_num(num, sum, 3), hn_rep_num(b, peak, 3));
        put(f, "</div>\n");
    }
    all = 0;
    memory_rows(f, r, &shown, &all, true);
    put(f, "</div>\n");
    hn_html_left_out(f, shown, all, "configurations");
    put(f, "</section>\n");
}

typedef struct op {
    const char *name, *type, *bound;
    double ms, pct, gb_s, roof;
    long long calls;
} op;
static int by_ms(const void *a, const void *b)
{
    const op *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms) - (x->ms > y->ms) : strcmp(x->name, y->name);
}

static void phase(FILE *f, json_t *ph, const char *name)
{
    json_t *ops = json_object_get(ph, "ops"), *one;
    size_t i, n = 0, all = json_array_size(ops);
    op *list = calloc(all + 1, sizeof *list);
    char num[HN_REP_NUM], b[HN_REP_NUM];
    if (!list || all == 0) {
        free(list);
        return;
    }
    json_array_foreach(ops, i, one) list[n++] =
        (op){ hn_record_text(one, "op"),         hn_record_text(one, "type"),  hn_record_text(one, "bound"),
              hn_record_number(one, "ms"),       hn_record_number(one, "pct"), hn_record_number(one, "gb_s"),
              hn_record_number(one, "roof_pct"), hn_rep_int(one, "calls") };
    qsort(list, n, sizeof *list, by_ms);
    double whole = hn_record_number(ph, "whole_ms"), rest = hn_record_number(ph, "rest_ms"),
           rest_pct = hn_record_number(ph, "rest_pct");
    fprintf(f, "<table class=\"fold\"><caption>%s: %s ms, ", name, hn_rep_num(num, whole, 4));
    fprintf(f,
            "%s token%s</caption>\n<thead><tr><th>Operation</th><th class=\"wide\">Share of the time</th><th "
            "class=\"r\"></th><th class=\"r\">ms</th><th class=\"r\">Calls</th><th class=\"r\">GB/s</th><th>Of the "
            "roof</th></tr></thead>\n<tbody>\n",
            hn_rep_med(b, hn_record_number(ph, "tokens"), NAN, NAN), hn_record_number(ph, "tokens") == 1 ? "" : "s");
    size_t shown = n < MAX_OPS ? n : MAX_OPS;
    double most = rest_pct > 0 ? rest_pct : 0;
    for (i = 0; i < n; i++) most = fmax(most, list[i].pct);
    for (i = 0; i <= shown; i++) {
        bool is_rest = i == shown;
        if (is_rest && !isfinite(rest)) break;
        op o = is_rest ? (op){ "between operations", "", "", rest, rest_pct, NAN, NAN, 0 } : list[i];
        text2(f, "<tr><th scope=\"row\" class=\"all\">", o.name, "<small>");
        text2(f, "", o.type, "</small></th><td class=\"wide\">");
        hn_rep_part part = { o.name, fmax(0, o.pct), is_rest ? 5 : 0 };
        hn_rep_plot_bar(f, &part, 1, most, NAN, "%", o.name);
        fprintf(f, "</td><td class=\"r\" data-h=\"share\">%s\xE2\x80\xAF%%</td>",
                hn_rep_num(num, o.pct, o.pct < 9.95 ? 2 : 3));
        fprintf(f, "<td class=\"r\" data-h=\"ms\">%s</td>", hn_rep_num(num, o.ms, 3));
        fprintf(f, is_rest ? "<td class=\"r gone\"></td>" : "<td class=\"r\" data-h=\"calls\">%lld</td>", o.calls);
        fprintf(f, "<td class=\"r\" data-h=\"GB/s\">%s</td><td data-h=\"of the roof\">", hn_rep_num(num, o.gb_s, 3));
        hn_html_meter(f, o.roof, o.bound);
        put(f, "</td></tr>\n");
    }
    put(f, "</tbody></table>\n");
    hn_html_left_out(f, shown, n, "operations");
    hn_rep_flame_phase(f, ph, name);
    free(list);
}

void hn_html_profiles(FILE *f, const hn_report *r)
{
    size_t n = json_array_size(r->profiles);
    if (n == 0) return;
    json_t *o = json_array_get(r->profiles, n - 1); /* the newest */
    char when[48];
    hn_rep_when(when, sizeof when, hn_record_text(o, "ts"), true);
    hn_html_section(f, "profile", "Where the time goes", "");
    text2(f, "<p class=\"lead\">", hn_record_text(json_object_get(o, "model"), "path_name"), ", ");
    text2(f, "", when, "; operations summed over all layers, longest first.</p>\n");
    if (json_is_false(json_object_get(o, "valid")))
        text2(f, "<p class=\"v bad\">\xE2\x9C\x95 invalid: ", hn_record_text(o, "invalid_reason"), "</p>\n");
    for (int i = 0; i < HN_REP_PHASES; i++) phase(f, json_object_get(o, hn_rep_phases[i].key), hn_rep_phases[i].title);
    put(f, "</section>\n");
}

/* ---- environments ------------------------------------------------------------------------------------------ */

typedef struct environ_ {
    json_t *facts;
    size_t n;
    const char *first, *last;
} environ_;

static json_t *facts_of(json_t *record)
{
    static const char *const passing[] = { "load", "runnable", "mem_available_mb", NULL };
    static const char *const objects[] = { "env", "git", "build", "engine", NULL };
    json_t *all = json_object(), *v;
    const char *key;
    char name[120];
    for (const char *const *o = objects; *o; o++) json_object_foreach(json_object_get(record, *o), key, v)
        {
            bool keep = !json_is_null(v) && !json_is_object(v) && !json_is_array(v);
            for (const char *const *p = passing; *p; p++) keep = keep && strcmp(*p, key) != 0;
            snprintf(name, sizeof name, "%s %.90s", *o, key);
            if (keep) json_object_set(all, name, v);
        }
    json_t *cpu = json_object_get(json_object_get(record, "config"), "cpu");
    if (json_is_string(cpu)) json_object_set(all, "kernel level", cpu);
    return all;
}

/* Do they contradict each other? What one of them does not know is no contradiction. */
static bool contradict(json_t *a, json_t *b)
{
    const char *key;
    json_t *v;
    json_object_foreach(a, key, v)
    {
        json_t *w = json_object_get(b, key);
        if (w && !json_equal(v, w)) return true;
    }
    return false;
}

/* "env cpu_model" → "cpu model" */
static void fact_name(FILE *f, const char *name)
{
    if (strncmp(name, "env ", 4) == 0) name += 4;
    for (char c[2] = { 0 }; (c[0] = *name); name++) text(f, c[0] == '_' ? " " : c);
}

static void fact(FILE *f, json_t *v)
{
    char num[HN_REP_NUM];
    if (!v) put(f, "<small>\xE2\x80\x93</small>");
    else if (json_is_string(v)) text(f, json_string_value(v));
    else if (json_is_boolean(v)) put(f, json_is_true(v) ? "yes" : "no");
    else put(f, hn_rep_med(num, json_number_value(v), NAN, NAN));
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* One column each, the newest first; the rest are counted in *older. names: all facts that any record has. */
static size_t gather_environments(environ_ e[MAX_ENVIRONS], const hn_report *r, json_t *names, size_t *older)
{
    size_t n = 0;
    for (size_t i = json_array_size(r->bench); i-- > 0;) {
        json_t *o = json_array_get(r->bench, i), *facts = facts_of(o);
        size_t k = 0;
        while (k < n && contradict(e[k].facts, facts)) k++;
        if (k == n && n < MAX_ENVIRONS) e[n++] = (environ_){ .facts = json_object(), .last = hn_record_text(o, "ts") };
        if (k < n) {
            e[k].n++;
            e[k].first = hn_record_text(o, "ts");
            json_object_update_missing(e[k].facts, facts);
        } else ++*older;
        json_object_update_missing(names, facts);
        json_decref(facts);
    }
    return n;
}

/* Is that fact of environment k another than that of the first? */
static bool fact_differs(const environ_ *e, size_t k, const char *name)
{
    json_t *a = json_object_get(e[0].facts, name), *b = json_object_get(e[k].facts, name);
    return k && a && b && !json_equal(a, b);
}

static void environment_heads(FILE *f, const environ_ *e, size_t n)
{
    put(f, "<div class=\"scroll\"><table class=\"diff\"><thead><tr><th>What differs</th>");
    for (size_t k = 0; k < n; k++) {
        char first[48], last[48];
        hn_rep_when(first, sizeof first, e[k].first, false);
        hn_rep_when(last, sizeof last, e[k].last, false);
        text2(f, "<th scope=\"col\">", hn_record_text(e[k].facts, "env hash"), "<small>");
        text2(f, "", first, "");
        if (strcmp(first, last) != 0) text2(f, " \xE2\x80\x93 ", last, "");
        fprintf(f, "<br/>%zu record%s</small></th>", e[k].n, plural(e[k].n));
    }
    put(f, "</tr></thead>\n<tbody>\n");
}

/* A row for each fact that differs; the others are left at the front of list, so many of them. */
static size_t environment_rows(FILE *f, const environ_ *e, size_t n, const char **list, size_t n_names)
{
    size_t same = 0;
    for (size_t i = 0; i < n_names; i++) {
        bool differs = false;
        for (size_t k = 1; k < n; k++) differs = differs || fact_differs(e, k, list[i]);
        if (!differs) {
            list[same++] = list[i];
            continue;
        }
        put(f, "<tr><th scope=\"row\">");
        fact_name(f, list[i]);
        put(f, "</th>");
        for (size_t k = 0; k < n; k++) {
            put(f, fact_differs(e, k, list[i]) ? "<td class=\"other\">\xE2\x89\xA0 " : "<td>");
            fact(f, json_object_get(e[k].facts, list[i]));
            put(f, "</td>");
        }
        put(f, "</tr>\n");
    }
    return same;
}

static void environment_common(FILE *f, const environ_ *e, size_t n, const char *const *list, size_t same)
{
    fprintf(f, "%s<dl class=\"kv\">", n > 1 ? "<h3 style=\"margin-top:22px\">The same in all of them</h3>\n" : "");
    for (size_t i = 0; i < same; i++) {
        json_t *known = NULL;
        for (size_t k = 0; k < n && !known; k++) known = json_object_get(e[k].facts, list[i]);
        put(f, "<div><dt>");
        fact_name(f, list[i]);
        put(f, "</dt><dd>");
        fact(f, known);
        put(f, "</dd></div>\n");
    }
    put(f, "</dl>\n");
}

void hn_html_environments(FILE *f, const hn_report *r)
{
    environ_ e[MAX_ENVIRONS] = { { 0 } };
    size_t older = 0, i = 0;
    json_t *names = json_object(), *v;
    const char *key;
    size_t n = gather_environments(e, r, names, &older), n_names = json_object_size(names);
    const char **list = calloc(n_names + 1, sizeof *list);
    if (!list) hn_json_lose();
    if (n && list) {
        json_object_foreach(names, key, v) list[i++] = key;
        qsort(list, n_names, sizeof *list, by_name);
        hn_html_section(
            f, "environment", "Environment",
            n > 1 ? "What differs between the environments that these records come from; numbers from different "
                    "ones do not compare."
                  : "All records come from one environment.");
        if (n > 1) environment_heads(f, e, n);
        size_t same = environment_rows(f, e, n, list, n_names);
        if (n > 1) put(f, "</tbody></table></div>\n");
        if (older)
            fprintf(f, "<p class=\"note\">%zu older record%s of other environments are left out.</p>\n", older,
                    plural(older));
        if (same) environment_common(f, e, n, list, same);
        put(f, "</section>\n");
    }
    for (i = 0; i < n; i++) json_decref(e[i].facts);
    free(list);
    json_decref(names);
}
