#define _GNU_SOURCE
#include "stall_control_group.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stall_descriptors.h"

void stall_control_group_add(stall_control_group *group, const char *path) {
    if (group->count == STALL_CONTROL_GROUP_FILES) return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) group->files[group->count++] = stall_descriptor_own(file);
}

void stall_control_group_close(stall_control_group *group) {
    for (uint32_t index = 0; index < group->count; index++) stall_descriptor_close(group->files[index]);
    group->count = 0;
}

// The number after a label at the beginning of a line; 0 if there is none.
static uint64_t number_after(const char *text, const char *label) {
    size_t length = strlen(label);
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (strncmp(line, label, length) == 0) return strtoull(line + length, NULL, 10);
    return 0;
}

void stall_control_group_read(const stall_control_group *group, stall_throttling *snapshot) {
    *snapshot = (stall_throttling){0};
    for (uint32_t index = 0; index < group->count; index++) {
        char text[2048];
        ssize_t count = pread(group->files[index], text, sizeof text - 1, 0);
        if (count <= 0) continue;
        text[count] = 0;
        snapshot->is_readable = true;
        snapshot->throttle_count += number_after(text, "nr_throttled ");
        // cgroup v1 counts nanoseconds.
        snapshot->throttled_us += number_after(text, "throttled_usec ") + number_after(text, "throttled_time ") / 1000;
    }
}
