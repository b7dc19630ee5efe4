/* lora_peft: what reading and writing of PEFT folders share: names and the order of rows. */
#ifndef HN_LORA_PEFT_H
#define HN_LORA_PEFT_H

#include "model/lora.h"

#define HN_PEFT_TEMPLATE "chat_template.jinja" /* of the conversations the adapter was trained on */

/* Are the family's tensors modules of Hugging Face's? */
bool hn_peft_has_modules(const hone_model *m);
/* Heads of the rows of a tensor whose rows are in another order; 0: they are not. */
int32_t hn_peft_turned_heads(const hone_model *m, const char *tensor);
/* Rows of B from Hugging Face's order (to_gguf) or into it. */
void hn_peft_turn_rows(float *dst, const float *src, int64_t rows, int64_t cols, int32_t n_head, bool to_gguf);
/* "blk.3.attn_q.weight" → "model.layers.3.self_attn.q_proj"; false: PEFT has no name for it. */
bool hn_peft_module_of(char dst[96], const hone_model *m, const char *tensor);

#endif
