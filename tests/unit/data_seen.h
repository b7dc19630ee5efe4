/* Data read, and what of it is learnt: samples as text, [ before what is learnt and ] behind it. */
#ifndef HN_DATA_SEEN_H
#define HN_DATA_SEEN_H

#include "data_files.h"

static inline hn_dataset *read_with(const hone_model *m, const char *path, hn_data_params p)
{
    hn_dataset *d;
    hone_error e = { 0 };
    p.path = &path;
    p.n_path = 1;
    if (!p.seq) p.seq = 1000;
    if (hn_dataset_read(&d, m, &p, &e) != HONE_OK) fail_msg("%s", e.message);
    return d;
}
#define READ(m, path, ...) read_with(m, path, (hn_data_params){ __VA_ARGS__ })

static inline void is(const hn_dataset *d, int n, const char *const *want)
{
    assert_int_equal(d->n, n);
    assert_int_equal(d->stats.n_sample, n);
    for (int i = 0; i < n; i++) assert_string_equal(df_show(&d->sample[i]), want[i]);
}
#define IS(d, ...) \
    is(d, (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)), (const char *const[]){ __VA_ARGS__ })

static inline void refused(const hone_model *m, const char *path, hn_data_params p, hone_status want, const char *says)
{
    hn_dataset *d = (hn_dataset *)1;
    hone_error e = { 0 };
    p.path = &path;
    p.n_path = 1;
    if (!p.seq) p.seq = 1000;
    hone_status st = hn_dataset_read(&d, m, &p, &e);
    if (st != want || !strstr(e.message, says))
        fail_msg("%s: %s \"%s\", expected \"%s\"", path, hone_status_name(st), e.message, says);
    assert_null(d);
}
#define REFUSED(m, path, says, ...) refused(m, path, (hn_data_params){ __VA_ARGS__ }, HONE_E_FORMAT, says)

#endif
