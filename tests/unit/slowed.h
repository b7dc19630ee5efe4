/* slowed: does a sanitizer slow this program down? What it computes is the same without one, where all of it is looked
 * at: tests that repeat much of the same, or wait for laws of large numbers, then repeat less. */
#ifndef HN_TEST_SLOWED_H
#define HN_TEST_SLOWED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWED = 1 };
#else
enum { SLOWED = 0 };
#endif

#endif
