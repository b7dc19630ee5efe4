/* watched: what kernels tell a sanitizer. Owns the watched tables of a build under ThreadSanitizer or AddressSanitizer;
 * refuses to exist elsewhere.
 *
 * Instrumented kernels take up to twenty times as long, and each access of theirs is one of a row that they were given.
 * So the files of the levels are not instrumented (Makefile), and an entry of a table says which rows it reads and
 * writes before it does: two threads at a row, or a row that is not whole there, are seen as they would be otherwise.
 * What a kernel does beside its rows is seen by the property tests of kernels, which have them instrumented under
 * AddressSanitizer. tests/unit/test_backend_watched.c has each entry do what must be seen. */
#ifndef HN_WATCHED_H
#define HN_WATCHED_H

#include "base/guard.h"
#include "kernels/kernels.h"

#if HN_WATCHED
/* Every table's entries are replaced by those that tell. */
void hn_kernels_watch(hn_kernels tables[HN_CPU_LEVELS]);
#endif

#endif
