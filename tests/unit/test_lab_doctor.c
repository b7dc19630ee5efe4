/* The doctor on machines made of files: every warning appears when its cause is there and
 * not otherwise; what cannot be read is unknown. The ledger: its parts, and that memory in
 * no part is seen. */
#define _GNU_SOURCE
#include "base/os.h"
#include "lab/machine/doctor.h"
#include "lab/machine/ledger.h"
#include "tiny_model.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[200];

static void put(const char *path, const char *text)
{
    char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *s = full + strlen(root) + 1; *s; s++) { /* the folders */
        if (*s != '/') continue;
        *s = 0;
        mkdir(full, 0777);
        *s = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f) fail_msg("%s", full);
    fputs(text, f);
    fclose(f);
}
static void drop(const char *path)
{
    char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    assert_int_equal(unlink(full), 0);
}

#define CPUS "/sys/devices/system/cpu"
static hn_environ env;
static hn_peaks peaks;

/* A quiet machine of four cores, on mains, cool. */
static void healthy(void)
{
    char path[200];
    static int k;
    snprintf(root, sizeof root, "%s", tm_path(""));
    snprintf(root + strlen(root), sizeof root - strlen(root), "/root%d", k++);
    mkdir(root, 0777);
    put("/proc/cpuinfo", "processor : 0\nmodel name : Made Up\nflags : fpu avx2 fma avx512_vnni\n");
    put("/proc/stat", "cpu 100 0 100 1000 0 0 0 5 0 0\n");
    put("/proc/loadavg", "0.10 0.20 0.30 1/100 1234\n");
    put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "1\n");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/status", "Full\n");
    put("/sys/class/thermal/thermal_zone0/temp", "45000\n");
    put("/sys/devices/system/node/node0/cpulist", "0-3\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put(CPUS "/cpufreq/boost", "0\n");
    put(CPUS "/vulnerabilities/meltdown", "Not affected\n");
    for (int i = 0; i < 4; i++) {
        static const char *const files[][2] = {
            { "cpufreq/scaling_governor", "performance\n" },  { "cpufreq/scaling_min_freq", "800000\n" },
            { "cpufreq/scaling_max_freq", "3000000\n" },      { "cpufreq/cpuinfo_max_freq", "3000000\n" },
            { "cpufreq/scaling_cur_freq", "2900000\n" },      { "topology/physical_package_id", "0\n" },
            { "thermal_throttle/core_throttle_count", "3\n" }
        };
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
            snprintf(path, sizeof path, CPUS "/cpu%d/%s", i, files[f][0]);
            put(path, files[f][1]);
        }
        char core[8];
        snprintf(core, sizeof core, "%d\n", i);
        snprintf(path, sizeof path, CPUS "/cpu%d/topology/core_id", i);
        put(path, core);
    }
    env = (hn_environ){ .cpu_model = "Made Up",
                        .kernel = "Linux 0",
                        .compiler = "cc 1",
                        .flags = "-O3 -g",
                        .commit = "0123456789ab",
                        .cores = 4,
                        .cores_online = 4,
                        .hash = "01234567" };
    peaks = (hn_peaks){ .cores = 4, .level = "avx2", .ts = "2026", .how = { [HN_PEAK_INT8] = "made up" } };
    peaks.n[HN_PEAK_READ_BW] = peaks.n[HN_PEAK_INT8] = peaks.n[HN_PEAK_F32] = 1;
    peaks.at[HN_PEAK_READ_BW][0] = (hn_peak_point){ .threads = 4, .best = 40 };
}

static json_t *look(const char *model, const hn_peaks *k)
{
    json_t *o;
    hone_error err = { 0 };
    hn_doctor_params p = { .root = root, .model = model, .peaks = k, .no_peaks = "not there", .level = "avx2" };
    if (hn_doctor_look(&o, &env, &p, &err) != HONE_OK) fail_msg("%s", err.message);
    return o;
}

/* Exactly this one warning (NULL: none), with text and advice. */
static void warns_of(const char *id, const hn_peaks *k, const char *model)
{
    json_t *o = look(model, k), *list = json_object_get(o, "warnings");
    if (json_array_size(list) != (id ? 1 : 0)) fail_msg("expected %s, got %s", id ? id : "none", json_dumps(list, 0));
    assert_true(json_is_boolean(json_object_get(o, "ok")) && json_is_true(json_object_get(o, "ok")) == !id);
    if (id) {
        json_t *w = json_array_get(list, 0);
        assert_string_equal(json_string_value(json_object_get(w, "id")), id);
        assert_true(json_string_length(json_object_get(w, "text")) > 10 &&
                    json_string_length(json_object_get(w, "do")) > 3);
    }
    json_decref(o);
}

