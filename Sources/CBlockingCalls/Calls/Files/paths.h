// How a call with a path may block. Nothing here waits for a disk since Linux 5.12, and all preserve errno.
#pragma once
#include <fcntl.h>

#include "../interpose.h"

/// Looking the path up: a disk, if a name or inode of it is not in the kernel's caches.
HIDDEN stall_blocking_kind blocking_kind_of_lookup(int directory, const char *path, bool follows);
/// Opening it with these flags.
HIDDEN stall_blocking_kind blocking_kind_of_opening(int directory, const char *path, int flags);
/// Opening it to read a directory's entries.
HIDDEN stall_blocking_kind blocking_kind_of_listing(int directory, const char *path);
/// Changing what exists there.
HIDDEN stall_blocking_kind blocking_kind_of_change(int directory, const char *path);
/// Adding a name to the path's directory.
HIDDEN stall_blocking_kind blocking_kind_of_creation(int directory, const char *path);
