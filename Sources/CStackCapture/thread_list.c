#define _GNU_SOURCE
// The threads of this process, without opendir: it allocates.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stack_capture.h"
#include "stall_task.h"

/// What getdents64(2) fills in.
typedef struct {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
} directory_entry;

// The kernel lists them in the order they were started, which is nearly that of their ids.
static void insert(int32_t *ids, uint32_t count, int32_t id) {
    uint32_t at = count;
    while (at > 0 && ids[at - 1] > id) {
        ids[at] = ids[at - 1];
        at--;
    }
    ids[at] = id;
}

uint32_t stall_threads_list(int32_t *ids, uint32_t capacity, uint32_t *total) {
    _Alignas(directory_entry) char buffer[4096];
    uint32_t count = 0;
    *total = 0;
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return 0;
    long length;
    while ((length = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < length;) {
            const directory_entry *entry = (const directory_entry *)(void *)(buffer + at);
            at += entry->length;
            int32_t id = (int32_t)strtol(entry->name, NULL, 10);
            if (id > 0) id = stall_task_thread(id);
            if (id <= 0) continue;
            (*total)++;
            if (count < capacity) insert(ids, count++, id);
        }
    }
    close(directory);
    return count;
}

bool stall_thread_name(int32_t id, char *name) {
    int file = stall_thread_open(id, "comm");
    if (file < 0) return false;
    ssize_t count = read(file, name, 15);
    close(file);
    if (count <= 0) return false;
    name[count] = 0;
    name[strcspn(name, "\n")] = 0;
    return true;
}
