/* Training in the report: the logs of hone train (schema hone.train/1), a run each: loss of training and of
 * validation, learning rate, norm of the gradient, speed. Reads, never judges. */
#include "lab/record/report_data.h"
#include "lab/record/record_read.h"
#include "lab/record/report.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_RUNS = 12, MAX_DOTS = 240, POINTS = 600 };

/* ---- data ----------------------------------------------------------------------------------- */

/* The run that begins with the line o, which is there already. */
static json_t *run_of(const hn_report *r, const json_t *o)
{
    size_t i;
    json_t *one;
    json_array_foreach(r->training, i, one) if (json_equal(json_object_get(one, "run"), o)) return one;
    return NULL;
}

/* Whether o is behind the last of the steps. */
static bool goes_on(json_t *steps, json_t *o)
{
    json_t *last = json_array_get(steps, json_array_size(steps) - 1);
    return !last || hn_record_number(o, "step") > hn_record_number(last, "step");
}

/* A line of a log: a new run, or a step of the last one. Of the same run again the steps that go on are taken. */
bool hn_rep_take_training(hn_report *r, hn_rep_file *file, json_t *o)
{
    const char *kind = hn_record_text(o, "kind");
    if (strcmp(kind, "run") == 0) {
        if (!hn_rep_seen_add(&r->runs, o, &r->same_run)) return false;
        r->known_run = r->same_run ? run_of(r, o) : NULL;
        if (!r->same_run && json_array_append_new(
                                r->training, json_pack("{s:s, s:O, s:[]}", "file", file->name, "run", o, "steps")) != 0)
            return false;
    }
    json_t *more = r->same_run && strcmp(kind, "step") == 0 ? json_object_get(r->known_run, "steps") : NULL;
    if (more && goes_on(more, o)) { /* the longer copy of a log */
        file->records++;
        return json_array_append(more, o) == 0;
    }
    if (r->same_run) {
        file->twice++;
        return true;
    }
    file->records++;
    if (strcmp(kind, "step") != 0) return true;
    json_t *last = json_array_get(r->training, json_array_size(r->training) - 1);
    if (!last || strcmp(hn_record_text(last, "file"), file->name) != 0) { /* a log without its beginning */
        last = json_pack("{s:s, s:{}, s:[]}", "file", file->name, "run", "steps");
        if (json_array_append_new(r->training, last) != 0) return false;
    }
    return json_array_append(json_object_get(last, "steps"), o) == 0;
}

typedef struct curve {
    double *x, *y;
    size_t n;
} curve;

/* Finite values of a member against the step. */
static curve curve_of(json_t *steps, const char *member)
{
    size_t n = json_array_size(steps), i;
    json_t *o;
    curve c = { malloc((n + 1) * sizeof(double)), malloc((n + 1) * sizeof(double)), 0 };
    if (!c.x || !c.y) return c;
    json_array_foreach(steps, i, o)
    {
        double x = hn_record_number(o, "step"), y = hn_record_number(o, member);
        if (!isfinite(x) || !isfinite(y)) continue;
        c.x[c.n] = x;
        c.y[c.n++] = y;
    }
    return c;
}

static void curve_free(curve *c)
{
    free(c->x);
    free(c->y);
}

/* As training shows it: a fifth of each new value. */
static curve smoothed(const curve *c)
{
    curve s = { malloc((c->n + 1) * sizeof(double)), malloc((c->n + 1) * sizeof(double)), 0 };
    for (; s.x && s.y && s.n < c->n; s.n++) {
        s.x[s.n] = c->x[s.n];
        s.y[s.n] = s.n ? s.y[s.n - 1] + 0.2 * (c->y[s.n] - s.y[s.n - 1]) : c->y[0];
    }
    return s;
}

