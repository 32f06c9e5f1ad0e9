// The hooks with which CFRunLoop serves the main dispatch queue. Weak, because a program without Dispatch has neither.
#include "stall_poll.h"

#include <errno.h>
#include <stddef.h>

extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

enum { STANDARD_COUNT = 3 };

// Where standard input or output is closed, a file that another library opens for us would get its number, and the app would
// read or print there. Returns how many numbers are taken for that time; -1 with errno.
static int take_standard(int *numbers) {
    for (int count = 0; count < STANDARD_COUNT; count++) {
        numbers[count] = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (numbers[count] < 0 && errno != EMFILE && errno != ENFILE) numbers[count] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (numbers[count] >= 0 && numbers[count] < STANDARD_COUNT) continue;
        const int saved = errno;
        if (numbers[count] >= 0) close(numbers[count]);
        errno = saved;
        return numbers[count] >= 0 ? count : -1 - count;
    }
    return STANDARD_COUNT;
}

static void release_standard(const int *numbers, int count) {
    const int saved = errno;
    for (int i = 0; i < count; i++) close(numbers[i]);
    errno = saved;
}

static int main_queue_descriptor(void) {
    // libdispatch ends the process if it gets no descriptor here, so there has to be one for it. Another thread can
    // still take it in the microsecond between the two calls.
    const int spare = eventfd(0, EFD_CLOEXEC);
    if (spare < 0) return -1;
    close(spare);
    const int handle = _dispatch_get_main_queue_handle_4CF();
    // Other code of the process has called this before, while that number was free.
    return handle >= 0 && handle < STANDARD_COUNT ? fcntl(handle, F_DUPFD_CLOEXEC, STANDARD_COUNT) : handle;
}

int stall_main_queue_descriptor(void) {
    if (!_dispatch_get_main_queue_handle_4CF || !_dispatch_main_queue_callback_4CF) {
        errno = ENOSYS;
        return -1;
    }
    int numbers[STANDARD_COUNT];
    const int count = take_standard(numbers);
    const int descriptor = count < 0 ? -1 : main_queue_descriptor();
    release_standard(numbers, count < 0 ? -1 - count : count);
    return descriptor;
}

void stall_main_queue_drain(void) { _dispatch_main_queue_callback_4CF(NULL); }
