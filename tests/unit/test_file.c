/* Tests of base/file: a file is there whole or as it was, whatever stands in the way, who else writes it and how the
 * program ends; and no two names of one file are taken for two. */
#define _GNU_SOURCE
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/hone-file-XXXXXX";

/* One of eight, in turn. */
static const char *in_dir(const char *name)
{
    static char path[8][600];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static void spill(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *name, const char *want)
{
    char b[256] = "";
    FILE *f = fopen(in_dir(name), "r");
    assert_non_null(f);
    b[fread(b, 1, sizeof b - 1, f)] = 0;
    fclose(f);
    assert_string_equal(b, want);
}

static int temporaries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += strstr(e->d_name, "hone-tmp") != NULL;
    closedir(d);
    return n;
}

static hone_status save(const char *name, const char *text, hone_error *err)
{
    return hn_file_replace(in_dir(name), text, strlen(text), err);
}

static unsigned mode_of(const char *name)
{
    struct stat sb;
    assert_int_equal(stat(in_dir(name), &sb), 0);
    return sb.st_mode & 0777;
}

static hn_file *begin(const char *name)
{
    hn_file *f;
    hone_error err;
    if (hn_file_begin(&f, in_dir(name), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    return f;
}

/* ---- content and permissions -------------------------------------------------------------------------- */

static void puts_in_pieces(void **state)
{
    enum { N = 5 << 20 }; /* more than is gathered at once */
    hn_file *f = begin("pieces");
    unsigned char *want = malloc(N), *got = malloc(N);
    assert_true(want && got);
    for (size_t i = 0; i < N; i++) want[i] = (unsigned char)(i * 2654435761u >> 13);
    memset(want + 1000, 0, 77);
    size_t at = 0;
    for (size_t n = 1; at < N; n = n * 3 + 1) {
        size_t k = at == 1000 ? 77 : n < N - at ? n : N - at;
        if (at < 1000 && at + k > 1000) k = 1000 - at;
        assert_int_equal(hn_file_put(f, at == 1000 ? NULL : want + at, k, NULL), HONE_OK);
        at += k;
    }
    assert_int_not_equal(access(in_dir("pieces"), F_OK), 0);
    assert_int_equal(hn_file_end(f, NULL), HONE_OK);
    assert_int_equal(hn_file_end(f, NULL), HONE_E_ARG); /* twice */
    hn_file_drop(f);
    hn_file_drop(NULL);
    FILE *in = fopen(in_dir("pieces"), "r");
    assert_int_equal(fread(got, 1, N, in), N);
    assert_int_equal(fgetc(in), EOF);
    fclose(in);
    assert_memory_equal(want, got, N);
    free(want);
    free(got);
    assert_int_equal(unlink(in_dir("pieces")), 0);
}

static void puts_anywhere(void **state)
{
    hn_file *f;
    char b[5] = "";
    assert_int_equal(hn_file_begin(&f, in_dir("any"), &(hn_file_want){ .n_bytes = 10 }, NULL), HONE_OK);
    assert_int_equal(hn_file_put_at(f, 4, "fgh", 3), 0);
    assert_int_equal(hn_file_put_at(f, 0, "abcd", 4), 0);
    assert_int_equal(hn_file_get_at(f, 3, b, 4), 0);
    assert_string_equal(b, "dfgh");
    assert_int_equal(hn_file_get_at(f, 5, b, 4), EIO); /* beyond the end */
    assert_int_equal(hn_file_end(f, NULL), HONE_OK);
    hn_file_drop(f);
    struct stat sb;
    assert_int_equal(stat(in_dir("any"), &sb), 0);
    assert_int_equal(sb.st_size, 10); /* the rest is zeros */
}

static void keeps_permissions(void **state)
{
    mode_t old = umask(027);
    assert_int_equal(save("new", "1", NULL), HONE_OK);
    assert_int_equal(mode_of("new"), 0640);
    for (size_t i = 0; i < 5; i++) {
        static const unsigned modes[] = { 0600, 0666, 0444, 0755, 0660 };
        assert_int_equal(chmod(in_dir("new"), modes[i]), 0);
        assert_int_equal(save("new", "2", NULL), HONE_OK);
        assert_int_equal(mode_of("new"), modes[i]);
    }
    umask(0);
    hn_file *f;
    assert_int_equal(hn_file_begin(&f, in_dir("private"), &(hn_file_want){ .mode = 0600 }, NULL), HONE_OK);
    assert_int_equal(hn_file_end(f, NULL), HONE_OK);
    hn_file_drop(f);
    assert_int_equal(mode_of("private"), 0600);
    static const unsigned before[][2] = { { 0644, 0600 }, { 0666, 0600 }, { 0400, 0400 }, { 0600, 0600 } };
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) { /* what was there lets others read no longer */
        assert_int_equal(chmod(in_dir("private"), before[i][0]), 0);
        assert_int_equal(hn_file_begin(&f, in_dir("private"), &(hn_file_want){ .mode = 0600 }, NULL), HONE_OK);
        assert_int_equal(hn_file_put(f, "x", 1, NULL), HONE_OK);
        assert_int_equal(hn_file_end(f, NULL), HONE_OK);
        hn_file_drop(f);
        assert_int_equal(mode_of("private"), before[i][1]);
    }
    /* never more open on the way than in the end */
    f = begin("private");
    DIR *d = opendir(dir);
    struct stat sb;
    int seen = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, "hone-tmp")) {
            assert_int_equal(fstatat(dirfd(d), e->d_name, &sb, 0), 0);
            assert_int_equal(sb.st_mode & 077, 0);
            seen++;
        }
    closedir(d);
    assert_int_equal(seen, 1);
    hn_file_drop(f);
    umask(old);
}

