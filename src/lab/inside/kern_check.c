/* Checks of single kernels: their outputs are the same bits as the scalar level's. Owns what is compared, and the
 * oracle's memory meanwhile; refuses to know when that is, and clocks. */
#include "lab/inside/kern_priv.h"

#include <stdlib.h>

enum { CHECK_ROWS = 8, CHECK_COLS = 8 };

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Columns and rows from the beginning, the middle and the end, rows anywhere, and columns that were turned. */
bool hn_kb_check_product(hn_kern_bench *b, hn_kern_result *r)
{
    const int64_t n_out = b->k.n[0], n_in = b->k.n[1], n_col = b->config.columns, *turned = b->turned.row,
                  cols[CHECK_COLS] = { 0, n_col / 3, n_col / 2, n_col - 1, turned[0], turned[1], turned[2], turned[3] };
    const int64_t end = n_out > CHECK_ROWS ? n_out - CHECK_ROWS : 0;
    const int64_t starts[] = { 0, n_out / 2, end, hn_bench_draw(&b->turned, end + 1) };
    float *x = calloc((size_t)n_in, CHECK_COLS * sizeof *x), *want = calloc(CHECK_ROWS, CHECK_COLS * sizeof *want);
    hn_backend *o = b->oracle;
    hn_buf *y = hn_bench_rows(o, NULL, CHECK_ROWS * CHECK_COLS);
    hn_act *act = hn_bench_act(o, NULL, n_in, CHECK_COLS);
    bool same = x && want && y && act;
    if (!same) hn_invalid(&r->verdict, "no memory to check the outputs");
    for (int c = 0; c < CHECK_COLS && same; c++) memcpy(x + c * n_in, b->x + cols[c] * n_in, (size_t)n_in * sizeof *x);
    if (same) hn_bench_put(o, act, x, n_in, CHECK_COLS);
    for (size_t s = 0; s < sizeof starts / sizeof *starts && same; s++) {
        hn_weight w = { .data = b->plain + (size_t)starts[s] * hn_kb_row_bytes(b),
                        .type = (hn_type)b->k.type,
                        .n_in = n_in,
                        .n_out = min64(CHECK_ROWS, n_out - starts[s]),
                        .row_bytes = hn_kb_row_bytes(b) };
        o->op->matmul(o, act, &(hn_product){ .w = &w, .y = y }, 1);
        o->op->read(o, want, y, 0, CHECK_ROWS * CHECK_COLS * sizeof(float));
        for (int c = 0; c < CHECK_COLS && same; c++)
            for (int64_t i = 0; i < w.n_out && same; i++) {
                const float *got = &b->y[cols[c] * n_out + starts[s] + i], *exp = &want[c * w.n_out + i];
                same = memcmp(got, exp, sizeof *got) == 0;
                if (!same)
                    hn_invalid(&r->verdict, "row %lld, column %lld is %.9g, the scalar level gives %.9g",
                               (long long)(starts[s] + i), (long long)cols[c], (double)*got, (double)*exp);
            }
    }
    o->op->act_release(o, act);
    o->op->release(o, y);
    free(x);
    free(want);
    return same;
}

/* The oracle's own memory, with a cache or state and n_act activations' rows in it; false: none. */
static bool open_check(hn_kern_bench *b, const char *from, int64_t n_act, hn_kern_result *r)
{
    hn_backend *o = b->oracle;
    b->oracle_mem = o->op->alloc(o, b->plain_bytes, HN_MEM_CACHE);
    b->act_check = hn_bench_act(o, NULL, hn_kb_act_width(&b->k), n_act);
    if (b->oracle_mem && b->act_check) {
        o->op->write(o, b->oracle_mem, 0, from, b->plain_bytes);
        return true;
    }
    hn_invalid(&r->verdict, "no memory to check the outputs");
    return false;
}

static void close_check(hn_kern_bench *b)
{
    b->oracle->op->act_release(b->oracle, b->act_check);
    b->oracle->op->release(b->oracle, b->oracle_mem);
    for (int i = 0; i < HN_KB_WKV_INPUTS; i++) {
        b->oracle->op->release(b->oracle, b->check_rows[i]);
        b->check_rows[i] = NULL;
    }
    b->act_check = NULL;
    b->oracle_mem = NULL;
}

