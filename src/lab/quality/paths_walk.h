/* What the files of the ways share: what is walked, how a step of a way is made, how its rows of logits are compared.
 * paths.c has the steps and the ways in one session, paths_sessions.c those that need a session of their own,
 * paths_drawn.c those whose places are drawn, paths_adapted.c those of adapters, paths_scheduler.c that of many
 * requests. */
#ifndef HN_PATHS_WALK_H
#define HN_PATHS_WALK_H

#include "lab/quality/paths.h"

enum {
    HN_WALK_FIRST = 600,    /* the first call appends so many: more than a chunk of the engine's */
    HN_WALK_ROOM_WIDE = 64, /* rows of logits of one call, of a wide vocabulary */
    HN_WALK_BACK_SPAN = 49, /* how far a sequence that went back goes from there */
    HN_WALK_STEP = 6,       /* by so many positions */
    HN_WALK_FAR_DOWN = 27 * HN_Q_PIECE,
    HN_WALK_CACHE_CTX = 72 /* with other types of cache */
};

typedef struct hn_walk_seen { /* what some way said of a position */
    uint64_t bits;
    const char *way; /* NULL: nobody yet */
    int32_t counted; /* by a way that goes the same places each time: in which attempt; 0: by none */
} hn_walk_seen;

typedef struct hn_walk {
    hn_paths *out;
    const hn_paths_params *p;
    hone_model_info info;
    int32_t *ids; /* [n + n_more]: the prompt, and what is generated behind it */
    int32_t n, n_more;
    bool small;         /* every way goes all of it */
    bool windows;       /* some layers have one */
    int32_t back;       /* BACK or BACK_NEAR */
    hn_walk_seen *seen; /* [n + n_more] */
    float *logits;      /* [room, n_vocab] */
    int32_t room;
    hone_token *batch; /* [n + HN_Q_SEQS · HN_Q_PIECE] */
    const char *way;   /* being walked, for the words */
    char way_threads[48], way_more[48], way_drawn[48], way_narrow[64];
    bool all_rows; /* are asked for, of what hn_walk_call() runs */
    hone_session *s;
    hone_snapshot *deep;  /* HN_WALK_FAR_DOWN positions of the prompt, for other sessions; NULL: not made */
    hone_snapshot *far;   /* HN_Q_DEEP positions, between two sessions of hn_walk_far_beyond */
    bool of_plain;        /* the session's model is another one: of plain weights */
    unsigned char *here;  /* [n]: drawn places, at which a token comes alone, too */
    bool ask_here;        /* their rows are asked for */
    bool drawn;           /* what is walked is drawn: rows are not counted, since results of the same count as many */
    int32_t attempt;      /* 2: of a way that may be given up and begun again with less memory */
    uint64_t n_drawn;     /* numbers */
    int32_t some_threads; /* that were drawn last */
    int32_t n_widths;     /* sessions wider than the prompt needs */
    bool wide;            /* a session opened now is one, if it answers alike there: */
    hone_snapshot *probe; /* fits it then, as it does not where a model turns otherwise in long contexts */
    int32_t widest;       /* it fitted */
    hn_q_way narrow;      /* a session with no position to spare, drawn */
    bool outer_asked;     /* what needs no session, while a way had one thread */
    int32_t n_all;        /* sequences of the session that has many */
    hn_sha256 bits;       /* the hash's half of logits */
    hone_error *err;
} hn_walk;

/* ---- steps of a way (paths.c) --------------------------------------------------------------------- */

void hn_walk_left_out(hn_walk *w, const char *what);
void hn_walk_row(hn_walk *w, int32_t pos, const float *x); /* a row of logits behind position pos */
/* The first k tokens of the batch. Those that want logits are of sequences that hold the prompt. */
hone_status hn_walk_run(hn_walk *w, int32_t k);
/* ids [from, to) of the prompt in one call to sequence seq, with neighbours' tokens before and behind: `beside` of
 * each of two other sequences. */
