// Messages received from sockets and sent to them.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <sys/socket.h>

#include "../interpose.h"

extern ssize_t __recv_chk(int, void *, size_t, size_t, int);
extern ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, __SOCKADDR_ARG, socklen_t *);

INTERPOSE(recv)
INTERPOSE(recvfrom)
INTERPOSE(recvmsg)
INTERPOSE(recvmmsg)
INTERPOSE(__recv_chk)
INTERPOSE(__recvfrom_chk)
INTERPOSE(send)
INTERPOSE(sendto)
INTERPOSE(sendmsg)
INTERPOSE(sendmmsg)

// The queue of errors never waits.
#define RECEIVE(name, arguments) RECEIVE_AS(#name, name, arguments)
#define RECEIVE_AS(source_name, name, arguments)                                                             \
    RETURN_CALL_AS(                                                                                          \
        source_name, name,                                                                                   \
        flags & (MSG_DONTWAIT | MSG_ERRQUEUE) ? 0 : blocking_kind_of_descriptor(socket, false), arguments)
#define SEND(name, arguments) \
    RETURN_CALL(name, flags & MSG_DONTWAIT ? 0 : blocking_kind_of_descriptor(socket, true), arguments)

ssize_t recv(int socket, void *buffer, size_t count, int flags) { RECEIVE(recv, (socket, buffer, count, flags)); }

ssize_t recvfrom(int socket, void *buffer, size_t count, int flags, __SOCKADDR_ARG from, socklen_t *size) {
    RECEIVE(recvfrom, (socket, buffer, count, flags, from, size));
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) { RECEIVE(recvmsg, (socket, message, flags)); }

int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout) {
    RECEIVE(recvmmsg, (socket, messages, count, flags, timeout));
}

// Programs that are compiled with _FORTIFY_SOURCE call these where the size of their buffer is known.
ssize_t __recv_chk(int socket, void *buffer, size_t count, size_t limit, int flags) {
    RECEIVE_AS("recv", __recv_chk, (socket, buffer, count, limit, flags));
}

ssize_t __recvfrom_chk(
    int socket, void *buffer, size_t count, size_t limit, int flags, __SOCKADDR_ARG from, socklen_t *size) {
    RECEIVE_AS("recvfrom", __recvfrom_chk, (socket, buffer, count, limit, flags, from, size));
}

ssize_t send(int socket, const void *buffer, size_t count, int flags) { SEND(send, (socket, buffer, count, flags)); }

ssize_t sendto(int socket, const void *buffer, size_t count, int flags, __CONST_SOCKADDR_ARG to, socklen_t size) {
    SEND(sendto, (socket, buffer, count, flags, to, size));
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) { SEND(sendmsg, (socket, message, flags)); }

int sendmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags) {
    SEND(sendmmsg, (socket, messages, count, flags));
}
#endif
