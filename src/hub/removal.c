/* removal: see removal.h. */
#include "hub/removal.h"
#include "hub/cache_dir.h"

#include "base/os.h"
#include "base/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static hone_status no_memory(hone_error *err) { return HN_FAIL(err, HONE_E_NOMEM, "the list of files to remove"); }

static bool begin(hn_removal *r) { return r->arena || (r->arena = hn_arena_new()); }

static bool push(hn_removal *r, const char ***list, size_t *n, size_t *cap, const char *text)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*list)[i], text) == 0) return true;
    if (*n == *cap) {
        size_t more = *cap ? 2 * *cap : 16;
        const char **p = hn_arena_alloc(r->arena, more * sizeof *p);
        if (!p) return false;
        if (*n) memcpy(p, *list, *n * sizeof *p);
        *list = p;
        *cap = more;
    }
    const char *kept = hn_arena_strndup(r->arena, text, strlen(text));
    if (kept) (*list)[(*n)++] = kept;
    return kept != NULL;
}

/* The bytes of a file, links not followed; 0: it is gone already, or it is a link. */
static hone_status size_of(uint64_t *bytes, const char *path, hone_error *err)
{
    struct stat sb;
    *bytes = 0;
    if (lstat(path, &sb) == 0) *bytes = S_ISREG(sb.st_mode) ? (uint64_t)sb.st_size : 0;
    else if (!hn_is_absent(errno)) return hn_cannot_look(path, errno, err);
    return HONE_OK;
}

/* One more file to go, with its bytes; none where it is gone already. */
static hone_status push_file(hn_removal *r, const char *path, hone_error *err)
{
    struct stat sb;
    size_t n = r->n;
    if (lstat(path, &sb) != 0 && hn_is_absent(errno)) return HONE_OK;
    if (lstat(path, &sb) != 0) return hn_cannot_look(path, errno, err);
    if (!push(r, &r->file, &r->n, &r->cap, path)) return no_memory(err);
    if (r->n > n && S_ISREG(sb.st_mode)) r->bytes += (uint64_t)sb.st_size;
    return HONE_OK;
}

/* One that stays, as others have it. */
static hone_status count_shared(hn_removal *r, const char *path, hone_error *err)
{
    uint64_t bytes;
    hone_status st = size_of(&bytes, path, err);
    r->shared += bytes;
    return st;
}

/* ---- the hub ----------------------------------------------------------------------------------------- */

/* The blob that a link of a snapshot leads to, in blobs/ of the same repository; "" where it leads elsewhere. */
static void blob_of(char dst[HN_CACHE_PATH], const char *link, const char *home)
{
    char there[PATH_MAX], top[PATH_MAX];
    struct stat sb;
    *dst = 0;
    if (lstat(link, &sb) != 0 || !S_ISLNK(sb.st_mode) || !realpath(link, there) || !realpath(home, top)) return;
    size_t n = strlen(top);
    if (strncmp(there, top, n) != 0 || strncmp(there + n, "/blobs/", 7) != 0 || strchr(there + n + 7, '/')) return;
    int k = snprintf(dst, HN_CACHE_PATH, "%s%s", home, there + n);
    if (k < 0 || k >= HN_CACHE_PATH) *dst = 0;
}

/* Does any entry of the snapshots that does not go link to the blob? */
static hone_status still_linked(const hn_removal *r, const hn_cache_dir *all, const char *home, const char *blob,
                                bool *linked, hone_error *err)
{
    char other[HN_CACHE_PATH];
    *linked = false;
    for (size_t i = 0; i < all->n && !*linked; i++) {
        const char *path = hn_cache_join(all->arena, all->path, all->file[i].path);
        if (!path) return no_memory(err);
        bool goes = false;
        for (size_t k = 0; k < r->n && !goes; k++) goes = strcmp(r->file[k], path) == 0;
        if (goes) continue;
        blob_of(other, path, home);
        *linked = strcmp(other, blob) == 0;
    }
    return HONE_OK;
}

/* A revision that cannot be looked through may link to any blob. */
static hone_status check_open(hn_arena *arena, const char *snapshots, hone_error *err)
{
    const char **names;
    size_t n;
    hone_status st = hn_cache_names(&names, &n, arena, snapshots, true, err);
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        const char *path = hn_cache_join(arena, snapshots, names[i]);
        if (!path) return no_memory(err);
        if (access(path, R_OK | X_OK) != 0 && !hn_is_absent(errno))
            st = HN_FAIL(err, HONE_E_IO, "%s: %s, and it may need what is to go; nothing was removed",
                         HN_ESC(path, strlen(path)), strerror(errno));
    }
    return st;
}

