/* What several voices say alike. Owns the shapes that they share; refuses to know which route an answer is for. */
#include "serve/voice_parts.h"
#include "base/json.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

const char hn_sse[] = "text/event-stream";

/* ---- of what was said -------------------------------------------------------------------- */

bool hn_say_of(const hn_say *s, int32_t prompt, int32_t choice)
{
    return s->prompt == prompt && s->choice == choice && s->kind != HN_SAY_ALIVE;
}

size_t hn_say_run(const hn_say *s, size_t n)
{
    size_t k = 1;
    bool joins = s->kind <= HN_SAY_REASONING || s->kind == HN_SAY_ARGUMENTS;
    while (joins && k < n && s[k].kind == s->kind && s[k].prompt == s->prompt && s[k].choice == s->choice &&
           s[k].call == s->call)
        k++;
    return k;
}

/* Is s of this choice and kind, and of this call where one is asked for? */
static bool matches(const hn_say *s, int32_t prompt, int32_t choice, hn_say_kind kind, int32_t call)
{
    return s->kind == kind && s->prompt == prompt && s->choice == choice && (call < 0 || s->call == call);
}

void hn_say_joined(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind,
                   int32_t call)
{
    hn_bytes_text(o, "\"");
    for (size_t i = 0; i < n; i++)
        if (matches(s + i, prompt, choice, kind, call)) hn_bytes_escaped(o, s[i].text, s[i].len);
    hn_bytes_text(o, "\"");
}

void hn_say_raw(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind, int32_t call)
{
    for (size_t i = 0; i < n; i++)
        if (matches(s + i, prompt, choice, kind, call)) hn_bytes_add(o, s[i].text, s[i].len);
}

size_t hn_say_length(const hn_say *s, size_t n, int32_t prompt, int32_t choice, hn_say_kind kind)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (matches(s + i, prompt, choice, kind, -1)) len += s[i].len;
    return len;
}

const hn_say *hn_say_last(const hn_say *s, size_t n, int32_t prompt, int32_t choice)
{
    static const hn_say none = { .kind = HN_SAY_END, .why = HN_WHY_LENGTH };
    for (size_t i = n; i-- > 0;)
        if (matches(s + i, prompt, choice, HN_SAY_END, -1)) return s + i;
    return &none;
}

const hn_usage *hn_say_usage(const hn_say *s)
{
    static const hn_usage none;
    return s->usage ? s->usage : &none;
}

int32_t hn_say_calls(const hn_say *s, size_t n, int32_t prompt, int32_t choice, bool complete)
{
    int32_t calls = 0;
    for (size_t i = 0; i < n; i++)
        calls += matches(s + i, prompt, choice, complete ? HN_SAY_CALL_END : HN_SAY_CALL, -1);
    return calls;
}

const char *hn_finish_reason(const hn_say *end, int32_t complete_calls)
{
    if (end->why == HN_WHY_LENGTH || end->why == HN_WHY_CONTEXT) return "length";
    return complete_calls > 0 ? "tool_calls" : "stop";
}

/* Which of n choices s is of; -1: none of them. */
static int64_t place_of(const hn_say *s, size_t n, int32_t n_choice)
{
    int64_t at = (int64_t)s->prompt * n_choice + s->choice;
    return s->kind == HN_SAY_ALIVE || s->choice < 0 || s->choice >= n_choice || at < 0 || at >= (int64_t)n ? -1 : at;
}

bool hn_sorted_new(hn_sorted *o, const hn_say *s, size_t n, int32_t n_prompt, int32_t n_choice)
{
    size_t all = (size_t)n_prompt * (size_t)n_choice;
    *o = (hn_sorted){ .n_choice = n_choice };
    o->say = malloc((n + 1) * sizeof *o->say);
    o->begin = calloc(all + 2, sizeof *o->begin);
    if (!o->say || !o->begin) {
        hn_sorted_free(o);
        return false;
    }
    /* begin[k + 2] counts choice k, then begin[k + 1] is where it begins, which moves on to where it ends */
    for (size_t i = 0; i < n; i++)
        if (place_of(s + i, all, n_choice) >= 0) o->begin[place_of(s + i, all, n_choice) + 2]++;
    for (size_t k = 2; k < all + 2; k++) o->begin[k] += o->begin[k - 1];
    for (size_t i = 0; i < n; i++)
        if (place_of(s + i, all, n_choice) >= 0) o->say[o->begin[place_of(s + i, all, n_choice) + 1]++] = s[i];
    return true;
}