/* ---- what stands in the way ------------------------------------------------------------------------------ */

static void writes_through_links(void **state)
{
    char target[600];
    assert_int_equal(mkdir(in_dir("elsewhere"), 0777), 0);
    spill("elsewhere/real", "old");
    assert_int_equal(chmod(in_dir("elsewhere/real"), 0600), 0);
    assert_int_equal(symlink("elsewhere/real", in_dir("link")), 0);
    assert_int_equal(symlink(in_dir("link"), in_dir("link2")), 0);
    assert_int_equal(save("link2", "new", NULL), HONE_OK);
    ssize_t n = readlink(in_dir("link"), target, sizeof target);
    assert_int_equal(n, strlen("elsewhere/real"));
    holds("elsewhere/real", "new");
    assert_int_equal(mode_of("elsewhere/real"), 0600);
    hn_file *f = begin("link"); /* beside the file, not beside the link: another file system may be there */
    assert_int_equal(temporaries(in_dir("elsewhere")), 1);
    hn_file_drop(f);
    assert_int_equal(temporaries(in_dir("elsewhere")) + temporaries(dir), 0);
}

static void refused(const char *path, const char *why)
{
    hone_error err = { 0 };
    hn_file *f = (hn_file *)1;
    assert_int_equal(hn_file_begin(&f, path, NULL, &err), HONE_E_IO);
    assert_null(f);
    if (!strstr(err.message, why)) fail_msg("%s: '%s' not in: %s", path, why, err.message);
    assert_int_equal(hn_file_check(path, &err), HONE_E_IO);
    assert_int_equal(hn_file_append_line(path, NULL, "x\n", 2, &err), HONE_E_IO);
    if (!strstr(err.message, why)) fail_msg("%s: '%s' not in: %s", path, why, err.message);
}

