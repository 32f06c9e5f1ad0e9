// A running thread copies its own stack, in a signal handler. See signal_copy.c for the protocol.
#pragma once
#include <sys/types.h>

#include "../Architecture/architecture.h"

typedef enum {
    SIGNAL_COPIED,
    SIGNAL_UNAVAILABLE,   // another sampler is at it, or there is no room for one more request
    SIGNAL_THREAD_ENDED,
    SIGNAL_TIMED_OUT,     // the thread was stopped in the middle of its answer
    SIGNAL_LEFT_OPEN,     // no answer in time: the request stays open, and its answer can be taken until it is ended
    SIGNAL_BLOCKED,       // the thread blocks what could be sent
} signal_result;

/// Makes the signals usable as `use` allows, once for the process. Returns 0 or an errno.
int stall_signal_copy_prepare(uint32_t stack_capacity, stall_signal_use use);
/// Whether one of the signals goes to our handler: the app may have taken them since.
bool stall_signal_copy_is_available(void);

/// Which request is made, by whom.
typedef struct {
    const stall_thread *_Nonnull thread;
    const void *_Nonnull owner;
    uint64_t deadline_ns;  ///< CLOCK_MONOTONIC
    uint64_t blocked;      ///< the signals that the thread blocks, signal 1 in bit 0
    bool knows_blocked;    ///< without: only the signal is sent that does no harm when it stays pending
} signal_question;

/// Asks a thread for its registers and stack. After SIGNAL_COPIED the copy is the caller's until it calls
/// stall_signal_copy_release, which wipes it. `answered_ns`: when the thread was there.
signal_result stall_signal_copy_request(
    const signal_question *_Nonnull question, stall_registers *_Nonnull registers, stall_stack_copy *_Nonnull copy,
    uint64_t *_Nonnull answered_ns);
void stall_signal_copy_release(void);

typedef struct signal_request signal_request;

/// The owner's request to `thread` that has stayed open, answered or not; NULL without one.
signal_request *_Nullable stall_signal_copy_open_request(const void *_Nonnull owner, pid_t thread);
bool stall_signal_copy_is_answered(const signal_request *_Nonnull request);
/// Whether it has been answered: then what it holds is the caller's until it ends the request. The thread has executed
/// nothing between the two instants, so that the stack is the one of each instant between them.
bool stall_signal_copy_answer(
    signal_request *_Nonnull request, stall_registers *_Nonnull registers, stall_stack_copy *_Nonnull copy,
    uint64_t *_Nonnull sent_ns, uint64_t *_Nonnull answered_ns);
/// Ends an open request; a late answer is then discarded. `is_blocked`: the thread has come to block signals, and must
/// not carry ours into the next program that it executes.
void stall_signal_copy_end(signal_request *_Nonnull request, bool is_blocked);
/// Whether the request's signal is among `blocked`.
bool stall_signal_copy_is_blocked(const signal_request *_Nonnull request, uint64_t blocked);
/// Ends all open requests of an owner.
void stall_signal_copy_end_all(const void *_Nonnull owner);
