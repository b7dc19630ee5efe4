/* POST /slots/{id}?action=save|restore|erase, as llama-server has it: what an idle slot holds goes to a file of
 * --slot-dir, comes back, or goes. Files are read and written on a thread of their own: the loader's may be waiting
 * for the end of those who have taken a model, and these have. Slots are touched on the desk's. */
#include "serve/job.h"
#include "serve/orders.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char route[] = "/slots/{id}";

enum { NAME_MOST = 128 };

typedef enum slot_action { SLOT_SAVE, SLOT_RESTORE, SLOT_ERASE } slot_action;

typedef struct slot_order {
    hn_order order;
    hn_book *book;       /* taken */
    const char *adapter; /* that ?model= names; NULL: none */
    slot_action action;
    int32_t slot, n; /* n: positions */
    bool has_file;   /* the one that may be at once is this one's */
    char name[NAME_MOST + 1], path[4096];
    hone_snapshot *snapshot;
    uint64_t n_bytes, began; /* of the file; ns */
} slot_order;

/* ---- answering -------------------------------------------------------------------------------------------------- */

static void write_answer(hn_order *order, hn_bytes *b)
{
    static const char *const n_names[] = { "n_saved", "n_restored", "n_erased" };
    const slot_order *o = (const slot_order *)order;
    hn_bytes_text(b, "{");
    hn_bytes_int_member(b, "id_slot", o->slot);
    if (o->action != SLOT_ERASE) hn_bytes_text_member(b, "filename", o->name);
    hn_bytes_int_member(b, n_names[o->action], o->n);
    if (o->action != SLOT_ERASE) {
        hn_bytes_int_member(b, o->action == SLOT_SAVE ? "n_written" : "n_read", (int64_t)o->n_bytes);
        hn_bytes_name(b, "timings");
        hn_bytes_text(b, o->action == SLOT_SAVE ? "{\"save_ms\":" : "{\"restore_ms\":");
        hn_bytes_f64(b, (double)(hn_serve_ns() - o->began) * 1e-6);
        hn_bytes_text(b, "}");
    }
    hn_bytes_text(b, "}");
}

static void drop_order(hn_order *order)
{
    slot_order *o = (slot_order *)order;
    if (o->has_file) order->server->slot_file = false;
    hone_snapshot_free(o->snapshot);
    if (o->book) { /* a slot that was restored is waiting for its conversation; what was refused was no use */
        if (order->ok) hn_shelf_touch(o->book);
        hn_shelf_give(o->book);
    }
    free(o);
}

