/* Sealed files are read once: what becomes of the file after that, or while it is read, is no matter or an error. */
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3 << 20 };
#define MAGIC "HONETEST"

static char name[] = "/tmp/hone-sealed-XXXXXX";
static unsigned char bytes[SIZE];

static int make_file(void **unused)
{
    hn_sealing o;
    memcpy(name + strlen(name) - 6, "XXXXXX", 6);
    int fd = mkstemp(name);
    if (fd < 0) return -1;
    close(fd);
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 16);
    memcpy(bytes, MAGIC, 8);
    if (hn_seal_begin(&o, name, 0, NULL) != HONE_OK) return -1;
    hn_seal_put(&o, bytes, SIZE);
    return (int)hn_seal_end(&o, NULL);
}

static int remove_file(void **unused) { return unlink(name); }

static void check_whole(const hn_sealed *f)
{
    assert_int_equal(f->size, SIZE + 8);
    assert_true(hn_sealed_fits(f));
    assert_memory_equal(f->p, bytes, SIZE);
}

static void test_cut(void **unused)
{
    hn_sealed f;
    assert_int_equal(hn_sealed_open(&f, name, MAGIC, 8), 0);
    check_whole(&f);
    assert_int_equal(truncate(name, 10), 0);
    check_whole(&f);
    hn_sealed_close(&f);
    hn_sealed_close(&f);
}

static void test_overwritten(void **unused)
{
    hn_sealed f;
    assert_int_equal(hn_sealed_open(&f, name, MAGIC, 8), 0);
    assert_true(hn_sealed_fits(&f));
    int fd = open(name, O_WRONLY);
    for (off_t at = 0; at < SIZE; at += 1000) assert_int_equal(pwrite(fd, "!", 1, at), 1);
    close(fd);
    check_whole(&f);
    hn_sealed_close(&f);
}

static void test_other(void **unused)
{
    hn_sealed f;
    assert_int_equal(hn_sealed_open(&f, name, "HONEELSE", 8), HN_SEALED_OTHER);
    assert_null(f.p);
    assert_int_equal(hn_sealed_open(&f, "/tmp", MAGIC, 8), HN_SEALED_NO_FILE);
    assert_int_equal(hn_sealed_open(&f, "/dev/null", MAGIC, 8), HN_SEALED_NO_FILE);
    assert_int_equal(hn_sealed_open(&f, "/nonexistent/file", MAGIC, 8), ENOENT);
    assert_int_equal(truncate(name, 0), 0);
    assert_int_equal(hn_sealed_open(&f, name, MAGIC, 8), HN_SEALED_NO_FILE);
    assert_int_equal(truncate(name, 3), 0);
    assert_int_equal(hn_sealed_open(&f, name, MAGIC, 8), 0); /* whoever knows the file says that it is short */
    assert_int_equal(f.size, 3);
    assert_false(hn_sealed_fits(&f));
    hn_sealed_close(&f);
    /* larger than any memory, and not a byte of it there */
    assert_int_equal(truncate(name, (off_t)1 << 42), 0);
    assert_int_equal(hn_sealed_open(&f, name, MAGIC, 8), ENOMEM);
    assert_null(f.p);
}

/* Files of the kernel say 4096 bytes and have fewer: as one that is cut while it is read. */
static void test_shrinks(void **unused)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    struct stat sb;
    hn_sealed f;
    if (stat(path, &sb) != 0 || sb.st_size < 1000) skip();
    assert_int_equal(hn_sealed_open(&f, path, "", 0), HN_SEALED_CHANGED);
    assert_null(f.p);
}

int main(void)
{
#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_file, remove_file)
    const struct CMUnitTest tests[] = {
        WITH_FILE(test_cut),
        WITH_FILE(test_overwritten),
        WITH_FILE(test_other),
        cmocka_unit_test(test_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
