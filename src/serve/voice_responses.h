/* voice_responses: between the body and the answer of /v1/responses. */
#ifndef HN_SERVE_VOICE_RESPONSES_H
#define HN_SERVE_VOICE_RESPONSES_H

#include "serve/ask.h"

typedef struct hn_response_own {
    const char *repeated; /* members of the answer that say again what was asked, parted by commas */
} hn_response_own;

bool hn_response_parse(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r);

#endif
