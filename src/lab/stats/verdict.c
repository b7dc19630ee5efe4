/* The verdict on a result: the first reason against it stays. */
#include "lab/stats/verdict.h"

#include <stdarg.h>

void hn_invalid(hn_verdict *v, const char *fmt, ...)
{
    if (v->state == HN_INVALID) return;
    v->state = HN_INVALID;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->reason, sizeof v->reason, fmt, ap);
    va_end(ap);
}
