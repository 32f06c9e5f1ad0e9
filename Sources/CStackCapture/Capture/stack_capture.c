#define _GNU_SOURCE
#include "stack_capture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../Python/python_frames.h"
#include "stall_memory.h"
#include "signal_copy.h"
#include "thread_progress.h"

enum {
    ATTEMPT_PAUSE_NS = 200000,
    LARGEST_STACK = 64 << 20,
    BUSY_NS = 10000000,           // CPU time without a wait after which a thread may be signalled
    UNCOUNTED_BUSY_NS = 1000000,  // the same if the kernel does not count waits: nearly all of the time
    LONGEST_DOUBT_NS = 10000000,
    SHORTEST_UNWIND_NS = 5000000,  // minimum time for unwinding a stack that was captured late
    REMEMBERED_THREADS = 64,
};

/// Since when a thread has been running without waiting.
typedef struct {
    pid_t thread;  // 0: unknown
    uint64_t waits, cpu_ns, at_ns;
} running_since;

struct stall_sampler {
    size_t mapped_size;
    stall_unwinder *unwinder;
    stall_thread_files visitor;  // of a thread without open files: closed after its capture
    uint32_t frame_capacity, stack_capacity;
    bool may_signal;
    stall_frame *frames;
    uint8_t *stack;
    python_stack python_before, python_after;
    python_other_part python_part;
    running_since since[REMEMBERED_THREADS];  // kept across captures: a starved thread gets its CPU in between
    unsigned next_since;
};

void stall_thread_describe(stall_thread *thread) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    *thread = (stall_thread){.id = stall_thread_self()};
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
        thread->stack_high = (uint64_t)low + size;
        // Without a limit, that of the main thread reaches down to the end of the heap, where coroutines may have theirs.
        // The kernel leaves at least 128 MiB below the main thread's stack to it.
        thread->stack_low = size > LARGEST_STACK ? thread->stack_high - LARGEST_STACK : (uint64_t)low;
    }
    if (stall_thread_start_ticks(thread->id, &thread->start_ticks) != 0) thread->start_ticks = 0;
    sigset_t blocked;
    thread->unblocks = pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGURG) == 0;
    thread->files = stall_thread_files_create(thread->id, thread->start_ticks);
}

void stall_thread_forget(stall_thread *thread) {
    if (thread->files) stall_thread_files_release(thread->files);
    thread->files = NULL;
}

bool stall_is_dumpable(void) { return prctl(PR_GET_DUMPABLE) == 1; }

int32_t stall_thread_self(void) { return (int32_t)syscall(SYS_gettid); }

int stall_thread_describe_other(int32_t id, stall_thread *thread) {
    *thread = (stall_thread){.id = id};
    return stall_thread_start_ticks(id, &thread->start_ticks);
}

static size_t rounded_up(size_t size) { return (size + 4095) & ~(size_t)4095; }

stall_sampler *stall_sampler_create(uint32_t frame_capacity, uint32_t stack_capacity, stall_signal_use use) {
    const size_t header = rounded_up(sizeof(stall_sampler));
    const size_t frames = rounded_up(frame_capacity * sizeof(stall_frame));
    const size_t size = header + frames + rounded_up(stack_capacity);
    int error = stall_signal_copy_prepare(stack_capacity, use);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    stall_sampler *sampler = (stall_sampler *)(void *)memory;
    sampler->unwinder = stall_unwinder_create(NULL);
    if (!sampler->unwinder) {
        munmap(memory, size);
        return NULL;
    }
    sampler->mapped_size = size;
    sampler->frame_capacity = frame_capacity;
    sampler->stack_capacity = stack_capacity;
    sampler->may_signal = use != STALL_SIGNAL_NEVER;
    sampler->frames = (stall_frame *)(void *)(memory + header);
    sampler->stack = memory + header + frames;
    return sampler;
}

