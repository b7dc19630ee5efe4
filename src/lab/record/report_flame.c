/* Flame graphs: what a time consists of, the whole above its parts, as wide as they take long. Owns how a profile and a
 * training log become such a picture; numbers are those of the records. */
#include "lab/record/record_read.h"
#include "lab/record/report_data.h"
#include "base/json_text.h"

#include <math.h>

enum { ROW = 22, MAX_LAYERS = 256 };

typedef struct flame {
    FILE *f;
    double whole; /* ms, the width of the picture */
} flame;

/* One block from `at` on, `ms` wide, in row `row`: its name where there is room for it, always as a hint. */
static void block(const flame *fl, const char *name, double at, double ms, int row, int kind)
{
    const double narrow = 6, letter = 1.1; /* percent of the width: below it no name; of one letter, about */
    char num[HN_REP_NUM], share[HN_REP_NUM];
    double x = 100 * at / fl->whole, w = 100 * ms / fl->whole;
    if (!(w > 0.02)) return;
    fprintf(fl->f, "<rect class=\"k%d\" x=\"%.3f%%\" width=\"%.3f%%\" y=\"%d\" height=\"%d\"><title>", kind % 7, x,
            fmax(w - 0.05, 0.02), row * ROW, ROW - 2);
    hn_rep_html(fl->f, name);
    fprintf(fl->f, ": %s ms, %s %%</title></rect>", hn_rep_num(num, ms, 3), hn_rep_num(share, w, 2));
    if (w > narrow && (double)strlen(name) * letter < w) {
        fprintf(fl->f, "<text class=\"row now\" x=\"%.3f%%\" y=\"%d\">", x + 0.4, row * ROW + 14);
        hn_rep_html(fl->f, name);
        fputs("</text>", fl->f);
    }
    fputc('\n', fl->f);
}

/* ---- a phase of a profile: phase, layers, operations -------------------------------------------------- */

static double layer_ms(json_t *op, size_t il) { return fmax(0, hn_rep_at_i(json_object_get(op, "layer_ms"), il)); }

/* The operations of one layer, or (il = SIZE_MAX) those outside of all; returns their sum. */
static double operations(const flame *fl, json_t *ops, size_t il, double at, bool draw)
{
    size_t i;
    json_t *op;
    double sum = 0;
    json_array_foreach(ops, i, op)
    {
        double ms = il == SIZE_MAX ? hn_record_number(op, "no_layer_ms") : layer_ms(op, il);
        if (!(ms > 0)) continue;
        if (draw) block(fl, hn_record_text(op, "op"), at + sum, ms, 2, (int)(i % 5));
        sum += ms;
    }
    return sum;
}

void hn_rep_flame_phase(FILE *f, json_t *phase, const char *name)
{
    json_t *ops = json_object_get(phase, "ops");
    flame fl = { f, hn_record_number(phase, "whole_ms") };
    size_t n = 0, i;
    json_t *op;
    char label[40];
    double at = 0;
    json_array_foreach(ops, i, op)
    {
        size_t k = json_array_size(json_object_get(op, "layer_ms"));
        n = k > n ? k : n;
    }
    if (!(fl.whole > 0) || !isfinite(fl.whole) || n == 0 || n > MAX_LAYERS) return;
    snprintf(label, sizeof label, "Flame graph of %.20s", name);
    fputs("<figure class=\"flame\">", f);
    hn_rep_svg_open(f, "plot", 3 * ROW, label, "the phase, its layers, the operations in each");
    block(&fl, name, 0, fl.whole, 0, 5);
    for (i = 0; i <= n; i++) { /* the last: outside of all layers */
        size_t il = i < n ? i : SIZE_MAX;
        double ms = operations(&fl, ops, il, at, true);
        if (i < n) snprintf(label, sizeof label, "layer %zu", i);
        block(&fl, i < n ? label : "no layer", at, ms, 1, i % 2 ? 6 : 5);
        at += ms;
    }
    hn_rep_svg_close(f);
    fputs("<figcaption class=\"note\">As wide as it takes long: the phase, its layers, the operations in each; what is "
          "left on the right is between operations.</figcaption></figure>\n",
          f);
}

/* ---- training: a mean step and its parts ------------------------------------------------------------------ */

void hn_rep_flame_training(FILE *f, json_t *steps)
{
    static const char *const parts[] = { "data", "gradient", "optimizer", "eval" };
    enum { N = sizeof parts / sizeof *parts };
    double sum[N] = { 0 }, at = 0;
    flame fl = { f, 0 };
    size_t i;
    json_t *s;
    json_array_foreach(steps, i, s) for (int p = 0; p < N; p++)
    {
        double ms = hn_record_number(json_object_get(s, "ms"), parts[p]);
        if (ms > 0 && isfinite(ms)) sum[p] += ms;
    }
    for (int p = 0; p < N; p++) fl.whole += sum[p];
    if (!(fl.whole > 0)) return;
    fputs("<figure class=\"flame\">", f);
    hn_rep_svg_open(f, "plot", 2 * ROW, "Flame graph of the steps", "where the time of all steps went");
    block(&fl, "all steps", 0, fl.whole, 0, 5);
    for (int p = 0; p < N; p++) {
        block(&fl, parts[p], at, sum[p], 1, p);
        at += sum[p];
    }
    hn_rep_svg_close(f);
    fputs(
        "<figcaption class=\"note\">Where the time of all steps went, as wide as it took long.</figcaption></figure>\n",
        f);
}
