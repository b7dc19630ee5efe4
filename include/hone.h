/* hone: a local language-model engine. The public API; the only installed header.
 *
 * Conventions. Fallible functions return hone_status and, when `err` is not
 * NULL, describe the failure in it. Pointer arguments are borrowed for the call
 * unless the comment says otherwise. The library never exits, aborts or prints.
 * Shapes are written outermost first; ids are int32_t in [0, n_vocab).
 *
 * NULL. A pointer is needed unless its comment says that it may be NULL, also
 * one in a struct of parameters and each entry of an array of pointers. Where a
 * needed one is NULL, functions with a status return HONE_E_ARG with the message
 * "FUNCTION: PARAMETER is NULL; expected …"; those that return something else
 * return what their comment says; those that return nothing do nothing. An array
 * may be NULL where its number of elements is 0. err may always be NULL, and so
 * may what is handed to a callback (arg). Free and close functions accept NULL
 * and do nothing.
 *
 * Numbers. A count below zero, an index, size, flag or enum that is out of range
 * is HONE_E_ARG, or HONE_E_CTX where it is a length that does not fit a session.
 *
 * Outputs. A call that fails, or has no answer, leaves in the outputs that it
 * was given: NULL in pointers, 0 in counts and lengths, zeros in structs, unless
 * its comment says otherwise. Buffers of the caller are not touched by
 * HONE_E_ARG, else hold anything.
 */
#ifndef HONE_H
#define HONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#define HONE_VERSION "0.1.0"

/* ---- errors ------------------------------------------------------------- */

typedef enum hone_status {
    HONE_OK = 0,
    HONE_E_ARG,         /* bad argument (a token id, a flag, a size) */
    HONE_E_IO,          /* open, read, write, map: errno text in the message */
    HONE_E_FORMAT,      /* malformed file or data */
    HONE_E_UNSUPPORTED, /* well-formed but not something hone runs */
    HONE_E_NOMEM,       /* out of memory, or more memory than the machine has */
    HONE_E_CTX,         /* does not fit the context; state unchanged */
    HONE_E_NUMERIC,     /* NaN or infinity where a number was needed */
    HONE_E_INTERRUPTED, /* stopped by request */
    HONE_E_NETWORK,
    HONE_E_BUSY /* no place in a queue now: try again later */
} hone_status;

typedef struct hone_error {
    hone_status code;
    char message[1024]; /* names file, tensor or key, expected and found; no newline */
    const char *file;   /* where in hone's sources it was born */
    int line;
} hone_error;

HONE_API const char *hone_version(void);              /* "0.1.0" */
HONE_API const char *hone_build_info(void);           /* compiler, flags, commit; one line */
HONE_API const char *hone_status_name(hone_status s); /* "HONE_E_ARG" …; "HONE_E_?": no status */

/* ---- files that change while they are in use -------------------------------- */

/* Models are mapped, not read: when one is cut short while it is in use, or its disk is gone, the thread that reads
 * it gets SIGBUS, in whichever function it is. hone installs no handler. A program that wants to say more than
 * "bus error" installs one (SA_SIGINFO) and asks here which file si_addr, addr, lies in:
 *   path    as it was opened; valid until that model or file is closed
 *   offset  of addr in the file, bytes
 *   size    of the file when it was opened, bytes
 * each of them may be NULL. Async-signal-safe. False: addr is in no file that hone has mapped; the fault is
 * another's. Nothing of the model can be used after the fault: say so, and end by _exit. */
HONE_API bool hone_mapped_file_at(const void *addr, const char **path, uint64_t *offset, uint64_t *size);

/* ---- context: worker threads and the kernel level ------------------------- */

typedef struct hone_context hone_context;

typedef struct hone_context_params {
    int32_t n_threads;       /* 0: HONE_THREADS or one per usable core; at most 1024 */
    const char *cpu;         /* NULL: HONE_CPU or the best level here; "scalar" "avx2" "avx_vnni" "avx512",
                                on Arm "scalar" "neon" "neon_dotprod" "neon_i8mm" */
    int32_t n_threads_batch; /* for batches of more than 4 tokens, as prompts are; 0: n_threads */
} hone_context_params;

/* One context runs one call at a time; use one per concurrent caller.
 * params may be NULL: all 0. HONE_E_ARG: unknown level. HONE_E_UNSUPPORTED: level this CPU lacks. */
HONE_API hone_status hone_context_new(hone_context **out, const hone_context_params *params, hone_error *err);
HONE_API void hone_context_free(hone_context *ctx);
HONE_API const char *hone_context_cpu(const hone_context *ctx); /* level in use; ctx NULL: "" */
HONE_API int32_t hone_context_threads(const hone_context *ctx); /* ctx NULL: 0, also below */
HONE_API int32_t hone_context_threads_batch(const hone_context *ctx);

/* ---- GGUF files: inspection ----------------------------------------------- */

typedef struct hone_file hone_file;
struct hone_progress; /* below */

/* Maps and validates a GGUF file, or a whole split set from any of its members.
 * Nothing of the tensor data is touched. */
HONE_API hone_status hone_file_open(hone_file **out, const char *path, hone_error *err);
HONE_API void hone_file_close(hone_file *f);

typedef enum hone_kv_type { /* GGUF value type ids */
                            HONE_KV_U8 = 0,
                            HONE_KV_I8,
                            HONE_KV_U16,
                            HONE_KV_I16,
                            HONE_KV_U32,
                            HONE_KV_I32,
                            HONE_KV_F32,
                            HONE_KV_BOOL,
                            HONE_KV_STRING,
                            HONE_KV_ARRAY,
                            HONE_KV_U64,
                            HONE_KV_I64,
                            HONE_KV_F64
} hone_kv_type;

typedef struct hone_str {
    const char *ptr;
    size_t len;
} hone_str; /* not NUL-terminated */

typedef struct hone_kv {
    hone_str key;
    hone_kv_type type;
    hone_kv_type elem_type; /* arrays only */
    uint64_t count;         /* elements; 1 for scalars */
    union {
        uint64_t u;
        int64_t i;
        double f;
        bool b;
        hone_str s;
    } v; /* scalars: widened by kind */
} hone_kv;

typedef struct hone_tensor_info {
    hone_str name;
    uint32_t type; /* GGUF type id */
    const char *type_name;
    int32_t n_dim;
    uint64_t ne[4];           /* fastest first, padded with 1 */
    uint64_t offset, n_bytes; /* in its file's data section */
    int32_t part;             /* which file of a split set */
} hone_tensor_info;

/* f NULL: 0 from each of these. */
HONE_API uint32_t hone_file_version(const hone_file *f); /* GGUF version */
HONE_API uint64_t hone_file_size(const hone_file *f);    /* bytes, all parts */
HONE_API int32_t hone_file_n_parts(const hone_file *f);
HONE_API uint64_t hone_file_n_kv(const hone_file *f);
HONE_API uint64_t hone_file_n_tensors(const hone_file *f);
/* Entry i, its strings borrowed, valid as long as f. f NULL or i out of range: *out is zeros with the key "". */
HONE_API void hone_file_kv(const hone_file *f, uint64_t i, hone_kv *out);
/* Element i of array entry kv; nested arrays give only type and count. False, *out as there: NULL, no array, or
 * out of range. */
HONE_API bool hone_file_kv_elem(const hone_file *f, uint64_t kv, uint64_t i, hone_kv *out);
/* Tensor i, its strings borrowed. f NULL or i out of range: *out is zeros with the names "". */
HONE_API void hone_file_tensor(const hone_file *f, uint64_t i, hone_tensor_info *out);
/* Index of a tensor by name, or -1, also where f or name is NULL. */
HONE_API int64_t hone_file_find_tensor(const hone_file *f, const char *name);
/* Elements [first, first+n) of tensor i, dequantized to f32, to dst [n]; first and n multiples
 * of the type's block (hone_type_block). */
HONE_API hone_status hone_file_read_f32(const hone_file *f, uint64_t i, uint64_t first, uint64_t n, float *dst,
                                        hone_error *err);
/* Reads all tensor data. HONE_E_NUMERIC: a NaN, an infinity or an invalid scale; names the
 * first tensor and element. */
HONE_API hone_status hone_file_check(const hone_file *f, hone_error *err);
/* As hone_model_identity, of any GGUF file. kept_only: nothing is read but what is kept; hex [65]
 * is "" where that is nothing. HONE_E_IO then: it cannot be read. */
HONE_API hone_status hone_file_identity(const hone_file *f, bool kept_only, char *hex, const struct hone_progress *pr,
                                        hone_error *err);
/* Block size in elements and bytes of a GGUF type id, and its name, each of which may be NULL; false: unknown. */
HONE_API bool hone_type_block(uint32_t type, uint32_t *elems, uint32_t *bytes, const char **name);

/* ---- models ---------------------------------------------------------------- */

typedef struct hone_model hone_model;

typedef struct hone_model_params {
    const char *tokenizer_pre; /* NULL: from the file; else overrides tokenizer.ggml.pre */
    bool vocab_only;           /* tokenizer only: no weights needed or checked */
    const char *packed; /* a packed file (hone_pack): NULL: HONE_PACKED, else "auto"; "auto": MODEL.hpack if it is
                                  there and belongs to the model, of it those types that this machine reads no slower
                                  than the model's, at the level of HONE_CPU: measured once, by the first open, for
                                  up to seconds, with all cores and 128 MiB, and kept in the state folder; "off"; else
                                  a file, which then must fit and is used for all it has */
    const struct hone_progress
        *progress;           /* of checking a packed file and its model before their first use; may be NULL */
    const char *ignore_keys; /* "key,key": metadata to run without where hone would refuse the model for it, although
                                  it may change the answer; NULL: HONE_IGNORE_KEYS */
    int32_t n_answers; /* sequences that are run at once; above 1 "auto" means the layout that is faster for several
                          rows and one, on all cores, together */
} hone_model_params;