static double median_of(const curve *c)
{
    hn_stats s;
    return c->n && hn_stats_of(&s, c->y, c->n, NULL) == HONE_OK ? s.median : NAN;
}
static double last_of(const curve *c) { return c->n ? c->y[c->n - 1] : NAN; }
static double least_of(const curve *c)
{
    double m = NAN;
    for (size_t i = 0; i < c->n; i++) m = fmin(m, c->y[i]);
    return m;
}

/* ---- drawings --------------------------------------------------------------------------------- */

static void line(FILE *f, const curve *c, const char *class_, const hn_rep_axis *xa, const hn_rep_axis *ya, int top,
                 int bottom)
{
    size_t group = (c->n + POINTS - 1) / POINTS;
    if (c->n < 2) return;
    fprintf(f,
            "<svg x=\"0\" y=\"0\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 100 %d\" preserveAspectRatio=\"none\" "
            "overflow=\"visible\"><polyline class=\"%s\" points=\"",
            bottom, bottom, class_);
    for (size_t i = 0; i < c->n; i += group) {
        double x = 0, y = 0, n = 0;
        for (size_t k = i; k < c->n && k < i + group; k++, n++) {
            x += c->x[k];
            y += c->y[k];
        }
        fprintf(f, " %.2f,%.1f", hn_rep_pos(xa, x / n), hn_rep_y(ya, y / n, top, bottom));
    }
    fputs("\"/></svg>\n", f);
}

static void dots(FILE *f, const curve *c, const char *what, const hn_rep_axis *xa, const hn_rep_axis *ya, int top,
                 int bottom)
{
    char num[HN_REP_NUM];
    size_t group = (c->n + MAX_DOTS - 1) / MAX_DOTS;
    for (size_t i = 0; i < c->n; i += group) {
        fprintf(f, "<circle class=\"dot\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"3\"><title>step %.0f: %s ",
                hn_rep_pos(xa, c->x[i]), hn_rep_y(ya, c->y[i], top, bottom), c->x[i], what);
        hn_rep_html(f, hn_rep_num(num, c->y[i], 4));
        fputs("</title></circle>\n", f);
    }
}

/* Steps are whole numbers, also where there are few. */
static hn_rep_axis step_axis(double first, double last)
{
    hn_rep_axis a = hn_rep_axis_make(first, last > first ? last : first + 1, 5, false);
    if (last - first >= 5) return a;
    a.n = a.decimals = 0;
    for (double t = ceil(a.lo); t <= a.hi; t++) a.tick[a.n++] = t;
    return a;
}

/* b: drawn dashed with dots over a; NULL: none. */
static void plot(FILE *f, const char *title, const curve *a, const char *class_, const curve *over, const curve *b)
{
    enum { TOP = 10, BOTTOM = 170 };
    double lo = INFINITY, hi = -INFINITY, x0 = a->x[0], x1 = a->x[a->n - 1];
    for (const curve *const *c = (const curve *const[]){ a, b, NULL }; *c; c++)
        for (size_t i = 0; i < (*c)->n; i++) {
            lo = fmin(lo, (*c)->y[i]);
            hi = fmax(hi, (*c)->y[i]);
        }
    hn_rep_axis xa = step_axis(x0, x1), ya = hn_rep_axis_make(lo, hi > lo ? hi : lo + (lo != 0 ? fabs(lo) * 0.1 : 1), 4,
                                                              lo > 0 && hi > 100 * lo);
    char desc[300], n1[HN_REP_NUM], n2[HN_REP_NUM], n3[HN_REP_NUM];
    snprintf(desc, sizeof desc, "%zu step%s, from %s to %s", a->n, a->n == 1 ? "" : "s", hn_rep_num(n1, a->y[0], 4),
             hn_rep_num(n2, a->y[a->n - 1], 4));
    if (b && b->n)
        snprintf(desc + strlen(desc), sizeof desc - strlen(desc), "; dashed, with dots: validation, least %s",
                 hn_rep_num(n3, least_of(b), 4));
    hn_rep_svg_open(f, "plot", BOTTOM + 36, title, desc);
    hn_rep_y_axis(f, &ya, TOP, BOTTOM);
    hn_rep_x_axis(f, &xa, TOP, BOTTOM, "step");
    line(f, a, class_, &xa, &ya, TOP, BOTTOM);
    if (over) line(f, over, "ecdf", &xa, &ya, TOP, BOTTOM);
    if (a->n == 1) dots(f, a, title, &xa, &ya, TOP, BOTTOM);
    if (b) {
        line(f, b, "ecdf before", &xa, &ya, TOP, BOTTOM);
        dots(f, b, "validation", &xa, &ya, TOP, BOTTOM);
    }
    hn_rep_svg_close(f);
}

