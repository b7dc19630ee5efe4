/* curl_load: libcurl, loaded when it is needed. Owns the list of what hone calls of it; refuses to know for what. */
#ifndef HN_CURL_LOAD_H
#define HN_CURL_LOAD_H

#include "base/base.h"

#ifdef HN_WITH_CURL
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* clang-format off */
#define HN_CURL_CALLS(X) \
    X(global_init) X(version_info) X(easy_init) X(easy_setopt) X(easy_getinfo) \
    X(easy_cleanup) X(easy_strerror) X(multi_init) X(multi_add_handle) X(multi_remove_handle) \
    X(multi_perform) X(multi_poll) X(multi_info_read) X(multi_cleanup) X(multi_strerror) \
    X(slist_append) X(slist_free_all)
/* clang-format on */

typedef struct hn_curl {
#define HN_CURL_MEMBER(name) __typeof__(&curl_##name) name;
    HN_CURL_CALLS(HN_CURL_MEMBER)
#undef HN_CURL_MEMBER
} hn_curl;

/* NULL: *why says what is missing and how to get it. */
const hn_curl *hn_curl_load(const char **why);
#endif

#endif
