/* Fuzz target: the rules by which pre-tokenizers cut a text. The first byte says which of them; the rest is the text,
 * where what is no UTF-8 is left out. The pieces are the text, in order, none empty and none within a character.
 * covers: src/text/split.c */
#include "fuzz_file.h"
#include "text/text_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct progress {
    const char *text;
    size_t at, len;
} progress;

static bool take_piece(void *arg, const char *piece, size_t n)
{
    progress *p = arg;
    FF_MUST(piece == p->text + p->at && n > 0 && n <= p->len - p->at);
    FF_MUST(((unsigned char)piece[0] & 0xC0) != 0x80);
    p->at += n;
    return true;
}

/* Name number k of the list of them all. */
static void name_of(char name[40], unsigned k)
{
    const char *list = hn_pre_list();
    unsigned n = 1;
    for (const char *c = list; *c; c++) n += *c == ',';
    for (k %= n; k; k--) list = strchr(list, ',') + 2;
    size_t len = strcspn(list, ",");
    FF_MUST(len < 40);
    memcpy(name, list, len);
    name[len] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[40];
    hone_error e = { 0 };
    ff_in in = { data, size };
    name_of(name, ff_u8(&in));
    char *text = malloc(in.n + 1);
    FF_MUST(text);
    size_t n = 0;
    for (size_t i = 0, used; i < in.n; i += used) {
        if (hn_utf8_next(in.p + i, in.n - i, &used) < 0) continue;
        memcpy(text + n, in.p + i, used);
        n += used;
    }
    progress p = { text, 0, n };
    hone_status st = hn_pre_words(name, text, n, take_piece, &p, &e);
    FF_MUST(st == HONE_OK ? p.at == n : st == HONE_E_ARG && hn_pre_is_raw(hn_pre_find(name, strlen(name))));
    free(text);
    return 0;
}
