/* model_card: what the header of a GGUF file says of a model, for hone list and hone show: no weights are read, and
 * what is no model that hone runs has a card, too. Owns the choice of keys; strings are of the file. */
#ifndef HN_MODEL_CARD_H
#define HN_MODEL_CARD_H

#include "cli/cli.h"

typedef struct hn_model_card {
    hone_str family, name, kind, size; /* general.architecture, .name, .type, .size_label; ptr NULL: not there */
    hone_str licence, licence_name, licence_link, template, tokenizer;
    char type[24]; /* "Q4_K_M": as the file says, else what most of its bytes are */
    uint64_t n_params, n_bytes, n_ctx;
    int32_t n_parts;
} hn_model_card;

void hn_model_card_of(hn_model_card *c, const hone_file *f);
/* "3.21 B", "260 K" */
char *hn_count_words(char dst[24], uint64_t n);
/* "4.6 GiB", "12.3 MiB" */
char *hn_size_words(char dst[24], uint64_t bytes);

#endif