typedef struct hone_model_info {
    const char *arch; /* "llama" … */
    const char *name; /* general.name or "" */
    const char *type; /* most frequent weight type, or file type: "Q4_K_M" */
    int32_t n_vocab, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, n_ctx_train;
    uint64_t n_params, n_bytes; /* weights, as they are mapped (packed or plain) */
    uint64_t bytes_per_token;   /* weight bytes read to decode one token, as often as they are read */
    uint64_t fingerprint;       /* of metadata and tensor directory */
    uint64_t state_bytes;       /* of the states of one sequence, whatever its length; 0: it has none */
    bool has_tokenizer;
    const char *packed_path; /* the packed file in use, for all or some types, or NULL: weights are read from the model
                                itself */
    const char *packed_note; /* why, in a few words; begins with "mixed: " where it is for some types */
    uint64_t packed_bytes;   /* of n_bytes, those in the packed file */
    bool packed_compared;    /* new here, or copied or touched: all of the packed file and of the model was checked just
                                now */
    bool packed_ignored;     /* there is a packed file, but it does not serve: packed_note is a warning */
    const char *ignored_keys; /* "key = value, …": what ignore_keys leaves out of this model; "": nothing. To be told */
    const char *formula_note; /* what of the metadata is done otherwise than another program may do it; "": nothing */
    int32_t n_window;         /* positions the model was trained to look back (attention.sliding_window; n_ctx_train is
                                 no more then); hone looks back over everything: beyond it answers differ; 0: none */
    bool recurrent;           /* a sequence is its state alone: it takes no more memory as it grows */
    bool causal;              /* it has a next token; else it reads whole texts, for hone_embed alone */
    int32_t pooling;          /* a hone_pooling, as the file says; HONE_POOL_FILE: it does not */
    int32_t n_class;          /* scores of its classifier; 0: it has none */
} hone_model_info;

/* Maps the file, binds and checks every tensor's shape; touches no weights.
 * params may be NULL. HONE_E_UNSUPPORTED also: metadata of the family that hone does not know or does not do. */
HONE_API hone_status hone_model_open(hone_model **out, const char *path, const hone_model_params *params,
                                     hone_error *err);
HONE_API void hone_model_close(hone_model *m);
HONE_API void hone_model_get_info(const hone_model *m, hone_model_info *out); /* m NULL: zeros */
/* The model's identity: 64 hex digits, a SHA-256 over metadata, tensor directory and all tensor data. Equal for
 * copies, whatever they are called; another for any other content. The first call reads the whole file with all cores
 * (pr, which may be NULL, is told); what was found is kept in $XDG_STATE_HOME/hone/known, else
 * ~/.local/state/hone/known, for as long as the file keeps its device, inode, size, times of change and a sample of its
 * bytes. HONE_E_IO: the file is being changed. HONE_E_INTERRUPTED: pr asked to stop. hex [65] is "" on failure. */
HONE_API hone_status hone_model_identity(const hone_model *m, char *hex, const struct hone_progress *pr,
                                         hone_error *err);

/* ---- tokenizer ---------------------------------------------------------------- */

enum {
    HONE_TOK_SPECIAL = 1, /* recognise special tokens written in the text */
    HONE_TOK_ADD = 2,     /* add BOS/EOS as the file says: the text is whole */
    HONE_TOK_ADD_BOS = 4  /* add BOS as the file says: the text goes on, as a prompt does */
};

/* Encodes text [len]. *ids is malloc'ed (caller frees with hone_free), also where *n is 0. HONE_E_ARG: len more than
 * 2^30 - 1, or unknown flags. HONE_E_UNSUPPORTED: no tokenizer, or one that hone does not run. */
HONE_API hone_status hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids,
                                   size_t *n, hone_error *err);
/* Bytes of one token: borrowed, valid as long as m; length in *len. Control tokens
 * give their text when special is true, else nothing. NULL: id out of range, no tokenizer, m or len NULL. */
HONE_API const char *hone_token_piece(const hone_model *m, int32_t id, bool special, size_t *len);
/* Whole-sequence decoding of ids [n]; *text is malloc'ed and NUL-terminated (length in *len). HONE_E_ARG: bad id. */
HONE_API hone_status hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                     size_t *len, hone_error *err);
HONE_API bool hone_token_is_eog(const hone_model *m, int32_t id); /* ends generation; false also: NULL, bad id */
/* Kind of a token in the vocabulary; UNKNOWN also: NULL, bad id. */
typedef enum hone_token_class {
    HONE_TOKEN_UNKNOWN,
    HONE_TOKEN_NORMAL,
    HONE_TOKEN_CONTROL, /* structures a prompt: has no text of its own */
    HONE_TOKEN_USER,    /* added whole to the vocabulary; recognised in plain text */
    HONE_TOKEN_BYTE,    /* one byte, for text that no other token has */
    HONE_TOKEN_UNUSED   /* has no text */
} hone_token_class;
HONE_API hone_token_class hone_token_kind(const hone_model *m, int32_t id);
HONE_API int32_t hone_token_bos(const hone_model *m); /* -1: none, or m is NULL */
HONE_API int32_t hone_token_eos(const hone_model *m); /* -1: none, or m is NULL */
/* Tokens that a model was taught to fill gaps with: PREFIX text SUFFIX text MIDDLE is followed by what is missing. */
typedef enum hone_fim {
    HONE_FIM_PREFIX,
    HONE_FIM_SUFFIX,
    HONE_FIM_MIDDLE,
    HONE_FIM_PAD,
    HONE_FIM_REPOSITORY, /* before a repository's name */
    HONE_FIM_FILE,       /* before each file of it */
    HONE_N_FIM
} hone_fim;
HONE_API int32_t hone_token_fim(const hone_model *m, hone_fim which); /* -1: none, no such, or m is NULL */
HONE_API void hone_free(void *p);

typedef struct hone_span {
    size_t begin, end;
} hone_span; /* bytes [begin, end) of a text */

/* As hone_tokenize; *spans, malloc'ed as well: for each id the bytes of text it came from. They ascend; what
 * was added stands nowhere (begin == end). Several tokens of one character that a tokenizer normalises or
 * spells in bytes have all of it; what it drops belongs to no token, or to the one around it. */
HONE_API hone_status hone_tokenize_spans(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids,
                                         hone_span **spans, size_t *n, hone_error *err);

/* Streaming decode: bytes of tokens in, complete characters out. Holds back an
 * unfinished UTF-8 sequence and any prefix of a stop string. m must outlive it; stops [n_stops], at most
 * 65536 and none of them empty, are copied. */
typedef struct hone_stream hone_stream;
HONE_API hone_status hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                     hone_error *err);
HONE_API void hone_stream_free(hone_stream *s);
/* *text, *len: what may be shown now (valid until the next call), on failure "" and 0. *stopped: a stop
 * string was completed; text ends before it. HONE_E_ARG: bad id, which changes nothing. */
HONE_API hone_status hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                      hone_error *err);
/* What was held back, as the text ends here. */
HONE_API hone_status hone_stream_flush(hone_stream *s, const char **text, size_t *len, hone_error *err);

/* ---- chat templates -------------------------------------------------------------- */

typedef struct hone_chat_params {
    const char *messages;  /* JSON array of {"role", "content", …}; content a string, null or text parts; needed */
    const char *tools;     /* JSON array of tool descriptions; NULL: none */
    const char *variables; /* JSON object of further template variables (enable_thinking …); NULL: none */
    const char *chat_template;  /* NULL: the model's own; the name of a format ("chatml" …) or Jinja source */
    const char *now;            /* "2026-02-03T04:05:06" or …06+01:00, for templates that ask; NULL: local time */
    bool add_generation_prompt; /* end with the beginning of an answer */
    bool trust_input;           /* let messages spell control tokens: only for texts you wrote yourself */
    bool continue_final;        /* the last message is an answer that has begun: the text ends behind its content */
} hone_chat_params;

typedef struct hone_chat_text {
    char *text; /* NUL-terminated */
    size_t len;
    hone_span *input; /* [n_input] ascending: what came from messages, tools and variables, not from the template */
    size_t n_input;
} hone_chat_text;

/* Renders a conversation as the model's template wants it: content parts, null contents and the
 * arguments of tool calls are first brought into the shape that template takes. m may be NULL with
 * chat_template. HONE_E_ARG: malformed messages, or the template refuses them (its words in the
 * message). HONE_E_FORMAT: faulty template, with line and column. HONE_E_UNSUPPORTED: the file has no
 * template, or the template takes no tools. Free out with hone_chat_text_free. */
HONE_API hone_status hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *out,
                                      hone_error *err);
HONE_API void hone_chat_text_free(hone_chat_text *t); /* what is in *t, which is zeros then */
/* The same as token ids, with one BOS where the model wants one. Control tokens are recognised only
 * where the template wrote them; the rest is tokenized as ever. *ids is malloc'ed (hone_free). m is needed. */
HONE_API hone_status hone_chat_tokenize(const hone_model *m, const hone_chat_params *p, int32_t **ids, size_t *n,
                                        hone_error *err);
/* Where the messages end in ids [n], which hone_chat_tokenize made of p: what follows begins an answer, and in the next
 * turn something else may stand there (thoughts are left out of what was said before). *mark: ids up to there; n where
 * p->add_generation_prompt is false. Fails as hone_chat_tokenize does. */
HONE_API hone_status hone_chat_mark(const hone_model *m, const hone_chat_params *p, const int32_t *ids, size_t n,
                                    size_t *mark, hone_error *err);
/* Source of the model's template, of the one for tools where tools is true and there is one; borrowed, valid as long
 * as m. HONE_E_UNSUPPORTED: there is none. HONE_E_FORMAT: it is the name of a format that hone does not know. */
HONE_API hone_status hone_chat_template(const hone_model *m, bool tools, hone_str *source, hone_error *err);
/* Renders any template, source [len], with the variables of a JSON object (context) and nothing else. name: for
 * messages; *text is malloc'ed and NUL-terminated, its length in *n. now as above, it may be NULL. */
HONE_API hone_status hone_template_render(const char *source, size_t len, const char *name, const char *context,
                                          const char *now, char **text, size_t *n, hone_error *err);

/* ---- answers: reasoning, channels, the end of a turn ------------------------------ */

/* What a part of an answer is. Calls of tools come as the text a model wrote, or, where hone_reply_params has tools, as
 * a name, its arguments as JSON text in any number of pieces, and an end. */
typedef enum hone_part {
    HONE_PART_TEXT,       /* the answer */
    HONE_PART_REASONING,  /* thoughts before it */
    HONE_PART_COMMENTARY, /* said on the way to calls, for the user (gpt-oss) */
    HONE_PART_CALL,       /* a call of a tool, as it was written */
    HONE_PART_CALL_NAME,  /* a call begins: the name of the tool */
    HONE_PART_ARGUMENTS,  /* more of the JSON text of its arguments */
    HONE_PART_CALL_END    /* and it ends; no text. Not there where an answer is cut inside a call */
} hone_part;

