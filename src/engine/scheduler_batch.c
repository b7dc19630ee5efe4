/* scheduler: the rows of a step. Shares them out among answers and prompts, runs them, learns what they cost, and
 * finds who is to blame for a batch that fails. Refuses to know who may run, and what logits mean. */
#include "engine/scheduler.h"

enum { FIRST_ROWS = 64 }; /* of a step without answers: so many that reading the weights is a small part of it */

/* ---- what steps take ------------------------------------------------------------------ */

/* Of so many answers alone; 0: nobody knows. On the line through those that were, which one width alone does not give:
 * then an answer is taken for a row. A step grows with its answers, and not faster than they do. */
static double answers_ns(const hn_step_costs *k, int32_t n)
{
    if (k->ns == 0) return 0;
    double each = (k->along + k->row.ns) / (k->spread + 1), at = k->ns + (n - k->width) * each;
    double alike = k->ns, in_step = k->ns * n / k->width;
    double least = in_step < alike ? in_step : alike, most = in_step < alike ? alike : in_step;
    return at < least ? least : at > most ? most : at;
}

static void learn_answers(hn_step_costs *k, int32_t n, double ns)
{
    if (k->ns == 0) {
        k->width = n;
        k->ns = ns;
        return;
    }
    double expected = answers_ns(k, n), part = ns < expected / 2 ? 1.0 / 2 : 1.0 / 8; /* nothing makes a step faster */
    if (hn_is_disturbed(&k->late, ns, expected)) return;
    if (ns > 2 * expected) ns = 2 * expected;
    double d_n = n - k->width, d_ns = ns - k->ns;
    k->width += part * d_n;
    k->ns += part * d_ns;
    k->spread = (1 - part) * (k->spread + part * d_n * d_n);
    k->along = (1 - part) * (k->along + part * d_n * d_ns);
}

/* What a step took. A row of prompts costs what the step took beyond its answers, or, without any, beyond what it takes
 * to read the weights; the more that is of it all, the more it tells. Where nothing is beyond its answers these take
 * less than was thought. */
static void learn(hone_scheduler *s, int32_t n_decode, int32_t n_prefill, uint64_t step_ns)
{
    hn_step_costs *k = &s->cost;
    int32_t enough = s->ses->n_chunk < HN_LEAST_PREFILL ? s->ses->n_chunk : HN_LEAST_PREFILL;
    const double ns = (double)(step_ns ? step_ns : 1);
    s->n.last_step_ns = step_ns;
    if (n_prefill == 0) {
        learn_answers(k, n_decode, ns);
        return;
    }
    double more = ns - answers_ns(k, n_decode), each = more / n_prefill, weight = more / ns;
    if (more <= 0 && n_decode) learn_answers(k, n_decode, ns);
    if (n_prefill < enough || more <= 0) return; /* a few rows cost what a row costs */
    hn_cost_learn(&k->row, each, weight, k->ns == 0);
}

/* ---- sharing out ---------------------------------------------------------------------- */

static int32_t left_of(const hone_scheduler *s, const hn_choice *c) { return c->n_ids - hn_scheduler_held(s, c); }

/* Does this row say how likely a prompt's token is that was not told yet? */
static bool row_echoes(const hn_choice *c, int32_t pos)
{
    const hn_ticket *a = c->of;
    return a->r.prompt_logprobs && !a->forked && pos + 1 >= a->n_echoed && pos + 1 < a->r.n_prompt;
}

/* Is a unit at its answer, one token a step? */
static bool is_decoding(const hone_scheduler *s, const hn_choice *c) { return c->of->forked && left_of(s, c) == 1; }

/* The next place behind pos where a prompt is to be kept: every so many positions, at its mark, at its end. */
static int32_t next_mark(const hone_request *r, int32_t pos)
{
    int32_t mark = (pos / HN_PROMPT_MARK + 1) * HN_PROMPT_MARK;
    if (r->mark > pos && r->mark < mark) mark = r->mark;
    return mark < r->n_prompt ? mark : r->n_prompt;
}

/* Is there a place in a prompt that cannot be gone back to from its end? Within all windows nothing is forgotten, and a
 * step more, for the few rows behind a mark, would be for nothing. */
static bool stops_at_marks(const hn_seq_memory *m, const hone_request *r)
{
    bool stops = m->state_floats > 0;
    for (int32_t i = 0; i < m->n_group; i++) stops = stops || hn_memory_first(&m->group[i], r->n_prompt) > 0;
    return stops;
}

