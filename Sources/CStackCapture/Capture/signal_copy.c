// The handler of the signals that capture a stack. It allocates nothing, locks nothing, prints nothing, calls no Swift,
// and leaves errno alone. It calls no function of another image: see stall_system_call.h. It reads the stack through the
// kernel, because an app may protect a page of it.
//
// Two signals can carry a request. SIGURG, because its default action is to ignore it: it may stay pending in a thread
// that executes another program, or arrive just after the app has replaced the handler. SIGPROF for threads that block
// SIGURG, as Dispatch's do; its default action would end the next program, so it is never sent to a thread that blocks
// it. SIGURG is sent to a thread that blocks both for a while, as libc's name services do: pending there, it does no
// harm, and the answer comes when the thread unblocks it. Of all signals only 32 and 33 are never blocked by a full set,
// but they are libc's own.
//
// There is one prompt request at a time for the whole process, and one that stays open for each of a few threads. A
// request's `state` determines its owner and never goes back:
//
//     generation n, FREE -> REQUESTED -> CLAIMED -> COPIED -> generation n + 1, FREE
//                           |     |      by the handler       ^ by the handler
//                           |     '-> LATE | REQUESTED -> LATE | CLAIMED -> LATE | COPIED -> generation n + 1, FREE
//                           '-> generation n + 1, FREE: the watchdog gave up first
//
// A prompt answer goes into a shared buffer; a late one into the request's own, which is smaller. A late handler finds
// another generation and returns, unless its thread has a new request: signals of a kind do not queue. A handler that
// is stuck between CLAIMED and COPIED occupies the shared buffer, and requests are refused until it is done. Buffers
// and handlers are never freed, because a signal may be pending for a thread that blocks it.
//
// A process may contain several copies of this code, such as a program's and a plug-in's. Their handlers form a chain,
// and recognize each other by 16 bytes before the handler's entry. The kernel keeps one pending signal of a kind: a
// request that is sent while another one is pending has no signal of its own. So every signal, from any sender, makes
// each copy in the chain answer the requests to its thread.
#define _GNU_SOURCE
#include "signal_copy.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "stall_crash_note.h"
#include "stall_handler.h"
#include "stall_memory.h"
#include "stall_system_call.h"
#include "stall_pin.h"
#include "thread_progress.h"

enum { SHORTEST_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 1000000 };
#define LONGEST_STORAGE_NS UINT64_C(10000000000)  // of an answer that is not collected
enum { REQUEST_LIMIT = 16, LATE_CAPACITY = 128 << 10, PAGE_SIZE = 4096 };
enum { FREE = 0, REQUESTED = 1, CLAIMED = 2, COPIED = 3, LATE = 4, PHASE_MASK = 7, GENERATION_STEP = 8 };

struct signal_request {
    _Atomic(uint32_t) state;     // generation << 3 | phase
    _Atomic(pid_t) thread;
    const void *owner;
    int signal;
    bool is_deferred;            // the thread blocked the signal
    uint8_t *late_buffer;
    uint64_t stack_low, stack_high;
    stall_registers registers;
    uint64_t base, length, sent_ns, answered_ns;
    struct iovec to, from;
};

static const int signals[] = {SIGURG, SIGPROF};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals };

static signal_request requests[REQUEST_LIMIT];
struct previous_action {
    struct sigaction action;
    bool is_of_family;
};
static struct previous_action previous_actions[SIGNAL_COUNT][2];
static _Atomic(const struct previous_action *) previous[SIGNAL_COUNT];  // one of the two; NULL: the default action
static _Atomic(bool) is_installed[SIGNAL_COUNT];
static _Atomic(bool) is_busy;               // a watchdog is between request and release
static _Atomic(pid_t) process;              // a forked child starts over
static signal_request *_Atomic shared_user;  // its answer goes into the shared buffer
static uint8_t *shared_buffer;
static uint64_t shared_capacity;

static uint32_t phase_of(uint32_t state) { return state & PHASE_MASK; }
static uint32_t next_generation(uint32_t state) { return (state & ~(uint32_t)PHASE_MASK) + GENERATION_STEP; }

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// MARK: The handler

