/* `hone help --words types|templates|targets`: what completion offers is exactly what the library takes. The program
 * sees the public API alone, so its lists are copies; here they are held against the tables that they copy. */
#include "cli/cli.h"
#include "quant/quant.h"
#include "text/chat.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const hn_opt_group *const hn_common_groups[] = { NULL }; /* in place of main.c, which is not linked here */
const hn_command *const hn_commands[] = { NULL };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_targets),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
