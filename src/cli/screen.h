/* screen: an answer where somebody reads it, part by part. A terminal gets no character that steers it, reasoning
 * dimmed and apart from the answer; anything else gets the answer alone, its bytes as they are. Also the options that
 * decide on reasoning: whether a model does any (--think), and whether it is shown (--reasoning). */
#ifndef HN_SCREEN_H
#define HN_SCREEN_H

#include "base/shown.h"
#include "cli/cli.h"
#include "cli/wrap.h"

typedef struct hn_screen {
    bool tty;       /* stdout is a terminal */
    bool dim;       /* … with colours */
    bool mute;      /* --json: nothing is shown while it comes */
    bool reasoning; /* it is shown: on a terminal in its place, else on stderr */
    bool newline;   /* the last byte shown was one */
    bool dimmed;    /* the terminal's state */
    bool begun;     /* something was shown … */
    hone_part part; /* … and was this */
    bool answered;  /* some of it was the answer */
    bool hidden;    /* some reasoning was not shown, … */
    bool called;    /* … or a call */
    bool err_open;  /* a line of stderr is not ended */
    bool wraps;     /* lines of a terminal are broken between words */
    hn_shown shown;
    hn_wrap wrap;
} hn_screen;

void hn_screen_open(hn_screen *s, const hn_cli *cli, bool mute);
void hn_screen_begin(hn_screen *s);
bool hn_screen_show(hn_screen *s, const hone_reply_part *parts, size_t n); /* false: stdout has failed */
bool hn_screen_end(hn_screen *s);

/* Growing text; zero-initialise, free p. No NUL behind it. */
typedef struct hn_said {
    char *p;
    size_t n, cap;
} hn_said;
hone_status hn_said_add(hn_said *t, const char *s, size_t n, hone_error *err);

extern const hn_opt_group hn_group_reasoning; /* think, reasoning, chat-vars */
/* 0, or the exit code for a --reasoning that is neither show nor hide. */
int hn_cli_check_reasoning(const hn_cli *cli);
/* The variables for a template: those of --chat-vars and of `how` (--think; NULL: no word of it). *out is malloc'ed
 * (hone_free), NULL where there are none. p: the template to ask. */
hone_status hn_cli_chat_variables(const hn_cli *cli, const hone_model *m, const hone_chat_params *p, const char *how,
                                  char **out, hone_error *err);

#endif
