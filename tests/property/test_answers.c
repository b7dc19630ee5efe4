/* One answer for every family: whatever a sequence went through, its logits are, bit for bit, those of the same tokens
 * run alone by the scalar kernels, on one thread, in one chunk. Each episode draws a model (a published vector of a
 * family with types, windows and experts laid out at random; a file of HONE_ANSWERS_FILES), a kind of cache, maybe two
 * adapters, and three sessions on other levels, threads and chunks, packed or plain; then it runs batches of several
 * sequences, each with its set of adapters, forks, cuts, kept prefixes, checkpoints, snapshots and session files from
 * one to another, stops and refusals.
 *
 * HONE_ANSWERS_SEED: of the first round (1); HONE_ANSWERS_COUNT: rounds of one episode a family (1);
 * HONE_ANSWERS_STEPS: of an episode; HONE_TEST_FAMILY: those whose name begins so; HONE_ANSWERS_FILES: a folder of
 * GGUF files in place of the vectors. What fails says the seed that shows it again in one round. */
#include "engine/engine.h"
#include "../unit/family_vectors.h"
#include "../unit/tiny_rwkv.h"
#include "../unit/slowed.h"

enum { STEPS = SLOWED ? 12 : 30, N_TEXT = SLOWED ? 2 : 3 };
enum { N_RIG = 3, N_SEQ = 4, MOST_CTX = 200, N_SNAP = 3, N_TRAIL = 24, MOST_BATCH = 96 };
enum { N_ADAPTER = 2, N_SET = 4 }; /* bit k of a set: adapter k; 0: none */

static long number(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s ? atol(s) : otherwise;
}

static uint64_t key, drawn;
static uint32_t draw(uint32_t n) { return (uint32_t)(hn_rand64(key, drawn++) >> 20) % n; }
static bool chance(uint32_t one_in) { return draw(one_in) == 0; }

/* ---- an episode ------------------------------------------------------------------------------------- */

typedef struct rig {
    hone_context *c;
    hone_session *s;
    bool packed;
    int text[N_SEQ], len[N_SEQ]; /* what each sequence holds: the first len tokens of a text */
    int set[N_SEQ];
    char what[96];
} rig;

static struct {
    const char *name;
    long seed;
    hone_model *alone, *plain, *packed;  /* alone: as the family has it; plain, packed: in this episode's layout */
    hone_adapter *adapter[3][N_ADAPTER]; /* of these */
    float scale[N_ADAPTER];
    bool adapted;
    int n_vocab, n_ctx;
    hone_kv_cache_type cache;
    int32_t text[N_TEXT][MOST_CTX];
    float *want[N_SET][N_TEXT]; /* [n_ctx, n_vocab]; NULL: not asked for yet */
    rig rig[N_RIG];
    hone_snapshot *snap[N_SNAP];
    int snap_text[N_SNAP], snap_set[N_SNAP];
} ep;

static char trail[N_TRAIL][256]; /* the last steps */
static int n_step;

static struct {
    long rows, episodes, packed, adapted, restored, loaded, stopped, full, mixed, hits;
} did;

#define STEP(...) (void)snprintf(trail[n_step++ % N_TRAIL], sizeof trail[0], __VA_ARGS__)

static void wrong(const char *what)
{
    for (int i = n_step > N_TRAIL ? n_step - N_TRAIL : 0; i < n_step; i++)
        print_message("    %s\n", trail[i % N_TRAIL]);
    fail_msg("%s: %s\n    HONE_ANSWERS_SEED=%ld HONE_TEST_FAMILY=%s", ep.name, what, ep.seed, ep.name);
}
static void must(hone_status st, const hone_error *err)
{
    if (st != HONE_OK) wrong(err->message);
}

/* The positions in which two texts begin alike. */
static int shared(int a, int b)
{
    int n = 0;
    while (n < ep.n_ctx && ep.text[a][n] == ep.text[b][n]) n++;
    return n;
}