/* What was put around this process: limits of groups around its own, foreign code, priority, a model in memory. */
static void around(void)
{
    hn_around a;
    char text[HN_DOUBTS][400];
    healthy();
    put("/proc/self/cgroup", "1:name=systemd:/x\n0::/batch/job\n");
    put("/sys/fs/cgroup/batch/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/batch/job/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/batch/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 7\n");
    warns_of("cpu_quota", &peaks, NULL); /* the group itself has no limit, the one around it has */
    hn_around_read(&a, root);
    assert_true(a.quota == 1.5 && a.stopped == 7);
    assert_string_equal(a.quota_at, "/batch");
    put("/sys/fs/cgroup/batch/job/cpu.max", "50000 100000\n");
    hn_around_read(&a, root);
    assert_true(a.quota == 0.5);
    assert_string_equal(a.quota_at, "/batch/job");
    assert_int_equal(hn_around_doubts(text, &a, 4), 1);
    assert_non_null(strstr(text[0], "/batch/job may use 0.50 of 4 cores"));
    healthy();
    put("/proc/self/cgroup", "3:cpuset:/job\n2:cpu,cpuacct:/job\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    warns_of("cpu_quota", &peaks, NULL);
    healthy();
    put("/etc/ld.so.preload", "/lib/evil.so\n");
    warns_of("preload", &peaks, NULL);
    healthy();
    setenv("LD_PRELOAD", "/lib/other.so", 1); /* read by who starts next, which is nobody */
    warns_of("preload", &peaks, NULL);
    hn_around_read(&a, root);
    unsetenv("LD_PRELOAD");
    assert_int_equal(hn_around_doubts(text, &a, 4), 1);
    assert_non_null(strstr(text[0], "/lib/other.so"));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        healthy();
        errno = 0;
        if (nice(3) == -1 && errno) _exit(0);
        hn_around_read(&a, root);
        _exit(a.nice > 0 && hn_around_doubts(text, &a, 4) == 1 && strstr(text[0], "lower") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(hn_file_system_is_memory("tmpfs") && !hn_file_system_is_memory("ext4"));
    int shm = open("/dev/shm/hone-test", O_CREAT | O_WRONLY, 0600);
    if (shm >= 0 && hn_file_system_is_memory(hn_file_system("/dev/shm/hone-test"))) {
        healthy();
        warns_of("model_fs", &peaks, "/dev/shm/hone-test");
    }
    if (shm >= 0) close(shm);
    unlink("/dev/shm/hone-test");
}

/* What a container is left of memory and CPUs, whatever the machine has: the least of all limits on the way up. */
static void shares(void **state)
{
    const uint64_t gib = (uint64_t)1 << 30, all = (uint64_t)16000000 * 1024, free_now = (uint64_t)12000000 * 1024;
    uint64_t total, available;
    healthy();
    hn_os_memory(root, &total, &available);
    assert_true(total == all && available == free_now);
    assert_int_equal(hn_os_thread_count(64, root), 64);
    assert_int_equal(hn_os_thread_count(5000, root), HN_MOST_THREADS);

    put("/proc/self/cgroup", "0::/batch/job\n");
    put("/sys/fs/cgroup/batch/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/batch/job/cpu.max", "max 100000\n");
    assert_int_equal(hn_os_thread_count(64, root), 4);
    assert_int_equal(hn_os_thread_count(3, root), 3);
    put("/sys/fs/cgroup/batch/job/cpu.max", "250000 100000\n");
    assert_int_equal(hn_os_thread_count(64, root), 3);
    put("/sys/fs/cgroup/batch/job/cpu.max", "20000 100000\n");
    assert_int_equal(hn_os_thread_count(64, root), 1);

    put("/sys/fs/cgroup/batch/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/batch/memory.current", "5368709120\n");
    put("/sys/fs/cgroup/batch/memory.stat", "anon 1\ninactive_file 1073741824\nactive_file 2147483648\nshmem 5\n");
    put("/sys/fs/cgroup/batch/job/memory.max", "max\n");
    put("/sys/fs/cgroup/batch/job/memory.current", "1000\n");
    hn_os_memory(root, &total, &available);
    assert_true(total == 8 * gib && available == 6 * gib);
    put("/sys/fs/cgroup/batch/job/memory.high", "4294967296\n"); /* an inner group, empty as yet */
    hn_os_memory(root, &total, &available);
    assert_true(total == 4 * gib && available == 4 * gib - 1000);
    put("/sys/fs/cgroup/batch/memory.current", "9000000000\n"); /* full: not 0, which is "unknown" */
    drop("/sys/fs/cgroup/batch/memory.stat");
    hn_os_memory(root, &total, &available);
    assert_true(total == 4 * gib && available == 1);
    drop("/sys/fs/cgroup/batch/job/memory.high");
    put("/sys/fs/cgroup/batch/memory.max", "99999999999999\n"); /* more than there is */
    hn_os_memory(root, &total, &available);
    assert_true(total == all && available == free_now);

    char deep[400] = "/", path[500], line[500]; /* a pod in a container in a container: none of its name is lost */
    memset(deep + 1, 'x', 150);
    memset(deep + 151, '/', 1);
    memset(deep + 152, 'y', 170);
    snprintf(line, sizeof line, "0::%s\n", deep);
    put("/proc/self/cgroup", line);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", deep);
    put(path, "2147483648\n");
    hn_os_memory(root, &total, &available);
    assert_true(total == 2 * gib && available == 2 * gib);

    healthy(); /* version 1, in a container: the listed group is the mount itself */
    put("/proc/self/cgroup", "7:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 536870912\ntotal_active_file 536870912\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    hn_os_memory(root, &total, &available);
    assert_true(total == 3 * gib && available == 2 * gib);
    assert_int_equal(hn_os_thread_count(64, root), 2);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    hn_os_memory(root, &total, &available);
    assert_true(total == all && available == free_now);
    assert_int_equal(hn_os_thread_count(64, root), 64);
}

/* Whoever starts the tests with another priority is warned of it, rightly: one warning more everywhere. */
static void usual_priority(void)
{
    if (getpriority(PRIO_PROCESS, 0) == 0) return;
    print_message("SKIP: started with another priority than usual\n");
    skip();
}

static void warnings(void **state)
{
    usual_priority();
    healthy();
    warns_of(NULL, &peaks, NULL);
    static const struct {
        const char *id, *path, *text;
    } bad[] = {
        { "governor", CPUS "/cpu2/cpufreq/scaling_governor", "powersave\n" },
        { "boost", CPUS "/cpufreq/boost", "1\n" },
        { "clock_limit", CPUS "/cpu0/cpufreq/scaling_max_freq", "2000000\n" },
        { "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n" },
        { "battery", "/sys/class/power_supply/AC/online", "0\n" },
        { "battery", "/sys/class/power_supply/BAT0/status", "Discharging\n" },
        { "temperature", "/sys/class/thermal/thermal_zone1/temp", "91000\n" },
        { "thp", "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n" },
        { "memory", "/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 1000000 kB\n" },
        { "load", "/proc/loadavg", "2.10 0.20 0.30 1/100 1234\n" },
        { "runnable", "/proc/loadavg", "0.10 0.20 0.30 5/100 1234\n" },
        { "cpu_quota", "/sys/fs/cgroup/cpu.max", "150000 100000\n" },
        { "smt", CPUS "/cpu3/topology/core_id", "2\n" },
        { "numa", "/sys/devices/system/node/node1/cpulist", "\n" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        healthy();
        put(bad[i].path, bad[i].text);
        warns_of(bad[i].id, &peaks, NULL);
    }
    healthy();
    drop("/sys/fs/cgroup/cpu.max"); /* version 1 */
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    warns_of("cpu_quota", &peaks, NULL);
    around();
    healthy();
    drop(CPUS "/cpufreq/boost");
    put(CPUS "/intel_pstate/no_turbo", "0\n");
    warns_of("boost", &peaks, NULL);
    healthy();
    env.cores = 3;
    warns_of("affinity", &peaks, NULL);
    healthy();
    snprintf(env.commit, sizeof env.commit, "0123456789ab+dirty");
    warns_of("dirty", &peaks, NULL);
    snprintf(env.commit, sizeof env.commit, "unknown");
    warns_of("commit", &peaks, NULL);
    healthy();
    snprintf(env.flags, sizeof env.flags, "-O1 -g");
    warns_of("flags", &peaks, NULL);
    healthy();
    warns_of("peaks", NULL, NULL);
    snprintf(peaks.doubts, sizeof peaks.doubts, "steal");
    warns_of("peaks_noisy", &peaks, NULL);
    healthy();
    put("/proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 2 kB\n");
    put("/model", "four thousand bytes are more than two KiB");
    char model[300];
    snprintf(model, sizeof model, "%s/model", root);
    warns_of(NULL, &peaks, model);
    put("/proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 0 kB\n");
    json_t *o = look(model, &peaks);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(o, "warnings"), 1), "id")),
                        "model_memory");
    json_decref(o);
}