// The interrupted stack begins at SP, whether the handler runs on this thread's stack or on its alternate one. The red
// zone is 128 bytes below SP, copied only within SP's page. The call is made here, and its arguments are in the request: an
// alternate stack has room for little more than the kernel's frame.
static void copy_stack(
    signal_request *request, uint64_t stack_pointer, uint8_t *buffer, uint64_t capacity
) {
    const uint64_t page = stack_pointer & ~UINT64_C(4095);
    // Else an alternate or coroutine stack.
    const bool is_own = stack_pointer >= request->stack_low && stack_pointer < request->stack_high;
    request->base = stack_pointer - page < 128 ? page : (stack_pointer - 128) & ~UINT64_C(7);
    if (is_own && request->stack_high - request->base < capacity) capacity = request->stack_high - request->base;
    request->to = (struct iovec){buffer, capacity & ~UINT64_C(7)};
    request->from = (struct iovec){(void *)(uintptr_t)request->base, capacity & ~UINT64_C(7)};
    const long count = stall_system_call(
        SYS_process_vm_readv, (uint64_t)atomic_load(&request->thread), (uintptr_t)&request->to, 1,
        (uintptr_t)&request->from, 1, 0);
    if (count >= 0) request->length = (uint64_t)count & ~UINT64_C(7);
    else if (count == -EFAULT) request->length = 0;
    else if (is_own) request->length = stall_read_own_pages(buffer, request->base, request->to.iov_len);
    else request->length = stall_read_memory(buffer, request->base, request->to.iov_len);
}

// Claims a request for the handler, even if it has become a late one.
static bool claim(signal_request *request, uint32_t requested, uint32_t *claimed) {
    uint32_t expected = requested;
    if (!atomic_compare_exchange_strong(&request->state, &expected, requested + 1)) {
        if (expected != (requested | LATE)) return false;
        requested |= LATE;
        if (!atomic_compare_exchange_strong(&request->state, &expected, requested + 1)) return false;
    }
    *claimed = requested + 1;
    return true;
}

static signal_request *claim_any(uint32_t *claimed) {
    pid_t thread = 0;
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        signal_request *request = &requests[i];
        const uint32_t state = atomic_load(&request->state);
        if ((phase_of(state) & ~(uint32_t)LATE) != REQUESTED) continue;
        if (thread == 0) thread = stall_own_thread();
        if (atomic_load(&request->thread) != thread) continue;
        if (claim(request, state & ~(uint32_t)LATE, claimed)) return request;
    }
    return NULL;
}

static void copy_answer(signal_request *request, uint32_t claimed, const void *context) {
    stall_registers_from_context(&request->registers, context);
    request->answered_ns = stall_handler_now_ns();
    const uint64_t stack_pointer = request->registers.value[stall_native_architecture->stack_pointer];
    if (claimed & LATE) {
        copy_stack(request, stack_pointer, request->late_buffer, LATE_CAPACITY);
    } else {
        copy_stack(request, stack_pointer, shared_buffer, shared_capacity);
    }
    atomic_store(&request->state, claimed + 1);
}

// `request`: the one that the signal was sent for, if it is of this copy.
static void answer(signal_request *request, uint32_t requested, const void *context) {
    uint32_t claimed;
    if (request && claim(request, requested, &claimed)) copy_answer(request, claimed, context);
    while ((request = claim_any(&claimed))) copy_answer(request, claimed, context);
}

static const struct previous_action *previous_of(int number) {
    return atomic_load(&previous[number == signals[0] ? 0 : 1]);
}

// Whether the action before is the one that calls this handler.
static bool is_circle(
    int number, const siginfo_t *info, const ucontext_t *frame, uintptr_t stack_pointer, const struct sigaction *action
) {
    if (stall_is_passing(frame, stack_pointer, requests)) return true;
    return frame && !stall_is_called_by_kernel(stack_pointer, info, frame)
        && stall_current_handler(number) == (void *)action->sa_sigaction;
}

// AddressSanitizer would move `passing` from the stack to the heap.
__attribute__((no_sanitize("address"))) static void pass_on(
    int number, siginfo_t *info, void *context, uintptr_t stack_pointer
) {
    const struct previous_action *before = previous_of(number);
    if (!before) return;
    const struct sigaction *action = &before->action;
    ucontext_t *frame = stall_own_frame(context, stack_pointer);
    stall_passing passing;
    if (is_circle(number, info, frame, stack_pointer, action)) return;
    stall_begin_passing(frame, &passing, requests);
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    }
    stall_end_passing(frame, &passing);
}