typedef struct hone_reply_part {
    hone_part part;
    const char *text; /* [len] whole characters, no NUL behind them */
    size_t len;
    int32_t call;   /* of CALL_NAME, ARGUMENTS and CALL_END: which call, from 0; else -1 */
    const char *id; /* of CALL_NAME: the id of the call, the model's own where its format has one; else NULL */
    /* Of TEXT, COMMENTARY and CALL: [n_tokens] numbers of the tokens that the text or a part of it came from, in the
     * order they were pushed, from 0; but for those that such a part before it has named. NULL: none. */
    const int32_t *tokens;
    size_t n_tokens;
} hone_reply_part;

typedef enum hone_reply_end {
    HONE_REPLY_GOES_ON,
    HONE_REPLY_TURN, /* the model ended its turn */
    HONE_REPLY_STOP  /* one of the caller's stop strings was completed */
} hone_reply_end;

/* How a template marks the parts of an answer and its end. Found out by rendering small conversations with it; constant
 * afterwards, shared between threads. Of p its template, variables and time are read; p->messages may be NULL. m must
 * outlive it; it may be NULL with p->chat_template, to look at a template: answers need a model. HONE_E_UNSUPPORTED,
 * HONE_E_FORMAT: as hone_chat_render. */
typedef struct hone_chat_format hone_chat_format;
HONE_API hone_status hone_chat_format_new(hone_chat_format **out, const hone_model *m, const hone_chat_params *p,
                                          hone_error *err);
HONE_API void hone_chat_format_free(hone_chat_format *f);
/* What was found, one JSON object, for people and logs; valid as long as f. NULL: f is. */
HONE_API const char *hone_chat_format_json(const hone_chat_format *f);

/* The variables (JSON object, malloc'ed: hone_free) with which the template of p makes the model reason or not: p's own
 * and the template's switch. how: "on", "off", or an effort: "low", "medium", "high", … HONE_E_ARG: the template has no
 * such switch; the message says which it has. */
HONE_API hone_status hone_chat_think(const hone_model *m, const hone_chat_params *p, const char *how, char **variables,
                                     hone_error *err);

/* One answer, token by token. prompt: what was rendered for it, which may have begun with the reasoning; NULL: nothing
 * is begun. stops: as of hone_stream_new; what ends a turn need not be among them. f must outlive it. */
typedef struct hone_reply hone_reply;
HONE_API hone_status hone_reply_new(hone_reply **out, const hone_chat_format *f, const hone_chat_text *prompt,
                                    const char *const *stops, size_t n_stops, hone_error *err);
typedef struct hone_grammar hone_grammar; /* below */
/* The same, with tools that may be called and forms that the answer must have. */
typedef enum hone_tool_choice {
    HONE_TOOLS_AUTO = 0, /* text or calls, as the model likes */
    HONE_TOOLS_NONE,     /* text; what looks like a call is text */
    HONE_TOOLS_REQUIRED  /* one call at least, and no text */
} hone_tool_choice;
typedef struct hone_reply_params {
    const hone_chat_format *format; /* needed */
    const hone_chat_text *prompt;   /* as above; may be NULL */
    const char *const *stops;       /* [n_stops] */
    size_t n_stops;
    const char *tools; /* JSON array as of hone_chat_params; NULL: calls come as they were written */
    hone_tool_choice tool_choice;
    const char *const *names; /* [n_names] of tools that may be called; none: all */
    size_t n_names;
    bool one_call;            /* not more than one call */
    bool marks_as_text;       /* reasoning and the tags around it are text */
    hone_grammar *form;       /* of the answer's text, from where reasoning ends; held; NULL: any */
    int32_t reasoning_budget; /* tokens of reasoning, then its end must come; below 0: no limit */
    uint64_t id_seed;         /* ids of calls depend on it, and on nothing else */
} hone_reply_params;
/* HONE_E_ARG: the tools are malformed, a name is not among them. HONE_E_UNSUPPORTED: the schema of a tool that is
 * strict cannot be enforced; its JSON pointer is named. */
HONE_API hone_status hone_reply_open(hone_reply **out, const hone_reply_params *p, hone_error *err);
HONE_API void hone_reply_free(hone_reply *r);
/* *parts [*n]: what may be shown now, in order, valid until the next call; marks are not among it. *end: whether the
 * turn ended with this token; what comes behind is ignored. HONE_E_ARG: bad id, or one that hone_reply_mask did not
 * allow, which changes nothing. */
HONE_API hone_status hone_reply_push(hone_reply *r, int32_t id, const hone_reply_part **parts, size_t *n,
                                     hone_reply_end *end, hone_error *err);
/* Which tokens may come next: *all, or bits of allowed as of hone_matcher_mask. No bit set: the vocabulary lacks what
 * the form needs. On failure *all is false and allowed is not to be used. */
HONE_API hone_status hone_reply_mask(hone_reply *r, uint64_t *allowed, size_t n_words, bool *all, hone_error *err);
/* The same where the answer's form is to be whole after at most `left` more tokens, as of hone_matcher_mask_within;
 * calls that a model begins by itself, and reasoning, are not cut short. */
HONE_API hone_status hone_reply_mask_within(hone_reply *r, int64_t left, uint64_t *allowed, size_t n_words, bool *all,
                                            hone_error *err);
/* The stop string that ended it, perhaps one that hone_reply_flush found in what was held back; NULL: none did, or r
 * is NULL. Borrowed from r. */
HONE_API const char *hone_reply_stop(const hone_reply *r);
/* So many of the tokens that were pushed, the first ones, stand in no part that is to come. 0: r is NULL. */
HONE_API int32_t hone_reply_settled(const hone_reply *r);
/* What the caller should know, or "": schemas of tools that are not enforced. Borrowed from r. NULL: r is. */
HONE_API const char *hone_reply_notes(const hone_reply *r);
/* What was held back, as the answer ends here. */
HONE_API hone_status hone_reply_flush(hone_reply *r, const hone_reply_part **parts, size_t *n, hone_error *err);

/* ---- sessions: KV cache, batches, logits --------------------------------------- */

typedef struct hone_session hone_session;

/* Q8_0: 8-bit codes with an f16 scale per 32 dims of a head, about half of F16's memory;
 * logits move by about 6e-4 of their range. */
typedef enum hone_kv_cache_type { HONE_CACHE_F16 = 0, HONE_CACHE_F32 = 1, HONE_CACHE_Q8_0 = 2 } hone_kv_cache_type;

typedef struct hone_session_params {
    int32_t n_ctx;   /* positions per sequence; 0: min(n_ctx_train, 4096), recurrent models: as many as there are */
    int32_t n_seq;   /* sequences; 0: 1 */
    int32_t n_chunk; /* tokens per forward pass; 0: 512 */
    hone_kv_cache_type cache;
    bool allow_paging;     /* run even if the weights, and the cache beside them, do not fit this machine's memory */
    int32_t n_checkpoints; /* models that recur or have windows: places remembered by hone_seq_checkpoint; 0: 8 */
    uint64_t cache_budget; /* bytes that all sequences together may come to hold: keys, values, states; 0: what they
                              can ask for at most, or is available now; more than that: for hone_seq_keep */
    int32_t n_kept_states; /* recurrent models: states that hone_seq_keep may keep, on top; 0: none */
} hone_session_params;

/* Reserves address space for what sequences hold, and allocates all scratch; ctx and m must outlive the session. Memory
 * is used as sequences grow. params may be NULL: all 0.
 * HONE_E_ARG: a number out of range, a model opened for its vocabulary only.
 * HONE_E_NOMEM: the weights read for each token exceed the machine's memory (every
 * token would come from disk; see allow_paging), or one sequence of n_ctx positions (where there is no cache_budget)
 * and scratch do not fit beside them; names the bytes needed and available. */
HONE_API hone_status hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m,
                                      const hone_session_params *params, hone_error *err);
HONE_API void hone_session_free(hone_session *s);

typedef struct hone_token {
    int32_t id, pos, seq;
    bool want_logits;
} hone_token;

/* Runs n_tok tokens, of any sequences, extending them. Within a sequence,
 * positions must continue without gaps. Split into chunks as needed; the result
 * does not depend on the chunk or the company.
 *   tokens [n_tok]
 *   logits receives [n_wanted, n_vocab] f32 in batch order, where n_wanted counts
 *          tokens with want_logits; may be NULL when there are none
 * HONE_E_ARG: bad id, seq or pos. HONE_E_CTX: beyond n_ctx; caches unchanged.
 * HONE_E_NOMEM: the new positions do not fit the session's cache_budget; nothing changes.
 * HONE_E_NUMERIC: a key or value that the cache does not hold (f16: beyond 65504, q8_0: beyond 8319008), or a logit
 * that is no finite number; names layer, position and value. Lengths are as before the call, and logits void; only
 * a recurrent state that had no copy (no abort function, or up to 4 tokens) goes back to its furthest checkpoint,
 * else to nothing: hone_seq_length tells. */
HONE_API hone_status hone_run_batch(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits,
                                    hone_error *err);

/* Appends ids [n_tok], at least 1, to a sequence. *logits: [n_vocab] for the last one,
 * owned by s until its next call. Fails as hone_run_batch does. */
HONE_API hone_status hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n_tok, const float **logits,
                                 hone_error *err);

/* Makes a sequence hold ids [n], at least 1, and nothing else: what it has of them is kept, what other sequences of its
 * scope and adapters have, or had (hone_seq_keep), is shared, the rest is run. *kept: positions that were there, at
 * most n - 1; *logits: as of hone_append. Fails as hone_append does; where that is for what must be run, the sequence
 * holds the first *kept of ids. */
HONE_API hone_status hone_seq_sync(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                   const float **logits, hone_error *err);

/* Names of version 0.1, to go with the next: hone_run_batch, and hone_append of sequence 0. */
HONE_API hone_status hone_decode(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits,
                                 hone_error *err);
HONE_API hone_status hone_prefill(hone_session *s, const int32_t *tokens, int32_t n_tok, const float **logits,
                                  hone_error *err);

