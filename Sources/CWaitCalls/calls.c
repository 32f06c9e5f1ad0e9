// Interposed wait functions of libc. door.c of CEpollDoor implements what they do besides calling libc's, in other
// objects CPreloadDoor or CStallWaits.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../CEpollDoor/door.h"
#include "stall_wait_calls.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#define PLACE ((door_place){(uintptr_t)__builtin_frame_address(0), CALLER})
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))
// The kernel's signal sets are shorter than libc's.
enum { KERNEL_SET_BYTES = 8 };

typedef int (*epoll_wait_call)(int, struct epoll_event *, int, int);
typedef int (*epoll_pwait_call)(int, struct epoll_event *, int, int, const sigset_t *);
typedef int (*epoll_pwait2_call)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
typedef int (*poll_call)(struct pollfd *, nfds_t, int);
typedef int (*ppoll_call)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int (*poll_chk_call)(struct pollfd *, nfds_t, int, size_t);
typedef int (*ppoll_chk_call)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
typedef int (*select_call)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
typedef int (*pselect_call)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);

// A sanitizer interposes some of these itself; its functions call libc's.
#define WEAK __attribute__((weak))
extern int __interceptor_epoll_wait(int, struct epoll_event *, int, int) WEAK;
extern int __interceptor_epoll_pwait(int, struct epoll_event *, int, int, const sigset_t *) WEAK;
extern int __interceptor_poll(struct pollfd *, nfds_t, int) WEAK;
extern int __interceptor_ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) WEAK;

static struct {
    epoll_wait_call epoll_wait;
    epoll_pwait_call epoll_pwait;
    epoll_pwait2_call epoll_pwait2;
    poll_call poll;
    ppoll_call ppoll;
    poll_chk_call poll_chk;
    ppoll_chk_call ppoll_chk;
    select_call select;
    pselect_call pselect;
} next;

// A static program has no next definition: then the system call is made directly. It must be a cancellation point, as
// libc's is: the thread may be cancelled in the call at any moment, and nothing is held there.
static int call_kernel(long number, long a, long b, long c, long d, long e, long f) {
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    int result = (int)syscall(number, a, b, c, d, e, f);
    int saved = errno;
    pthread_setcanceltype(before, NULL);
    errno = saved;
    return result;
}
#define POINTER(pointer) ((long)(uintptr_t)(pointer))

static int kernel_epoll_pwait(int set, struct epoll_event *events, int count, int timeout, const sigset_t *mask) {
    return call_kernel(SYS_epoll_pwait, set, POINTER(events), count, timeout, POINTER(mask), KERNEL_SET_BYTES);
}
static int kernel_epoll_wait(int set, struct epoll_event *events, int count, int timeout) {
    return kernel_epoll_pwait(set, events, count, timeout, NULL);
}
static int kernel_epoll_pwait2(
    int set, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *mask) {
    return call_kernel(
        SYS_epoll_pwait2, set, POINTER(events), count, POINTER(timeout), POINTER(mask), KERNEL_SET_BYTES);
}
static int kernel_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    struct timespec left = timeout ? *timeout : (struct timespec){0};  // the kernel writes the remaining time
    return call_kernel(
        SYS_ppoll, POINTER(files), (long)count, POINTER(timeout ? &left : NULL), POINTER(mask), KERNEL_SET_BYTES, 0);
}
static int kernel_poll(struct pollfd *files, nfds_t count, int timeout) {
    struct timespec limit = {timeout / 1000, timeout % 1000 * 1000000L};
    return kernel_ppoll(files, count, timeout < 0 ? NULL : &limit, NULL);
}
// As libc's functions, if a program's array is smaller than it says.
static void check_size(nfds_t count, size_t bytes) {
    if (bytes / sizeof(struct pollfd) < count) abort();
}
static int kernel_poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes) {
    check_size(count, bytes);
    return kernel_poll(files, count, timeout);
}
static int kernel_ppoll_chk(
    struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes) {
    check_size(count, bytes);
    return kernel_ppoll(files, count, timeout, mask);
}
static int kernel_pselect(
    int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask) {
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    struct {
        const sigset_t *mask;
        size_t size;
    } set = {mask, KERNEL_SET_BYTES};
    return call_kernel(
        SYS_pselect6, count, POINTER(in), POINTER(out), POINTER(other), POINTER(timeout ? &left : NULL), POINTER(&set));
}
static int kernel_select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout) {
    struct timespec left = {0};
    if (timeout) {
        // libc accepts microseconds of more than a second; the kernel's call does not.
        const time_t seconds = timeout->tv_usec / 1000000;
        if (timeout->tv_sec < 0 || timeout->tv_usec < 0) {
            errno = EINVAL;
            return -1;
        }
        left = (struct timespec){timeout->tv_sec, timeout->tv_usec % 1000000 * 1000L};
        if (__builtin_add_overflow(left.tv_sec, seconds, &left.tv_sec)) left = (struct timespec){INT64_MAX, 999999999};
    }
    int result = call_kernel(
        SYS_pselect6, count, POINTER(in), POINTER(out), POINTER(other), POINTER(timeout ? &left : NULL), 0);
    if (timeout) *timeout = (struct timeval){left.tv_sec, left.tv_nsec / 1000};
    return result;
}

