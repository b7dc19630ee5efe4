/* A plugin of qemu-user (its interface, version 1) that counts executed instructions between two marks: the program
 * under it begins with system call HN_MARK_BEGIN and ends with HN_MARK_END, numbers that no kernel has; the count goes
 * to its stdout, behind what it has written itself. Declared here because Debian packages no header. */
#include "count_instructions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { NO_REGISTERS = 0 };
typedef void tb_fn(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void syscall_fn(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_fn *fn);
typedef void exec_fn(unsigned vcpu, void *arg);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn *fn, int flags, void *arg);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_fn *fn);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

#define EXPORT __attribute__((visibility("default")))
extern EXPORT int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

typedef struct block {
    uint64_t n, first, last; /* instructions; addresses of the first and the last one */
    bool divided;            /* the first one lies on two pages */
} block;

static uint64_t executed, begun;
static const block *before;

/* A block of code runs whole, to the branch or system call that ends it. qemu gives up an instruction that goes on in
 * the next page, but counts it for that block, too: it begins the next one, and is counted there. */
static void ran(unsigned vcpu, void *arg)
{
    const block *b = arg;
    executed += b->n - (b->divided && before && before != b && before->last == b->first);
    before = b;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    enum { PAGE_BITS = 12 };
    block *b = malloc(sizeof *b); /* as long as the program */
    if (!b) abort();
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    b->n = qemu_plugin_tb_n_insns(tb);
    b->first = qemu_plugin_insn_vaddr(first);
    b->last = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, b->n - 1));
    b->divided = b->first >> PAGE_BITS != (b->first + qemu_plugin_insn_size(first) - 1) >> PAGE_BITS;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, NO_REGISTERS, b);
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
