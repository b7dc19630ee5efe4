/* lora_peft: what reading and writing of PEFT folders share. */
#ifndef HN_LORA_PEFT_H
#define HN_LORA_PEFT_H

#include "model/lora.h"

#define HN_PEFT_TEMPLATE "chat_template.jinja" /* of the conversations the adapter was trained on */

#endif
