// The hooks with which CFRunLoop serves the main dispatch queue. Weak, because a program without Dispatch has neither.
#include "stall_poll.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

enum { STANDARD_COUNT = 3, MOVE_RESTS = 100 };

// Another thread holds one of the numbers that are not ours for a moment: until it has moved its file above them, as the
// agent's threads do, or has closed it; it may wait for a CPU meanwhile. A standard file of the app's is one that a program
// it starts gets as well, or a terminal or /dev/null.
static bool is_moved_soon(const int *numbers, int count) {
    for (int number = 0; number < STANDARD_COUNT; number++) {
        bool is_ours = false;
        for (int i = 0; i < count; i++) is_ours |= numbers[i] == number;
        const int flags = is_ours ? 0 : fcntl(number, F_GETFD);
        struct stat file;
        if (flags < 0 || ((flags & FD_CLOEXEC) != 0 && (fstat(number, &file) != 0 || !S_ISCHR(file.st_mode)))) return true;
    }
    return false;
}

// Where standard input or output is closed, a file that another library opens for us would get its number, and the app would
// read or print there. Returns how many numbers are taken for that time; -1 - that number with errno.
static int take_standard(int *numbers) {
    int count = 0;
    for (int rests = 0; count < STANDARD_COUNT;) {
        int number = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (number < 0 && errno != EMFILE && errno != ENFILE) number = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (number < 0) return -1 - count;
        if (number < STANDARD_COUNT) {
            numbers[count++] = number;
            continue;
        }
        close(number);
        if (!is_moved_soon(numbers, count) || rests++ == MOVE_RESTS) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return count;
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
