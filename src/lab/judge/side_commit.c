/* Commits of the repository at hand, built once in worktrees below the user's cache. Owns these folders, one builder at
 * a time; refuses to know what is measured. */
#define _GNU_SOURCE
#include "lab/judge/side_commit.h"

#include "base/os.h"
#include "lab/bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_CAP = HN_SIDE_PATH };

typedef struct builder {
    const char *label; /* the side, for messages */
    hn_side_params p;
    char *program; /* [PATH_CAP] */
} builder;

/* The first line that a command prints, in dst; false: it failed, and said so in `why`. */
static hone_status first_line_of(char *dst, size_t cap, builder *s, const char *const *argv, char *why, size_t why_cap,
                                 hone_error *err)
{
    hn_process r;
    hone_status st = hn_process_run(&r, &(hn_process_params){ .argv = argv, .keep_out = true, .stop = s->p.stop }, err);
    if (st != HONE_OK) return st;
    hn_process_why(&r, why, why_cap);
    if (!why[0]) snprintf(dst, cap, "%.*s", (int)strcspn(r.out, "\n"), r.out);
    hn_process_free(&r);
    return HONE_OK;
}

static hone_status find_commit(char hash[64], builder *s, const char *rev, hone_error *err)
{
    char want[600], why[600];
    hash[0] = 0;
    if (rev[0] == '-' || strlen(rev) > 500)
        return HN_FAIL(err, HONE_E_ARG, "'%s' is no commit", HN_ESC(rev, strlen(rev)));
    snprintf(want, sizeof want, "%s^{commit}", rev);
    const char *argv[] = { "git", "rev-parse", "--verify", "--quiet", want, NULL };
    hone_status st = first_line_of(hash, 64, s, argv, why, sizeof why, err);
    if (st == HONE_OK && strlen(hash) < 40)
        st = HN_FAIL(err, HONE_E_ARG,
                     "'%s' is no file and no commit of this repository; expected settings (threads=1,kv=q8_0), a hone "
                     "program, a commit, or --cmd for shell commands",
                     HN_ESC(rev, strlen(rev)));
    return st;
}

static hone_status builds_folder(char *dst, size_t cap, hone_error *err)
{
    const char *x = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = x && x[0] == '/'         ? snprintf(dst, cap, "%s/hone/builds", x)
            : home && home[0] == '/' ? snprintf(dst, cap, "%s/.cache/hone/builds", home)
                                     : -1;
    if (n < 0 || (size_t)n + 80 > cap)
        return HN_FAIL(err, HONE_E_IO, "no folder to build commits in: set XDG_CACHE_HOME or HOME");
    for (char *p = dst + 1;; p++) {
        if (*p && *p != '/') continue;
        char c = *p;
        *p = 0;
        if (mkdir(dst, 0777) != 0 && errno != EEXIST)
            return HN_FAIL(err, HONE_E_IO, "folder %s: %s", HN_ESC(dst, strlen(dst)), strerror(errno));
        *p = c;
        if (!c) return HONE_OK;
    }
}

/* Runs a step of a build; the end of what it said becomes the message. */
static hone_status build_step(builder *s, const char *what, const char *dir, const char *const *argv, hone_error *err)
{
    hn_process r;
    hone_status st = hn_process_run(&r, &(hn_process_params){ .argv = argv, .dir = dir, .stop = s->p.stop }, err);
    if (st != HONE_OK) return st;
    if (r.exit_code != 0) {
        const char *said = r.said ? r.said : "";
        size_t n = strlen(said);
        if (s->p.tell && n) s->p.tell(s->p.tell_arg, said); /* all of it, for the eye */
        char why[600];
        const char *at = strstr(said, "error:"); /* the first error says more than the last line */
        while (at && at > said && at[-1] != '\n') at--;
        if (at) hn_escape(why, sizeof why, at, strcspn(at, "\n"));
        else hn_process_why(&r, why, sizeof why);
        st = HN_FAIL(err, HONE_E_IO, "%s of %s failed in %s: %s", what, HN_ESC(s->label, strlen(s->label)),
                     HN_ESC(dir, strlen(dir)), why);
    }
    hn_process_free(&r);
    return st;
}

/* What stands where a commit is to be checked out. */
typedef enum place {
    PLACE_FREE,  /* nothing, or an empty folder */
    PLACE_READY, /* a checkout that was finished */
    PLACE_OURS,  /* what an interrupted checkout left, of any age: it has the file .git of a worktree */
    PLACE_OTHERS /* something that is not hone's to remove */
} place;

