/* converted: what a conversion promises, whatever it was given: a failure has a message and leaves no file; what is
 * written can be read, and holds only numbers. */
#ifndef HN_FUZZ_CONVERTED_H
#define HN_FUZZ_CONVERTED_H

#include "fuzz_file.h"
#include "gguf/gguf.h"

static void ff_note(void *arg, const char *text)
{
    (void)arg;
    FF_MUST(*text && !strchr(text, '\n'));
}

/* To dst, a new folder, or a reason and nothing. */
static bool ff_to_folder(const char *file, const char *type, const char *dst)
{
    hone_error e = { 0 };
    hone_status st = hone_convert_with(file, dst, &(hone_convert_params){ .type = type, .note = ff_note }, NULL, &e);
    FF_MUST(st == HONE_OK ? access(dst, F_OK) == 0 : *e.message && access(dst, F_OK) != 0);
    if (st != HONE_OK) ff_say(e.message);
    return st == HONE_OK;
}

/* The way back. */
static void ff_convert_back(const char *file)
{
    const char *dst = ff_path("back");
    if (!ff_to_folder(file, NULL, dst)) return;
    ff_empty(dst);
    rmdir(dst);
}

/* and_back: what is written becomes a folder. */
static void ff_convert(const char *src, const char *tokenizer, const char *type, bool and_back)
{
    const char *dst = ff_path("out.gguf");
    hone_error e = { 0 };
    hone_convert_params p = { .tokenizer = tokenizer, .type = type, .note = ff_note };
    hone_status st = hone_convert_with(src, dst, &p, NULL, &e);
    if (st != HONE_OK) {
        FF_MUST(*e.message && access(dst, F_OK) != 0);
        ff_say(e.message);
        return;
    }
    hn_gguf *g;
    FF_MUST(hn_gguf_open(&g, dst, &e) == HONE_OK);
    FF_MUST(hn_gguf_check_data(g, &e) == HONE_OK);
    hn_gguf_close(g);
    if (and_back) ff_convert_back(dst);
    unlink(dst);
}

#endif