/* Small numbers are drawn in units of a power of ten, which the caption names: labels stay short. */
static void figure(FILE *f, json_t *steps, const char *member, const char *caption)
{
    curve c = curve_of(steps, member);
    double most = 0;
    char unit[40] = "";
    for (size_t i = 0; i < c.n; i++) most = fmax(most, fabs(c.y[i]));
    if (most > 0 && most < 0.1) {
        double e = floor(log10(most) + 1e-9);
        snprintf(unit, sizeof unit, ", in units of 1e%.0f", e);
        for (size_t i = 0; i < c.n; i++) c.y[i] /= pow(10, e);
    }
    if (c.n) {
        fprintf(f, "<figure><figcaption>%s%s</figcaption>", caption, unit);
        plot(f, caption, &c, "trace", NULL, NULL);
        fputs("</figure>\n", f);
    }
    curve_free(&c);
}

static void loss_figure(FILE *f, json_t *steps)
{
    curve c = curve_of(steps, "loss"), v = curve_of(steps, "val_loss"), s = smoothed(&c);
    if (c.n) {
        fprintf(f, "<figure><figcaption>Loss, nats per token%s</figcaption>", v.n ? "; dashed: validation" : "");
        plot(f, "Loss", &c, "ln", &s, &v);
        fputs("</figure>\n", f);
    }
    curve_free(&c);
    curve_free(&v);
    curve_free(&s);
}

/* ---- words --------------------------------------------------------------------------------------- */

