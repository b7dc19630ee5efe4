/* The products of few columns of the AVX_VNNI level, from rows as in the file. */
#if defined(__x86_64__)

#include "kernels/avx_vnni.h"

#define NAME_ROWS(TYPE) HN_VNNI(rows_##TYPE)
#define NAME_PANEL(TYPE) HN_VNNI(panel_##TYPE)
/* near the least of AVX2's, whose panels have the dearer tiles; not measured */
#define PANEL_FROM(n) 5
#include "kernels/avx2_rows.h"

#else
typedef int hn_no_avx_vnni_rows; /* an empty file is not C */
#endif