enum { ANSWERED = 0x53544c4c };  // si_code, which the kernel never sets, of a request that only copies may see

static bool is_request_of(const siginfo_t *info, uint64_t at) {
    return info->si_code == SI_QUEUE && at < sizeof requests && at % sizeof *requests == 0;
}

// `stack_pointer`: at the handler's entry.
__attribute__((used)) static void handle_signal(
    int number, siginfo_t *info, void *context, uintptr_t stack_pointer
) {
    const uint64_t at = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)requests;
    const bool is_own = is_request_of(info, at);
    answer(is_own ? &requests[at / sizeof *requests] : NULL, (uint32_t)info->si_errno, context);
    if (is_own) info->si_code = ANSWERED;
    const struct previous_action *before = previous_of(number);
    if (info->si_code != ANSWERED || (before && before->is_of_family))
        pass_on(number, info, context, stack_pointer);
}

// The installed handler. The bytes before it never change, so that copies of different versions recognize each other.
#define FAMILY "stallwatch copy\n"
enum { FAMILY_LENGTH = sizeof FAMILY - 1 };
_Static_assert(FAMILY_LENGTH == 16, "keeps the entry aligned");

__attribute__((visibility("hidden"))) void stall_signal_entry(int number, siginfo_t *info, void *context);
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".ascii \"stallwatch copy\\n\"\n"
        ".hidden stall_signal_entry\n"
        ".globl stall_signal_entry\n"
        ".type stall_signal_entry, %function\n"
        "stall_signal_entry:\n"
        ".cfi_startproc\n"
#if defined(__x86_64__)
        "endbr64\n"
        "movq %rsp, %rcx\n"
        "jmp handle_signal\n"
#else
        "hint #34\n"  // bti c
        "mov x3, sp\n"
        "b handle_signal\n"
#endif
        ".cfi_endproc\n"
        ".size stall_signal_entry, . - stall_signal_entry\n"
        ".popsection\n");

// MARK: The signals

static bool is_ours(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == stall_signal_entry;
}