/* The blobs of the links in the plan that lie in this repository, as far as nothing else needs them. */
static hone_status add_blobs(hn_removal *r, const char *home, hone_error *err)
{
    hn_cache_dir all;
    char blob[HN_CACHE_PATH];
    bool linked;
    const char *snapshots = hn_cache_join(r->arena, home, "snapshots");
    if (!snapshots) return no_memory(err);
    hone_status st = check_open(r->arena, snapshots, err);
    if (st == HONE_OK) st = hn_cache_walk(&all, r->arena, snapshots, home, 32, false, err);
    for (size_t i = 0, n = r->n; st == HONE_OK && i < n; i++) {
        if (strncmp(r->file[i], snapshots, strlen(snapshots)) != 0) continue;
        blob_of(blob, r->file[i], home);
        if (!*blob || (st = still_linked(r, &all, home, blob, &linked, err)) != HONE_OK) continue;
        st = linked ? count_shared(r, blob, err) : push_file(r, blob, err);
    }
    return st;
}

static hone_status add_packed(hn_removal *r, const char *model, hone_error *err)
{
    char path[HN_CACHE_PATH + 8];
    snprintf(path, sizeof path, "%s.hpack", model);
    return push_file(r, path, err);
}

/* Folders that are what they seem: below a link lies what is not the cache's. */
static hone_status check_folders(const char *home, const char *snapshot, hone_error *err)
{
    char path[HN_CACHE_PATH + 16];
    struct stat sb;
    const char *const rows[][2] = { { home, "" }, { home, "/snapshots" }, { home, "/blobs" }, { snapshot, "" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(path, sizeof path, "%s%s", rows[i][0], rows[i][1]);
        if (lstat(path, &sb) == 0 && !S_ISDIR(sb.st_mode))
            return HN_FAIL(err, HONE_E_ARG,
                           "%s is a link, and what lies behind it not the cache's; nothing was removed",
                           HN_ESC(path, strlen(path)));
    }
    return HONE_OK;
}

static hone_status add_of_hub(hn_removal *r, const hn_local *m, hone_error *err)
{
    char root[HN_CACHE_PATH], home[HN_CACHE_PATH], folder[HN_CACHE_PATH];
    hone_status st = hn_cache_root(root, err);
    if (st == HONE_OK) st = hn_cache_path(home, HN_CACHE_REPO, root, m->repo, NULL, NULL, err);
    if (st != HONE_OK) return st;
    if (m->unfinished) snprintf(folder, sizeof folder, "%s", m->path);
    else st = hn_cache_path(folder, HN_CACHE_SNAPSHOT, root, m->repo, m->commit, NULL, err);
    if (st == HONE_OK) st = check_folders(home, folder, err);
    for (size_t i = 0; i < m->n_file && st == HONE_OK; i++) {
        const char *path = hn_cache_join(r->arena, folder, m->file[i]);
        st = path ? push_file(r, path, err) : no_memory(err);
        if (st == HONE_OK && !i && !m->checkpoint) st = add_packed(r, path, err);
    }
    if (st == HONE_OK && !push(r, &r->home, &r->n_home, &r->home_cap, home)) st = no_memory(err);
    return st == HONE_OK ? add_blobs(r, home, err) : st;
}

/* ---- ollama's store --------------------------------------------------------------------------------------- */

/* Is the manifest at path one of those that go? */
static hone_status goes_too(const hn_locals *all, const bool *going, const char *root, const char *path, bool *goes,
                            hone_error *err)
{
    char manifest[HN_CACHE_PATH];
    hn_name name;
    hone_status st = HONE_OK;
    *goes = false;
    for (size_t i = 0; i < all->n && st == HONE_OK && !*goes; i++) {
        const hn_local *m = &all->list[i];
        if (m->where != HN_LOCAL_OLLAMA || !going[i]) continue;
        st = hn_name_parse(&name, m->name, err);
        if (st == HONE_OK) st = hn_ollama_manifest(manifest, root, &name, err);
        *goes = st == HONE_OK && strcmp(manifest, path) == 0;
    }
    return st;
}

/* Has the manifest the digest in it? One that cannot be read may have. */
static bool names_it(const char *path, const char *hex)
{
    char *text;
    size_t n;
    if (hn_source_text(&text, &n, path, 64 << 20, NULL) != HONE_OK) return true;
    bool it = strstr(text, hex) != NULL || strlen(text) != n;
    free(text);
    return it;
}

/* Does any manifest that stays name the blob? Whatever lies there counts, by its text: what is no name for hone, or no
 * manifest that it understands, may be one for another program. One that cannot be read may name any. */
static hone_status in_others(const hn_locals *all, const bool *going, const char *blob, bool *named, hone_error *err)
{
    char root[HN_CACHE_PATH], top[HN_CACHE_PATH + 16];
    const char *hex = strrchr(blob, '-');
    hn_cache_dir d;
    hn_arena *arena = hn_arena_new();
    *named = true;
    if (!arena || !hex) {
        hn_arena_free(arena);
        return arena ? HONE_OK : no_memory(err);
    }
    hone_status st = hn_ollama_root(root, err);
    snprintf(top, sizeof top, "%s/manifests", st == HONE_OK ? root : "");
    if (st == HONE_OK) st = hn_cache_walk(&d, arena, top, NULL, 12, false, err);
    bool found = false;
    for (size_t i = 0; st == HONE_OK && !found && i < d.n; i++) {
        bool goes = false;
        const char *path = hn_cache_join(arena, top, d.file[i].path);
        if (!path) st = no_memory(err);
        if (st == HONE_OK) st = goes_too(all, going, root, path, &goes, err);
        if (st == HONE_OK && !goes) found = names_it(path, hex + 1);
    }
    hn_arena_free(arena);
    *named = found;
    return st;
}

static hone_status add_of_ollama(hn_removal *r, const hn_locals *all, size_t which, const bool *going, hone_error *err)
{
    const hn_local *m = &all->list[which];
    char root[HN_CACHE_PATH], manifest[HN_CACHE_PATH];
    hn_name name;
    hone_status st = hn_ollama_root(root, err);
    if (st == HONE_OK) st = hn_name_parse(&name, m->name, err);
    if (st == HONE_OK) st = hn_ollama_manifest(manifest, root, &name, err);
    if (st == HONE_OK) st = push_file(r, manifest, err); /* first: blobs without a manifest harm nobody */
    for (size_t i = 0; i < m->n_file && st == HONE_OK; i++) {
        bool named;
        st = in_others(all, going, m->file[i], &named, err);
        if (st == HONE_OK) st = named ? count_shared(r, m->file[i], err) : push_file(r, m->file[i], err);
    }
    return st != HONE_OK ? st : *m->path ? add_packed(r, m->path, err) : HONE_OK;
}

hone_status hn_removal_add(hn_removal *r, const hn_locals *all, size_t which, const bool *going, hone_error *err)
{
    const hn_local *m = &all->list[which];
    if (!begin(r)) return no_memory(err);
    if (m->where == HN_LOCAL_HUB) return add_of_hub(r, m, err);
    if (m->where == HN_LOCAL_OLLAMA) return add_of_ollama(r, all, which, going, err);
    const char *path = HN_ESC(m->path, strlen(m->path));
    return HN_FAIL(
        err, HONE_E_ARG,
        "%s lies in a folder of your own, outside the caches; expected its path, to be sure: hone rm --yes %s",
        HN_ESC(m->name, strlen(m->name)), path);
}

/* ---- whole repositories, files ------------------------------------------------------------------------------ */

hone_status hn_removal_add_repo(hn_removal *r, const char *repo, hone_error *err)
{
    char root[HN_CACHE_PATH], home[HN_CACHE_PATH];
    struct stat sb;
    hn_cache_dir all;
    if (!begin(r)) return no_memory(err);
    hone_status st = hn_cache_root(root, err);
    if (st == HONE_OK) st = hn_cache_path(home, HN_CACHE_REPO, root, repo, NULL, NULL, err);
    if (st != HONE_OK) return st;
    if (lstat(home, &sb) != 0 || !S_ISDIR(sb.st_mode))
        return HN_FAIL(err, HONE_E_IO, "%s: not on this machine (%s is no folder)", repo, HN_ESC(home, strlen(home)));
    const char *top = hn_arena_strndup(r->arena, home, strlen(home));
    if (!top || !push(r, &r->tree, &r->n_tree, &r->tree_cap, top)) return no_memory(err);
    st = hn_cache_walk(&all, r->arena, top, top, 12, false, err);
    for (size_t i = 0; st == HONE_OK && i < all.n; i++) {
        const char *path = hn_cache_join(r->arena, top, all.file[i].path);
        if (!path) return no_memory(err);
        uint64_t bytes;
        st = size_of(&bytes, path, err);
        r->bytes += bytes;
    }
    return st;
}

hone_status hn_removal_add_path(hn_removal *r, const char *path, hone_error *err)
{
    const char *shown = HN_ESC(path, strlen(path)), *slash = strrchr(path, '/');
    char folder[HN_CACHE_PATH];
    struct stat sb;
    hn_cache_dir d;
    hn_gguf_sets sets;
    if (!begin(r)) return no_memory(err);
    if (lstat(path, &sb) != 0) return HN_FAIL(err, HONE_E_IO, "%s: %s", shown, strerror(errno));
    if (!hn_ends_with_gguf(path) || !(S_ISREG(sb.st_mode) || S_ISLNK(sb.st_mode)))
        return HN_FAIL(err, HONE_E_ARG, "%s is no model; expected a file that ends in .gguf", shown);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    hone_status st = hn_cache_walk(&d, r->arena, folder, NULL, 0, true, err);
    if (st == HONE_OK) st = hn_gguf_sets_of(&sets, d.file, d.n, err);
    if (st != HONE_OK) return st;
    const char *name = slash ? slash + 1 : path;
    st = push_file(r, path, err);
    for (size_t i = 0; st == HONE_OK && i < sets.n; i++) {
        const hn_gguf_set *s = &sets.set[i];
        bool mine = false;
        for (size_t k = 0; k < s->n_file; k++) mine |= s->file[k] != SIZE_MAX && !strcmp(d.file[s->file[k]].path, name);
        for (size_t k = 0; mine && st == HONE_OK && k < s->n_file; k++) {
            const char *part = s->file[k] == SIZE_MAX || !strcmp(d.file[s->file[k]].path, name)
                                   ? path
                                   : hn_cache_join(r->arena, folder, d.file[s->file[k]].path);
            st = part ? push_file(r, part, err) : no_memory(err);
        }
    }
    hn_gguf_sets_free(&sets);
    return st == HONE_OK ? add_packed(r, path, err) : st;
}

/* ---- in use? --------------------------------------------------------------------------------------------------- */

/* "ROOT/models--o--n/blobs/OID" and "…/OID.hone-part" have their lock in ROOT/.locks. "" for others. */
static void lock_of(char dst[HN_CACHE_PATH], const char *path)
{
    const char *blobs = strstr(path, "/blobs/"), *repo = blobs;
    *dst = 0;
    for (; repo && repo > path && repo[-1] != '/';) repo--;
    if (!blobs || repo <= path + 1 || strncmp(repo, "models--", 8) != 0) return;
    const char *oid = blobs + 7;
    int k = snprintf(dst, HN_CACHE_PATH, "%.*s.locks/%.*s/%.*s.lock", (int)(repo - path), path, (int)(blobs - repo),
                     repo, (int)strcspn(oid, "."), oid);
    if (k < 0 || k >= HN_CACHE_PATH) *dst = 0;
}

static bool is_locked(const char *lock)
{
    int fd = *lock ? open(lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0) return *lock && !hn_is_absent(errno); /* one that cannot be looked at may be anybody's */
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd); /* and with it the lock, if we got it */
    return locked;
}

