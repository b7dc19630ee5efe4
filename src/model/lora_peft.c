/* lora_peft: adapters as PEFT folders. */
#include "model/lora.h"

hone_status hn_lora_read_peft(hn_lora **out, const hone_model *m, const char *folder, hone_error *err)
{
    *out = NULL;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: is a folder", folder);
}