/* A function, NULL: none, asked with arg before each layer of each chunk whether to stop; true:
 * HONE_E_INTERRUPTED, with the caches as before the call. Up to 4 tokens of a recurrent model are run to their end.
 * A call of more tokens that goes on from a recurrent state keeps a copy of it to go back to, which counts for
 * cache_budget until it returns: state_bytes of hone_sequence_cost more for each sequence of the call. */
HONE_API void hone_session_set_abort(hone_session *s, bool (*fn)(void *), void *arg);

/* One operation of a forward pass, as it was timed. */
typedef struct hone_profile_event {
    const char *op;   /* "attn_qkv" "attention" "ffn_down" …; lives as long as the program */
    const char *type; /* of the weights: "Q4_K", "mixed"; NULL: none */
    int32_t layer;    /* -1: of no layer */
    int32_t n_tok;
    uint64_t start_ns, end_ns;  /* CLOCK_MONOTONIC_RAW */
    uint64_t bytes;             /* of weights and cache that it reads, each once; activations are not counted */
    double ops_int8, ops_float; /* multiplications and additions of products and attention, by their arithmetic */
} hone_profile_event;
typedef void hone_profile_fn(void *arg, const hone_profile_event *e);

/* fn is told of every operation, in order, some of them at a time, by the thread that runs the call and
 * before it returns; NULL: off, at no cost. The answers are the same. What prepares a product's input (norm,
 * quantisation) is part of the product. */
HONE_API void hone_session_set_profile(hone_session *s, hone_profile_fn *fn, void *arg);

HONE_API int32_t hone_session_n_ctx(const hone_session *s);           /* s NULL: 0 */
HONE_API int32_t hone_seq_length(const hone_session *s, int32_t seq); /* positions held; -1: bad seq, or s is NULL */
/* Keeps the first n_pos positions. To 0, the present length or a checkpoint always; elsewhere HONE_E_UNSUPPORTED, and
 * nothing changes, where layers recur, or have a window of which n_pos sees what was dropped: near the present length
 * all is there. */
HONE_API hone_status hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
/* The first half of hone_seq_sync, for who makes batches: seq then holds the first *kept, at most n - 1, of ids [n],
 * its own, or shared with another sequence or what hone_seq_keep kept; nothing is run or copied. Of what a session
 * file brought no ids are known: it matches nothing. A recurrent state is had at its length or a checkpoint only. */
HONE_API hone_status hone_seq_match(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                    hone_error *err);
/* What a sequence holds now stays in the session when the sequence goes on or is cut, for hone_seq_match and
 * hone_seq_sync of any sequence of its scope and adapters, as whole pages of 64 positions; of a model with recurrent
 * layers or windows the place where the sequence is now, and only that: keep it at the places to which prompts are
 * likely to come back, such as a prompt's last page and the end of an answer (a match needs at least one token behind
 * it). Table work alone, but that a recurrent state is read, and nothing twice. What is kept takes of cache_budget what
 * sequences leave: where they need more, it goes, the part not used for longest first, before a call fails. Of
 * positions whose ids are not known (of a session file) nothing is kept. HONE_E_NOMEM: not all of it is kept; nothing
 * else changes. HONE_E_NUMERIC: as of hone_seq_checkpoint. */
HONE_API hone_status hone_seq_keep(hone_session *s, int32_t seq, hone_error *err);
/* From now on an empty sequence shares positions with sequences and prefixes of this scope only; 0: the one that all
 * begin with. hone_seq_copy gives dst the scope of src; snapshots and files leave it. HONE_E_ARG: it is not empty, and
 * its scope another. */
HONE_API hone_status hone_seq_set_scope(hone_session *s, int32_t seq, uint64_t scope, hone_error *err);

typedef struct hone_prefix_info {
    uint64_t n_nodes;                 /* runs of up to 64 ids that are known */
    uint64_t n_pages, n_states;       /* what they hold: pages of memory, recurrent states */
    uint64_t bytes;                   /* of these */
    uint64_t alone_bytes;             /* of them, what no sequence holds: free for whoever needs it */
    uint64_t n_hits, n_hit_positions; /* matches that were served so far, and positions that these had */
    uint64_t n_evicted;               /* nodes, or states, that had to go so far */
} hone_prefix_info;
/* Looks at every node. s NULL: zeros. */
HONE_API void hone_session_prefix_info(const hone_session *s, hone_prefix_info *out);
/* Forgets what hone_seq_keep kept; sequences hold what they hold. */
HONE_API void hone_session_drop_prefixes(hone_session *s);

/* dst becomes src (fork): both hold the same memory until one of them writes to it; it has src's scope and adapters. */
HONE_API hone_status hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err);
/* Remembers a recurrent state, and what layers with a window hold, as they are now, in place of the checkpoint not used
 * for longest: pages of windows count for cache_budget while it is there. Where all layers see all it does nothing.
 * Checkpoints go before a call fails for memory, those not used for longest first. HONE_E_NUMERIC: the state holds what
 * is no finite number, of a batch that wanted no logits; it is not remembered. */
HONE_API hone_status hone_seq_checkpoint(hone_session *s, int32_t seq, hone_error *err);
/* Truncates to the furthest place that can be reached and is not beyond n_pos: *kept, -1 on failure. */
HONE_API hone_status hone_seq_rewind(hone_session *s, int32_t seq, int32_t n_pos, int32_t *kept, hone_error *err);

/* ---- embeddings: what a model makes of whole texts -------------------------------- */

/* How the rows that a text's tokens become, after the last norm, are made one vector. The sums are in double, in the
 * order of positions. */
typedef enum hone_pooling {
    HONE_POOL_FILE = 0, /* as the file says; HONE_E_ARG where it does not */
    HONE_POOL_NONE,     /* they are not: a vector for each token */
    HONE_POOL_MEAN,
    HONE_POOL_CLS,  /* the first one */
    HONE_POOL_LAST, /* the last one */
    HONE_POOL_RANK  /* scores of the first one, of causal models the last one, by a classifier */
} hone_pooling;

typedef struct hone_text_ids {
    const int32_t *ids; /* [n], as hone_tokenize with HONE_TOK_ADD gives them */
    int32_t n;          /* at least 1 */
} hone_text_ids;

typedef struct hone_embed_params {
    hone_pooling pooling;
    bool plain; /* vectors are as they come; else of length 1. HONE_POOL_NONE and _RANK: always as they come */
    /* Texts are run in passes, of short texts together, and of a part of a long one that the next pass goes on with;
     * models that are not causal read a text at once: theirs are of whole texts. rows is asked before each pass how
     * many tokens it may have (fewer than 1: 1; more than n_chunk: n_chunk; a whole text where that is longer and must
     * be read at once). n_last: those of the pass before, 0: this is the first. Called by the thread that is in
     * hone_embed, which may run other sessions from here, this one not. NULL: always n_chunk. Vectors do not depend on
     * it. */
    int32_t (*rows)(void *arg, int32_t n_last);
    void *rows_arg;
} hone_embed_params;

/* Floats of a vector; *which (may be NULL): the pooling, where HONE_POOL_FILE is asked for the file's. 0: m is NULL, or
 * has no such vectors. */
HONE_API int32_t hone_embed_width(const hone_model *m, hone_pooling pooling, hone_pooling *which);
/* Vectors of texts [n_text], at most 2^20, one below the other, into out [n_text, width], with HONE_POOL_NONE
 * [Σn, width]. They run together, in the session's empty sequences that have the adapters of the first such, of which
 * there must be one, and which are empty again then; a vector depends on its text and those alone. A text may be as
 * long as n_ctx; of models that are not causal, which read it at once, as long as n_chunk, too.
 * HONE_POOL_RANK gives the scores as the classifier says them, those of causal models as shares of 1. Without a
 * classifier a causal model's scores are of "yes" and "no" as the next token.
 * HONE_E_ARG: bad id, no empty sequence, no pooling. HONE_E_CTX: a text is too long. HONE_E_UNSUPPORTED: nothing to
 * score with. Else it fails as hone_run_batch does; for memory, where a text does not fit alone. */
HONE_API hone_status hone_embed(hone_session *s, const hone_text_ids *texts, int32_t n_text, const hone_embed_params *p,
                                float *out, hone_error *err);
/* The ids of a query and a document for HONE_POOL_RANK: by the file's template for that (tokenizer.chat_template.rerank
 * with {query}, {document}, {instruction}), else of a causal model that of Qwen3-Reranker, else both between the tokens
 * that separate two texts. instruction: what the query asks for; NULL: "Given a web search query, retrieve relevant
 * passages that answer the query". None of these texts can spell a control token. *ids is malloc'ed (hone_free).
 * HONE_E_ARG: a text of more than 2^30 - 1 bytes. HONE_E_UNSUPPORTED: no tokenizer, or no separator and no template. */
HONE_API hone_status hone_rank_tokenize(const hone_model *m, const char *instruction, const char *query, size_t n_query,
                                        const char *document, size_t n_document, int32_t **ids, size_t *n,
                                        hone_error *err);

/* ---- adapters: LoRA, y = W·x + scale·B(A·x) ------------------------------------------ */

typedef struct hone_adapter hone_adapter;

/* A GGUF adapter file, or a PEFT folder, for m, which must outlive it. HONE_E_FORMAT: damaged, or of another
 * model; HONE_E_UNSUPPORTED: a kind hone does not run; HONE_E_NUMERIC: a NaN or infinity in it. */
HONE_API hone_status hone_adapter_open(hone_adapter **out, const hone_model *m, const char *path, hone_error *err);
/* Sessions that use it keep what they need. */
HONE_API void hone_adapter_close(hone_adapter *a);

typedef struct hone_adapter_info {
    const char *path, *name;   /* name: general.name or "" */
    int32_t n_pairs, rank;     /* adapted matrices; the largest rank */
    uint64_t n_params, hash;   /* hash: of all that changes an answer */
    const char *base_identity; /* hone_model_identity of the base it was trained on; "": the file does not say */
    const char *chat_template; /* Jinja source of the conversations it was trained on, for hone_chat_params; "": none */
} hone_adapter_info;
HONE_API void hone_adapter_get_info(const hone_adapter *a, hone_adapter_info *out); /* a NULL: zeros */

/* Copies an adapter of m, GGUF or PEFT folder, to a GGUF file where dst ends in ".gguf", else to a PEFT folder,
 * as F32 or F16. Existing files of those names are replaced when the new ones are complete. */
