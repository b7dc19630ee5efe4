/* registry: the backends that are built in. Only registry.c and they include it. */
#ifndef HN_REGISTRY_H
#define HN_REGISTRY_H

#include "backend/backend.h"

hn_backend_open_fn hn_backend_cpu_open; /* cpu.c */

#endif
