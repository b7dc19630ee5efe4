/* `hone help --words types|templates|targets`: what completion offers is exactly what the library takes. The program
 * sees the public API alone, so its lists are copies; here they are held against the tables that they copy. And the
 * words of other programs: what is said in their place names options that the command has. */
#include "cli/foreign.c" /* its rows */
#include "quant/quant.h"
#include "text/chat.h"
#include "train/trainer.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* in place of main.c, which is not linked here */
static const hn_opt common_opts[] = {
    HN_OPT("json", NULL, FLAG, NULL, ""),
    HN_OPT("verbose", "-v", FLAG, NULL, ""),
    HN_OPT("help", "-h", FLAG, NULL, ""),
    HN_OPT_END,
};
static const hn_opt_group common_group = { "", common_opts };
const hn_opt_group *const hn_common_groups[] = { &common_group, NULL };
extern const hn_command hn_command_run, hn_command_chat, hn_command_serve, hn_command_bench, hn_command_lab,
    hn_command_perplexity, hn_command_inspect, hn_command_tokenize, hn_command_embed, hn_command_train,
    hn_command_merge, hn_command_convert, hn_command_pull, hn_command_list, hn_command_show, hn_command_rm;
const hn_command *const hn_commands[] = {
    &hn_command_run,
    &hn_command_chat,
    &hn_command_serve,
    &hn_command_bench,
    &hn_command_lab,
    &hn_command_perplexity,
    &hn_command_inspect,
    &hn_command_tokenize,
    &hn_command_embed,
    &hn_command_train,
    &hn_command_merge,
    &hn_command_convert,
    &hn_command_pull,
    &hn_command_list,
    &hn_command_show,
    &hn_command_rm,
    NULL,
};

enum { MOST = 64 };

typedef struct list {
    char word[MOST][32];
    size_t n;
} list;

static void add(list *l, const char *word, size_t n)
{
    assert_true(l->n < MOST && n > 0 && n < sizeof l->word[0]);
    snprintf(l->word[l->n++], sizeof l->word[0], "%.*s", (int)n, word);
}

static bool has(const list *l, const char *word)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->word[i], word) == 0) return true;
    return false;
}

static list offered(const char *kind)
{
    list l = { .n = 0 };
    for (const char *s = hn_help_words(kind); *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        add(&l, s, n);
        s += n;
    }
    return l;
}

static void same_words(const char *kind, const list *expected)
{
    list l = offered(kind);
    for (size_t i = 0; i < expected->n; i++)
        if (!has(&l, expected->word[i])) fail_msg("%s: '%s' is not offered", kind, expected->word[i]);
    for (size_t i = 0; i < l.n; i++)
        if (!has(expected, l.word[i])) fail_msg("%s: '%s' is offered, and not taken", kind, l.word[i]);
    assert_int_equal(l.n, expected->n); /* none twice */
}

/* Can every matrix of a model get what the mixture says, experts too? */
static bool can_be_written(const char *mixture)
{
    static const char *const names[] = {
        "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"
    };
    const hn_mix_model m = { .arch = "llama", .n_layer = 32, .n_head = 32, .n_head_kv = 8, .tied = false };
    const uint64_t ne[3] = { 4096, 4096, 8 };
    hn_mix_state state = { 0 };
    char name[64];
    for (int il = -1; il < m.n_layer; il++)
        for (size_t k = 0; k < (il < 0 ? 2 : sizeof names / sizeof *names); k++) {
            if (il < 0) snprintf(name, sizeof name, "%s.weight", k ? "output" : "token_embd");
            else snprintf(name, sizeof name, "blk.%d.%s.weight", il, names[k]);
            const hn_type_info *t =
                hn_type_get(hn_mix_type(mixture, &m, &state, name, ne, strstr(name, "exps") ? 3 : 2));
            if (!t || !t->quantize) return false;
        }
    return true;
}

static void test_types(void **state)
{
    list expected = { .n = 0 };
    const char *name;
    for (size_t i = 0; (name = hn_mix_name(i)); i++) {
        bool earlier = false; /* a short name of another */
        uint32_t is, other;
        assert_true(hn_mix_find(name, NULL, &is));
        for (size_t k = 0; k < i; k++) earlier |= hn_mix_find(hn_mix_name(k), NULL, &other) && other == is;
        if (!earlier && can_be_written(name)) add(&expected, name, strlen(name));
    }
    assert_true(expected.n > 10);
    same_words("types", &expected);
}

