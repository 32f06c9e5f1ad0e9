// A message to a Unix datagram socket, which is what systemd's sd_notify sends.
#pragma once
#include <stdbool.h>

/// Sends `text` to the socket at `path`; a path that begins with `@` is an abstract name. Waits for nothing. False and
/// errno.
bool stall_datagram_send(const char *_Nonnull path, const char *_Nonnull text);