static hone_status check_files(const char *const *file, size_t n, hone_error *err)
{
    char lock[HN_CACHE_PATH];
    size_t which;
    for (size_t i = 0; i < n; i++) {
        lock_of(lock, file[i]);
        if (is_locked(lock))
            return HN_FAIL(err, HONE_E_BUSY,
                           "%s is being downloaded by another process; nothing was removed; expected its end",
                           HN_ESC(file[i], strlen(file[i])));
    }
    /* of a link only the link goes: what it leads to may be used */
    const char **whole = calloc(n + 1, sizeof *whole);
    size_t n_whole = 0;
    struct stat sb;
    if (!whole) return no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (lstat(file[i], &sb) == 0 && S_ISREG(sb.st_mode)) whole[n_whole++] = file[i];
    int64_t pid = hn_os_file_user(whole, n_whole, &which);
    hone_status st = HONE_OK;
    if (pid > 0)
        st = HN_FAIL(err, HONE_E_BUSY, "%s is in use by process %lld; nothing was removed; expected that to end first",
                     HN_ESC(whole[which], strlen(whole[which])), (long long)pid);
    free(whole);
    return st;
}

hone_status hn_removal_check(const hn_removal *r, hone_error *err)
{
    hone_status st = check_files(r->file, r->n, err);
    for (size_t i = 0; st == HONE_OK && i < r->n_tree; i++) {
        hn_cache_dir all;
        hn_arena *arena = hn_arena_new();
        st = arena ? hn_cache_walk(&all, arena, r->tree[i], r->tree[i], 12, false, err) : no_memory(err);
        const char **file = st == HONE_OK ? hn_arena_alloc(arena, (all.n + 1) * sizeof *file) : NULL;
        if (st == HONE_OK && !file) st = no_memory(err);
        for (size_t k = 0; st == HONE_OK && k < all.n; k++)
            if (!(file[k] = hn_cache_join(arena, r->tree[i], all.file[k].path))) st = no_memory(err);
        if (st == HONE_OK) st = check_files(file, all.n, err);
        hn_arena_free(arena);
    }
    return st;
}

