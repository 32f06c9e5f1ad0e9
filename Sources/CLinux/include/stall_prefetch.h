// The unwind tables of loaded images, which nothing reads before the first stack is unwound.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// Part of a mapping.
typedef struct {
    uint64_t start, length;
} stall_range;

/// Where the unwind tables are: from `.eh_frame_hdr` to the end of its segment, one range an image. Returns how many
/// images have them; stores at most `capacity`.
size_t stall_unwind_tables(stall_range *_Nonnull ranges, size_t capacity);

/// Requests the kernel to read them into its cache.
///
/// The thread that unwinds a stack reads the tables through their mappings. If a page is not in memory and the disk does
/// not answer, that thread waits as long as the disk does, even in process_vm_readv. Allocates; may wait for the disk.
void stall_unwind_tables_prefetch(void);