const hn_say *hn_sorted_of(const hn_sorted *o, int32_t prompt, int32_t choice, size_t *n)
{
    size_t k = (size_t)prompt * (size_t)o->n_choice + (size_t)choice;
    *n = o->begin[k + 1] - o->begin[k];
    return o->say + o->begin[k];
}

void hn_sorted_free(hn_sorted *o)
{
    free(o->say);
    free(o->begin);
    *o = (hn_sorted){ 0 };
}

void hn_arguments_object(hn_bytes *o, const char *s, size_t n)
{
    hn_jread j;
    bool whole = n > 0 && hn_jread_begin(&j, s, n, NULL, "arguments", NULL, NULL) == HONE_OK &&
                 hn_jread_peek(&j) == '{' && hn_jread_skip(&j) == HONE_OK && hn_jread_end(&j) == HONE_OK;
    if (!whole) {
        hn_bytes_text(o, "{}");
        return;
    }
    /* on one line: between tokens of JSON a line end is a blank */
    for (size_t i = 0; i < n; i++) hn_bytes_add(o, s[i] == '\n' || s[i] == '\r' ? " " : s + i, 1);
}

/* ---- pieces of JSON ---------------------------------------------------------------------- */

void hn_part_text(hn_bytes *o, const char *name, const char *value)
{
    hn_bytes_comma(o);
    hn_bytes_printf(o, "\"%s\":", name);
    hn_bytes_json_text(o, value);
}

void hn_part_int(hn_bytes *o, const char *name, int64_t v)
{
    hn_bytes_comma(o);
    hn_bytes_printf(o, "\"%s\":%lld", name, (long long)v);
}

static void part_ms(hn_bytes *o, const char *name, double v)
{
    hn_bytes_comma(o);
    hn_bytes_printf(o, "\"%s\":", name);
    hn_bytes_f64(o, round(v * 1000) / 1000); /* microseconds are enough */
}

void hn_part_usage(hn_bytes *o, const hn_usage *u)
{
    hn_bytes_printf(o,
                    "\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%lld,"
                    "\"prompt_tokens_details\":{\"cached_tokens\":%d},"
                    "\"completion_tokens_details\":{\"reasoning_tokens\":%d}}",
                    u->prompt, u->completion, (long long)u->prompt + u->completion, u->cached, u->reasoning);
}

void hn_part_timings(hn_bytes *o, const hn_usage *u)
{
    int32_t run = u->prompt - u->cached;
    hn_bytes_printf(o, "\"timings\":{\"cache_n\":%d,\"prompt_n\":%d", u->cached, run);
    part_ms(o, "prompt_ms", u->prompt_ms);
    part_ms(o, "prompt_per_token_ms", run > 0 ? u->prompt_ms / run : 0);
    part_ms(o, "prompt_per_second", u->prompt_ms > 0 ? run / (u->prompt_ms / 1000) : 0);
    hn_part_int(o, "predicted_n", u->completion);
    part_ms(o, "predicted_ms", u->predicted_ms);
    part_ms(o, "predicted_per_token_ms", u->timed > 0 ? u->predicted_ms / u->timed : 0);
    part_ms(o, "predicted_per_second", u->predicted_ms > 0 ? u->timed / (u->predicted_ms / 1000) : 0);
    hn_bytes_text(o, "}");
}

void hn_part_chunk_timings(hn_bytes *o, const hn_ask *a, const hn_say *s)
{
    bool last = s->kind == HN_SAY_END && !a->include_usage;
    if (!s->usage || (!a->timings_per_token && !last)) return;
    hn_bytes_text(o, ",");
    hn_part_timings(o, s->usage);
    if (!last) return;
    hn_bytes_text(o, ",");
    hn_part_hone(o, s->usage);
}

void hn_part_absent(hn_bytes *o)
{
    hn_bytes_text(o, "\"dynatemp_range\":0.0,\"dynatemp_exponent\":1.0,\"top_n_sigma\":-1.0,\"typical_p\":1.0,"
                     "\"xtc_probability\":0.0,\"xtc_threshold\":0.1,\"dry_multiplier\":0.0,\"dry_base\":1.75,"
                     "\"dry_allowed_length\":2,\"dry_penalty_last_n\":64,\"mirostat\":0,\"mirostat_tau\":5.0,"
                     "\"mirostat_eta\":0.1,\"adaptive_target\":-1.0,\"adaptive_decay\":0.9,\"min_keep\":0,"
                     "\"n_keep\":0,\"n_discard\":0");
}