/* Sequence seq, which is empty, runs with a set. */
static void use_set(hone_session *s, const hone_model *m, int seq, int set)
{
    hone_error err = { 0 };
    hone_adapter *const *of = ep.adapter[m == ep.alone ? 0 : m == ep.plain ? 1 : 2], *list[N_ADAPTER];
    float scale[N_ADAPTER];
    int n = 0;
    for (int i = 0; i < N_ADAPTER; i++)
        if (set >> i & 1) list[n] = of[i], scale[n++] = ep.scale[i];
    must(hone_seq_set_adapters(s, seq, list, scale, n, &err), &err);
}

/* The oracle: a text alone. */
static const float *answers(int set, int text)
{
    float **want = &ep.want[set][text];
    if (*want) return *want;
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, ep.alone, ep.n_ctx, 1, ep.n_ctx, ep.cache);
    use_set(s, ep.alone, 0, set);
    *want = malloc((size_t)ep.n_ctx * (size_t)ep.n_vocab * sizeof **want);
    assert_non_null(*want);
    tm_run(s, 0, ep.text[text], ep.n_ctx, *want);
    hone_session_free(s);
    hone_context_free(c);
    return *want;
}

static void same_row(const rig *r, int seq, int pos, const float *got)
{
    char what[256];
    const float *want = answers(r->set[seq], r->text[seq]) + (size_t)pos * (size_t)ep.n_vocab;
    did.rows++;
    if (!memcmp(want, got, (size_t)ep.n_vocab * sizeof *got)) return;
    snprintf(what, sizeof what, "%s: sequence %d, text %d, set %d: other logits at position %d", r->what, seq,
             r->text[seq], r->set[seq], pos);
    wrong(what);
}

/* ---- what may happen to a sequence -------------------------------------------------------------------- */

static bool stop_some(void *arg) { return chance(20); }

static void lengths(const rig *r)
{
    for (int seq = 0; seq < N_SEQ; seq++)
        if (hone_seq_length(r->s, seq) != r->len[seq]) wrong("a sequence has another length than it was given");
}

/* Some tokens of some sequences in any order, some with logits. */
static void run_some(rig *r)
{
    static hone_token batch[MOST_BATCH];
    int more[N_SEQ] = { 0 }, to[N_SEQ], n = 0, n_want = 0, left = 0, sets = 0;
    hone_error err = { 0 };
    for (int seq = 0; seq < N_SEQ; seq++) {
        int room = ep.n_ctx - r->len[seq], most = chance(3) ? 1 : chance(2) ? 5 : MOST_BATCH / N_SEQ;
        if (chance(2) || !room) continue;
        more[seq] = 1 + (int)draw((uint32_t)(room < most ? room : most));
        left += more[seq];
        sets |= 1 << r->set[seq];
        /* another text goes on from here, where one begins like this */
        int other = (int)draw(N_TEXT);
        if (shared(other, r->text[seq]) >= r->len[seq]) r->text[seq] = other;
    }
    memcpy(to, r->len, sizeof to);
    while (left) {
        int seq = (int)draw(N_SEQ), k = 1 + (int)draw(chance(2) ? 1 : MOST_BATCH);
        for (; k && more[seq]; k--, more[seq]--, left--, n++) {
            batch[n] = (hone_token){ ep.text[r->text[seq]][to[seq]], to[seq], seq, !chance(3) };
            n_want += batch[n].want_logits;
            to[seq]++;
        }
    }
    bool may_stop = chance(6);
    float *y = malloc((size_t)(n_want + 1) * (size_t)ep.n_vocab * sizeof *y), *row = y;
    assert_non_null(y);
    hone_session_set_abort(r->s, may_stop ? stop_some : NULL, NULL);
    STEP("%s: %d tokens; lengths %d %d %d %d", r->what, n, to[0], to[1], to[2], to[3]);
    hone_status st = hone_run_batch(r->s, batch, n, y, &err);
    hone_session_set_abort(r->s, NULL, NULL);
    if (st == HONE_OK) {
        memcpy(r->len, to, sizeof to);
        did.mixed += (sets & (sets - 1)) != 0;
        for (int i = 0; i < n; i++) {
            if (!batch[i].want_logits) continue;
            same_row(r, batch[i].seq, batch[i].pos, row);
            row += ep.n_vocab;
        }
    } else if (st == HONE_E_INTERRUPTED && may_stop) {
        STEP("… stopped"), did.stopped++;
    } else if (st == HONE_E_NOMEM) {
        STEP("… did not fit"), did.full++;
    } else {
        wrong(err.message);
    }
    free(y);
}

