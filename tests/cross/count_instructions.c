/* A plugin of qemu-user (its interface, version 1) that counts executed instructions between two marks: the program
 * under it begins with system call HN_MARK_BEGIN and ends with HN_MARK_END, numbers that no kernel has; the count goes
 * to its stdout, behind what it has written itself. Declared here because Debian packages no header. */
#include "count_instructions.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;
enum { ADD_U64 = 0 };
typedef void tb_fn(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void syscall_fn(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_fn *fn);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *counter, uint64_t add);
extern void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_fn *fn);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

#define EXPORT __attribute__((visibility("default")))
extern EXPORT int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

static uint64_t executed, begun;

/* A block of code runs whole, to the branch or system call that ends it. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &executed, qemu_plugin_tb_n_insns(tb));
}

static void called(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                   uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    if (num == HN_MARK_BEGIN) begun = executed;
    else if (num == HN_MARK_END) dprintf(1, "%llu\n", (unsigned long long)(executed - begun));
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
