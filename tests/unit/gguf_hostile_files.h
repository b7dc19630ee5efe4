/* What files do to a reader beyond their bytes: they change, they are huge, they are parts of a set. A part of
 * test_gguf_hostile.c, which has the helpers and the list. */
#ifndef HN_GGUF_HOSTILE_FILES_H
#define HN_GGUF_HOSTILE_FILES_H

#include "slowed.h"

/* ---- operating system ----------------------------------------------------------------------------------- */

/* A file that changes after it was opened: what was read stays as it was checked, and no walk
 * leaves the array. (A file cut short gives SIGBUS: documented in gguf.h.) */
static void check_43_44(void **state)
{
    bb b = bb_head(3, 1, 3);
    bb_kv_u32(&b, "x.n", 7);
    bb_kv_array(&b, "x.list", 8, 3);
    size_t list = b.n;
    bb_str(&b, "one"), bb_str(&b, "two"), bb_str(&b, "three");
    bb_kv_array(&b, "x.nest", 9, 2);
    size_t nest = b.n;
    for (int i = 0; i < 2; i++) bb_u32(&b, 0), bb_u64(&b, 2), bb_raw(&b, "ab", 2);
    bb_tensor(&b, "w", 1, NE(8), 0, 0);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 32);
    bb_save(&b, tmp_path("live.gguf"));
    hn_gguf *g;
    assert_int_equal(hn_gguf_open(&g, tmp_path("live.gguf"), NULL), HONE_OK);
    int fd = open(tmp_path("live.gguf"), O_WRONLY);
    unsigned char ff[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pwrite(fd, ff, 8, (off_t)list), 8);     /* length of "one" */
        assert_int_equal(pwrite(fd, ff, 8, (off_t)list - 8), 8); /* count of the list */
        assert_int_equal(pwrite(fd, ff, 8, (off_t)nest + 4), 8); /* count of the first inner array */
        hn_gguf_array a, in;
        uint64_t pos = 0, n = 0;
        hone_str s;
        assert_int_equal(hn_gguf_get_array(g, "x.list", &a, NULL, NULL), HONE_OK);
        assert_int_equal(a.count, 3);
        for (; hn_gguf_next_str(&a, &pos, &s); n++) assert_true(s.len <= a.n_bytes);
        assert_int_equal(n, 3);
        assert_int_equal(hn_gguf_get_array(g, "x.nest", &a, NULL, NULL), HONE_OK);
        for (pos = n = 0; hn_gguf_next_array(&a, &pos, &in); n++) assert_true(in.n_bytes <= a.n_bytes);
        assert_int_equal(n, 2);
        uint32_t u = 0;
        assert_int_equal(pwrite(fd, ff, 4, 24 + 8 + 3 + 4), 4); /* the value of x.n */
        assert_int_equal(hn_gguf_get_u32(g, "x.n", &u, NULL, NULL), HONE_OK);
        assert_int_equal(u, 7);
    }
    close(fd);
    hn_gguf_close(g);
    bb_free(&b);
}

static long anon_kib(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[200];
    long v = -1;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Anonymous: %ld", &v) == 1) break;
    if (f) fclose(f);
    return v;
}

/* 9 GB without blocks, 300 tensors: opened without touching any of it. */
static void check_45(void **state)
{
    const uint64_t each = 30u << 20;
    bb b = bb_head(3, 300, 1);
    bb_kv_str(&b, "general.architecture", "llama");
    char name[64];
    for (uint64_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "blk.%d.weight", (int)i);
        bb_tensor(&b, name, 2, NE(1 << 18, each >> 20), 0, i * each);
    }
    bb_pad(&b, 32);
    const char *path = tmp_path("sparse.gguf");
    bb_save(&b, path);
    uint64_t size = b.n + 300 * each;
    bb_free(&b);
    if (truncate(path, (off_t)size) != 0) {
        print_message("SKIP: no sparse file of %llu bytes here\n", (unsigned long long)size);
        unlink(path);
        return;
    }
    hn_gguf *g;
    hone_error err = { 0 };
    long a0 = anon_kib();
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    getrusage(RUSAGE_SELF, &after);
    long pages = after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
    long a1 = anon_kib();
    print_message("9 GB, 300 tensors: opened with %ld page faults, %ld KiB anonymous\n", pages, a1 - a0);
    assert_true(hn_gguf_size(g) == size && hn_gguf_n_tensors(g) == 300);
    assert_true(SLOWED || pages < 1000); /* of 2.3 million */
    assert_true(SLOWED || a0 < 0 || a1 - a0 < 1024);
    hn_gguf_close(g);
    assert_int_equal(truncate(path, (off_t)(size - 1)), 0);
    refuse_file(path, HONE_E_FORMAT, "'blk.299.weight'", "1 of them missing");
    unlink(path);
}