static void sync_to(rig *r, int seq, int text)
{
    const float *y;
    int32_t kept;
    hone_error err = { 0 };
    int n = 1 + (int)draw((uint32_t)ep.n_ctx);
    STEP("%s: sync %d to %d of text %d", r->what, seq, n, text);
    hone_status st = hone_seq_sync(r->s, seq, ep.text[text], n, &kept, &y, &err);
    if (st != HONE_OK && st != HONE_E_NOMEM) wrong(err.message);
    r->text[seq] = text;
    r->len[seq] = st == HONE_OK ? n : kept;
    if (st == HONE_OK) same_row(r, seq, n - 1, y);
    else STEP("… did not fit"), did.full++;
}

/* Into the same session or another: of another level, other threads and chunks. */
static void snapshot_or_restore(rig *r, int seq)
{
    hone_error err = { 0 };
    int i = (int)draw(N_SNAP);
    if (!ep.snap[i] || chance(3)) {
        hone_snapshot_free(ep.snap[i]);
        STEP("%s: snapshot %d of %d", r->what, i, seq);
        must(hone_seq_snapshot(r->s, seq, &ep.snap[i], &err), &err);
        ep.snap_text[i] = r->text[seq], ep.snap_set[i] = r->set[seq];
        return;
    }
    STEP("%s: %d restored from snapshot %d of %d", r->what, seq, i, hone_snapshot_length(ep.snap[i]));
    hone_status st = hone_seq_restore(r->s, seq, ep.snap[i], &err);
    if (ep.snap_set[i] != r->set[seq]) { /* by whatever handle of the model, packed or not */
        if (st != HONE_E_ARG) wrong("a snapshot of other adapters was taken");
        return;
    }
    if (st == HONE_E_NOMEM) {
        did.full++;
        return;
    }
    must(st, &err);
    did.restored++;
    r->text[seq] = ep.snap_text[i];
    r->len[seq] = hone_snapshot_length(ep.snap[i]);
}

static const hone_model *model_of(const rig *r) { return r->packed ? ep.packed : ep.plain; }

static void empty(rig *r, int seq, int set)
{
    hone_error err = { 0 };
    must(hone_seq_truncate(r->s, seq, 0, &err), &err);
    r->len[seq] = 0;
    use_set(r->s, model_of(r), seq, set);
    r->set[seq] = set;
}

/* Must a file of r be refused, as its sequences ran with other adapters? */
static bool other_sets(const rig *r, const rig *other)
{
    bool one = true, same = true, held = true;
    for (int seq = 0; seq < N_SEQ; seq++) {
        one = one && r->set[seq] == r->set[0] && other->set[seq] == other->set[0];
        same = same && r->set[seq] == other->set[seq];
        held = held && (!r->len[seq] || r->set[seq] == other->set[seq]);
    }
    return one ? !same : !held;
}

static void file_to(rig *r, rig *other)
{
    hone_error err = { 0 };
    for (int seq = 0; seq < N_SEQ && other != r && chance(2); seq++) empty(other, seq, r->set[seq]);
    STEP("%s: saved to a file; %s: loaded", r->what, other->what);
    must(hone_session_save(r->s, tm_path("answers.session"), &err), &err);
    hone_status st = hone_session_load(other->s, tm_path("answers.session"), &err);
    if (other_sets(r, other)) {
        assert_int_equal(st, HONE_E_ARG);
        return;
    }
    if (st == HONE_E_NOMEM) {
        did.full++;
        return;
    }
    must(st, &err);
    did.loaded++;
    memcpy(other->text, r->text, sizeof r->text);
    memcpy(other->len, r->len, sizeof r->len);
}

