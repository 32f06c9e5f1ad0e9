#define _GNU_SOURCE
#include "stall_evidence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stall_memory.h"
#include "stall_task.h"
#include "stall_descriptors.h"

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

// Opened for each reading.
static bool read_path(const char *path, char *text, size_t capacity) {
    const int file = stall_descriptor_open_to_read(path, 0);
    const bool is_read = read_text(file, text, capacity);
    if (file >= 0) stall_descriptor_end(file);
    return is_read;
}

void stall_process_read(stall_process_snapshot *snapshot) {
    static const char *const paths[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
    char text[1024];
    *snapshot = (stall_process_snapshot){0};
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
        snapshot->cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    for (int index = 0; index < 3; index++) {
        if (read_path(paths[index], text, sizeof text)) {
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

// `stat` could wait for a server or a program that does not answer, so no file system is asked but those of /dev. The
// kernel refuses any advice on a FIFO before it looks at the advice; F_GETPIPE_SZ would wait for the FIFO's lock.
static uint32_t type_of_path(int32_t number, const char *path) {
    enum { NO_ADVICE = -1 };
    struct statx facts;
    if (posix_fadvise(number, 0, 0, NO_ADVICE) == ESPIPE) return S_IFIFO;
    if (strncmp(path, "/dev/", 5) != 0) return 0;
    const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    return statx(number, "", flags, STATX_TYPE, &facts) == 0 ? facts.stx_mode & S_IFMT : 0;
}

bool stall_descriptor_read(int32_t number, stall_descriptor_snapshot *snapshot) {
    char path[48] = "/proc/thread-self/fd/";
    *snapshot = (stall_descriptor_snapshot){.number = number, .socket_domain = -1};
    if (number < 0) return false;
    append_number(path, sizeof path, (uint64_t)number);
    ssize_t length = readlink(path, snapshot->target, sizeof snapshot->target - 1);
    if (length < 0) return false;
    snapshot->target[length] = 0;
    if (snapshot->target[0] == '/') snapshot->type = type_of_path(number, snapshot->target);
    if (strncmp(snapshot->target, "socket:", 7) != 0) return true;
    socklen_t size = sizeof snapshot->socket_domain;
    if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &snapshot->socket_domain, &size) != 0) snapshot->socket_domain = -1;
    if (snapshot->socket_domain == AF_INET || snapshot->socket_domain == AF_INET6) read_peer(number, snapshot);
    return true;
}

size_t stall_memory_read(uint64_t address, void *to, size_t length) { return stall_read_memory(to, address, length); }

static bool read_descriptor_facts(int32_t number, char *text, size_t capacity) {
    char path[48] = "/proc/thread-self/fdinfo/";
    append_number(path, sizeof path, (uint64_t)(uint32_t)number);
    return read_path(path, text, capacity);
}

size_t stall_epoll_members(int32_t epoll, int32_t *members, size_t capacity) {
    char text[4096];
    bool is_read = read_descriptor_facts(epoll, text, sizeof text);
    size_t found = 0;
    for (const char *line = is_read ? text : ""; found < capacity && (line = strstr(line, "tfd:")); line += 4)
        members[found++] = (int32_t)strtol(line + 4, NULL, 10);
    return found;
}

// `PollList:`, then a line `  op=27, task_works=0` for each. The kernel skips the list while the ring is in use.
uint64_t stall_ring_operations(int32_t ring) {
    char text[4096];
    uint64_t operations = 0;
    const char *line = read_descriptor_facts(ring, text, sizeof text) ? strstr(text, "\nPollList:") : NULL;
    while (line && (line = strstr(line + 1, "\n  op="))) {
        const unsigned long operation = strtoul(line + 6, NULL, 10);
        if (operation < 64) operations |= 1ull << operation;
    }
    return operations;
}

static bool read_name(int file, char *name) {
    bool isRead = read_text(file, name, 16);
    if (file >= 0) stall_descriptor_end(file);
    if (isRead) name[strcspn(name, "\n")] = 0;
    return isRead;
}

bool stall_process_read_name(int32_t process, char *name) {
    if (process <= 0) return false;
    char path[48] = "/proc/";
    append_number(path, sizeof path, (uint64_t)process);
    append(path, sizeof path, "/comm");
    return read_name(stall_descriptor_open_to_read(path, 0), name);
}

bool stall_thread_read_name(int32_t thread, char *name) {
    return thread > 0 && read_name(stall_task_open(thread, "comm"), name);
}
