// Plants that open, change, list, sync and lock files.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planting.h"

static int opened = -1;
static char template[4200];

static void close_opened(void) {
    if (opened >= 0) close(opened);
    opened = -1;
}
static void remove_new(void) {
    close_opened();
    unlink(plants_path("new"));
    rmdir(plants_path("new"));
}
static void make_file(void) {
    remove_new();
    NEED((opened = open(plants_path("new"), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0);
    NEED(write(opened, "text", 4) == 4);
}
static void make_directory(void) {
    remove_new();
    NEED(mkdir(plants_path("new"), 0700) == 0);
}
static void make_template(void) {
    close_opened();
    snprintf(template, sizeof template, "%s", plants_path("XXXXXX"));
}

// With a writer, the open for reading returns at once.
static int writer = -1;
static void make_fifo(void) {
    close_opened();
    if (writer >= 0) return;
    NEED(mkfifo(plants_path("fifo"), 0600) == 0);
    NEED((writer = open(plants_path("fifo"), O_RDWR | O_CLOEXEC)) >= 0);
}

PLANT(open_to_create) { NEED((opened = open(plants_path("new"), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0); }
PLANT(open_to_truncate) {
    close_opened();
    NEED((opened = open(plants_path("new"), O_RDWR | O_TRUNC | O_CLOEXEC)) >= 0);
}
PLANT(openat_to_create) {
    NEED((opened = openat(AT_FDCWD, plants_path("new"), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0);
}
PLANT(creat) { NEED((opened = creat(plants_path("new"), 0600)) >= 0); }
PLANT(open_fifo) { NEED((opened = open(plants_path("fifo"), O_RDONLY | O_CLOEXEC)) >= 0); }
PLANT(mkstemp) { NEED((opened = mkstemp(template)) >= 0); }
PLANT(mkdtemp) { NEED(mkdtemp(template)); }

// MARK: Changes

PLANT(mkdir) { NEED(mkdir(plants_path("new"), 0700) == 0); }
PLANT(mkdirat) { NEED(mkdirat(AT_FDCWD, plants_path("new"), 0700) == 0); }
PLANT(rename) { NEED(rename(plants_path("new"), plants_path("renamed")) == 0); }
PLANT(unlink) { NEED(unlink(plants_path("new")) == 0); }
PLANT(unlinkat) { NEED(unlinkat(AT_FDCWD, plants_path("new"), 0) == 0); }
PLANT(remove) { NEED(remove(plants_path("new")) == 0); }
PLANT(rmdir) { NEED(rmdir(plants_path("new")) == 0); }
PLANT(link) { NEED(link(plants_path("file"), plants_path("new")) == 0); }
PLANT(symlink) { NEED(symlink("file", plants_path("new")) == 0); }
PLANT(chmod) { NEED(chmod(plants_path("file"), 0600) == 0); }
PLANT(fchmod) { NEED(fchmod(plants_file, 0600) == 0); }
PLANT(chown) { NEED(chown(plants_path("file"), (uid_t)-1, (gid_t)-1) == 0); }
PLANT(truncate) { NEED(truncate(plants_path("new"), 100) == 0); }
PLANT(ftruncate) { NEED(ftruncate(opened, 100) == 0); }
PLANT(posix_fallocate) { NEED(posix_fallocate(opened, 0, 4096) == 0); }
PLANT(utimensat) { NEED(utimensat(AT_FDCWD, plants_path("file"), NULL, 0) == 0); }

// MARK: Directories

static DIR *directory;

static void close_directory(void) {
    if (directory) closedir(directory);
    directory = NULL;
}
static void open_directory(void) {
    close_directory();
    NEED(directory = opendir(plants_directory));
}

static FTS *tree;

static void open_tree(void) {
    if (tree) fts_close(tree);
    char *const roots[] = {plants_directory, NULL};
    NEED(tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL));
    NEED(fts_read(tree));
}

PLANT(fts_read) { NEED(fts_read(tree)); }
PLANT(opendir) { NEED(directory = opendir(plants_directory)); }
PLANT(readdir) { NEED(readdir(directory)); }
PLANT(scandir) {
    struct dirent **entries;
    const int count = scandir(plants_directory, &entries, NULL, NULL);
    NEED(count > 0);
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
}

// MARK: Syncs and locks

static void *page;

static void map_page(void) {
    if (!page) page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, plants_file, 0);
    NEED(page != MAP_FAILED);
}

PLANT(fsync) { NEED(fsync(plants_file) == 0); }
PLANT(fdatasync) { NEED(fdatasync(plants_file) == 0); }
PLANT(sync_file_range) { NEED(sync_file_range(plants_file, 0, 4096, SYNC_FILE_RANGE_WRITE) == 0); }
PLANT(msync) { NEED(msync(page, 4096, MS_SYNC) == 0); }

static void unlock(void) {
    flock(plants_file, LOCK_UN);
    const struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(plants_file, F_SETLK, &lock);
}

PLANT(flock) { NEED(flock(plants_file, LOCK_EX) == 0); }
PLANT(lockf) { NEED(lockf(plants_file, F_LOCK, 0) == 0); }
PLANT(fcntl_lock) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    NEED(fcntl(plants_file, F_SETLKW, &lock) == 0);
}

#define DISK(name, prepare) {#name, STALL_BLOCKING_DISK, prepare, plant_##name}
static void *library;

static void close_library(void) {
    if (library) dlclose(library);
    library = NULL;
}

PLANT(dlopen) { NEED(library = dlopen("libutil.so.1", RTLD_LAZY | RTLD_LOCAL)); }

static const plant plants[] = {
    DISK(dlopen, close_library),
    DISK(open_to_create, remove_new),
    DISK(open_to_truncate, make_file),
    DISK(openat_to_create, remove_new),
    DISK(creat, remove_new),
    {"open_fifo", STALL_BLOCKING_IPC, make_fifo, plant_open_fifo},
    DISK(mkstemp, make_template),
    DISK(mkdtemp, make_template),
    DISK(mkdir, remove_new),
    DISK(mkdirat, remove_new),
    DISK(rename, make_file),
    DISK(unlink, make_file),
    DISK(unlinkat, make_file),
    DISK(remove, make_file),
    DISK(rmdir, make_directory),
    DISK(link, remove_new),
    DISK(symlink, remove_new),
    DISK(chmod, NULL),
    DISK(fchmod, NULL),
    DISK(chown, NULL),
    DISK(truncate, make_file),
    DISK(ftruncate, make_file),
    DISK(posix_fallocate, make_file),
    DISK(utimensat, NULL),
    DISK(opendir, close_directory),
    DISK(readdir, open_directory),
    DISK(scandir, NULL),
    DISK(fts_read, open_tree),
    DISK(fsync, NULL),
    DISK(fdatasync, NULL),
    DISK(sync_file_range, NULL),
    DISK(msync, map_page),
    {"flock", STALL_BLOCKING_LOCK, unlock, plant_flock},
    {"lockf", STALL_BLOCKING_LOCK, unlock, plant_lockf},
    {"fcntl_lock", STALL_BLOCKING_LOCK, unlock, plant_fcntl_lock},
};
const plant_family file_family = {plants, COUNT_OF(plants)};
