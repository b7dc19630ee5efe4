/* file: whole files as hone writes them, and whether two names are one file. Everything in hone that writes a
 * whole file does it through here: it appears under its name complete and on disk, or not at all. Knows
 * folders, links, permissions and signals; refuses to know what stands in a file.
 *
 * The bytes go to a temporary file in the same folder, named NAME.hone-tmp-XXXXXXXXXXXXXXXX with 80 random bits
 * and made by O_EXCL | O_NOFOLLOW, so that nobody can plant a link there and no two writers share one. Its writer
 * holds a lock (flock) on it until it has its right name: a temporary that can be locked was left by a killed
 * program, and the next writer of the same path removes it. Of writers of one path at one time the last wins,
 * and the file is always one of theirs, whole.
 *
 * A name that is a link is written through: the link stays, the file it leads to is replaced, in that file's
 * folder. Links to nothing, to a folder or in a circle are errors, and so are folders, devices, pipes and names of
 * open files (/dev/stdout, /dev/null): renaming would replace them. The permission bits of a replaced file are
 * kept, within those of hn_file_want.mode; where none is wanted its owner and group, too, as far as the system lets
 * us. Another hard link to it keeps the old content. */
#ifndef HN_FILE_H
#define HN_FILE_H

#include "base/base.h"

/* ---- writing a whole file ---------------------------------------------------------------------- */

typedef struct hn_file hn_file;

typedef struct hn_file_want {
    uint64_t n_bytes; /* of the finished file: room and file size limit are looked at first; 0: not known */
    uint32_t mode;    /* permission bits: all that a new file has, less the umask, and that one which is replaced may
                         keep; 0: 0666, and those it has */
} hn_file_want;

/* Opens a temporary beside what `path` names. want NULL: nothing is known. HONE_E_ARG: no name. HONE_E_IO: cannot
 * be written, or no room for it (names both numbers). On failure *out is NULL and nothing is left. */
hone_status hn_file_begin(hn_file **out, const char *path, const hn_file_want *want, hone_error *err);
/* The next n bytes; p NULL: zeros. Gathered, so that they reach the file in whole huge pages: read back, it lies
 * in memory in pieces as large as they were written. After a failure all that follows fails likewise. */
hone_status hn_file_put(hn_file *f, const void *p, uint64_t n, hone_error *err);
/* For what writes to a stream only: the caller writes, looks at ferror and closes it before hn_file_end. NULL and
 * errno. Not beside hn_file_put. */
FILE *hn_file_stream(hn_file *f);
/* n bytes at offset `at`, at once, from any thread. 0, or errno. One file is written by hn_file_put or by this. */
int hn_file_put_at(hn_file *f, uint64_t at, const void *p, size_t n);
int hn_file_get_at(hn_file *f, uint64_t at, void *p, size_t n); /* the same back; EIO where the file ends */
/* A failure of hn_file_put_at in words; HONE_E_IO. */
hone_status hn_file_failed(const hn_file *f, int error, hone_error *err);
/* Filled up with zeros to want.n_bytes, on disk, under its name. On failure nothing is left, and what was there
 * is untouched. Either way f is still the caller's to drop. */
hone_status hn_file_end(hn_file *f, hone_error *err);
/* Frees f; what was not ended is removed. NULL is accepted. */
void hn_file_drop(hn_file *f);

/* All of it at once; folders on the way to it are made. */
hone_status hn_file_replace(const char *path, const void *text, size_t n, hone_error *err);
/* One line (ending in \n) at the end of a file that grows, behind `header` (may be NULL) if it is empty; folders
 * are made. Locked against other writers and synced. A last line without end, left by a crash or a full disk, is closed
 * first. When the line does not fit, what was written of it is taken back. */
hone_status hn_file_append_line(const char *path, const char *header, const char *line, size_t n, hone_error *err);

/* Whether hn_file_begin would take the name: HONE_OK, or HONE_E_IO and why not. For before long work. */
hone_status hn_file_check(const char *path, hone_error *err);
hone_status hn_file_make_folders(const char *path, hone_error *err); /* those above path's last part */
void hn_file_sync_folder(const char *path); /* path's name lasts from now on; some file systems cannot */
/* Removes temporaries of killed writers from a folder, of whatever name. */
void hn_file_clean_folder(const char *folder);

/* Removes the temporaries that this process is writing. Async-signal-safe, for a handler of a signal that ends the
 * program: the library installs none. */
void hn_file_unlink_live(void);

/* ---- which files are one (file_apart.c) --------------------------------------------------------- */

typedef struct hn_file_id {
    uint64_t dev, ino;
} hn_file_id;
bool hn_file_id_of(hn_file_id *out, const char *path); /* links followed; false: nothing is there */
bool hn_file_id_of_fd(hn_file_id *out, int fd);
static inline bool hn_file_id_same(hn_file_id a, hn_file_id b) { return a.dev == b.dev && a.ino == b.ino; }
/* Do both name one file, or one that would come to be? By ./x, a link, a hard link, another path to the folder. */
bool hn_file_same(const char *a, const char *b);

typedef enum hn_file_role {
    /* A file: with the other parts of its set, where it is NAME-00001-of-00003.EXT. A folder: with the files in it,
     * but those that hone makes there of them (*.gguf, *.hpack). */
    HN_FILE_READ,
    /* What hone train reads: a file; of a folder those that have a form of data, of the folders in it, too. One that
     * would come to be among them is one of them: the next run would read it. */
    HN_FILE_DATA,
    HN_FILE_WRITTEN, /* replaced, or grows */
    HN_FILE_FOLDER   /* files of hone's own naming are made in it */
} hn_file_role;

static inline bool hn_file_is_read(hn_file_role r) { return r == HN_FILE_READ || r == HN_FILE_DATA; }

/* What a file of data is, by the end of its name. Of folders hidden files and folders are passed over. */
typedef enum hn_data_form {
    HN_FORM_NONE,
    HN_FORM_TEXT,
    HN_FORM_MARKDOWN,
    HN_FORM_LINES,
    HN_FORM_JSON,
    HN_FORM_COMMAS,
    HN_FORM_TABS
} hn_data_form;
hn_data_form hn_data_form_of(const char *name);
enum { HN_DATA_DEPTH = 32 }; /* folders of data within each other at most */

typedef struct hn_file_use {
    const char *path;   /* NULL or "": not used */
    const char *what;   /* "the model" */
    const char *option; /* gives a written one another name: "-o"; NULL: none does */
    hn_file_role role;
} hn_file_use;

/* HONE_E_ARG, naming both, where something written is also read or written otherwise. Reading twice is fine. What is
 * changed in place is given once, as written. */
hone_status hn_files_apart(const hn_file_use *use, size_t n, hone_error *err);

/* SHA-256 in hex of a file's bytes; hex [65]. */
hone_status hn_file_sha256(char *hex, const char *path, hone_error *err);

#endif
