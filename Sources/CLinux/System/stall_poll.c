// The hooks with which CFRunLoop serves the main dispatch queue. Weak, because a program without Dispatch has neither.
#include "stall_poll.h"

#include <errno.h>
#include <stddef.h>

extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

int stall_main_queue_descriptor(void) {
    if (!_dispatch_get_main_queue_handle_4CF || !_dispatch_main_queue_callback_4CF) {
        errno = ENOSYS;
        return -1;
    }
    // libdispatch ends the process if it gets no descriptor here, so there has to be one for it, above the standard ones:
    // they are occupied meanwhile. Another thread can still take it in the microsecond between the two calls.
    enum { LOW = STDERR_FILENO + 1 };
    int low[LOW], count = 0, spare;
    while ((spare = eventfd(0, EFD_CLOEXEC)) >= 0 && spare < LOW && count < LOW) low[count++] = spare;
    const int error = errno;
    if (spare >= 0) close(spare);
    const int handle = spare >= 0 ? _dispatch_get_main_queue_handle_4CF() : -1;
    while (count > 0) close(low[--count]);
    if (spare < 0) errno = error;
    return handle;
}

void stall_main_queue_drain(void) { _dispatch_main_queue_callback_4CF(NULL); }
