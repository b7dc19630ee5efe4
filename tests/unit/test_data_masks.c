/* Which tokens of a conversation are answers, where a template writes what stands before an answer otherwise when more
 * follows, as published ones do: Mistral's a system text, Qwen3's thoughts, R1's system texts; and answers that nobody
 * should learn. */
#include "data_seen.h"

#define CONVERSATION(...) "{\"messages\": [" __VA_ARGS__ "]}\n"
#define SAYS(role, content) "{\"role\": \"" role "\", \"content\": \"" content "\"}"
#define S_QA SAYS("system", "sys") "," SAYS("user", "q") "," SAYS("assistant", "xy")
#define QA_QA SAYS("user", "q") "," SAYS("assistant", "xy") "," SAYS("user", "r") "," SAYS("assistant", "cd")

static void learns(const char *what, const char *template_, const char *record, hn_mask mask, const char *want)
{
    hone_model *m = df_model("m.gguf", template_, false);
    const char *path = df_write("d.jsonl", record, strlen(record));
    hn_dataset *d = READ(m, path, .mask = mask);
    const char *got = df_show(&d->sample[0]);
    if (d->n != 1 || strcmp(got, want) != 0) fail_msg("%s:\n  want %s\n  got  %s", what, want, got);
    hn_dataset_free(d);
    hone_model_close(m);
}

/* Mistral's: the system text stands before what the user says last, and nowhere where an answer is the last */
static const char late[] =
    "{% for m in messages %}{% if m.role == 'user' %}(I){% if loop.last and messages[0].role == 'system' %}"
    "{{ messages[0].content + ' ' }}{% endif %}{{ m.content }}(/I){% elif m.role == 'assistant' %}"
    "{{ m.content + eos_token }}{% endif %}{% endfor %}";

static void system_texts(void **state)
{
    learns("one turn", late, CONVERSATION(S_QA), HN_MASK_PROMPT, "(I)q(/I)[xy</s>]");
    learns("two", late, CONVERSATION(S_QA "," SAYS("user", "r") "," SAYS("assistant", "cd")), HN_MASK_PROMPT,
           "(I)q(/I)[xy</s>](I)r(/I)[cd</s>]");
    learns("the last", late, CONVERSATION(S_QA "," SAYS("user", "r") "," SAYS("assistant", "cd")), HN_MASK_LAST,
           "(I)q(/I)xy</s>(I)r(/I)[cd</s>]");
    learns("without any", late, CONVERSATION(QA_QA), HN_MASK_PROMPT, "(I)q(/I)[xy</s>](I)r(/I)[cd</s>]");
    /* R1's: all system texts in front, wherever they were */
    static const char front[] =
        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}"
        "{% for m in messages %}{% if m.role == 'user' %}{{ '(U)' + m.content }}{% elif m.role == 'assistant' %}"
        "{{ '(A)' + m.content + eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}(A){% endif %}";
    learns("in front", front,
           CONVERSATION(SAYS("user", "q") "," SAYS("assistant", "xy") "," SAYS("system", "late") "," SAYS(
               "user", "r") "," SAYS("assistant", "cd")),
           HN_MASK_PROMPT, "late(U)q(A)[xy</s>](U)r(A)[cd</s>]");
}

