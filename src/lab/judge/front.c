/* Commands that people start, on both sides. Owns which; refuses to know verdicts. */
#define _GNU_SOURCE
#include "lab/judge/front.h"

#include "lab/judge/side_priv.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_WORDS = 20, N_PREDICT = 16, MOST_TEXT = 4096 };

typedef enum kind { RUN, TOKENIZE, CHAT, LOGITS, EMBED, PERPLEXITY } kind;
static const char *const kinds[] = { "run", "tokenize", "chat", "logits", "embed", "perplexity" };

/* A command. Its text is one of those of the quality hash, or several, and its seed, where it has one, is drawn. */
typedef struct command {
    const char *name;
    kind kind;
    int texts; /* 0: it reads questions, line by line; perplexity reads its texts so, too */
    const char *words[MOST_WORDS];
} command;

static const command commands[] = {
    { "greedy", RUN, 1, { "--temp=0", "--ignore-eos" } },
    { "drawn", RUN, 1, { "--temp=1.5", "--top-k=0", "--top-p=1", "--min-p=0", "--seed=0", "--ignore-eos" } },
    { "usual", RUN, 1, { "--seed=0" } },
    { "filters",
      RUN,
      HN_Q_PROMPTS,
      { "--temp=0.9", "--top-k=12", "--top-p=0.8", "--min-p=0.08", "--repeat-penalty=1.2", "--repeat-last-n=200",
        "--presence-penalty=0.3", "--frequency-penalty=0.2", "--seed=0", "--ignore-eos" } },
    { "form", RUN, 1, { "--temp=0.5", "--seed=0", "--regex=[a-z ]{4,24}", "--no-echo" } },
    { "stop", RUN, 1, { "--temp=0", "--stop=e", "--stop=\n" } },
    { "chat", RUN, 1, { "--chat", "--system=Answer in one sentence.", "--temp=0.7", "--seed=0" } },
    { "talk", CHAT, 0, { "--temp=0.7", "--seed=0" } },
    { "tokens", TOKENIZE, HN_Q_PROMPTS, { NULL } },
    { "logits", LOGITS, 1, { "--neighbours=2" } },
    { "vector", EMBED, 1, { "--pooling=mean" } },
    { "perplexity", PERPLEXITY, HN_Q_PROMPTS, { "--text=-", "--ctx-size=32", "--stride=12", "--json" } },
};
static const char questions[] = "Name a color.\nTell me more about it.\nWhat was my first question?\nSay it again.\n";

/* What the time of a run is measured with: where few tokens are nothing beside a start, by more of them. */
static const command timed = { "run", RUN, 1, { "--temp=0", "--ignore-eos" } },
                     timed_longer = { "run", RUN, HN_Q_PROMPTS, { "--temp=0", "--ignore-eos", "--n-predict=160" } };

/* Of a comparison's options those that programs which run a model have, too, or that only read its words. */
static bool takes(const char *word, bool words_only)
{
    static const char *const names[] = { "pre", "threads", "threads-batch", "cpu", "chunk",
                                         "kv",  "packed",  "allow-paging",  "lora" };
    for (size_t i = 0; i < (words_only ? 1 : sizeof names / sizeof *names); i++)
        if (hn_argv_is(word, names[i])) return true;
    return false;
}

static void give_settings(hn_argv *a, const hn_side *s, const hn_target *t, bool words_only)
{
    char key[80];
    for (int i = 0; i < HN_SIDE_ARGS && t->args[i]; i++)
        if (takes(t->args[i], words_only)) hn_argv_add(a, "%s", t->args[i]);
    for (int i = 0; i < s->n_keys; i++) {
        snprintf(key, sizeof key, "--%.70s", strcmp(s->key[i], "t") == 0 ? "threads" : s->key[i]);
        if (takes(key, words_only)) hn_argv_set(a, key + 2, "%s", s->value[i]);
    }
}

void hn_front_settings(hn_argv *a, const hn_side *s, const hn_target *t) { give_settings(a, s, t, false); }