static void refuses_what_is_no_file(void **state)
{
    assert_int_equal(symlink("nothing", in_dir("dangling")), 0);
    assert_int_equal(symlink("loop2", in_dir("loop1")), 0);
    assert_int_equal(symlink("loop1", in_dir("loop2")), 0);
    assert_int_equal(symlink(dir, in_dir("to-folder")), 0);
    assert_int_equal(symlink("/dev/null", in_dir("to-null")), 0);
    assert_int_equal(mkfifo(in_dir("pipe"), 0666), 0);
    refused(in_dir("dangling"), "which does not exist");
    assert_int_not_equal(access(in_dir("nothing"), F_OK), 0);
    refused(in_dir("loop1"), "leads to itself");
    refused(in_dir("to-folder"), "is a directory");
    refused(dir, "is a directory");
    refused(in_dir("to-null"), "is a device or pipe");
    refused("/dev/null", "is a device or pipe");
    refused("/dev/fd/1", "is a device or pipe");
    refused(in_dir("pipe"), "is a device or pipe");
    hone_error err;
    hn_file *f;
    assert_int_equal(hn_file_begin(&f, "", NULL, &err), HONE_E_ARG);
    assert_int_equal(hn_file_begin(&f, NULL, NULL, &err), HONE_E_ARG);
    assert_int_equal(hn_file_replace("", "x", 1, &err), HONE_E_ARG); /* and no byte behind it is looked at */
    assert_int_equal(hn_file_begin(&f, in_dir("none/x"), NULL, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "cannot create: No such file"));
    assert_int_equal(temporaries(dir), 0);
#if defined(__linux__)
    /* standard output that goes to a file: it would be replaced under what is printed */
    spill("stdout", "");
    int saved = dup(1), fd = open(in_dir("stdout"), O_WRONLY);
    fflush(stdout);
    dup2(fd, 1);
    hone_status st = hn_file_check("/dev/stdout", NULL);
    dup2(saved, 1);
    close(saved);
    close(fd);
    assert_int_equal(st, HONE_E_IO);
#endif
}

/* Names that were fixed once are somebody's links now. */
static void ignores_planted_links(void **state)
{
    char name[64];
    spill("precious", "precious");
    static const char *const forms[] = { "out.tmp-%ld", "out.tmp-%ld-1", "out.%ld.tmp" };
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, forms[i], (long)getpid());
        assert_int_equal(symlink(in_dir("precious"), in_dir(name)), 0);
    }
    /* of the new form, too: a link is no leftover, and not followed */
    assert_int_equal(symlink(in_dir("precious"), in_dir("out.hone-tmp-0123456789abcdef")), 0);
    assert_int_equal(save("out", "new", NULL), HONE_OK);
    holds("out", "new");
    holds("precious", "precious");
    assert_int_equal(temporaries(dir), 1);
    assert_int_equal(unlink(in_dir("out.hone-tmp-0123456789abcdef")), 0);
}

/* ---- several writers ----------------------------------------------------------------------------------------- */

enum { SAVES = 200, BLOCK = 3000 };

static bool is_whole(const char *path)
{
    char got[BLOCK + 1];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(got, 1, sizeof got, f) : 0;
    if (f) fclose(f);
    for (size_t i = 1; i < n; i++)
        if (got[i] != got[0]) return false;
    return n == BLOCK;
}

static char shared_path[600];

static void *save_shared(void *arg)
{
    char text[BLOCK];
    hone_error err;
    memset(text, *(char *)arg, sizeof text);
    for (int i = 0; i < SAVES; i++) {
        hn_file *f;
        hone_status st = hn_file_begin(&f, shared_path, NULL, &err);
        for (int k = 0; k < 3 && st == HONE_OK; k++) st = hn_file_put(f, text, BLOCK / 3, &err);
        if (st == HONE_OK) st = hn_file_end(f, &err);
        hn_file_drop(f);
        if (st != HONE_OK) return strdup(err.message);
    }
    return NULL;
}

static void two_threads_one_path(void **state)
{
    pthread_t t[2];
    char letter[2] = { 'a', 'b' };
    snprintf(shared_path, sizeof shared_path, "%s/shared", dir);
    char *first = NULL, *said;
    char full[BLOCK];
    memset(full, 'c', sizeof full);
    assert_int_equal(hn_file_replace(shared_path, full, sizeof full, NULL), HONE_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, save_shared, &letter[i]), 0);
    for (int i = 0; i < SAVES; i++) assert_true(is_whole(shared_path)); /* also while they write */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(t[i], (void **)&said), 0);
        if (said) first = said;
    }
    if (first) fail_msg("%s", first);
    assert_true(is_whole(shared_path));
    assert_int_equal(temporaries(dir), 0);
}

/* ---- ends of programs ------------------------------------------------------------------------------------------ */

