// How a descriptor may block, beyond blocking_kind_of_descriptor. Nothing here blocks, and all preserve errno.
#pragma once
#include <sys/socket.h>

#include "blocking.h"

/// The kind of a regular file, directory or block device, 0 for everything else and for files that live in memory.
HIDDEN stall_blocking_kind blocking_kind_of_file(int descriptor);
/// Whether a wait on the descriptor returns at once because of O_NONBLOCK.
HIDDEN bool blocking_is_nonblocking(int descriptor);
/// Whether the descriptor is a socket whose connect sends nothing.
HIDDEN bool blocking_is_connectionless(int descriptor);
/// The kind of a file of this mode (st_mode) that `descriptor` refers to, which may have been opened with O_PATH.
HIDDEN stall_blocking_kind blocking_kind_of_mode(int descriptor, unsigned mode);