static void step(void)
{
    rig *r = &ep.rig[draw(N_RIG)];
    int seq = (int)draw(N_SEQ), from = (int)draw(N_SEQ);
    int32_t n = (int32_t)draw((uint32_t)r->len[seq] + 1);
    hone_error err = { 0 };
    switch (draw(20)) {
    case 0:
        STEP("%s: %d forked from %d", r->what, seq, from);
        must(hone_seq_copy(r->s, seq, from, &err), &err);
        r->text[seq] = r->text[from], r->len[seq] = r->len[from], r->set[seq] = r->set[from];
        break;
    case 1:
    case 2:
        STEP("%s: rewind %d to %d", r->what, seq, n);
        must(hone_seq_rewind(r->s, seq, n, &r->len[seq], &err), &err);
        if (r->len[seq] > n) wrong("a rewind went too short a way");
        break;
    case 3: {
        STEP("%s: truncate %d to %d", r->what, seq, n);
        hone_status st = hone_seq_truncate(r->s, seq, n, &err);
        if (st != HONE_OK && st != HONE_E_UNSUPPORTED) wrong(err.message);
        if (st == HONE_OK) r->len[seq] = n;
        break;
    }
    case 4:
        STEP("%s: checkpoint of %d", r->what, seq);
        must(hone_seq_checkpoint(r->s, seq, &err), &err);
        break;
    case 5:
    case 6: snapshot_or_restore(r, seq); break;
    case 7:
        if (chance(2)) file_to(r, &ep.rig[draw(N_RIG)]);
        break;
    case 8:
    case 9:
    case 10: sync_to(r, seq, (int)draw(N_TEXT)); break;
    case 11:
    case 12:
        STEP("%s: %d positions of %d kept", r->what, r->len[seq], seq);
        must(hone_seq_keep(r->s, seq, &err), &err);
        break;
    case 13: {
        int set = ep.adapted ? (int)draw(N_SET) : 0, scope = (int)draw(2);
        if (chance(2)) must(hone_seq_keep(r->s, seq, &err), &err);
        STEP("%s: %d emptied, for scope %d and set %d", r->what, seq, scope, set);
        empty(r, seq, set);
        must(hone_seq_set_scope(r->s, seq, (uint64_t)scope, &err), &err);
        sync_to(r, seq, (int)draw(N_TEXT));
        break;
    }
    case 14: { /* all go, and one comes back */
        int text = r->text[seq];
        STEP("%s: all kept and emptied", r->what);
        for (int i = 0; i < N_SEQ; i++) {
            must(hone_seq_keep(r->s, i, &err), &err);
            empty(r, i, r->set[i]);
        }
        sync_to(r, seq, text);
        break;
    }
    default: run_some(r);
    }
    lengths(r);
}

/* ---- making one ------------------------------------------------------------------------------------------- */

static hone_model *open_with(const char *path, const char *packed)
{
    hone_error err = { 0 };
    hone_model *m;
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = packed }, &err)) wrong(err.message);
    return m;
}

