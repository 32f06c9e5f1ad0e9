#define _GNU_SOURCE
#include "stall_crash_note.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash_suspension.h"
#include "process_ending.h"
#include "stall_clock.h"
#include "stall_handler.h"
#include "stall_memory.h"
#include "stall_pin.h"
#include "stall_process_record.h"
#include "stall_system_call.h"
#include "stall_task.h"
#include "stall_thread_files.h"

// SIGQUIT only where Swift's crash reporter handles it.
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGQUIT};

// The actions before ours. Written before ours is installed; a start that finds another one meanwhile uses the second
// place, since a handler may be reading the first.
static struct sigaction actions[NSIG][2];
static const struct sigaction *previous[NSIG];

// MARK: The note

// Held by the first thread that is in a handler. Others may look while it writes, and see by the owner that it did: so each
// field is read and written in one piece.
static struct {
    uint64_t owner;  // process << 32 | thread; 0: no note
    uint64_t began_ns;
    uint64_t mark;
    uintptr_t frame;  // the address of a copy of the mark, in the handler's frame
    uintptr_t low;    // the lowest address that the handler can reach
    uint64_t blocked;  // the signal that the handler blocks, in a mask; 0: none
    bool is_alternate;  // it runs on an alternate stack, which only handlers use
    bool suspends;  // it suspends all other threads
    uint64_t returned_ns;  // when a handler returned after which the process may end; 0: it has not
} crash;

#define GET(field) __atomic_load_n(&crash.field, __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&crash.field, value, __ATOMIC_RELAXED)
#define IS_WRITTEN (UINT64_C(1) << 63)
#define LARGEST_STACK (UINT64_C(64) << 20)

// The process that has the handlers. A child of vfork shares the memory, and is another one.
static int32_t process;

static uint64_t own_name(void) {
    return (uint64_t)(uint32_t)stall_own_process() << 32 | (uint32_t)stall_own_thread();
}

static uint64_t owner(void) { return __atomic_load_n(&crash.owner, __ATOMIC_ACQUIRE); }

static bool is_inside(uintptr_t stack_pointer) { return stack_pointer >= GET(low) && stack_pointer < GET(frame); }

// The mark is overwritten when its place on the stack is used again, which may not happen, above all on an alternate
// stack. Its stack may be gone.
static bool is_marked(void) {
    uint64_t mark = 0;
    return stall_read_memory(&mark, GET(frame), sizeof mark) == sizeof mark && mark == GET(mark);
}

