/* cache: where things lie, and how a file gets its name there; see cache.h. What is there: cache_list.c. */
#include "hub/cache.h"

#include "base/file.h"
#include "base/source.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where ------------------------------------------------------------------------------------ */

/* dst = the variable's value and `more` behind it; a leading ~ is the home folder. False: it is not set. */
static bool from_env(char dst[HN_CACHE_PATH], const char *var, const char *more, bool *too_long)
{
    const char *v = getenv(var), *home = "";
    if (!v || !*v) return false;
    if (v[0] == '~' && (v[1] == '/' || !v[1])) {
        home = getenv("HOME") ? getenv("HOME") : "";
        v++;
    }
    size_t n = strlen(v);
    while (n > 1 && v[n - 1] == '/') n--;
    int k = snprintf(dst, HN_CACHE_PATH, "%s%.*s%s", home, (int)(n < 8192 ? n : 8192), v, more);
    *too_long = k < 0 || k >= HN_CACHE_PATH;
    return true;
}

static hone_status root_of(char dst[HN_CACHE_PATH], const char *const (*rows)[2], const char *what, hone_error *err)
{
    bool too_long = false;
    *dst = 0;
    for (; (*rows)[0]; rows++) {
        if (!from_env(dst, (*rows)[0], (*rows)[1], &too_long)) continue;
        if (!too_long) return HONE_OK;
        *dst = 0;
        return HN_FAIL(err, HONE_E_ARG, "%s: the path is longer than %d bytes", (*rows)[0], HN_CACHE_PATH - 1);
    }
    return HN_FAIL(err, HONE_E_IO, "no place for %s: neither HOME nor %s is set", what, rows[-1][0]);
}

hone_status hn_cache_root(char dst[HN_CACHE_PATH], hone_error *err)
{
    static const char *const rows[][2] = { { "HF_HUB_CACHE", "" },
                                           { "HUGGINGFACE_HUB_CACHE", "" },
                                           { "HF_HOME", "/hub" },
                                           { "XDG_CACHE_HOME", "/huggingface/hub" },
                                           { "HOME", "/.cache/huggingface/hub" },
                                           { NULL, NULL } };
    return root_of(dst, rows, "models (HF_HUB_CACHE names one)", err);
}

hone_status hn_cache_token_path(char dst[HN_CACHE_PATH], hone_error *err)
{
    static const char *const rows[][2] = { { "HF_TOKEN_PATH", "" },
                                           { "HF_HOME", "/token" },
                                           { "XDG_CACHE_HOME", "/huggingface/token" },
                                           { "HOME", "/.cache/huggingface/token" },
                                           { NULL, NULL } };
    return root_of(dst, rows, "a token (HF_TOKEN_PATH names one)", err);
}

hone_status hn_ollama_root(char dst[HN_CACHE_PATH], hone_error *err)
{
    static const char *const rows[][2] = { { "OLLAMA_MODELS", "" }, { "HOME", "/.ollama/models" }, { NULL, NULL } };
    return root_of(dst, rows, "ollama's models (OLLAMA_MODELS names one)", err);
}

hone_status hn_models_home(char dst[HN_CACHE_PATH], hone_error *err)
{
    static const char *const rows[][2] = { { "XDG_DATA_HOME", "/hone/models" },
                                           { "HOME", "/.local/share/hone/models" },
                                           { NULL, NULL } };
    return root_of(dst, rows, "models from anywhere", err);
}

/* "models--owner--name" */
static hone_status repo_folder(char dst[HN_NAME_PART + 16], const char *repo, hone_error *err)
{
    if (!hn_hub_repo_ok(repo))
        return HN_FAIL(err, HONE_E_ARG, "\"%s\" is no repository; expected owner/name", HN_ESC(repo, strlen(repo)));
    int n = (int)strcspn(repo, "/");
    snprintf(dst, HN_NAME_PART + 16, "models--%.*s--%s", n, repo, repo + n + 1);
    return HONE_OK;
}

