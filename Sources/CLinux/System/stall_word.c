#include "stall_word.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void stall_word_wait(const void *word, uint32_t value) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = saved;
}

void stall_word_wake_one(const void *word) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

void stall_word_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void stall_word_nap(void) {
    const struct timespec length = {.tv_sec = 0, .tv_nsec = 50000};
    const int saved = errno;
    // `nanosleep` would end a thread that was cancelled, within its fork.
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &length, NULL);
    errno = saved;
}
