// Calls that change directories and inodes. Those of file systems in memory are not reported.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../descriptors.h"
#include "paths.h"

INTERPOSE(mkdir)
INTERPOSE(mkdirat)
INTERPOSE(rename)
INTERPOSE(renameat)
INTERPOSE(renameat2)
INTERPOSE(unlink)
INTERPOSE(unlinkat)
INTERPOSE(remove)
INTERPOSE(rmdir)
INTERPOSE(link)
INTERPOSE(linkat)
INTERPOSE(symlink)
INTERPOSE(symlinkat)
INTERPOSE(mkstemp)
INTERPOSE(mkstemp64)
INTERPOSE(mkostemp)
INTERPOSE(mkostemp64)
INTERPOSE(mkdtemp)
INTERPOSE(chmod)
INTERPOSE(fchmod)
INTERPOSE(chown)
INTERPOSE(truncate)
INTERPOSE(truncate64)
INTERPOSE(ftruncate)
INTERPOSE(ftruncate64)
INTERPOSE(fallocate)
INTERPOSE(fallocate64)
INTERPOSE(posix_fallocate)
INTERPOSE(posix_fallocate64)
INTERPOSE(futimens)
INTERPOSE(utimensat)

#define CREATE(name, directory, path, arguments) \
    RETURN_CALL(name, blocking_kind_of_creation(directory, path), arguments)
#define CHANGE(name, directory, path, arguments) \
    RETURN_CALL(name, blocking_kind_of_change(directory, path), arguments)
#define CHANGE_FILE(name, arguments) RETURN_CALL(name, blocking_kind_of_file(file), arguments)

// MARK: Names

int mkdir(const char *path, mode_t mode) { CREATE(mkdir, AT_FDCWD, path, (path, mode)); }

int mkdirat(int directory, const char *path, mode_t mode) {
    CREATE(mkdirat, directory, path, (directory, path, mode));
}

int rename(const char *from, const char *to) { CHANGE(rename, AT_FDCWD, from, (from, to)); }

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    CHANGE(renameat, from_directory, from, (from_directory, from, to_directory, to));
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    CHANGE(renameat2, from_directory, from, (from_directory, from, to_directory, to, flags));
}

int unlink(const char *path) { CHANGE(unlink, AT_FDCWD, path, (path)); }

int unlinkat(int directory, const char *path, int flags) {
    CHANGE(unlinkat, directory, path, (directory, path, flags));
}

int remove(const char *path) { CHANGE(remove, AT_FDCWD, path, (path)); }

int rmdir(const char *path) { CHANGE(rmdir, AT_FDCWD, path, (path)); }

int link(const char *from, const char *to) { CREATE(link, AT_FDCWD, to, (from, to)); }

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    CREATE(linkat, to_directory, to, (from_directory, from, to_directory, to, flags));
}

int symlink(const char *target, const char *path) { CREATE(symlink, AT_FDCWD, path, (target, path)); }

int symlinkat(const char *target, int directory, const char *path) {
    CREATE(symlinkat, directory, path, (target, directory, path));
}

int mkstemp(char *path) { CREATE(mkstemp, AT_FDCWD, path, (path)); }

int mkstemp64(char *path) { CREATE(mkstemp64, AT_FDCWD, path, (path)); }

int mkostemp(char *path, int flags) { CREATE(mkostemp, AT_FDCWD, path, (path, flags)); }

int mkostemp64(char *path, int flags) { CREATE(mkostemp64, AT_FDCWD, path, (path, flags)); }

char *mkdtemp(char *path) { CREATE(mkdtemp, AT_FDCWD, path, (path)); }

// MARK: Inodes

int chmod(const char *path, mode_t mode) { CHANGE(chmod, AT_FDCWD, path, (path, mode)); }

int chown(const char *path, uid_t user, gid_t group) { CHANGE(chown, AT_FDCWD, path, (path, user, group)); }

int truncate(const char *path, off_t size) { CHANGE(truncate, AT_FDCWD, path, (path, size)); }

int truncate64(const char *path, off64_t size) { CHANGE(truncate64, AT_FDCWD, path, (path, size)); }

int fchmod(int file, mode_t mode) { CHANGE_FILE(fchmod, (file, mode)); }

int ftruncate(int file, off_t size) { CHANGE_FILE(ftruncate, (file, size)); }

int ftruncate64(int file, off64_t size) { CHANGE_FILE(ftruncate64, (file, size)); }

int fallocate(int file, int mode, off_t at, off_t size) { CHANGE_FILE(fallocate, (file, mode, at, size)); }

int fallocate64(int file, int mode, off64_t at, off64_t size) { CHANGE_FILE(fallocate64, (file, mode, at, size)); }

int posix_fallocate(int file, off_t at, off_t size) { CHANGE_FILE(posix_fallocate, (file, at, size)); }

int posix_fallocate64(int file, off64_t at, off64_t size) { CHANGE_FILE(posix_fallocate64, (file, at, size)); }

int futimens(int file, const struct timespec times[2]) { CHANGE_FILE(futimens, (file, times)); }

int utimensat(int directory, const char *path, const struct timespec times[2], int flags) {
    CHANGE(utimensat, directory, path, (directory, path, times, flags));
}
#endif