/* An adapter file for some of the model's matrices; NULL: it has none that an adapter may change. */
/* Their alphas differ, so that two that draw the same matrices are not one adapter. */
static const char *make_adapter(const char *model, const char *as, float alpha)
{
    hone_file *f;
    hone_error err = { 0 };
    tiny *a = calloc(1, sizeof *a);
    assert_non_null(a);
    must(hone_file_open(&f, model, &err), &err);
    a->s.arch = ep.plain->arch->name;
    tm_put_str(a, "general.architecture", a->s.arch);
    tm_put_str(a, "general.type", "adapter");
    tm_put_str(a, "adapter.type", "lora");
    tm_put_f32(a, "adapter.lora.alpha", alpha);
    for (uint64_t i = 0; i < hone_file_n_tensors(f) && a->n_t < 100; i++) {
        static const char *const may[] = { ".attn_q.weight",      ".attn_k.weight",   ".attn_v.weight",
                                           ".attn_output.weight", ".ffn_gate.weight", ".ffn_up.weight",
                                           ".ffn_down.weight" };
        hone_tensor_info t;
        char name[52], half[64];
        hone_file_tensor(f, i, &t);
        snprintf(name, sizeof name, "%.*s", (int)t.name.len, t.name.ptr);
        int il;
        if (sscanf(name, "blk.%d.", &il) == 1 && il >= ep.plain->hp.n_layer) continue; /* a block that drafts */
        bool can = false;
        for (size_t k = 0; k < sizeof may / sizeof *may; k++) can = can || ends(name, may[k]);
        if (!can || chance(2)) continue;
        uint64_t rank = 1 + draw(4);
        snprintf(half, sizeof half, "%s.lora_a", name);
        tm_add(a, half, 2, t.ne[0], rank);
        snprintf(half, sizeof half, "%s.lora_b", name);
        tm_add(a, half, 2, rank, t.ne[1]);
    }
    hone_file_close(f);
    const char *path = a->n_t ? tm_path(as) : NULL;
    if (path) tm_save_raw(a, path);
    tm_free(a);
    return path;
}

static void rig_up(rig *r)
{
    const char *const *levels = tm_levels();
    int n_level = 0, threads = 1 + (int)draw(4), batch_threads = (int)draw(4),
        chunk = 1 + (int)draw(chance(3) ? 5 : 90);
    hone_error err = { 0 };
    while (levels[n_level]) n_level++;
    const char *cpu = levels[draw((uint32_t)n_level)];
    *r = (rig){ .packed = ep.packed && chance(2) };
    const hone_model *m = model_of(r);
    const hone_context_params cp = { .n_threads = threads, .cpu = cpu, .n_threads_batch = batch_threads };
    must(hone_context_new(&r->c, &cp, &err), &err);
    hone_session_params p = { .n_ctx = ep.n_ctx,
                              .n_seq = N_SEQ,
                              .n_chunk = chunk,
                              .cache = ep.cache,
                              .n_checkpoints = 1 + (int)draw(4),
                              .n_kept_states = (int)draw(4) };
    must(hone_session_new(&r->s, r->c, m, &p, &err), &err);
    if (chance(4)) { /* less than all sequences may ask for */
        hone_session_memory use;
        hone_session_get_memory(r->s, &use);
        hone_session_free(r->s);
        p.cache_budget = use.cache_bytes / 2;
        must(hone_session_new(&r->s, r->c, m, &p, &err), &err);
    }
    for (int seq = 0; ep.adapted && seq < N_SEQ; seq++) empty(r, seq, (int)draw(N_SET));
    snprintf(r->what, sizeof r->what, "[%s, %d and %d threads, chunks of %d, %s%s]", cpu, threads, batch_threads, chunk,
             r->packed ? "packed" : "plain", p.cache_budget ? ", half the memory" : "");
}

static void draw_texts(void)
{
    for (int t = 0; t < N_TEXT; t++) {
        int from = t ? (int)draw((uint32_t)t) : 0, same = t ? (int)draw((uint32_t)ep.n_ctx) : 0;
        for (int i = 0; i < ep.n_ctx; i++)
            ep.text[t][i] = i < same ? ep.text[from][i] : (int32_t)draw((uint32_t)ep.n_vocab);
    }
}

static void free_answers(void)
{
    for (int set = 0; set < N_SET; set++)
        for (int i = 0; i < N_TEXT; i++) free(ep.want[set][i]);
}

