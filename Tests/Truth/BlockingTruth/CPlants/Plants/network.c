// Plants that connect, accept, and resolve names.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "planting.h"

static int listener = -1, client = -1, server = -1;
static struct sockaddr_storage address;
static socklen_t address_size;

static void close_all(void) {
    int *const sockets[] = {&listener, &client, &server};
    for (int i = 0; i < 3; i++) {
        if (*sockets[i] >= 0) close(*sockets[i]);
        *sockets[i] = -1;
    }
}

static void listen_on(int family) {
    close_all();
    listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&address, 0, sizeof address);
    address.ss_family = (sa_family_t)family;
    address_size = sizeof(sa_family_t);  // a Unix socket is given a name
    if (family == AF_INET) {
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address_size = sizeof(struct sockaddr_in);
    }
    NEED(bind(listener, (struct sockaddr *)&address, address_size) == 0 && listen(listener, 1) == 0);
    address_size = sizeof address;
    NEED(getsockname(listener, (struct sockaddr *)&address, &address_size) == 0);
}

static void connect_to(int family) {
    listen_on(family);
    NEED(connect(client, (struct sockaddr *)&address, address_size) == 0);
}

static void exchange(void) {
    connect_to(AF_INET);
    NEED((server = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    NEED(send(server, "x", 1, 0) == 1);
}

static void listen_tcp(void) { listen_on(AF_INET); }
static void listen_unix(void) { listen_on(AF_UNIX); }
static void open_udp(void) {
    listen_on(AF_INET);
    close(client);
    client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}
static void connect_tcp(void) { connect_to(AF_INET); }
static void connect_unix(void) { connect_to(AF_UNIX); }

PLANT(connect_tcp) { NEED(connect(client, (struct sockaddr *)&address, address_size) == 0); }
PLANT(connect_udp) { NEED(connect(client, (struct sockaddr *)&address, address_size) == 0); }
PLANT(connect_unix) { NEED(connect(client, (struct sockaddr *)&address, address_size) == 0); }
PLANT(accept_tcp) { NEED((server = accept(listener, NULL, NULL)) >= 0); }
PLANT(accept_unix) { NEED((server = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0); }
PLANT(recv_tcp) {
    char byte;
    NEED(recv(client, &byte, 1, 0) == 1);
}
PLANT(send_tcp) { NEED(send(client, "x", 1, 0) == 1); }
PLANT(write_tcp) { NEED(write(client, "x", 1) == 1); }

PLANT(getaddrinfo) {
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) == 0) freeaddrinfo(found);
}
PLANT(gethostbyname) { gethostbyname("localhost"); }
PLANT(getnameinfo) {
    const struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char host[256];
    getnameinfo((const struct sockaddr *)&local, sizeof local, host, sizeof host, NULL, 0, 0);
}

static const plant plants[] = {
    {"connect_tcp", STALL_BLOCKING_NETWORK, listen_tcp, plant_connect_tcp},
    {"connect_udp", STALL_BLOCKING_NETWORK, open_udp, plant_connect_udp},
    {"connect_unix", STALL_BLOCKING_IPC, listen_unix, plant_connect_unix},
    {"accept_tcp", STALL_BLOCKING_NETWORK, connect_tcp, plant_accept_tcp},
    {"accept_unix", STALL_BLOCKING_IPC, connect_unix, plant_accept_unix},
    {"recv_tcp", STALL_BLOCKING_NETWORK, exchange, plant_recv_tcp},
    {"send_tcp", STALL_BLOCKING_NETWORK, exchange, plant_send_tcp},
    {"write_tcp", STALL_BLOCKING_NETWORK, exchange, plant_write_tcp},
    {"getaddrinfo", STALL_BLOCKING_NETWORK, NULL, plant_getaddrinfo},
    {"gethostbyname", STALL_BLOCKING_NETWORK, NULL, plant_gethostbyname},
    {"getnameinfo", STALL_BLOCKING_NETWORK, NULL, plant_getnameinfo},
};
const plant_family network_family = {plants, COUNT_OF(plants)};
