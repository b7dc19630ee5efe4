/* asked: a plain sample whose prompt the process is not told before the clock of the one who asks runs. Who asks
 * (lab/judge/asker.c) starts `hone bench _asked … TIME` with both ends of a pipe and says, each time, a header and ids:
 *
 *     it says                  who asks says
 *     ready N_VOCAB            {n, HN_ASKED_FILL} ids [n]: what comes before the prompt, if anything does
 *     filled                   {n, n_gen} ids [n]: the prompt
 *     first ID                 nothing: the clock goes on
 *     last ID                  nothing, when n_gen > 1 was asked for: the last of n_gen ids
 *     {…}                      end of file
 *
 * The last line is JSON: what it proves of the answer, and with what settings it ran. No time of its own is in it. */
#ifndef HN_ASKED_H
#define HN_ASKED_H

#include "base/base.h"
#include "base/json_text.h"

enum { HN_ASKED_VERSION = 1 }; /* of the words above; `hone version --json` tells it */
enum { HN_ASKED_FILL = -1 };
typedef struct hn_asked_head {
    int32_t n, n_gen; /* ids that follow; how many are wanted, or HN_ASKED_FILL */
} hn_asked_head;

/* Answers what is read from `in`, on `out`, both file descriptors, with a fresh session that has room for it. *result:
 * what is to be said last, without the settings. HONE_E_FORMAT: what it reads is no question. */
hone_status hn_asked_answer(json_t **result, hone_session *s, const hone_model *m, int in, int out, hone_error *err);

#endif