/* ---- gone ----------------------------------------------------------------------------------------------------- */

static hone_status cannot(const char *path, hone_error *err)
{
    return HN_FAIL(err, HONE_E_IO, "%s: cannot be removed: %s; what came before it is gone", HN_ESC(path, strlen(path)),
                   strerror(errno));
}

/* A folder and all in it, by descriptors, so that no link is followed even if one is put there now. */
static bool remove_tree(int above, const char *name, int depth)
{
    int fd = depth > 0 ? openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return false;
    }
    bool good = true;
    for (struct dirent *e; good && (e = readdir(d));) {
        struct stat sb;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (fstatat(fd, e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0) good = errno == ENOENT;
        else if (S_ISDIR(sb.st_mode)) good = remove_tree(fd, e->d_name, depth - 1);
        else good = unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT;
    }
    int e = errno;
    closedir(d);
    errno = e;
    return good && unlinkat(above, name, AT_REMOVEDIR) == 0;
}

/* Folders above path that are empty now, up to (and with) home. */
static void remove_empty(const char *path, const char *home)
{
    char folder[HN_CACHE_PATH];
    size_t n = strlen(home);
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder) return;
    for (char *slash; (slash = strrchr(folder, '/'));) {
        *slash = 0;
        if (strncmp(folder, home, n) != 0 || rmdir(folder) != 0) return;
    }
}

