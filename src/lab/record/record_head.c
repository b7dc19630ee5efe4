/* The parts that every record has: its own number, and what says which commit, build, engine and
 * model it is of. */
#include "base/file.h"
#include "lab/record/record.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void hn_notes_add_v(json_t *notes, const char *fmt, va_list ap)
{
    char text[1000];
    vsnprintf(text, sizeof text, fmt, ap);
    if (json_array_size(notes) < HN_MOST_NOTES) json_array_append_new(notes, hn_lab_str(text));
}

void hn_notes_add(json_t *notes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hn_notes_add_v(notes, fmt, ap);
    va_end(ap);
}

json_t *hn_bench_identity(void)
{
    static _Atomic uint64_t n;
    unsigned char d[32];
    char id[16], text[96];
    hn_sha256 s;
    int len =
        snprintf(text, sizeof text, "%" PRIu64 " %ld %" PRIu64, hn_clock_ns(), (long)getpid(), atomic_fetch_add(&n, 1));
    char ts[40];
    hn_utc_now(ts, sizeof ts); /* the clock begins anew with the machine */
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, (size_t)len);
    hn_sha256_add(&s, ts, strlen(ts));
    hn_sha256_end(&s, d);
    snprintf(id, sizeof id, "%02x%02x%02x%02x%02x%02x", d[0], d[1], d[2], d[3], d[4], d[5]);
    return json_string(id);
}

json_t *hn_bench_git_json(const hn_environ *e)
{
    char commit[sizeof e->commit];
    snprintf(commit, sizeof commit, "%s", e->commit);
    char *dirty = strstr(commit, "+dirty");
    if (dirty) *dirty = 0;
    bool known = commit[0] && strcmp(commit, "unknown") != 0;
    return json_pack("{s:o, s:o}", "commit", known ? hn_lab_str(commit) : json_null(), "dirty",
                     known ? json_boolean(dirty) : json_null());
}

json_t *hn_bench_build_json(const hn_environ *e)
{
    return json_pack("{s:o, s:o, s:s}", "cc", hn_lab_str(e->compiler), "flags", hn_lab_str(e->flags), "isa",
                     hn_cpu_level_name(hn_cpu_best()));
}

json_t *hn_bench_engine_json(void) { return json_pack("{s:s, s:s}", "name", "hone", "version", hone_version()); }

/* Of the whole content; null where it cannot be had now, and why. */
static void put_identity(json_t *o, const char *path)
{
    char hex[65] = "";
    hone_file *f;
    hone_error why;
    hone_status st = hone_file_open(&f, path, &why);
    if (st == HONE_OK) {
        st = hone_file_identity(f, false, hex, NULL, &why);
        hone_file_close(f);
    }
    json_object_set_new(o, "identity", hex[0] ? json_string(hex) : json_null());
    if (st != HONE_OK) json_object_set_new(o, "identity_why", hn_lab_str(why.message));
    if (st == HONE_E_NOMEM) hn_json_lose(); /* it could be had: a record without it is less than was asked for */
}

json_t *hn_bench_model_json(const char *path, const hone_model_info *info)
{
    enum {
        HASH_UP_TO = 64 << 20
    }; /* larger files are told apart by the fingerprint: hashing them takes longer than measuring */
    char hex[65] = "", fingerprint[17];
    struct stat sb;
    hone_error why = { .code = HONE_OK };
    const char *slash = strrchr(path, '/');
    if (stat(path, &sb) != 0) HN_FAIL(&why, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    else if (sb.st_size <= HASH_UP_TO) hn_file_sha256(hex, path, &why);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, info->fingerprint);
    json_t *o = json_object();
    json_object_set_new(o, "path_name", hn_lab_str(slash ? slash + 1 : path));
    json_object_set_new(o, "sha256", hex[0] ? json_string(hex) : json_null());
    put_identity(o, path);
    if (why.code != HONE_OK) json_object_set_new(o, "sha256_why", hn_lab_str(why.message));
    if (why.code == HONE_E_NOMEM) hn_json_lose();
    json_object_set_new(o, "fingerprint", json_string(fingerprint));
    json_object_set_new(o, "name", hn_lab_str(info->name));
    json_object_set_new(o, "arch", hn_lab_str(info->arch));
    json_object_set_new(o, "type", hn_lab_str(info->type));
    json_object_set_new(o, "params", json_integer((json_int_t)info->n_params));
    json_object_set_new(o, "bytes", json_integer((json_int_t)info->n_bytes));
    const char *fs = hn_file_system(path);
    json_object_set_new(o, "file_system", *fs ? json_string(fs) : json_null());
    if (*info->ignored_keys) json_object_set_new(o, "ignored_keys", hn_lab_str(info->ignored_keys));
    if (info->state_bytes) json_object_set_new(o, "state_mb", hn_lab_num((double)info->state_bytes / 1e6));
    return o;
}
