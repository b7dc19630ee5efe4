/* numbers: what no prompt reaches, the same for every model: angles of positions far beyond any text, numbers as bytes
 * of each type and back. A hash of their bits, which two builds compare as a part of what stands around the engine. */
#ifndef HN_NUMBERS_H
#define HN_NUMBERS_H

#include "base/base.h"

/* *h goes on by all of them. HONE_E_NOMEM. */
hone_status hn_numbers_hash(uint64_t *h, hone_error *err);

#endif