static bool is_owned(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

// Whether the handler is this or another copy's.
static bool is_of_family(const struct sigaction *action) {
    char bytes[FAMILY_LENGTH];
    if (is_ours(action)) return true;
    if (!(action->sa_flags & SA_SIGINFO)) return false;
    const uint64_t entry = (uintptr_t)action->sa_sigaction & stall_native_architecture->address_mask;
    return stall_read_exactly(bytes, entry - sizeof bytes, sizeof bytes) && memcmp(bytes, FAMILY, sizeof bytes) == 0;
}

// An ignored SIGPROF stays ignored, since the programs that the process executes inherit that.
static bool may_replace(int index, const struct sigaction *action, stall_signal_use use) {
    const bool is_ignored = !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
    if (is_ignored && signals[index] != SIGURG) return false;
    return use == STALL_SIGNAL_CHAINED || !is_owned(action) || is_of_family(action);
}

// The handler may already run on another thread, so the action in use is not written to.
static void set_previous(int index, const struct sigaction *action) {
    const bool is_second = atomic_load(&previous[index]) == &previous_actions[index][0];
    struct previous_action *unused = &previous_actions[index][is_second];
    *unused = (struct previous_action){.action = *action, .is_of_family = is_of_family(action)};
    atomic_store(&previous[index], unused);
}

static bool is_same(const struct sigaction *one, const struct sigaction *other) {
    return one->sa_sigaction == other->sa_sigaction && one->sa_flags == other->sa_flags;
}

// Between any two calls another thread can set an action: what each call replaced decides.
static int install(int index, stall_signal_use use) {
    struct sigaction action = {.sa_sigaction = stall_signal_entry, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction current, replaced, newer;
    // With the signal by which libc cancels threads, which sigfillset leaves out: a handler that is cancelled half-way
    // would keep the shared buffer.
    const uint64_t mask = ~stall_forced_signals();
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    memcpy(&action.sa_mask, &mask, sizeof mask);
    if (sigaction(signals[index], NULL, &current) != 0) return errno;
    if (!may_replace(index, &current, use)) return 0;
    // A handler that is chained runs on the stack that it was installed for.
    if (is_owned(&current) && !(current.sa_flags & SA_ONSTACK)) action.sa_flags &= ~SA_ONSTACK;
    if (!is_ours(&current)) set_previous(index, &current);
    if (sigaction(signals[index], &action, &replaced) != 0) return errno;
    if (!is_ours(&replaced) && !is_same(&replaced, &current)) {
        set_previous(index, &replaced);
        if (!may_replace(index, &replaced, use)) {
            if (sigaction(signals[index], &replaced, &newer) != 0) return errno;
            if (!is_ours(&newer)) sigaction(signals[index], &newer, NULL);
            return 0;
        }
    }
    atomic_store(&is_installed[index], true);
    return 0;
}

static uint8_t *map_buffer(size_t size, int flags) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// The late buffers occupy only address space until they are used.
static int make_buffers(uint32_t stack_capacity) {
    uint8_t *late = map_buffer((size_t)REQUEST_LIMIT * LATE_CAPACITY, MAP_NORESERVE);
    shared_buffer = late ? map_buffer(stack_capacity, MAP_POPULATE) : NULL;
    if (!shared_buffer) return errno;
    shared_capacity = stack_capacity & ~UINT32_C(7);
    for (int i = 0; i < REQUEST_LIMIT; i++) requests[i].late_buffer = late + (size_t)i * LATE_CAPACITY;
    return 0;
}

static atomic_flag is_dropping = ATOMIC_FLAG_INIT;  // the pending signals of one kind

// A forked child has none of the threads with requests.
static void reset_after_fork(void) {
    const pid_t own = getpid();
    if (atomic_exchange(&process, own) == own) return;
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        atomic_store(&requests[i].state, next_generation(atomic_load(&requests[i].state)));
    }
    atomic_store(&shared_user, NULL);
    atomic_store(&is_busy, false);
    atomic_flag_clear(&is_dropping);
}

int stall_signal_copy_prepare(uint32_t stack_capacity, stall_signal_use use) {
    static atomic_flag preparing = ATOMIC_FLAG_INIT;
    if (use == STALL_SIGNAL_NEVER) return 0;
    if (atomic_flag_test_and_set(&preparing)) return 0;
    reset_after_fork();
    stall_pin_image();
    int error = shared_buffer ? 0 : make_buffers(stack_capacity);
    for (int i = 0; i < SIGNAL_COUNT && error == 0; i++) {
        if (!atomic_load(&is_installed[i])) error = install(i, use);
    }
    atomic_flag_clear(&preparing);
    return error;
}

static bool can_send(int index) {
    struct sigaction current;
    return atomic_load(&is_installed[index]) && sigaction(signals[index], NULL, &current) == 0
        && is_of_family(&current);
}

bool stall_signal_copy_is_available(void) {
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        if (can_send(i)) return true;
    }
    return false;
}

static bool has_signal(uint64_t set, int number) { return set & STALL_SIGNAL_BIT(number); }

// Called immediately before the signal is sent: in between the app can still remove the handler, or the thread can
// block the signal. With SIGURG that is harmless.
//
// A thread that has blocked the signals since it registered may wait for them in sigwait: it is sent none. Neither is one
// that blocks SIGSYS where the app may emulate the handler's calls.
static int choose_signal(const signal_parameters *parameters, bool *is_blocked) {
    const bool may_not_call = stall_calls_may_be_emulated() && has_signal(parameters->blocked, SIGSYS);
    *is_blocked = false;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i] != SIGURG && !parameters->knows_blocked) continue;
        if (!can_send(i)) continue;
        if (!may_not_call && !has_signal(parameters->blocked, signals[i])) return signals[i];
        *is_blocked = true;
    }
    const bool is_deferred = *is_blocked && parameters->thread->unblocks && has_signal(parameters->blocked, SIGURG);
    return is_deferred && can_send(0) ? SIGURG : 0;
}

// Ignoring a signal discards its pending instances, including blocked ones. One watchdog at a time: a second would take
// the first one's SIG_IGN for the app's action, restore it, and so disable the signal for good.
static void drop_pending(int number) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before, between;
    while (atomic_flag_test_and_set(&is_dropping)) sched_yield();
    if (sigaction(number, &ignore, &before) == 0
        && sigaction(number, &before, &between) == 0
        // If the app has set an action meanwhile, that one is kept.
        && (is_owned(&between) || between.sa_handler != SIG_IGN)) {
        sigaction(number, &between, NULL);
    }
    atomic_flag_clear(&is_dropping);
}

