/* hone logits: the numbers themselves, raw little-endian f32. The tool to compare
 * two builds, machines or settings with cmp. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

enum { PIECE_BYTES = 64 << 20 };

static const hn_opt output_opts[] = {
    HN_OPT("all", NULL, FLAG, NULL, "logits of every token, [n_tok, n_vocab]; else of the last, [n_vocab]"),
    HN_OPT("neighbours", NULL, I32, "N", "run N other sequences in the same batches; the output must not change",
           .def = "0", .min = 0, .max = 64),
    HN_OPT_END,
};
static const hn_opt_group output_group = { "Output", output_opts };
static const hn_opt_group *const groups[] = {
    &hn_group_model, &hn_group_lora, &hn_group_prompt, &output_group, &hn_group_context, &hn_group_compute, NULL
};

typedef struct job {
    const hn_cli *cli;
    hone_model *model;
    hone_model_info info;
    hone_context *ctx;
    hone_session *session;
    hn_prompt prompt;
    hone_token *batch;
    float *logits;
    int32_t n_seq, past;
    json_t *rows; /* --json */
} job;

static int write_rows(job *j, const float *x, int64_t n_row)
{
    int64_t n = n_row * j->info.n_vocab;
    if (j->cli->json) {
        for (int64_t r = 0; r < n_row; r++) {
            json_t *row = json_array();
            for (int32_t i = 0; i < j->info.n_vocab; i++, x++)
                json_array_append_new(row, isfinite(*x) ? json_real(*x) : json_null());
            json_array_append_new(j->rows, row);
        }
        return 0;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    hn_out_write(x, (size_t)n * sizeof *x);
#else
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        u = __builtin_bswap32(u);
        hn_out_write(&u, 4);
    }
#endif
    return hn_out_failed() ? HN_EXIT_FAILURE : 0;
}

/* Id of a neighbour's token: any will do as long as it differs from ours now and then. */
static int32_t other_id(const job *j, int32_t seq, int32_t pos)
{
    return (int32_t)(hn_rand64((uint64_t)seq, (uint64_t)pos) % (uint64_t)j->info.n_vocab);
}

/* A batch of our tokens [at, at+n) and, between them, as many of each neighbour. */
static int32_t fill_batch(job *j, int32_t at, int32_t n, bool all)
{
    int32_t k = 0;
    for (int32_t i = at; i < at + n; i++)
        for (int32_t seq = j->n_seq - 1; seq >= 0; seq--) /* neighbours first, ours last */
            j->batch[k++] = (hone_token){ .id = seq ? other_id(j, seq, i) : j->prompt.ids[i],
                                          .pos = (seq ? 0 : j->past) + i,
                                          .seq = seq,
                                          .want_logits = seq == 0 && (all || i + 1 == (int32_t)j->prompt.n) };
    return k;
}

static int decode_all(job *j)
{
    hone_error err;
    bool all = hn_opts_flag(j->cli->opts, "all");
    int32_t n_tok = (int32_t)j->prompt.n, piece = n_tok;
    int64_t row_bytes = (int64_t)j->info.n_vocab * (int64_t)sizeof(float);
    /* Without --all one call does everything; with it, as many rows at a time as fit
     * the buffer. That cuts chunks where no user asked, which changes no bit. */
    if (all && piece > PIECE_BYTES / row_bytes)
        piece = PIECE_BYTES > row_bytes ? (int32_t)(PIECE_BYTES / row_bytes) : 1;
    j->batch = malloc((size_t)piece * (size_t)j->n_seq * sizeof *j->batch);
    j->logits = malloc((size_t)(all ? piece : 1) * (size_t)row_bytes);
    if (!j->batch || !j->logits) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the logits of %d tokens", piece);
    for (int32_t at = 0; at < n_tok; at += piece) {
        int32_t n = n_tok - at < piece ? n_tok - at : piece;
        if (hone_run_batch(j->session, j->batch, fill_batch(j, at, n, all), j->logits, &err) != HONE_OK)
            return hn_cli_fail_numbers(j->cli, &err);
        if (all || at + n == n_tok) {
            int rc = write_rows(j, j->logits, all ? n : 1);
            if (rc) return rc;
        }
    }
    return 0;
}

static int open_session(job *j)
{
    const char *state = hn_opts_str(j->cli->opts, "state-in");
    int rc = hn_cli_open_session(j->cli, j->ctx, j->model, j->prompt.n, 0, j->n_seq, &j->session);
    if (rc) return rc;
    j->past = hone_seq_length(j->session, 0);
    for (int32_t seq = 1; seq < j->n_seq; seq++)
        if (hone_seq_length(j->session, seq) != 0)
            return hn_cli_error(
                HN_EXIT_USAGE, "--neighbours: %s holds %d positions of sequence %d; expected a state with one sequence",
                HN_ESC(state, strlen(state)), hone_seq_length(j->session, seq), seq);
    return 0;
}

static int print_json(job *j)
{
    json_t *o = hn_json_new("hone.logits/1");
    json_object_set_new(o, "prompt_tokens", hn_json_ids(j->prompt.ids, j->prompt.n));
    json_object_set_new(o, "n_vocab", json_integer(j->info.n_vocab));
    json_object_set(o, "logits", j->rows);
    return hn_json_print(o);
}

static int run_job(job *j)
{
    int rc;
    hone_error err;
    const char *state = hn_opts_str(j->cli->opts, "state-out");
    j->n_seq = 1 + hn_opts_i32(j->cli->opts, "neighbours");
    if (j->n_seq > 1 && state)
        return hn_cli_usage(j->cli, "--neighbours and --state-out contradict each other; give one of them");
    if (!j->cli->json && hn_out_is_tty())
        return hn_cli_usage(j->cli, "the logits are raw numbers, but standard output is a terminal; "
                                    "redirect it to a file, or give --json");
    if (j->cli->json && !(j->rows = json_array())) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the output");
    if ((rc = hn_cli_new_context(j->cli, &j->ctx)) || (rc = hn_cli_open_model(j->cli, false, &j->model))) return rc;
    hone_model_get_info(j->model, &j->info);
    if ((rc = hn_cli_prompt(j->cli, j->model, &j->prompt))) return rc;
    if ((rc = open_session(j)) || (rc = decode_all(j))) return rc;
    if (j->cli->json && (rc = print_json(j))) return rc;
    if (!hn_out_flush()) return HN_EXIT_FAILURE;
    if (state && (hn_cli_know(j->model, &err) != HONE_OK || hone_session_save(j->session, state, &err) != HONE_OK))
        return hn_cli_fail(&err);
    return 0;
}

static int run(const hn_cli *cli)
{
    job j = { .cli = cli };
    int rc = run_job(&j);
    json_decref(j.rows);
    free(j.batch);
    free(j.logits);
    hn_prompt_free(&j.prompt);
    hone_session_free(j.session);
    hone_context_free(j.ctx);
    hone_model_close(j.model);
    return rc;
}

const hn_command hn_command_logits = {
    .name = "logits",
    .summary = "Write the logits of a prompt as raw little-endian f32",
    .args = "[MODEL] [PROMPT]",
    .takes = "model prompt",
    .groups = groups,
    .examples = "hone logits -m model.gguf --ids 1,2,3 --all > logits.f32\n"
                "HONE_CPU=scalar hone logits -m model.gguf --ids 1,2,3 --all | cmp - logits.f32\n",
    .run = run,
};
