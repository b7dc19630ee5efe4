/* What rows cost, learned from what they took. */
#include "base/pace.h"

bool hn_is_disturbed(bool *late, double ns, double expected)
{
    bool was = *late;
    *late = ns > 2 * expected;
    return *late && !was;
}

void hn_cost_learn(hn_cost *c, double each, double weight, bool guess)
{
    bool first = c->ns == 0;
    if (!first && hn_is_disturbed(&c->late, each, c->ns)) return;
    if (first || (c->guessed && each < c->ns)) {
        c->guessed = first || guess;
        c->ns = each;
    } else if (each > c->ns) {
        each = c->ns + weight * (each - c->ns);
        c->ns = each < 2 * c->ns ? each : 2 * c->ns;
    } else {
        c->ns -= weight / 2 * (c->ns - each);
    }
}

double hn_time_beside(double alone_ns) { return 2 * alone_ns > HN_STEP_NS ? alone_ns : HN_STEP_NS - alone_ns; }

int32_t hn_rows_beside(const hn_cost *c, double left_ns, int32_t fixed, int32_t most)
{
    double n = fixed ? fixed : HN_LEAST_PREFILL;
    if (!fixed && c->ns > 0 && left_ns / c->ns > n) n = left_ns / c->ns;
    return n < most ? (int32_t)n : most;
}
