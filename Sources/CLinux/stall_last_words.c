#define _GNU_SOURCE
#include "stall_last_words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stall_clock.h"

enum { PAGE = 4096 };
_Static_assert(sizeof(stall_last_words) <= PAGE, "one page");

static uint64_t run[2];
static uint32_t is_prepared;
static stall_last_words *page;  // once made it stays mapped: a loop may store into it at any moment
static pid_t owner;
static uint32_t is_exiting;

void stall_last_words_path(uint64_t high, uint64_t low, char *path) {
    static const char digits[] = "0123456789abcdef";
    size_t length = 0;
    for (const char *part = STALL_LAST_WORDS_DIRECTORY "stallwatch-"; *part; part++) path[length++] = *part;
    for (int shift = 60; shift >= 0; shift -= 4) path[length++] = digits[high >> shift & 15];
    for (int shift = 60; shift >= 0; shift -= 4) path[length++] = digits[low >> shift & 15];
    path[length] = 0;
}

static stall_last_words *own_page(void) {
    stall_last_words *words = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
    return words && owner == getpid() ? words : NULL;
}

static stall_last_words *make_page(void) {
    if (!__atomic_load_n(&is_prepared, __ATOMIC_ACQUIRE)) return NULL;
    stall_last_words *words = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
    if (words) return own_page();
    char path[64];
    stall_last_words_path(run[0], run[1], path);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return NULL;
    // All of it is there before it is stored into: a page that cannot be had later would be a SIGBUS.
    int error = posix_fallocate(file, 0, PAGE);
    void *memory = error ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        unlink(path);
        return NULL;
    }
    words = memory;
    words->run[0] = run[0];
    words->run[1] = run[1];
    __atomic_store_n(&words->magic, STALL_LAST_WORDS_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&page, words, __ATOMIC_RELEASE);
    return words;
}

stall_open_slot *stall_last_words_open(uint64_t began_ns, uint64_t now_ns) {
    stall_last_words *words = make_page();
    for (int i = 0; words && i < STALL_LAST_WORDS_SLOTS; i++) {
        stall_open_slot *slot = &words->slots[i];
        if (__atomic_load_n(&slot->began_ns, __ATOMIC_ACQUIRE) != 0) continue;
        slot->seen_ns = now_ns;
        slot->ended_ns = 0;
        slot->report[0] = slot->report[1] = 0;
        __atomic_store_n(&slot->began_ns, began_ns, __ATOMIC_RELEASE);
        return slot;
    }
    return NULL;
}

void stall_open_slot_end(stall_open_slot *slot, uint64_t now_ns) {
    if (owner == getpid()) __atomic_store_n(&slot->ended_ns, now_ns, __ATOMIC_RELEASE);
}

static stall_open_slot *find(uint64_t began_ns) {
    stall_last_words *words = own_page();
    for (int i = 0; words && i < STALL_LAST_WORDS_SLOTS; i++)
        if (__atomic_load_n(&words->slots[i].began_ns, __ATOMIC_ACQUIRE) == began_ns) return &words->slots[i];
    return NULL;
}

void stall_last_words_name(uint64_t began_ns, uint64_t high, uint64_t low) {
    stall_open_slot *slot = find(began_ns);
    if (!slot) return;
    slot->report[0] = high;
    __atomic_store_n(&slot->report[1], low, __ATOMIC_RELEASE);
}

void stall_last_words_close(uint64_t began_ns) {
    stall_open_slot *slot = find(began_ns);
    if (slot) __atomic_store_n(&slot->began_ns, 0, __ATOMIC_RELEASE);
}

void stall_last_words_remove(uint64_t high, uint64_t low) {
    if (run[0] != high || run[1] != low || owner != getpid()) return;
    if (own_page()) {
        char path[64];
        stall_last_words_path(high, low, path);
        unlink(path);
    }
    // The next monitor's run has a page of its own. This one stays mapped: see above.
    __atomic_store_n(&page, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&is_prepared, 0, __ATOMIC_RELEASE);
}

static void note(uint64_t ending) {
    stall_last_words *words = own_page();
    if (!words) return;
    __atomic_store_n(&words->ending_ns, stall_monotonic_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&words->ending, ending, __ATOMIC_RELEASE);
}

