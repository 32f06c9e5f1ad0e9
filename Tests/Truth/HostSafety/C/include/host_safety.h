// What the host-safety plays need and Swift cannot do: block in malloc, continue in a forked child, corrupt files under
// a running program.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Counts what threads of this name (as the kernel knows it) allocate and free from now on. NULL: nothing more.
void host_count_heap(const char *_Nullable thread);
uint64_t host_heap_allocations(void);
uint64_t host_heap_frees(void);

/// Called for each that was counted.
void host_counted(void);

/// Locks the heap's only arena for `ns`, like a thread stopped in malloc. With MALLOC_ARENA_MAX=1 all allocations that
/// no thread's cache serves wait for it. False if the arena is not where this library expects it.
bool host_hold_heap(uint64_t ns);

/// The same through the counting malloc itself: every allocation and free of every thread waits until `ns` have passed, whatever
/// the C library does. The caller sleeps meanwhile.
void host_block_heap(uint64_t ns);

/// fork(2), which Swift does not offer.
pid_t host_fork(void);
pid_t host_vfork_exec(const char *_Nonnull program, const char *_Nonnull argument);

/// Denies a system call to this process from now on: it fails with `error`. 0 or an errno.
int host_deny_call(long number, int error);
/// The same of openat: nothing can be opened any more.
int host_deny_openat(int error);

/// Locks a file (F_WRLCK, F_UNLCK) for this open file, not for the process; waits for another holder or fails.
void host_lock_file(int file, short type, bool waits);
void host_wait_in_epoll(int milliseconds);

/// Throws a C++ exception and catches it, through `depth` frames.
int host_throw(int depth);

/// Sleeps for `ns`, whatever signals come.
void host_rest(uint64_t ns);

/// Uses the CPU for `ns`.
void host_spin(uint64_t ns);

/// The program has many thread-local variables; this uses the last one.
void host_touch_large_variable(void);

/// Mounts an empty directory over /proc, for this process. False if that is not allowed.
bool host_hide_proc(void);

/// Mounts a directory at a second place, for this process. False if that is not allowed.
bool host_show(const char *_Nonnull directory, const char *_Nonnull also_at);

/// Makes a directory the root of the whole process, without /proc in it. False if that is not allowed.
bool host_lock_in(const char *_Nonnull directory);

/// Mounts a directory over itself, read-only, for this process. False where that is not allowed.
bool host_mount_read_only(const char *_Nonnull directory);

/// Runs a program with a PID namespace of its own and the /proc of this one, and waits for its end as waitpid does. -1 where that is
/// not allowed.
int host_run_in_pid_namespace(const char *_Nonnull program, char *_Nullable const *_Nonnull arguments);

/// Lets a program bind low ports as any user, as setcap does. False where that is not allowed.
bool host_give_capability(const char *_Nonnull program);

/// Runs a program as another user, and waits for its end as waitpid does. -1 where that is not allowed.
int host_run_as(uid_t user, const char *_Nonnull program, char *_Nullable const *_Nonnull arguments);

/// PR_GET_DUMPABLE: whether the process may read its own /proc entries.
bool host_is_dumpable(void);

/// Reads at address 8 and lives on, by a handler of SIGSEGV.
void host_fault_and_recover(void);

/// Ends the process as `how` says, by a signal: `trap`, `sandbox` (a refused system call), `fault`, `abort`, or `reset` (a fault
/// whose handler is to be called once). Returns when that has not ended it.
void host_die(const char *_Nonnull how);

/// A handler of SIGSEGV that is to be called once. After the third call the process exits.
void host_handle_one_fault(void);

/// Requests SIGPROF every 5 ms of CPU time, as profilers do.
void host_profile_itself(void);

/// PR_SET_DUMPABLE 0, as after setuid.
void host_make_undumpable(void);

/// setrlimit(2), both limits.
void host_limit(int resource, uint64_t value);

/// Blocks all signals of the calling thread, or none.
void host_block_signals(bool all_but_none);

/// The old fault: a SIGPROF that stays pending where the thread blocks it, and ends whatever program comes next.
void host_leave_profile_signal(void);

/// The ways to survive a fatal signal.
enum { HOST_RETURN, HOST_SIGLONGJMP, HOST_LONGJMP_FROM_ABORT, HOST_SETCONTEXT, HOST_EXCEPTION, HOST_WAYS };

/// Installs the handlers from which host_survive leaves, before the agent's. With `is_alternate` they run on an alternate
/// stack, which each thread needs to have; with `is_nested` they do not block their signals.
void host_handle_faults(bool is_alternate, bool is_nested);

/// Raises a fatal signal on the calling thread and leaves its handler in one of these ways.
void host_survive(int way);

/// CLOCK_MONOTONIC in nanoseconds.
uint64_t host_now(void);

/// A thread that waits for `ns`, writes the time to a new file and exits with status 7. It allocates nothing then.
void host_exit_soon(uint64_t ns, const char *_Nonnull path);

/// Pins the calling thread to the CPU on which it runs.
bool host_pin(void);

/// Gives the calling thread a scheduling class: `fifo` or `rr` with a priority, `batch`, `idle`, or `nice` with a value. False
/// where that is not allowed.
bool host_schedule(const char *_Nonnull class, int number);

/// Sets Swift's hook for jobs, as tools for tests do; with `chains` it calls the hook that was set before.
void host_hook_jobs(bool chains);
void host_clear_jobs_hook(void);

