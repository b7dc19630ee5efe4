/* call_grammar: what calls may be, as a grammar made of the format's record and of the schemas of the tools. */
#include "text/calls.h"

hone_status hn_call_kit_grammars(hn_call_kit *k, bool one, hone_error *err)
{
    (void)k, (void)one, (void)err;
    return HONE_OK;
}