HONE_API hone_status hone_adapter_convert(const hone_model *m, const char *src, const char *dst, bool f16,
                                          hone_error *err);

/* From now on all sequences run the base with these n adapters, adapter i times scales[i] (NULL: all 1), added
 * in this order; the base is not touched, other sessions keep theirs. n = 0: the base alone, as after
 * hone_session_new. Scale 0 is as good as leaving one out. What sequences hold was computed with the adapters before:
 * HONE_E_ARG unless all of them are empty (hone_seq_truncate to 0) or the adapters and scales are the same, and where a
 * scale, or its product with the one that the file has, is no finite number. On failure nothing changes.
 * Snapshots and session files remember the adapters of each sequence and are refused with others. */
HONE_API hone_status hone_session_set_adapters(hone_session *s, hone_adapter *const *adapters, const float *scales,
                                               int32_t n, hone_error *err);
/* The same of one sequence, which must be empty unless they are those it has; batches may mix sequences of any sets,
 * and each row gets the bits that it has alone. hone_seq_copy gives dst those of src. Rows that follow each other in a
 * batch and have the same set are run together. */
HONE_API hone_status hone_seq_set_adapters(hone_session *s, int32_t seq, hone_adapter *const *adapters,
                                           const float *scales, int32_t n, hone_error *err);
/* Of all adapters in use and their scales; 0: none, or s is NULL. Of a sequence likewise; 0: bad seq, too. */
HONE_API uint64_t hone_session_adapters_hash(const hone_session *s);
HONE_API uint64_t hone_seq_adapters_hash(const hone_session *s, int32_t seq);

/* A copy of one sequence's memory, for any session of the same model and adapters (and, with a KV cache, cache type).
 * The model is the same where the content of its file is, by whatever handle; that of the session which the copy was
 * taken of must outlive it. HONE_E_NUMERIC: a recurrent state that holds what is no finite number. */
typedef struct hone_snapshot hone_snapshot;
HONE_API hone_status hone_seq_snapshot(const hone_session *s, int32_t seq, hone_snapshot **out, hone_error *err);
/* HONE_E_ARG: a snapshot of something else. HONE_E_CTX: too long for this session. HONE_E_NOMEM: it does not fit
 * cache_budget. Nothing changes then. With another handle of its model both files are read where their identity is not
 * known. */
HONE_API hone_status hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err);
/* To a file, whole or not at all, and back. A file that is there is replaced where it is a snapshot, else HONE_E_ARG;
 * HONE_E_IO: nobody can tell, or it cannot be written.
 * hone_snapshot_load: m must outlive the snapshot. HONE_E_FORMAT: no snapshot, or damaged; HONE_E_ARG: of another
 * model. What else it must fit, hone_seq_restore looks at. Both read all of a model whose identity is not known. */
HONE_API hone_status hone_snapshot_save(const hone_snapshot *snap, const char *path, hone_error *err);
HONE_API hone_status hone_snapshot_load(hone_snapshot **out, const hone_model *m, const char *path, hone_error *err);
HONE_API void hone_snapshot_free(hone_snapshot *snap);
HONE_API int32_t hone_snapshot_length(const hone_snapshot *snap); /* positions; snap NULL: 0 */
HONE_API size_t hone_snapshot_bytes(const hone_snapshot *snap);   /* snap NULL: 0 */

/* Saves / restores all sequences, bit-exactly. A file that is there is replaced where it is a session file, of whatever
 * version, else HONE_E_ARG; HONE_E_IO: nobody can tell, or it cannot be written; HONE_E_NUMERIC: as hone_seq_snapshot.
 * Restoring needs the same model and cache type and adapters, and n_ctx and n_seq at least as large as the saved
 * lengths; on failure nothing changes. */
HONE_API hone_status hone_session_save(const hone_session *s, const char *path, hone_error *err);
HONE_API hone_status hone_session_load(hone_session *s, const char *path, hone_error *err);

typedef struct hone_session_memory {
    uint64_t cache_bytes, scratch_bytes, logits_bytes; /* reserved address space; cache: also recurrent states */
    uint64_t cache_used_bytes;   /* of cache_bytes, what sequences, checkpoints and kept prefixes hold */
    uint64_t cache_budget_bytes; /* that these may come to hold */
} hone_session_memory;
HONE_API void hone_session_get_memory(const hone_session *s, hone_session_memory *out); /* s NULL: zeros */

/* What one sequence keeps in a session of this model, known before there is one. Pages are of 64 positions. A
 * cache_budget of these bytes has no room for what calls copy: state_bytes once more where there is an abort function
 * (hone_session_set_abort), and of sequences that share memory what they then write to. */
typedef struct hone_sequence_cost {
    uint64_t bytes;          /* of n_pos positions and the states: all of it */
    uint64_t window_bytes;   /* of them, layers with a window; what they take does not grow beyond it */
    uint64_t state_bytes;    /* of them, layers that recur: the same however long it gets */
    uint64_t position_bytes; /* each position more, in layers that see all */
    int32_t n_full, n_latent, n_window, n_state; /* layers that see all, that of them keep latent rows, that have a
                                                    window, that recur */
} hone_sequence_cost;
/* HONE_E_ARG: n_pos not in 1 to 2^26, an unknown cache type, or no model of weights. */
HONE_API hone_status hone_model_sequence_cost(const hone_model *m, int32_t n_pos, hone_kv_cache_type cache,
                                              hone_sequence_cost *out, hone_error *err);

/* Where the memory of a session and its context is now. */
typedef struct hone_memory_use {
    uint64_t reserved; /* bytes of address space */
    int64_t resident;  /* of them, in memory; -1: the system does not tell */
} hone_memory_use;
typedef struct hone_memory {
    hone_memory_use cache, scratch, logits, stacks; /* KV cache, or recurrent states with their copies; activations and
                                                       working memory; the session's own logits; of worker threads */
} hone_memory;
HONE_API void hone_session_memory_use(const hone_session *s, hone_memory *out); /* s NULL: zeros */

/* ---- sampling --------------------------------------------------------------- */

/* The chain, in this order: penalties over the last penalty_last_n tokens
 * (repeat, then frequency and presence), top-k, top-p, min-p, temperature, draw.
 * temp <= 0: greedy after penalties; ties go to the lowest id. */
typedef struct hone_sampler_params {
    float temp;              /* 0.8 */
    int32_t top_k;           /* 40; 0: off */
    float top_p;             /* 0.95; 1: off */
    float min_p;             /* 0.05; 0: off */
    float repeat_penalty;    /* 1: off */
    float presence_penalty;  /* 0: off */
    float frequency_penalty; /* 0: off */
    int32_t penalty_last_n;  /* 64; 0: off; -1: everything accepted; at most 2^20 */
    uint64_t seed;
} hone_sampler_params;

typedef struct hone_sampler hone_sampler;
HONE_API void hone_sampler_defaults(hone_sampler_params *p);
/* p may be NULL: the defaults. HONE_E_ARG: n_vocab not within 1 to 2^28, a parameter that is no such number. */
HONE_API hone_status hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p,
                                      hone_error *err);
HONE_API void hone_sampler_free(hone_sampler *s);
/* From here on never picks what the model's file forbids in answers: tokenizer.ggml.suppress_tokens, such as the marks
 * of images; ids that the sampler does not have are passed over. hone run, chat and serve do so. */
HONE_API hone_status hone_sampler_suppress(hone_sampler *s, const hone_model *model, hone_error *err);
/* Picks a token from logits [n_vocab] (unchanged). The random number depends only
 * on (seed, seq, pos), any numbers. HONE_E_NUMERIC: a NaN, +infinity, or no finite logit. Does not accept it.
 * *id is -1 on failure. */
HONE_API hone_status hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                       hone_error *err);
/* The same with what one answer asks for:
 *   allowed  [(n_vocab + 63) / 64] bit id % 64 of word id / 64: it may be picked (hone_matcher_mask); NULL: all
 *   bias     [n_bias] added to the logits of these ids; -infinity: never; ids may come twice
 *   choice   which answer to the same prompt this is: 0, 1, … The random number depends only on (seed, choice, pos)
 * Order: bias, then what is not allowed becomes -infinity, then penalties and the rest of the chain (docs/SAMPLING.md).
 * HONE_E_NUMERIC too: nothing is allowed. HONE_E_ARG: an id out of range, a bias that is NaN or +infinity. */
typedef struct hone_bias {
    int32_t id;
    float bias;
} hone_bias;
typedef struct hone_pick {
    const uint64_t *allowed; /* may be NULL */
    const hone_bias *bias;   /* may be NULL where n_bias is 0 */
    size_t n_bias;
    int32_t choice, pos;
} hone_pick;
HONE_API hone_status hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                            hone_error *err);
/* Remembers id for the penalties; nothing where it is out of range. */
HONE_API void hone_sampler_accept(hone_sampler *s, int32_t id);
HONE_API void hone_sampler_reset(hone_sampler *s); /* forgets accepted tokens */

/* ---- grammars: texts that must have a form (docs/STRUCTURED.md) -------------------- */

typedef enum hone_grammar_kind {
    HONE_GRAMMAR_JSON_SCHEMA = 0, /* text: a JSON Schema (2020-12, the words of docs/STRUCTURED.md) */
    HONE_GRAMMAR_JSON_OBJECT,     /* any JSON object; no text */
    HONE_GRAMMAR_GBNF,            /* text: rules as llama.cpp writes them, with a rule root */
    HONE_GRAMMAR_REGEX,           /* text: an expression of ECMAScript that all of the answer matches */
    HONE_GRAMMAR_CHOICE           /* one of choices */
} hone_grammar_kind;
typedef struct hone_grammar_params {
    hone_grammar_kind kind;
    const char *text; /* may be NULL where kind needs none */
    size_t len;
    const hone_str *choices; /* [n_choices], none of them empty */
    size_t n_choices;
    bool strict;  /* JSON Schema: words and formats that hone does not know are refused, not noted */
    bool compact; /* JSON: no white space between tokens */
} hone_grammar_params;

/* hone_grammar: a form of texts, independent of any model; shared by matchers in any threads. */
/* HONE_E_ARG: the text is no such grammar (the place is named), or no text can match it. HONE_E_UNSUPPORTED: it asks
 * for what hone does not enforce (the word is named by its JSON pointer), or is larger than a grammar may be. */