static place look_at(const char *dir, const char *ready)
{
    char inner[PATH_CAP];
    struct stat sb;
    if (lstat(dir, &sb) != 0) return errno == ENOENT ? PLACE_FREE : PLACE_OTHERS;
    if (!S_ISDIR(sb.st_mode)) return PLACE_OTHERS;
    snprintf(inner, sizeof inner, "%s/.git", dir);
    if (lstat(inner, &sb) == 0 && S_ISREG(sb.st_mode)) return access(ready, F_OK) == 0 ? PLACE_READY : PLACE_OURS;
    return rmdir(dir) == 0 ? PLACE_FREE : PLACE_OTHERS; /* an empty one is no loss */
}

/* A worktree at this commit in dir; the file DIR.ready says that it is whole. */
static hone_status check_out(builder *s, const char *dir, const char *hash, hone_error *err)
{
    char ready[PATH_CAP], trash[PATH_CAP];
    snprintf(ready, sizeof ready, "%s.ready", dir);
    snprintf(trash, sizeof trash, "%s.trash", dir);
    const char *prune[] = { "git", "worktree", "prune", NULL };
    const char *add[] = { "git", "worktree", "add", "--force", "--detach", dir, hash, NULL };
    const char *clear[] = { "rm", "-rf", trash, NULL };
    place p = look_at(dir, ready);
    if (p == PLACE_READY) return HONE_OK;
    if (p == PLACE_OTHERS)
        return HN_FAIL(
            err, HONE_E_IO,
            "%s: is in the way of building commit %.12s: it is no checkout that hone made; expected nothing there: "
            "look at it, then move it away or remove it (rm -r %s)",
            HN_ESC(dir, strlen(dir)), hash, HN_ESC(dir, strlen(dir)));
    unlink(ready);
    hone_status st = build_step(s, "rm", ".", clear, err); /* of an earlier clearing that was interrupted */
    if (st == HONE_OK && p == PLACE_OURS) {
        if (rename(dir, trash) != 0)
            return HN_FAIL(err, HONE_E_IO, "%s: an interrupted checkout, which cannot be cleared away: %s",
                           HN_ESC(dir, strlen(dir)), strerror(errno));
        st = build_step(s, "rm", ".", clear, err);
    }
    if (st == HONE_OK) st = build_step(s, "git worktree prune", ".", prune, err);
    if (st == HONE_OK) st = build_step(s, "git worktree add", ".", add, err);
    int fd = st == HONE_OK ? open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) close(fd); /* without it the next build only begins anew */
    return st;
}

/* dir/build/release/hone of a worktree at this commit. One builder at a time. */
static hone_status build_commit(builder *s, const char *hash, hone_error *err)
{
    char dir[PATH_CAP - 64], lock[PATH_CAP], jobs[16], text[700];
    hone_status st = builds_folder(dir, sizeof dir, err);
    if (st != HONE_OK) return st;
    size_t n = strlen(dir);
    snprintf(dir + n, sizeof dir - n, "/%.16s", hash);
    snprintf(lock, sizeof lock, "%s.lock", dir);
    snprintf(s->program, PATH_CAP, "%s/build/release/hone", dir);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(lock, strlen(lock)), strerror(errno));
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {}
    if (access(s->program, X_OK) != 0) {
        snprintf(text, sizeof text, "building commit %.12s in %.500s", hash, dir);
        if (s->p.tell) s->p.tell(s->p.tell_arg, text);
        snprintf(jobs, sizeof jobs, "-j%d", hn_cpu_count() > 0 ? hn_cpu_count() : 1);
        const char *make[] = {
            "make", jobs, "MAKEFLAGS=", "MAKELEVEL=", "B=build/release", "FLAVOUR=release", "build/release/hone", NULL
        };
        st = check_out(s, dir, hash, err);
        if (st == HONE_OK) st = build_step(s, "make", dir, make, err);
        if (st == HONE_OK && access(s->program, X_OK) != 0)
            st = HN_FAIL(err, HONE_E_IO, "commit %.12s: make gave no %s", hash, s->program);
    }
    close(fd);
    return st;
}

hone_status hn_side_find_commit(char hash[64], const char *rev, const hn_side_params *p, hone_error *err)
{
    builder b = { .p = *p };
    return find_commit(hash, &b, rev, err);
}

hone_status hn_side_build_commit(char program[HN_SIDE_PATH], const char *hash, const char *label,
                                 const hn_side_params *p, hone_error *err)
{
    builder b = { .label = label, .p = *p, .program = program };
    return build_commit(&b, hash, err);
}
