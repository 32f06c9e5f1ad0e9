#define _GNU_SOURCE
#include "stall_evidence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "../System/kernel_read.h"
#include "stall_descriptors.h"
#include "stall_task.h"

// Appends text; false if it does not fit.
static bool append(char *to, size_t capacity, const char *text) {
    size_t length = strlen(to), more = strlen(text);
    if (length + more >= capacity) return false;
    memcpy(to + length, text, more + 1);
    return true;
}

static void append_number(char *to, size_t capacity, uint64_t number) {
    char digits[24], *start = digits + sizeof digits - 1;
    *start = 0;
    do *--start = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    append(to, capacity, start);
}

// Reads an open file as text; false if that fails.
static bool read_text(int file, char *text, size_t capacity) {
    if (file < 0) return false;
    ssize_t count = pread(file, text, capacity - 1, 0);
    if (count <= 0) return false;
    text[count] = 0;
    return true;
}

static uint64_t number_after(const char *text, const char *label) {
    const char *found = strstr(text, label);
    return found ? strtoull(found + strlen(label), NULL, 10) : 0;
}

static void note(int error, uint32_t bit, stall_thread_snapshot *snapshot) {
    if (error != 0) snapshot->unreadable |= bit;
}

void stall_evidence_read(stall_thread_files *files, stall_thread_snapshot *snapshot) {
    stall_thread_position position;
    stall_thread_state state;
    stall_thread_schedule schedule;
    stall_thread_status status;
    *snapshot = (stall_thread_snapshot){.system_call = -1};
    note(stall_thread_read_position(files, &position), STALL_NO_SYSTEM_CALL, snapshot);
    snapshot->is_running = position.is_running;
    snapshot->system_call = (int32_t)position.system_call;
    memcpy(snapshot->arguments, position.arguments, sizeof snapshot->arguments);
    snapshot->stack_pointer = position.system_call >= 0 ? position.stack_pointer : 0;
    note(
        stall_thread_files_read(files, STALL_THREAD_WCHAN, snapshot->wait_channel, sizeof snapshot->wait_channel),
        STALL_NO_WAIT_CHANNEL, snapshot);
    if ((snapshot->unreadable & STALL_NO_WAIT_CHANNEL) || strcmp(snapshot->wait_channel, "0") == 0)
        snapshot->wait_channel[0] = 0;
    state = (stall_thread_state){0};
    note(stall_thread_read_state(files, &state), STALL_NO_STATE, snapshot);
    snapshot->state = state.letter;
    snapshot->minor_faults = state.minor_faults;
    snapshot->major_faults = state.major_faults;
    note(stall_thread_read_schedule(files, &schedule), STALL_NO_SCHEDULE, snapshot);
    snapshot->cpu_ns = schedule.cpu_ns;
    snapshot->run_delay_ns = schedule.run_delay_ns;
    note(stall_thread_read_status(files, &status), STALL_NO_SWITCHES, snapshot);
    snapshot->waits = status.waits;
    snapshot->preemptions = status.preemptions;
}

void stall_process_open(stall_process_files *files) {
    static const char *const paths[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
    for (int index = 0; index < 3; index++) files->pressure[index] = open(paths[index], O_RDONLY | O_CLOEXEC);
}

void stall_process_close(stall_process_files *files) {
    for (int index = 0; index < 3; index++)
        stall_descriptor_close(files->pressure[index]);
}

void stall_process_read(const stall_process_files *files, stall_process_snapshot *snapshot) {
    char text[1024];
    *snapshot = (stall_process_snapshot){0};
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
        snapshot->cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    for (int index = 0; index < 3; index++) {
        if (read_text(files->pressure[index], text, sizeof text)) {
            snapshot->pressure_us[index] = number_after(text, "total=");
        } else {
            snapshot->unreadable |= STALL_NO_PRESSURE;
        }
    }
}

static void read_peer(int number, stall_descriptor_snapshot *snapshot) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length = sizeof address;
    if (getpeername(number, &address.any, &length) != 0) return;
    uint16_t port = 0;
    if (address.any.sa_family == AF_INET) {
        if (!inet_ntop(AF_INET, &address.v4.sin_addr, snapshot->peer, sizeof snapshot->peer)) return;
        port = ntohs(address.v4.sin_port);
    } else if (address.any.sa_family == AF_INET6) {
        strcpy(snapshot->peer, "[");
        if (!inet_ntop(AF_INET6, &address.v6.sin6_addr, snapshot->peer + 1, sizeof snapshot->peer - 1)) return;
        append(snapshot->peer, sizeof snapshot->peer, "]");
        port = ntohs(address.v6.sin6_port);
    } else {
        return;
    }
    append(snapshot->peer, sizeof snapshot->peer, ":");
    append_number(snapshot->peer, sizeof snapshot->peer, port);
}

