#define _GNU_SOURCE
#include "stall_descriptors.h"
#include "stall_page_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stall_clock.h"
#include "stall_system_call.h"

// The file has two of these, written in turn: a process that is killed in a write leaves the one before.
typedef struct {
    uint64_t sequence;
    uint64_t checksum;  // of what follows
    char boot[40];      // the times are those of one boot
    stall_process_record record;
} copied_page;

enum { PART = 4096, COPIES = 8, FREE = 0, ACTIVE, ENDING, REMOVING };
_Static_assert(sizeof(copied_page) <= PART, "one part of the file");
#define FLUSH_NS UINT64_C(20000000)

// By monitor. Confined to the copying thread but for the words, which others change.
static struct copy {
    pid_t owner;
    uint32_t state;
    uint32_t changes;    // a futex word: how many there were
    uint32_t copied;     // a futex word: how many of them are in the file
    uint32_t is_asleep;  // the thread waits for a change
    uint32_t is_late;    // a flush waited in vain
    int32_t thread;
    const stall_process_record *page;
    uint64_t run[2], sequence;
    dev_t device;
    ino_t inode;
    char boot[40], path[PATH_MAX];
} copies[COPIES];

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    return stall_system_call(
        SYS_futex, (uintptr_t)word, (uint64_t)(operation | FUTEX_PRIVATE_FLAG), value, (uintptr_t)timeout, 0, 0);
}

static struct copy *own_copy(int32_t monitor) {
    struct copy *copy = monitor >= 0 && monitor < COPIES ? &copies[monitor] : NULL;
    if (!copy || __atomic_load_n(&copy->state, __ATOMIC_ACQUIRE) == FREE) return NULL;
    return copy->owner == stall_own_process() ? copy : NULL;
}

// MARK: Whether one is needed

static size_t read_text(const char *path, char *text, size_t size) {
    const int file = stall_descriptor_open_to_read(path, 0);
    const ssize_t count = file >= 0 ? read(file, text, size - 1) : 0;
    if (file >= 0) stall_descriptor_end(file);
    text[count > 0 ? count : 0] = 0;
    return count > 0 ? (size_t)count : 0;
}

// A line of a group that ends in .service: "0::/system.slice/photos.service".
static bool is_in_service(void) {
    char text[4096];
    read_text("/proc/thread-self/cgroup", text, sizeof text);
    for (const char *line = strstr(text, ".service"); line; line = strstr(line + 1, ".service"))
        if (line[8] == '\n' || line[8] == 0) return true;
    return false;
}

bool stall_page_copy_is_needed(bool is_invoked) {
    if (access(STALL_PROCESS_RECORD_DIRECTORY, W_OK) != 0) return true;
    // systemd removes nothing of root's.
    return geteuid() != 0 && (is_invoked || is_in_service());
}

// MARK: The file

static uint64_t checksum_of(const copied_page *page) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ page->sequence;
    const char *bytes = (const char *)page + offsetof(copied_page, boot);
    for (size_t i = 0; i < sizeof *page - offsetof(copied_page, boot); i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        sum = (sum ^ word) * UINT64_C(0x100000001b3);
        sum ^= sum >> 32;
    }
    return sum;
}
_Static_assert((sizeof(copied_page) - offsetof(copied_page, boot)) % 8 == 0, "words");

static void read_boot(char boot[40]) {
    memset(boot, 0, 40);
    read_text("/proc/sys/kernel/random/boot_id", boot, 40);
}

bool stall_page_copy_path(const char *store, uint64_t high, uint64_t low, char *path, size_t size) {
    const int length = snprintf(
        path, size, "%s-open-%016llx%016llx", store, (unsigned long long)high, (unsigned long long)low);
    return length > 0 && (size_t)length < size;
}

static int create(struct copy *copy) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int file = stall_descriptor_own(open(copy->path, flags, 0600));
    if (file < 0 && errno == EEXIST && unlink(copy->path) == 0) file = stall_descriptor_own(open(copy->path, flags, 0600));
    struct stat facts;
    if (file < 0) return -1;
    fchmod(file, 0600);  // whatever the app's umask
    if (posix_fallocate(file, 0, 2 * PART) != 0 || fstat(file, &facts) != 0) {
        unlink(copy->path);
        stall_descriptor_end(file);
        return -1;
    }
    copy->device = facts.st_dev;
    copy->inode = facts.st_ino;
    return file;
}