// MARK: A request

// Returns when the request leaves `state`, or at the deadline. It polls: a wake-up would cost the stalled thread a
// system call, and its CPU if the threads share one.
static void wait_while(signal_request *request, uint32_t state, uint64_t deadline_ns) {
    uint64_t pause_ns = SHORTEST_PAUSE_NS, now;
    while (atomic_load(&request->state) == state && (now = monotonic_ns()) < deadline_ns) {
        const uint64_t rest_ns = deadline_ns - now;
        const struct timespec pause = {.tv_nsec = (long)(pause_ns < rest_ns ? pause_ns : rest_ns)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        if (pause_ns < LONGEST_PAUSE_NS) pause_ns *= 2;
    }
}

// EAGAIN if the thread waits by now: the signal would end its wait.
static int send(signal_request *request, uint32_t requested, stall_thread_files *files) {
    stall_thread_position position;
    siginfo_t info = {.si_code = SI_QUEUE, .si_errno = (int)requested};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = request;
    const pid_t thread = atomic_load(&request->thread), own = getpid();
    // Between this look and the signal the thread can still begin to wait, so there is nothing else between them.
    if (stall_thread_find_position(files, &position) != 0 || !position.is_running) return EAGAIN;
    return syscall(SYS_rt_tgsigqueueinfo, own, thread, request->signal, &info) == 0 ? 0 : errno;
}

// Whether the shared buffer is free: a handler may still be writing an answer to a request that timed out.
static bool take_shared_buffer(void) {
    signal_request *user = atomic_load(&shared_user);
    if (!user) return true;
    const uint32_t state = atomic_load(&user->state);
    if (phase_of(state) == CLAIMED) return false;
    if (phase_of(state) == COPIED) {
        explicit_bzero(shared_buffer, user->length);
        atomic_store(&user->state, next_generation(state));
    }
    atomic_store(&shared_user, NULL);
    return true;
}

// The answer will not be collected, or will not come.
static bool is_abandoned(signal_request *request, uint32_t state) {
    if (phase_of(state) == (LATE | COPIED)) return monotonic_ns() - request->answered_ns > LONGEST_STORAGE_NS;
    if (phase_of(state) != (LATE | REQUESTED)) return false;
    // One that blocks the signal for good must not keep the request from others.
    if (request->is_deferred && monotonic_ns() - request->sent_ns > LONGEST_STORAGE_NS) return true;
    return syscall(SYS_tgkill, getpid(), atomic_load(&request->thread), 0) != 0 && errno == ESRCH;
}

static signal_request *find_free_request(void) {
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        if (phase_of(atomic_load(&requests[i].state)) == FREE) return &requests[i];
    }
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        uint32_t state = atomic_load(&requests[i].state);
        if (!is_abandoned(&requests[i], state)) continue;
        if (atomic_compare_exchange_strong(&requests[i].state, &state, next_generation(state))) return &requests[i];
    }
    return NULL;
}

// Touches the buffer's pages, so that the handler causes no page faults.
static void touch(uint8_t *buffer, size_t size) {
    for (size_t at = 0; at < size; at += PAGE_SIZE) *(volatile uint8_t *)(buffer + at) = 0;
}

static signal_result give_up(signal_request *request, uint32_t requested, int error, uint64_t deadline_ns) {
    if (error == 0) touch(request->late_buffer, LATE_CAPACITY);
    uint32_t expected = requested;
    if (!atomic_compare_exchange_strong(
            &request->state, &expected, error == 0 ? requested | LATE : next_generation(requested))) {
        wait_while(request, requested + 1, deadline_ns);  // the handler has just begun
        if (atomic_load(&request->state) == requested + 2) return SIGNAL_COPIED;
        atomic_store(&is_busy, false);
        return SIGNAL_TIMED_OUT;
    }
    atomic_store(&shared_user, NULL);
    atomic_store(&is_busy, false);
    if (error == ESRCH) return SIGNAL_THREAD_ENDED;
    if (error == EAGAIN) return SIGNAL_NOT_RUNNING;
    return error == 0 ? SIGNAL_LEFT_OPEN : SIGNAL_UNAVAILABLE;
}

