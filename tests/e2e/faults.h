/* faults.h: what the parts of faults share: files of a folder as they are, and a run with one failure in it.
 * faults.c judges, faults_trace.c injects, faults_files.c reads and restores folders. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- folders (faults_files.c); whatever fails here ends the program ------------------------------- */

typedef struct blob {
    char *p;
    size_t n;
} blob;                         /* NUL-terminated beyond n */
blob blob_of(const char *path); /* of nothing, where there is no file */
blob blob_copy(const blob *b);

typedef struct file {
    char *path;
    blob content;
} file; /* path below the folder; a folder ends in / */
typedef struct files {
    file *file;
    size_t n;
} files;
files files_of(const char *folder);
const file *files_find(const files *f, const char *path);
void files_free(files *f);
void files_make_folder(const char *path);
void files_restore(const files *f, const char *folder); /* makes the folder hold f and nothing else */

/* ---- failures (faults_trace.c) --------------------------------------------------------------------- */

typedef enum call_class {
    CALL_NONE,
    CALL_WRITE,
    CALL_READ,
    CALL_FSYNC,
    CALL_RENAME,
    CALL_CLOSE,
    CALL_OPEN,
    CALL_MMAP,
    CALL_TRUNCATE,
    CALL_LINK,
    CALL_STAT,
    CALL_FOLDER,
    CALL_MODE,
    CALL_CLASSES
} call_class;

typedef struct fault_kind {
    const char *name;
    call_class class;
    int error;     /* errno; 0: the call is done for half its bytes */
    bool done_too; /* the call is done, and fails afterwards: as close, whose descriptor is gone */
    bool sampled;  /* in the suite, too */
} fault_kind;
extern const fault_kind fault_kinds[]; /* ends with name NULL */

/* Where allocations are made: faults_alloc.c says what a site is. */
typedef struct alloc_site {
    char id[20];
    long hits;
} alloc_site;

typedef struct injection {
    const fault_kind *kind;    /* NULL: none */
    long k;                    /* the k-th call of the kind, the k-th allocation of the site; from 1 */
    bool count_only, to_full;  /* to_full: standard output is /dev/full */
    const char *alloc_library; /* preloaded when not NULL */
    const alloc_site *site;
    const char *stdin_path, *out_path, *err_path, *alloc_path;
    bool struck;                /* out: it happened */
    long n_calls[CALL_CLASSES]; /* out: how many there were */
    blob told;                  /* out: what the library had to say; the caller's */
} injection;

typedef struct finish {
    int code, signal;
    bool hung;
} finish;

bool can_inject(void);
/* Runs argv in the folder work. Calls count from the beginning of main, where they are about files below work or
 * inputs, standard input or output, or memory. */
finish run_injected(char *const *argv, const char *work, const char *inputs, injection *in);

#endif
