// CPU statistics of this process's control group and its parents, opened for each reading. Supports both cgroup
// versions. Verdict and evidence share this reader, so that they cannot disagree.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define STALL_CONTROL_GROUP_FILES 16

/// `cpu.stat` of each group that counts throttling.
typedef struct {
    char *_Nullable paths[STALL_CONTROL_GROUP_FILES];
    uint32_t count;
} stall_control_group;

/// Sums over the groups.
typedef struct {
    bool is_readable;         ///< at least one group could be read
    uint64_t throttle_count;  ///< periods in which a quota ran out
    uint64_t throttled_us;    ///< added when a throttling is over
} stall_throttling;

/// Adds a group by the path of its `cpu.stat`. Ignored if there is no room, or if the file cannot be read or does not
/// count throttling, as that of the topmost group. Allocates.
void stall_control_group_add(stall_control_group *_Nonnull group, const char *_Nonnull path);
void stall_control_group_close(stall_control_group *_Nonnull group);
void stall_control_group_read(const stall_control_group *_Nonnull group, stall_throttling *_Nonnull snapshot);
