#define _GNU_SOURCE
#include "stall_socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stall_thread.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

enum { STACK = 64 << 10 };

static bool is_unix(int socket) {
    int family = AF_UNSPEC;
    socklen_t size = sizeof family;
    return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

/// Also true where it cannot be learnt.
static bool has_unread(int socket) {
    int count = 0;
    return ioctl(socket, FIONREAD, &count) != 0 || count > 0;
}

bool stall_socket_refuse_descriptors(int socket) {
    if (!is_unix(socket)) return true;
    const int no = 0, yes = 1;
    const bool refuses = setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0;
    // Messages that were sent before may bring some.
    if (refuses && !has_unread(socket)) return true;
    // Else a byte out of band, and what it brings, is dropped by a recv that has not seen it before.
    setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
    return false;
}

ssize_t stall_socket_peek(int socket, void *buffer, size_t capacity, bool *brings) {
    struct iovec place = {.iov_base = buffer, .iov_len = capacity};
    // Without room for control messages, so that none is received.
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
    const ssize_t count = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    *brings = count > 0 && message.msg_flags & MSG_CTRUNC;
    return count;
}

uint64_t stall_socket_identity(int socket) {
    const int saved = errno;
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    const bool has = getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0;
    errno = saved;
    return has ? cookie : 0;
}

static bool may_hold_descriptors(int socket) {
    if (!is_unix(socket)) return false;
    struct pollfd peer = {.fd = socket, .events = POLLRDHUP};
    const bool may_grow = poll(&peer, 1, 0) != 1 || !(peer.revents & (POLLRDHUP | POLLHUP));
    if (has_unread(socket)) return true;
    int takes = 1;
    socklen_t size = sizeof takes;
    return may_grow && (getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &takes, &size) != 0 || takes);
}

static void *close_there(void *context) {
    close((int)(intptr_t)context);
    return NULL;
}

void stall_socket_close(int socket) {
    const int saved = errno;
    if (!may_hold_descriptors(socket) || stall_thread_start_detached("socket close", close_there, (void *)(intptr_t)socket) != 0)
        close(socket);
    errno = saved;
}

int stall_thread_start_detached(const char *name, void *(*body)(void *), void *context) {
    unsigned long thread;
    const int error = stall_thread_start(&thread, name, STACK, body, context);
    if (error == 0) pthread_detach(thread);
    return error;
}