static const char *model_of(json_t *run)
{
    const char *file = hn_record_text(json_object_get(json_object_get(run, "run"), "base"), "file"),
               *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* "lora all, rank 16, alpha 32, lr 0.0002 cosine, 512 x 1 x 8" */
static void say_settings(char *dst, size_t cap, json_t *run)
{
    json_t *s = json_object_get(json_object_get(run, "run"), "settings");
    bool full = strcmp(hn_record_text(s, "method"), "full") == 0;
    char adapter[120] = "all weights";
    if (!json_is_object(s)) { /* a log without its beginning */
        snprintf(dst, cap, "settings unknown");
        return;
    }
    if (!full)
        snprintf(adapter, sizeof adapter, "LoRA %.40s, rank %.0f, alpha %.4g", hn_record_text(s, "targets"),
                 hn_record_number(s, "rank"), hn_record_number(s, "alpha"));
    snprintf(dst, cap, "%s; learning rate %.4g, %.20s; %.0f x %.0f sequences of %.0f tokens a step", adapter,
             hn_record_number(s, "lr"), hn_record_text(s, "schedule"), hn_record_number(s, "accumulate"),
             hn_record_number(s, "batch"), hn_record_number(s, "seq"));
}

typedef struct summary {
    size_t n;
    double first, last, best, speed;
} summary;
static summary sum_up(json_t *run)
{
    json_t *steps = json_object_get(run, "steps");
    curve loss = curve_of(steps, "loss"), val = curve_of(steps, "val_loss"), speed = curve_of(steps, "tok_s");
    summary s = { json_array_size(steps), loss.n ? loss.y[0] : NAN, last_of(&loss), least_of(&val), median_of(&speed) };
    curve_free(&loss);
    curve_free(&val);
    curve_free(&speed);
    return s;
}

void hn_rep_html_training(FILE *f, const hn_report *r)
{
    size_t n = json_array_size(r->training);
    char t[300], num[HN_REP_NUM];
    if (n == 0) return;
    fputs("<section id=\"training\"><h2>Training</h2>\n<p class=\"lead\">Each run of <code>hone train</code>: the loss "
          "of every step and, broader, smoothed; dashed, that on data which is not learnt.</p>\n",
          f);
    for (size_t i = 0; i < n && i < MAX_RUNS; i++) {
        json_t *run = json_array_get(r->training, i), *steps = json_object_get(run, "steps");
        summary s = sum_up(run);
        fputs("<h3>", f);
        hn_rep_html(f, *model_of(run) ? model_of(run) : "A run");
        fputs("</h3><p class=\"note\">", f);
        hn_rep_html(f, hn_record_text(run, "file"));
        fputs(": ", f);
        say_settings(t, sizeof t, run);
        hn_rep_html(f, t);
        fprintf(f, ". %zu step%s, loss <b class=\"num\">%s</b>", s.n, s.n == 1 ? "" : "s", hn_rep_num(num, s.first, 4));
        fprintf(f, " to <b class=\"num\">%s</b>", hn_rep_num(num, s.last, 4));
        if (isfinite(s.best)) fprintf(f, ", best validation <b class=\"num\">%s</b>", hn_rep_num(num, s.best, 4));
        fprintf(f, ", median <b class=\"num\">%s tok/s</b></p>\n<div class=\"cards\">\n", hn_rep_num(num, s.speed, 4));
        loss_figure(f, steps);
        figure(f, steps, "lr", "Learning rate");
        figure(f, steps, "grad_norm", "Norm of the gradient, before clipping");
        figure(f, steps, "tok_s", "Speed, tok/s");
        fputs("</div>\n", f);
        hn_rep_flame_training(f, steps);
    }
    if (n > MAX_RUNS)
        fprintf(f, "<p class=\"note\">%d of %zu runs are shown; JSON has them all.</p>\n", (int)MAX_RUNS, n);
    fputs("</section>\n", f);
}

void hn_rep_md_training(FILE *f, const hn_report *r)
{
    size_t i;
    json_t *run;
    char a[HN_REP_NUM], b[HN_REP_NUM], c[HN_REP_NUM], d[HN_REP_NUM], t[300];
    if (json_array_size(r->training) == 0) return;
    fputs("\n## Training\n\n| Model | Settings | Steps | First loss | Last loss | Best validation | tok/s "
          "|\n|---|---|---:|---:|---:|---:|---:|\n",
          f);
    json_array_foreach(r->training, i, run)
    {
        summary s = sum_up(run);
        fputs("| ", f);
        hn_rep_md(f, model_of(run));
        say_settings(t, sizeof t, run);
        fputs(" | ", f);
        hn_rep_md(f, t);
        fprintf(f, " | %zu | %s | %s | %s | %s |\n", s.n, hn_rep_num(a, s.first, 4), hn_rep_num(b, s.last, 4),
                hn_rep_num(c, s.best, 4), hn_rep_num(d, s.speed, 4));
    }
}

json_t *hn_rep_json_training(const hn_report *r)
{
    json_t *list = json_array(), *run;
    size_t i;
    json_array_foreach(r->training, i, run)
    {
        json_t *steps = json_object_get(run, "steps"), *o = json_object();
        summary s = sum_up(run);
        json_object_set(o, "file", json_object_get(run, "file"));
        json_object_set(o, "run", json_object_get(run, "run"));
        json_object_set_new(o, "first_loss", hn_lab_num(s.first));
        json_object_set_new(o, "last_loss", hn_lab_num(s.last));
        json_object_set_new(o, "best_val", hn_lab_num(s.best));
        json_object_set_new(o, "tok_s", hn_lab_num(s.speed));
        json_object_set(o, "steps", steps);
        json_array_append_new(list, o);
    }
    return list;
}
