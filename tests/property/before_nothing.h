/* before_nothing: memory that ends where nothing is readable, for tests of what reads too far. */
#ifndef BEFORE_NOTHING_H
#define BEFORE_NOTHING_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* n bytes whose last one is the last of a page, with nothing readable behind it: as the last tensor of a mapped file.
 * The same room every time. */
static unsigned char *before_nothing(size_t n)
{
    static unsigned char *room;
    static size_t bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), need = (n + page - 1) / page * page;
    if (need > bytes) {
        if (room) munmap(room, bytes + page);
        bytes = need;
        room = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED || mprotect(room + bytes, page, PROT_NONE) != 0) abort();
    }
    return room + bytes - n;
}

#endif
