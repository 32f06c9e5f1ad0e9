#define _GNU_SOURCE
#include "preload_waits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// Programs that test their libc pass addresses that are none, and expect EFAULT.
static bool is_readable(const wait_call *call) {
    const uintptr_t address = (uintptr_t)call->descriptors;
    return address >= 4096 && address < UINTPTR_MAX >> 17;
}

static int descriptor_at(const wait_call *call, size_t index) {
    return *(const int *)((const char *)call->descriptors + index * call->stride);
}

static bool has_file(const seen_wait *seen, int file) {
    for (int i = 0; i < seen->file_count; i++) {
        if (seen->files[i] == file) return true;
    }
    return false;
}

// Different descriptors, as many as there is room for.
static seen_wait describe(const wait_call *call) {
    seen_wait seen = {.call = call->call, .place = call->place, .returns = 1, .total = 1};
    if (call->call.kind == DOOR_EPOLL) {
        seen.files[seen.file_count++] = (int)call->call.key;
        return seen;
    }
    if (!is_readable(call)) return seen;
    for (size_t i = 0; i < call->count && seen.file_count < WAIT_FILES; i++) {
        const int file = descriptor_at(call, i);
        if (file >= 0 && !has_file(&seen, file)) seen.files[seen.file_count++] = file;
    }
    return seen;
}

static bool announces_events(int file) {
    static const char anonymous[] = "anon_inode:", process[] = "anon_inode:[pidfd]";
    char path[32], target[32] = "";
    int is_listening = 0;
    socklen_t size = sizeof is_listening;
    if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0) return is_listening != 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (readlink(path, target, sizeof target - 1) < 0) return false;
    return strncmp(target, anonymous, strlen(anonymous)) == 0 && strncmp(target, process, strlen(process)) != 0;
}

static int strength_of(const seen_wait *seen) {
    if (seen->call.kind == DOOR_EPOLL) return WAIT_FOR_SET;
    if (seen->file_count == 0) return WAIT_FOR_NOTHING;
    if (seen->file_count > 1) return WAIT_FOR_SEVERAL;
    return announces_events(seen->files[0]) ? WAIT_FOR_SOURCE : WAIT_FOR_ONE;
}

// The same function waits for one of the same descriptors: others come and go.
static bool is_same(const seen_wait *seen, const seen_wait *call) {
    if (seen->call.kind != call->call.kind || seen->call.key != call->call.key) return false;
    for (int i = 0; i < call->file_count; i++) {
        if (has_file(seen, call->files[i])) return true;
    }
    return false;
}

// Foundation's run loops poll the descriptor of their epoll set and then take what is there, from one frame: both are waits
// for the set.
static void take_for_set(seen_wait *now, const seen_wait *seen) {
    if (seen->call.kind != DOOR_EPOLL || now->call.kind == DOOR_EPOLL) return;
    if (now->file_count != 1 || now->files[0] != seen->files[0]) return;
    now->call = seen->call;
    now->place.caller = seen->place.caller;
}

static void come_back(seen_wait *seen, door_place place) {
    const bool is_there = seen->place.frame == place.frame && seen->place.caller == place.caller;
    seen->returns = is_there ? seen->returns + (seen->returns < UINT32_MAX) : 1;
    seen->total += seen->total < UINT32_MAX;
    seen->place = place;
}

// Of the open file behind a descriptor; 0 if there is none. All epoll sets have the same, but hardly take another's number.
static uint64_t file_id(int file) {
    struct stat status;
    if (fstat(file, &status) != 0) return 0;
    return status.st_dev * UINT64_C(0x9e3779b97f4a7c15) + status.st_ino + 1;
}

static bool is_closed(const thread_waits *waits) {
    const int count = __atomic_load_n(&waits->loop.file_count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; i++) {
        const int file = __atomic_load_n(&waits->loop.files[i], __ATOMIC_RELAXED);
        if (file_id(file) == __atomic_load_n(&waits->file_ids[i], __ATOMIC_RELAXED)) return false;
    }
    return count > 0;
}

bool waits_are_over(const thread_waits *waits) {
    const int saved = errno;
    const bool are_over = is_closed(waits);
    errno = saved;
    return are_over;
}

// The longer a loop has been one, the more it takes: a callout may wait for its own request again and again.
static uint32_t needed_returns(const seen_wait *loop) {
    const uint32_t most = 64, needed = loop->total / 8;
    return needed < ENOUGH_RETURNS ? ENOUGH_RETURNS : needed > most ? most : needed;
}

static bool replaces_loop(const thread_waits *waits) {
    const seen_wait *other = &waits->other, *loop = &waits->loop;
    if (other->strength <= WAIT_FOR_ONE) return false;
    if (loop->call.kind == 0) return other->strength >= WAIT_FOR_SEVERAL || other->returns >= ENOUGH_RETURNS;
    if (other->strength > loop->strength) return true;
    if (other->strength == loop->strength && loop->total < ENOUGH_RETURNS) return true;
    if (other->total == 1 && is_closed(waits)) return true;
    return other->returns >= needed_returns(loop);
}

// Another thread may read the descriptors meanwhile.
static void set_loop(thread_waits *waits, seen_wait next) {
    waits->former = waits->loop;
    __atomic_store_n(&waits->loop.file_count, 0, __ATOMIC_RELAXED);
    const int32_t count = next.file_count;
    next.file_count = 0;
    waits->loop = next;
    for (int i = 0; i < count; i++) waits->file_ids[i] = file_id(next.files[i]);
    __atomic_store_n(&waits->loop.file_count, count, __ATOMIC_RELEASE);
    waits->other = (seen_wait){0};
}

bool waits_note(thread_waits *waits, const wait_call *call) {
    const int saved = errno;
    seen_wait now = describe(call);
    bool rests = true;
    take_for_set(&now, &waits->loop);
    take_for_set(&now, &waits->former);
    if (is_same(&waits->loop, &now)) {
        come_back(&waits->loop, now.place);
        if (waits->other.call.kind != 0) waits->other = (seen_wait){0};
    } else if (waits->former.total >= ENOUGH_RETURNS && is_same(&waits->former, &now)) {
        seen_wait former = waits->former;
        come_back(&former, now.place);
        set_loop(waits, former);
    } else {
        if (is_same(&waits->other, &now)) {
            come_back(&waits->other, now.place);
        } else {
            now.strength = strength_of(&now);
            waits->other = now;
        }
        rests = replaces_loop(waits);
        if (rests) set_loop(waits, waits->other);
    }
    errno = saved;
    return rests;
}
