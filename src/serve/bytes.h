/* bytes: text that grows, and JSON written into it by hand. What could not be kept for want of memory is remembered:
 * nothing that follows is added, and hn_bytes_ok says so. Knows nothing of what is written. */
#ifndef HN_SERVE_BYTES_H
#define HN_SERVE_BYTES_H

#include "base/base.h"

/* All zeros: empty. p [n], no NUL behind it; p may be NULL where n is 0. */
typedef struct hn_bytes {
    char *p;
    size_t n, cap;
    bool lost; /* out of memory: void */
} hn_bytes;

static inline bool hn_bytes_ok(const hn_bytes *b) { return !b->lost; }
void hn_bytes_free(hn_bytes *b); /* zeros then */
/* A copy with a NUL behind it; NULL: out of memory, here or before. */
char *hn_bytes_keep(const hn_bytes *b, hn_arena *a);

void hn_bytes_add(hn_bytes *b, const void *p, size_t n);
void hn_bytes_text(hn_bytes *b, const char *s);
void hn_bytes_printf(hn_bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A comma where something stands before that is no opening bracket, colon or comma. */
void hn_bytes_comma(hn_bytes *b);

/* s [n] between quotes; what is no UTF-8 becomes U+FFFD. s NULL: null. */
void hn_bytes_json(hn_bytes *b, const char *s, size_t n);
void hn_bytes_json_text(hn_bytes *b, const char *s);
/* The same without quotes, for strings that come in parts. */
void hn_bytes_escaped(hn_bytes *b, const char *s, size_t n);
void hn_bytes_int(hn_bytes *b, int64_t v);
/* The shortest digits that give v again, with a point or an exponent; null where v is no finite number. */
void hn_bytes_f64(hn_bytes *b, double v);
void hn_bytes_f32(hn_bytes *b, float v);
/* ,"name": and what the value is; the comma where one belongs. */
void hn_bytes_name(hn_bytes *b, const char *name);
void hn_bytes_text_member(hn_bytes *b, const char *name, const char *value);
void hn_bytes_int_member(hn_bytes *b, const char *name, int64_t value);
/* RFC 4648, with padding. */
void hn_bytes_base64(hn_bytes *b, const void *p, size_t n);

#endif
