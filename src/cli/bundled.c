/* bundled: the model that comes with the program, for those who name none. Owns where it lies; refuses to know what it
 * can do (models/README.md). */
#include "base/os.h"
#include "cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* From the program's folder: as `make install MODEL=1` puts it, and in the tree it was built in. */
static const char *const places[] = { "../share/hone/hone-chat.gguf", "../../models/hone-chat.gguf" };

const char *hn_cli_bundled(void)
{
    static char path[PATH_MAX];
    char self[PATH_MAX], program[PATH_MAX], tried[PATH_MAX];
    if (!hn_os_program_path(self, sizeof self) || !realpath(self, program)) return NULL;
    char *slash = strrchr(program, '/');
    if (!slash) return NULL;
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(tried, sizeof tried, "%s/%s", program, places[i]);
        if (n > 0 && (size_t)n < sizeof tried && realpath(tried, path) && access(path, R_OK) == 0) return path;
    }
    return NULL;
}

int hn_cli_supply_model(const hn_cli *cli, hn_opts *opts)
{
    hone_error err;
    if (!cli->cmd->bundled || hn_opts_given(opts, "model")) return 0;
    if (hn_opts_has(opts, "models-dir") && (hn_opts_given(opts, "models-dir") || hn_opts_given(opts, "models-file")))
        return 0;
    if (hn_opts_has(opts, "chat") && !hn_opts_flag(opts, "chat")) return 0; /* it answers, and continues no text */
    const char *path = hn_cli_bundled();
    if (!path) return 0; /* the command asks for one */
    if (hn_opts_supply(opts, "model", path, &err) != HONE_OK) return hn_cli_fail(&err);
    hn_cli_note("the bundled model, %s; -m FILE takes another", HN_ESC(path, strlen(path)));
    return 0;
}
