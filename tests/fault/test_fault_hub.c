/* Out of memory while hone pull, list and names read what others say: the k-th allocation fails, for each k. Each
 * failure is HONE_E_NOMEM with a message, and never a list from which something is missing. */
#include "base/json_tree.h"
#include "hub/cache_dir.h"
#include "hub/hub_api.h"
#include "hub/part.h"
#include "hub/pull.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fail_each.h"

#define OID "ce013625030ba8dba906f756967f9e9ca394464a"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define DIGEST "sha256:abababababababababababababababababababababababababababababababab"

static char dir[] = "/tmp/hone-fault-hub-XXXXXX", root[64];

static hone_status page_and_choice(hone_error *err)
{
    static char text[102 * 200];
    size_t n = 0, which;
    char why[300];
    hn_gguf_sets sets = { 0 };
    hn_name name = { .kind = HN_NAME_HUB, .repo = "o/r" };
    for (int i = 0; i < 102; i++) /* more than the list begins with */
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"type\":\"file\",\"path\":\"%s%03d.gguf%s\",\"size\":%d,\"oid\":\"" OID "\"}",
                              i ? "," : "[", i ? "x-" : "m-Q8_0-", i < 100 ? i : 100,
                              i < 100   ? ""
                              : i < 101 ? ".part1of2"
                                        : ".part2of2",
                              100 + i);
    n += (size_t)snprintf(text + n, sizeof text - n, "]");
    hn_hub_repo r = { .arena = hn_arena_new() };
    hone_status st = r.arena ? hn_hub_add_page(&r, text, n, "o/r", err) : HN_FAIL(err, HONE_E_NOMEM, "an arena");
    if (st == HONE_OK) st = hn_gguf_sets_of(&sets, r.file, r.n, err);
    if (st == HONE_OK) st = hn_gguf_choose(&which, why, sizeof why, &sets, r.file, &name, 0, err);
    if (st == HONE_OK) assert_true(r.n == 102 && sets.n == 100 && sets.set[which].bytes == 100);
    if (st == HONE_OK) assert_true(sets.n_cut == 1 && sets.cut[0].n_file == 2 && sets.cut[0].bytes == 401);
    if (st == HONE_OK) assert_string_equal(r.file[99].path, "x-099.gguf");
    hn_gguf_sets_free(&sets);
    hn_hub_repo_free(&r);
    return st;
}

static hone_status manifest(hone_error *err)
{
    static const char text[] = "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"" DIGEST
                               "\",\"size\":5}],\"config\":{\"mediaType\":\"c\",\"digest\":\"" DIGEST "\",\"size\":2}}";
    static const hn_name name = { .kind = HN_NAME_OLLAMA, .host = "h", .repo = "library/m", .tag = "latest" };
    static hn_ollama_layer l[HN_LAYERS + 1];
    size_t n, model;
    json_t *o;
    hone_status st = hn_json_tree(&o, text, sizeof text - 1, NULL, "m", err);
    if (st == HONE_OK) st = hn_ollama_layers(l, &n, &model, &name, o, err);
    if (st == HONE_OK) assert_true(n == 2 && model == 0 && l[1].size == 2);
    json_decref(o);
    return st;
}

static hone_status addresses(hone_error *err)
{
    char *url = hn_hub_address("https://h", "o/r", COMMIT, "a b");
    if (!url) return HN_FAIL(err, HONE_E_NOMEM, "an address");
    assert_string_equal(url, "https://h/o/r/resolve/" COMMIT "/a%20b");
    free(url);
    return HONE_OK;
}

static hone_status a_part(hone_error *err)
{
    char whole[100], part[120], journal[130];
    snprintf(whole, sizeof whole, "%s/f", dir);
    snprintf(part, sizeof part, "%s.hone-part", whole);
    snprintf(journal, sizeof journal, "%s.json", part);
    const hn_part_names names = { .whole = whole, .part = part, .journal = journal, .what = "f", .size = 100 };
    hn_part p;
    bool is_whole;
    hone_status st = hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, err);
    if (st != HONE_OK) return st;
    assert_false(is_whole);
    if ((st = hn_part_open(&p, 100, "e", 4096, err)) == HONE_OK) {
        assert_int_equal(hn_part_put(&p, 0, "abc", 3), 0);
        st = hn_part_note(&p, err);
    }
    hn_part_close(&p, true);
    assert_true(access(part, F_OK) != 0 && access(journal, F_OK) != 0);
    return st;
}

