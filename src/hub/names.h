/* names: what somebody means by the NAME of a model, and which files of a repository that is. Owns the forms of
 * names, what is let through of their parts, the short names, and the choice of a quantization. Refuses to know of
 * networks and disks: whether it is here is hub/cache.h, how it comes here hub/download.h.
 *
 *     owner/repo[@rev][:TAG]           a repository of the hub, and which quantization of it
 *     owner/repo[@rev]/path/to/x.gguf  one file of it; also after hf.co/, huggingface.co/, hf:// and https://…
 *                                      (a '/' in rev is %2F there, but for refs/pr/1)
 *     https://…/resolve|blob|tree/…    what a browser shows of the hub
 *     https://other.host/x.gguf        a file from anywhere
 *     ollama:[host/][namespace/]name[:tag]
 *     name[:TAG]                       a short name (names.txt, and the user's own), or one that is here
 */
#ifndef HN_NAMES_H
#define HN_NAMES_H

#include "base/base.h"

typedef enum hn_name_kind {
    HN_NAME_NONE = 0, /* no name of a model: a path, whether something is there or not */
    HN_NAME_BARE,     /* repo: the name, tag */
    HN_NAME_HUB,      /* repo "owner/repo", rev, tag or path */
    HN_NAME_OLLAMA,   /* host, repo "namespace/name", tag (never "") */
    HN_NAME_URL       /* url */
} hn_name_kind;

enum { HN_NAME_PART = 200, HN_NAME_PATH_MAX = 1024, HN_NAME_URL_MAX = 4096 };

/* Each part checked: fit for a path below a folder and for a URL, as far as its alphabet goes. "": there is none. */
typedef struct hn_name {
    hn_name_kind kind;
    char repo[HN_NAME_PART];
    char rev[HN_NAME_PART];      /* hub: a branch, tag or commit; "": main */
    char tag[HN_NAME_PART];      /* hub: a quantization; ollama: its tag; bare: either */
    char path[HN_NAME_PATH_MAX]; /* hub: a file, or with `folder` a folder of the repository */
    bool folder;
    bool checkpoint;           /* hub: the checkpoint that is there, and no GGUF beside it; no part of the text */
    bool checkpoint_first;     /* hub: it, also half of it, else the GGUF; no part of the text */
    char host[HN_NAME_PART];   /* ollama: the registry; hub: "" */
    char url[HN_NAME_URL_MAX]; /* as it was given, without a fragment */
} hn_name;

/* What text means by its form alone; no file is looked for. HONE_E_ARG: it begins like a name and is none (a part that
 * cannot be, http:// to another host than this one): says which part, seen and expected. HONE_OK with HN_NAME_NONE:
 * a path (begins with / . or ~, or has a shape no name has). */
hone_status hn_name_parse(hn_name *out, const char *text, hone_error *err);
/* A bare name that is on the list of short names becomes what it stands for (its own TAG wins); others stay as they
 * are. HONE_E_ARG, HONE_E_IO: the user's own list cannot be read. */
hone_status hn_name_expand(hn_name *n, hone_error *err);
/* The name again, in its shortest form that means the same: "owner/repo@rev:TAG". Returns dst. */
char *hn_name_text(char *dst, size_t cap, const hn_name *n);

enum { HN_NAME_FILE = 240 }; /* a name of a file and what is hung on while it comes: .hone-part.json */
/* What a file from an address is called here: the last part of its path, %XX taken back. False: that is no name. */
bool hn_name_url_file(char dst[HN_NAME_FILE], const char *url);

/* ---- parts, as the hub allows them (spec of its cache: each becomes a name on disk) --------------- */

bool hn_hub_repo_ok(const char *repo);     /* owner/repo; each [A-Za-z0-9._-]{1,96}, no "--", "..", .git */
bool hn_hub_rev_ok(const char *rev);       /* branch, tag, refs/pr/1, commit; no "..", //, control bytes */
bool hn_hub_commit_ok(const char *commit); /* 40 small hexadecimal digits */
bool hn_hub_oid_ok(const char *oid);       /* 40 or 64 small hexadecimal digits */
bool hn_hub_path_ok(const char *path);     /* relative, no empty part, ".", "..", backslash, control byte; UTF-8 */
bool hn_ollama_part_ok(const char *part);  /* namespace, name, tag: [A-Za-z0-9_][A-Za-z0-9._-]{0,79} */

/* ---- short names ------------------------------------------------------------------------------ */

typedef struct hn_short_name {
    const char *name, *means; /* "llama3.2", "bartowski/Llama-3.2-3B-Instruct-GGUF" */
    bool own;                 /* of the user's file */
} hn_short_name;