/* alone: the file of the oracle; path: the same model, however its experts lie. */
static void episode(const char *alone, const char *path)
{
    hone_error err = { 0 };
    hone_packed_info packed;
    hone_model_info info;
    ep.alone = open_with(alone, "off");
    ep.plain = open_with(path, "off");
    hone_model_get_info(ep.alone, &info);
    ep.n_vocab = info.n_vocab;
    ep.n_ctx = 66 + (int)draw(chance(4) ? MOST_CTX - 66 : 20);
    const hn_gguf_tensor *learnt = hn_gguf_find_tensor(ep.plain->file, "position_embd.weight");
    if (learnt && learnt->ne[1] < (uint64_t)ep.n_ctx) ep.n_ctx = (int)learnt->ne[1];
    ep.cache = (hone_kv_cache_type)draw(3);
    if (chance(2)) {
        must(hone_pack(path, &(hone_pack_params){ .force = true, .n_threads = 1 }, &packed, NULL, &err), &err);
        ep.packed = open_with(path, NULL);
        did.packed++;
    }
    hone_model *each[3] = { ep.alone, ep.plain, ep.packed };
    ep.adapted = chance(3);
    for (int k = 0; k < N_ADAPTER; k++) {
        const char *lora =
            ep.adapted ? make_adapter(alone, k ? "answers.b.gguf" : "answers.a.gguf", k ? 2.5f : 3) : NULL;
        ep.adapted = lora != NULL;
        ep.scale[k] = 0.5f + 0.25f * (float)draw(4);
        for (int i = 0; lora && i < 3; i++)
            if (each[i]) must(hone_adapter_open(&ep.adapter[i][k], each[i], lora, &err), &err);
    }
    did.adapted += ep.adapted;
    draw_texts();
    for (int i = 0; i < N_RIG; i++) rig_up(&ep.rig[i]);
    long n = number("HONE_ANSWERS_STEPS", STEPS);
    for (long k = 0; k < n; k++) step();
    for (int i = 0; i < N_RIG; i++) {
        hone_prefix_info info_of;
        hone_session_prefix_info(ep.rig[i].s, &info_of);
        did.hits += (long)info_of.n_hits;
        hone_session_free(ep.rig[i].s);
        hone_context_free(ep.rig[i].c);
    }
    for (int i = 0; i < N_SNAP; i++) hone_snapshot_free(ep.snap[i]);
    free_answers();
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < N_ADAPTER; k++) hone_adapter_close(ep.adapter[i][k]);
        hone_model_close(each[i]);
    }
    did.episodes++;
}

static void begin(const char *name, long seed)
{
    memset(&ep, 0, sizeof ep);
    n_step = 0;
    ep.name = name, ep.seed = seed;
    key = (uint64_t)seed, drawn = 0;
    for (const char *c = name; *c; c++) key = hn_mix64(key + (unsigned char)*c);
    char packed[192];
    snprintf(packed, sizeof packed, "%s", tm_path("answers.gguf.hpack"));
    unlink(packed);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

/* Does hone know this family; or, of files of one's own, take this one? */
static bool runs(const char *path, bool own)
{
    hone_error err = { 0 };
    hone_model *m;
    hone_status st = hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &err);
    hone_model_close(m);
    if (st == HONE_OK) return true;
    if (!own) wrong(err.message);
    print_message("not run: %s\n", err.message);
    return false;
}

static void of_vector(const char *file, long seed)
{
    char alone[160], path[160];
    vector v = load(file);
    begin(v.name, seed);
    v.types = chance(3) ? 0 : 1 + draw(1 << 20);
    v.window = chance(2) ? 0 : 1 + draw(90);
    snprintf(alone, sizeof alone, "%s", tm_path("alone.gguf"));
    snprintf(path, sizeof path, "%s", tm_path("answers.gguf"));
    save_as(&v, alone, NULL, AS_IS);
    if (!runs(alone, false)) {
        json_decref(v.j);
        return;
    }
    layout how = (layout)draw(DRAFT + 1); /* in others types would differ */
    save_as(&v, path, NULL, how == AS_IS || has_layout(&v, how) ? how : AS_IS);
    episode(alone, path);
    json_decref(v.j);
}

static void of_rwkv(const rw_shape *s, long seed)
{
    begin(s->arch, seed);
    tiny *t = rw_new(s);
    const char *path = tm_path("answers.gguf");
    tm_save_raw(t, path);
    tm_free(t);
    episode(path, path);
}

static bool asked_for(const char *name)
{
    const char *only = getenv("HONE_TEST_FAMILY");
    return !only || starts(name, only);
}