static void *find_next(const char *name, void *interceptor, void *kernel) {
#ifdef STALL_CALLS_ARE_SHARED
    // Between a program with a sanitizer and libc: the sanitizer has called this object.
    interceptor = NULL;
#endif
    void *found = stall_wait_calls_behind ? stall_wait_calls_behind(name) : NULL;
    if (!found) found = interceptor ? interceptor : dlsym(RTLD_NEXT, name);
    return found ? found : kernel;
}

__attribute__((constructor)) static void find_all(void) {
#define FIND_AS(name, symbol, interceptor) \
    __atomic_store_n( \
        (void **)&next.name, find_next(symbol, (void *)interceptor, (void *)kernel_##name), __ATOMIC_RELEASE)
#define FIND(name, interceptor) FIND_AS(name, #name, interceptor)
    FIND(epoll_wait, __interceptor_epoll_wait);
    FIND(epoll_pwait, __interceptor_epoll_pwait);
    FIND(epoll_pwait2, NULL);
    FIND(poll, __interceptor_poll);
    FIND(ppoll, __interceptor_ppoll);
    FIND_AS(poll_chk, "__poll_chk", NULL);
    FIND_AS(ppoll_chk, "__ppoll_chk", NULL);
    FIND(select, NULL);
    FIND(pselect, NULL);
#undef FIND
#undef FIND_AS
}

// A library's constructor may wait before this program's constructor runs.
#define NEXT(name) (__atomic_load_n(&next.name, __ATOMIC_ACQUIRE) ? next.name : (find_all(), next.name))

static bool is_zero(const struct timespec *timeout) { return timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0; }

static inline stall_door *own_door(void) {
    stall_door *door = door_of_thread;
    return __builtin_expect(door == NULL, 1) && door_find ? door_find() : door;
}

// MARK: The arrays

// Programs that test their libc pass arrays that are none, and expect an error. So an array is read through the kernel,
// and by as many elements as are of use, until it has accepted the same one.
enum { ACCEPTED_COUNT = 4 };
static __thread struct {
    const void *at;
    size_t size;
} accepted[ACCEPTED_COUNT] __attribute__((tls_model("initial-exec")));

static unsigned accepted_index(const void *at) {
    return (unsigned)((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 62);
}

static bool is_accepted(const void *at, size_t size) {
    const unsigned index = accepted_index(at);
    return accepted[index].at == at && accepted[index].size >= size;
}

static void accept_array(const void *at, size_t size) {
    const unsigned index = accepted_index(at);
    accepted[index].at = at;
    accepted[index].size = size;
}

static bool read_array(void *copy, const void *at, size_t size) {
    const int saved = errno;
    const struct iovec own = {copy, size}, array = {(void *)(uintptr_t)at, size};
    const ssize_t count = process_vm_readv(getpid(), &own, 1, &array, 1, 0);
    const bool is_refused = count < 0 && errno != EFAULT;
    errno = saved;
    if (is_refused) memcpy(copy, at, size);  // a sandbox forbids the call
    return is_refused || count == (ssize_t)size;
}

enum { SAMPLE = 2 * DOOR_ANCHORS };

// The descriptors of a poll, or the first of them; sets `count` to how many there are.
static const int *find_polled(const struct pollfd *files, size_t *count, struct pollfd *sample) {
    if (*count == 0 || *count > UINT32_MAX) {
        *count = 0;
        return NULL;
    }
    if (is_accepted(files, *count * sizeof *files)) return &files->fd;
    *count = *count < SAMPLE ? *count : SAMPLE;
    if (!read_array(sample, files, *count * sizeof *files)) *count = 0;
    return &sample->fd;
}

#define POLL(is_instant, call)                                                                           \
    stall_door *door = own_door();                                                                       \
    if (__builtin_expect(door == NULL, 1)) return call;                                                  \
    struct pollfd sample[SAMPLE];                                                                        \
    size_t found = count;                                                                                \
    const bool instant = (is_instant);                                                                   \
    const int *polled = find_polled(files, &found, sample);                                              \
    const bool rests = door_enter(                                                                       \
        door, (door_identity){DOOR_POLL, CALLER}, polled, found, sizeof *files, instant, PLACE);         \
    const int result = call;                                                                             \
    if (result >= 0) accept_array(files, count * sizeof *files);                                         \
    if (rests) door_leave(door, instant);                                                                \
    return result

// Reads the part of a set that has `count` members, into a copy.
static const fd_set *read_set(const fd_set *set, size_t size, fd_set *copy) {
    if (!set || is_accepted(set, size)) return set;
    memset(copy, 0, sizeof *copy);
    return read_array(copy, set, size) ? copy : NULL;
}

// The first descriptors of a select. Of sets that are larger than fd_set only that part is read.
static size_t list_members(int count, const fd_set *in, const fd_set *out, const fd_set *other, int *members) {
    size_t found = 0;
    fd_set copies[3];
    if (count <= 0 || !own_door()) return 0;
    if (count > FD_SETSIZE) count = FD_SETSIZE;
    const size_t size = ((size_t)count + 63) / 64 * 8;
    in = read_set(in, size, &copies[0]);
    out = read_set(out, size, &copies[1]);
    other = read_set(other, size, &copies[2]);
    for (int i = 0; i < count && found < DOOR_ANCHORS; i++) {
        if ((in && FD_ISSET(i, in)) || (out && FD_ISSET(i, out)) || (other && FD_ISSET(i, other))) members[found++] = i;
    }
    return found;
}

static int accept_sets(int result, int count, const fd_set *in, const fd_set *out, const fd_set *other) {
    if (result < 0 || count <= 0) return result;
    const size_t size = ((size_t)(count < FD_SETSIZE ? count : FD_SETSIZE) + 63) / 64 * 8;
    const fd_set *sets[] = {in, out, other};
    for (int i = 0; i < 3; i++) {
        if (sets[i]) accept_array(sets[i], size);
    }
    return result;
}

#define WAIT(identity, descriptors, count, is_instant, call)                                                     \
    stall_door *door = own_door();                                                                               \
    if (__builtin_expect(door == NULL, 1)) return call;                                                          \
    const bool instant = (is_instant);                                                                           \
    if (!door_enter(door, (door_identity)identity, descriptors, count, sizeof(int), instant, PLACE)) return call; \
    const int result = call;                                                                                     \
    door_leave(door, instant);                                                                                   \
    return result

#define EPOLL(set) {DOOR_EPOLL, (uint64_t)(set)}
#define SELECT {DOOR_SELECT, CALLER}

int epoll_wait(int set, struct epoll_event *events, int count, int timeout) {
    WAIT(EPOLL(set), NULL, 0, timeout == 0, NEXT(epoll_wait)(set, events, count, timeout));
}

int epoll_pwait(int set, struct epoll_event *events, int count, int timeout, const sigset_t *mask) {
    WAIT(EPOLL(set), NULL, 0, timeout == 0, NEXT(epoll_pwait)(set, events, count, timeout, mask));
}

int epoll_pwait2(
    int set, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *mask) {
    WAIT(EPOLL(set), NULL, 0, is_zero(timeout), NEXT(epoll_pwait2)(set, events, count, timeout, mask));
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
    POLL(timeout == 0, NEXT(poll)(files, count, timeout));
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    POLL(is_zero(timeout), NEXT(ppoll)(files, count, timeout, mask));
}

// Programs that are compiled with _FORTIFY_SOURCE call these where the size of their array is known.
int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes) {
    POLL(timeout == 0, NEXT(poll_chk)(files, count, timeout, bytes));
}

int __ppoll_chk(
    struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes) {
    POLL(is_zero(timeout), NEXT(ppoll_chk)(files, count, timeout, mask, bytes));
}

int select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout) {
    int members[DOOR_ANCHORS];
    const size_t found = list_members(count, in, out, other, members);
    WAIT(
        SELECT, members, found, timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0,
        accept_sets(NEXT(select)(count, in, out, other, timeout), count, in, out, other));
}

int pselect(
    int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask) {
    int members[DOOR_ANCHORS];
    const size_t found = list_members(count, in, out, other, members);
    WAIT(
        SELECT, members, found, is_zero(timeout),
        accept_sets(NEXT(pselect)(count, in, out, other, timeout, mask), count, in, out, other));
}