signal_result stall_signal_copy_request(
    const signal_parameters *parameters, stall_registers *registers, stall_stack_copy *copy, uint64_t *answered_ns
) {
    if (atomic_exchange(&is_busy, true)) return SIGNAL_UNAVAILABLE;
    bool is_blocked;
    signal_request *request = take_shared_buffer() ? find_free_request() : NULL;
    const int number = request ? choose_signal(parameters, &is_blocked) : 0;
    if (number == 0) {
        atomic_store(&is_busy, false);
        return request && is_blocked ? SIGNAL_BLOCKED : SIGNAL_UNAVAILABLE;
    }
    const uint32_t requested = atomic_load(&request->state) + REQUESTED;
    request->owner = parameters->owner;
    request->signal = number;
    request->is_deferred = is_blocked && has_signal(parameters->blocked, number);
    request->stack_low = parameters->thread->stack_low;
    request->stack_high = parameters->thread->stack_high;
    atomic_store(&request->thread, parameters->thread->id);
    atomic_store(&shared_user, request);
    request->sent_ns = monotonic_ns();
    atomic_store(&request->state, requested);
    const int error = send(request, requested, parameters->files);
    if (error == 0 && !request->is_deferred) wait_while(request, requested, parameters->deadline_ns);
    if (atomic_load(&request->state) != requested + 2) {
        const signal_result result = give_up(request, requested, error, parameters->deadline_ns);
        if (result != SIGNAL_COPIED) return result;
    }
    *registers = request->registers;
    *answered_ns = request->answered_ns;
    *copy = (stall_stack_copy){.bytes = shared_buffer, .base = request->base, .length = request->length};
    return SIGNAL_COPIED;
}

static void end(signal_request *request, uint8_t *buffer) {
    explicit_bzero(buffer, request->length);
    memset(&request->registers, 0, sizeof request->registers);
    atomic_store(&request->state, next_generation(atomic_load(&request->state)));
}

void stall_signal_copy_release(void) {
    end(atomic_load(&shared_user), shared_buffer);
    atomic_store(&shared_user, NULL);
    atomic_store(&is_busy, false);
}

// MARK: Late answers

signal_request *stall_signal_copy_open_request(const void *owner, pid_t thread) {
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        signal_request *request = &requests[i];
        if (!(atomic_load(&request->state) & LATE) || atomic_load(&request->thread) != thread) continue;
        if (request->owner == owner) return request;
    }
    return NULL;
}

bool stall_signal_copy_is_answered(const signal_request *request) {
    return phase_of(atomic_load(&request->state)) == (LATE | COPIED);
}

bool stall_signal_copy_answer(
    signal_request *request, stall_registers *registers, stall_stack_copy *copy, uint64_t *sent_ns,
    uint64_t *answered_ns
) {
    if (!stall_signal_copy_is_answered(request)) return false;
    *registers = request->registers;
    *copy = (stall_stack_copy){.bytes = request->late_buffer, .base = request->base, .length = request->length};
    *sent_ns = request->sent_ns;
    *answered_ns = request->answered_ns;
    return true;
}

bool stall_signal_copy_is_deferred(const signal_request *request) { return request->is_deferred; }

bool stall_signal_copy_is_blocked(const signal_request *request, uint64_t blocked) {
    return has_signal(blocked, request->signal);
}

// A handler that is just copying keeps the request, which is ended later.
void stall_signal_copy_end(signal_request *request, bool is_blocked) {
    uint32_t state = atomic_load(&request->state);
    if (phase_of(state) == (LATE | COPIED)) return end(request, request->late_buffer);
    if (phase_of(state) != (LATE | REQUESTED)) return;
    if (!atomic_compare_exchange_strong(&request->state, &state, next_generation(state))) return;
    if (is_blocked && request->signal != SIGURG) drop_pending(request->signal);
}

void stall_signal_copy_end_all(const void *owner) {
    for (int i = 0; i < REQUEST_LIMIT; i++) {
        if (atomic_load(&requests[i].state) & LATE && requests[i].owner == owner) {
            stall_signal_copy_end(&requests[i], false);
        }
    }
}