/* What may stand in the places of `a`, and what is expected there. */
static hone_status check_part(hn_cache_place place, const char *a, const char *b, hone_error *err)
{
    bool good = true;
    const char *expected = "";
    switch (place) {
    case HN_CACHE_REPO: break;
    case HN_CACHE_BLOB:
    case HN_CACHE_PART:
    case HN_CACHE_JOURNAL:
    case HN_CACHE_LOCK:
        good = a && hn_hub_oid_ok(a);
        expected = "an object id of 40 or 64 small hexadecimal digits";
        break;
    case HN_CACHE_REF:
        good = a && hn_hub_rev_ok(a);
        expected = "the name of a revision";
        break;
    case HN_CACHE_SNAPSHOT: good = a && hn_hub_commit_ok(a); expected = "a commit of 40 small hexadecimal digits";
    }
    if (good && place == HN_CACHE_SNAPSHOT && b && !hn_hub_path_ok(b)) {
        a = b;
        good = false;
        expected = "a path below the repository, without .. and \\";
    }
    if (good) return HONE_OK;
    return HN_FAIL(err, HONE_E_ARG, "\"%s\" as a part of the cache; expected %s", a ? HN_ESC(a, strlen(a)) : "",
                   expected);
}

hone_status hn_cache_path(char dst[HN_CACHE_PATH], hn_cache_place place, const char *root, const char *repo,
                          const char *a, const char *b, hone_error *err)
{
    char folder[HN_NAME_PART + 16];
    int n = 0;
    *dst = 0;
    hone_status st = repo_folder(folder, repo, err);
    if (st == HONE_OK) st = check_part(place, a, b, err);
    if (st != HONE_OK) return st;
    static const char *const ends[] = {
        [HN_CACHE_BLOB] = "", [HN_CACHE_PART] = ".hone-part", [HN_CACHE_JOURNAL] = ".hone-part.json"
    };
    switch (place) {
    case HN_CACHE_REPO: n = snprintf(dst, HN_CACHE_PATH, "%s/%s", root, folder); break;
    case HN_CACHE_BLOB:
    case HN_CACHE_PART:
    case HN_CACHE_JOURNAL: n = snprintf(dst, HN_CACHE_PATH, "%s/%s/blobs/%s%s", root, folder, a, ends[place]); break;
    case HN_CACHE_LOCK: n = snprintf(dst, HN_CACHE_PATH, "%s/.locks/%s/%s.lock", root, folder, a); break;
    case HN_CACHE_REF: n = snprintf(dst, HN_CACHE_PATH, "%s/%s/refs/%s", root, folder, a); break;
    case HN_CACHE_SNAPSHOT:
        n = snprintf(dst, HN_CACHE_PATH, "%s/%s/snapshots/%s%s%s", root, folder, a, b ? "/" : "", b ? b : "");
    }
    if (n > 0 && n < HN_CACHE_PATH) return HONE_OK;
    *dst = 0;
    return HN_FAIL(err, HONE_E_ARG, "%s: a path below %s would be longer than %d bytes", repo,
                   HN_ESC(root, strlen(root)), HN_CACHE_PATH - 1);
}

hone_status hn_ollama_blob(char dst[HN_CACHE_PATH], const char *root, const char *digest, hone_error *err)
{
    *dst = 0;
    if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 71 || !hn_hub_oid_ok(digest + 7))
        return HN_FAIL(err, HONE_E_ARG, "\"%s\" as a digest; expected sha256: and 64 small hexadecimal digits",
                       HN_ESC(digest, strlen(digest)));
    int n = snprintf(dst, HN_CACHE_PATH, "%s/blobs/sha256-%s", root, digest + 7);
    if (n > 0 && n < HN_CACHE_PATH) return HONE_OK;
    *dst = 0;
    return HN_FAIL(err, HONE_E_ARG, "%s: the path is too long", HN_ESC(root, strlen(root)));
}