/* Rows that a prompt may have in this step beside those it has. */
static int32_t may_have(const hone_scheduler *s, const hn_choice *c, int32_t echo_left)
{
    int32_t held = hn_scheduler_held(s, c), n_prompt = c->of->r.n_prompt, to = c->n_ids;
    if (s->ses->mem->wants_checkpoints && held < n_prompt) /* a step ends where a checkpoint is to be */
        to = stops_at_marks(s->ses->mem, &c->of->r) ? next_mark(&c->of->r, held) : n_prompt;
    int32_t at = held + c->rows;
    if (c->of->r.prompt_logprobs && !c->of->forked && to - at > echo_left) to = at + echo_left;
    return to > at ? to - at : 0;
}

typedef struct sharing {
    int32_t left, echo_left; /* rows; of them, rows of prompts whose log-probabilities are asked for */
} sharing;

static void give(hone_scheduler *s, sharing *h, hn_choice *c, int32_t most)
{
    int32_t n = may_have(s, c, h->echo_left);
    if (n > most) n = most;
    c->rows += n;
    h->left -= n;
    if (c->of->r.prompt_logprobs && !c->of->forked) h->echo_left -= n;
}

/* Does a step without answers end with this prompt, which has all it may have? Others that share it would have their
 * first token no sooner, answer in step with it from there on, and come again at one moment. Not so of prompts that are
 * all there is to it; and of a mixture's weights few rows read as much as many do. */
static bool ends_step(const hone_scheduler *s, const hn_choice *c)
{
    const int32_t most = c->of->r.max_tokens;
    return most != 0 && most != 1 && !s->ses->model->hp.moe.n_expert;
}

/* Half to the oldest prompt, half to the one with the fewest rows left, until nothing is left of either. */
static void share(hone_scheduler *s, int32_t n_rows, bool answers)
{
    sharing h = { n_rows, HN_ECHO_ROWS };
    while (h.left > 0) {
        hn_choice *oldest = NULL, *shortest = NULL;
        for (int32_t i = 0; i < s->n_active; i++)
            for (int32_t k = 0; k < hn_scheduler_units(s->active[i]); k++) {
                hn_choice *c = &s->active[i]->choice[k];
                if (c->slot < 0 || c->ended || c->of->held || is_decoding(s, c) || !may_have(s, c, h.echo_left))
                    continue;
                if (!oldest) oldest = c;
                if (!shortest || left_of(s, c) < left_of(s, shortest)) shortest = c;
            }
        if (!oldest) return;
        int32_t half = shortest == oldest ? h.left : (h.left + 1) / 2, other = h.left - half;
        const bool ends = !answers && ends_step(s, shortest);
        if (ends) { /* as many to the oldest as finish the shortest */
            int32_t need = may_have(s, shortest, h.echo_left);
            if (need < FIRST_ROWS) need = FIRST_ROWS;
            if (half > need) half = need;
            if (other > need) other = need;
        }
        give(s, &h, oldest, half);
        if (shortest != oldest) give(s, &h, shortest, other);
        if (ends && n_rows - h.left >= FIRST_ROWS && !may_have(s, shortest, h.echo_left)) return;
    }
}

/* A unit that has slots; NULL: what is in the slot waits for its request's prompt, or is idle. */
static hn_choice *unit_in(const hone_scheduler *s, int32_t slot)
{
    hn_choice *c = s->slot[slot].c;
    return c && (!c->k || c->of->forked) ? c : NULL;
}

/* What is to be run of a scheduler: answers, and how many prompts. */
static int32_t look(const hone_scheduler *s, int32_t *n_prompt)
{
    int32_t n = 0, idle = 0;
    *n_prompt = 0;
    for (int32_t i = 0; i < s->n_slot; i++) {
        const hn_choice *c = unit_in(s, i);
        idle += !s->slot[i].c;
        if (!c || c->of->held) continue;
        n += is_decoding(s, c);
        *n_prompt += !is_decoding(s, c);
    }
    const bool waits = s->waiter && s->waits_since == s->n_freed;
    *n_prompt += s->n_queue > 0 && idle > 0 && !waits; /* it comes in in this round */
    return n;
}

/* Of the schedulers in turn, what a round of answers alone takes, and what is left in it to each of those with prompts;
 * false: nobody answers. */
