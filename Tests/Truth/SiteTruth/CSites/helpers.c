#define _GNU_SOURCE
#include "stall_sites.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int site_timer_in(uint32_t microseconds) {
    (void)microseconds;
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}
void site_timer_set(int timer, uint32_t microseconds) {
    struct itimerspec when = {.it_value = {.tv_nsec = (long)microseconds * 1000}};
    timerfd_settime(timer, 0, &when, NULL);
}
__attribute__((always_inline)) static inline int select_one(int file) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(file, &set);
    return select(file + 1, &set, NULL, NULL, NULL);
}
int site_select(int file) { return select_one(file) + 1; }
int site_epoll_of(int file) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = file};
    epoll_ctl(set, EPOLL_CTL_ADD, file, &event);
    return set;
}

int site_epoll_wait(int set) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 5000) + 1;
}
int site_splice(int from, int to) { return (int)splice(from, NULL, to, NULL, 1, 0) + 1; }
int site_eventfd(void) { return eventfd(0, EFD_CLOEXEC); }
void site_eventfd_give(int file) { eventfd_write(file, 1); }
pid_t site_thread(void) { return (pid_t)syscall(SYS_gettid); }

struct message { long type; char text[8]; };
int site_message_queue(void) { return msgget(IPC_PRIVATE, 0600 | IPC_CREAT); }
int site_message_receive(int queue) {
    struct message message;
    return (int)msgrcv(queue, &message, sizeof message.text, 0, 0) + 1;
}
void site_message_send(int queue) {
    struct message message = {.type = 1};
    msgsnd(queue, &message, sizeof message.text, 0);
}
void site_message_remove(int queue) { msgctl(queue, IPC_RMID, NULL); }
int site_semaphore_set(void) { return semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT); }
int site_semaphore_take(int set) {
    struct sembuf take = {.sem_op = -1};
    return semop(set, &take, 1) + 1;
}
void site_semaphore_give(int set) {
    struct sembuf give = {.sem_op = 1};
    semop(set, &give, 1);
}
void site_semaphore_remove(int set) { semctl(set, 0, IPC_RMID); }

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}
static uint16_t port_of(int socket) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    getsockname(socket, (struct sockaddr *)&address, &length);
    return ntohs(address.sin_port);
}
int site_tcp_listener(uint16_t *port, int backlog) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, backlog);
    *port = port_of(listener);
    return listener;
}
int site_connect(uint16_t port) {
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(port);
    connect(near, (struct sockaddr *)&address, sizeof address);
    return near;
}
void site_tcp_pair(int *ends) {
    uint16_t port;
    int listener = site_tcp_listener(&port, 4);
    ends[0] = site_connect(port);
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
}
static int full_queue[8];
int site_full_listener(uint16_t *port) {
    int listener = site_tcp_listener(port, 0);
    for (int i = 0; i < 4; i++) {
        int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_in address = loopback(*port);
        connect(near, (struct sockaddr *)&address, sizeof address);
        full_queue[i] = near;
    }
    usleep(20000);
    return listener;
}
void site_make_room(int listener) {
    for (int i = 0; i < 4; i++) close(full_queue[i]);
    int flags = fcntl(listener, F_GETFL);
    fcntl(listener, F_SETFL, flags | O_NONBLOCK);
    for (int round = 0; round < 100; round++) {
        int far = accept(listener, NULL, NULL);
        if (far >= 0) close(far);
        usleep(20000);
    }
}
static struct sockaddr_un unix_address(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return address;
}
int site_unix_listener(const char *path) {
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = unix_address(path);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 4);
    return listener;
}
int site_unix_connect(const char *path) {
    int near = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = unix_address(path);
    connect(near, (struct sockaddr *)&address, sizeof address);
    return near;
}
int site_udp_socket(uint16_t *port) {
    int near = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    bind(near, (struct sockaddr *)&address, sizeof address);
    *port = port_of(near);
    return near;
}
void site_udp_send(uint16_t port) {
    int far = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(port);
    sendto(far, "x", 1, 0, (struct sockaddr *)&address, sizeof address);
    close(far);
}

// The resolver of this thread queries a socket of ours, which never answers, once.
bool site_silent_nameserver(void) {
    static uint16_t port;
    static int server = -1;
    if (server < 0) server = site_udp_socket(&port);
    if (res_init() != 0) return false;
    _res.nscount = 1;
    _res.nsaddr_list[0] = loopback(port);
    _res.retrans = 1;
    _res.retry = 1;
    _res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
    return true;
}
int site_getaddrinfo(const char *name) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int result = getaddrinfo(name, "80", &hints, &list);
    if (result == 0) freeaddrinfo(list);
    return result;
}
int site_gethostbyname(const char *name) { return gethostbyname(name) ? 1 : 2; }
int site_system(const char *command) { return system(command) + 1; }
pid_t site_spawn_sleep(const char *seconds) {
    pid_t child = -1;
    char *arguments[] = {"sleep", (char *)seconds, NULL};
    return posix_spawnp(&child, "sleep", NULL, NULL, arguments, environ) == 0 ? child : -1;
}

struct site_child { pid_t process; int pipe; };

site_child *site_child_locking(const char *path, long start, long length) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return NULL;
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int file = open(path, O_RDWR | O_CREAT, 0600);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
        char answer = fcntl(file, F_SETLK, &lock) == 0;
        ssize_t written = write(ready[1], &answer, 1);
        (void)written;
        for (;;) pause();
    }
    char answer = 0;
    bool isRead = read(ready[0], &answer, 1) == 1;
    close(ready[0]);
    close(ready[1]);
    if (!isRead || !answer) return NULL;
    site_child *child = malloc(sizeof *child);
    child->process = process;
    return child;
}
void site_child_end(site_child *child) {
    kill(child->process, SIGKILL);
    waitpid(child->process, NULL, 0);
    free(child);
}