bool stall_descriptor_read(int32_t number, stall_descriptor_snapshot *snapshot) {
    char path[48] = "/proc/self/fd/";
    *snapshot = (stall_descriptor_snapshot){.number = number, .socket_domain = -1};
    if (number < 0) return false;
    append_number(path, sizeof path, (uint64_t)number);
    ssize_t length = readlink(path, snapshot->target, sizeof snapshot->target - 1);
    if (length < 0) return false;
    snapshot->target[length] = 0;
    if (strncmp(snapshot->target, "socket:", 7) != 0) return true;
    socklen_t size = sizeof snapshot->socket_domain;
    if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &snapshot->socket_domain, &size) != 0) snapshot->socket_domain = -1;
    if (snapshot->socket_domain == AF_INET || snapshot->socket_domain == AF_INET6) read_peer(number, snapshot);
    return true;
}

size_t stall_memory_read(uint64_t address, void *to, size_t length) { return stall_kernel_read(to, address, length); }

// `3: POSIX  ADVISORY  WRITE 392 fe:00:5326767 0 EOF`, followed by its waiters: `3: -> POSIX  ADVISORY ...`.
typedef struct {
    int32_t number, process;
    bool waits;
} file_lock_line;

static bool parse_file_lock(const char *line, file_lock_line *lock) {
    char *rest;
    lock->number = (int32_t)strtol(line, &rest, 10);
    if (rest == line || *rest != ':') return false;
    rest += 1 + strspn(rest + 1, " ");
    lock->waits = strncmp(rest, "->", 2) == 0;
    if (lock->waits) rest += 2;
    for (int word = 0; word < 3; word++) {  // POSIX ADVISORY WRITE
        rest += strspn(rest, " ");
        rest += strcspn(rest, " ");
    }
    lock->process = (int32_t)strtol(rest, NULL, 10);
    return true;
}