/* Metadata beyond the budget, in a sparse file: refused, nothing copied. */
static void check_47(void **state)
{
    bb b = bb_head(3, 0, 10);
    const char *path = tmp_path("amplify.gguf");
    bb_save(&b, path);
    int fd = open(path, O_RDWR);
    uint64_t at = b.n, each = 60u << 20;
    bb_free(&b);
    for (int i = 0; i < 10; i++) {
        bb e = { 0 };
        char key[16];
        snprintf(key, sizeof key, "k.%d", i);
        bb_str(&e, key), bb_u32(&e, 8), bb_u64(&e, each);
        assert_int_equal(pwrite(fd, e.p, e.n, (off_t)at), (ssize_t)e.n);
        at += e.n + each;
        bb_free(&e);
    }
    assert_int_equal(ftruncate(fd, (off_t)at), 0);
    close(fd);
    refuse_file(path, HONE_E_FORMAT, "'k.8'", "at most 536870912");
    unlink(path);
    /* a million empty strings: views cost nothing until walked */
    b = bb_head(3, 0, 1);
    bb_kv_array(&b, "x.list", 8, 1000000);
    bb_raw(&b, NULL, 8000000);
    long a0 = anon_kib();
    hn_gguf *g = parse_kept(&b);
    long a1 = anon_kib();
    assert_true(SLOWED || a0 < 0 || a1 - a0 < 512);
    hn_gguf_close(g);
    bb_free(&b);
}

/* ---- split sets -------------------------------------------------------------------------------------------- */

typedef struct split {
    uint64_t no, count, total;
    const char *arch;
    const char *tensor[3];
    int n;
} split;

static void save_split(const char *name, split s)
{
    bb b = bb_head(3, (uint64_t)s.n, 3 + (s.arch != NULL));
    bb_kv(&b, "split.no", 2, s.no, 2);
    bb_kv(&b, "split.count", 2, s.count, 2);
    bb_kv(&b, "split.tensors.count", 5, s.total, 4);
    if (s.arch) bb_kv_str(&b, "general.architecture", s.arch);
    for (int i = 0; i < s.n; i++) bb_tensor(&b, s.tensor[i], 1, NE(8), 0, (uint64_t)i * 32);
    bb_pad(&b, 32);
    for (int i = 0; i < s.n; i++) bb_raw(&b, NULL, 32);
    bb_save(&b, tmp_path(name));
    bb_free(&b);
}

static void good_set(void)
{
    save_split("m-00001-of-00003.gguf", (split){ 0, 3, 3, "llama", { 0 }, 0 });
    save_split("m-00002-of-00003.gguf", (split){ 1, 3, 3, NULL, { "a", "b" }, 2 });
    save_split("m-00003-of-00003.gguf", (split){ 2, 3, 3, "llama", { "c" }, 1 });
}

