/* What drawings are made of. Widths are percentages of the drawing, heights, strokes and texts pixels:
 * one drawing is right on a wide screen, a telephone and paper, and its text is never scaled. Lines
 * through points need coordinates, so they lie in a stretched drawing inside, whose strokes are not. */
#include "lab/record/report_data.h"

void hn_rep_svg_open(FILE *f, const char *class_, int height, const char *title, const char *desc)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" width=\"100%%\" height=\"%d\"><title>",
            class_, height);
    hn_rep_html(f, title);
    fputs("</title>", f);
    if (desc && *desc) {
        fputs("<desc>", f);
        hn_rep_html(f, desc);
        fputs("</desc>", f);
    }
    fputc('\n', f);
}

void hn_rep_svg_close(FILE *f) { fputs("</svg>\n", f); }

/* Lines across the drawing, their numbers below it; the unit stands behind the last number. */
void hn_rep_x_axis(FILE *f, const hn_rep_axis *a, int top, int bottom, const char *unit)
{
    char t[HN_REP_NUM];
    for (int i = 0; i < a->n; i++) {
        double x = hn_rep_pos(a, a->tick[i]);
        fprintf(f, "<line class=\"g\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>", x, x, top, bottom);
        fprintf(f, "<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, bottom + 16,
                hn_rep_tick(t, a, i));
    }
    fprintf(f, "<text class=\"u\" x=\"100%%\" y=\"%d\" text-anchor=\"end\">", bottom + 32);
    hn_rep_html(f, unit);
    fputs("</text>\n", f);
}

double hn_rep_y(const hn_rep_axis *a, double v, int top, int bottom)
{
    return bottom - 0.01 * hn_rep_pos(a, v) * (bottom - top);
}

/* The numbers stand left of the drawing, in its margin. */
void hn_rep_y_axis(FILE *f, const hn_rep_axis *a, int top, int bottom)
{
    char t[HN_REP_NUM];
    for (int i = 0; i < a->n; i++) {
        double y = hn_rep_y(a, a->tick[i], top, bottom);
        fprintf(f, "<line class=\"g\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>", y, y);
        fprintf(f, "<text x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", y + 4, hn_rep_tick(t, a, i));
    }
}