hone_status hn_ollama_manifest(char dst[HN_CACHE_PATH], const char *root, const hn_name *n, hone_error *err)
{
    *dst = 0;
    if (n->kind != HN_NAME_OLLAMA) return HN_FAIL(err, HONE_E_ARG, "no name of ollama's");
    int k = snprintf(dst, HN_CACHE_PATH, "%s/manifests/%s/%s/%s", root, n->host, n->repo, n->tag);
    if (k > 0 && k < HN_CACHE_PATH) return HONE_OK;
    *dst = 0;
    return HN_FAIL(err, HONE_E_ARG, "%s: the path is too long", HN_ESC(root, strlen(root)));
}

/* ---- publishing ----------------------------------------------------------------------------------- */

/* What a link at path in a snapshot says: "../../blobs/OID", and one ../ more for each folder in path. */
static bool link_text(char *dst, size_t cap, const char *path, const char *oid)
{
    size_t at = (size_t)snprintf(dst, cap, "../../");
    for (const char *p = path; *p; p++) {
        if (*p != '/') continue;
        if (at + 4 > cap) return false;
        at += (size_t)snprintf(dst + at, cap - at, "../");
    }
    int n = snprintf(dst + at, cap - at, "blobs/%s", oid);
    return n > 0 && (size_t)n < cap - at;
}

static bool is_link_to(const char *path, const char *text)
{
    char seen[HN_CACHE_PATH];
    ssize_t n = readlink(path, seen, sizeof seen);
    return n >= 0 && (size_t)n == strlen(text) && memcmp(seen, text, (size_t)n) == 0;
}

/* Beside path, of a name that fits into a folder whatever path is called, and always the same: what a process left that
 * was killed before it renamed is in the next one's way, and goes. */
static void beside_of(char dst[HN_CACHE_PATH + 32], const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    unsigned char sum[32];
    char hex[17];
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, name, strlen(name));
    hn_sha256_end(&s, sum);
    snprintf(dst, HN_CACHE_PATH + 32, "%.*s.hone-tmp-%s", (int)(name - path), path, hn_hex(hex, sum, 8));
}

/* A link of this text at path, made beside it and renamed. Another process may do the same now: both mean the same
 * blob, and whoever renames has made it for both. 0, or errno. */
static int put_link(const char *path, const char *text)
{
    char beside[HN_CACHE_PATH + 32];
    int e = EEXIST;
    beside_of(beside, path);
    for (int tries = 0; tries < 100 && (e == EEXIST || e == ENOENT); tries++) {
        e = symlink(text, beside) == 0 || (errno == EEXIST && is_link_to(beside, text)) ? 0 : errno;
        if (e == EEXIST) unlink(beside);
        if (e) continue;
        e = rename(beside, path) == 0 ? 0 : errno;
        if (e == ENOENT && is_link_to(path, text)) return 0;
        if (e && e != ENOENT) unlink(beside);
    }
    return e;
}

hone_status hn_cache_no_link(const char *path, hone_error *err)
{
    struct stat sb;
    if (lstat(path, &sb) != 0 || !S_ISLNK(sb.st_mode)) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO,
                   "%s is a link, and what it leads to not the cache's to write; expected a file: remove it",
                   HN_ESC(path, strlen(path)));
}

/* Does the folder of `at`, links followed, lie among the snapshots of its repository? */
static hone_status among_snapshots(const char *at, const char *root, const char *repo, hone_error *err)
{
    char folder[HN_CACHE_PATH], home[HN_CACHE_PATH], there[PATH_MAX], top[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(at, '/') - at), at);
    hone_status st = hn_cache_path(home, HN_CACHE_REPO, root, repo, NULL, NULL, err);
    if (st != HONE_OK) return st;
    if (!realpath(home, top) || !realpath(folder, there))
        return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(folder, strlen(folder)), strerror(errno));
    size_t n = strlen(top);
    if (strncmp(there, top, n) == 0 && strncmp(there + n, "/snapshots/", 11) == 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "%s leads out of the cache, to %s; expected a folder: remove that link",
                   HN_ESC(folder, strlen(folder)), HN_ESC(there, strlen(there)));
}