static void put(const char *leaf, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, leaf);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

#define SNAPSHOT "hub/models--o--ck/snapshots/" COMMIT "/"

/* A checkpoint and its index, by its name. */
static hone_status checkpoint(hone_error *err)
{
    char path[HN_CACHE_PATH];
    hn_name n = { .kind = HN_NAME_HUB, .repo = "o/ck" };
    hone_status st = hn_cache_find(path, &n, err);
    if (st == HONE_OK) assert_non_null(strstr(path, COMMIT));
    if (st != HONE_OK) return st;
    n = (hn_name){ .kind = HN_NAME_HUB, .repo = "o/half" }; /* half a one is never taken for whole */
    hone_error why;
    st = hn_cache_find(path, &n, &why);
    if (st == HONE_E_NOMEM) return HN_FAIL(err, st, "%s", why.message);
    assert_int_equal(st, HONE_E_IO);
    assert_non_null(strstr(why.message, "part 4 of 4 is missing"));
    return HONE_OK;
}

static hone_status listed(hone_error *err)
{
    hn_locals l;
    hone_status st = hn_cache_list(&l, HN_FIND_ALL, err);
    if (st != HONE_OK) return st;
    assert_true(l.n == 2 && l.list[0].checkpoint && !*l.list[0].trouble && l.list[0].n_file == 3);
    hn_locals_free(&l);
    return HONE_OK;
}

static hone_status linked(hone_error *err)
{
    hone_status st = hn_cache_link(root, "o/ck", COMMIT, "more/x.json", OID, err);
    return st == HONE_OK ? hn_cache_set_ref(root, "o/ck", "v1", COMMIT, err) : st;
}

#define EACH(fn) \
    static void each_##fn(void **state) { fail_each(fn); }
EACH(page_and_choice)
EACH(manifest)
EACH(addresses)
EACH(a_part)
EACH(checkpoint)
EACH(listed)
EACH(linked)

static int set_up(void **state)
{
    static const char *const none[] = { "HUGGINGFACE_HUB_CACHE", "HF_HOME", "HONE_MODELS", "XDG_CONFIG_HOME" };
    if (!mkdtemp(dir) || chdir(dir) != 0) return -1;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) unsetenv(none[i]);
    setenv("HOME", dir, 1);
    setenv("XDG_DATA_HOME", dir, 1);
    setenv("OLLAMA_MODELS", dir, 1);
    snprintf(root, sizeof root, "%s/hub", dir);
    setenv("HF_HUB_CACHE", root, 1);
    put(SNAPSHOT "config.json", "{}");
    put(SNAPSHOT "model.safetensors", "w");
    put(SNAPSHOT "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"model.safetensors\"}}");
    put("hub/models--o--ck/refs/main", COMMIT);
    put("hub/models--o--half/snapshots/" COMMIT "/config.json", "{}");
    for (int i = 1; i < 4; i++) {
        char path[200];
        snprintf(path, sizeof path, "hub/models--o--half/snapshots/" COMMIT "/model-%05d-of-00004.safetensors", i);
        put(path, "w");
    }
    put("hub/models--o--half/refs/main", COMMIT);
    put("hub/models--o--ck/blobs/" OID, "x");
    return 0;
}

static int tear_down(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return chdir("/") != 0 || system(command) != 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_and_choice), cmocka_unit_test(each_manifest),   cmocka_unit_test(each_addresses),
        cmocka_unit_test(each_a_part),          cmocka_unit_test(each_checkpoint), cmocka_unit_test(each_listed),
        cmocka_unit_test(each_linked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
