/* Stretches of calls by the clock: which calls are watched while it runs, and what becomes other numbers between two
 * stretches. Owns the samples; refuses to know what rates and roofs they come to. */
#define _GNU_SOURCE
#include "lab/inside/kern_priv.h"
#include "lab/machine/clock.h"

#include <math.h>
#include <sys/resource.h>

enum { EPOCH_NS = 2000000 /* a sample takes at least this long */ };

/* Here, and not with the other calls, so that the compiler has it inside the loop that is timed. */
void hn_kb_call_row(hn_kern_bench *b)
{
    b->turn++;
    hn_kb_row_with(b, b->fast, b->out, b->q);
}

/* What the calls before left; those that are timed must write all of it again. */
static void wipe(hn_kern_bench *b)
{
    enum { OTHER = 0xA5 };
    if (hn_kern_is_product(&b->k)) {
        memset(b->y, OTHER, b->y_floats * sizeof(float));
        b->be->op->write(b->be, b->in_rows[0], 0, b->y, b->y_floats * sizeof(float));
    } else if (hn_kb_is_attn(&b->k)) {
        const int64_t width = hn_kb_act_width(&b->k);
        memset(b->y, OTHER, b->y_floats * sizeof(float));
        hn_bench_put(b->be, b->act, b->y, width, (int64_t)b->y_floats / width);
    } else if (!hn_kb_is_wkv(&b->k) && b->k.kind != HN_KERN_ROPE) { /* these go on from what they left */
        size_t bytes;
        bool coded = hn_kb_row_output(b, &bytes) == b->q;
        memset(coded ? (void *)b->q : b->out, OTHER, bytes);
    }
}

/* ---- calls that are watched --------------------------------------------------------------------------- */

/* A call of a row kernel. One in place, which turns numbers, leaves none as it was. */
static void watch_row(hn_kern_bench *b)
{
    unsigned char *at = b->spoilt + hn_bench_next_place(&b->place) * (int64_t)sizeof(uint32_t);
    const unsigned char *want = b->wanted + (at - b->spoilt);
    bool turns = b->k.kind == HN_KERN_ROPE;
    uint32_t was, is;
    memcpy(&was, turns ? at : want, sizeof was);
    is = turns ? was : ~was;
    memcpy(at, &is, sizeof is);
    hn_kb_call_row(b);
    memcpy(&is, at, sizeof is);
    b->place.n_missed += turns ? is == was : is != was;
}

/* A call of a product, of attention, or of a recurrence, whose outputs are other ones each time. */
static void watch_pooled(hn_kern_bench *b, hn_kb_call_fn *call)
{
    bool product = hn_kern_is_product(&b->k);
    int64_t i = hn_bench_next_place(&b->place), width = hn_kb_act_width(&b->k);
    if (product) hn_bench_spoil(b->be, b->in_rows[0], i);
    else hn_bench_spoil_act(b->be, b->act, width, i);
    call(b);
    float is = product ? hn_bench_look(b->be, b->in_rows[0], i) : hn_bench_look_act(b->be, b->act, width, i);
    b->place.n_missed += hn_kb_is_wkv(&b->k) ? isnan(is) : memcmp(&is, &b->y_check[i], sizeof is) != 0;
}

static void watch_from_here(hn_kern_bench *b, bool row)
{
    size_t bytes;
    const bool coded = row && hn_kb_row_output(b, &bytes) == b->q;
    b->spoilt = coded ? b->q : (void *)b->out;
    b->wanted = coded ? (unsigned char *)b->q + hn_kb_row_room(&b->k) : (unsigned char *)b->x;
    b->key = hn_rand64(hn_clock_ns(), 0);
    b->turned = (hn_bench_turned){ 0 };
    b->place = hn_bench_places(row ? (int64_t)(bytes / sizeof(uint32_t)) : (int64_t)b->y_floats);
}

/* Calls of a row kernel take some ten ns, and watching one a quarter of that: of 16 one is watched, which nobody knows
 * before. */
static void rows(hn_kern_bench *b, int64_t calls)
{
    enum { APART = 16 };
    for (int64_t i = 0; i < calls;) {
        int64_t n = (int64_t)(hn_rand64(b->key, b->n_drawn++) % (2 * APART - 1));
        for (n = n < calls - i ? n : calls - i; n > 0; n--, i++) hn_kb_call_row(b);
        if (i++ < calls) watch_row(b);
    }
}

