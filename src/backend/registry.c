/* Which backends there are: those that are built in, and those that a process adds. Refuses to know what they do. */
#include "backend/registry.h"

#ifdef HN_KERNELS_H
#error "backend.h includes kernels.h: the seam is for every device"
#endif

#include <pthread.h>

enum { MAX_BACKENDS = 16 };

static struct {
    const char *name;
    hn_backend_open_fn *open;
} known[MAX_BACKENDS] = { { "cpu", hn_backend_cpu_open } }; /* guarded by mu */
static int n_known = 1;                                     /* guarded by mu */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

/* Where a name is, or n_known. */
static int find(const char *name)
{
    int i = 0;
    while (i < n_known && strcmp(known[i].name, name)) i++;
    return i;
}

bool hn_backend_register(const char *name, hn_backend_open_fn *open)
{
    pthread_mutex_lock(&mu);
    int i = find(name);
    bool room = i < MAX_BACKENDS;
    if (room) {
        known[i].name = name;
        known[i].open = open;
        n_known += i == n_known;
    }
    pthread_mutex_unlock(&mu);
    return room;
}

hone_status hn_backend_open(hn_backend **out, const char *name, const hn_backend_params *p, hone_error *err)
{
    char list[256] = "";
    size_t n = 0;
    hn_backend_open_fn *open = NULL;
    *out = NULL;
    pthread_mutex_lock(&mu);
    int i = name ? find(name) : 0;
    if (i < n_known) open = known[i].open;
    for (int k = 0; !open && k < n_known && n < sizeof list; k++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", k ? ", " : "", known[k].name);
    pthread_mutex_unlock(&mu);
    if (open) return open(out, p, err);
    return HN_FAIL(err, HONE_E_ARG, "no backend \"%s\", expected one of: %s", HN_ESC(name, strlen(name)), list);
}
