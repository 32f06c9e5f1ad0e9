// What is waited for in calls that look like file I/O: leases, terminals, notifications, rings. The sites and plants wait
// themselves; here is what Swift's Glibc lacks.
#define _GNU_SOURCE
#include "stall_sites.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

bool site_terminal(int *ends) {
    char name[64];
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0 || ptsname_r(ends[0], name, sizeof name) != 0)
        return false;
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios raw;
    if (ends[1] < 0 || tcgetattr(ends[1], &raw) != 0) return false;
    cfmakeraw(&raw);
    return tcsetattr(ends[1], TCSANOW, &raw) == 0;
}

int site_inotify(const char *folder) {
    const int file = inotify_init1(IN_CLOEXEC);
    if (file >= 0) inotify_add_watch(file, folder, IN_CREATE);
    return file;
}

int site_fanotify(const char *path, bool asks) {
    const int file = fanotify_init(FAN_CLOEXEC | (asks ? FAN_CLASS_CONTENT : FAN_CLASS_NOTIF), O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    if (fanotify_mark(file, FAN_MARK_ADD, asks ? FAN_OPEN_PERM : FAN_OPEN | FAN_ONDIR, AT_FDCWD, path) == 0) return file;
    close(file);
    return -1;
}

void site_fanotify_answer(int file) {
    struct fanotify_event_metadata event;
    if (read(file, &event, sizeof event) < (ssize_t)sizeof event) return;
    const struct fanotify_response response = {.fd = event.fd, .response = FAN_ALLOW};
    if (write(file, &response, sizeof response) != sizeof response) abort();
    close(event.fd);
}

int site_signalfd(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

void site_signal_thread(pid_t thread, int number) { syscall(SYS_tgkill, getpid(), thread, number); }

int site_pidfd(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int site_epoll_empty(void) { return epoll_create1(EPOLL_CLOEXEC); }

int site_epoll_for(int set, int milliseconds) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, milliseconds) + 1;
}

void site_linger(int file) {
    char bytes[1 << 14] = {0};
    const struct linger limit = {.l_onoff = 1, .l_linger = 20};
    setsockopt(file, SOL_SOCKET, SO_LINGER, &limit, sizeof limit);
    while (send(file, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
}

int site_replace(int from, int to) { return dup3(from, to, O_CLOEXEC) + 1; }

// One entry: submits it and waits for its completion.
struct site_ring {
    int file;
    char *queue;
    struct io_uring_sqe *entries;
    struct io_uring_params parameters;
};

site_ring *site_ring_new(void) {
    site_ring *ring = calloc(1, sizeof *ring);
    ring->file = (int)syscall(SYS_io_uring_setup, 4, &ring->parameters);
    if (ring->file < 0) return free(ring), NULL;
    const struct io_uring_params *p = &ring->parameters;
    const int access = PROT_READ | PROT_WRITE;
    ring->queue = mmap(NULL, p->sq_off.array + p->sq_entries * sizeof(unsigned), access, MAP_SHARED, ring->file, 0);
    ring->entries = mmap(NULL, p->sq_entries * sizeof *ring->entries, access, MAP_SHARED, ring->file, IORING_OFF_SQES);
    return ring;
}

int site_ring_wait(site_ring *ring, int operation, int file) {
    static char byte;
    struct io_uring_sqe *entry = &ring->entries[0];
    memset(entry, 0, sizeof *entry);
    entry->opcode = (unsigned char)operation;
    entry->fd = file;
    if (operation == IORING_OP_POLL_ADD) {
        entry->poll32_events = 1;
    } else if (operation != IORING_OP_ACCEPT) {
        entry->addr = (uintptr_t)&byte;
        entry->len = 1;
    }
    ((unsigned *)(ring->queue + ring->parameters.sq_off.array))[0] = 0;
    __atomic_fetch_add((unsigned *)(ring->queue + ring->parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    return (int)syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) + 1;
}

void site_ring_free(site_ring *ring) {
    close(ring->file);
    free(ring);
}

// The sites. A compiler may merge Swift functions that differ in a constant or not at all; it leaves these apart. What is
// added to the result keeps the function on the stack during its call.
#define READER(name) \
    int name(int file) { \
        char bytes[4096]; \
        return (int)read(file, bytes, sizeof bytes) + 1; \
    }
#define POLLER(name) \
    int name(int file) { \
        struct pollfd entry = {.fd = file, .events = POLLIN}; \
        return poll(&entry, 1, 5000) + 1; \
    }
#define WAITER(name) \
    int name(int set) { \
        struct epoll_event event; \
        return epoll_wait(set, &event, 1, 5000) + 1; \
    }
#define OPENER(name, flags) \
    int name(const char *path) { return open(path, flags) + 1; }

READER(read_master)
READER(read_terminal)
READER(read_notifications)
READER(read_marked_files)
READER(read_signals)
READER(read_log)
READER(read_timer)
READER(read_fifo_of_others)
POLLER(poll_master)
POLLER(poll_fifo)
POLLER(poll_notifications)
POLLER(poll_signals)
POLLER(poll_process)
POLLER(poll_queue)
POLLER(poll_timer)
WAITER(epoll_process)
WAITER(epoll_notifications)
WAITER(epoll_signals)
OPENER(open_to_write, O_WRONLY)
OPENER(open_link, O_RDONLY)
OPENER(open_leased, O_RDONLY)
OPENER(open_read_leased, O_RDWR)
OPENER(open_permitted, O_RDONLY)

int epoll_nothing(int set) { return site_epoll_for(set, 160) + 1; }
int truncate_leased(const char *path) { return truncate(path, 10) + 1; }
int write_terminal(int file) {
    char bytes[1 << 16] = {0};
    return (int)write(file, bytes, sizeof bytes) + 1;
}
int readv_terminal(int file) {
    char byte;
    struct iovec part = {&byte, 1};
    return (int)readv(file, &part, 1) + 1;
}
int open_stream(const char *path) {
    FILE *file = fopen(path, "r");
    return file ? fclose(file) + 1 : 0;
}
static struct flock whole_file(short type) { return (struct flock){.l_type = type, .l_whence = SEEK_SET}; }
int lock_description(int file) {
    struct flock lock = whole_file(F_WRLCK);
    return fcntl(file, F_OFD_SETLKW, &lock) + 1;
}
int lock_description_to_read(int file) {
    struct flock lock = whole_file(F_RDLCK);
    return fcntl(file, F_OFD_SETLKW, &lock) + 1;
}
bool site_lock_description(int file) {
    struct flock lock = whole_file(F_WRLCK);
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}
int lock_region(int file) { return lockf(file, F_LOCK, 0) + 1; }
int lock_folder(int file) { return flock(file, LOCK_EX) + 1; }
int lock_shared(int file) { return flock(file, LOCK_SH) + 1; }
int close_lingering(int file) { return close(file) + 1; }
int replace_lingering(int from, int to) { return site_replace(from, to) + 1; }
int ring_read(site_ring *ring, int file) { return site_ring_wait(ring, IORING_OP_READ, file) + 1; }
int ring_receive(site_ring *ring, int file) { return site_ring_wait(ring, IORING_OP_RECV, file) + 1; }
int ring_accept(site_ring *ring, int file) { return site_ring_wait(ring, IORING_OP_ACCEPT, file) + 1; }
int await_signal(int number) {
    sigset_t set;
    siginfo_t information;
    const struct timespec limit = {.tv_sec = 5};
    sigemptyset(&set);
    sigaddset(&set, number);
    return sigtimedwait(&set, &information, &limit) + 1;
}
int await_process(int file) {
    siginfo_t information;
    return waitid((idtype_t)3, (id_t)file, &information, WEXITED) + 1;  // P_PIDFD
}
int receive_queued(int queue) {
    char bytes[16];
    return (int)mq_receive(queue, bytes, sizeof bytes, NULL) + 1;
}
int send_queued(int queue) { return mq_send(queue, "x", 1, 0) + 1; }
int site_queue(const char *name) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 16};
    mq_unlink(name);
    const int queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
    mq_unlink(name);
    return queue;
}
int send_file(int to, int from) {
    off_t start = 0;
    return (int)sendfile(to, from, &start, 16 << 20) + 1;
}
int splice_file(int from, int to) {
    loff_t start = 0;
    return (int)splice(from, &start, to, NULL, 1 << 20, 0) + 1;
}
int raise_event(int file) { return eventfd_write(file, UINT64_MAX - 1) + 1; }
int receive_message(int file) {
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return (int)recvmsg(file, &message, 0) + 1;
}
int receive_in_time(int file) {
    char byte;
    const struct timeval limit = {.tv_usec = 160000};
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return (int)recv(file, &byte, 1, 0) + 1;
}
void site_fill_backlog(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int kept;
    do {
        kept = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    } while (connect(kept, (struct sockaddr *)&address, sizeof address) == 0);
    close(kept);
}
int connect_local(const char *path) { return site_unix_connect(path) + 1; }

// All signals are blocked while it computes, as in libnss_systemd.
int compute_deaf(int64_t end) {
    sigset_t all, before;
    volatile int sum = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    do {
        for (int i = 0; i < 1000; i++) sum += i;
    } while (site_cpu() < end);
    return pthread_sigmask(SIG_SETMASK, &before, NULL) + sum % 2;
}
int look_up_users(int64_t end) {
    struct timespec now;
    int count = 0;
    do {
        count += getpwnam("nobody-of-this-name") != NULL;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end);
    return count + 1;
}

// Code made at run time that waits for `flag` to be set: a frame pointer, no image, no table.
int run_generated(volatile int *flag) {
#if defined(__x86_64__)
    // push %rbp; mov %rsp,%rbp; 1: pause; cmpl $0,(%rdi); je 1b; pop %rbp; ret
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0x83, 0x3f, 0x00, 0x74, 0xf9, 0x5d, 0xc3};
    uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0) return 0;
    ((void (*)(volatile int *))(uintptr_t)memory)(flag);
    return munmap(memory, 4096) + 1;
#else
    while (!*flag) {}
    return 1;
#endif
}
