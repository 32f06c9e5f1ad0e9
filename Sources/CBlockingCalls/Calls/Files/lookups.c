// Calls that look a path up or list a directory.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <dirent.h>
#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "paths.h"

extern ssize_t __readlink_chk(const char *, char *, size_t, size_t);
extern ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
extern char *__realpath_chk(const char *, char *, size_t);

INTERPOSE(statx)
INTERPOSE(statfs)
INTERPOSE(statfs64)
INTERPOSE(statvfs)
INTERPOSE(statvfs64)
INTERPOSE(access)
INTERPOSE(faccessat)
INTERPOSE(readlink)
INTERPOSE(readlinkat)
INTERPOSE(__readlink_chk)
INTERPOSE(__readlinkat_chk)
INTERPOSE(realpath)
INTERPOSE(__realpath_chk)
INTERPOSE(opendir)
INTERPOSE(readdir)
INTERPOSE(readdir64)
INTERPOSE(scandir)
INTERPOSE(scandir64)
INTERPOSE(fts_read)

#define LOOK_UP(name, directory, follows, arguments) LOOK_UP_AS(#name, name, directory, follows, arguments)
#define LOOK_UP_AS(source_name, name, directory, follows, arguments) \
    RETURN_CALL_AS(source_name, name, blocking_kind_of_lookup(directory, path, follows), arguments)

// Before 2.33 libc has these only in the part of it that is linked into each program.
#if __GLIBC_PREREQ(2, 33)
INTERPOSE(stat)
INTERPOSE(stat64)
INTERPOSE(lstat)
INTERPOSE(lstat64)
INTERPOSE(fstatat)
INTERPOSE(fstatat64)

int stat(const char *path, struct stat *file) { LOOK_UP(stat, AT_FDCWD, true, (path, file)); }

int stat64(const char *path, struct stat64 *file) { LOOK_UP(stat64, AT_FDCWD, true, (path, file)); }

int lstat(const char *path, struct stat *file) { LOOK_UP(lstat, AT_FDCWD, false, (path, file)); }

int lstat64(const char *path, struct stat64 *file) { LOOK_UP(lstat64, AT_FDCWD, false, (path, file)); }

int fstatat(int directory, const char *path, struct stat *file, int flags) {
    LOOK_UP(fstatat, directory, !(flags & AT_SYMLINK_NOFOLLOW), (directory, path, file, flags));
}

int fstatat64(int directory, const char *path, struct stat64 *file, int flags) {
    LOOK_UP(fstatat64, directory, !(flags & AT_SYMLINK_NOFOLLOW), (directory, path, file, flags));
}
#endif

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *file) {
    LOOK_UP(statx, directory, !(flags & AT_SYMLINK_NOFOLLOW), (directory, path, flags, mask, file));
}

int statfs(const char *path, struct statfs *system) { LOOK_UP(statfs, AT_FDCWD, true, (path, system)); }

int statfs64(const char *path, struct statfs64 *system) { LOOK_UP(statfs64, AT_FDCWD, true, (path, system)); }

int statvfs(const char *path, struct statvfs *system) { LOOK_UP(statvfs, AT_FDCWD, true, (path, system)); }

int statvfs64(const char *path, struct statvfs64 *system) { LOOK_UP(statvfs64, AT_FDCWD, true, (path, system)); }

int access(const char *path, int mode) { LOOK_UP(access, AT_FDCWD, true, (path, mode)); }

int faccessat(int directory, const char *path, int mode, int flags) {
    LOOK_UP(faccessat, directory, !(flags & AT_SYMLINK_NOFOLLOW), (directory, path, mode, flags));
}

ssize_t readlink(const char *path, char *target, size_t size) {
    LOOK_UP(readlink, AT_FDCWD, false, (path, target, size));
}

ssize_t readlinkat(int directory, const char *path, char *target, size_t size) {
    LOOK_UP(readlinkat, directory, false, (directory, path, target, size));
}

char *realpath(const char *path, char *resolved) { LOOK_UP(realpath, AT_FDCWD, true, (path, resolved)); }

// Programs that are compiled with _FORTIFY_SOURCE call these where the size of their buffer is known.
ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t limit) {
    LOOK_UP_AS("readlink", __readlink_chk, AT_FDCWD, false, (path, target, size, limit));
}

ssize_t __readlinkat_chk(int directory, const char *path, char *target, size_t size, size_t limit) {
    LOOK_UP_AS("readlinkat", __readlinkat_chk, directory, false, (directory, path, target, size, limit));
}

char *__realpath_chk(const char *path, char *resolved, size_t limit) {
    LOOK_UP_AS("realpath", __realpath_chk, AT_FDCWD, true, (path, resolved, limit));
}

// MARK: Entries

// The directory is opened to be read.
DIR *opendir(const char *path) { RETURN_CALL(opendir, blocking_kind_of_listing(AT_FDCWD, path), (path)); }

// libc reads many entries at once and does not show whether any are left.
struct dirent *readdir(DIR *directory) {
    RETURN_CALL(readdir, blocking_kind_of_descriptor(dirfd(directory), false), (directory));
}

struct dirent64 *readdir64(DIR *directory) {
    RETURN_CALL(readdir64, blocking_kind_of_descriptor(dirfd(directory), false), (directory));
}

int scandir(
    const char *path, struct dirent ***entries, int (*is_wanted)(const struct dirent *),
    int (*order)(const struct dirent **, const struct dirent **)) {
    RETURN_CALL(scandir, blocking_kind_of_listing(AT_FDCWD, path), (path, entries, is_wanted, order));
}

int scandir64(
    const char *path, struct dirent64 ***entries, int (*is_wanted)(const struct dirent64 *),
    int (*order)(const struct dirent64 **, const struct dirent64 **)) {
    RETURN_CALL(scandir64, blocking_kind_of_listing(AT_FDCWD, path), (path, entries, is_wanted, order));
}

// The step after a directory reads it. FileManager.enumerator walks with this.
static stall_blocking_kind kind_of_step(const FTS *tree) {
    const FTSENT *at = tree->fts_cur;
    return at && at->fts_info == FTS_D ? blocking_kind_of_listing(AT_FDCWD, at->fts_accpath) : 0;
}

FTSENT *fts_read(FTS *tree) { RETURN_CALL(fts_read, kind_of_step(tree), (tree)); }
#endif
