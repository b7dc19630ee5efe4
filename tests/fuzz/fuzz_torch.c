/* Fuzz target: archives of torch.save. The first byte says what follows: a pickle, put into a good archive with three
 * storages; edits of a good archive; or the file itself. Whatever it is, a failure names the file, and what is read
 * lies in the files it is said to be in.
 * covers: src/model/torch_zip.c src/model/torch_pickle.c src/model/ckpt.c src/base/source.c */
#include "fuzz_file.h"
#include "model/ckpt.h"
#include "torch_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* many: with as many other parts as there may be. */
static void read_file(const char *path, bool takes_raw, bool many)
{
    hone_error e = { 0 };
    hn_ckpt *c;
    int32_t part;
    FF_MUST(hn_ckpt_new(&c, path, &e) == HONE_OK);
    c->takes_raw = takes_raw;
    FF_MUST(hn_ckpt_add_part(c, ff_path("none"), &part, &e) == HONE_E_IO && c->n_part == 0);
    FF_MUST(hn_ckpt_add_part(c, path, &part, &e) == HONE_OK);
    hone_status st = hn_torch_read(c, part, &e);
    FF_MUST(st == HONE_OK ? c->n > 0 : strstr(e.message, path) != NULL);
    for (size_t i = 0; i < c->n && st == HONE_OK; i++) {
        const hn_ckpt_tensor *t = &c->t[i];
        unsigned char b[2];
        FF_MUST(hn_in_range(t->off, t->n_bytes, c->part[t->part].size));
        if (!t->n_bytes) continue;
        FF_MUST(hn_source_read(&c->part[t->part], t->off, b, 1, &e) == HONE_OK);
        FF_MUST(hn_source_read(&c->part[t->part], t->off + t->n_bytes - 1, b, 1, &e) == HONE_OK);
    }
    while (many && (st = hn_ckpt_add_part(c, path, &part, &e)) == HONE_OK) FF_MUST(part == c->n_part - 1);
    if (many) FF_MUST(st == HONE_E_FORMAT || st == HONE_E_IO); /* so many parts, or open files */
    hn_ckpt_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    if (!*ff_dir) ff_begin();
    unsigned how = ff_u8(&in);
    tb_bytes b = { 0 };
    if ((how & 3) < 2) {
        b = tb_dict(in.p, in.n, how & 1 ? TB_WIDE : 0);
    } else if ((how & 3) == 2) {
        tb_bytes good = tb_dict(TB_BYTES(TB_GOOD), how & 4 ? TB_WIDE : 0);
        b.n = good.n;
        b.p = ff_edited(good.p, &b.n, &in);
        free(good.p);
    } else {
        tb_add(&b, in.p, in.n);
    }
    const char *path = ff_put("m.bin", b.p, b.n);
    free(b.p);
    if (how & 32) setenv("TMPDIR", ff_path("none"), 1); /* no room for what is not stored as it is */
    else unsetenv("TMPDIR");
    read_file(path, how & 8, how & 16);
    return 0;
}
