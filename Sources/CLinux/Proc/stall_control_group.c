#define _GNU_SOURCE
#include "stall_control_group.h"
#include "stall_descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPACITY = 2048 };

static bool read_path(const char *path, char *text) {
    const int file = stall_descriptor_open_to_read(path, 0);
    if (file < 0) return false;
    const ssize_t count = pread(file, text, CAPACITY - 1, 0);
    stall_descriptor_end(file);
    text[count > 0 ? count : 0] = 0;
    return count > 0;
}

void stall_control_group_add(stall_control_group *group, const char *path) {
    char text[CAPACITY];
    if (group->count == STALL_CONTROL_GROUP_FILES || !read_path(path, text) || !strstr(text, "nr_throttled ")) return;
    char *copy = strdup(path);
    if (copy) group->paths[group->count++] = copy;
}

void stall_control_group_close(stall_control_group *group) {
    for (uint32_t index = 0; index < group->count; index++) free(group->paths[index]);
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
        char text[CAPACITY];
        if (!read_path(group->paths[index], text)) continue;
        snapshot->is_readable = true;
        snapshot->throttle_count += number_after(text, "nr_throttled ");
        // cgroup v1 counts nanoseconds.
        snapshot->throttled_us += number_after(text, "throttled_usec ") + number_after(text, "throttled_time ") / 1000;
    }
}