static void every_sequence_is_as_alone(void **state)
{
    const char *own = getenv("HONE_ANSWERS_FILES"), *folder = own ? own : FOLDER;
    long seed = number("HONE_ANSWERS_SEED", 1), count = number("HONE_ANSWERS_COUNT", 1);
    struct dirent **files;
    int n = scandir(folder, &files, NULL, alphasort);
    assert_true(n > 0);
    for (long round = seed; round < seed + count; round++) {
        for (int i = 0; i < n; i++) {
            const char *name = files[i]->d_name;
            char path[512];
            snprintf(path, sizeof path, "%s/%s", folder, name);
            if (!asked_for(name) || !ends(name, own ? ".gguf" : ".json")) continue;
            if (!own) {
                of_vector(name, round);
                continue;
            }
            begin(name, round);
            if (runs(path, true)) episode(path, path);
        }
        if (!own && asked_for("rwkv7")) of_rwkv(&rw_vec7, round);
        if (!own && asked_for("rwkv6")) of_rwkv(&rw_vec6, round);
    }
    for (int i = 0; i < n; i++) free(files[i]);
    free(files);
    print_message("%ld episodes, %ld packed, %ld with adapters: %ld rows of logits, %ld batches of several sets, %ld "
                  "prefixes, %ld snapshots and %ld files restored, %ld stopped, %ld did not fit\n",
                  did.episodes, did.packed, did.adapted, did.rows, did.mixed, did.hits, did.restored, did.loaded,
                  did.stopped, did.full);
    assert_true(did.rows > 10 * did.episodes);
    if (did.episodes > 40) assert_true(did.mixed > 0 && did.hits > 0);
}

/* A sequence with windows that a snapshot or a file brought back is cut as one that was run here: where the window of
 * what is left begins before what the window of all needed. */
static void what_comes_back_can_be_cut(void **state)
{
    enum { FULL = 90 };
    vector v = load("gemma3.json");
    begin(v.name, 0);
    v.window = 4;
    save_as(&v, tm_path("alone.gguf"), NULL, AS_IS);
    ep.alone = open_with(tm_path("alone.gguf"), "off");
    ep.n_vocab = v.n_vocab, ep.n_ctx = FULL + 1, ep.cache = HONE_CACHE_F16;
    draw_texts();
    hone_error err = { 0 };
    int32_t other[FULL];
    for (int i = 0; i < FULL; i++) other[i] = (ep.text[0][i] + 1) % ep.n_vocab;
    rig r = { .c = tm_context(NULL, 1), .what = "brought back" };
    r.s = tm_session(r.c, ep.alone, ep.n_ctx, 2, FULL, ep.cache);
    tm_run(r.s, 1, ep.text[0], FULL, NULL);
    hone_snapshot *snap;
    must(hone_seq_snapshot(r.s, 1, &snap, &err), &err);
    must(hone_session_save(r.s, tm_path("answers.session"), &err), &err);
    for (int by_file = 0; by_file < 2; by_file++)
        for (int32_t to = FULL - 1; to > 64; to -= 5) {
            float y[MAX_VOCAB];
            int32_t kept;
            assert_int_equal(hone_seq_truncate(r.s, 1, 0, &err), HONE_OK);
            tm_run(r.s, 1, other, FULL, NULL); /* so that nothing is left where it was */
            if (by_file) must(hone_session_load(r.s, tm_path("answers.session"), &err), &err);
            else must(hone_seq_restore(r.s, 1, snap, &err), &err);
            must(hone_seq_rewind(r.s, 1, to, &kept, &err), &err);
            assert_int_equal(kept, to <= 66 ? 0 : to); /* whose window begins on the page before */
            tm_run(r.s, 1, ep.text[0] + kept, 1, y);
            same_row(&r, 1, kept, y);
        }
    hone_snapshot_free(snap);
    hone_session_free(r.s);
    hone_context_free(r.c);
    free_answers();
    hone_model_close(ep.alone);
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_is_as_alone),
        cmocka_unit_test(what_comes_back_can_be_cut),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
