// Calls that look like those that block. Each prepares what it needs in its first play, which plants_open makes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "Plants/planting.h"

static char bytes[256];

// MARK: Time

INNOCENT(dlopen_program) { NEED(dlopen(NULL, RTLD_LAZY)); }
INNOCENT(dlopen_loaded) { NEED(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)); }
INNOCENT(clock_gettime) { clock_gettime(CLOCK_MONOTONIC, &(struct timespec){0}); }
INNOCENT(nanosleep_zero) { nanosleep(&(struct timespec){0}, NULL); }
INNOCENT(clock_nanosleep_past) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){0, 1}, NULL);
}
INNOCENT(poll_zero) { poll(NULL, 0, 0); }
INNOCENT(select_zero) { select(0, NULL, NULL, NULL, &(struct timeval){0}); }
INNOCENT(epoll_wait_zero) {
    static int set = -1;
    if (set < 0) set = epoll_create1(EPOLL_CLOEXEC);
    epoll_wait(set, &(struct epoll_event){0}, 1, 0);
}

// MARK: Descriptors

static int nonblocking_pipe(int end) {
    static int ends[2] = {-1, -1};
    if (ends[0] < 0) NEED(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    return ends[end];
}
static int socket_end(void) {
    static int ends[2] = {-1, -1};
    if (ends[0] < 0) NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return ends[0];
}
static int event(void) {
    static int file = -1;
    if (file < 0) file = eventfd(0, EFD_CLOEXEC);
    return file;
}
static int device(const char *path, int *file) {
    if (*file < 0) *file = open(path, O_RDWR | O_CLOEXEC);
    return *file;
}

INNOCENT(read_nonblocking) {
    NEED(write(nonblocking_pipe(1), bytes, 1) == 1);
    NEED(read(nonblocking_pipe(0), bytes, sizeof bytes) == 1);
}
INNOCENT(read_nonblocking_empty) { NEED(read(nonblocking_pipe(0), bytes, 1) == -1); }
INNOCENT(read_event_ready) {
    uint64_t value = 1;
    NEED(write(event(), &value, sizeof value) == sizeof value);
    NEED(read(event(), &value, sizeof value) == sizeof value);
}
INNOCENT(read_timer_nonblocking) {
    static int timer = -1;
    if (timer < 0) timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    NEED(read(timer, bytes, 8) == -1);
}
INNOCENT(write_null) {
    static int file = -1;
    NEED(write(device("/dev/null", &file), bytes, sizeof bytes) == sizeof bytes);
}
INNOCENT(read_zeros) {
    static int file = -1;
    NEED(read(device("/dev/zero", &file), bytes, sizeof bytes) == sizeof bytes);
}
INNOCENT(write_memory_file) {
    static int file = -1;
    if (file < 0) file = memfd_create("innocent", MFD_CLOEXEC);
    NEED(pwrite(file, bytes, sizeof bytes, 0) == sizeof bytes);
    NEED(pread(file, bytes, sizeof bytes, 0) == sizeof bytes);
}
INNOCENT(recv_dontwait) { NEED(recv(socket_end(), bytes, 1, MSG_DONTWAIT) == -1); }
INNOCENT(accept_nonblocking) {
    static int listener = -1;
    if (listener < 0) {
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        NEED(listen(listener, 1) == 0);
    }
    NEED(accept(listener, NULL, NULL) == -1);
}
INNOCENT(fcntl) { NEED(fcntl(socket_end(), F_GETFL) >= 0); }

// MARK: Files

INNOCENT(stat_cached) { NEED(stat("/", &(struct stat){0}) == 0); }
INNOCENT(access_cached) { NEED(access("/", R_OK) == 0); }
INNOCENT(stat_proc) { NEED(stat("/proc/self/status", &(struct stat){0}) == 0); }
INNOCENT(readlink_proc) { NEED(readlink("/proc/self/exe", bytes, sizeof bytes) > 0); }
INNOCENT(access_sys) { access("/sys/kernel/mm", R_OK); }
INNOCENT(open_proc) {
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    NEED(file >= 0 && close(file) == 0);
}
INNOCENT(open_cached) {
    const int file = open(plants_path("file"), O_RDONLY | O_CLOEXEC);
    NEED(file >= 0);
    close(file);
}
INNOCENT(open_missing) { NEED(open(plants_path("missing"), O_RDONLY | O_CLOEXEC) == -1); }
INNOCENT(read_proc) {
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    NEED(read(file, bytes, sizeof bytes) > 0);
    close(file);
}
INNOCENT(fwrite_buffered) {
    static FILE *stream;
    static size_t count;
    // Into a stream on a descriptor that would be reported, as long as the buffer has room.
    if (!stream || count + 8 > BUFSIZ / 2) {
        count = 0;
        if (!stream) NEED(stream = fdopen(dup(plants_file), "r+"));
        __fpurge(stream);
    }
    count += fwrite("innocent", 1, 8, stream);
}
INNOCENT(fread_buffered) {
    static FILE *stream;
    if (!stream) NEED(stream = fmemopen(bytes, sizeof bytes, "r"));
    rewind(stream);
    NEED(fread(bytes, 1, 1, stream) == 1);
}

// MARK: Threads

INNOCENT(mutex_free) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    NEED(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
}
INNOCENT(mutex_recursive) {
    static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    NEED(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0);
    NEED(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
}
INNOCENT(rwlock_free) {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    NEED(pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_rdlock(&lock) == 0);
    NEED(pthread_rwlock_unlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
    NEED(pthread_rwlock_wrlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
}
INNOCENT(spin_free) {
    static pthread_spinlock_t lock;
    static bool is_made;
    if (!is_made) NEED(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
    is_made = true;
    NEED(pthread_spin_lock(&lock) == 0 && pthread_spin_unlock(&lock) == 0);
}
INNOCENT(mtx_free) {
    static mtx_t mutex;
    static bool is_made;
    if (!is_made) NEED(mtx_init(&mutex, mtx_plain) == thrd_success);
    is_made = true;
    NEED(mtx_lock(&mutex) == thrd_success && mtx_unlock(&mutex) == thrd_success);
}
INNOCENT(semaphore_free) {
    static sem_t semaphore;
    NEED(sem_post(&semaphore) == 0 && sem_wait(&semaphore) == 0);
}
INNOCENT(stream_free) {
    flockfile(stderr);
    funlockfile(stderr);
}
INNOCENT(cond_signal) {
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    NEED(pthread_cond_signal(&condition) == 0);
}
INNOCENT(futex_changed) {
    static uint32_t word = 1;
    NEED(syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, NULL, NULL, 0) == -1);
}
INNOCENT(futex_wake) {
    static uint32_t word;
    NEED(syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0) == 0);
}

// MARK: Others

INNOCENT(memcpy) {
    char copy[sizeof bytes];
    memcpy(copy, bytes, sizeof bytes);
    __asm__ volatile("" : : "r"(copy) : "memory");
}
INNOCENT(malloc) { free(malloc(64)); }
INNOCENT(waitpid_nohang) { waitpid(-1, NULL, WNOHANG); }
// The last one may have been reaped by waitpid_nohang.
static id_t ended_child(void) {
    static pid_t child;
    siginfo_t info = {0};
    if (child == 0 || waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) < 0) child = fork();
    NEED(child >= 0);
    if (child == 0) _exit(0);
    while (info.si_pid == 0) NEED(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    return (id_t)child;
}
INNOCENT(waitid_ended) { NEED(waitid(P_PID, ended_child(), &(siginfo_t){0}, WEXITED | WNOWAIT) == 0); }
INNOCENT(wait_without_child) { NEED(waitpid(getpid(), NULL, 0) == -1); }
INNOCENT(getaddrinfo_number) {
    struct addrinfo *found;
    NEED(getaddrinfo("127.0.0.1", "80", &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found) == 0);
    freeaddrinfo(found);
}
INNOCENT(dlsym) { NEED(dlsym(RTLD_DEFAULT, "malloc")); }
INNOCENT(getpid) { getpid(); }

#define ENTRY(name) {#name, innocent_##name}
static const innocent innocents[] = {
    ENTRY(clock_gettime),     ENTRY(nanosleep_zero),     ENTRY(clock_nanosleep_past), ENTRY(poll_zero),
    ENTRY(select_zero),       ENTRY(epoll_wait_zero),    ENTRY(read_nonblocking),     ENTRY(read_nonblocking_empty),
    ENTRY(read_event_ready),  ENTRY(read_timer_nonblocking), ENTRY(write_null),       ENTRY(read_zeros),
    ENTRY(write_memory_file), ENTRY(recv_dontwait),      ENTRY(accept_nonblocking),   ENTRY(fcntl),
    ENTRY(stat_cached),       ENTRY(access_cached),      ENTRY(open_cached),          ENTRY(open_missing),
    ENTRY(read_proc),         ENTRY(fwrite_buffered),    ENTRY(fread_buffered),       ENTRY(mutex_free),
    ENTRY(mutex_recursive),   ENTRY(rwlock_free),        ENTRY(spin_free),            ENTRY(mtx_free),
    ENTRY(semaphore_free),    ENTRY(stream_free),        ENTRY(cond_signal),          ENTRY(futex_changed),
    ENTRY(futex_wake),        ENTRY(memcpy),             ENTRY(malloc),               ENTRY(waitpid_nohang),
    ENTRY(getaddrinfo_number), ENTRY(dlsym),             ENTRY(getpid),               ENTRY(stat_proc),
    ENTRY(readlink_proc),     ENTRY(access_sys),         ENTRY(open_proc),
    ENTRY(waitid_ended),      ENTRY(wait_without_child), ENTRY(dlopen_program),      ENTRY(dlopen_loaded),
};

size_t innocent_count(void) { return COUNT_OF(innocents); }
const innocent *innocent_at(size_t index) { return &innocents[index]; }