hone_status hn_walk_call(hn_walk *w, int32_t seq, int32_t from, int32_t to, int32_t beside);
/* Positions [from, to) one after the other, as generation does; every third through the batch. */
hone_status hn_walk_singles(hn_walk *w, int32_t seq, int32_t from, int32_t to);
hone_status hn_walk_crumbs(hn_walk *w);
/* hn_walk_call(), stopped before layer n_layer of all its chunks, and made again. */
hone_status hn_walk_call_again(hn_walk *w, int32_t seq, int32_t from, int32_t to, int32_t n_layer);
hone_status hn_walk_empty(hn_walk *w);
hone_status hn_walk_ask_around(hn_walk *w, hone_error *err); /* what needs no session */
hone_status hn_walk_embed_again(hn_walk *w); /* a long text, in another session: the same vector as before */
static inline bool hn_walk_over(const hn_walk *w) { return w->out->verdict.state == HN_INVALID; }

/* Every so many positions all ways are asked. */
static inline int32_t hn_walk_apart(const hn_walk *w) { return w->small && w->room > HN_WALK_ROOM_WIDE ? 11 : 100; }

/* ---- sessions (paths_sessions.c) -------------------------------------------------------------------- */

hone_status hn_walk_with(hn_walk *w, const char *name, const hn_q_way *way, hone_status (*go)(hn_walk *w));
hone_status hn_walk_among_many(hn_walk *w);
hone_status hn_walk_in_two_sessions(hn_walk *w);
hone_status hn_walk_other_sessions(hn_walk *w, const hn_q_way *of_nine);
hone_status hn_walk_on_caches(hn_walk *w);

/* ---- adapters (paths_adapted.c) ---------------------------------------------------------------------- */

hone_status hn_walk_mixed_adapters(hn_walk *w);

/* ---- requests (paths_scheduler.c) -------------------------------------------------------------------- */

hone_status hn_walk_through_a_scheduler(hn_walk *w);
hone_status hn_walk_in_a_crowd(hn_walk *w); /* of a small model */

/* ---- what is drawn (paths_drawn.c) ------------------------------------------------------------------- */

/* A number below n, another one each run. */
int32_t hn_walk_draw(hn_walk *w, int32_t n);
void hn_walk_draw_places(hn_walk *w);
/* A width for a session that needs n_ctx positions: beyond all that the prompt needs, of another size each time. */
int32_t hn_walk_draw_width(hn_walk *w, int32_t n_ctx);
/* A chunk that is none of the others, and a count of threads: one more than asked, or up to eight. */
void hn_walk_draw_settings(hn_walk *w, hn_q_way *way);
/* `of` holds the prompt: two forks of it go different ways at the end of a page. */
hone_status hn_walk_forks_that_part(hn_walk *w, int32_t of, int32_t fork, int32_t other);
/* `to` positions are kept; no sequence finds more of them than it has in common. seq is empty behind it. */
hone_status hn_walk_prefixes_of_others(hn_walk *w, int32_t seq, int32_t to);
/* A text of which a sequence holds all but its last id, which is another: of even and odd lengths. All are empty
 * behind it. */
hone_status hn_walk_other_ends(hn_walk *w, int32_t seq);
/* A sequence that was cut, and went on otherwise, is not taken back to what it was before: of a state or a window,
 * which are remembered. Both are empty behind it. */
hone_status hn_walk_old_places(hn_walk *w, int32_t seq, int32_t other);
/* Whole pages are kept, and who holds the last of them with what is kept cuts it there and goes on otherwise: it is
 * found as it was. All are empty behind it. */
hone_status hn_walk_kept_page(hn_walk *w, int32_t seq, int32_t other);
/* Batches of any sequences, counts and rows; before them a long call. */
hone_status hn_walk_in_drawn_batches(hn_walk *w);
/* Beyond the prompt. */
hone_status hn_walk_far_beyond(hn_walk *w);

#endif
