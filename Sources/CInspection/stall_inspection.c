#define _GNU_SOURCE
#include "stall_inspection.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stall_memory.h"

enum {
    FRAME_LIMIT = 4096,
    STACK_SIZE = 1 << 20,
    ATTEMPTS = 20,
    PAUSE_NS = 5000000,
    SCAN_SIZE = 1 << 20,
};

struct stall_inspector {
    int32_t process;
    stall_unwinder *unwinder;
    stall_frame frames[FRAME_LIMIT];
    uint64_t stack[STACK_SIZE / 8];
};

#if defined(__x86_64__)
enum { STACK_POINTER = 7, PROGRAM_COUNTER = 16 };
static const uint8_t argument_registers[6] = {5, 4, 1, 10, 8, 9};
#else
enum { STACK_POINTER = 31, PROGRAM_COUNTER = 32 };
static const uint8_t argument_registers[6] = {0, 1, 2, 3, 4, 5};
#endif

stall_inspector *stall_inspector_create(
    int32_t process, const stall_unwind_image *images, uint32_t count, const stall_swift_runtime *runtime
) {
    stall_inspector *inspector = malloc(sizeof *inspector);
    if (!inspector) return NULL;
    inspector->process = process;
    inspector->unwinder = stall_unwinder_create(NULL);
    if (!inspector->unwinder) {
        free(inspector);
        return NULL;
    }
    stall_unwinder_set_process(inspector->unwinder, images, count, runtime);
    return inspector;
}

void stall_inspector_destroy(stall_inspector *inspector) {
    stall_unwinder_destroy(inspector->unwinder);
    free(inspector);
}

static void pause_briefly(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

// Reads a small file of /proc as zero-ended text. 0 or errno.
static int read_file(int32_t process, int32_t id, const char *name, char *text, size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId32 "/task/%" PRId32 "/%s", process, id, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? ESRCH : errno;
    const ssize_t count = read(file, text, capacity - 1);
    const int error = errno;
    close(file);
    if (count < 0) return error;
    text[count] = 0;
    return 0;
}

// The number of the call that restart_syscall continues: a stop ends a sleep, also a stop by capture_running. It is in the
// instruction before the call: `mov $230, %eax`, `mov x8, #115`.
static int64_t restarted_call(int32_t process, uint64_t counter) {
#if defined(__x86_64__)
    uint8_t code[7];
    uint32_t number;
    const bool is_read = stall_process_read_memory(process, counter - sizeof code, code, sizeof code) == sizeof code;
    if (!is_read || code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05) return SYS_restart_syscall;
    memcpy(&number, code + 1, sizeof number);
    return number;
#else
    uint32_t code[2];
    const bool is_read = stall_process_read_memory(process, counter - sizeof code, code, sizeof code) == sizeof code;
    if (!is_read || (code[0] & 0xffe0001f) != 0xd2800008 || code[1] != 0xd4000001) return SYS_restart_syscall;
    return code[0] >> 5 & 0xffff;
#endif
}

// **Source:** proc(5), /proc/pid/syscall.
static int read_position(int32_t process, int32_t id, stall_inspected_thread *thread, uint64_t *counter) {
    char text[256];
    uint64_t *of = thread->arguments;
    const int error = read_file(process, id, "syscall", text, sizeof text);
    if (error != 0) return error;
    thread->is_running = strncmp(text, "running", 7) == 0;
    thread->system_call = -1;
    if (thread->is_running) return 0;
    if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &thread->stack_pointer, counter) == 2) return 0;
    const int found = sscanf(
        text, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
        &thread->system_call, &of[0], &of[1], &of[2], &of[3], &of[4], &of[5], &thread->stack_pointer, counter);
    if (found == 9 && thread->system_call == SYS_restart_syscall)
        thread->system_call = restarted_call(process, *counter);
    return found == 9 ? 0 : ENODATA;
}

// The number of times that it got a CPU: unchanged, it has not run.
static int read_slices(int32_t process, int32_t id, uint64_t *slices) {
    char text[128];
    const int error = read_file(process, id, "schedstat", text, sizeof text);
    if (error != 0) return error;
    return sscanf(text, "%*u %*u %" SCNu64, slices) == 1 ? 0 : ENODATA;
}

static void copy_stack(stall_inspector *inspector, stall_inspected_thread *thread) {
    const size_t length = stall_process_read_memory(
        inspector->process, thread->stack_pointer, inspector->stack, sizeof inspector->stack);
    thread->words = inspector->stack;
    thread->word_count = (uint32_t)(length / 8);
}

static void unwind(
    stall_inspector *inspector, const stall_registers *registers, bool is_live, stall_inspected_thread *thread
) {
    const stall_stack_copy copy = {
        .bytes = (const uint8_t *)inspector->stack,
        .base = thread->stack_pointer,
        .length = (uint64_t)thread->word_count * 8,
        .is_live = is_live,
    };
    stall_memory_read_from(inspector->process);
    thread->frames = inspector->frames;
    thread->count = stall_unwind(
        inspector->unwinder, registers, &copy, inspector->frames, FRAME_LIMIT, &thread->is_truncated);
    stall_memory_read_from(0);
}