/* ---- other operands from stretch to stretch ----------------------------------------------------------- */

/* Bytes at the beginning, at the end or anywhere. */
static void turn_weights(hn_kern_bench *b)
{
    enum { EDGE = 8, BEGIN = 0, END, KINDS = 3 };
    const int64_t n = (int64_t)hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)b->k.n[0]),
                  kind = hn_bench_draw(&b->turned, KINDS), edge = n < EDGE || kind > END ? n : EDGE;
    int64_t at = hn_bench_draw(&b->turned, edge);
    if (kind == END) at = n - 1 - at;
    ((unsigned char *)b->q)[at] ^= 1; /* of no kind of scale an infinity */
}

/* Who remembers outputs by where their operands lie, and by a part of them, copies a wrong one from here on: no clock
 * runs, numbers become others, and what must come out is made anew. What the calls before left is looked at as a whole.
 */
static void turn_row(hn_kern_bench *b, bool back)
{
    size_t bytes;
    const void *out = hn_kb_row_output(b, &bytes);
    if (b->k.kind == HN_KERN_ROPE) return; /* it is given what it left */
    if (b->turned.called) b->place.n_missed += memcmp(out, b->wanted, bytes) != 0;
    for (int i = back ? 0 : HN_TURN_KINDS - 1; i < HN_TURN_KINDS; i++) { /* in every way behind the last stretch */
        if (b->k.kind == HN_KERN_DECODE) turn_weights(b);
        else hn_bench_turn(&b->turned, b->in, 1, hn_kb_row_floats(&b->k));
        if (!back) continue;
        hn_kb_row_with(b, b->scalar, b->x, (char *)b->q + hn_kb_row_room(&b->k));
        hn_kb_call_row(b);
        b->place.n_missed += memcmp(out, b->wanted, bytes) != 0;
    }
    if (back) hn_kb_fill_operand(b);
    hn_kb_row_with(b, b->scalar, b->x, (char *)b->q + hn_kb_row_room(&b->k));
    wipe(b);
    b->turned.called = !back;
}

/* What a stretch left as a whole is what the call before it gave, which was checked. */
static void look_whole(hn_kern_bench *b)
{
    hn_kb_fetch(b);
    if (b->turned.called) b->place.n_missed += memcmp(b->y_check, b->y, b->y_floats * sizeof(float)) != 0;
}

static void begin_stretch(hn_kern_bench *b, bool back)
{
    memcpy(b->y_check, b->y, b->y_floats * sizeof(float));
    if (!back) wipe(b);
    b->turned.called = !back;
}

/* One more call with x as it is, looked at. */
static void call_again(hn_kern_bench *b, hn_kern_result *r, int64_t n_row, int64_t n)
{
    const bool product = hn_kern_is_product(&b->k);
    if (product) hn_bench_put(b->be, b->act, b->x, n, n_row);
    else b->be->op->write(b->be, b->in_rows[0], 0, b->x, (size_t)(n_row * n) * sizeof(float));
    if (product) hn_kb_call_product(b);
    else hn_kb_call_attn(b);
    hn_kb_fetch(b);
    if (product) hn_kb_check_product(b, r);
    else hn_kb_check_attn(b, r);
}

/* The same of a product by its activation, of attention by its queries: x [n_row][n]. Behind the last stretch it is
 * turned in every way: what that one left in somebody's memory is asked for. */
static void turn_rows(hn_kern_bench *b, hn_kern_result *r, bool back, int64_t n_row, int64_t n)
{
    if (r->verdict.state == HN_INVALID) return;
    look_whole(b);
    for (int i = 0; back && i < HN_TURN_KINDS; i++) {
        hn_bench_turn(&b->turned, b->x, n_row, n);
        call_again(b, r, n_row, n);
    }
    if (back) hn_kb_fill(b->x, n_row * n, HN_KB_X_KEY);
    else hn_bench_turn(&b->turned, b->x, n_row, n);
    call_again(b, r, n_row, n);
    begin_stretch(b, back);
}

/* Of a recurrence by its inputs, of which one is another one each time; the state is the first one again. What the
 * last call of a stretch left goes on from what it met, once more each time that the states came round. */