// Calls `visit` with each line of /proc/locks. False if it cannot be opened. Expensive: the kernel waits for every CPU.
static bool visit_locks(void (*visit)(const char *line, void *context), void *context) {
    int file = open("/proc/locks", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char text[8192];
    size_t kept = 0;
    ssize_t count;
    while ((count = read(file, text + kept, sizeof text - 1 - kept)) > 0) {
        text[kept += (size_t)count] = 0;
        char *start = text, *end;
        for (; (end = strchr(start, '\n')); start = end + 1) {
            *end = 0;
            visit(start, context);
        }
        kept = strlen(start);
        if (kept == sizeof text - 1) break;  // no line is that long
        memmove(text, start, kept);
    }
    close(file);
    return true;
}

typedef struct {
    file_lock_line holder;
    int32_t own, found;
    bool is_ambiguous;
} file_lock_search;

static void find_file_lock(const char *text, void *context) {
    file_lock_search *search = context;
    file_lock_line line;
    if (!parse_file_lock(text, &line)) return;
    if (!line.waits) search->holder = line;
    if (!line.waits || line.process != search->own || line.number != search->holder.number) return;
    search->is_ambiguous |= search->found != 0 && search->found != search->holder.process;
    search->found = search->holder.process;
}

bool stall_file_lock_holder(int32_t *process) {
    file_lock_search search = {.holder = {.number = -1}, .own = stall_task_process()};
    if (!visit_locks(find_file_lock, &search)) return false;
    *process = search.found;
    return search.found > 0 && !search.is_ambiguous;
}

// `1: POSIX  ADVISORY  WRITE 392 fe:00:5326767 1073741825 1073741825`
typedef struct {
    int32_t process;
    uint32_t device_major, device_minor;
    uint64_t inode, start;
    bool is_write;
} posix_lock_line;

static bool parse_posix_lock(const char *line, posix_lock_line *lock) {
    const char *word = strstr(line, ": POSIX ");
    if (!word) return false;
    lock->is_write = strstr(word, " WRITE ") != NULL;
    const char *kind = lock->is_write ? strstr(word, " WRITE ") : strstr(word, " READ ");
    if (!kind) return false;
    char *rest = (char *)kind + (lock->is_write ? 7 : 6);
    lock->process = (int32_t)strtol(rest, &rest, 10);
    lock->device_major = (uint32_t)strtoul(rest, &rest, 16);
    if (*rest != ':') return false;
    lock->device_minor = (uint32_t)strtoul(rest + 1, &rest, 16);
    if (*rest != ':') return false;
    lock->inode = strtoull(rest + 1, &rest, 10);
    lock->start = strtoull(rest, &rest, 10);
    return lock->process > 0;
}

static bool has_open(const posix_lock_line *lock) {
    const stall_file_identity file = {makedev(lock->device_major, lock->device_minor), lock->inode};
    int32_t number;
    return stall_descriptors_of(file, &number, 1) > 0;
}

typedef struct {
    int32_t own, other;
    bool is_ours, is_ambiguous;
} database_lock_search;

// Source: sqlite3.org, "File Locking And Concurrency" and "WAL-mode File Format": the pending, reserved and shared
// bytes of the database, and the write lock of the index beside it.
static void find_database_lock(const char *line, void *context) {
    database_lock_search *search = context;
    posix_lock_line lock;
    if (!parse_posix_lock(line, &lock) || !lock.is_write) return;
    bool in_database = lock.start >= 0x40000000 && lock.start < 0x40000200, in_index = lock.start == 120;
    // The agent's own store has an index as well.
    if (!(lock.process == search->own ? in_database : in_database || in_index) || !has_open(&lock)) return;
    if (lock.process == search->own) {
        search->is_ours = true;
    } else {
        search->is_ambiguous |= search->other != 0 && search->other != lock.process;
        search->other = lock.process;
    }
}

bool stall_database_lock_holder(int32_t *process) {
    database_lock_search search = {.own = stall_task_process()};
    if (!visit_locks(find_database_lock, &search)) return false;
    *process = search.other ? search.other : search.own;
    return (search.other || search.is_ours) && !search.is_ambiguous;
}

size_t stall_epoll_members(int32_t epoll, int32_t *members, size_t capacity) {
    char path[48] = "/proc/self/fdinfo/", text[4096];
    append_number(path, sizeof path, (uint64_t)(uint32_t)epoll);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_read = read_text(file, text, sizeof text);
    if (file >= 0) close(file);
    size_t found = 0;
    for (const char *line = is_read ? text : ""; found < capacity && (line = strstr(line, "tfd:")); line += 4)
        members[found++] = (int32_t)strtol(line + 4, NULL, 10);
    return found;
}

static bool read_name(int file, char *name) {
    bool isRead = read_text(file, name, 16);
    if (file >= 0) close(file);
    if (isRead) name[strcspn(name, "\n")] = 0;
    return isRead;
}

bool stall_process_read_name(int32_t process, char *name) {
    if (process <= 0) return false;
    char path[48] = "/proc/";
    append_number(path, sizeof path, (uint64_t)process);
    append(path, sizeof path, "/comm");
    return read_name(open(path, O_RDONLY | O_CLOEXEC), name);
}

bool stall_thread_read_name(int32_t thread, char *name) {
    return thread > 0 && read_name(stall_task_open(thread, "comm"), name);
}
