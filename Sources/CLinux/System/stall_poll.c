// The hooks with which CFRunLoop serves the main dispatch queue. Weak, because a program without Dispatch has neither.
#include "stall_poll.h"

#include <stddef.h>

extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

int stall_main_queue_descriptor(void) {
    if (!_dispatch_get_main_queue_handle_4CF || !_dispatch_main_queue_callback_4CF) return -1;
    return _dispatch_get_main_queue_handle_4CF();
}

void stall_main_queue_drain(void) { _dispatch_main_queue_callback_4CF(NULL); }
