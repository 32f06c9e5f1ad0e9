// Swift's crash reporter (SWIFT_BACKTRACE) suspends every other thread while it reads the stacks: with SIGUSR1, SIGUSR2
// or SIGPROF, the first that the thread does not block. The agent's threads block all three, and the reporter printed a
// complaint about each of them. From the start of its handler to the end of it they let SIGPROF through, and no longer:
// the app's handler of that signal would run on them, or a signal that the app waits for elsewhere would end the process.
#pragma once
#include <signal.h>
#include <stdbool.h>

/// Whether the action of a fatal signal is Swift's crash reporter, by its form: it blocks all signals but the seven that
/// it handles.
__attribute__((visibility("hidden"))) bool stall_suspends_threads(const struct sigaction *_Nonnull action);

/// Asks the agent's threads by SIGSYS to let SIGPROF through, or to block it again, and waits until they do: 500 ms at
/// most. From the handler of a fatal signal, or from one of these threads; the others are asked only where `handler` is
/// SIGSYS's own at the moment.
__attribute__((visibility("hidden"))) void stall_set_suspendable(
    bool is_suspendable, void (*_Nonnull handler)(int, siginfo_t *_Nullable, void *_Nullable));

/// In the handler of SIGSYS: whether the signal is such a request. It is carried out then, as of the handler's return.
__attribute__((visibility("hidden"))) bool stall_answers_request(
    int number, const siginfo_t *_Nonnull info, void *_Nonnull context);
