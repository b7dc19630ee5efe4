/* What instructions.c (the work) and count_instructions.c (the counter) agree on. */
#ifndef HN_COUNT_INSTRUCTIONS_H
#define HN_COUNT_INSTRUCTIONS_H

enum { HN_MARK_BEGIN = 0x7ff01, HN_MARK_END };

#endif
