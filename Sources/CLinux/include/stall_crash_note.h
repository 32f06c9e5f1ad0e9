// Notes that a thread of this process handles a fatal signal: the process probably ends, and what stands still from now
// on is no stall. Many faults are survived, though: the app's handler returns, or leaves by siglongjmp, longjmp,
// setcontext or a C++ exception, and nothing announces that. So the note holds only while its thread is seen to be in
// its handler.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// How long other loops may still run after a fault that ends the process: a crash reporter stops them.
#define STALL_CRASH_SLACK_NS UINT64_C(500000000)
/// How long a thread that cannot be located counts as being in its handler.
#define STALL_CRASH_DOUBT_NS UINT64_C(2000000000)
/// How long the process counts as ending after a handler of SIGABRT has returned.
#define STALL_ABORT_DOUBT_NS UINT64_C(50000000)
/// How long a handler may take; a thread that stands still for longer is stalled.
#define STALL_CRASH_LIMIT_NS UINT64_C(60000000000)

/// Installs the handlers of fatal signals, which note the crash in the process record and pass the signal on. Once per
/// process; any thread.
void stall_crash_note_prepare(void);
/// Whether the app has a handler of SIGSYS, by which it may emulate system calls: none may be made in a signal handler on a
/// thread that blocks SIGSYS, since the kernel ends the process then. The handlers of fatal signals know what was found
/// last. Not in a handler.
bool stall_calls_may_be_emulated(void);
/// Whether a thread handles a fatal signal, and a loop that last made progress at `progress_ns` (CLOCK_MONOTONIC) may have
/// been stopped by that. Removes the note, and the ending from the process record, if its thread has left its handler.
/// Neither allocates nor locks; a few system calls while there is a note.
bool stall_crash_note_covers(uint64_t progress_ns);
