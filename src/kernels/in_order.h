/* in_order: how kernels load weights: in the order of their addresses, whatever the compiler thinks. The core's
 * prefetchers follow an ascending stream, and lose one whose lines are touched in another order (half the rate;
 * measured: docs/LAB.md). Such loads are assembly, into which a sanitizer does not look: under one they are plain. */
#ifndef HN_IN_ORDER_H
#define HN_IN_ORDER_H

#ifdef __has_feature
#define HN_SEES_LOADS __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HN_SEES_LOADS 1
#else
#define HN_SEES_LOADS 0
#endif

/* Asks for the line of p, in that order, too: computing leaves the core too few loads in flight to read at memory's
 * rate. Nothing is asked for where there is no memory. */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) void fetch_line(const char *p)
{
    __asm__ volatile("prefetcht0 %0" : : "m"(*p)); /* an address: nothing is read, wherever it points */
}
#endif

#endif
