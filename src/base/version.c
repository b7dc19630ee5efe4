/* Which hone this is and how it was built. Owns the two strings; the build passes
 * compiler, flags and commit to this file alone, so that a commit rebuilds nothing else. */
#include "base/base.h"

#ifndef HN_BUILD_INFO
#define HN_BUILD_INFO "built without hone's Makefile"
#endif

const char *hone_version(void) { return HONE_VERSION; }
const char *hone_build_info(void) { return HN_BUILD_INFO; }