static int capture_blocked(stall_inspector *inspector, int32_t id, stall_inspected_thread *thread) {
    uint64_t counter, before, after;
    // Without schedstat there is nothing to compare, and the thread is taken to stay where it is.
    const bool has_slices = read_slices(inspector->process, id, &before) == 0;
    int error = read_position(inspector->process, id, thread, &counter);
    if (error != 0) return error;
    if (thread->is_running) return EBUSY;
    stall_registers registers = {.known = 0};
    stall_registers_set(&registers, STACK_POINTER, thread->stack_pointer);
    stall_registers_set(&registers, PROGRAM_COUNTER, counter);
    for (int i = 0; thread->system_call >= 0 && i < 6; i++)
        stall_registers_set(&registers, argument_registers[i], thread->arguments[i]);
    copy_stack(inspector, thread);
    unwind(inspector, &registers, true, thread);
    if (!has_slices) return 0;
    error = read_slices(inspector->process, id, &after);
    return error != 0 ? error : before == after ? 0 : EAGAIN;
}

// MARK: A running thread

// The registers of a stopped thread, in DWARF's order.
static int read_registers(int32_t id, stall_registers *registers) {
    struct user_regs_struct saved;
    struct iovec part = {&saved, sizeof saved};
    if (ptrace(PTRACE_GETREGSET, id, (void *)NT_PRSTATUS, &part) != 0) return errno;
#if defined(__x86_64__)
    const uint64_t order[17] = {saved.rax, saved.rdx, saved.rcx, saved.rbx, saved.rsi, saved.rdi,
                                saved.rbp, saved.rsp, saved.r8,  saved.r9,  saved.r10, saved.r11,
                                saved.r12, saved.r13, saved.r14, saved.r15, saved.rip};
    memcpy(registers->value, order, sizeof order);
    registers->known = (UINT64_C(1) << 17) - 1;
#else
    memcpy(registers->value, saved.regs, 31 * sizeof(uint64_t));
    registers->value[STACK_POINTER] = saved.sp;
    registers->value[PROGRAM_COUNTER] = saved.pc;
    registers->known = (UINT64_C(1) << 33) - 1;
#endif
    return 0;
}

// A stop after that appears at the next wait for any child, which has to call stall_release_stopped.
static int wait_for_stop(int32_t id) {
    enum { LONGEST_WAITS = 400 };
    for (int i = 0; i < LONGEST_WAITS; i++) {
        int status;
        const pid_t found = waitpid(id, &status, __WALL | WNOHANG);
        if (found < 0) return errno == ECHILD ? ESRCH : errno;
        if (found == id) return WIFSTOPPED(status) ? 0 : ESRCH;
        pause_briefly();
    }
    return ETIMEDOUT;
}

void stall_release_stopped(int32_t id) { ptrace(PTRACE_DETACH, id, NULL, NULL); }

static int capture_running(stall_inspector *inspector, int32_t id, stall_inspected_thread *thread) {
    if (ptrace(PTRACE_SEIZE, id, NULL, NULL) != 0) return errno;
    stall_registers registers = {.known = 0};
    int error = ptrace(PTRACE_INTERRUPT, id, NULL, NULL) == 0 ? wait_for_stop(id) : errno;
    if (error == 0) error = read_registers(id, &registers);
    if (error == 0) {
        thread->stack_pointer = registers.value[STACK_POINTER];
        copy_stack(inspector, thread);
    }
    ptrace(PTRACE_DETACH, id, NULL, NULL);
    // From the copy alone: it runs again.
    if (error == 0) unwind(inspector, &registers, false, thread);
    return error;
}

int stall_inspector_capture(stall_inspector *inspector, int32_t id, stall_inspected_thread *thread) {
    int error = EAGAIN;
    for (int attempt = 0; attempt < ATTEMPTS && error == EAGAIN; attempt++) {
        if (attempt > 0) pause_briefly();
        *thread = (stall_inspected_thread){.system_call = -1};
        error = capture_blocked(inspector, id, thread);
        if (error == EBUSY) error = capture_running(inspector, id, thread);
    }
    if (error != 0) thread->count = thread->word_count = 0;
    return error;
}

// MARK: Memory

size_t stall_process_read_memory(int32_t process, uint64_t address, void *to, size_t length) {
    return stall_read_memory_of(process, to, address, length);
}

size_t stall_process_find_word(
    int32_t process, uint64_t start, uint64_t end, uint64_t value, uint64_t *found, size_t capacity
) {
    size_t count = 0;
    uint64_t *part = malloc(SCAN_SIZE);
    if (!part) return 0;
    start = (start + 15) & ~UINT64_C(15);
    while (start < end && count < capacity) {
        const uint64_t left = end - start;
        const size_t length = stall_process_read_memory(process, start, part, left < SCAN_SIZE ? left : SCAN_SIZE);
        for (size_t i = 0; i + 1 < length / 8 && count < capacity; i += 2)
            if (part[i] == value) found[count++] = start + i * 8;
        // Over a page that cannot be read.
        start += length >= 16 ? length & ~(size_t)15 : 4096;
    }
    free(part);
    return count;
}