void hn_part_hone(hn_bytes *o, const hn_usage *u)
{
    hn_bytes_printf(o, "\"hone\":{\"seed\":%llu", (unsigned long long)u->seed);
    part_ms(o, "queue_ms", u->queue_ms);
    part_ms(o, "ttft_ms", u->ttft_ms);
    hn_bytes_text(o, "}");
}

void hn_part_progress(hn_bytes *o, const hn_say *s)
{
    hn_bytes_printf(o, "\"prompt_progress\":{\"total\":%d,\"cache\":%d,\"processed\":%d", s->total, s->cached, s->done);
    part_ms(o, "time_ms", s->ms);
    hn_bytes_text(o, "}");
}

void hn_part_logprob(hn_bytes *o, float v)
{
    if (isfinite(v)) hn_bytes_f32(o, v);
    else hn_bytes_text(o, "-9999.0");
}

/* token, logprob or prob, bytes of one entry, without brackets. */
static void entry(hn_bytes *o, int32_t id, const char *text, size_t len, float p, bool ids, bool probs)
{
    if (ids) hn_bytes_printf(o, "\"id\":%d,", id);
    hn_bytes_text(o, "\"token\":");
    hn_bytes_json(o, text ? text : "", len);
    hn_bytes_text(o, probs ? ",\"prob\":" : ",\"logprob\":");
    if (probs) hn_bytes_f32(o, p);
    else hn_part_logprob(o, p);
    hn_bytes_text(o, ",\"bytes\":");
    if (!text) {
        hn_bytes_text(o, "null");
        return;
    }
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < len; i++) hn_bytes_printf(o, i ? ",%u" : "%u", (unsigned char)text[i]);
    hn_bytes_text(o, "]");
}

void hn_part_tokens(hn_bytes *o, const hn_said_token *t, size_t n, bool ids, bool probs)
{
    for (size_t i = 0; i < n; i++) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "{");
        entry(o, t[i].id, t[i].text, t[i].len, t[i].logprob, ids, probs);
        hn_bytes_text(o, probs ? ",\"top_probs\":[" : ",\"top_logprobs\":[");
        for (int32_t k = 0; k < t[i].n_top; k++) {
            const hn_said_top *top = t[i].top + k;
            hn_bytes_text(o, k ? ",{" : "{");
            entry(o, top->id, top->text, top->len, top->logprob, ids, probs);
            hn_bytes_text(o, "}");
        }
        hn_bytes_text(o, "]}");
    }
}

void hn_part_all_tokens(hn_bytes *o, const hn_say *s, size_t n, int32_t prompt, int32_t choice, bool ids, bool probs)
{
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < n; i++)
        if (matches(s + i, prompt, choice, HN_SAY_TEXT, -1)) hn_part_tokens(o, s[i].token, s[i].n_token, ids, probs);
    hn_bytes_text(o, "]");
}

void hn_part_ids(hn_bytes *o, const int32_t *ids, size_t n)
{
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < n; i++) hn_bytes_printf(o, i ? ",%d" : "%d", ids[i]);
    hn_bytes_text(o, "]");
}

void hn_part_vector(hn_bytes *o, const float *x, int32_t n)
{
    hn_bytes_text(o, "[");
    for (int32_t i = 0; i < n; i++) {
        if (i) hn_bytes_text(o, ",");
        hn_bytes_f32(o, x[i]);
    }
    hn_bytes_text(o, "]");
}

void hn_part_alive(hn_bytes *o) { hn_bytes_text(o, ": keepalive\n\n"); }

void hn_part_error(hn_bytes *o, const hn_refusal *r)
{
    hn_bytes_text(o, "\"error\":{\"message\":");
    hn_bytes_json_text(o, r->message);
    hn_part_text(o, "type", r->type);
    hn_part_text(o, "param", *r->param ? r->param : NULL);
    hn_part_text(o, "code", r->code);
    if (r->n_ctx) hn_bytes_printf(o, ",\"n_prompt_tokens\":%d,\"n_ctx\":%d", r->n_prompt_tokens, r->n_ctx);
    hn_bytes_text(o, "}");
}

bool hn_part_fail(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o)
{
    hn_bytes_text(o, "data: {");
    hn_part_error(o, r);
    hn_bytes_text(o, "}\n\n");
    return hn_bytes_ok(o);
}