static void unknown(void **state)
{
    usual_priority();
    healthy();
    json_t *o = look(NULL, &peaks);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "cpu"), "cores")), 4);
    assert_true(json_is_false(json_object_get(o, "virtual")));
    assert_true(json_real_value(json_object_get(json_object_get(o, "clock"), "cur_mhz")) == 2900);
    json_decref(o);
    snprintf(root + strlen(root), sizeof root - strlen(root), "/empty"); /* a machine that tells nothing */
    o = look(NULL, NULL);
    json_t *list = json_object_get(o, "unknown");
    static const char *const groups[] = { "cpu", "clock", "power", "memory", "load", "kernel" };
    assert_true(json_array_size(list) > 25);
    assert_int_equal(json_array_size(json_object_get(o, "warnings")), 1); /* no peaks; nothing else is guessed */
    assert_true(json_is_null(json_object_get(o, "virtual")));
    assert_true(json_is_null(json_object_get(json_object_get(o, "clock"), "boost")));
    assert_true(json_is_null(json_object_get(json_object_get(o, "power"), "on_battery")));
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        assert_true(json_is_object(json_object_get(o, groups[i])));
    json_decref(o);
    hone_error err;
    hn_doctor_params p = { .root = root, .model = "/no/such/file" };
    assert_int_equal(hn_doctor_look(&o, &env, &p, &err), HONE_E_IO);
    assert_null(o);
}

