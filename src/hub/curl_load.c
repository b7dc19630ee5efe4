/* curl_load: finds libcurl on this machine. A program linked with it would load some twenty libraries of the system at
 * every start, of every command. */
#include "hub/curl_load.h"

#ifdef HN_WITH_CURL
#include <dlfcn.h>

const hn_curl *hn_curl_load(const char **why)
{
    static hn_curl calls;
    static bool there;
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib", "libcurl.so" };
    *why = "";
    if (there) return &calls;
    void *lib = NULL;
    for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    *why = "libcurl is not on this machine (libcurl.so.4): hone downloads with it; on Debian and its relatives "
           "'apt install libcurl4' brings it";
    if (!lib) return NULL;
    *why = "the libcurl of this machine is too old: expected 7.66 or newer";
#define HN_CURL_FIND(name)                             \
    *(void **)&calls.name = dlsym(lib, "curl_" #name); \
    if (!calls.name) {                                 \
        dlclose(lib);                                  \
        return NULL;                                   \
    }
    HN_CURL_CALLS(HN_CURL_FIND)
#undef HN_CURL_FIND
    *why = "libcurl cannot be started";
    if (calls.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return NULL;
    there = true;
    *why = "";
    return &calls;
}
#endif
