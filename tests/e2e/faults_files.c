/* faults_files: the files of a folder, read into memory and put back. Refuses to know why. */
#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void give_up(const char *what)
{
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void *must(void *p)
{
    if (!p) give_up("memory");
    return p;
}

blob blob_of(const char *path)
{
    blob b = { must(calloc(1, 1)), 0 };
    FILE *f = fopen(path, "rb");
    char piece[65536];
    size_t k;
    while (f && (k = fread(piece, 1, sizeof piece, f)) > 0) {
        b.p = must(realloc(b.p, b.n + k + 1));
        memcpy(b.p + b.n, piece, k);
        b.n += k;
        b.p[b.n] = 0;
    }
    if (f) fclose(f);
    return b;
}

blob blob_copy(const blob *b)
{
    blob c = { must(malloc(b->n + 1)), b->n };
    memcpy(c.p, b->p, b->n + 1);
    return c;
}

static void gather(files *f, const char *folder, const char *below)
{
    char path[8400];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    DIR *d = opendir(path);
    struct dirent *e;
    if (!d) give_up(path);
    while ((e = readdir(d))) {
        struct stat sb;
        char name[4200];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s%s", below, e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (lstat(path, &sb) != 0) continue;
        bool is_folder = S_ISDIR(sb.st_mode);
        if (is_folder) strcat(name, "/");
        f->file = must(realloc(f->file, (f->n + 1) * sizeof *f->file));
        f->file[f->n++] = (file){ must(strdup(name)), is_folder ? (blob){ must(calloc(1, 1)), 0 } : blob_of(path) };
        if (is_folder) gather(f, folder, f->file[f->n - 1].path);
    }
    closedir(d);
}

files files_of(const char *folder)
{
    files f = { 0 };
    gather(&f, folder, "");
    return f;
}

const file *files_find(const files *f, const char *path)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->file[i].path, path) == 0) return &f->file[i];
    return NULL;
}

void files_free(files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->file[i].path);
        free(f->file[i].content.p);
    }
    free(f->file);
    *f = (files){ 0 };
}

void files_make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) give_up(path);
}

void files_restore(const files *f, const char *folder)
{
    files now = files_of(folder);
    char path[8400];
    for (size_t i = now.n; i-- > 0;) { /* what is in a folder stands behind it */
        snprintf(path, sizeof path, "%s/%s", folder, now.file[i].path);
        if (!files_find(f, now.file[i].path) && remove(path) != 0) give_up(path);
    }
    for (size_t i = 0; i < f->n; i++) {
        const file *want = &f->file[i], *is = files_find(&now, want->path);
        snprintf(path, sizeof path, "%s/%s", folder, want->path);
        if (is && is->content.n == want->content.n && memcmp(is->content.p, want->content.p, is->content.n) == 0)
            continue;
        if (path[strlen(path) - 1] == '/') {
            files_make_folder(path);
            continue;
        }
        remove(path); /* another inode: whoever still has the old one must not see the new */
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(want->content.p, 1, want->content.n, out) != want->content.n || fclose(out) != 0)
            give_up(path);
    }
    files_free(&now);
}