/* A child that has half a file; how it ends. Returns when it is dead. */
static void die_while_writing(const char *name, int how)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hn_file *f;
        if (hn_file_begin(&f, in_dir(name), NULL, NULL) != HONE_OK || hn_file_put(f, "half", 4, NULL) != HONE_OK)
            _exit(1);
        if (how == SIGKILL) raise(SIGKILL);
        hn_file_unlink_live();                  /* what the program's handlers do */
        _exit(hn_file_end(f, NULL) == HONE_OK); /* must fail: it is gone */
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(how == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void leftovers_go_with_the_next(void **state)
{
    spill("kept", "old");
    die_while_writing("kept", SIGKILL);
    assert_int_equal(temporaries(dir), 1);
    holds("kept", "old");
    hn_file *living = begin("kept");
    assert_int_equal(temporaries(dir), 1); /* the dead one's is gone */
    assert_int_equal(hn_file_put(living, "mine", 4, NULL), HONE_OK);
    hn_file *second = begin("kept");
    assert_int_equal(temporaries(dir), 2); /* and nobody's who lives */
    hn_file_clean_folder(dir);
    assert_int_equal(temporaries(dir), 2);
    assert_int_equal(hn_file_end(living, NULL), HONE_OK);
    hn_file_drop(living);
    holds("kept", "mine");
    hn_file_drop(second);
    /* of another path's only when the folder is cleaned */
    die_while_writing("other", SIGKILL);
    assert_int_equal(save("kept", "more", NULL), HONE_OK);
    assert_int_equal(temporaries(dir), 1);
    hn_file_clean_folder(dir);
    assert_int_equal(temporaries(dir), 0);
}

static void signals_leave_nothing(void **state)
{
    spill("kept", "old");
    die_while_writing("kept", SIGTERM);
    assert_int_equal(temporaries(dir), 0);
    holds("kept", "old");
    /* a child that was only forked must not take its parent's away */
    hn_file *f = begin("kept");
    pid_t pid = fork();
    if (pid == 0) {
        hn_file_unlink_live();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(temporaries(dir), 1);
    assert_int_equal(hn_file_end(f, NULL), HONE_OK);
    hn_file_drop(f);
    /* more at once than the table of living ones holds */
    hn_file *many[80];
    for (int i = 0; i < 80; i++) many[i] = begin("many");
    for (int i = 0; i < 80; i++) hn_file_drop(many[i]);
    assert_int_equal(temporaries(dir), 0);
}

/* ---- no room ----------------------------------------------------------------------------------------------------- */

static void no_room(void **state)
{
    static char big[1 << 20];
    struct rlimit old, small;
    hone_error err = { 0 };
    hn_file *f;
    spill("kept", "old");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    hone_status known = hn_file_replace(in_dir("kept"), big, sizeof big, &err);
    int left = temporaries(dir);
    hone_status begun = hn_file_begin(&f, in_dir("kept"), NULL, NULL), put = hn_file_put(f, big, sizeof big, NULL);
    hone_error at_end = { 0 };
    hone_status ended = hn_file_end(f, &at_end);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(known, HONE_E_IO);
    assert_non_null(strstr(err.message, "file size limit (ulimit -f) is 100000"));
    assert_int_equal(left, 0);
    assert_true(begun == HONE_OK && (put == HONE_OK || put == HONE_E_IO)); /* it may still be gathered */
    assert_int_equal(ended, HONE_E_IO);
    assert_non_null(strstr(at_end.message, "File too large"));
    assert_int_equal(temporaries(dir), 0); /* before it is dropped */
    hn_file_drop(f);
    holds("kept", "old");
    /* more than any file system has */
    assert_int_equal(hn_file_begin(&f, in_dir("kept"), &(hn_file_want){ .n_bytes = (uint64_t)1 << 60 }, &err),
                     HONE_E_IO);
    assert_true(strstr(err.message, "too full") && strstr(err.message, "1152921504606846976"));
    assert_int_equal(temporaries(dir), 0);
    /* the same for files that grow: as they were */
    small.rlim_cur = 5;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    hone_status grown = hn_file_append_line(in_dir("kept"), NULL, "0123456789\n", 11, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(grown, HONE_E_IO);
    holds("kept", "old");
    assert_int_equal(hn_file_append_line(in_dir("kept"), "head\n", "new\n", 4, NULL), HONE_OK);
    holds("kept", "old\nnew\n");
    assert_int_equal(hn_file_append_line(in_dir("a/b/grows"), "head\n", "new\n", 4, NULL), HONE_OK);
    holds("a/b/grows", "head\nnew\n");
}

/* ---- which are one ----------------------------------------------------------------------------------------------- */

static hone_status apart_from(hn_file_role how, const char *read, const char *written, hn_file_role role)
{
    const hn_file_use use[] = { { read, "what is read", NULL, how }, { written, "what is written", "-o", role } };
    hone_error err = { 0 };
    hone_status st = hn_files_apart(use, 2, &err);
    if (st == HONE_E_ARG &&
        !(strstr(err.message, "would be what is written and is what is read") && strstr(err.message, "(-o)")))
        fail_msg("%s", err.message);
    return st;
}

static hone_status apart(const char *read, const char *written, hn_file_role role)
{
    return apart_from(HN_FILE_READ, read, written, role);
}

static void one_file_by_any_name(void **state)
{
    spill("in", "x");
    assert_int_equal(link(in_dir("in"), in_dir("hard")), 0);
    assert_int_equal(symlink("in", in_dir("soft")), 0);
    assert_int_equal(symlink(dir, in_dir("folder")), 0);
    assert_int_equal(mkdir(in_dir("sub"), 0777), 0);
    static const char *const same[] = { "in", "./in", "hard", "soft", "folder/in", "sub/../in", ".//in" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (apart(in_dir("in"), in_dir(same[i]), HN_FILE_WRITTEN) != HONE_E_ARG)
            fail_msg("%s is taken for another file", same[i]);
    static const char *const other[] = { "in2", "sub/in", "IN", "folder/sub/in", "in.x" };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_int_equal(apart(in_dir("in"), in_dir(other[i]), HN_FILE_WRITTEN), HONE_OK);
    /* neither is there yet */
    assert_int_equal(symlink("fresh", in_dir("to-fresh")), 0);
    static const char *const news[] = { "fresh",        "./fresh",  "folder/fresh",
                                        "sub/../fresh", "to-fresh", "folder/./to-fresh" };
    for (size_t i = 0; i < sizeof news / sizeof *news; i++) assert_true(hn_file_same(in_dir("fresh"), in_dir(news[i])));
    assert_false(hn_file_same(in_dir("fresh"), in_dir("fresh2")));
    assert_false(hn_file_same(in_dir("fresh"), in_dir("sub/fresh")));
    assert_true(hn_file_same(in_dir("no/where/x"), in_dir("folder/no/./where//x"))); /* nor its folder */
    assert_true(hn_file_same(in_dir("fresh"), in_dir("fresh/")));                    /* a folder to be made */
    assert_false(hn_file_same(in_dir("no/where/x"), in_dir("no/x")));
}

static void sets_and_folders(void **state)
{
    assert_int_equal(mkdir(in_dir("src"), 0777), 0);
    spill("src/model.safetensors", "x");
    spill("src/made.gguf", "x");
    spill("m-00001-of-00003.gguf", "x");
    spill("m-00003-of-00003.gguf", "x");
    assert_int_equal(link(in_dir("src/model.safetensors"), in_dir("alias.gguf")), 0);
    assert_int_equal(apart(in_dir("src"), in_dir("src/model.safetensors"), HN_FILE_WRITTEN), HONE_E_ARG);
    assert_int_equal(apart(in_dir("src/"), in_dir("alias.gguf"), HN_FILE_WRITTEN), HONE_E_ARG);
    assert_int_equal(apart(in_dir("src"), in_dir("src/made.gguf"), HN_FILE_WRITTEN), HONE_OK); /* made of it before */
    assert_int_equal(apart(in_dir("src"), in_dir("src/new.gguf"), HN_FILE_WRITTEN), HONE_OK);
    assert_int_equal(apart(in_dir("src"), in_dir("src/"), HN_FILE_FOLDER), HONE_E_ARG);
    assert_int_equal(apart(in_dir("src/made.gguf"), in_dir("src"), HN_FILE_FOLDER), HONE_OK);
    static const char *const parts[] = { "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "./m-00003-of-00003.gguf" };
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(apart(in_dir(parts[i]), in_dir(parts[k]), HN_FILE_WRITTEN), HONE_E_ARG);
    assert_int_equal(apart(in_dir(parts[0]), in_dir("m-00004-of-00003.gguf"), HN_FILE_WRITTEN), HONE_OK);
    assert_int_equal(apart(in_dir(parts[0]), in_dir("m.gguf"), HN_FILE_WRITTEN), HONE_OK);
}

/* A folder of data is read with the folders in it: what is or would be a file of data there is not written. */
static void folders_of_data(void **state)
{
    assert_int_equal(mkdir(in_dir("data"), 0777), 0);
    assert_int_equal(mkdir(in_dir("data/sub"), 0777), 0);
    assert_int_equal(mkdir(in_dir("data/.git"), 0777), 0);
    assert_int_equal(mkdir(in_dir("far"), 0777), 0);
    assert_int_equal(symlink("../far", in_dir("data/link")), 0);
    spill("data/sub/a.JSON", "x");
    spill("data/sub/a.gguf", "x");
    assert_int_equal(link(in_dir("data/sub/a.JSON"), in_dir("hard.bin")), 0);
    static const struct {
        const char *name;
        bool read;
    } of[] = { { "data/sub/a.JSON", true },    { "hard.bin", true },         { "data/new.jsonl", true },
               { "data/sub/new.txt", true },   { "data/sub/../n.md", true }, { "data/peft/adapter_config.json", true },
               { "data/link/new.tsv", true },  { "far/new.tsv", true },      { "data/sub/a.gguf", false },
               { "data/new.gguf", false },     { "data/.new.json", false },  { "data/.git/new.json", false },
               { "data/.x/new.json", false },  { "far.txt", false },         { "data2/new.json", false },
               { "data/x.json/y.gguf", false } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if ((apart_from(HN_FILE_DATA, in_dir("data"), in_dir(of[i].name), HN_FILE_WRITTEN) == HONE_E_ARG) != of[i].read)
            fail_msg("%s is %s", of[i].name, of[i].read ? "not taken for data" : "taken for data");
    assert_int_equal(symlink("..", in_dir("data/sub/up")), 0); /* ends where reading does */
    assert_int_equal(symlink("..", in_dir("data/sub/up2")), 0);
    assert_int_equal(apart_from(HN_FILE_DATA, in_dir("data"), in_dir("none.txt"), HN_FILE_WRITTEN), HONE_OK);
}

static void pairs_of_a_command(void **state)
{
    hone_error err = { 0 };
    spill("one", "x");
    const hn_file_use use[] = { { in_dir("one"), "the model", NULL, HN_FILE_READ },
                                { in_dir("./one"), "the data", NULL, HN_FILE_READ }, /* read twice: fine */
                                { NULL, "the adapter", NULL, HN_FILE_READ },
                                { "", "nothing", NULL, HN_FILE_WRITTEN },
                                { in_dir("out"), "the output", "-o", HN_FILE_WRITTEN },
                                { in_dir("./out"), "the log", "--log", HN_FILE_WRITTEN } };
    assert_int_equal(hn_files_apart(use, 5, &err), HONE_OK);
    assert_int_equal(hn_files_apart(use, 6, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "would be the log and also the output"));
    assert_true(strstr(err.message, "/./out") && strstr(err.message, "(--log)"));
}

static int set_up(void **state) { return mkdtemp(dir) ? 0 : -1; }

static void empty(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));) {
        char path[1200];
        struct stat sb;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (lstat(path, &sb) == 0 && S_ISDIR(sb.st_mode)) empty(path);
        else unlink(path);
    }
    closedir(d);
    rmdir(folder);
}

static int tear_down(void **state)
{
    empty(dir);
    return access(dir, F_OK) == 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_in_pieces),          cmocka_unit_test(puts_anywhere),
        cmocka_unit_test(keeps_permissions),       cmocka_unit_test(writes_through_links),
        cmocka_unit_test(refuses_what_is_no_file), cmocka_unit_test(ignores_planted_links),
        cmocka_unit_test(two_threads_one_path),    cmocka_unit_test(leftovers_go_with_the_next),
        cmocka_unit_test(signals_leave_nothing),   cmocka_unit_test(no_room),
        cmocka_unit_test(one_file_by_any_name),    cmocka_unit_test(sets_and_folders),
        cmocka_unit_test(folders_of_data),         cmocka_unit_test(pairs_of_a_command),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