static void text_of(char *dst, size_t cap, const command *c, uint64_t draw)
{
    size_t n = 0;
    *dst = 0;
    for (int i = 0; i < c->texts && n < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%s", i ? "\n" : "", hn_q_texts[(draw + (uint64_t)i) % HN_Q_PROMPTS]);
}

/* Of what a program said: of perplexity the numbers alone, as times and dates stand around them; one that tells none of
 * them, an older one, is not compared. */
static uint64_t hash_of(const hn_process *r, const command *c)
{
    static const char from[] = "\"ppl_running\"", to[] = "\"seconds\"";
    const char *s = r->out, *end = s ? s + r->n_out : NULL;
    if (s && c->kind == PERPLEXITY) {
        s = memmem(s, r->n_out, from, sizeof from - 1);
        end = s ? memmem(s, (size_t)(r->out + r->n_out - s), to, sizeof to - 1) : NULL;
    }
    return s && end ? hn_fnv1a(HN_FNV_INIT, s, (size_t)(end - s)) : HN_FNV_INIT;
}

/* PROGRAM run|tokenize|chat --model=… with the settings of the comparison and of the side. */
static hone_status line_of(hn_side_command *out, const hn_side *s, const hn_target *t, const command *c, uint64_t draw,
                           hone_error *err)
{
    hn_argv *a = &out->argv;
    *out = (hn_side_command){ .argv = { 0 } };
    hn_argv_extend(a, (const char *const[]){ s->program, kinds[c->kind], NULL });
    hn_argv_add(a, "--model=%s", t->model);
    give_settings(a, s, t, c->kind == TOKENIZE);
    char text[MOST_TEXT];
    text_of(text, sizeof text, c, draw);
    if (c->texts && c->kind != PERPLEXITY) hn_argv_add(a, "--prompt=%s", text);
    if (c->kind == RUN || c->kind == CHAT) hn_argv_add(a, "--n-predict=%d", N_PREDICT);
    hn_argv_extend(a, c->words);
    for (int i = 0; i < MOST_WORDS && c->words[i]; i++)
        if (hn_argv_is(c->words[i], "seed")) hn_argv_set(a, "seed", "%" PRIu64, draw >> 1);
    hn_side_own_env(out, s);
    return hn_argv_check(a, s->program, err);
}

static hone_status run(hn_process *r, hn_side *s, const hn_target *t, const command *c, uint64_t draw, hone_error *err)
{
    hn_side_command line;
    char text[MOST_TEXT];
    hone_status st = line_of(&line, s, t, c, draw, err);
    text_of(text, sizeof text, c, draw);
    const hn_process_params p = { .argv = hn_argv_words(&line.argv),
                                  .env = line.env,
                                  .alone = true,
                                  .keep_out = true,
                                  .input = c->kind == PERPLEXITY ? text
                                           : c->texts            ? NULL
                                                                 : questions,
                                  .stop = t->stop };
    if (st == HONE_OK) st = hn_side_start(r, s, &p, err);
    hn_argv_free(&line.argv);
    return st;
}

/* Can a program of this kind be started so? */
static bool has_front(hn_side *const side[2], const hn_target *t)
{
    return t->model && side[0]->kind != HN_SIDE_COMMAND && side[1]->kind != HN_SIDE_COMMAND;
}

hone_status hn_front_texts(hn_front *out, hn_side *const side[2], const hn_target *t, uint64_t draw, hone_error *err)
{
    hone_status st = HONE_OK;
    *out = (hn_front){ .name = "" };
    if (!has_front(side, t)) return HONE_OK;
    for (size_t i = 0; i < sizeof commands / sizeof *commands && st == HONE_OK && !out->name[0]; i++) {
        const command *c = &commands[i];
        hn_process r[2] = { { .out = NULL } };
        const uint64_t own = hn_rand64(draw, i);
        uint64_t h[2] = { 0 };
        bool both = false;
        for (int k = 0; k < 2 && st == HONE_OK; k++) {
            st = run(&r[k], side[k], t, c, own, err);
            if (st != HONE_OK) break;
            h[k] = hash_of(&r[k], c);
            if (k == 0 && r[0].exit_code != 0) break; /* this model, or this program, has no such command */
            both = k == 1;
        }
        if (both && r[1].exit_code != 0) {
            char why[400];
            hn_process_why(&r[1], why, sizeof why);
            snprintf(out->why, sizeof out->why, "hone %s (%s) %s, and side a's does not", kinds[c->kind], c->name, why);
        }
        if (both && (h[0] != h[1] || out->why[0])) {
            snprintf(out->name, sizeof out->name, "run:%s", c->name);
            for (int k = 0; k < 2; k++) snprintf(out->hash[k], sizeof out->hash[k], "%08" PRIx32, (uint32_t)h[k]);
        }
        for (int k = 0; k < 2; k++) hn_process_free(&r[k]);
    }
    return st == HONE_OK && !out->name[0] ? hn_front_served(out, side, t, draw, err) : st;
}

/* One run of a side: *s, seconds; 0: it failed, and hn_front_texts says whose fault that is. */
static hone_status time_of(double *s, hn_side *side, const hn_target *t, const command *c, hone_error *err)
{
    hn_process r;
    hone_status st = run(&r, side, t, c, 0, err);
    if (st != HONE_OK) return st;
    *s = r.exit_code == 0 ? r.wall_s : 0;
    hn_process_free(&r);
    return HONE_OK;
}

hone_status hn_front_slower(char *what, size_t cap, hn_side *const side[2], const hn_target *t, hone_error *err)
{
    enum { FIRST = 3, PAIRS = 15, MOST_FASTER = 1 };
    const double much = 1.15, short_s = 0.1;
    double best[2] = { INFINITY, INFINITY }, ratio[PAIRS], s[2] = { 0 };
    int slower = 0;
    hn_stats of;
    *what = 0;
    if (!has_front(side, t)) return HONE_OK;
    hone_status st = time_of(&s[0], side[0], t, &timed, err);
    const command *c = s[0] < short_s ? &timed_longer : &timed;
    for (int n = 0; n < PAIRS && st == HONE_OK; n++) {
        for (int k = 0; k < 2 && st == HONE_OK; k++) {
            const int which = (n + k) % 2; /* AB, BA */
            st = time_of(&s[which], side[which], t, c, err);
            best[which] = fmin(best[which], s[which]);
        }
        if (st != HONE_OK || !(s[0] > 0 && s[1] > 0)) return st;
        ratio[n] = s[1] / s[0];
        slower += ratio[n] > much;
        if (n + 1 >= FIRST && best[1] <= much * best[0]) return HONE_OK; /* fast once is fast */
        if (n + 1 - slower > MOST_FASTER) return HONE_OK;
    }
    if (st == HONE_OK) st = hn_stats_of(&of, ratio, PAIRS, err);
    if (st == HONE_OK)
        snprintf(what, cap, "hone run itself, from start to end, takes %.2g times as long in %d of %d pairs of runs",
                 of.median, slower, PAIRS);
    return st;
}
