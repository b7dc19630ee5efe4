/* The forms of forms.h: a list, the one used last at its head. What is used by nobody and is not among the first few
 * goes. */
#include "serve/forms.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT = 4 }; /* beside those in use; the masks of each are at most 16 MiB */

typedef struct form {
    struct form *next;
    char *key; /* [n] what it is made of */
    size_t n;
    hone_grammar *grammar;
    int users;
} form;

struct hn_forms {
    pthread_mutex_t lock;
    form *first; /* guarded by lock */
};

hn_forms *hn_forms_new(void)
{
    hn_forms *f = calloc(1, sizeof *f);
    if (f) pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void free_form(form *x)
{
    if (!x) return;
    hone_grammar_free(x->grammar);
    free(x->key);
    free(x);
}

void hn_forms_free(hn_forms *f)
{
    if (!f) return;
    while (f->first) {
        form *x = f->first;
        f->first = x->next;
        free_form(x);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* All that the grammar depends on, each text behind its length. NULL: out of memory. */
static char *key_of(const hone_grammar_params *p, size_t *n)
{
    size_t all = 64 + p->len;
    for (size_t i = 0; i < p->n_choices; i++) all += 32 + p->choices[i].len;
    char *key = malloc(all);
    if (!key) return NULL;
    size_t at = (size_t)snprintf(key, all, "%d %d %d %zu:", (int)p->kind, p->strict, p->compact, p->len);
    if (p->len) memcpy(key + at, p->text, p->len);
    at += p->len;
    for (size_t i = 0; i < p->n_choices; i++) {
        at += (size_t)snprintf(key + at, all - at, " %zu:", p->choices[i].len);
        if (p->choices[i].len) memcpy(key + at, p->choices[i].ptr, p->choices[i].len);
        at += p->choices[i].len;
    }
    *n = at;
    return key;
}

/* The one of this key, at the head from now on, with a user more; under the lock. NULL: there is none. */
static form *find(hn_forms *f, const char *key, size_t n)
{
    form **at = &f->first;
    while (*at && ((*at)->n != n || memcmp((*at)->key, key, n) != 0)) at = &(*at)->next;
    form *x = *at;
    if (!x) return NULL;
    *at = x->next;
    x->next = f->first;
    f->first = x;
    x->users++;
    return x;
}

/* What is beyond the kept and used by nobody; taken out, under the lock. */
static form *take_old(hn_forms *f)
{
    form *old = NULL;
    int n = 0;
    for (form **at = &f->first; *at; n++) {
        form *x = *at;
        if (n < KEPT || x->users) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        x->next = old;
        old = x;
    }
    return old;
}

static void free_all(form *x)
{
    while (x) {
        form *next = x->next;
        free_form(x);
        x = next;
    }
}

hone_status hn_forms_take(hn_forms *f, const hone_grammar_params *p, hone_grammar **out, hone_error *err)
{
    size_t n = 0;
    *out = NULL;
    form *mine = calloc(1, sizeof *mine);
    if (!mine || !(mine->key = key_of(p, &n))) {
        free(mine);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the form of an answer");
    }
    mine->n = n;
    pthread_mutex_lock(&f->lock);
    form *x = find(f, mine->key, n), *old = NULL;
    pthread_mutex_unlock(&f->lock);
    if (!x) { /* outside of the lock: it may take a while */
        hone_status st = hone_grammar_compile(&mine->grammar, p, err);
        if (st != HONE_OK) {
            free_form(mine);
            return st;
        }
        pthread_mutex_lock(&f->lock);
        x = find(f, mine->key, n);
        if (!x) {
            mine->next = f->first;
            mine->users = 1;
            x = f->first = mine;
            mine = NULL;
        }
        old = take_old(f);
        pthread_mutex_unlock(&f->lock);
    }
    *out = x->grammar;
    free_all(old);
    free_form(mine);
    return HONE_OK;
}

void hn_forms_give(hn_forms *f, hone_grammar *g)
{
    if (!g) return;
    pthread_mutex_lock(&f->lock);
    form *x = f->first;
    while (x && x->grammar != g) x = x->next;
    if (x) x->users--;
    form *old = take_old(f);
    pthread_mutex_unlock(&f->lock);
    free_all(old);
}