bool hn_kb_check_attn(hn_kern_bench *b, hn_kern_result *r)
{
    enum { TOKENS = 5 };
    const int64_t n_tok = hn_kb_attn_tokens(&b->k), width = hn_kb_act_width(&b->k);
    const int64_t tokens[TOKENS] = { 0, n_tok / 2, n_tok - 1, b->turned.row[0], b->turned.row[1] };
    float *want = malloc((size_t)width * sizeof *want);
    bool same = want && open_check(b, b->plain, 1, r);
    const hn_kv kv = hn_kb_kv(b, b->oracle_mem, 0);
    for (int i = 0; i < (n_tok > 1 ? TOKENS : 1) && same; i++) {
        hn_buf *q = hn_bench_rows(b->oracle, b->x + tokens[i] * width, width);
        if (!(same = q != NULL)) {
            hn_invalid(&r->verdict, "no memory to check the outputs");
            break;
        }
        hn_bench_attention(b->oracle, b->act_check,
                           &(hn_attention){ .q = q, .n_head = b->k.n[0], .scale = HN_KB_ATTN_SCALE }, &kv,
                           b->rows + tokens[i], 1);
        hn_bench_get(b->oracle, want, b->act_check, 0, 1, width);
        b->oracle->op->release(b->oracle, q);
        same = memcmp(want, b->y + tokens[i] * width, (size_t)width * sizeof(float)) == 0;
        if (!same) hn_invalid(&r->verdict, "token %lld differs from the scalar level", (long long)tokens[i]);
    }
    close_check(b);
    free(want);
    return same;
}

bool hn_kb_check_wkv(hn_kern_bench *b, const char *from, int64_t calls, hn_kern_result *r)
{
    int64_t width = hn_kb_wkv_width(&b->k), n_tok = b->k.n[2], all = width * n_tok;
    float *want = malloc((size_t)all * sizeof *want);
    char *states = malloc(2 * b->plain_bytes);
    bool same = open_check(b, from, n_tok, r) && want && states;
    for (int i = 0; i < HN_KB_WKV_INPUTS && same; i++)
        same = (b->check_rows[i] = hn_bench_rows(b->oracle, b->x + i * all, all)) != NULL;
    if (!same) hn_invalid(&r->verdict, "no memory to check the outputs");
    if (same) {
        const hn_state s = hn_kb_state(b, b->oracle_mem, 0);
        for (int64_t i = 0; i < calls; i++) hn_kb_step(b, b->oracle, b->act_check, b->check_rows, &s);
        hn_bench_get(b->oracle, want, b->act_check, 0, n_tok, width);
        b->oracle->op->read(b->oracle, states, b->oracle_mem, 0, b->plain_bytes);
        const size_t at = (size_t)((b->turn - 1) % b->n_plain) * b->plain_bytes; /* of the call before */
        b->be->op->read(b->be, states + b->plain_bytes, b->mem, at, b->plain_bytes);
    }
    for (int64_t t = 0; t < n_tok && same; t++) {
        same = memcmp(want + t * width, b->y + t * width, (size_t)width * sizeof(float)) == 0;
        if (!same) hn_invalid(&r->verdict, "token %lld differs from the scalar level", (long long)t);
    }
    if (same && memcmp(states, states + b->plain_bytes, b->plain_bytes) != 0) {
        same = false;
        hn_invalid(&r->verdict, "the state differs from the scalar level's");
    }
    close_check(b);
    free(want);
    free(states);
    return same;
}

/* Where so many quarters of a turn bring what lies at `half` from its other half. */
static bool turned_right(const hn_kern_bench *b)
{
    int64_t d = b->k.n[1], half = d / 2;
    const float *in = b->in, *out = b->out;
    for (int64_t h = 0; h < b->k.n[0]; h++, in += d, out += d)
        for (int64_t i = 0; i < half; i++) {
            float x = in[i], y = in[i + half];
            const float want[4][2] = { { x, y }, { -y, x }, { -x, -y }, { y, -x } };
            if (out[i] != want[b->turn % 4][0] || out[i + half] != want[b->turn % 4][1]) return false;
        }
    return true;
}

/* After the first call and after the last one. Decoding and encoding have one code for all levels: that they go on the
 * same is seen here, and what they give is in the record, for other programs to differ from. */
bool hn_kb_check_row(hn_kern_bench *b, hn_kern_result *r)
{
    size_t bytes;
    const void *out = hn_kb_row_output(b, &bytes);
    bool coded = out == b->q;
    char *q2 = (char *)b->q + hn_kb_row_room(&b->k);
    if (b->k.kind == HN_KERN_ROPE) {
        bool right = turned_right(b);
        if (!right) hn_invalid(&r->verdict, "the row is not turned as often as it was called");
        return right;
    }
    hn_kb_row_with(b, b->scalar, b->x, q2);
    bool same = memcmp(out, coded ? q2 : (const void *)b->x, bytes) == 0;
    if (!same) hn_invalid(&r->verdict, "the output differs from the scalar level");
    r->output = hn_fnv1a(HN_FNV_INIT, out, bytes);
    return same;
}