void stall_sampler_destroy(stall_sampler *sampler) {
    stall_signal_copy_end_all(sampler);
    stall_unwinder_destroy(sampler->unwinder);
    munmap(sampler, sampler->mapped_size);
}

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void unwind(
    stall_sampler *sampler, const stall_registers *registers, const stall_stack_copy *copy, uint64_t deadline_ns,
    stall_stack *stack
) {
    const uint64_t shortest_ns = monotonic_ns() + SHORTEST_UNWIND_NS;
    stall_unwinder_set_deadline(sampler->unwinder, deadline_ns > shortest_ns ? deadline_ns : shortest_ns);
    stall_unwinder_refresh(sampler->unwinder);
    const uint32_t image_count = stall_unwinder_image_count(sampler->unwinder);
    stack->frames = sampler->frames;
    stack->count = stall_unwind(
        sampler->unwinder, registers, copy, sampler->frames, sampler->frame_capacity, &stack->is_truncated);
    stack->shows_new_image |= stall_unwinder_image_count(sampler->unwinder) != image_count;
}

// The known registers of a thread that waits in the kernel: its position and its system call's arguments. A function
// may keep its return address in one of them: vfork does, because its child would overwrite it on the stack.
static stall_registers registers_at(const stall_thread_position *position) {
    const stall_architecture *architecture = stall_native_architecture;
    stall_registers registers = {.known = 0};
    stall_registers_set(&registers, architecture->stack_pointer, position->stack_pointer);
    stall_registers_set(&registers, architecture->program_counter, position->program_counter);
    for (unsigned i = 0; position->system_call >= 0 && i < 6; i++) {
        stall_registers_set(&registers, architecture->system_call_arguments[i], position->arguments[i]);
    }
    return registers;
}

// 0 if the thread has not run since, EAGAIN if it has, or an errno.
static int stayed_blocked(stall_thread_files *files, const thread_progress *since) {
    thread_progress now;
    const int error = stall_thread_progress(files, &now);
    if (error != 0) return error;
    return since->cpu_ns == now.cpu_ns && since->slices == now.slices ? 0 : EAGAIN;
}

// Reads and unwinds a blocked thread. The copy counts only if the thread did not run in the meantime. Unwinding may
// take longer than one of many short waits: if the thread ran by then, the copy is unwound again, from itself alone.
// Returns 0, EAGAIN if it ran during the copy, EBUSY if it was running at the beginning, or an errno.
static int capture_blocked(
    stall_sampler *sampler, const stall_thread *thread, stall_thread_files *files, uint64_t deadline_ns,
    stall_stack *stack
) {
    thread_progress before;
    stall_thread_position position;
    stack->failed_call = "read /proc/self/task";
    int error = stall_thread_progress(files, &before);
    if (error == 0) error = stall_thread_find_position(files, &position);
    if (error != 0) return error;
    if (position.is_running) return EBUSY;

    const stall_registers registers = registers_at(&position);
    stall_stack_copy copy = {.bytes = sampler->stack, .base = position.stack_pointer - 128, .is_live = true};
    if (position.stack_pointer - thread->stack_low < 128) copy.base = thread->stack_low;
    uint64_t length = sampler->stack_capacity;
    if (copy.base < thread->stack_high && thread->stack_high - copy.base < length) {
        length = thread->stack_high - copy.base;
    }
    copy.length = stall_read_memory(sampler->stack, copy.base, length);
    stack->answered_ns = monotonic_ns();
    stack->failed_call = copy.length == 0 ? "process_vm_readv" : "read /proc/self/task";
    error = stayed_blocked(files, &before);
    if (error == 0) {
        unwind(sampler, &registers, &copy, deadline_ns, stack);
        if (stayed_blocked(files, &before) != 0) {
            copy.is_live = false;
            unwind(sampler, &registers, &copy, deadline_ns, stack);
        }
    }
    explicit_bzero(sampler->stack, copy.length);
    return error;
}

// The program counter of an interrupted system call that will be restarted is at the instruction; that of a blocked
// thread is behind it. Use one of them, so that grouping sees one location.
static void normalize_system_call(stall_registers *registers) {
    const stall_architecture *architecture = stall_native_architecture;
    uint64_t *counter = &registers->value[architecture->program_counter];
    uint8_t code[8] = {0};
    if (stall_read_memory(code, *counter, sizeof code) > 0) *counter += architecture->system_call_length(code);
}

