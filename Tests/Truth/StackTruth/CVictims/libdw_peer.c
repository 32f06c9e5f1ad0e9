// libdw on a blocked thread of this process, for comparison in benchmarks. It is loaded with dlopen, never linked.
//
// Source: elfutils' libdwfl.h, of which this declares what it uses.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stack_victims.h"

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Thread Dwfl_Thread;
typedef struct Dwfl_Frame Dwfl_Frame;
typedef struct {
    void *find_elf, *find_debuginfo, *section_address;
    char **debuginfo_path;
} Dwfl_Callbacks;
typedef struct {
    pid_t (*next_thread)(Dwfl *, void *, void **);
    bool (*get_thread)(Dwfl *, pid_t, void *, void **);
    bool (*memory_read)(Dwfl *, uint64_t, uint64_t *, void *);
    bool (*set_initial_registers)(Dwfl_Thread *, void *);
    void (*detach)(Dwfl *, void *);
    void (*thread_detach)(Dwfl_Thread *, void *);
} Dwfl_Thread_Callbacks;

static struct {
    Dwfl *(*begin)(const Dwfl_Callbacks *);
    int (*report_process)(Dwfl *, pid_t);
    int (*report_end)(Dwfl *, void *, void *);
    bool (*attach)(Dwfl *, void *, pid_t, const Dwfl_Thread_Callbacks *, void *);
    int (*thread_frames)(Dwfl *, pid_t, int (*)(Dwfl_Frame *, void *), void *);
    bool (*frame_counter)(Dwfl_Frame *, uint64_t *, bool *);
    bool (*set_registers)(Dwfl_Thread *, int, unsigned, const uint64_t *);
    void (*set_counter)(Dwfl_Thread *, uint64_t);
    Dwfl *session;
} dw;

static struct {
    int32_t thread;
    const uint8_t *bytes;
    uint64_t base, length, pointers[2], program_counter;
} subject;

static int find_no_debug_file(void) { return -1; }

static pid_t next_thread(Dwfl *session, void *context, void **thread) {
    (void)session, (void)context;
    if (*thread) return 0;
    *thread = &subject;
    return subject.thread;
}

static bool get_thread(Dwfl *session, pid_t id, void *context, void **thread) {
    (void)session, (void)context;
    *thread = &subject;
    return id == subject.thread;
}

static bool read_memory(Dwfl *session, uint64_t address, uint64_t *word, void *context) {
    (void)session, (void)context;
    if (address >= subject.base && address - subject.base + 8 <= subject.length) {
        memcpy(word, subject.bytes + (address - subject.base), 8);
        return true;
    }
    struct iovec local = {word, 8}, remote = {(void *)(uintptr_t)address, 8};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 8;
}

static bool set_initial_registers(Dwfl_Thread *thread, void *context) {
    (void)context;
    dw.set_counter(thread, subject.program_counter);
    return dw.set_registers(thread, 6, 2, subject.pointers);  // rbp, rsp
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_initial_registers,
};

int libdw_prepare(void) {
    static Dwfl_Callbacks callbacks;
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    *(void **)&dw.begin = dlsym(library, "dwfl_begin");
    *(void **)&dw.report_process = dlsym(library, "dwfl_linux_proc_report");
    *(void **)&dw.report_end = dlsym(library, "dwfl_report_end");
    *(void **)&dw.attach = dlsym(library, "dwfl_attach_state");
    *(void **)&dw.thread_frames = dlsym(library, "dwfl_getthread_frames");
    *(void **)&dw.frame_counter = dlsym(library, "dwfl_frame_pc");
    *(void **)&dw.set_registers = dlsym(library, "dwfl_thread_state_registers");
    *(void **)&dw.set_counter = dlsym(library, "dwfl_thread_state_register_pc");
    callbacks.find_elf = dlsym(library, "dwfl_linux_proc_find_elf");
    callbacks.find_debuginfo = (void *)find_no_debug_file;
    if (!dw.begin || !dw.set_registers || !dw.set_counter) return 0;
    dw.session = dw.begin(&callbacks);
    return dw.session && dw.report_process(dw.session, getpid()) == 0 && dw.report_end(dw.session, NULL, NULL) == 0
        && dw.attach(dw.session, NULL, getpid(), &thread_callbacks, NULL);
}

static int count_frame(Dwfl_Frame *frame, void *count) {
    uint64_t counter;
    if (dw.frame_counter(frame, &counter, NULL)) ++*(uint32_t *)count;
    return 0;
}

uint32_t libdw_unwind(
    int32_t thread, const uint8_t *bytes, uint64_t base, uint64_t length, uint64_t frame_pointer,
    uint64_t stack_pointer, uint64_t program_counter
) {
    uint32_t count = 0;
    subject.thread = thread;
    subject.bytes = bytes;
    subject.base = base;
    subject.length = length;
    subject.pointers[0] = frame_pointer;
    subject.pointers[1] = stack_pointer;
    subject.program_counter = program_counter;
    dw.thread_frames(dw.session, thread, count_frame, &count);
    return count;
}