static void test_templates(void **state)
{
    list expected = { .n = 0 };
    const char *name, *told = hn_chat_format_list();
    for (size_t i = 0; (name = hn_chat_format_name(i)); i++) {
        assert_non_null(hn_chat_format(name));
        add(&expected, name, strlen(name));
        const char *tail = strncmp(name, "mistral-", 8) == 0 ? name + 7 : name; /* told as mistral (-v1, …) */
        if (!strstr(told, tail)) fail_msg("messages do not name '%s': %s", name, told);
    }
    same_words("templates", &expected);
}

static void test_targets(void **state)
{
    list expected = { .n = 0 };
    hone_error err;
    const char *word;
    uint32_t bits, kinds = 0;
    for (size_t i = 0; (word = hn_targets_word(i)); i++) {
        assert_int_equal(hn_targets_parse(&bits, word, &err), HONE_OK);
        if (i < HN_TGT_KINDS) assert_int_equal(bits, 1u << i);
        kinds |= bits;
        add(&expected, word, strlen(word));
    }
    assert_int_equal(kinds, (1u << HN_TGT_KINDS) - 1);
    same_words("targets", &expected);
    assert_int_equal(hn_targets_parse(&bits, "none", &err), HONE_E_ARG);
    for (size_t i = 0; i < expected.n; i++) assert_non_null(strstr(err.message, expected.word[i]));
}

/* The command that words after "hone " name, the longest there is; "it is -m" is of the one that was asked. */
static const hn_command *named(const hn_command *const *all, const char *s)
{
    for (const hn_command *const *c = all; *c; c++) {
        size_t n = strlen((*c)->name);
        const hn_command *below = (*c)->subs ? named((*c)->subs, s) : NULL;
        if (below) return below;
        if (strncmp(s, (*c)->name, n) == 0 && !isalpha((unsigned char)s[n])) return *c;
    }
    return NULL;
}

/* Every option in what is said, up to the next clause of the command that it names, else of cmd. */
static int check_said(const hn_command *cmd, const char *word, const char *say)
{
    const hn_command *of = cmd;
    int n = 0;
    for (const char *s = say; *s; s++) {
        bool begins = s == say || s[-1] == ' ';
        char option[40];
        if (*s == ';') of = cmd;
        if (begins && strncmp(s, "hone ", 5) == 0 && named(hn_commands, s + 5)) of = named(hn_commands, s + 5);
        if (!begins || *s != '-' || s[1] == ' ') continue;
        snprintf(option, sizeof option, "%.*s", (int)strcspn(s, " ,;.:"), s);
        if (!hn_opts_knows(of, hn_common_groups, option))
            fail_msg("hone %s %s: \"%s\": %s has no %s", cmd->name, word, say, of->name, option);
        n++;
    }
    return n;
}

static int check_words(const hn_command *const *all)
{
    int n = 0;
    for (const hn_command *const *c = all; *c; c++) {
        if ((*c)->subs) n += check_words((*c)->subs);
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            for (const char *w = options[i].words; *w; w += strspn(w, " ")) {
                char word[80];
                snprintf(word, sizeof word, "%.*s", (int)strcspn(w, " "), w);
                w += strlen(word);
                const char *say = hn_foreign_option(*c, word);
                if (say && !hn_opts_knows(*c, hn_common_groups, word)) n += check_said(*c, word, say);
            }
    }
    return n;
}

/* Of other programs' options each command names what it has itself, or another command with what that one has. */
static void test_foreign(void **state)
{
    assert_true(check_words(hn_commands) > 1000);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) /* no row is of an option that nobody has */
        if (options[i].has) {
            bool some = false;
            for (const hn_command *const *c = hn_commands; *c; c++) some |= counts(&options[i], *c);
            for (const hn_command *const *c = hn_command_lab.subs; *c; c++) some |= counts(&options[i], *c);
            if (!some) fail_msg("--%s is an option of no command", options[i].has);
        }
    static const struct {
        const hn_command *cmd;
        const char *word, *says;
    } of[] = { { &hn_command_train, "--batch-size", "--batch N" },
               { &hn_command_train, "--max-seq-length", "--seq N" },
               { &hn_command_train, "--warmup-ratio", "--warmup N" },
               { &hn_command_chat, "-r", "hone run: --stop" },
               { &hn_command_serve, "--max-tokens", "requests say" },
               { &hn_command_serve, "--max-model-len", "-c N" },
               { &hn_command_serve, "--served-model-name", "-m NAME=" },
               { &hn_command_serve, "--gpu-memory-utilization", "--kv-memory" },
               { &hn_command_serve, "--max-num-seqs", "--parallel N" },
               { &hn_command_convert, "--outfile", "-o FILE" },
               { &hn_command_convert, "--outtype", "--type" },
               { &hn_command_list, "--format", "--json" } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *say = hn_foreign_option(of[i].cmd, of[i].word);
        if (!say || !strstr(say, of[i].says)) fail_msg("%s: %s", of[i].word, say ? say : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_foreign),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
