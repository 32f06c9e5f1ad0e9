#define _GNU_SOURCE
// malloc and its family, in front of the C library's: counts by thread, and can be held.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host_safety.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static char counted[16];
static uint32_t is_counting;
static uint64_t allocations, frees;
// While it is 1, only the holder may proceed.
static uint32_t is_held;
static int32_t holder;

static void wait_for_heap(void) {
    if (__builtin_expect(!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE), 1)) return;
    if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == (int32_t)syscall(SYS_gettid)) return;
    int saved = errno;
    while (__atomic_load_n(&is_held, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &is_held, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

// A debugger's breakpoint shows who it was.
__attribute__((noinline)) void host_counted(void) { __asm__ volatile(""); }

static void count(uint64_t *counter) {
    if (__builtin_expect(!__atomic_load_n(&is_counting, __ATOMIC_ACQUIRE), 1)) return;
    int saved = errno;
    char name[16] = {0};
    syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
    errno = saved;
    if (strncmp(name, counted, sizeof counted) == 0) {
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        host_counted();
    }
}

// The sanitizers have a malloc of their own.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
void *malloc(size_t size) {
    count(&allocations);
    wait_for_heap();
    return __libc_malloc(size);
}
void *calloc(size_t number, size_t size) {
    count(&allocations);
    wait_for_heap();
    return __libc_calloc(number, size);
}
void *realloc(void *memory, size_t size) {
    count(&allocations);
    wait_for_heap();
    return __libc_realloc(memory, size);
}
void *memalign(size_t alignment, size_t size) {
    count(&allocations);
    wait_for_heap();
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
    if (!memory) return;
    count(&frees);
    wait_for_heap();
    __libc_free(memory);
}

#endif

// Here, because a program with file capabilities ignores the environment.
//
// Leaks: a wake-up word is never freed, because a loop may use it at any moment. Leaks of threads: a play may end while
// the agent still waits for one that it gave up on.
#if __has_feature(address_sanitizer)
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif
#if __has_feature(thread_sanitizer)
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }
#endif

void host_count_heap(const char *thread) {
    __atomic_store_n(&is_counting, 0, __ATOMIC_RELEASE);
    if (!thread) return;
    strncpy(counted, thread, sizeof counted - 1);
    allocations = frees = 0;
    __atomic_store_n(&is_counting, 1, __ATOMIC_RELEASE);
}
uint64_t host_heap_allocations(void) { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }
uint64_t host_heap_frees(void) { return __atomic_load_n(&frees, __ATOMIC_RELAXED); }

static void rest(uint64_t ns) {
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

void host_block_heap(uint64_t ns) {
    __atomic_store_n(&holder, (int32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    rest(ns);
    __atomic_store_n(&is_held, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, &is_held, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

// glibc: the arena begins with its lock. A freed chunk that is in no thread's cache is linked to the arena's list of
// such chunks, 96 bytes after it (2.36). Found before there are threads that could take the chunk.
static int *arena;

__attribute__((constructor)) static void find_arena(void) {
    void *chunk = __libc_malloc(5000), *fence = __libc_malloc(100);
    __libc_free(chunk);
    uintptr_t list = *(uintptr_t *)chunk;
    if (list > 4096 && *(int *)(list - 96) == 0) arena = (int *)(list - 96);
    __libc_free(fence);
}

bool host_hold_heap(uint64_t ns) {
    int expected = 0;
    if (!arena || !__atomic_compare_exchange_n(arena, &expected, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return false;
    rest(ns);
    __atomic_store_n(arena, 0, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, arena, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
    return true;
}