HONE_API hone_status hone_grammar_compile(hone_grammar **out, const hone_grammar_params *p, hone_error *err);
HONE_API void hone_grammar_free(hone_grammar *g); /* matchers that use it keep what they need */
/* What its author should know, or "": words that were ignored, rules that are not used. Borrowed from g. NULL: g is. */
HONE_API const char *hone_grammar_notes(const hone_grammar *g);

/* How far one text has come. One thread at a time; any number of matchers of one grammar. */
typedef struct hone_matcher hone_matcher;
/* m must outlive it. HONE_E_UNSUPPORTED: m has no tokenizer. */
HONE_API hone_status hone_matcher_new(hone_matcher **out, hone_grammar *g, const hone_model *m, hone_error *err);
/* As far as m has come, with its history. */
HONE_API hone_status hone_matcher_clone(hone_matcher **out, hone_matcher *m, hone_error *err);
HONE_API void hone_matcher_free(hone_matcher *m);
/* Goes on by ids [n]. HONE_E_ARG: one of them does not match here; then none was taken. */
HONE_API hone_status hone_matcher_accept(hone_matcher *m, const int32_t *ids, size_t n, hone_error *err);
/* Goes on by bytes, one step of the history; they may end inside a character. HONE_E_ARG as above. */
HONE_API hone_status hone_matcher_accept_text(hone_matcher *m, const char *text, size_t len, hone_error *err);
/* Is what was read a whole text? Then, and only then, tokens that end generation match. NULL: false. */
HONE_API bool hone_matcher_can_end(const hone_matcher *m);
/* Takes back the last n tokens (or calls of hone_matcher_accept_text). HONE_E_ARG: fewer were taken. */
HONE_API hone_status hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *err);
/* Which tokens match next: bit id % 64 of allowed[id / 64], of [n_words] words; ids beyond them are left out.
 * *n: how many; 0 before the text is whole: the vocabulary lacks a byte that must come, and the answer cannot go on. */
HONE_API hone_status hone_matcher_mask(hone_matcher *m, uint64_t *allowed, size_t n_words, int64_t *n, hone_error *err);
/* The same where the text is to be whole after at most `left` more tokens (below 0: any number): tokens that begin more
 * than fits are left out, and as soon as the shortest way to its end that is found takes all of them but eight, there
 * are only tokens of such ways, then only those that end it. */
HONE_API hone_status hone_matcher_mask_within(hone_matcher *m, int64_t left, uint64_t *allowed, size_t n_words,
                                              int64_t *n, hone_error *err);

/* ---- log-probabilities -------------------------------------------------------------- */

typedef struct hone_logprob {
    int32_t id;
    float logprob; /* natural logarithm */
} hone_logprob;
/* log-softmax of logits [n_vocab] as they are, before bias, mask, penalties and temperature: the same bits on every
 * machine, whatever the sampling. *logprob: of token id, which may be -1 (none: then logprob may be NULL); -infinity
 * where its logit is. top [n_top], 0 to n_vocab of them: the most likely, most likely first, ties to the lower id.
 * HONE_E_NUMERIC: a NaN, +infinity, or no finite logit. */
HONE_API hone_status hone_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, hone_logprob *top,
                                   int32_t n_top, hone_error *err);

/* ---- scheduler: many requests, one answer each --------------------------------------- */

/* A scheduler owns a session and gives its sequences, here slots, to requests. What it answers depends on a request
 * alone: not on its neighbours, their number or order, on what is cached, on memory or time. It has no thread, socket
 * or lock: one thread submits and steps. */
typedef struct hone_scheduler hone_scheduler;

typedef enum hone_event_kind {
    HONE_EVENT_PROMPT, /* some of the prompt was run: at least once a request, of choice 0 */
    HONE_EVENT_TOKEN,  /* a token was picked */
    HONE_EVENT_END     /* once for each choice; nothing follows */
} hone_event_kind;

typedef enum hone_end {
    HONE_END_EOG,       /* the model ended it: its last token says so; or the mask left no token: the text is whole */
    HONE_END_STOPPED,   /* the event function said so */
    HONE_END_LENGTH,    /* max_tokens */
    HONE_END_CONTEXT,   /* the context has no position more */
    HONE_END_CANCELLED, /* hone_scheduler_cancel, hone_scheduler_free */
    HONE_END_DEADLINE,
    HONE_END_ERROR /* error says why */
} hone_end;

/* What its pointers lead to lives until the event function returns. */
typedef struct hone_event {
    hone_event_kind kind;
    uint64_t request;
    int32_t choice;
    int32_t n_prompt, n_cached, n_done; /* tokens of the prompt; of them, those that were there; those that are now */
    int32_t slot;                       /* the choice's; END: that it had last; -1: none yet */
    int32_t id, pos;                    /* TOKEN; pos: its position */
    float logprob; /* TOKEN, where n_logprobs is 0 or more: as of hone_logprobs; with sampled_probs a probability */
    /* TOKEN: [n_top]. PROMPT: [n_prompt_logprobs, n_top], of each token what was likely in its place */
    const hone_logprob *top;
    int32_t n_top;
    /* PROMPT, where prompt_logprobs is set: of the prompt's tokens from first_logprob on, given all those before; the
     * first token of a prompt has none: NaN, ids of -1 */
    const float *prompt_logprob;
    int32_t first_logprob, n_prompt_logprobs;
    hone_end end;            /* END */
    const hone_error *error; /* END, HONE_END_ERROR; else NULL */
} hone_event;

/* One prompt, one or more answers. All that it points to but adapters and arg is copied. */
typedef struct hone_request {
    const int32_t *prompt; /* [n_prompt] */
    int32_t n_prompt;      /* 1 to n_ctx - 1 */
    int32_t mark;          /* where other prompts may leave this one, as hone_chat_mark says: a model that cannot go
                              back anywhere (recurrent layers, windows) is kept there too; 0: nowhere, to n_prompt */
    hone_sampler_params sampling;
    int32_t n_choices;     /* 0: 1; at most n_slots. Choice k draws with (seed, k, position): 0 is the answer alone */
    int32_t max_tokens;    /* of each choice; -1: what the context holds; 0: the prompt is run, nothing is picked */
    bool ignore_eog;       /* tokens that end generation are tokens like others */
    const hone_bias *bias; /* [n_bias] */
    size_t n_bias;
    int32_t n_logprobs; /* -1: none; 0: of the token picked; n: and the n most likely, at most 64 */
    bool sampled_probs; /* of tokens picked, in place of these: probabilities behind the chain, of what can be picked */
    bool prompt_logprobs;          /* of the prompt's tokens too, with n_logprobs most likely: all of it is run */
    bool no_share;                 /* takes nothing that others computed, and leaves nothing to them */
    uint64_t scope;                /* shares with requests of the same scope only */
    uint64_t client;               /* whose turn it is: clients in turn, each first come, first served */
    uint64_t deadline_ns;          /* on the scheduler's clock; 0: none */
    hone_adapter *const *adapters; /* [n_adapters], as of hone_session_set_adapters; held by the caller until the end.
                                      What others may find of it (whole pages) goes when one of them is closed,
                                      and no other handle of its content is open */
    const float *scales;           /* [n_adapters]; NULL: all 1 */
    int32_t n_adapters;
    int32_t slot_plus_1; /* the slot that choice 0 gets, plus one, where it is idle by then; 0, or none there: any */
    /* Both are called from hone_scheduler_step (and hone_scheduler_free: events) with arg, and may submit and cancel.
     * Neither is called again for what it was told before a pause.
     *   mask   which tokens may come next of a choice: *all (false before the call), or bits in allowed [n_words], as
     *          of hone_pick (zeros before it). None: the text is whole, and the choice ends. A failure ends it, too.
     *          NULL: all may.
     *   event  what happened; false after a TOKEN ends that choice, and is ignored elsewhere */
    hone_status (*mask)(void *arg, int32_t choice, uint64_t *allowed, size_t n_words, bool *all, hone_error *err);
    bool (*event)(void *arg, const hone_event *e);
    void *arg;
} hone_request;

typedef struct hone_scheduler_params {
    hone_session_params session; /* n_seq: slots, 0: 8; n_checkpoints, n_kept_states: 0: 2 and 4 for each */
    int32_t max_queue;           /* requests that wait, 0: 64; at most 2^20 */
    uint64_t (*now)(void *arg);  /* nanoseconds, never less than before; NULL: CLOCK_MONOTONIC */
    void *now_arg;
    int32_t fixed_prefill; /* tokens of prompts in a step beside answers; 0: as many as time allows: such a step takes
                              no more than twice one without, or 100 ms, but for 32 tokens, which are always run */
} hone_scheduler_params;

/* Opens the session; ctx and m must outlive the scheduler. p may be NULL: all 0. Fails as hone_session_new does. */
HONE_API hone_status hone_scheduler_new(hone_scheduler **out, hone_context *ctx, const hone_model *m,
                                        const hone_scheduler_params *p, hone_error *err);
/* From now on s and other, and those that other is beside, share a machine, where one thread steps each in turn: a step
 * with prompts leaves the others' answers the time that it leaves its own. other NULL: s is beside none any more, as
 * behind hone_scheduler_free. What s was beside before it leaves first. No thread may be in a step of any of them.
 * s NULL: nothing happens. */
HONE_API void hone_scheduler_beside(hone_scheduler *s, hone_scheduler *other);
/* Requests that are still there end, cancelled. */
HONE_API void hone_scheduler_free(hone_scheduler *s);
/* Queues a request; *id is its number, from 1 on. HONE_E_ARG: a bad request, or adapters that cannot run here
 * (hone_seq_set_adapters). HONE_E_CTX: its prompt does not fit.
 * HONE_E_BUSY: the queue is full. */
HONE_API hone_status hone_scheduler_submit(hone_scheduler *s, const hone_request *r, uint64_t *id, hone_error *err);
/* What is left of the request ends in the next step (of one that runs, at the latest); what was computed stays for
 * others. False: no such request, it has ended, or s is NULL. */
HONE_API bool hone_scheduler_cancel(hone_scheduler *s, uint64_t id);
/* While a request is held nothing of it is run: it keeps its slot, and can be cancelled or late. What it says is the
 * same. False: as hone_scheduler_cancel. */
