#define _GNU_SOURCE
#include "stall_datagram.h"
#include "stall_descriptors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool stall_datagram_send(const char *path, const char *text) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    if (length < 2 || length >= sizeof address.sun_path) {
        errno = EINVAL;
        return false;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') address.sun_path[0] = 0;
    const int descriptor = stall_above_standard(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (descriptor < 0) return false;
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const ssize_t sent =
        sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    const int error = errno;
    close(descriptor);
    errno = error;
    return sent >= 0;
}