static void pause_briefly(void) {
    const struct timespec pause = {.tv_nsec = ATTEMPT_PAUSE_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

// A thread that wakes only briefly also counts as running, but would be in its next wait when the signal arrives, and
// the signal would end that wait. A thread that was preempted on its way into a wait even counts as running all the
// time. So a thread is signalled only if it has used the CPU for a while without waiting: one that waited recently will
// wait again soon, and is then captured without a signal. If the kernel does not count waits, it must have used nearly
// all of a shorter time.
static bool keeps_running(const stall_thread_files *files, const stall_thread_status *status, running_since *since) {
    uint64_t cpu_ns;
    if (stall_thread_cpu_ns(files->thread, &cpu_ns) != 0) return false;
    const uint64_t now_ns = monotonic_ns();
    const bool is_known = since->thread == files->thread && cpu_ns >= since->cpu_ns;
    if (is_known && since->waits == (status ? status->waits : 0)) {
        const uint64_t used_ns = cpu_ns - since->cpu_ns;
        if (status) return used_ns >= BUSY_NS;
        if (used_ns >= (now_ns - since->at_ns) / 10 * 9) return used_ns >= UNCOUNTED_BUSY_NS;
    }
    *since = (running_since){files->thread, status ? status->waits : 0, cpu_ns, now_ns};
    return false;
}

// The history of a thread from earlier captures. A thread that shares its CPU may not get enough of it during a
// capture, but
// does between captures. Only if the kernel counts waits does that mean that it ran all the time.
static running_since *since_when(stall_sampler *sampler, const stall_thread_files *files) {
    for (int i = 0; i < REMEMBERED_THREADS; i++) {
        if (sampler->since[i].thread == files->thread) return &sampler->since[i];
    }
    running_since *since = &sampler->since[sampler->next_since++ % REMEMBERED_THREADS];
    since->thread = 0;
    return since;
}

// If the thread blocks the signal by now, it would stay pending, even in the next program.
static void withdraw_if_blocked(stall_sampler *sampler, stall_thread_files *files) {
    signal_request *request = stall_signal_copy_open_request(sampler, files->thread);
    stall_thread_status status;
    if (!request || stall_signal_copy_is_deferred(request)) return;
    if (stall_thread_read_status(files, &status) != 0) return;
    if (stall_signal_copy_is_blocked(request, status.blocked)) stall_signal_copy_end(request, true);
}

static int capture_running(
    stall_sampler *sampler, const stall_thread *thread, stall_thread_files *files, uint64_t deadline_ns,
    stall_stack *stack
) {
    stall_registers registers;
    stall_stack_copy copy;
    stall_thread_status status;
    if (!sampler->may_signal || !stall_signal_copy_is_available()) return EBUSY;
    // After a request it executes nothing before it answers. An answer that was not collected is in the way.
    signal_request *earlier = stall_signal_copy_open_request(sampler, thread->id);
    if (earlier && !stall_signal_copy_is_answered(earlier)) return EINPROGRESS;
    if (earlier) stall_signal_copy_end(earlier, false);
    const bool knows_status = stall_thread_read_status(files, &status) == 0;
    if (!keeps_running(files, knows_status ? &status : NULL, since_when(sampler, files))) return EAGAIN;
    const signal_parameters parameters = {
        .thread = thread,
        .files = files,
        .owner = sampler,
        .deadline_ns = deadline_ns,
        .blocked = knows_status ? status.blocked : 0,
        .knows_blocked = knows_status,
    };
    switch (stall_signal_copy_request(&parameters, &registers, &copy, &stack->answered_ns)) {
    case SIGNAL_COPIED: break;
    case SIGNAL_UNAVAILABLE: return EAGAIN;  // another sampler is active, or an answer is late
    case SIGNAL_NOT_RUNNING: return EAGAIN;
    case SIGNAL_THREAD_ENDED: return ESRCH;
    case SIGNAL_TIMED_OUT: return ETIMEDOUT;
    case SIGNAL_LEFT_OPEN: withdraw_if_blocked(sampler, files); return EINPROGRESS;
    case SIGNAL_BLOCKED: return ECANCELED;
    }
    normalize_system_call(&registers);
    unwind(sampler, &registers, &copy, deadline_ns, stack);
    stall_signal_copy_release();
    stack->used_signal = true;
    return 0;
}

// Without /proc, a thread that had no CPU for so long counts as blocked.
static bool knows_state(stall_thread_files *files) {
    stall_thread_state state;
    return stall_thread_files_have_position(files) || stall_thread_read_state(files, &state) == 0;
}

static int capture(
    stall_sampler *sampler, const stall_thread *thread, stall_thread_files *files, uint64_t deadline, stall_stack *stack
) {
    bool was_asked = false;
    const uint64_t start = monotonic_ns();
    for (;;) {
        stall_python_read(thread->id, &sampler->python_before);
        int error = capture_blocked(sampler, thread, files, deadline, stack);
        if (error == EBUSY) {
            error = capture_running(sampler, thread, files, deadline, stack);
            was_asked = was_asked || error != EBUSY;
            // It may have blocked before the signal arrived, with the signal masked: try once more from outside.
            if ((error == ETIMEDOUT || error == EINPROGRESS)
                && capture_blocked(sampler, thread, files, deadline, stack) == 0) return 0;
        }
        if (error != EAGAIN && error != EBUSY) return error;
        if (!was_asked && !knows_state(files) && monotonic_ns() - start >= LONGEST_DOUBT_NS) return ENODATA;
        if (monotonic_ns() >= deadline) return error == EAGAIN ? ETIMEDOUT : EBUSY;
        pause_briefly();
    }
}

// A running thread's native stack is copied between the two readings.
static int capture_with_python(
    stall_sampler *sampler, const stall_thread *thread, stall_thread_files *files, uint64_t deadline, stall_stack *stack
) {
    const int error = capture(sampler, thread, files, deadline, stack);
    if (error != 0 || sampler->python_before.count == 0) return error;
    stall_python_read(thread->id, &sampler->python_after);
    stall_python_keep_lasting(&sampler->python_after, &sampler->python_before);
    sampler->python_after.may_run = stack->used_signal;
    stack->count = stall_python_insert(
        &sampler->python_after, sampler->unwinder, &sampler->python_part, sampler->frames, stack->count,
        sampler->frame_capacity, stack->is_truncated);
    return 0;
}

int stall_sampler_capture(
    stall_sampler *sampler, const stall_thread *thread, int64_t timeout_ns, stall_stack *stack
) {
    const uint64_t deadline = monotonic_ns() + (uint64_t)(timeout_ns > 0 ? timeout_ns : 0);
    *stack = (stall_stack){0};
    if (thread->files) return capture_with_python(sampler, thread, thread->files, deadline, stack);
    stall_thread_files *files = &sampler->visitor;
    stack->failed_call = stall_open_call();
    int error = stall_thread_files_open(files, thread->id, thread->start_ticks);
    if (error != 0) return error;
    error = capture_with_python(sampler, thread, files, deadline, stack);
    if (error == EINPROGRESS) {  // there will be no later attempt
        signal_request *request = stall_signal_copy_open_request(sampler, thread->id);
        if (request) stall_signal_copy_end(request, false);
        error = ETIMEDOUT;
    }
    stall_thread_files_close(files);
    return error;
}

bool stall_sampler_collect_late(stall_sampler *sampler, const stall_thread *thread, stall_stack *stack) {
    signal_request *request = stall_signal_copy_open_request(sampler, thread->id);
    stall_registers registers;
    stall_stack_copy copy;
    *stack = (stall_stack){0};
    if (!request) return false;
    if (!stall_signal_copy_answer(request, &registers, &copy, &stack->sent_ns, &stack->answered_ns)) return false;
    normalize_system_call(&registers);
    unwind(sampler, &registers, &copy, 0, stack);
    for (uint32_t i = 0; i < stack->count && stall_signal_copy_is_deferred(request); i++) {
        sampler->frames[i].is_guessed = true;
    }
    stall_signal_copy_end(request, false);
    stack->used_signal = stack->is_late = true;
    return stack->count > 0;
}
