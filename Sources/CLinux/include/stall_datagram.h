// Sends a message to a Unix datagram socket, like systemd's sd_notify.
#pragma once
#include <stdbool.h>

/// Sends `text` to the socket at `path`; a path that begins with `@` is an abstract name. Does not wait. False with
/// errno on failure.
bool stall_datagram_send(const char *_Nonnull path, const char *_Nonnull text);