static bool time_left(const hone_scheduler *s, int32_t n_decode, double *left)
{
    double alone = answers_ns(&s->cost, n_decode), own = n_decode ? 0 : alone; /* where none answers it reads weights */
    int32_t n_answer = n_decode, n_share = 1, n_prompt;
    if (!n_decode) alone = 0;
    for (const hone_scheduler *o = s->beside; o != s; o = o->beside) {
        int32_t n = look(o, &n_prompt);
        if (n) alone += answers_ns(&o->cost, n);
        n_answer += n;
        n_share += n_prompt > 0;
    }
    *left = hn_time_beside(alone) / n_share - own;
    return n_answer > 0;
}

/* Rows of prompts that a step may have beside so many answers, and those of the schedulers that it is beside. */
static int32_t prefill_rows(const hone_scheduler *s, int32_t n_decode)
{
    int32_t most = s->ses->n_chunk - n_decode;
    double left;
    if (most < 1) most = 1;
    return time_left(s, n_decode, &left) ? hn_rows_beside(&s->cost.row, left, s->fixed_prefill, most) : most;
}

/* Rows of every unit; masks of those that will have logits. *n_decode: rows of answers among them. */
static int32_t plan(hone_scheduler *s, int32_t *n_decode)
{
    int32_t n = 0;
    *n_decode = 0;
    for (int32_t i = 0; i < s->n_slot; i++) {
        hn_choice *c = unit_in(s, i);
        if (!c) continue;
        c->rows = is_decoding(s, c) && !c->of->held;
        *n_decode += c->rows;
    }
    share(s, prefill_rows(s, *n_decode), *n_decode > 0);
    for (int32_t i = 0; i < s->n_slot; i++) {
        hn_choice *c = s->slot[i].c;
        if (!c || !c->rows) continue;
        const bool answers = is_decoding(s, c);
        if (left_of(s, c) == c->rows && c->of->r.max_tokens != 0 && !hn_scheduler_ask_masks(s, c)) {
            *n_decode -= answers; /* it ended */
            c->rows = 0;
            continue;
        }
        c->to = hn_scheduler_held(s, c) + c->rows;
        n += c->rows;
    }
    return n;
}

/* ---- running -------------------------------------------------------------------------- */

static bool has_windows(const hn_seq_memory *m)
{
    for (int32_t i = 0; i < m->n_group; i++)
        if (m->group[i].window) return true;
    return false;
}

/* A unit's rows behind n others in the batch. */
static int32_t put_rows(hone_scheduler *s, hn_choice *c, int32_t n, int32_t *n_want)
{
    int32_t held = hn_scheduler_held(s, c);
    c->first_want = *n_want;
    for (int32_t pos = held; pos < held + c->rows; pos++) {
        bool wanted = row_echoes(c, pos) || (pos == c->n_ids - 1 && c->of->r.max_tokens != 0);
        s->batch[n++] = (hone_token){ c->ids[pos], pos, c->slot, wanted };
        *n_want += wanted;
    }
    c->n_want = *n_want - c->first_want;
    return n;
}

/* What was run of a unit, counted and told. */
static void settle(hone_scheduler *s, hn_choice *c)
{
    const int32_t to = hn_scheduler_held(s, c), from = to - c->rows, n_prompt = c->of->r.n_prompt;
    const int32_t first = c->furthest > from ? c->furthest : from; /* new from here on */
    const int32_t n_new = to > first ? to - first : 0;
    const int32_t of_prompt = first < n_prompt ? (to < n_prompt ? to : n_prompt) - first : 0;
    c->rows = 0;
    s->n.n_again_rows += (uint64_t)(to - from - n_new);
    s->n.n_prompt_tokens += (uint64_t)(of_prompt > 0 ? of_prompt : 0);
    s->n.n_answer_rows += (uint64_t)(n_new - (of_prompt > 0 ? of_prompt : 0));
    if (c->furthest < to) c->furthest = to;
    if (has_windows(s->ses->mem) && from / HN_PAGE != to / HN_PAGE) s->n_freed++; /* what they leave behind */
    if (to == n_prompt || (s->ses->mem->wants_checkpoints && to < n_prompt && to == next_mark(&c->of->r, to - 1))) {
        hn_scheduler_keep(s, c);
        s->n_freed++; /* pages that others had computed, too */
    }
    hn_scheduler_tell_rows(s, c, from, s->logits + (size_t)c->first_want * (size_t)s->n_vocab);
}

/* ---- what did not fit ------------------------------------------------------------------ */