typedef struct hn_short_names {
    hn_short_name *list; /* sorted; an own one replaces a shipped one */
    size_t n;
    char *text, *own;
} hn_short_names;

/* The shipped ones and those of $XDG_CONFIG_HOME/hone/names (~/.config/hone/names): lines "NAME MEANING", and # before
 * remarks. */
hone_status hn_short_names_read(hn_short_names *out, hone_error *err);
void hn_short_names_free(hn_short_names *s);

/* ---- the choice among the files of a repository ------------------------------------------------- */

typedef struct hn_repo_file {
    const char *path; /* in the repository */
    uint64_t size;
} hn_repo_file;

/* One model of a repository: a GGUF file, or a split set. */
typedef struct hn_gguf_set {
    char tag[48]; /* "Q4_K_M", "UD-Q4_K_XL", as it is spelt there; "": its name says none */
    size_t *file; /* [n_file] indices of the parts in their order; SIZE_MAX: the part is missing */
    size_t n_file;
    size_t n_missing;
    uint64_t bytes;
    bool again; /* the same model is there in fewer files, or whole: only its path means this one */
} hn_gguf_set;

/* A model that somebody cut into plain pieces of bytes: NAME.gguf.part1of2 …, NAME.gguf-split-a …. None of them is a
 * GGUF file; one behind another, in their order, they are one. */
typedef struct hn_gguf_cut {
    char tag[48];
    size_t *file; /* [n_file] indices of the parts that are there, in their order */
    size_t n_file;
    size_t total; /* how many there are to be; 0: their names do not say */
    size_t stem;  /* bytes of their paths that are the path of the whole */
    uint64_t bytes;
} hn_gguf_cut;

typedef struct hn_gguf_sets {
    hn_gguf_set *set; /* smallest first */
    size_t n;
    hn_gguf_cut *cut; /* likewise; none of them can be chosen */
    size_t n_cut;
} hn_gguf_sets;

/* What is left of the files without those that hn_gguf_is_side names, joined to sets within one folder. */
hone_status hn_gguf_sets_of(hn_gguf_sets *out, const hn_repo_file *files, size_t n, hone_error *err);
void hn_gguf_sets_free(hn_gguf_sets *s);

/* Memory that a model of so many bytes takes to answer with a context of some 4,000 tokens: the weights, an eighth for
 * the cache, and 256 MiB. A rule of thumb, where the header is not at hand yet. */
uint64_t hn_memory_for(uint64_t bytes);
/* What of this machine's memory a model may take: seven eighths of all (hn_memory_total); 0: unknown. */
uint64_t hn_memory_for_models(void);

/* Which set `name` means (its path, its folder, its tag, else the best that fits memory bytes; 0: unknown).
 * *which: its index. why: one sentence for people. Without path or tag: Q8_0 where it is small (2 GiB), else Q4_K_M,
 * else the nearest to it that fits: upwards to Q8_0 first, then downwards; of those that have a quarter of the
 * largest's weights, as drafts have not. The only one is taken if it fits. A tag that is not there means the UD- one.
 * HONE_E_ARG: the tag or path is not there, or several match: lists what is, with sizes. HONE_E_FORMAT: parts of a set
 * are missing. HONE_E_NOMEM: nothing fits; says the smallest and how to take it anyway. HONE_E_UNSUPPORTED: no GGUF.
 * What is cut is told with the command that joins it, where it is what was asked for, or all there is. */
hone_status hn_gguf_choose(size_t *which, char *why, size_t cap, const hn_gguf_sets *sets, const hn_repo_file *files,
                           const hn_name *name, uint64_t memory, hone_error *err);
enum { HN_CUT_WORDS = 80 };
/* "2 parts", "12 parts, of which 3 are there". Returns dst. */
char *hn_gguf_cut_words(char dst[HN_CUT_WORDS], const hn_gguf_cut *cut);
/* "Q4_K_M 4.6 GiB, Q8_0 7.9 GiB, …" for messages, cut at cap. Returns dst. */
char *hn_gguf_sets_words(char *dst, size_t cap, const hn_gguf_sets *sets);
/* The tag in a file's name: after the last '-', '.' or '_' before it, without "_imatrix" behind it, with a UD- before
 * it; "" where it names no quantization. */
void hn_gguf_tag(char tag[48], const char *path);
/* No model of its own: mmproj; an imatrix (its name begins so, or has the word and no quantization); or its name begins
 * with mtp-, eagle3-, dflash-, dspark-. Whole models have such words further on (Qwen3.6-27B-MTP-Q4_K_M,
 * m-Q4_K_M-imatrix): there hn_gguf_choose goes by size. */
bool hn_gguf_is_side(const char *path);
bool hn_ends_with_gguf(const char *path);

#endif