/* The library's words, without the folders that clients need not know: the log has them. */
static void fail(slot_order *o, const hone_error *err)
{
    hn_refusal *why = &o->order.why;
    char words[sizeof err->message];
    snprintf(words, sizeof words, "%s", err->message);
    hn_hide_folder_of(words, o->path); /* folders may be relative ones */
    hn_book_hide_folders(o->book, words);
    hn_hide_folders(words);
    if (strcmp(words, err->message) != 0) hn_log("serve: slot %d: %s", o->slot, err->message);
    switch (err->code) {
    case HONE_E_BUSY: hn_refuse(why, 409, "slot_in_use", NULL, "%s", words); break;
    case HONE_E_NOMEM: hn_refuse(why, 500, "out_of_memory", NULL, "%s", words); break;
    case HONE_E_IO: hn_refuse(why, 500, NULL, "filename", "%s", words); break;
    default: hn_refuse(why, 400, "slot_refused", NULL, "%s", words); break;
    }
    hn_order_back(&o->order);
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

static uint64_t file_bytes(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 ? (uint64_t)sb.st_size : 0;
}

static bool not_wanted(void *arg) { return !atomic_load(&((slot_order *)arg)->order.wanted); }

/* On the filer. The model's identity stands in every file, and may be found by reading all of the model: here it can
 * be stopped, and is kept behind that. False: the answer is on its way. */
static bool know_model(slot_order *o)
{
    char hex[65];
    hone_error err;
    const hone_progress pr = { .arg = o, .abort_fn = not_wanted };
    hone_status st = not_wanted(o) ? HONE_E_INTERRUPTED : hone_model_identity(o->book->model, hex, &pr, &err);
    if (st == HONE_OK) return true;
    if (st == HONE_E_INTERRUPTED) {
        hn_refuse_draining(&o->order.why); /* where it is late, the order says so instead */
        hn_order_back(&o->order);
    } else {
        fail(o, &err);
    }
    return false;
}

/* On the filer. */
static void write_file(void *arg)
{
    slot_order *o = arg;
    hone_error err;
    struct stat sb;
    if (!know_model(o)) return;
    if (lstat(o->path, &sb) == 0 && !S_ISREG(sb.st_mode)) { /* it may have become a link meanwhile */
        hn_refuse(&o->order.why, 400, "slot_refused", "filename", "'%s' is no file; expected another name", o->name);
        hn_order_back(&o->order);
        return;
    }
    if (hone_snapshot_save(o->snapshot, o->path, &err) != HONE_OK) {
        fail(o, &err);
        return;
    }
    o->n_bytes = file_bytes(o->path);
    o->order.ok = true;
    hn_order_back(&o->order);
}

/* On the desk. */
static void copy_slot(void *arg)
{
    slot_order *o = arg;
    hone_error err;
    if (hone_scheduler_snapshot(o->book->desk.scheduler, o->slot, &o->snapshot, &err) != HONE_OK) {
        fail(o, &err);
        return;
    }
    o->n = hone_snapshot_length(o->snapshot);
    if (!o->n) {
        hn_refuse(&o->order.why, 400, "slot_refused", NULL, "slot %d holds nothing; GET /slots tells which do",
                  o->slot);
        hn_order_back(&o->order);
        return;
    }
    hn_order_on_crew(&o->order, o->order.server->filer, write_file);
}

/* ---- restoring -------------------------------------------------------------------------------------------------- */

/* The adapter that is named, as a request that names it would have it; else those that are on for all. False: it has
 * gone. */
static bool take_adapters(const slot_order *o, hn_adapter_list *list, hn_adapter_use *use, size_t *n)
{
    *n = 0;
    if (!list) return !o->adapter;
    if (!o->adapter) {
        *n = hn_adapter_list_take_on(list, use);
        return true;
    }
    if (!hn_adapter_list_take(list, o->adapter, -1, use)) return false;
    if (use->scale == 0) use->scale = 1;
    *n = 1;
    return true;
}

/* On the desk. */
static void fill_slot(void *arg)
{
    slot_order *o = arg;
    hone_error err;
    hn_adapter_list *list = hn_book_adapters(o->book);
    hn_adapter_use use[HN_ADAPTERS_MOST];
    hone_adapter *adapter[HN_ADAPTERS_MOST];
    float scale[HN_ADAPTERS_MOST];
    size_t n;
    if (!take_adapters(o, list, use, &n)) {
        hn_refuse(&o->order.why, 404, "model_not_found", "model", "adapter '%s' is not here any more",
                  HN_ESC(o->adapter, strlen(o->adapter)));
        hn_order_back(&o->order);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        adapter[i] = use[i].adapter;
        scale[i] = use[i].scale;
    }
    hone_status st =
        hone_scheduler_restore(o->book->desk.scheduler, o->slot, o->snapshot, adapter, scale, (int32_t)n, &err);
    for (size_t i = 0; i < n; i++) hn_adapter_list_give(list, use[i].id);
    if (st != HONE_OK) {
        fail(o, &err);
        return;
    }
    o->n = hone_snapshot_length(o->snapshot);
    o->order.ok = true;
    hn_order_back(&o->order);
}

/* On the filer. */
static void read_file(void *arg)
{
    slot_order *o = arg;
    hone_error err;
    struct stat sb;
    if (lstat(o->path, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        hn_refuse(&o->order.why, 404, "slot_file_not_found", "filename", "there is no slot file '%s'", o->name);
        hn_order_back(&o->order);
        return;
    }
    if (!know_model(o)) return;
    if (hone_snapshot_load(&o->snapshot, o->book->model, o->path, &err) != HONE_OK) {
        fail(o, &err);
        return;
    }
    o->n_bytes = file_bytes(o->path);
    hn_order_on_desk(&o->order, fill_slot);
}

/* On the desk. */
static void empty_slot(void *arg)
{
    slot_order *o = arg;
    hone_error err;
    o->order.ok = hone_scheduler_erase(o->book->desk.scheduler, o->slot, &o->n, &err) == HONE_OK;
    if (o->order.ok) hn_order_back(&o->order);
    else fail(o, &err);
}

/* ---- reading what is wanted ------------------------------------------------------------------------------------- */

static bool read_slot(slot_order *o, hn_server *s, hn_exchange *x, hn_refusal *r)
{
    const char *digits = hn_exchange_path(x) + strlen("/slots/");
    int32_t n = s->p.limits.n_slots;
    size_t k = strspn(digits, "0123456789");
    long slot = k && k < 6 && !digits[k] ? strtol(digits, NULL, 10) : -1;
    o->slot = (int32_t)slot;
    return (slot >= 0 && slot < n) || hn_refuse(r, 404, "slot_not_found", NULL, "slot '%s', expected 0 to %d",
                                                HN_ESC(digits, strlen(digits)), n - 1);
}

static bool read_action(slot_order *o, hn_exchange *x, hn_refusal *r)
{
    static const char *const names[] = { "save", "restore", "erase" };
    const char *action = NULL;
    if (!hn_exchange_query(x, "action", &action)) action = NULL;
    for (int i = 0; action && i < 3; i++)
        if (strcmp(action, names[i]) == 0) {
            o->action = (slot_action)i;
            return true;
        }
    return hn_refuse(r, 400, action ? "out_of_range" : "missing_field", "action",
                     "action is %s%s%s; expected ?action=save, restore or erase", action ? "'" : "",
                     action ? HN_ESC(action, strlen(action)) : "missing", action ? "'" : "");
}

/* One name in the folder, and no other path. Names of temporaries are not for keeping: they are cleaned away. */
static bool check_name(slot_order *o, const hn_server *s, const char *name, hn_refusal *r)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    struct stat sb;
    size_t n = strlen(name);
    if (n > NAME_MOST || *name == '.' || strspn(name, letters) != n || strstr(name, ".hone-tmp-"))
        return hn_refuse(r, 400, "out_of_range", "filename",
                         "filename is '%s'; expected 1 to %d of A-Z a-z 0-9 . _ - that begin with no point and have no "
                         ".hone-tmp- in them",
                         HN_ESC(name, n), (int)NAME_MOST);
    snprintf(o->name, sizeof o->name, "%s", name);
    if ((size_t)snprintf(o->path, sizeof o->path, "%s/%s", s->p.slot_dir, o->name) >= sizeof o->path)
        return hn_refuse(r, 500, NULL, "filename", "the path of --slot-dir is too long");
    return o->action == SLOT_RESTORE || lstat(o->path, &sb) != 0 || S_ISREG(sb.st_mode) ||
           hn_refuse(r, 400, "slot_refused", "filename", "'%s' is no file; expected another name", o->name);
}

/* {"filename"}. What is there must be a file, not a link to one. */
static bool read_body(slot_order *o, hn_server *s, hn_exchange *x, hn_refusal *r)
{
    static const hn_field file[] = { { .name = "filename", .kind = HN_FIELD_LATER }, { .name = NULL } };
    const char *name, *also = o->adapter && o->action != SLOT_RESTORE ? "model's adapter" : "";
    bool erase = o->action == SLOT_ERASE;
    json_t *j;
    bool ok = hn_order_body(x, erase, &j, r) && hn_order_members(s, x, j, file + erase, also, r);
    if (ok && !erase) ok = hn_order_text(j, "filename", "a name in --slot-dir", &name, r) && check_name(o, s, name, r);
    json_decref(j);
    return ok;
}

static bool read_book(slot_order *o, hn_server *s, hn_exchange *x, hn_refusal *r)
{
    const char *name = NULL;
    hn_book *b;
    if (!hn_exchange_query(x, "model", &name)) name = NULL;
    if (!hn_shelf_find(s->shelf, name, &b, &o->adapter, r)) return false;
    if (!hn_shelf_try_fair(b)) return hn_shelf_refuse(b, r);
    o->book = b;
    return b->desk.scheduler || hn_refuse(r, 400, "unsupported_parameter", "model",
                                          "model '%s' reads whole texts and has no slots", b->name);
}

/* A copy of a slot may be as large as the memory of all slots: one at a time. */
static bool take_file(slot_order *o, hn_server *s, hn_refusal *r)
{
    if (o->action == SLOT_ERASE) return true;
    if (s->slot_file) {
        hn_refuse(r, 429, "slot_file_busy", NULL, "another slot is being saved or restored; expected one at a time");
        r->retry_after = 1;
        return false;
    }
    return s->slot_file = o->has_file = true;
}

bool hn_serve_slots(hn_server *s, hn_exchange *x)
{
    hn_refusal r;
    if (strncmp(hn_exchange_path(x), "/slots/", 7) != 0) return false;
    if (!s->p.slot_dir) {
        hn_serve_tell(s, x, route, 501, "not_supported_error",
                      "this server keeps no slots in files; start it with --slot-dir");
        return true;
    }
    if (atomic_load(&s->state) == HN_SERVER_DRAINING) {
        hn_refuse_draining(&r);
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, route, r.status);
        return true;
    }
    slot_order *o = calloc(1, sizeof *o);
    if (!o) {
        hn_serve_tell(s, x, route, 500, "out_of_memory", "no memory for this request");
        return true;
    }
    o->order = (hn_order){ .server = s, .route = route, .write = write_answer, .drop = drop_order };
    o->began = hn_serve_ns();
    if (!read_slot(o, s, x, &r) || !read_action(o, x, &r) || !read_book(o, s, x, &r) || !read_body(o, s, x, &r) ||
        !take_file(o, s, &r)) {
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, route, r.status);
        drop_order(&o->order);
        return true;
    }
    hn_order_begin(&o->order, s, x);
    if (o->action == SLOT_RESTORE) hn_order_on_crew(&o->order, s->filer, read_file);
    else hn_order_on_desk(&o->order, o->action == SLOT_SAVE ? copy_slot : empty_slot);
    return true;
}

hone_status hn_serve_check_slot_dir(const char *path, hone_error *err)
{
    struct stat sb;
    if (!path) return HONE_OK;
    if (stat(path, &sb) != 0)
        return HN_FAIL(err, HONE_E_IO, "--slot-dir %s: %s; expected a folder", path, strerror(errno));
    return S_ISDIR(sb.st_mode) ? HONE_OK : HN_FAIL(err, HONE_E_IO, "--slot-dir %s: a file; expected a folder", path);
}