/// Makes a copy of a program that runs with its owner's rights, whoever starts it.
bool host_make_setuid(const char *_Nonnull program);

/// Waits of a thread, and how many of them ended with EINTR.
typedef struct {
    uint64_t count, ended;
} host_waits;

/// Computes in bursts of random length, with a wait of 3 ms after each: nanosleep, epoll_wait and poll in turn.
host_waits host_work_in_bursts(uint64_t shortest_ns, uint64_t longest_ns, uint64_t for_ns);

/// Gives the calling thread an alternate stack of so many bytes more than the kernel's frame of a signal needs, above a
/// page that faults. False without memory.
bool host_use_small_alternate_stack(size_t beyond_minimum);

/// Starts the agent in `count` children by `start` while another thread of theirs sets a handler of a signal. Returns how many
/// of these handlers are not called by the signal afterwards.
int host_lost_handlers(int number, int count, void (*_Nonnull start)(void));

/// An old fault, for `start`: reads the action of the raced signal, replaces it, and passes on to what it has read.
void host_replace_handlers(void);

/// Runs a function on a coroutine's stack of 64 KiB in the heap.
void host_run_in_coroutine(void (*_Nonnull body)(void));

/// Sets the soft and hard limit of stacks to infinity and executes the program again.
void host_restart_without_stack_limit(char *_Nullable const *_Nonnull arguments);

/// Handles SIGSEGV on the interrupted stack, of which the handler needs 64 KiB, and gives the thread a small alternate one.
void host_handle_on_own_stack(void);
void host_fault_on_own_stack(void);

/// A filter under which any other system call than these ends the process (SECCOMP_RET_KILL_PROCESS). False where the
/// kernel has none.
bool host_allow_only(const int *_Nonnull calls, int count);

/// A handler of SIGSYS that emulates a system call by the result 4711, and a filter that refuses getpid(2) from now on.
void host_handle_refused_calls(void);
bool host_emulate_getpid(void);
pid_t host_emulated_getpid(void);

/// A system call that a handler of the agent's may make; NULL behind the last. host_emulate_handler_call traps it on the
/// calling thread from now on (SECCOMP_RET_TRAP).
const char *_Nullable host_handler_call(int index);
bool host_emulate_handler_call(int index);

/// Handles SIGSYS by refusing the call (EPERM), and SIGSEGV with all signals blocked, by siglongjmp.
void host_handle_all_blocked(void);
void host_recover_from_faults(int count);
/// Blocks SIGSYS on the calling thread, or unblocks it.
void host_block_refusals(bool is_blocked);

/// Uses the CPU for `ns` below a page of the thread's own stack that is not readable.
bool host_spin_below_guard_page(uint64_t ns);

/// A child whose reporter of a signal is installed before and after the agent's handler (`start`), so that each calls the
/// other. Returns how often the reporter was called when the signal was sent, or came from a fault, and the child's status.
/// A reporter that jumps leaves no frame of its own: its caller, as far as the stack shows, is the kernel.
int host_report_in_circle(int number, bool is_sent, bool jumps, void (*_Nonnull start)(void), int *_Nonnull status);

/// A fault, for `start`: passes each such signal on, even to the handler that it comes from.
void host_chain_without_end(void);

/// Blocks SIGPROF, sends it to the process `count` times and waits for it. Returns how many times it came.
int host_wait_for_profile_signals(int count);

/// Whether SIGPROF is ignored; host_ignore_profile_signals ignores it.
bool host_ignores_profile_signals(void);
void host_ignore_profile_signals(void);

/// Refuses fcntl's F_SETSIG with EPERM from now on.
bool host_refuse_marks(void);
int host_count_descriptors(void);

/// Closes all descriptors from 3 on, opens pipes on so many numbers, is stopped and continued, and returns how many bytes of
/// what was written into the pipes somebody else has read.
int host_lost_bytes_after_stop(int numbers);

/// Clears the flag by which a shared library (its bytes) stays loaded after dlclose.
void host_allow_unloading(void *_Nonnull image, size_t size);

/// Whether the handler of a signal, if there is one, is in memory that is mapped.
bool host_handler_is_mapped(int number);

/// A kind of descriptors that host_replace_descriptors can open; NULL behind the last.
const char *_Nullable host_descriptor_kind(int index);

/// Closes all descriptors from 3 on and opens 64 of this kind. False if it cannot open any.
bool host_replace_descriptors(const char *_Nonnull kind);

/// Closes standard input, output and error as the three bits say.
void host_close_standard(int closed);
/// Those of them, in three bits, that are open for longer than a moment.
int host_occupied_standard(int closed);
/// Three threads, which each open a file, move it above the standard numbers and close it, again and again.
void host_move_files(void);
/// Ends them.
void host_stop_moving_files(void);

/// How many of them are closed, written, armed or filled by now.
int host_touched_descriptors(void);

/// Opens so many files and closes them. Returns how many it could open.
int host_open_files(int count);

/// From now on, a thread of the agent keeps the dynamic linker's lock for so much longer whenever it lists images.
void host_keep_loader_longer(uint64_t ns);
/// Lists the images, loads a library and starts a thread.
void host_use_loader(void);

/// Makes standard error a pipe that is full and has no reader at work.
void host_fill_standard_error(void);