static void turn_wkv(hn_kern_bench *b, hn_kern_result *r, bool back)
{
    const int64_t n_tok = b->k.n[2], width = hn_kb_wkv_width(&b->k), all = n_tok * width;
    if (r->verdict.state == HN_INVALID) return;
    if (b->turned.called) {
        hn_kb_fetch(b);
        if (!hn_kb_check_wkv(b, b->met, (r->calls - 1) / b->n_plain + 1, r)) return;
    }
    if (back) hn_kb_fill(b->x, hn_kb_wkv_floats(&b->k), HN_KB_X_KEY);
    else hn_bench_turn(&b->turned, b->x + hn_bench_draw(&b->turned, HN_KB_WKV_INPUTS) * all, n_tok, width);
    for (int i = 0; i < HN_KB_WKV_INPUTS; i++)
        b->be->op->write(b->be, b->in_rows[i], 0, b->x + i * all, (size_t)all * sizeof(float));
    hn_kb_wkv_again(b);
    hn_kb_call_wkv(b);
    hn_kb_fetch(b);
    hn_kb_check_wkv(b, b->plain, 1, r);
    const size_t last = (size_t)((b->turn + r->calls - 1) % b->n_plain) * b->plain_bytes;
    b->be->op->read(b->be, b->met, b->mem, last, b->plain_bytes);
    b->turned.called = !back;
}

/* Before each stretch that is timed; back: behind the last one, as it was at first. */
static void turn(hn_kern_bench *b, hn_kern_result *r, bool back)
{
    if (hn_kern_is_product(&b->k)) turn_rows(b, r, back, b->config.columns, b->k.n[1]);
    else if (hn_kb_is_attn(&b->k)) turn_rows(b, r, back, hn_kb_attn_tokens(&b->k), hn_kb_act_width(&b->k));
    else if (hn_kb_is_wkv(&b->k)) turn_wkv(b, r, back);
    else turn_row(b, back);
}

/* ---- the clock ---------------------------------------------------------------------------------------- */

static double seconds_of(hn_kern_bench *b, hn_kb_call_fn *call, int64_t calls, hn_stretches *sum)
{
    const hn_clocks from = hn_clocks_begin();
    if (call == hn_kb_call_row) rows(b, calls);
    for (int64_t i = 0; i < calls && call != hn_kb_call_row; i++) watch_pooled(b, call);
    return hn_stretches_add(sum, &from);
}

static double cpu_seconds(void)
{
    struct rusage u = { 0 };
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

hone_status hn_kb_time_calls(hn_kern_result *r, hn_kern_bench *b, hn_kb_call_fn *call, bool (*stop)(void *),
                             hone_error *err)
{
    int64_t calls = 1;
    hn_stretches sum = { 0 };
    char lie[160];
    watch_from_here(b, call == hn_kb_call_row);
    for (double s; (s = seconds_of(b, call, calls, &sum)) * 1e9 < EPOCH_NS;) { /* calibrate; warms up as well */
        double want = s > 0 ? 1.2 * EPOCH_NS * 1e-9 / s * (double)calls : 10.0 * (double)calls;
        calls = want > 10.0 * (double)calls ? 10 * calls : (int64_t)want + 1;
    }
    r->calls = calls;
    hn_allocs_begin();
    seconds_of(b, call, calls, &sum);
    hn_allocs_end(&r->allocs);
    wipe(b);
    b->place.n_missed = 0;
    int n = 0;
    double cpu = cpu_seconds();
    uint64_t t = hn_clock_ns();
    sum = (hn_stretches){ 0 };
    while (n < r->config.n_samples) {
        if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", b->k.id);
        turn(b, r, false);
        r->sample_s[n++] = seconds_of(b, call, calls, &sum) / (double)calls;
    }
    double wall = (double)(hn_clock_ns() - t) * 1e-9, used = cpu_seconds() - cpu;
    turn(b, r, true);
    r->cpu_use = used / (wall * r->config.threads);
    if (hn_stretches_lie(lie, sizeof lie, &sum, used, wall, r->config.threads)) hn_invalid(&r->verdict, "%s", lie);
    return hn_stats_of(&r->time, r->sample_s, (size_t)n, err);
}
