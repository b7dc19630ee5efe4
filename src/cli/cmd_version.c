/* hone version: which hone this is and how it was built. */
#include "cli/cli.h"
#include "lab/bench/asked.h"

static int run(const hn_cli *cli)
{
    if (!cli->json) {
        hn_out_printf("hone %s\n%s\n", hone_version(), hone_build_info());
        return HN_EXIT_OK;
    }
    json_t *o = hn_json_new("hone.version/1");
    json_object_set_new(o, "version", json_string(hone_version()));
    json_object_set_new(o, "build", json_string(hone_build_info()));
    json_object_set_new(o, "asked", json_integer(HN_ASKED_VERSION)); /* for who compares it with another program */
    return hn_json_print(o);
}

const hn_command hn_command_version = { .name = "version",
                                        .summary = "Show the version and how it was built",
                                        .run = run };