static void ledger(void **state)
{
    hn_os_heap h;
    if (!hn_os_heap_read(&h)) {
        print_message("SKIP: malloc does not tell what it gave out (sanitizers, other C libraries)\n");
        skip();
    }
    tiny *t = tm_new((tm_shape)TM("llama", 256, 4, 2, 64, 512, 64, 4, 1e4, 1e-5, .tied = true));
    const char *path = tm_path("ledger.gguf");
    tm_save(t, path);
    hone_model *m;
    hone_error err = { 0 };
    static hn_ledger l, spoiled;
    hn_ledger_start(&l);
    assert_int_equal(hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &err), HONE_OK);
    hn_ledger_model(&l);
    hn_ledger_vocabulary(&l);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, 600, 1, 512, HONE_CACHE_F32);
    static int32_t ids[520];
    tm_run(s, 0, ids, 520, NULL);
    hone_model_info info;
    hone_model_get_info(m, &info);
    assert_int_equal(hn_ledger_end(&l, s, &info, path, &err), HONE_OK);
    assert_int_equal(l.n_unknown, 0);
    struct stat sb;
    assert_int_equal(stat(path, &sb), 0);
    for (int i = 0; i < l.n; i++) {
        double kv = 2.0 * 4 * 2 * 64 * 4; /* K and V, 4 layers, 2 heads of 64 floats: bytes of a position */
        if (strcmp(l.part[i].name, "kv_cache") == 0)
            assert_true(l.part[i].resident >= 512 * kv && l.part[i].resident <= 1024 * kv);
        if (strcmp(l.part[i].name, "weights") == 0)
            assert_true(l.part[i].reserved >= (uint64_t)sb.st_size && l.part[i].resident > 0.8 * (double)sb.st_size);
        if (strcmp(l.part[i].name, "metadata") == 0) assert_true(l.part[i].resident > 1000 && l.part[i].resident < 1e6);
    }
    /* memory that is in no part is a difference, and a large one is called so */
    spoiled = l;
    spoiled.sum = 0;
    spoiled.n_unknown = 0;
    size_t n = 256 << 20;
    char *p = hn_pages_alloc(n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i += 4096) p[i] = 1;
    assert_int_equal(hn_ledger_end(&spoiled, s, &info, path, &err), HONE_OK);
    hn_pages_free(p, n);
    assert_true(hn_ledger_rest(&spoiled) > 0.5 * (double)n / (double)spoiled.seen.hwm &&
                hn_ledger_rest(&spoiled) > HN_LEDGER_MAX_REST);
    json_t *o = hn_ledger_json(&spoiled);
    assert_true(json_is_false(json_object_get(o, "rest_ok")));
    json_decref(o);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

static int drop_any(const char *path, const struct stat *sb, int kind, struct FTW *at) { return remove(path); }
static int remove_all(void **state) { return nftw(tm_dir, drop_any, 16, FTW_DEPTH | FTW_PHYS); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(warnings), cmocka_unit_test(shares), cmocka_unit_test(unknown),
                                        cmocka_unit_test(ledger) };
    return cmocka_run_group_tests(tests, tm_make_dir, remove_all);
}
