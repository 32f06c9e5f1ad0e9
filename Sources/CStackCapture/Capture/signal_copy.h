// Makes a running thread copy its own stack in a signal handler. See signal_copy.c for the protocol.
#pragma once
#include <sys/types.h>

#include "../Architecture/architecture.h"
#include "stall_thread_files.h"

typedef enum {
    SIGNAL_COPIED,
    SIGNAL_UNAVAILABLE,   // another sampler is active, or no request is free
    SIGNAL_NOT_RUNNING,   // the thread has just begun to wait: no signal was sent
    SIGNAL_THREAD_ENDED,
    SIGNAL_TIMED_OUT,     // the thread was stopped while it answered
    SIGNAL_LEFT_OPEN,     // no answer in time: the request stays open, and its answer can be collected later
    SIGNAL_BLOCKED,       // the thread blocks all signals that may be sent, and has done so since it registered
} signal_result;

/// Installs the signal handlers as `use` allows, once per process. Returns 0 or an errno.
int stall_signal_copy_prepare(uint32_t stack_capacity, stall_signal_use use);
/// Whether one of the signals still has this handler: the app may have replaced it.
bool stall_signal_copy_is_available(void);

/// Parameters of a request.
typedef struct {
    const stall_thread *_Nonnull thread;
    stall_thread_files *_Nonnull files;  ///< of that thread
    const void *_Nonnull owner;
    uint64_t deadline_ns;  ///< CLOCK_MONOTONIC
    uint64_t blocked;      ///< its blocked signals, signal 1 in bit 0
    bool knows_blocked;    ///< if false, only the signal that is harmless when it stays pending is sent
} signal_parameters;

/// Requests a thread's registers and stack. After SIGNAL_COPIED the copy belongs to the caller until
/// stall_signal_copy_release, which wipes it. `answered_ns`: when the thread ran the handler.
signal_result stall_signal_copy_request(
    const signal_parameters *_Nonnull parameters, stall_registers *_Nonnull registers, stall_stack_copy *_Nonnull copy,
    uint64_t *_Nonnull answered_ns);
void stall_signal_copy_release(void);

typedef struct signal_request signal_request;

/// The owner's open request to `thread`, answered or not; NULL without one.
signal_request *_Nullable stall_signal_copy_open_request(const void *_Nonnull owner, pid_t thread);
bool stall_signal_copy_is_answered(const signal_request *_Nonnull request);
/// Whether it has been answered: then its content belongs to the caller until it ends the request. The thread has
/// executed nothing between the two instants, so the stack is valid for all of that time.
bool stall_signal_copy_answer(
    signal_request *_Nonnull request, stall_registers *_Nonnull registers, stall_stack_copy *_Nonnull copy,
    uint64_t *_Nonnull sent_ns, uint64_t *_Nonnull answered_ns);
/// Ends an open request; a late answer is then discarded. `is_blocked`: the thread blocks the signal by now, and must
/// not carry it into the next program that it executes.
void stall_signal_copy_end(signal_request *_Nonnull request, bool is_blocked);
/// Whether the thread blocked the signal when it was sent. It answers when it unblocks it, and runs on until then.
bool stall_signal_copy_is_deferred(const signal_request *_Nonnull request);
/// Whether the request's signal is among `blocked`.
bool stall_signal_copy_is_blocked(const signal_request *_Nonnull request, uint64_t blocked);
/// Ends all open requests of an owner.
void stall_signal_copy_end_all(const void *_Nonnull owner);