static bool links_cannot_be(int e)
{
    return e == EPERM || e == ENOSYS || e == ENOTSUP || e == EOPNOTSUPP || e == EINVAL;
}

hone_status hn_cache_link(const char *root, const char *repo, const char *commit, const char *path, const char *oid,
                          hone_error *err)
{
    char at[HN_CACHE_PATH], blob[HN_CACHE_PATH], text[HN_CACHE_PATH];
    struct stat sb, there;
    hone_status st = hn_cache_path(at, HN_CACHE_SNAPSHOT, root, repo, commit, path, err);
    if (st == HONE_OK) st = hn_cache_path(blob, HN_CACHE_BLOB, root, repo, oid, NULL, err);
    if (st != HONE_OK) return st;
    if (!link_text(text, sizeof text, path, oid))
        return HN_FAIL(err, HONE_E_ARG, "%s: too many folders", HN_ESC(path, strlen(path)));
    bool file = lstat(at, &there) == 0 && S_ISREG(there.st_mode);
    if (stat(blob, &sb) != 0) {
        if (file) return HONE_OK; /* it moved there, where links cannot be */
        return HN_FAIL(err, HONE_E_IO, "%s: %s; expected the blob of %s", HN_ESC(blob, strlen(blob)), strerror(errno),
                       HN_ESC(path, strlen(path)));
    }
    if (is_link_to(at, text)) return HONE_OK;
    if ((st = hn_file_make_folders(at, err)) != HONE_OK) return st;
    if ((st = among_snapshots(at, root, repo, err)) != HONE_OK) return st;
    int e = put_link(at, text);
    if (links_cannot_be(e)) e = rename(blob, at) == 0 ? 0 : errno;
    if (e) return HN_FAIL(err, HONE_E_IO, "%s: cannot make the link: %s", HN_ESC(at, strlen(at)), strerror(e));
    hn_file_sync_folder(at);
    return HONE_OK;
}

hone_status hn_cache_set_ref(const char *root, const char *repo, const char *rev, const char *commit, hone_error *err)
{
    char path[HN_CACHE_PATH];
    if (!*rev) rev = "main";
    if (strcmp(rev, commit) == 0) return HONE_OK;
    if (!hn_hub_commit_ok(commit)) return check_part(HN_CACHE_SNAPSHOT, commit, NULL, err);
    hone_status st = hn_cache_path(path, HN_CACHE_REF, root, repo, rev, NULL, err);
    if (st == HONE_OK) st = hn_cache_no_link(path, err);
    return st == HONE_OK ? hn_file_replace(path, commit, strlen(commit), err) : st;
}

hone_status hn_cache_ref(char commit[41], const char *root, const char *repo, const char *rev, hone_error *err)
{
    char path[HN_CACHE_PATH], *line;
    size_t n;
    *commit = 0;
    if (!*rev) rev = "main";
    if (hn_hub_commit_ok(rev)) {
        memcpy(commit, rev, 41);
        return HONE_OK;
    }
    hone_status st = hn_cache_path(path, HN_CACHE_REF, root, repo, rev, NULL, err);
    if (st != HONE_OK) return st;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return HN_FAIL(err, HONE_E_IO, "%s: its revision %s is not known on this machine (%s)", repo,
                       HN_ESC(rev, strlen(rev)), HN_ESC(path, strlen(path)));
    if ((st = hn_source_text(&line, &n, path, 4096, err)) != HONE_OK) return st;
    line[strcspn(line, " \t\r\n")] = 0;
    if (hn_hub_commit_ok(line)) memcpy(commit, line, 41);
    else
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: holds \"%s\"; expected a commit of 40 small hexadecimal digits",
                     HN_ESC(path, strlen(path)), HN_ESC(line, strlen(line)));
    free(line);
    return st;
}