static void check_46(void **state)
{
    static const char *const names[] = { "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf" };
    good_set();
    for (int i = 0; i < 3; i++) { /* from any member, the same set */
        hn_gguf *g;
        hone_error err = { 0 };
        if (hn_gguf_open(&g, tmp_path(names[i]), &err) != HONE_OK) fail_msg("%s", err.message);
        assert_true(hn_gguf_n_parts(g) == 3 && hn_gguf_n_tensors(g) == 3 && hn_gguf_n_kv(g) == 4);
        assert_int_equal(hn_gguf_find_tensor(g, "c")->part, 2);
        assert_int_equal(hn_gguf_find_tensor(g, "b")->part, 1);
        assert_int_equal(hn_gguf_find_tensor(g, "b")->offset, 32);
        hn_gguf_close(g);
    }
    char one[256];
    snprintf(one, sizeof one, "%s", tmp_path(names[0]));
    assert_int_equal(rename(tmp_path(names[1]), tmp_path("away")), 0);
    refuse_file(one, HONE_E_IO, "m-00002-of-00003.gguf", "part 2 of a split set of 3");
    assert_int_equal(mkdir(tmp_path(names[1]), 0700), 0);
    refuse_file(one, HONE_E_IO, "m-00002-of-00003.gguf", "directory");
    rmdir(tmp_path(names[1]));
    save_split(names[1], (split){ 2, 3, 3, NULL, { "a", "b" }, 2 });
    refuse_file(one, HONE_E_FORMAT, "m-00002-of-00003.gguf", "'split.no' is 2, expected 1");
    save_split(names[1], (split){ 1, 4, 3, NULL, { "a", "b" }, 2 });
    refuse_file(one, HONE_E_FORMAT, "m-00002-of-00003.gguf", "'split.count' is 4, expected 3");
    save_split(names[1], (split){ 1, 3, 4, NULL, { "a", "b" }, 2 });
    refuse_file(one, HONE_E_FORMAT, "m-00002-of-00003.gguf", "'split.tensors.count' is 4");
    save_split(names[1], (split){ 1, 3, 3, NULL, { "a", "c" }, 2 });
    refuse_file(one, HONE_E_FORMAT, "duplicate tensor name", "m-00002-of-00003.gguf");
    save_split(names[1], (split){ 1, 3, 3, NULL, { "a" }, 1 });
    refuse_file(one, HONE_E_FORMAT, "'split.tensors.count' is 3", "hold 2 tensors");
    save_split(names[1], (split){ 1, 3, 3, "qwen2", { "a", "b" }, 2 });
    refuse_file(one, HONE_E_FORMAT, "'general.architecture' is string 'qwen2'", "'llama'");
    good_set();
    assert_int_equal(rename(one, tmp_path("renamed.gguf")), 0);
    refuse_file(tmp_path("renamed.gguf"), HONE_E_FORMAT, "renamed.gguf", "-00001-of-00003.gguf");
    save_split("x.gguf", (split){ 5, 3, 3, NULL, { 0 }, 0 });
    refuse_file(tmp_path("x.gguf"), HONE_E_FORMAT, "'split.no' is 5", "split.count 3");
    save_split("x-00001-of-02000.gguf", (split){ 0, 2000, 3, NULL, { 0 }, 0 });
    refuse_file(tmp_path("x-00001-of-02000.gguf"), HONE_E_FORMAT, "2000", "at most 1024");
    for (uint64_t c = 0; c < 2; c++) { /* 0 or 1: not split, whatever the name */
        save_split("x.gguf", (split){ 0, c, 1, NULL, { "a" }, 1 });
        hn_gguf *g;
        assert_int_equal(hn_gguf_open(&g, tmp_path("x.gguf"), NULL), HONE_OK);
        hn_gguf_close(g);
    }
    bb b = bb_head(3, 0, 2);
    bb_kv_u32(&b, "split.no", 0);
    bb_kv_str(&b, "split.count", "../../etc/passwd");
    REFUSE(b, HONE_E_FORMAT, "'split.count'", "string '../../etc/passwd'", "integer");
    b = bb_head(3, 0, 2);
    bb_kv(&b, "split.no", 11, 0, 8);
    bb_kv(&b, "split.count", 5, 0xFFFFFFFF, 4);
    REFUSE(b, HONE_E_FORMAT, "'split.count'", "i32 -1");
    b = bb_head(3, 0, 2);
    bb_kv(&b, "split.no", 11, 0, 8);
    bb_kv(&b, "split.count", 10, 2, 8); /* any integer type will do */
    REFUSE(b, HONE_E_UNSUPPORTED, "part 1 of a split set of 2", "memory");
}

#endif
