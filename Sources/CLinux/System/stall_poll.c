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
    // libdispatch ends the process if it gets no descriptor here, so there has to be one for it. Another thread can
    // still take it in the microsecond between the two calls.
    const int spare = eventfd(0, EFD_CLOEXEC);
    if (spare < 0) return -1;
    close(spare);
    return _dispatch_get_main_queue_handle_4CF();
}

void stall_main_queue_drain(void) { _dispatch_main_queue_callback_4CF(NULL); }
