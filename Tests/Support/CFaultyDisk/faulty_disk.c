#include "faulty_disk.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

static struct {
    sqlite3_vfs vfs;
    sqlite3_io_methods methods;
    sqlite3_vfs *real;
    uint64_t count;
    uint64_t failing;
    uint64_t killing;
} disk;

/// What SQLite allocates for an open file: ours, and behind it the real one.
typedef struct {
    sqlite3_file base;
    sqlite3_file real[];
} faulty_file;

static sqlite3_file *real(sqlite3_file *file) { return ((faulty_file *)file)->real; }

static bool fails(void) {
    if (++disk.count == disk.killing) raise(SIGKILL);
    return disk.count == disk.failing;
}

#define FORWARD(code, call) (fails() ? (code) : (call))
#define REAL(file) (real(file)->pMethods)

static int close_file(sqlite3_file *f) { return REAL(f)->xClose(real(f)); }
static int read_file(sqlite3_file *f, void *bytes, int count, sqlite3_int64 offset) {
    return FORWARD(SQLITE_IOERR_READ, REAL(f)->xRead(real(f), bytes, count, offset));
}
static int write_file(sqlite3_file *f, const void *bytes, int count, sqlite3_int64 offset) {
    if (disk.count + 1 == disk.killing) REAL(f)->xWrite(real(f), bytes, count / 2, offset);
    // Every other failing write is a full disk, and writes only half of the data.
    if (!fails()) return REAL(f)->xWrite(real(f), bytes, count, offset);
    REAL(f)->xWrite(real(f), bytes, count / 2, offset);
    return disk.failing % 2 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
static int truncate_file(sqlite3_file *f, sqlite3_int64 size) {
    return FORWARD(SQLITE_IOERR_TRUNCATE, REAL(f)->xTruncate(real(f), size));
}
static int sync_file(sqlite3_file *f, int flags) {
    return FORWARD(SQLITE_IOERR_FSYNC, REAL(f)->xSync(real(f), flags));
}
static int file_size(sqlite3_file *f, sqlite3_int64 *size) {
    return FORWARD(SQLITE_IOERR_FSTAT, REAL(f)->xFileSize(real(f), size));
}
static int lock_file(sqlite3_file *f, int level) {
    return FORWARD(SQLITE_IOERR_LOCK, REAL(f)->xLock(real(f), level));
}
static int unlock_file(sqlite3_file *f, int level) { return REAL(f)->xUnlock(real(f), level); }
static int check_lock(sqlite3_file *f, int *is_locked) {
    return REAL(f)->xCheckReservedLock(real(f), is_locked);
}
static int control_file(sqlite3_file *f, int operation, void *argument) {
    return REAL(f)->xFileControl(real(f), operation, argument);
}
static int sector_size(sqlite3_file *f) { return REAL(f)->xSectorSize(real(f)); }
static int characteristics(sqlite3_file *f) { return REAL(f)->xDeviceCharacteristics(real(f)); }
static int map_index(sqlite3_file *f, int page, int size, int extend, void volatile **memory) {
    return FORWARD(SQLITE_IOERR_SHMMAP, REAL(f)->xShmMap(real(f), page, size, extend, memory));
}
static int lock_index(sqlite3_file *f, int offset, int count, int flags) {
    // Giving a lock back does not fail.
    if (flags & SQLITE_SHM_UNLOCK) return REAL(f)->xShmLock(real(f), offset, count, flags);
    return FORWARD(SQLITE_IOERR_SHMLOCK, REAL(f)->xShmLock(real(f), offset, count, flags));
}
static void barrier(sqlite3_file *f) { REAL(f)->xShmBarrier(real(f)); }
static int unmap_index(sqlite3_file *f, int remove) { return REAL(f)->xShmUnmap(real(f), remove); }

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *out) {
    (void)vfs;
    f->pMethods = NULL;
    if (fails()) return SQLITE_CANTOPEN;
    int code = disk.real->xOpen(disk.real, path, real(f), flags, out);
    if (real(f)->pMethods) f->pMethods = &disk.methods;
    return code;
}
static int delete_file(sqlite3_vfs *vfs, const char *path, int sync) {
    (void)vfs;
    return FORWARD(SQLITE_IOERR_DELETE, disk.real->xDelete(disk.real, path, sync));
}
static int access_file(sqlite3_vfs *vfs, const char *path, int flags, int *answer) {
    (void)vfs;
    return FORWARD(SQLITE_IOERR_ACCESS, disk.real->xAccess(disk.real, path, flags, answer));
}
static int full_path(sqlite3_vfs *vfs, const char *path, int count, char *out) {
    (void)vfs;
    return disk.real->xFullPathname(disk.real, path, count, out);
}

int faulty_disk_install(void) {
    disk.real = sqlite3_vfs_find(NULL);
    if (!disk.real) return SQLITE_ERROR;
    disk.vfs = *disk.real;
    disk.vfs.zName = "faulty";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile = (int)sizeof(faulty_file) + disk.real->szOsFile;
    disk.vfs.xOpen = open_file;
    disk.vfs.xDelete = delete_file;
    disk.vfs.xAccess = access_file;
    disk.vfs.xFullPathname = full_path;
    disk.methods = (sqlite3_io_methods){
        .iVersion = 2, .xClose = close_file, .xRead = read_file, .xWrite = write_file,
        .xTruncate = truncate_file, .xSync = sync_file, .xFileSize = file_size, .xLock = lock_file,
        .xUnlock = unlock_file, .xCheckReservedLock = check_lock, .xFileControl = control_file,
        .xSectorSize = sector_size, .xDeviceCharacteristics = characteristics, .xShmMap = map_index,
        .xShmLock = lock_index, .xShmBarrier = barrier, .xShmUnmap = unmap_index};
    return sqlite3_vfs_register(&disk.vfs, 1);
}

void faulty_disk_fail_at(uint64_t number) {
    disk.count = 0;
    disk.failing = number;
    disk.killing = 0;
}

void faulty_disk_kill_at(uint64_t number) {
    faulty_disk_fail_at(0);
    disk.killing = number;
}

uint64_t faulty_disk_count(void) { return disk.count; }
