/* clock: the one clock of all measurements, and the date. */
#ifndef HN_CLOCK_H
#define HN_CLOCK_H

#include "base/base.h"

uint64_t hn_clock_ns(void); /* CLOCK_MONOTONIC_RAW: the same in every process of this machine */
/* Another clock in its place, for tests that must not depend on how fast a machine is; it has to advance from one
 * reading to the next. NULL: the machine's again. Not while another thread measures. */
void hn_clock_set(uint64_t (*now)(void));

/* A second clock, of the kernel and by another way: what one clock claims, the other has seen. They run at the same
 * rate within 0.05 %, from different beginnings. */
uint64_t hn_clock_witness_ns(void);

void hn_utc_now(char *dst, size_t cap); /* 2025-01-31T12:34:56Z */

#endif
