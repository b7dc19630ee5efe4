/* converted: what a conversion promises, whatever it was given: a failure has a message and leaves no file; what is
 * written can be read, and holds only numbers. */
#ifndef HN_FUZZ_CONVERTED_H
#define HN_FUZZ_CONVERTED_H

#include "fuzz_file.h"
#include "gguf/gguf.h"

/* The way back: a folder, or a reason and nothing. */
static void ff_convert_back(const char *file)
{
    const char *dst = ff_path("back");
    hone_error e = { 0 };
    hone_status st = hone_convert(file, NULL, NULL, dst, NULL, &e);
    FF_MUST(st == HONE_OK ? access(dst, F_OK) == 0 : *e.message && access(dst, F_OK) != 0);
    if (st != HONE_OK) return;
    ff_empty(dst);
    rmdir(dst);
}

static void ff_convert(const char *src, const char *tokenizer, const char *type)
{
    const char *dst = ff_path("out.gguf");
    hone_error e = { 0 };
    hone_status st = hone_convert(src, tokenizer, type, dst, NULL, &e);
    if (st != HONE_OK) {
        FF_MUST(*e.message && access(dst, F_OK) != 0);
        return;
    }
    hn_gguf *g;
    FF_MUST(hn_gguf_open(&g, dst, &e) == HONE_OK);
    FF_MUST(hn_gguf_check_data(g, &e) == HONE_OK);
    hn_gguf_close(g);
    ff_convert_back(dst);
    unlink(dst);
}

#endif