// False if another thread has it, or this one in an outer handler.
static bool take_note(uint64_t own, int number, const struct sigaction *handler, volatile uint64_t *mark) {
    if ((int32_t)(own >> 32) != __atomic_load_n(&process, __ATOMIC_RELAXED)) return false;
    uint64_t before = owner();
    const bool is_inherited = (int32_t)((before & ~IS_WRITTEN) >> 32) != stall_own_process();  // by a forked child
    if (before != own && before != 0 && !is_inherited) return false;
    if (before == own && is_inside((uintptr_t)mark) && is_marked()) return false;
    if (!__atomic_compare_exchange_n(
            &crash.owner, &before, own | IS_WRITTEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
    stack_t alternate = {0};
    stall_system_call(SYS_sigaltstack, 0, (uintptr_t)&alternate, 0, 0, 0, 0);
    const uint64_t began_ns = stall_handler_now_ns(), frame = (uintptr_t)mark;
    const bool is_alternate = alternate.ss_flags & SS_ONSTACK;
    *mark = began_ns ^ frame;
    SET(began_ns, began_ns);
    SET(frame, frame);
    SET(mark, began_ns ^ frame);
    SET(is_alternate, is_alternate);
    SET(low, is_alternate ? (uintptr_t)alternate.ss_sp : frame > LARGEST_STACK ? frame - LARGEST_STACK : 0);
    SET(returned_ns, 0);
    SET(blocked, handler->sa_flags & SA_NODEFER ? 0 : UINT64_C(1) << (number - 1));
    SET(suspends, stall_suspends_threads(handler));
    __atomic_store_n(&crash.owner, own, __ATOMIC_RELEASE);
    return true;
}

void stall_fatal_entry(int number, siginfo_t *info, void *context);

static void drop_note(uint64_t held) {
    const bool suspends = GET(suspends);
    if (!__atomic_compare_exchange_n(&crash.owner, &held, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    stall_process_note_ending(STALL_PROCESS_LIVES);
    if (suspends) stall_set_suspendable(false, stall_fatal_entry);
}

typedef enum { IN_HANDLER, LEFT_HANDLER, UNKNOWN } whereabouts;

static whereabouts look_from_outside(int32_t thread) {
    stall_thread_files files;
    stall_thread_position position;
    stall_thread_status status;
    if (stall_thread_files_open(&files, thread, 0) != 0) return UNKNOWN;
    const bool is_known = stall_thread_read_position(&files, &position) == 0 && !position.is_running;
    const bool is_blocked = stall_thread_read_status(&files, &status) == 0 && status.blocked & GET(blocked);
    stall_thread_files_close(&files);
    if (!is_known) return UNKNOWN;
    if (!is_inside(position.stack_pointer)) return LEFT_HANDLER;
    return GET(is_alternate) || is_blocked ? IN_HANDLER : UNKNOWN;
}

static whereabouts look(int32_t thread) {
    if (thread == stall_gettid() && !is_inside((uintptr_t)__builtin_frame_address(0))) return LEFT_HANDLER;
    return stall_task_exists(thread) && is_marked() ? look_from_outside(thread) : LEFT_HANDLER;
}

// A thread that computes cannot be located. A process that survives one fault after another gets the benefit of the
// doubt for the first two seconds of a minute, however many they are.
static bool is_in_doubt(uint64_t now_ns) {
    static uint64_t doubted_ns;
    uint64_t since_ns = __atomic_load_n(&doubted_ns, __ATOMIC_RELAXED);
    if (since_ns == 0 || now_ns - since_ns > STALL_CRASH_LIMIT_NS) {
        __atomic_store_n(&doubted_ns, now_ns, __ATOMIC_RELAXED);
        since_ns = now_ns;
    }
    return now_ns - since_ns <= STALL_CRASH_DOUBT_NS;
}

bool stall_crash_note_covers(uint64_t progress_ns) {
    uint64_t held = owner();
    if (held == 0 || (pid_t)((held & ~IS_WRITTEN) >> 32) != getpid()) return false;
    const uint64_t now_ns = stall_monotonic_ns();
    if (held & IS_WRITTEN) {
        // Writing takes a microsecond, unless another fatal signal interrupts it whose handler does not return.
        if (is_in_doubt(now_ns)) return true;
        __atomic_compare_exchange_n(&crash.owner, &held, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        return false;
    }
    const uint64_t began_ns = GET(began_ns), age_ns = now_ns - began_ns;
    const bool suspends = GET(suspends);
    // A thread that was suspended continues only in the moment that the process has left.
    const bool is_before = suspends || progress_ns <= began_ns + STALL_CRASH_SLACK_NS;
    whereabouts place = look((int32_t)held);
    // Not seen to have left: what suspends other threads returns, and the moment in which it lets them go it computes.
    if (place == UNKNOWN && suspends) place = IN_HANDLER;
    const uint64_t returned_ns = __atomic_load_n(&crash.returned_ns, __ATOMIC_ACQUIRE);
    if (place == LEFT_HANDLER) {
        // `abort` ends the process when the handler has returned; what called `raise` lives on.
        if (returned_ns != 0 && stall_monotonic_ns() - returned_ns < STALL_ABORT_DOUBT_NS) return is_before;
        drop_note(held);
        return false;
    }
    if (age_ns > (place == UNKNOWN ? STALL_CRASH_DOUBT_NS : STALL_CRASH_LIMIT_NS)) return false;
    if (place == UNKNOWN && !is_in_doubt(now_ns)) return false;
    return is_before;
}

// MARK: The handler

static bool is_handled(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

// Everything that the handler calls is a direct system call, or hidden in this image: see stall_system_call.h.
__attribute__((visibility("hidden"))) void stall_fatal_entry(int number, siginfo_t *info, void *context);
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden stall_fatal_entry\n"
        ".globl stall_fatal_entry\n"
        ".type stall_fatal_entry, %function\n"
        "stall_fatal_entry:\n"
        ".cfi_startproc\n"
#if defined(__x86_64__)
        "endbr64\n"
        "movq %rsp, %rcx\n"
        "jmp note_crash\n"
#else
        "hint #34\n"  // bti c
        "mov x3, sp\n"
        "b note_crash\n"
#endif
        ".cfi_endproc\n"
        ".size stall_fatal_entry, . - stall_fatal_entry\n"
        ".popsection\n");

static void set_default(int number) {
    const stall_kernel_action action = {.handler = 0};
    stall_system_call(SYS_rt_sigaction, (uint64_t)number, (uintptr_t)&action, 0, sizeof action.mask, 0, 0);
}

// Whether the interrupted instruction fails again when it is executed once more. After a trap, or a system call refused
// by a sandbox, the thread would continue behind it; a sent signal has no instruction.
static bool happens_again(int number, const siginfo_t *info) {
    if (info->si_code <= 0 || number == SIGTRAP || number == SIGSYS || number == SIGABRT) return false;
    return number != SIGBUS || info->si_code != BUS_MCEERR_AO;
}

// The signal is blocked until this handler returns.
static void raise_again(int number, siginfo_t *info) {
    const uint64_t own = own_name(), process = own >> 32, thread = (uint32_t)own, signal = (uint64_t)number;
    if (stall_system_call(SYS_rt_tgsigqueueinfo, process, thread, signal, (uintptr_t)info, 0, 0) != 0)
        stall_system_call(SYS_tgkill, process, thread, signal, 0, 0, 0);
    // The kernel ignores a signal that the first process of a container sends to itself.
    if (process == 1) stall_system_call(SYS_exit_group, 128 + signal, 0, 0, 0, 0, 0);
}

static void call_before(int number, siginfo_t *info, void *context, const struct sigaction *before) {
    if (!(before->sa_flags & SA_SIGINFO)) return before->sa_handler(number);
    const bool suspends = stall_suspends_threads(before);
    if (suspends) stall_set_suspendable(true, stall_fatal_entry);
    before->sa_sigaction(number, info, context);
    // A signal that was sent is over now. Otherwise the process ends, unless SIGABRT was raised: see drop_note.
    if (suspends && info->si_code <= 0 && number != SIGABRT) stall_set_suspendable(false, stall_fatal_entry);
}

static bool may_be_emulated;

bool stall_calls_may_be_emulated(void) {
    struct sigaction action;
    const bool is_own = sigaction(SIGSYS, NULL, &action) == 0 && is_handled(&action)
        && action.sa_sigaction != stall_fatal_entry;
    __atomic_store_n(&may_be_emulated, is_own, __ATOMIC_RELAXED);
    return is_own;
}

static bool may_make_calls(const ucontext_t *frame) {
    uint64_t blocked = 0;
    if (frame) __builtin_memcpy(&blocked, &frame->uc_sigmask, sizeof blocked);
    return !(blocked & STALL_SIGNAL_BIT(SIGSYS)) || !__atomic_load_n(&may_be_emulated, __ATOMIC_RELAXED);
}

// Whether the handler before is the one that calls this one: a crash reporter that was installed a second time. It has
// reported then.
static bool is_circle(
    int number, const siginfo_t *info, const ucontext_t *frame, uintptr_t stack_pointer, const struct sigaction *before
) {
    if (stall_is_passing(frame, stack_pointer, actions)) return true;
    return frame && !stall_is_called_by_kernel(stack_pointer, info, frame)
        && stall_current_handler(number) == (void *)before->sa_sigaction;
}

// `stack_pointer`: at the handler's entry. AddressSanitizer would move the mark from the stack to the heap.
__attribute__((used, no_sanitize("address"))) static void note_crash(
    int number, siginfo_t *info, void *context, uintptr_t stack_pointer
) {
    if (stall_answers_request(number, info, context)) return;
    volatile uint64_t mark = 0;
    stall_passing passing;
    ucontext_t *frame = stall_own_frame(context, stack_pointer);
    const struct sigaction *before = __atomic_load_n(&previous[number], __ATOMIC_ACQUIRE);
    const bool may_call = may_make_calls(frame);
    const uint64_t own = may_call ? own_name() : 0;
    const bool is_noted = may_call && take_note(own, number, before, &mark);
    if (may_call) stall_process_note_ending(STALL_PROCESS_CRASHED);
    const bool is_default = !is_handled(before) || is_circle(number, info, frame, stack_pointer, before);
    // As the kernel does before it calls such a handler.
    if (is_default || before->sa_flags & SA_RESETHAND) set_default(number);
    stall_begin_passing(frame, &passing, actions);
    if (!is_default) call_before(number, info, context, before);
    else if (!happens_again(number, info)) raise_again(number, info);
    stall_end_passing(frame, &passing);
    if (!is_noted || is_default) return;
    // If the handler is still installed, or the instruction does not fail again, the previous handler dealt with the
    // signal, and the process lives on.
    const bool is_ours = stall_current_handler(number) == (void *)stall_fatal_entry;
    if (!is_ours && happens_again(number, info)) return;
    // `abort` ends the process now, and so does a signal that the handler has reset and raised.
    if (number == SIGABRT || !is_ours) __atomic_store_n(&crash.returned_ns, stall_handler_now_ns(), __ATOMIC_RELEASE);
    else drop_note(own);
}

// MARK: Installation

static bool is_equal(const struct sigaction *one, const struct sigaction *other) {
    return one->sa_sigaction == other->sa_sigaction && one->sa_flags == other->sa_flags
        && memcmp(&one->sa_mask, &other->sa_mask, sizeof(uint64_t)) == 0;
}

static bool is_ignored(const struct sigaction *action) {
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

// The app may set its own action at any moment. Signals are passed on to the action that the installation returns, not
// to the one that was read before; and if it is another one, ours is set once more with its mask and flags.
static void install(int number) {
    struct sigaction before, found;
    if (sigaction(number, NULL, &before) != 0) return;
    if (number == SIGQUIT && !stall_suspends_threads(&before)) return;
    for (int attempt = 0; attempt < 16; attempt++) {
        struct sigaction ours = {.sa_mask = before.sa_mask};
        ours.sa_sigaction = stall_fatal_entry;
        sigdelset(&ours.sa_mask, SIGSYS);  // see stall_handler.h
        // A handler of the app's runs on the stack that it was installed for.
        const int kept = SA_NODEFER | SA_RESTART | (is_handled(&before) ? SA_ONSTACK : 0);
        ours.sa_flags = SA_SIGINFO | (is_handled(&before) ? 0 : SA_ONSTACK) | (before.sa_flags & kept);
        // A handler of SIGSYS emulates system calls, ours among them, while it blocks the signal.
        if (is_ignored(&before) || (number == SIGSYS && is_handled(&before))) {
            if (attempt == 0) return;
            ours = before;
        } else {
            struct sigaction *place = &actions[number][attempt % 2];
            *place = before;
            __atomic_store_n(&previous[number], place, __ATOMIC_RELEASE);
        }
        if (sigaction(number, &ours, &found) != 0) return;
        if (found.sa_sigaction == stall_fatal_entry || is_equal(&found, &before)) return;
        before = found;
    }
}

static void install_all(void) {
    stall_pin_image();
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) install(fatal[i]);
}

void stall_crash_note_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_all);
    stall_calls_may_be_emulated();
    __atomic_store_n(&process, stall_own_process(), __ATOMIC_RELAXED);  // a forked child has the handlers, too
}
