// Connections and the resolution of names.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>

#include "../descriptors.h"
#include "interpose.h"

INTERPOSE(connect)
INTERPOSE(accept)
INTERPOSE(accept4)
INTERPOSE(getaddrinfo)
INTERPOSE(getnameinfo)
INTERPOSE(gethostbyname)
INTERPOSE(gethostbyname_r)
INTERPOSE(gethostbyname2)
INTERPOSE(gethostbyname2_r)
INTERPOSE(gethostbyaddr)
INTERPOSE(gethostbyaddr_r)

// A local datagram socket is only given the address. One of the network finds a route, and waits for keys where that route is
// encrypted.
static stall_blocking_kind kind_of_connecting(int socket) {
    const stall_blocking_kind kind = blocking_kind_of_descriptor(socket, true);
    return kind == STALL_BLOCKING_IPC && blocking_is_connectionless(socket) ? 0 : kind;
}

int connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    RETURN_CALL(connect, kind_of_connecting(socket), (socket, address, size));
}

int accept(int socket, __SOCKADDR_ARG address, socklen_t *size) {
    RETURN_CALL(accept, blocking_kind_of_descriptor(socket, false), (socket, address, size));
}

int accept4(int socket, __SOCKADDR_ARG address, socklen_t *size, int flags) {
    RETURN_CALL(accept4, blocking_kind_of_descriptor(socket, false), (socket, address, size, flags));
}

// MARK: Names

// An address that is written as a number is not looked up.
static stall_blocking_kind kind_of_host(const char *host) {
    struct in_addr short_address;
    struct in6_addr address;
    if (!host || inet_aton(host, &short_address) || inet_pton(AF_INET6, host, &address) == 1) return 0;
    return STALL_BLOCKING_NETWORK;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    const bool is_number = hints && hints->ai_flags & AI_NUMERICHOST;
    RETURN_CALL(getaddrinfo, is_number ? 0 : kind_of_host(host), (host, service, hints, found));
}

int getnameinfo(
    const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
    socklen_t service_size, int flags) {
    const bool is_number = flags & NI_NUMERICHOST && flags & NI_NUMERICSERV;
    RETURN_CALL(
        getnameinfo, is_number ? 0 : STALL_BLOCKING_NETWORK,
        (address, size, host, host_size, service, service_size, flags));
}

struct hostent *gethostbyname(const char *host) { RETURN_CALL(gethostbyname, kind_of_host(host), (host)); }

struct hostent *gethostbyname2(const char *host, int family) {
    RETURN_CALL(gethostbyname2, kind_of_host(host), (host, family));
}

int gethostbyname_r(
    const char *host, struct hostent *entry, char *buffer, size_t size, struct hostent **found, int *error) {
    RETURN_CALL(gethostbyname_r, kind_of_host(host), (host, entry, buffer, size, found, error));
}

int gethostbyname2_r(
    const char *host, int family, struct hostent *entry, char *buffer, size_t size, struct hostent **found,
    int *error) {
    RETURN_CALL(gethostbyname2_r, kind_of_host(host), (host, family, entry, buffer, size, found, error));
}

struct hostent *gethostbyaddr(const void *address, socklen_t length, int family) {
    RETURN_CALL(gethostbyaddr, STALL_BLOCKING_NETWORK, (address, length, family));
}

int gethostbyaddr_r(
    const void *address, socklen_t length, int family, struct hostent *entry, char *buffer, size_t size,
    struct hostent **found, int *error) {
    RETURN_CALL(
        gethostbyaddr_r, STALL_BLOCKING_NETWORK, (address, length, family, entry, buffer, size, found, error));
}

// Before 2.34 these are in libresolv, with other names.
#if __GLIBC_PREREQ(2, 34)
INTERPOSE(res_query)
INTERPOSE(res_search)
INTERPOSE(res_nquery)
INTERPOSE(res_nsearch)

int res_query(const char *name, int class, int type, unsigned char *answer, int size) {
    RETURN_CALL(res_query, STALL_BLOCKING_NETWORK, (name, class, type, answer, size));
}

int res_search(const char *name, int class, int type, unsigned char *answer, int size) {
    RETURN_CALL(res_search, STALL_BLOCKING_NETWORK, (name, class, type, answer, size));
}

int res_nquery(res_state state, const char *name, int class, int type, unsigned char *answer, int size) {
    RETURN_CALL(res_nquery, STALL_BLOCKING_NETWORK, (state, name, class, type, answer, size));
}

int res_nsearch(res_state state, const char *name, int class, int type, unsigned char *answer, int size) {
    RETURN_CALL(res_nsearch, STALL_BLOCKING_NETWORK, (state, name, class, type, answer, size));
}
#endif
#endif