HONE_API bool hone_scheduler_hold(hone_scheduler *s, uint64_t id, bool hold);
/* One step: ends what was cancelled or is late, starts what fits, runs one batch, picks and tells. Where the batch
 * fails, the requests to blame end with its error, and no others. *worked: false where there was nothing to do, or
 * only for requests that are held, or wait for their slots. */
HONE_API hone_status hone_scheduler_step(hone_scheduler *s, bool *worked, hone_error *err);

typedef struct hone_scheduler_stats {
    int32_t n_running, n_waiting, n_paused, n_slots; /* now: sequences that run; requests that wait, paused sequences */
    uint64_t cache_used, cache_total;                /* bytes of cache that are held, evictable ones too; that may be */
    /* since the beginning; n_ended: of requests submitted, with those cancelled; n_rejected: HONE_E_BUSY */
    uint64_t n_requests, n_ended, n_cancelled, n_preempted, n_rejected;
    /* tokens of prompts that are there, once each; of them, those that others had computed; tokens picked */
    uint64_t n_prompt_tokens, n_cached_tokens, n_generated_tokens;
    /* rows of all batches: n_prompt_tokens - n_cached_tokens + n_answer_rows + n_again_rows; again: had been run
     * before a pause or a failure */
    uint64_t n_steps, n_rows, n_answer_rows, n_again_rows;
    uint64_t last_step_ns; /* of the last batch */
} hone_scheduler_stats;
HONE_API void hone_scheduler_get_stats(const hone_scheduler *s, hone_scheduler_stats *out); /* s NULL: zeros */

typedef struct hone_slot_info {
    uint64_t request;       /* 0: none; what is there is kept for others */
    int32_t choice, n_past; /* n_past: positions held */
    bool running;
} hone_slot_info;
/* False: no such slot, or s is NULL. */
HONE_API bool hone_scheduler_slot(const hone_scheduler *s, int32_t slot, hone_slot_info *out);
/* An idle slot; HONE_E_BUSY where a request has it.
 *   snapshot  a copy of what it holds, which knows its scope, too; HONE_E_ARG where ids of it are not known
 *   erase     *n positions go; other sequences, or the tree of prefixes, may have the same still
 *   restore   it holds what the snapshot does: later requests of its scope with the same adapters [n_adapters] and
 *             scales (NULL: all 1) find it. HONE_E_ARG where the snapshot's ids are not known; else it fails as
 *             hone_seq_set_adapters and hone_seq_restore do, and the slot holds what it held; with HONE_E_NOMEM it may
 *             be empty then */
HONE_API hone_status hone_scheduler_snapshot(const hone_scheduler *s, int32_t slot, hone_snapshot **out,
                                             hone_error *err);
HONE_API hone_status hone_scheduler_erase(hone_scheduler *s, int32_t slot, int32_t *n, hone_error *err);
HONE_API hone_status hone_scheduler_restore(hone_scheduler *s, int32_t slot, const hone_snapshot *snap,
                                            hone_adapter *const *adapters, const float *scales, int32_t n_adapters,
                                            hone_error *err);
HONE_API int32_t hone_scheduler_n_ctx(const hone_scheduler *s); /* positions of a sequence; s NULL: 0 */

/* ---- packed files ---------------------------------------------------------------- */

/* The weights of a model once more, in an order that is read faster, in a file of its own: same
 * numbers, same answers. It belongs to the tensor data it was made from, and carries hashes of its own numbers: before
 * it is used for the first time, and again after either file was copied, replaced or touched, all of both is read and
 * checked once; what was found is kept as for hone_model_identity. */
typedef enum hone_packed_state {
    HONE_PACKED_NONE = 0, /* there is none */
    HONE_PACKED_READY,    /* made from this very model's data, and its numbers are what was written */
    HONE_PACKED_TOUCHED,  /* of the same shapes; the next start checks all of its data and the model's */
    HONE_PACKED_UNUSABLE  /* damaged, of another version, or of another model: see note */
} hone_packed_state;

typedef struct hone_packed_info {
    hone_packed_state state;
    char path[4096];
    char note[600];
    char note_several[600];         /* READY, as note: how it is read with hone_model_params.n_answers above 1 */
    uint64_t size;                  /* bytes of the file */
    uint32_t n_matrices, n_vectors; /* in it */
    uint32_t n_plain; /* weights that gain nothing by it, or of types without a packed form: they stay in the model; and
                       * their bytes */
    uint64_t plain_bytes;
    char data_sha256[65]; /* of the tensor data it was made from (src/gguf/identity.h) */
    bool written;         /* by this call */
} hone_packed_info;

typedef struct hone_pack_params {
    const char *file;  /* NULL: MODEL.hpack */
    int32_t n_threads; /* 0: all cores */
    bool force;        /* write it even if a good one is there */
    bool verify;       /* write nothing: compare every byte of the file with the model */
} hone_pack_params;

/* Writes the packed file of a model: a temporary file, then renamed. Replaces packed files only.
 * With verify, HONE_E_FORMAT: the file differs from the model, or belongs to other data. p may be NULL: all 0; out and
 * pr may be NULL. On failure *out has what was found until then. */
HONE_API hone_status hone_pack(const char *model, const hone_pack_params *p, hone_packed_info *out,
                               const struct hone_progress *pr, hone_error *err);
/* Looks at the packed file of a model (file NULL: MODEL.hpack) without reading tensor data. On failure as above. */
HONE_API hone_status hone_packed_find(const char *model, const char *file, hone_packed_info *out, hone_error *err);
/* Looks at a packed file alone: READY or UNUSABLE. HONE_E_FORMAT: no packed file at all. On failure as above. */
HONE_API hone_status hone_packed_describe(const char *file, hone_packed_info *out, hone_error *err);

/* ---- training ---------------------------------------------------------------------- */

typedef enum hone_train_mask { /* which tokens are learnt */
                               HONE_TRAIN_ALL = 0,
                               HONE_TRAIN_ANSWERS, /* completions; all answers of a chat */
                               HONE_TRAIN_LAST     /* completions; the last answer */
} hone_train_mask;
/* Where a file of plain text is divided, so that each part is a text of its own, with BOS in front and EOS behind. */
typedef enum hone_train_split {
    HONE_SPLIT_AUTO,  /* at "<|endoftext|>" where it has that; else Markdown at headings, other text at blank lines */
    HONE_SPLIT_BLANK, /* at blank lines */
    HONE_SPLIT_MARK,  /* at "<|endoftext|>" */
    HONE_SPLIT_HEADING,
    HONE_SPLIT_LINE, /* each line is a text */
    HONE_SPLIT_NONE  /* nowhere: a file is one text */
} hone_train_split;
typedef enum hone_train_schedule {
    HONE_TRAIN_CONSTANT = 0,
    HONE_TRAIN_LINEAR,
    HONE_TRAIN_COSINE,
    HONE_TRAIN_WSD
} hone_train_schedule;

/* From hone_train_defaults; texts are borrowed for hone_trainer_new. What is NULL there may be NULL, but for data. */
typedef struct hone_train_params {
    const char *const *data;     /* files .txt, .md, .jsonl, .json, .csv, .tsv, or folders of such */
    int32_t n_data;              /* at least 1 */
    const char *const *val_data; /* files for validation */
    int32_t n_val_data;          /* 0: a share of data */
    double val_share;            /* 0: none */
    hone_train_mask mask;
    hone_train_split split;
    int64_t max_bad_lines;   /* that are left out */
    bool special;            /* what looks like a special token in a text is one */
    bool pack;               /* several samples in one sequence, each for itself */
    bool full;               /* all weights instead of adapters */
    const char *output_type; /* full: storage of the matrices, "F16", "Q8_0", "Q4_K_M" …; NULL: as in the base, F32
                              * where that is quantized; borrowed as long as the trainer */
    const char *targets;     /* "qv", "attn", "all", or of "q,k,v,o,gate,up,down"; full: may be NULL */
    int32_t n_layers;        /* adapters in so many layers, from the last; 0: all */
    int32_t rank;
    double alpha, dropout;
    bool rslora;                    /* scale alpha/sqrt(rank) in place of alpha/rank */
    int64_t steps;                  /* 0: by epochs */
    double epochs;                  /* 0 with no steps: 1 */
    int32_t seq, batch, accumulate; /* tokens of a sequence; sequences of a micro-batch; micro-batches of a step */
    hone_train_schedule schedule;
    double lr, min_lr; /* min_lr < 0: lr/10 with cosine and WSD, else 0 */
    int64_t warmup;    /* steps; -1: by warmup_ratio */
    double warmup_ratio;
    double beta1, beta2, eps, weight_decay;
    double clip; /* of the gradient's norm; 0: never */
    uint64_t seed;
    int64_t eval_every; /* steps; 0: at the end */
    int32_t patience;   /* validations without a gain of min_delta before training ends; 0: it goes on */
    double min_delta;
    bool bf16;                   /* products of rounded operands, half the activations */
    bool recompute;              /* keep each layer's input only: less memory, a third more work */
    bool plan_only;              /* read the data, time a few tokens, keep nothing: hone_trainer_get_info alone works */
    const char *chat_template;   /* of conversations: a format's name ("chatml") or Jinja source; NULL: the model's */
    bool (*abort_fn)(void *arg); /* asked while data are read and while it is validated: true ends that with
                                  * HONE_E_INTERRUPTED; NULL: never */
    void *abort_arg;
    const char *name; /* full: general.name of the output; NULL: that of the base; borrowed as long as the trainer */
} hone_train_params;

/* A model to begin from: a shape with random weights, a tokenizer. */
typedef struct hone_init_params {
    const char *config;      /* JSON file of the shape, as of hone_synth */
    const char *tokenizer;   /* GGUF model whose tokenizer is taken; or NULL, and a byte-level BPE is made of */
    const char *const *data; /* these files, as of hone_train_params, */
    int32_t n_data;
    int32_t n_vocab;  /* with so many tokens; 0: as the shape says */
    const char *name; /* general.name; NULL: of the file */
    uint64_t seed;
    bool (*abort_fn)(void *arg); /* as of hone_train_params */
    void *abort_arg;
    const char *const *special; /* of the tokenizer made of data: special tokens behind <|bos|> and <|endoftext|>, as
                                 * "<|im_end|>"; distinct */
    int32_t n_special;
    int64_t max_bad_lines; /* of the data, as of hone_train_params */
} hone_init_params;
/* Writes dst, F32, atomically; the same bytes for the same arguments and texts. config is needed, and either
 * tokenizer or data (n_data more than 0; else HONE_E_ARG). */
