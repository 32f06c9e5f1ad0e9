// Sites in C. Some have names that look like a library's, or equal one of libc's: they are still the app's.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "stall_sites.h"

#define SITE __attribute__((noinline))
extern int usleep(unsigned microseconds);

static volatile int kept;

static inline __attribute__((always_inline)) unsigned mixed(unsigned value) {
    for (int i = 0; i < 400; i++) value = value * 1664525u + 1013904223u + (value >> 7);
    return value;
}

// libdispatch exports this; its header needs blocks.
typedef long once_token;
extern void dispatch_once_f(once_token *token, void *context, void (*function)(void *));
static once_token token;
static void run_body(void *body) { ((site_body)body)(); }
SITE void c_read_once(site_body body) {
    dispatch_once_f(&token, (void *)body, run_body);
    kept++;
}
static pthread_once_t posix_token = PTHREAD_ONCE_INIT;
static site_body once_body;
static void run_once_body(void) { once_body(); }
SITE void c_read_pthread_once(site_body body) {
    once_body = body;
    pthread_once(&posix_token, run_once_body);
    kept++;
}

SITE void c_nap(unsigned microseconds) { usleep(microseconds); kept++; }
SITE int dispatch_order(unsigned microseconds) { usleep(microseconds); return ++kept; }
SITE int swift_parse_mt103(unsigned microseconds) { usleep(microseconds); return kept += 2; }
SITE int uuid_generate_batch(unsigned microseconds) { usleep(microseconds); return kept += 3; }
SITE int CFGLoadSettings(unsigned microseconds) { usleep(microseconds); return kept += 4; }
SITE int voucher_print(unsigned microseconds) { usleep(microseconds); return kept += 5; }
SITE int objc_export(unsigned microseconds) { usleep(microseconds); return kept += 6; }
SITE int icu_admit(unsigned microseconds) { usleep(microseconds); return kept += 7; }
SITE static int sync(unsigned microseconds) { usleep(microseconds); return kept += 8; }
int c_call_sync(unsigned microseconds) { return sync(microseconds) + 1; }
SITE static int transmit(const char *text, unsigned microseconds) { usleep(microseconds); return kept += (int)strlen(text); }
int c_call_transmit(unsigned microseconds) { return transmit("abc", microseconds) + 1; }

static int64_t sort_end;
SITE static int compare_slowly(const void *left, const void *right) {
    while (site_cpu() < sort_end) kept += (int)mixed((unsigned)kept);
    return *(const int *)left - *(const int *)right;
}
int c_sort(int64_t end) {
    int numbers[] = {4, 2, 8, 1};
    sort_end = end;
    qsort(numbers, 4, sizeof *numbers, compare_slowly);
    return numbers[0];
}
SITE static int crunch(int64_t end) {
    while (site_cpu() < end) kept += (int)mixed((unsigned)kept);
    return kept;
}
int c_call_pointer(int64_t end) {
    int (*volatile call)(int64_t) = crunch;
    return call(end) + 1;
}
SITE int c_variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    int sum = 0;
    for (int i = 0; i < count; i++) sum += va_arg(list, int);
    va_end(list);
    usleep((unsigned)sum);
    return kept += sum;
}
SITE int c_recurse(int depth, unsigned microseconds) {
    if (depth == 0) { usleep(microseconds); return kept; }
    return c_recurse(depth - 1, microseconds) + 1;
}
void *c_new_mutex(void) {
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    pthread_mutex_init(mutex, NULL);
    pthread_mutex_lock(mutex);
    return mutex;
}
SITE int c_mutex(void *mutex) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return ++kept;
}
void c_mutex_unlock(void *mutex) { pthread_mutex_unlock(mutex); }
SITE int c_switch(int64_t end) {
    unsigned value = (unsigned)kept;
    while (site_cpu() < end) {
        switch (value & 3) {
        case 0: value = mixed(value) + 1; break;
        case 1: value = mixed(value) ^ 7; break;
        case 2: value = mixed(value) * 3; break;
        default: value = mixed(value); break;
        }
    }
    return kept += (int)value;
}
static jmp_buf back;
SITE int c_longjmp(int64_t end) {
    while (site_cpu() < end) {
        if (setjmp(back) == 0) {
            kept += (int)mixed((unsigned)kept);
            longjmp(back, 1);
        }
    }
    return kept;
}
SITE int c_strings(int64_t end) {
    char text[4096];
    while (site_cpu() < end) {
        memset(text, 'a', sizeof text - 1);
        text[sizeof text - 1] = 0;
        for (int i = 0; i < 50; i++) kept += (int)strlen(text) + (strstr(text, "b") != NULL);
    }
    return kept;
}
#define NAP_TWICE(time) do { usleep((time) / 2); usleep((time) / 2); } while (0)
SITE int c_nap_in_macro(unsigned microseconds) { NAP_TWICE(microseconds); return ++kept; }
