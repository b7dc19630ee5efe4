/* must: a fuzz target stops where a promise is broken, and says which. */
#ifndef HN_FUZZ_MUST_H
#define HN_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define FF_MUST(x)                                                          \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                        \
        }                                                                   \
    } while (0)

#endif