/* Rows with which a unit runs to the end of its page: a window needs no more for them than for one. */
static int32_t to_page_end(const hone_scheduler *s, const hn_choice *c)
{
    return HN_PAGE - hn_scheduler_held(s, c) % HN_PAGE;
}

/* A batch holds pages of windows that are free behind it: fewer rows need less, of the unit that has most of them, or
 * of this one. False: there are none that would. */
static bool take_fewer(hone_scheduler *s, hn_choice *alone)
{
    hn_choice *most = NULL;
    if (!has_windows(s->ses->mem)) return false;
    for (int32_t i = 0; i < s->n_slot; i++) {
        hn_choice *c = s->slot[i].c;
        if (!c || (alone && c != alone)) continue;
        if (c->rows > to_page_end(s, c) && (!most || c->rows > most->rows)) most = c;
    }
    if (!most) return false;
    int32_t half = most->rows / 2, least = to_page_end(s, most);
    most->rows = half > least ? half : least;
    most->to = hn_scheduler_held(s, most) + most->rows;
    return true;
}

/* States, and pages of windows, at places that those who run have passed: what of them the tree holds, too, it then
 * lets go. False: there are none. */
static bool drop_checkpoints(hone_scheduler *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_slot; i++) n += hn_memory_drop_checkpoints(s->ses->mem, i, -1);
    s->n_freed += n > 0;
    return n > 0;
}

/* A batch that did not fit, or the rows of this unit alone, need less, or more is free: what costs least comes first.
 * False: only the oldest is left, with the fewest rows. */
static bool make_fit(hone_scheduler *s, hn_choice *alone)
{
    return hn_scheduler_evict(s) || take_fewer(s, alone) || drop_checkpoints(s) || hn_scheduler_make_room(s);
}

/* One unit alone, to where the batch that failed would have brought it: it fits, or is to blame. A recurrent state that
 * was lost with that batch is had again here, and not bit by bit, so that the one to blame meets its fault now. */
static void run_alone(hone_scheduler *s, hn_choice *c)
{
    hone_error err;
    int32_t to = c->to, most = s->ses->n_chunk;
    bool emptied = false;
    while (c->slot >= 0 && hn_scheduler_held(s, c) < to) { /* without a slot: it ended, or paused for an older one */
        int32_t n_want = 0, left = to - hn_scheduler_held(s, c);
        c->rows = left < most ? left : most;
        int32_t n = put_rows(s, c, 0, &n_want);
        hone_status st = hn_session_run(s->ses, s->batch, n, s->logits, &err);
        if (st == HONE_OK) {
            s->n.n_rows += (uint64_t)n;
            settle(s, c);
        } else if (st == HONE_E_NOMEM && make_fit(s, c)) {
            if (c->rows > 0) most = c->rows;         /* none: it paused */
        } else if (st == HONE_E_NOMEM && !emptied) { /* what is kept of itself makes it copy what it writes to */
            hone_session_drop_prefixes(s->ses);
            emptied = true;
        } else if (c->of->forked) {
            hn_scheduler_end(s, c, HONE_END_ERROR, &err);
        } else {
            hn_scheduler_end_all(s, c->of, HONE_END_ERROR, &err);
        }
    }
}

bool hn_scheduler_run(hone_scheduler *s)
{
    int32_t n_decode, planned = plan(s, &n_decode);
    uint64_t begin = s->now(s->now_arg);
    hone_status st = HONE_E_NOMEM;
    hone_error err;
    if (!planned) return false;
    s->n.n_steps++;
    do {
        int32_t n = 0, n_want = 0;
        for (int32_t i = 0; i < s->n_slot; i++)
            if (s->slot[i].c && s->slot[i].c->rows) n = put_rows(s, s->slot[i].c, n, &n_want);
        if (!n) return false; /* all of it paused: what is left is held */
        st = hn_session_run(s->ses, s->batch, n, s->logits, &err);
        if (st != HONE_OK) continue;
        s->n.n_rows += (uint64_t)n;
        uint64_t end = s->now(s->now_arg);
        if (n == planned) learn(s, n_decode, n - n_decode, end > begin ? end - begin : 0);
    } while (st == HONE_E_NOMEM && make_fit(s, NULL));
    for (int32_t i = 0; i < s->n_slot; i++) {
        hn_choice *c = s->slot[i].c;
        if (!c || !c->rows) continue;
        if (st == HONE_OK) settle(s, c);
        else run_alone(s, c);
    }
    return true;
}
