/* hone lab quality: is it still the same model? Divergence of logits, hash, perplexity,
 * likeness of answers. */
#include "cli/quality.h"

#include <math.h>
#include <stdlib.h>

extern const hn_command hn_command_lab_quality_ppl, hn_command_lab_quality_kl;
static const hn_command *const subs[] = { &hn_command_lab_quality_kl, &hn_command_lab_quality_ppl, NULL };

static int run(const hn_cli *cli) { return hn_cli_usage(cli, "what to compare is missing: ppl"); }

const hn_command hn_command_lab_quality = {
    .name = "lab quality", .summary = "Say whether it is still the same model, and by how much not", .args = "COMMAND", .subs = subs,
    .examples = "hone lab quality ppl -m model.gguf\n", .run = run,
};