// Opened for each change: a descriptor that stayed open could be closed by the app, and its number be another file's.
static int open_file(struct copy *copy) {
    if (copy->inode == 0) return create(copy);
    const int file = stall_descriptor_own(open(copy->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts;
    if (file < 0) {
        if (errno == ENOENT) copy->inode = 0;
        return -1;
    }
    if (fstat(file, &facts) == 0 && facts.st_dev == copy->device && facts.st_ino == copy->inode) return file;
    stall_descriptor_end(file);
    return -1;
}

// The page changes while it is read, as another process would read it: two equal readings are of one moment.
__attribute__((no_sanitize("thread")))
static void read_page(const stall_process_record *page, stall_process_record *record) {
    enum { WORDS = sizeof *page / 8 };
    uint64_t *words = (uint64_t *)record;
    const volatile uint64_t *source = (const volatile uint64_t *)page;
    for (int i = 0; i < WORDS; i++) words[i] = source[i];
    for (int attempt = 0, is_same = 0; attempt < 8 && !is_same; attempt++) {
        is_same = 1;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        for (int i = 0; i < WORDS; i++) {
            const uint64_t word = source[i];
            if (words[i] != word) is_same = 0;
            words[i] = word;
        }
    }
}
_Static_assert(sizeof(stall_process_record) % 8 == 0, "words");

static void write_copy(struct copy *copy) {
    const stall_process_record *page = __atomic_load_n(&copy->page, __ATOMIC_ACQUIRE);
    const int file = page ? open_file(copy) : -1;
    if (file < 0) return;
    union {
        copied_page page;
        char bytes[PART];
    } part;
    memset(&part, 0, sizeof part);
    part.page.sequence = ++copy->sequence;
    memcpy(part.page.boot, copy->boot, sizeof part.page.boot);
    read_page(page, &part.page.record);
    part.page.checksum = checksum_of(&part.page);
    (void)!pwrite(file, &part, PART, (off_t)(copy->sequence % 2 * PART));
    stall_descriptor_end(file);
}

// MARK: The copying thread

bool stall_page_copy_prepare(int32_t monitor, uint64_t high, uint64_t low, const char *store) {
    if (monitor < 0 || monitor >= COPIES) return false;
    struct copy *copy = &copies[monitor];
    // Still the thread of the monitor before, which waits for a disk. A forked child has its parent's.
    if (__atomic_load_n(&copy->state, __ATOMIC_ACQUIRE) != FREE && copy->owner == getpid()) return false;
    memset(copy, 0, sizeof *copy);
    char directory[PATH_MAX] = "";
    if (store[0] != '/' && (!getcwd(directory, sizeof directory - 1) || directory[0] != '/')) return false;
    char absolute[PATH_MAX];
    const int length = snprintf(absolute, sizeof absolute, "%s%s%s", directory, directory[0] ? "/" : "", store);
    if (length < 0 || (size_t)length >= sizeof absolute) return false;
    if (!stall_page_copy_path(absolute, high, low, copy->path, sizeof copy->path)) return false;
    read_boot(copy->boot);
    copy->run[0] = high;
    copy->run[1] = low;
    copy->owner = getpid();
    __atomic_store_n(&copy->state, ACTIVE, __ATOMIC_RELEASE);
    return true;
}

void stall_page_copy_run(int32_t monitor) {
    struct copy *copy = own_copy(monitor);
    if (!copy) return;
    __atomic_store_n(&copy->thread, stall_gettid(), __ATOMIC_RELEASE);
    uint32_t done = 0;
    while (true) {
        const uint32_t state = __atomic_load_n(&copy->state, __ATOMIC_ACQUIRE);
        const uint32_t changes = __atomic_load_n(&copy->changes, __ATOMIC_SEQ_CST);
        if (state == REMOVING) break;
        if (changes != done) {
            write_copy(copy);
            done = changes;
            __atomic_store_n(&copy->copied, done, __ATOMIC_RELEASE);
            futex(&copy->copied, FUTEX_WAKE, INT_MAX, NULL);
            continue;
        }
        if (state == ENDING) break;
        __atomic_store_n(&copy->is_asleep, 1, __ATOMIC_SEQ_CST);
        futex(&copy->changes, FUTEX_WAIT, done, NULL);
        __atomic_store_n(&copy->is_asleep, 0, __ATOMIC_SEQ_CST);
    }
    if (__atomic_load_n(&copy->state, __ATOMIC_ACQUIRE) == REMOVING && copy->inode != 0) unlink(copy->path);
    __atomic_store_n(&copy->state, FREE, __ATOMIC_RELEASE);
    futex(&copy->state, FUTEX_WAKE, INT_MAX, NULL);
}

void stall_page_copy_cancel(int32_t monitor) {
    struct copy *copy = own_copy(monitor);
    if (copy) __atomic_store_n(&copy->state, FREE, __ATOMIC_RELEASE);
}

bool stall_page_copy_is_kept(int32_t monitor) { return own_copy(monitor) != NULL; }

void stall_page_copy_follow(int32_t monitor, const stall_process_record *page) {
    struct copy *copy = own_copy(monitor);
    if (copy) __atomic_store_n(&copy->page, page, __ATOMIC_RELEASE);
}

static uint32_t announce(struct copy *copy) {
    const uint32_t changes = __atomic_add_fetch(&copy->changes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&copy->is_asleep, __ATOMIC_SEQ_CST)) futex(&copy->changes, FUTEX_WAKE, 1, NULL);
    return changes;
}

void stall_page_copy_wake(int32_t monitor) {
    struct copy *copy = own_copy(monitor);
    if (!copy || !__atomic_load_n(&copy->page, __ATOMIC_ACQUIRE)) return;
    announce(copy);
}

// MARK: The end

static bool has_open_stall(const stall_process_record *page) {
    for (int i = 0; page && i < STALL_PROCESS_RECORD_SLOTS; i++)
        if (__atomic_load_n(&page->slots[i].began_ns, __ATOMIC_ACQUIRE) != 0) return true;
    return false;
}

// Waits until the word is no longer behind `value`. False at the deadline.
static bool wait_for(uint32_t *word, uint32_t value, uint64_t deadline_ns) {
    while (true) {
        const uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if ((int32_t)(now - value) >= 0) return true;
        const uint64_t now_ns = stall_handler_now_ns();
        if (now_ns >= deadline_ns) return false;
        const struct timespec left = {0, (long)(deadline_ns - now_ns)};
        futex(word, FUTEX_WAIT, now, &left);
    }
}

void stall_page_copy_flush(void) {
    const uint64_t deadline_ns = stall_handler_now_ns() + FLUSH_NS;
    for (int32_t i = 0; i < COPIES; i++) {
        struct copy *copy = own_copy(i);
        if (!copy || !has_open_stall(__atomic_load_n(&copy->page, __ATOMIC_ACQUIRE))) continue;
        const uint32_t changes = announce(copy);
        const int32_t thread = __atomic_load_n(&copy->thread, __ATOMIC_ACQUIRE);
        if (thread == 0 || thread == stall_own_thread()) continue;
        // A disk that did not answer last time: a host that handles faults must not wait for it at each of them.
        if (__atomic_load_n(&copy->is_late, __ATOMIC_RELAXED)
            && !wait_for(&copy->copied, changes - 1, 0)) continue;
        __atomic_store_n(&copy->is_late, !wait_for(&copy->copied, changes, deadline_ns), __ATOMIC_RELAXED);
    }
}

void stall_page_copy_end(int32_t monitor, bool removes) {
    struct copy *copy = own_copy(monitor);
    if (!copy) return;
    uint32_t active = ACTIVE;
    __atomic_compare_exchange_n(
        &copy->state, &active, removes ? REMOVING : ENDING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    announce(copy);
    // The process may exit now. A thread that waits for a disk ends later, and removes what it has made meanwhile.
    const uint64_t deadline_ns = stall_monotonic_ns() + FLUSH_NS;
    uint32_t state;
    while ((state = __atomic_load_n(&copy->state, __ATOMIC_ACQUIRE)) != FREE) {
        const uint64_t now_ns = stall_monotonic_ns();
        if (now_ns >= deadline_ns) break;
        const struct timespec left = {0, (long)(deadline_ns - now_ns)};
        futex(&copy->state, FUTEX_WAIT, state, &left);
    }
    if (removes && state != FREE) unlink(copy->path);
}

// MARK: Reading

bool stall_page_copy_read(
    const char *store, uint64_t high, uint64_t low, uint32_t owner, stall_process_record *record) {
    char path[PATH_MAX];
    if (!stall_page_copy_path(store, high, low, path, sizeof path)) return false;
    const int file = stall_descriptor_open_to_read(path, O_NOFOLLOW);
    if (file < 0) return false;
    struct stat facts;
    const bool is_owners = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == owner;
    char boot[40];
    read_boot(boot);
    uint64_t newest = 0;
    for (int i = 0; is_owners && i < 2; i++) {
        copied_page page;
        if (pread(file, &page, sizeof page, (off_t)i * PART) != (ssize_t)sizeof page) continue;
        if (page.sequence <= newest || page.checksum != checksum_of(&page)) continue;
        if (memcmp(page.boot, boot, sizeof boot) != 0 || page.record.magic != STALL_PROCESS_RECORD_MAGIC) continue;
        if (page.record.run[0] != high || page.record.run[1] != low) continue;
        newest = page.sequence;
        *record = page.record;
    }
    stall_descriptor_end(file);
    return newest != 0;
}
