// What the capture tests need from C: an independent unwinder to compare with, and code that Swift cannot write.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// The return addresses that libgcc's unwinder finds from the caller of this function outwards: element 0 lies in the
/// calling function, the last one in the thread's first function. Returns their number.
uint32_t testing_return_addresses(uint64_t *_Nonnull addresses, uint32_t capacity);
/// The start of the function that holds `address`, by the unwind tables; 0 when there is none.
uint64_t testing_function_start(uint64_t address);

/// Calls `body` from code that was made at run time, has a frame pointer and is in no image. False if memory may not be
/// made executable.
bool testing_call_from_generated_code(
    void (*_Nonnull body)(void *_Nonnull), void *_Nonnull context);

/// Connects to a server that never accepts, for `milliseconds`. -1 with errno EINPROGRESS, or EINTR when interrupted.
int testing_connect_to_full_backlog(int milliseconds);
/// Sleeps in a signal handler of the calling thread, on an alternate stack if asked. -1 when the sleep was interrupted.
int testing_sleep_in_handler(int on_alternate_stack, uint32_t microseconds);

/// Installs handlers of SIGPROF and SIGURG that count, as a profiler in the app would.
void testing_own_signal(void);
/// How many signals reached it.
int testing_owner_signal_count(void);

/// From now on the kernel refuses the process the system call `number` with EPERM. Returns 0 or an errno.
int testing_forbid_system_call(int number);
extern const int testing_process_vm_readv, testing_openat, testing_pipe2, testing_rt_tgsigqueueinfo;
/// Puts an empty directory over /proc, for this process alone. While it has one thread. 0, or the errno of a system that
/// does not let it.
int testing_hide_proc(void);
/// Overflows the stack of the calling thread. The SIGSEGV handler, on an alternate stack, sets `*reached` to 1 and then
/// sleeps or spins forever.
void testing_overflow_stack(int spins, volatile int *_Nonnull reached);

/// A part of CStackCapture that its own headers keep to themselves (code_x86_64.h).
unsigned stall_x86_64_instruction_length(const uint8_t *_Nonnull code, uint64_t length);
/// The path of the library that holds `symbol`; NULL when none does.
const char *_Nullable testing_library_of(const char *_Nonnull symbol);

/// Reads 2 GB of a file's hole in one system call, which does not check for signals; returns the number of bytes.
int64_t testing_long_system_call(void);
/// Waits in vfork for a child that sleeps so long. 0, or -1.
int testing_vfork(uint32_t microseconds);
/// With this the program has more thread-local variables than a small stack has room for.
int testing_use_large_thread_local(void);
