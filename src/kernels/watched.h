/* watched: what kernels tell ThreadSanitizer. Owns the watched tables of a build under it; refuses to exist elsewhere.
 *
 * Instrumented kernels take twenty times as long, and each of their accesses is one of a row that they were given. So
 * the files of the levels are not instrumented (Makefile), and an entry of a table says which rows it reads and writes
 * before it does: two threads at a row are seen as they would be otherwise. tests/unit/test_backend_watched.c has two
 * threads use each entry on the same row. */
#ifndef HN_WATCHED_H
#define HN_WATCHED_H

#include "base/guard.h"
#include "kernels/kernels.h"

#if HN_TSAN
/* Every table's entries are replaced by those that tell. */
void hn_kernels_watch(hn_kernels tables[HN_CPU_LEVELS]);
#endif

#endif
