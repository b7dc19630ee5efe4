/* hone lab quality: is it still the same model, and if not, by how much? Each answer is a
 * command in a file of its own. */
#include "cli/cli.h"

extern const hn_command hn_command_lab_quality_hash, hn_command_lab_quality_kl, hn_command_lab_quality_ppl,
    hn_command_lab_quality_similar;
static const hn_command *const subs[] = { &hn_command_lab_quality_hash, &hn_command_lab_quality_kl,
                                          &hn_command_lab_quality_ppl, &hn_command_lab_quality_similar, NULL };

static int run(const hn_cli *cli)
{
    return hn_cli_usage(cli, "what to look at is missing; expected hash, kl, ppl or similar");
}

const hn_command hn_command_lab_quality = {
    .name = "lab quality",
    .summary = "Say whether it is still the same model, and by how much not",
    .args = "COMMAND",
    .subs = subs,
    .examples = "hone lab quality hash -m model.gguf\nhone lab quality kl reference.gguf model.gguf\n",
    .run = run,
};
