/* A snapshot in a file, little-endian and sealed (base/sealed.h): the header below; with `known` i32 ids[length]; the
 * bytes as sequence.c gathers them. What is past the length in the last block of 16 positions is zero.
 * What a snapshot must fit (cache, adapters, bytes) is looked at where it is restored. */
#include "base/sealed.h"
#include "engine/snapshot.h"

#include <errno.h>
#include <stdlib.h>

typedef struct header {
    char magic[8];
    unsigned char model[HN_HASH_BYTES];
    uint64_t adapters, scope, bytes;
    int32_t length;
    uint32_t cache, known, lengthened;
} header;
_Static_assert(sizeof(header) == 80, "no padding");

static const char magic[8] = "HONESNP1";

/* A file that is there is replaced only where it is a snapshot. */
static hone_status check_target(const hone_snapshot *p, const char *path, hone_error *err)
{
    const char *packed = p->model->packed ? p->model->packed->path : NULL;
    const hn_file_use use[] = { { path, "the snapshot", NULL, HN_FILE_WRITTEN },
                                { p->model->path, "its model", NULL, HN_FILE_READ },
                                { packed, "the packed weights in use", NULL, HN_FILE_READ } };
    hone_status st = hn_files_apart(use, sizeof use / sizeof *use, err);
    return st == HONE_OK ? hn_sealed_check_place(path, magic, sizeof magic, "snapshot", err) : st;
}

hone_status hone_snapshot_save(const hone_snapshot *snap, const char *path, hone_error *err)
{
    hn_sealing o;
    hn_identity id;
    HN_NEED(err, snap, "a snapshot");
    HN_NEED(err, path, "the path of the file to write");
    hone_status st = check_target(snap, path, err);
    if (st == HONE_OK) st = hn_model_identity(snap->model, &id, NULL, err);
    if (st != HONE_OK) return st;

    size_t n_ids = snap->known ? (size_t)snap->length * sizeof *snap->ids : 0;
    header h = { .adapters = snap->adapters,
                 .scope = snap->scope,
                 .bytes = snap->bytes,
                 .length = snap->length,
                 .cache = (uint32_t)snap->cache,
                 .known = snap->known,
                 .lengthened = snap->lengthened };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.model, id.content, sizeof h.model);
    const hn_file_want want = { .n_bytes = sizeof h + n_ids + snap->bytes + sizeof(uint64_t), .mode = 0600 };
    o = (hn_sealing){ .hash = HN_FNV_INIT };
    if ((st = hn_file_begin(&o.file, path, &want, err)) != HONE_OK) return st; /* it is somebody's conversation */
    hn_seal_put(&o, &h, sizeof h);
    hn_seal_put(&o, snap->ids, n_ids);
    hn_seal_put(&o, snap->mem, snap->bytes);
    return hn_seal_end(&o, err);
}

/* ---- back ------------------------------------------------------------------------------------------- */

static hone_status check_file(const hone_model *m, const char *path, const hn_sealed *f, header *h, hone_error *err)
{
    hn_identity id;
    const size_t least = sizeof *h + sizeof(uint64_t);
    if (f->size < least)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes are too few for a snapshot", path,
                       (unsigned long long)f->size);
    memcpy(h, f->p, sizeof *h);
    if (memcmp(h->magic, magic, sizeof magic) != 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a snapshot", path);
    if (!hn_sealed_fits(f)) return HN_FAIL(err, HONE_E_FORMAT, "%s: checksum does not match: cut off or damaged", path);

    uint64_t rest = f->size - least, n_ids = (uint64_t)h->length * sizeof(int32_t);
    if (h->length < 0 || h->known > 1 || h->lengthened > 1 || h->cache >= HN_CACHE_TYPES ||
        (h->known && n_ids > rest) || h->bytes != rest - (h->known ? n_ids : 0))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %d positions in %llu bytes: damaged", path, h->length,
                       (unsigned long long)f->size);
    for (int32_t i = 0; h->known && i < h->length; i++) {
        int32_t one;
        memcpy(&one, f->p + sizeof *h + (size_t)i * sizeof one, sizeof one);
        if (one < 0 || one >= m->hp.n_vocab)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: token %d has id %d, expected 0 to %d", path, i, one,
                           m->hp.n_vocab - 1);
    }

    hone_status st = hn_model_identity(m, &id, NULL, err);
    if (st != HONE_OK || memcmp(h->model, id.content, sizeof h->model) == 0) return st;
    char theirs[2 * HN_HASH_BYTES + 1], ours[2 * HN_HASH_BYTES + 1];
    hn_hex(theirs, h->model, sizeof h->model);
    hn_hex(ours, id.content, sizeof h->model);
    return HN_FAIL(err, HONE_E_ARG, "%s: a snapshot of another model (identity %.16s…, this one is %.16s…)", path,
                   theirs, ours);
}

static hone_status copy_out(hone_snapshot **out, const hone_model *m, const header *h, const unsigned char *p,
                            hone_error *err)
{
    size_t n_ids = h->known ? (size_t)h->length * sizeof(int32_t) : 0;
    uint64_t room = hn_memory_available(); /* beside the file, which is in memory until this is done */
    if (room && n_ids + h->bytes > room)
        return HN_FAIL(err, HONE_E_NOMEM, "snapshot of %llu bytes: %llu bytes of memory are free",
                       (unsigned long long)(n_ids + h->bytes), (unsigned long long)room);
    hone_snapshot *s = calloc(1, sizeof *s);
    if (s && ((n_ids && !(s->ids = malloc(n_ids))) || (h->bytes && !(s->mem = malloc(h->bytes))))) {
        hone_snapshot_free(s);
        s = NULL;
    }
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "snapshot of %llu bytes", (unsigned long long)h->bytes);
    s->model = m;
    s->adapters = h->adapters;
    s->scope = h->scope;
    s->cache = (hn_cache_type)h->cache;
    s->lengthened = h->lengthened;
    s->length = h->length;
    s->known = h->known;
    s->bytes = h->bytes;
    if (n_ids) memcpy(s->ids, p, n_ids);
    if (h->bytes) memcpy(s->mem, p + n_ids, h->bytes);
    *out = s;
    return HONE_OK;
}

hone_status hone_snapshot_load(hone_snapshot **out, const hone_model *m, const char *path, hone_error *err)
{
    hn_sealed f;
    header h;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the snapshot");
    HN_NEED(err, m, "an open model");
    HN_NEED(err, path, "the path of a snapshot");
    int why = hn_sealed_open(&f, path, magic, sizeof magic);
    if (why == HN_SEALED_CHANGED)
        return HN_FAIL(err, HONE_E_IO, "%s: was written to while it was read; try again", path);
    if (why < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a snapshot", path);
    if (why == ENOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory to read it", path);
    if (why) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", path, strerror(why));
    hone_status st = check_file(m, path, &f, &h, err);
    if (st == HONE_OK) st = copy_out(out, m, &h, f.p + sizeof h, err);
    hn_sealed_close(&f);
    return st;
}
