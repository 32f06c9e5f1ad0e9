// Unix sockets whose peer may pass descriptors. The last close of a passed file happens in the thread that reads past it or closes
// the socket, and may wait there: for seconds or hours where the peer has set SO_LINGER on a TCP socket.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Makes the kernel refuse descriptors that are passed to this socket (Linux 6.16). Returns whether none can arrive any more: also true
/// of a socket of another family. Where it is false, read with `stall_socket_peek` first; bytes out of band are read in line.
bool stall_socket_refuse_descriptors(int socket);

/// Reads without waiting and without taking: a recv of as many bytes takes the same ones. Returns as recv does, with
/// errno. `brings` is set if descriptors come with these bytes, which such a recv closes.
ssize_t stall_socket_peek(int socket, void *_Nonnull buffer, size_t capacity, bool *_Nonnull brings);

/// A number that no other socket ever has; 0 if there is none to be had, as before Linux 4.12 or of what is no socket.
uint64_t stall_socket_identity(int socket);

/// Closes a socket; on a thread of its own if descriptors may be in it. Where no thread can be started, on this one.
void stall_socket_close(int socket);

/// Starts a detached thread. Returns 0 or the errno of pthread_create.
int stall_thread_start_detached(
    const char *_Nonnull name, void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);
