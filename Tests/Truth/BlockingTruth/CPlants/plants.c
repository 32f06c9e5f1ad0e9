// The table of plants, and the directory, pipes and threads that they use.
#define _GNU_SOURCE
#include "blocking_plants.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Plants/planting.h"

static const plant_family *const families[] = {
    &time_family, &descriptor_family, &stream_family, &file_family,
    &network_family, &process_family, &lock_family, &wait_family,
};

size_t plant_count(void) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(families); i++) count += families[i]->count;
    return count;
}

const plant *plant_at(size_t index) {
    size_t family = 0;
    while (index >= families[family]->count) index -= families[family++]->count;
    return &families[family]->plants[index];
}

void plants_fail(const char *condition, const char *file, int line) {
    fprintf(stderr, "%s:%d: %s failed: %s\n", file, line, condition, strerror(errno));
    abort();
}

// MARK: Files

char plants_directory[PATH_MAX];
int plants_file = -1;

const char *plants_path(const char *name) {
    enum { PATHS = 8 };
    static char paths[PATHS][PATH_MAX + NAME_MAX];
    static unsigned next;
    char *path = paths[next++ % PATHS];
    snprintf(path, sizeof paths[0], "%s/%s", plants_directory, name);
    return path;
}

static void ignore(int signal) { (void)signal; }

bool plants_open(const char *parent) {
    snprintf(plants_directory, sizeof plants_directory, "%s/plants-XXXXXX", parent);
    if (!mkdtemp(plants_directory)) return false;
    plants_file = open(plants_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (plants_file < 0) return false;
    static char lines[1 << 16];
    memset(lines, 'x', sizeof lines);
    for (size_t i = 79; i < sizeof lines; i += 80) lines[i] = '\n';
    const struct sigaction action = {.sa_handler = ignore};
    if (write(plants_file, lines, sizeof lines) != sizeof lines || sigaction(SIGUSR1, &action, NULL) != 0) return false;
    for (size_t i = 0; i < innocent_count(); i++) innocent_at(i)->play();
    return true;
}

static int remove_entry(const char *path, const struct stat *file, int kind, struct FTW *place) {
    (void)file, (void)kind, (void)place;
    return remove(path);
}

void plants_close(void) {
    close(plants_file);
    nftw(plants_directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

// MARK: Pipes and sockets

int plants_ends[2] = {-1, -1};

static void close_ends(void) {
    for (int i = 0; i < 2; i++) {
        if (plants_ends[i] >= 0) close(plants_ends[i]);
    }
}

void plants_make_pipe(bool has_data) {
    close_ends();
    NEED(pipe2(plants_ends, O_CLOEXEC) == 0);
    if (has_data) NEED(write(plants_ends[1], "x", 1) == 1);
}

void plants_make_sockets(int type, bool has_data) {
    close_ends();
    NEED(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, plants_ends) == 0);
    if (has_data) NEED(write(plants_ends[1], "x", 1) == 1);
}

// MARK: Threads that hold something

static void (*release_held)(void), (*take_held)(void);
static atomic_bool is_waiting;
static sem_t is_held;
static pid_t waiter;

static void nap(long nanoseconds) { nanosleep(&(struct timespec){0, nanoseconds}, NULL); }

// The state after the name's parenthesis; 'S' once the thread sleeps in the kernel.
static bool is_asleep(pid_t thread) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (count <= 0) return false;
    text[count] = 0;
    const char *end = strrchr(text, ')');
    return end && end[1] && end[2] == 'S';
}

// A spinning waiter never sleeps: it is given up on.
static void *hold(void *unused) {
    (void)unused;
    void (*const release)(void) = release_held;
    const pid_t own_waiter = waiter;
    take_held();
    sem_post(&is_held);
    while (!atomic_load(&is_waiting)) nap(MILLISECOND / 20);
    for (int i = 0; i < 20 && !is_asleep(own_waiter); i++) nap(MILLISECOND / 20);
    release();
    return NULL;
}

void plants_hold(void (*take)(void), void (*release)(void)) {
    static pthread_t holder;
    static bool has_holder;
    if (has_holder) pthread_join(holder, NULL);
    take_held = take;
    release_held = release;
    waiter = (pid_t)syscall(SYS_gettid);
    atomic_store(&is_waiting, false);
    NEED(sem_init(&is_held, 0, 0) == 0);
    NEED(pthread_create(&holder, NULL, hold, NULL) == 0);
    has_holder = true;
    while (sem_wait(&is_held) != 0) continue;
}

void plants_wait_begins(void) { atomic_store(&is_waiting, true); }