/* Refs to commits whose snapshot is gone, and folders that are empty. */
static void tidy(const char *home)
{
    hn_cache_dir d;
    char path[HN_CACHE_PATH + 64], line[64];
    hn_arena *arena = hn_arena_new();
    const char *refs = arena ? hn_cache_join(arena, home, "refs") : NULL;
    if (refs && hn_cache_walk(&d, arena, refs, home, 4, false, NULL) == HONE_OK)
        for (size_t i = 0; i < d.n; i++) {
            const char *ref = hn_cache_join(arena, refs, d.file[i].path);
            int fd = ref ? open(ref, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
            ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
            if (fd >= 0) close(fd);
            line[n > 0 ? n : 0] = 0;
            line[strcspn(line, " \r\n")] = 0;
            snprintf(path, sizeof path, "%s/snapshots/%s", home, line);
            if (!ref || !hn_hub_commit_ok(line) || access(path, F_OK) == 0) continue;
            if (unlink(ref) == 0) remove_empty(ref, home);
        }
    static const char *const parts[] = { "snapshots", "blobs", "refs" };
    bool left = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s/%s", home, parts[i]);
        rmdir(path);
        struct stat sb;
        left |= i < 2 && (lstat(path, &sb) == 0 || !hn_is_absent(errno));
    }
    if (!left) remove_tree(AT_FDCWD, home, 16); /* lists of files that were, and of those that were not */
    hn_arena_free(arena);
}

hone_status hn_removal_do(const hn_removal *r, hone_error *err)
{
    for (size_t i = 0; i < r->n; i++) {
        if (unlink(r->file[i]) != 0 && errno != ENOENT) return cannot(r->file[i], err);
        for (size_t k = 0; k < r->n_home; k++)
            if (strncmp(r->file[i], r->home[k], strlen(r->home[k])) == 0) remove_empty(r->file[i], r->home[k]);
    }
    for (size_t i = 0; i < r->n_tree; i++)
        if (!remove_tree(AT_FDCWD, r->tree[i], 16)) return cannot(r->tree[i], err);
    for (size_t i = 0; i < r->n_home; i++) tidy(r->home[i]);
    return HONE_OK;
}

void hn_removal_free(hn_removal *r)
{
    hn_arena_free(r->arena);
    *r = (hn_removal){ 0 };
}
