/* Fuzz target: command lines. The input is a byte that says which command, then its words with a byte 0 behind each.
 * A line that is accepted answers every question about its options; one that is not is told why in one line. Also the
 * numbers and lists of ids within words.
 * covers: src/base/options.c */
#include "cli/cli.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const hn_command hn_command_run, hn_command_chat, hn_command_bench, hn_command_perplexity, hn_command_train,
    hn_command_convert, hn_command_pack, hn_command_tokenize, hn_command_lab_ab, hn_command_lab_gate,
    hn_command_lab_report, hn_command_merge;

static const hn_opt common_opts[] = {
    HN_OPT("json", NULL, FLAG, NULL, "print one JSON object"),
    HN_OPT("verbose", "-v", FLAG, NULL, "say more"),
    HN_OPT("help", "-h", FLAG, NULL, "explain this command"),
    HN_OPT_END,
};
static const hn_opt_group common_group = { "Common", common_opts };
const hn_opt_group *const hn_common_groups[] = { &common_group,
                                                 NULL }; /* in place of main.c, which is not linked here */
const hn_command *const hn_commands[] = { &hn_command_run, NULL };

static void ask(const hn_opts *o, const hn_opt *t)
{
    for (; t && t->name; t++) {
        FF_MUST(hn_opts_has(o, t->name));
        hn_opts_given(o, t->name);
        size_t n = hn_opts_count(o, t->name);
        for (size_t i = 0; i < n; i++) FF_MUST(hn_opts_nth(o, t->name, i) || t->kind == HN_OPT_FLAG);
        switch (t->kind) {
        case HN_OPT_FLAG: hn_opts_flag(o, t->name); break;
        case HN_OPT_I32: hn_opts_i32(o, t->name); break;
        case HN_OPT_U64: hn_opts_u64(o, t->name); break;
        case HN_OPT_F32: hn_opts_f32(o, t->name); break;
        default: hn_opts_str(o, t->name);
        }
    }
}

/* What is handed to another process is taken there, and says the same again. */
static void hand_on(const hn_opts *o, const hn_command *c)
{
    hn_argv all = { 0 }, again = { 0 };
    hn_opts *other = NULL;
    hone_error e = { 0 };
    const char *was, *is;
    size_t at = 0;
    while (hn_opts_overruled(o, &at, &was, &is)) FF_MUST(strcmp(was, is) != 0);
    const char *name, *spelled;
    for (at = 0; (name = hn_opts_next(o, &at, &spelled));) FF_MUST(hn_opts_given(o, name) && spelled);
    hn_opts_forward(o, ~0u, false, &all);
    FF_MUST(hn_opts_parse(&other, c, hn_common_groups, (int)all.n, all.word, &e) == HONE_OK);
    hn_opts_forward(other, ~0u, false, &again);
    FF_MUST(all.n == again.n);
    for (size_t i = 0; i < all.n; i++) FF_MUST(!strcmp(all.word[i], again.word[i]));
    hn_opts_free(other);
    hn_argv_free(&all);
    hn_argv_free(&again);
}

static void numbers(const char *s, size_t n)
{
    hone_error e = { 0 };
    int64_t i;
    float f;
    int32_t *ids = NULL;
    size_t n_ids;
    if (hn_parse_i64(&i, s, -5, 1 << 20, "number", &e) == HONE_OK) FF_MUST(i >= -5 && i <= 1 << 20);
    if (hn_parse_f32(&f, s, 0, 2, "number", &e) == HONE_OK) FF_MUST(f >= 0 && f <= 2);
    if (hn_parse_ids(&ids, &n_ids, s, n, "ids", &e) == HONE_OK) {
        FF_MUST(n_ids >= 1);
        for (size_t k = 0; k < n_ids; k++) FF_MUST(ids[k] >= 0);
    } else {
        FF_MUST(e.message[0]);
    }
    free(ids);
    static const char *const words[] = { "threads", NULL, "chunk", "top-k", "" };
    hn_nearest(s, words, 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const hn_command *const commands[] = {
        &hn_command_run,    &hn_command_chat,     &hn_command_bench,      &hn_command_perplexity,
        &hn_command_train,  &hn_command_convert,  &hn_command_pack,       &hn_command_tokenize,
        &hn_command_lab_ab, &hn_command_lab_gate, &hn_command_lab_report, &hn_command_merge,
    };
    enum { MAX_WORDS = 40 };
    char *argv[MAX_WORDS + 1];
    int argc = 0;
    ff_in in = { data, size };
    const hn_command *c = commands[ff_u8(&in) % (sizeof commands / sizeof *commands)];
    while (in.n && argc < MAX_WORDS) {
        ff_in w = ff_until(&in, 0);
        argv[argc] = malloc(w.n + 1); /* each its own block, so that ASan sees the end */
        FF_MUST(argv[argc]);
        memcpy(argv[argc], w.p, w.n);
        argv[argc][w.n] = 0;
        numbers(argv[argc], w.n);
        argc++;
    }
    argv[argc] = NULL;
    hn_opts *o = NULL;
    hone_error e = { 0 };
    hone_status st = hn_opts_parse(&o, c, hn_common_groups, argc, argv, &e);
    FF_MUST((st == HONE_OK) == (o != NULL) && (o || (e.message[0] && !strchr(e.message, '\n'))));
    if (o) {
        st = hn_opts_check_args(o, c, &e);
        FF_MUST(st == HONE_OK || e.message[0]);
        for (const hn_opt_group *const *g = c->groups; g && *g; g++) ask(o, (*g)->opts);
        ask(o, common_opts);
        hand_on(o, c);
        for (int i = 0; i < hn_opts_n_args(o); i++) FF_MUST(hn_opts_arg(o, i));
        FF_MUST(!hn_opts_arg(o, hn_opts_n_args(o)));
    }
    hn_opts_free(o);
    while (argc > 0) free(argv[--argc]);
    return 0;
}
