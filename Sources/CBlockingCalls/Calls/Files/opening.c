// Opens of files, and of the streams and directories on them.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "paths.h"

extern int __open_2(const char *, int);
extern int __open64_2(const char *, int);
extern int __openat_2(int, const char *, int);
extern int __openat64_2(int, const char *, int);

INTERPOSE(open)
INTERPOSE(open64)
INTERPOSE(openat)
INTERPOSE(openat64)
INTERPOSE(creat)
INTERPOSE(creat64)
INTERPOSE(__open_2)
INTERPOSE(__open64_2)
INTERPOSE(__openat_2)
INTERPOSE(__openat64_2)
INTERPOSE(fopen)
INTERPOSE(fopen64)

// The mode is passed only if a file may be created.
#define READ_MODE                                                   \
    mode_t mode = 0;                                                \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {      \
        va_list arguments;                                          \
        va_start(arguments, flags);                                 \
        mode = va_arg(arguments, mode_t);                           \
        va_end(arguments);                                          \
    }

#define OPEN(name, directory, arguments) OPEN_AS(#name, name, directory, arguments)
#define OPEN_AS(source_name, name, directory, arguments) \
    RETURN_CALL_AS(source_name, name, blocking_kind_of_opening(directory, path, flags), arguments)

int open(const char *path, int flags, ...) {
    READ_MODE
    OPEN(open, AT_FDCWD, (path, flags, mode));
}

int open64(const char *path, int flags, ...) {
    READ_MODE
    OPEN(open64, AT_FDCWD, (path, flags, mode));
}

int openat(int directory, const char *path, int flags, ...) {
    READ_MODE
    OPEN(openat, directory, (directory, path, flags, mode));
}

int openat64(int directory, const char *path, int flags, ...) {
    READ_MODE
    OPEN(openat64, directory, (directory, path, flags, mode));
}

int creat(const char *path, mode_t mode) {
    const int flags = O_CREAT | O_TRUNC | O_WRONLY;
    OPEN(creat, AT_FDCWD, (path, mode));
}

int creat64(const char *path, mode_t mode) {
    const int flags = O_CREAT | O_TRUNC | O_WRONLY;
    OPEN(creat64, AT_FDCWD, (path, mode));
}

// Programs that are compiled with _FORTIFY_SOURCE call these where the flags are not constant and no mode is passed.
int __open_2(const char *path, int flags) { OPEN_AS("open", __open_2, AT_FDCWD, (path, flags)); }

int __open64_2(const char *path, int flags) { OPEN_AS("open64", __open64_2, AT_FDCWD, (path, flags)); }

int __openat_2(int directory, const char *path, int flags) {
    OPEN_AS("openat", __openat_2, directory, (directory, path, flags));
}

int __openat64_2(int directory, const char *path, int flags) {
    OPEN_AS("openat64", __openat64_2, directory, (directory, path, flags));
}

static int flags_of(const char *mode) {
    const bool writes = *mode == 'w' || *mode == 'a';
    const int access = strchr(mode, '+') ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
    return access | (writes ? O_CREAT : 0) | (*mode == 'w' ? O_TRUNC : 0);
}

FILE *fopen(const char *path, const char *mode) {
    RETURN_CALL(fopen, blocking_kind_of_opening(AT_FDCWD, path, flags_of(mode)), (path, mode));
}

FILE *fopen64(const char *path, const char *mode) {
    RETURN_CALL(fopen64, blocking_kind_of_opening(AT_FDCWD, path, flags_of(mode)), (path, mode));
}
#endif