bool stall_last_words_is_ending(void) {
    stall_last_words *words = own_page();
    return words && __atomic_load_n(&words->ending, __ATOMIC_ACQUIRE) != STALL_PROCESS_LIVES;
}
bool stall_last_words_is_exiting(void) { return __atomic_load_n(&is_exiting, __ATOMIC_RELAXED) != 0; }

void stall_last_words_note_exit(void) {
    __atomic_store_n(&is_exiting, 1, __ATOMIC_RELAXED);
    note(STALL_PROCESS_EXITED);
}

// Fatal signals. The handler only stores two words; then whatever was there before gets the signal as if we were not.
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
static struct sigaction previous[NSIG];

// Whether the instruction that was interrupted fails again when it is executed once more. After a trap and a system call that a
// sandbox refused, the thread would go on behind it; a signal that was sent has no instruction.
static bool happens_again(int number, const siginfo_t *info) {
    if (info->si_code <= 0 || number == SIGTRAP || number == SIGSYS || number == SIGABRT) return false;
    return number != SIGBUS || info->si_code != BUS_MCEERR_AO;
}

static void note_crash(int number, siginfo_t *info, void *context) {
    int saved = errno;
    note(STALL_PROCESS_CRASHED);
    const struct sigaction *before = &previous[number];
    const bool is_default = !(before->sa_flags & SA_SIGINFO) && before->sa_handler == SIG_DFL;
    // As the kernel would have done before it called that handler.
    if (is_default || before->sa_flags & SA_RESETHAND) signal(number, SIG_DFL);
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (!is_default) {
        before->sa_handler(number);
    } else if (!happens_again(number, info)) {
        // Blocked until this handler returns.
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), stall_gettid(), number, info) != 0)
            syscall(SYS_tgkill, getpid(), stall_gettid(), number);
    }
    // Still ours to handle, or nothing that comes again: the one before took care of it, and the process lives.
    struct sigaction now;
    const bool is_ours = sigaction(number, NULL, &now) == 0 && now.sa_sigaction == note_crash;
    if (!is_default && (is_ours || !happens_again(number, info))) note(STALL_PROCESS_LIVES);
    errno = saved;
}

static void watch_for_crashes(void) {
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction *before = &previous[fatal[i]];
        if (sigaction(fatal[i], NULL, before) != 0) continue;
        if (!(before->sa_flags & SA_SIGINFO) && before->sa_handler == SIG_IGN) continue;
        struct sigaction ours = {.sa_mask = before->sa_mask};
        ours.sa_sigaction = note_crash;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before->sa_flags & (SA_NODEFER | SA_RESTART));
        sigaction(fatal[i], &ours, NULL);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void install(void) {
    watch_for_crashes();
}

void stall_last_words_prepare(uint64_t high, uint64_t low) {
    if (owner != getpid()) {
        // The first agent of the process, or of a forked child whose parent had one.
        owner = getpid();
        page = NULL;
        is_prepared = 0;
    }
    pthread_once(&once, install);
    // A second monitor of the process shares the first one's page.
    if (__atomic_load_n(&is_prepared, __ATOMIC_ACQUIRE)) return;
    run[0] = high;
    run[1] = low;
    __atomic_store_n(&is_prepared, 1, __ATOMIC_RELEASE);
}

bool stall_last_words_read(uint64_t high, uint64_t low, uint32_t user, stall_last_words *words) {
    char path[64];
    stall_last_words_path(high, low, path);
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    struct stat facts;
    bool is_read = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == user
        && pread(file, words, sizeof *words, 0) == (ssize_t)sizeof *words;
    close(file);
    return is_read && words->magic == STALL_LAST_WORDS_MAGIC && words->run[0] == high && words->run[1] == low;
}

bool stall_last_words_is_own(uint64_t high, uint64_t low) {
    return owner == getpid() && run[0] == high && run[1] == low;
}

bool stall_process_has_thread(int32_t process, const char *name) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    if (!tasks) return true;
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", process, entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        char text[32];
        ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : 0;
        if (file >= 0) close(file);
        if (count <= 1) continue;
        text[count - 1] = 0;
        is_found = strcmp(text, name) == 0;
    }
    closedir(tasks);
    return is_found;
}