HONE_API hone_status hone_init_model(const char *dst, const hone_init_params *p, hone_error *err);

typedef struct hone_train_data {
    int64_t n_file, n_line, n_bad, n_sample, n_tok, n_target; /* n_line: records */
    int64_t n_cut, n_split,
        n_empty;    /* records that lost their end; that go on in further samples; in which nothing counts: left out */
    int64_t n_chat; /* records that a chat template wrote */
    int64_t n_mid;  /* samples that begin within a text, as the first of them does not */
    int64_t n_part, n_text, n_pair; /* texts that files of text were divided into; texts, those too; prompts with
                                     * completions, without a template */
    int32_t min_len, median_len, p95_len, max_len;
    char first_bad[256]; /* FILE:LINE: why; "" */
    uint64_t hash;
    int64_t n_passed;   /* files of folders that look like data of a form that is not read: passed over */
    int64_t n_rejected; /* records with "label": false: left out */
    int64_t n_spelt;    /* texts, and prompts of pairs, that begin with the name of a special token, as text */
    int64_t n_marked;   /* files with "<|endoftext|>" only behind where HONE_SPLIT_AUTO looks for it */
    char files[512];    /* paths of those that were read, a line each, as many as fit */
    char first_passed[256], first_spelt[64]; /* a path; the name of a token; "" */
} hone_train_data;

typedef struct hone_train_info {
    hone_train_data train, val; /* val.n_sample 0: no validation */
    int64_t n_sequence;         /* of the first epoch */
    int64_t steps, warmup;
    double lr, min_lr, scale; /* scale: of the adapters */
    int64_t n_trainable;
    int32_t n_array, max_tok; /* arrays trained; tokens of a micro-batch at most */
    uint64_t base_bytes, state_bytes,
        work_bytes; /* base: mapped; state: weights, gradients, moments; work: an estimate before training, then held */
    char base_identity[65]; /* hone_model_identity of the base */
    int32_t try_tok; /* plan_only: tokens that were run forward and back once, for the time it took; 0: none, as */
    double try_ms;   /* full training of a large model would need all of its memory for that */
} hone_train_info;

typedef struct hone_train_step {
    int64_t step;         /* 1, 2, … */
    double epoch;         /* passed */
    double loss;          /* mean over the step's targets, natural logarithm */
    double lr, grad_norm; /* before clipping */
    int64_t n_tok, n_target;
    double data_ms, gradient_ms, optimizer_ms;
    bool skipped; /* loss or gradient was not finite: weights are as before */
    bool eval;    /* val_loss is of this step */
    double val_loss, eval_ms;
    bool best; /* the least val_loss so far */
    bool done; /* that was the last step */
    bool stopped_early;
} hone_train_step;

typedef struct hone_train_status {
    int64_t step, n_skipped, n_tok, n_target; /* so far */
    double val_loss, best_val;                /* NaN: none */
    int64_t best_step;
    double first_loss, last_loss, smooth_loss;
    bool done, stopped_early;
    bool eval_due; /* a validation of the last step was interrupted: the next step makes up for it, and is no other */
} hone_train_status;

typedef struct hone_trainer hone_trainer;

HONE_API void hone_train_defaults(hone_train_params *p);
/* Reads the data, prepares everything; ctx and m must outlive the trainer. HONE_E_ARG, HONE_E_FORMAT: data, with file
 * and line. HONE_E_UNSUPPORTED: a model that hone does not train. */
HONE_API hone_status hone_trainer_new(hone_trainer **out, hone_context *ctx, const hone_model *m,
                                      const hone_train_params *p, hone_error *err);
HONE_API void hone_trainer_free(hone_trainer *t);
HONE_API void hone_trainer_get_info(const hone_trainer *t, hone_train_info *out);     /* t NULL: zeros */
HONE_API void hone_trainer_get_status(const hone_trainer *t, hone_train_status *out); /* t NULL: zeros */
/* What training depends on, one "name value" a line; borrowed. t NULL: "". */
HONE_API const char *hone_trainer_settings(const hone_trainer *t);
/* One optimizer step, and a validation where one is due. Threads do not change its result. HONE_E_NUMERIC: loss or
 * gradient not finite, several steps in a row. HONE_E_ARG: training is over. HONE_E_INTERRUPTED: the step is made, its
 * validation is not, and the next call, also after hone_trainer_save and hone_trainer_resume, does that alone. On
 * failure *out has the step's number and what was measured until then. */
HONE_API hone_status hone_trainer_step(hone_trainer *t, hone_train_step *out, hone_error *err);
/* The present loss on the validation data (NaN: there is none, or failure); changes nothing. HONE_E_NUMERIC: it is no
 * finite number; a step that validates gives NaN then, and is no gain. */
HONE_API hone_status hone_trainer_validate(hone_trainer *t, double *loss, hone_error *err);
/* Writes FOLDER/step-NNNNNNNN.ckpt (whole or not at all), then removes all but the last `keep` up to this step, and
 * those of later steps; keep 0: removes none. */
HONE_API hone_status hone_trainer_save(hone_trainer *t, const char *folder, int32_t keep, hone_error *err);
/* Goes on from one file. HONE_E_FORMAT: damaged; HONE_E_ARG: of other settings, data or base, which are named; t is as
 * before. */
HONE_API hone_status hone_trainer_load(hone_trainer *t, const char *path, hone_error *err);
/* The same from the newest whole file of a folder: *step 0 when it holds none (no error). note[n_note]: damaged ones
 * that were passed over, "" if none. */
HONE_API hone_status hone_trainer_resume(hone_trainer *t, const char *folder, int64_t *step, char *note, size_t n_note,
                                         hone_error *err);
/* Step of the newest checkpoint in a folder by its name, 0: none, as after remove: all checkpoints there are deleted.
 */
HONE_API hone_status hone_train_checkpoints(const char *folder, bool remove, int64_t *step, hone_error *err);
/* The adapters as a GGUF file, or as a PEFT folder; with patience, those of the best validation. With full training
 * the whole model as GGUF (HONE_E_UNSUPPORTED as PEFT). */
HONE_API hone_status hone_trainer_write(hone_trainer *t, const char *path, hone_error *err);
HONE_API hone_status hone_trainer_write_peft(hone_trainer *t, const char *folder, hone_error *err);

/* ---- conversion and synthesis -------------------------------------------------- */

typedef struct hone_progress {
    void (*fn)(void *arg, uint64_t done, uint64_t total); /* told now and then; may be NULL */
    void *arg;                                            /* of both; may be NULL */
    bool (*abort_fn)(void *arg);                          /* true: stop, HONE_E_INTERRUPTED; may be NULL */
} hone_progress;

/* Converts a checkpoint to GGUF. What src is, is found from its content: a folder of transformers (config.json,
 * safetensors or PyTorch's files, tokenizer), a llama2.c checkpoint, an rwkv.cpp file, safetensors or a .pth of RWKV-6
 * or -7 (a file or a folder). A GGUF file becomes a folder of transformers: dst is new or empty; F32, F16 or BF16.
 * tokenizer: its vocabulary file or NULL. type: "F32" or another mixture name, NULL: as the source. pr may be NULL.
 * Writes a temporary file, then renames. HONE_E_UNSUPPORTED: a class of models, or a member of its config, that hone
 * does not run. */
HONE_API hone_status hone_convert(const char *src, const char *tokenizer, const char *type, const char *dst,
                                  const hone_progress *pr, hone_error *err);

typedef struct hone_convert_params {
    const char *tokenizer; /* as above; NULL: what lies in src */
    const char *type;      /* as above */
    const char *pre;       /* how the tokenizer splits text: tokenizer.ggml.pre; NULL: as its files say */
    void (*note)(void *arg, const char *text); /* told what was left out or is done otherwise; NULL: nobody */
    void *note_arg;
} hone_convert_params;
/* The same. p may be NULL: all NULL. */
HONE_API hone_status hone_convert_with(const char *src, const char *dst, const hone_convert_params *p,
                                       const hone_progress *pr, hone_error *err);

/* One matrix that was merged: types in the base and now, root mean squares of W, of what was added, and of what
 * encoding it again changed. */
typedef struct hone_merge_tensor {
    const char *name, *from, *to;
    uint64_t n; /* elements */
    double weight_rms, delta_rms, error_rms;
} hone_merge_tensor;

typedef struct hone_merge_params {
    const char *base;
    const char *const *adapters; /* [n_adapters] */
    const float *scales;         /* [n_adapters]; NULL: all 1 */
    int32_t n_adapters;          /* at least 1 */
    const char *type; /* of the merged matrices: NULL or "keep": their own (F16 where hone has no encoder for it), or a
                         mixture's name */
    void (*report)(void *arg, const hone_merge_tensor *t); /* told of each; NULL: nobody */
    void *report_arg;
} hone_merge_params;
/* Writes the base with W + Σ scale·BA in place of each W that an adapter changes, computed in f32; all else is
 * copied as it is. pr may be NULL. Writes a temporary file, then renames. HONE_E_ARG: dst is one of the files it is
 * made of. */
HONE_API hone_status hone_merge(const hone_merge_params *p, const char *dst, const hone_progress *pr, hone_error *err);

typedef struct hone_synth_preset {
    const char *name, *arch, *description;
    uint64_t n_params;
} hone_synth_preset;
/* Their number; *out, which may be NULL: all of them, as long as the program lives. */
HONE_API size_t hone_synth_presets(const hone_synth_preset **out);

typedef struct hone_synth_params {
    const char *preset;      /* a preset's name, or NULL with config_path */
    const char *config_path; /* JSON file with the same fields as the presets' shapes; NULL with preset */
    const char *type;        /* "F16" "BF16" "Q8_0" "Q4_0" "Q4_K_M" "Q5_K_M" "Q6_K" …; NULL: "Q4_K_M" */
    uint64_t seed;
    int32_t n_threads; /* 0: all cores */
    int32_t n_layer;   /* so many of the shape's layers alone; 0: all */
} hone_synth_params;
/* Writes a GGUF of that exact shape with random, sane weights. pr may be NULL. */
HONE_API hone_status hone_synth(const hone_synth_params *p, const char *dst, const hone_progress *pr, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
