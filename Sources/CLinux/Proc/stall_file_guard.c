#define _GNU_SOURCE
#include "stall_file_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "number_set.h"
#include "stall_descriptors.h"

static __thread bool is_guarding;

// The numbers under which guarded files were opened.
static number_set opened;

static bool is_guarded(int number) { return is_guarding && number_set_has(&opened, number); }

// Whether the app has another file there by now, or none.
static bool is_lost(int number) {
    if (!is_guarded(number) || !stall_descriptor_is_foreign(number)) return false;
    errno = EBADF;
    return true;
}

static struct {
    int (*open)(const char *, int, int);
    int (*close)(int);
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*pwrite)(int, const void *, size_t, off_t);
    ssize_t (*pwrite64)(int, const void *, size_t, off_t);
    int (*ftruncate)(int, off_t);
    int (*fcntl)(int, int, void *);
    int (*fallocate)(int, off_t, off_t);
    int (*fchmod)(int, mode_t);
    int (*fchown)(int, uid_t, gid_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
} original;

static int guarded_open(const char *path, int flags, int mode) {
    const int file = original.open(path, flags, mode);
    if (!is_guarding) return file;
    // SQLite would fill the standard numbers with /dev/null, for as long as the process lives.
    const int number = stall_descriptor_own(file);
    number_set_change(&opened, number, true);
    return number;
}

static int guarded_close(int number) {
    if (!is_guarded(number)) return original.close(number);
    number_set_change(&opened, number, false);
    return stall_descriptor_is_foreign(number) ? 0 : original.close(number);
}

static ssize_t guarded_write(int number, const void *bytes, size_t count) {
    return is_lost(number) ? -1 : original.write(number, bytes, count);
}

static ssize_t guarded_pwrite(int number, const void *bytes, size_t count, off_t at) {
    return is_lost(number) ? -1 : original.pwrite(number, bytes, count, at);
}

static ssize_t guarded_pwrite64(int number, const void *bytes, size_t count, off_t at) {
    return is_lost(number) ? -1 : original.pwrite64(number, bytes, count, at);
}

static int guarded_ftruncate(int number, off_t size) {
    return is_lost(number) ? -1 : original.ftruncate(number, size);
}

// SQLite's locks, which are of the process and would fall on the app's file.
static int guarded_fcntl(int number, int command, void *argument) {
    return is_lost(number) ? -1 : original.fcntl(number, command, argument);
}

static int guarded_fallocate(int number, off_t at, off_t size) {
    return is_lost(number) ? EBADF : original.fallocate(number, at, size);
}

static int guarded_fchmod(int number, mode_t mode) { return is_lost(number) ? -1 : original.fchmod(number, mode); }

static int guarded_fchown(int number, uid_t user, gid_t group) {
    return is_lost(number) ? -1 : original.fchown(number, user, group);
}

// The index of a log is written through its mapping.
static void *guarded_mmap(void *address, size_t size, int protection, int flags, int number, off_t at) {
    return is_lost(number) ? MAP_FAILED : original.mmap(address, size, protection, flags, number, at);
}

static const struct {
    const char *name;
    stall_any_function *original;
    stall_any_function guarded;
} calls[] = {
#define CALL(name) {#name, (stall_any_function *)(void *)&original.name, (stall_any_function)guarded_##name}
    CALL(open),
    CALL(close),
    CALL(write),
    CALL(pwrite),
    CALL(pwrite64),
    CALL(ftruncate),
    CALL(fcntl),
    CALL(fallocate),
    CALL(fchmod),
    CALL(fchown),
    CALL(mmap),
#undef CALL
};
enum { COUNT = sizeof calls / sizeof *calls };

const char *stall_file_guard_name(int index) { return index < COUNT ? calls[index].name : NULL; }

stall_any_function stall_file_guard_wrap(int index, stall_any_function function) {
    if (index < 0 || index >= COUNT || function == calls[index].guarded) return NULL;
    __atomic_store_n(calls[index].original, function, __ATOMIC_RELEASE);
    return calls[index].guarded;
}

void stall_file_guard_begin(void) { is_guarding = true; }
void stall_file_guard_end(void) { is_guarding = false; }
