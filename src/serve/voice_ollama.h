/* voice_ollama: between the bodies and the answers of ollama's API. */
#ifndef HN_SERVE_VOICE_OLLAMA_H
#define HN_SERVE_VOICE_OLLAMA_H

#include "serve/ask.h"

/* kind: CHAT is /api/chat, TEXT /api/generate, EMBED /api/embed, or /api/embeddings by a->voice; the ask may come to be
 * of another. */
bool hn_ollama_parse(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r);

#endif
