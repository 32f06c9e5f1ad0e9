// The hooks with which CFRunLoop serves the main dispatch queue. Weak, because a program without Dispatch has neither.
#include "stall_poll.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "stall_descriptors.h"

extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

enum { STANDARD_COUNT = 3, MOVE_RESTS = 100, SAME_RESTS = 20 };

// The closed standard numbers that are taken for a while, each with its ticket: the app may put a file of its own there.
typedef struct {
    int numbers[STANDARD_COUNT];
    uint32_t tickets[STANDARD_COUNT];
    int count;
} taken_numbers;

// The files that other threads have at standard numbers, by their inodes.
typedef struct {
    bool is_held;
    uint64_t files[STANDARD_COUNT];  ///< 0: nothing that is to be moved
} held_numbers;

// Another thread holds one of the numbers that are not ours for a moment: until it has moved its file above them, as the
// agent's threads do, or has closed it; it may wait for a CPU meanwhile. A standard file of the app's is one that a program
// it starts gets as well, or a terminal or /dev/null.
static held_numbers find_held(const taken_numbers *taken) {
    held_numbers held = {0};
    for (int number = 0; number < STANDARD_COUNT; number++) {
        bool is_ours = false;
        for (int i = 0; i < taken->count; i++) is_ours |= taken->numbers[i] == number;
        const int flags = is_ours ? 0 : fcntl(number, F_GETFD);
        struct stat file = {0};
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) continue;
        if (flags >= 0 && fstat(number, &file) == 0 && S_ISCHR(file.st_mode)) continue;
        held.is_held = true;
        held.files[number] = file.st_ino + 1;
    }
    return held;
}

// Where standard input or output is closed, a file that another library opens for us would get its number, and the app would
// read or print there. False, with errno, if no file can be opened.
static bool take_standard(taken_numbers *taken) {
    held_numbers before = {0};
    for (int rests = 0, same = 0; taken->count < STANDARD_COUNT;) {
        int number = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (number < 0 && errno != EMFILE && errno != ENFILE) number = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (number < 0) return false;
        if (number < STANDARD_COUNT) {
            taken->tickets[taken->count] = stall_descriptor_own_one(number);
            taken->numbers[taken->count++] = number;
            continue;
        }
        close(number);
        const held_numbers held = find_held(taken);
        // A file that stays is the app's own.
        same = memcmp(held.files, before.files, sizeof held.files) == 0 ? same + 1 : 0;
        before = held;
        if (!held.is_held || same == SAME_RESTS || rests++ == MOVE_RESTS) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

static void release_standard(const taken_numbers *taken) {
    const int saved = errno;
    for (int i = 0; i < taken->count; i++) stall_descriptor_close_one(taken->numbers[i], taken->tickets[i]);
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
    taken_numbers taken = {0};
    const int descriptor = take_standard(&taken) ? main_queue_descriptor() : -1;
    release_standard(&taken);
    return descriptor;
}

void stall_main_queue_drain(void) { _dispatch_main_queue_callback_4CF(NULL); }