/* Qwen3's: thoughts behind the last question alone */
static const char thinks[] =
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.index0 > ns.last %}{{ '<t>' + (m.reasoning_content or '') + '</t>' }}{% "
    "endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static void thoughts(void **state)
{
#define THINKS(t, content) "{\"role\": \"assistant\", \"reasoning_content\": \"" t "\", \"content\": \"" content "\"}"
#define U(s) "<|im_start|>user\n" s "<|im_end|>\n"
#define A "<|im_start|>assistant\n"
    learns("one turn", thinks, CONVERSATION(SAYS("user", "q") "," THINKS("hm", "xy")), HN_MASK_PROMPT,
           U("q") A "[<t>hm</t>xy<|im_end|>]\n");
    learns("two", thinks,
           CONVERSATION(SAYS("user", "q") "," THINKS("hm", "xy") "," SAYS("user", "r") "," THINKS("oh", "cd")),
           HN_MASK_PROMPT, U("q") A "[xy<|im_end|>]\n" U("r") A "[<t>oh</t>cd<|im_end|>]\n");
    learns("two in a row, then a question", thinks,
           CONVERSATION(SAYS("user", "q") "," THINKS("hm", "xy") "," THINKS("oh", "cd") "," SAYS("user", "r") "," SAYS(
               "assistant", "ef")),
           HN_MASK_PROMPT, U("q") A "[xy<|im_end|>]\n" A "[cd<|im_end|>]\n" U("r") A "[<t></t>ef<|im_end|>]\n");
}

static void ends_of_a_conversation(void **state)
{
    static const char system_[] =
        "{% if messages[0].role != 'user' %}<|im_start|>system\nme<|im_end|>\n{% endif %}{% for m in messages %}"
        "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{% if messages|length == 0 %}"
        "{{ raise_exception('none') }}{% endif %}";
    learns("it begins with an answer", system_, CONVERSATION(SAYS("assistant", "hi") "," QA_QA), HN_MASK_PROMPT,
           "<|im_start|>system\nme<|im_end|>\n" A "[hi<|im_end|>]\n" U("q") A "[xy<|im_end|>]\n" U("r") A
           "[cd<|im_end|>]\n");
    /* turns end with text, all of it with the token */
    static const char once[] = "{% for m in messages %}{{ '(' + m.role + ')' + m.content + '|' }}{% endfor %}"
                               "{% if add_generation_prompt %}(assistant){% else %}{{ eos_token }}{% endif %}";
    learns("it ends with a question", once,
           CONVERSATION(SAYS("user", "q") "," SAYS("assistant", "xy") "," SAYS("user", "r")), HN_MASK_PROMPT,
           "(user)q|(assistant)[xy|](user)r|</s>");
    learns("an answer that the template leaves out",
           "{% for m in messages %}{% if not (m.role == 'assistant' and loop.index0 == 1) %}"
           "{{ '(' + m.role + ')' + m.content + eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt "
           "%}(assistant){% endif %}",
           CONVERSATION(QA_QA), HN_MASK_PROMPT, "(user)q</s>(user)r</s>(assistant)[cd</s>]");
}

static void left_out(void **state)
{
    static const char chatml[] =
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    learns("train: false", chatml,
           CONVERSATION(SAYS("user", "q") ",{\"role\": \"assistant\", \"content\": \"xy\", \"train\": false}," SAYS(
               "user", "r") "," SAYS("assistant", "cd")),
           HN_MASK_PROMPT, U("q") A "xy<|im_end|>\n" U("r") A "[cd<|im_end|>]\n");
    hone_model *m = df_model("c.gguf", chatml, false);
    hn_dataset *d = READ(
        m,
        DF_FILE("kto.jsonl",
                "{\"messages\": [" SAYS("user", "q") "," SAYS(
                    "assistant",
                    "bad") "], \"label\": false}\n"
                           "{\"instruction\": \"q\", \"input\": \"\", \"output\": \"bad\", \"kto_tag\": false}\n"
                           "{\"messages\": [" SAYS("user", "q") "," SAYS("assistant", "xy") "], \"label\": true}\n"),
        .mask = HN_MASK_PROMPT);
    IS(d, U("q") A "[xy<|im_end|>]\n");
    assert_int_equal(d->stats.n_rejected, 2);
    hn_dataset_free(d);
    d = READ(m, DF_FILE("input.jsonl", "{\"instruction\": \"\", \"input\": \"q\", \"output\": \"xy\"}\n"),
             .mask = HN_MASK_PROMPT);
    IS(d, U("q") A "[xy<|im_end|>]\n");
    hn_dataset_free(d);
    REFUSED(m, DF_FILE("none.jsonl", "{\"instruction\": \"\", \"input\": \"\", \"output\": \"xy\"}\n"),
            "none.jsonl:1: \"instruction\" is empty");
    d = READ(m, DF_FILE("label.jsonl", "{\"text\": \"xy\", \"label\": false}\n"), .mask = HN_MASK_PROMPT);
    IS(d, "x[y</s>]");
    hn_dataset_free(d);
    REFUSED(m,
            DF_FILE("dpo.jsonl", "{\"messages\": [" QA_QA "," SAYS("user", "s") "], \"chosen\": " SAYS(
                                     "assistant", "ef") ", \"rejected\": " SAYS("assistant", "gh") "}\n"),
            "dpo.jsonl:1: \"chosen\" and \"rejected\"");
    d = READ(m,
             DF_FILE("whole.jsonl", "{\"messages\": [" SAYS("user", "q") "," SAYS(
                                        "assistant", "xy") "], \"chosen\": [], \"rejected\": []}\n"),
             .mask = HN_MASK_PROMPT);
    IS(d, U("q") A "[xy<|im_end|>]\n");
    hn_dataset_free(d);
    hone_model_close(m);
}

/* A link of a hub's cache to a file that was removed is not half of the data, silently. */
static void dangling_links(void **state)
{
    hone_model *m = df_model("l.gguf", NULL, false);
    assert_int_equal(mkdir(df_path("links"), 0700), 0);
    DF_FILE("links/0.jsonl", "{\"text\": \"xy\"}\n");
    assert_int_equal(symlink("nowhere", df_path("links/1.jsonl")), 0);
    refused(m, df_path("links"), (hn_data_params){ .seq = 100 }, HONE_E_IO, "links/1.jsonl: cannot open: No such file");
    assert_int_equal(unlink(df_path("links/1.jsonl")), 0);
    assert_int_equal(symlink("nowhere", df_path("links/note")), 0);
    hn_dataset *d = READ(m, df_path("links"), .seq = 100);
    assert_int_equal(d->n, 1);
    hn_dataset_free(d);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_texts), cmocka_unit_test(thoughts),       cmocka_unit_test(ends_of_a_conversation),
        cmocka_unit_test(left_out),     cmocka_unit_test(dangling_links),
    };
    return cmocka_run_group_tests(tests, df_begin, df_end);
}
