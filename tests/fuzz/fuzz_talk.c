/* Fuzz target: conversations that hone chat saved. The input is the file. One that is accepted has roles in order and
 * parameters within their ranges, and comes back the same after it was saved again; one that is refused changes
 * nothing.
 * covers: src/cli/chat/chat_talk.c */
#define _GNU_SOURCE
#include "cli/chat/chat_state.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const chat_talk *a, const chat_talk *b)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const chat_message *x = &a->msg[i], *y = &b->msg[i];
        if (x->role != y->role || x->len != y->len || memcmp(x->text, y->text, x->len) != 0) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chat_talk t = { 0 }, again = { 0 };
    chat_params p = { .limit = -1 }, q = { .limit = -1 };
    char *model = NULL, *other = NULL;
    hone_error e = { 0 };
    if (!*ff_dir) ff_begin();
    hone_sampler_defaults(&p.sampling);
    q = p;
    FF_MUST(hn_talk_push(&t, CHAT_USER, "kept", 4));
    const char *path = ff_put("talk.json", data, size);
    hone_status st = hn_chat_load(path, &t, &p, &model, &e);
    if (st != HONE_OK) {
        FF_MUST(!model && strstr(e.message, path) && t.n == 1 && t.msg[0].len == 4 && memcmp(&p, &q, sizeof p) == 0);
    } else {
        FF_MUST(model);
        for (size_t i = 0; i < t.n; i++)
            FF_MUST((unsigned)t.msg[i].role < CHAT_ROLES && t.msg[i].text[t.msg[i].len] == 0);
        for (size_t i = 1; i < t.n; i++) FF_MUST(t.msg[i].role != CHAT_SYSTEM);
        FF_MUST(hn_chat_save(path, &t, &p, model, &e) == HONE_OK);
        FF_MUST(hn_chat_load(path, &again, &q, &other, &e) == HONE_OK && same(&t, &again) && strcmp(model, other) == 0);
        FF_MUST(hn_talk_set_system(&t, size % 2 ? "be" : NULL, size % 2 ? 2 : 0));
        hn_talk_last(&t);
        char *shown = NULL;
        size_t n_shown = 0;
        FILE *f = open_memstream(&shown, &n_shown);
        FF_MUST(f);
        hn_chat_params_print(f, &p);
        FF_MUST(fclose(f) == 0 && n_shown > 0);
        free(shown);
    }
    hn_talk_free(&t);
    hn_talk_free(&again);
    free(model);
    free(other);
    return 0;
}
