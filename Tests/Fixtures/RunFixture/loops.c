// A program that knows nothing of stallwatch, for `stallctl run`: loops SCENARIO. Planned stalls take 500 ms, rests too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { REST_MS = 500, SHORT_MS = 60 };

__attribute__((noinline)) static void planned_stall(void) { usleep(REST_MS * 1000); }

static int make_set(void) {
    const int set = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
    epoll_ctl(set, EPOLL_CTL_ADD, event, &(struct epoll_event){.events = EPOLLIN});
    return set;
}

static void wait_for(int set, int milliseconds) {
    struct epoll_event event;
    epoll_wait(set, &event, 1, milliseconds);
}

static void wait_several(const int *files, int milliseconds) {
    struct pollfd polled[2] = {{files[0], POLLIN, 0}, {files[1], POLLIN, 0}};
    poll(polled, 2, milliseconds);
}

static void wait_one(int file, int milliseconds) {
    struct pollfd polled = {file, POLLIN, 0};
    poll(&polled, 1, milliseconds);
}

extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);

// As a program that is compiled with _FORTIFY_SOURCE.
__attribute__((noinline)) static void wait_fortified(const int *files, int milliseconds) {
    struct pollfd polled[2] = {{files[0], POLLIN, 0}, {files[1], POLLIN, 0}};
    __poll_chk(polled, 2, milliseconds, sizeof polled);
}

static sigjmp_buf start;

static void jump_out(int number) {
    (void)number;
    siglongjmp(start, 1);
}

// The loop goes on below the wait that it left.
__attribute__((noinline)) static void serve_deeper(int set) {
    volatile char room[4096] = {0};
    for (int i = 0; i < 5; i++) wait_for(set, SHORT_MS);
    planned_stall();
    for (int i = 0; i < 2; i++) wait_for(set, REST_MS / 2);
    room[0] = 1;
}

static void serve_after(int waits, void (*callout)(void)) {
    const int set = make_set();
    for (int i = 0; i < waits; i++) wait_for(set, SHORT_MS);
    callout();
    for (int i = 0; i < 2; i++) wait_for(set, REST_MS / 2);
}

static void serve(void (*callout)(void)) { serve_after(5, callout); }

static void *serve_on_thread(void *nothing) {
    pthread_setname_np(pthread_self(), "server");
    // The agent is loaded meanwhile.
    serve_after(25, planned_stall);
    return nothing;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int shared_set;

// A worker takes its turn at the set, and rests elsewhere meanwhile.
static void *work_in_pool(void *nothing) {
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&mutex);
        wait_for(shared_set, SHORT_MS * 2);
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

// A client that waits for answers of one connection, and then for its next request.
static void *fetch(void *nothing) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int i = 0; i < 5; i++) wait_one(pair[0], 20);
    usleep(REST_MS * 1000);
    for (int i = 0; i < 5; i++) wait_one(pair[0], 20);
    usleep(REST_MS * 1000);
    return nothing;
}

static volatile bool serves;

// Forks all the time while the main thread is a loop. Returns how many forks were held up for longer than any start takes.
static void *fork_often(void *nothing) {
    (void)nothing;
    long held = 0;
    while (serves) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        const pid_t child = fork();
        if (child == 0) _exit(0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        held += (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 > 700;
        waitpid(child, NULL, 0);
    }
    return (void *)held;
}

static void serve_among_forks(void) {
    pthread_t thread;
    void *held;
    serves = true;
    pthread_create(&thread, NULL, fork_often, NULL);
    serve_after(25, planned_stall);
    serves = false;
    pthread_join(thread, &held);
    printf("held %ld\n", (long)held);
}

static void request_for(int milliseconds) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    wait_one(pair[0], milliseconds);
}

static void request(void) { request_for(REST_MS); }

static volatile int calls;

// Calls that may block, each in a callout of its own; the last one right before the program's end. None is a tail call.
__attribute__((noinline)) static void nap(void) {
    usleep(100);
    calls++;
}

__attribute__((noinline)) static void answer(void) {
    request_for(1);
    calls++;
}

__attribute__((noinline)) static void last(void) {
    usleep(200);
    calls++;
}

// Calls that never wait.
__attribute__((noinline)) static void compute(void) {
    const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint64_t value;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    if (read(event, &value, sizeof value) > 0) abort();
    close(event);
}

static void serve_blocking(void) {
    void (*const callouts[])(void) = {compute, nap, compute, answer, last};
    const int set = make_set();
    for (int i = 0; i < 5; i++) wait_for(set, SHORT_MS);
    for (size_t i = 0; i < sizeof callouts / sizeof *callouts; i++) {
        wait_for(set, SHORT_MS);
        callouts[i]();
    }
}

static void run_threads(int count, void *(*body)(void *)) {
    pthread_t threads[4];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, body, NULL);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void handle(int number) {
    (void)number;
    wait_one(-1, 1);
}

int main(int count, char **words) {
    const char *scenario = count > 1 ? words[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(scenario, "epoll") == 0) serve(planned_stall);
    if (strcmp(scenario, "first") == 0) {
        // A loop whose first wait returns at once.
        const int set = make_set();
        wait_for(set, 0);
        planned_stall();
        wait_for(set, REST_MS);
    }
    if (strcmp(scenario, "poll") == 0 || strcmp(scenario, "select") == 0) {
        const int files[] = {eventfd(0, 0), eventfd(0, 0)};
        for (int i = 0; i < 6; i++) {
            if (*scenario == 'p') wait_several(files, SHORT_MS);
            if (*scenario == 's') {
                fd_set set;
                FD_ZERO(&set);
                FD_SET(files[0], &set);
                FD_SET(files[1], &set);
                select(files[1] + 1, &set, NULL, NULL, &(struct timeval){0, SHORT_MS * 1000});
            }
            if (i == 4) planned_stall();
        }
    }
    if (strcmp(scenario, "request") == 0) serve(request);
    if (strcmp(scenario, "thread") == 0) run_threads(1, serve_on_thread);
    // No stalls from here on.
    if (strcmp(scenario, "idle") == 0) {
        const int set = make_set();
        for (int i = 0; i < 3; i++) wait_for(set, REST_MS);
    }
    if (strcmp(scenario, "bootstrap") == 0) {
        // Waits of other kinds come first; what was waited for stays open.
        const int files[] = {eventfd(0, 0), eventfd(0, 0)};
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        for (int i = 0; i < 5; i++) wait_one(pair[0], 20);
        for (int i = 0; i < 5; i++) wait_several(files, 20);
        const int set = make_set();
        for (int i = 0; i < 3; i++) wait_for(set, REST_MS);
    }
    if (strcmp(scenario, "sleeps") == 0) {
        for (int i = 0; i < 3; i++) {
            poll(NULL, 0, SHORT_MS);
            select(0, NULL, NULL, NULL, &(struct timeval){0, SHORT_MS * 1000});
            usleep(REST_MS * 1000);
        }
    }
    if (strcmp(scenario, "pool") == 0) {
        shared_set = make_set();
        run_threads(4, work_in_pool);
    }
    if (strcmp(scenario, "client") == 0) run_threads(2, fetch);
    if (strcmp(scenario, "left") == 0) {
        const int set = make_set();
        for (int i = 0; i < 5; i++) wait_for(set, SHORT_MS);
        close(set);
        usleep(REST_MS * 2000);
    }
    if (strcmp(scenario, "handler") == 0) {
        const int set = make_set();
        signal(SIGALRM, handle);
        alarm(1);
        for (int i = 0; i < 4; i++) wait_for(set, REST_MS);
    }
    if (strcmp(scenario, "wrong") == 0) {
        // Arguments that are none: libc's answers.
        printf("%d ", poll((struct pollfd *)-1, 1, 10));
        printf("%d ", poll((struct pollfd *)8, 1, 10));
        // More elements than there are: the array ends with its page.
        char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(page + 4096, 4096);
        printf("%d ", poll((struct pollfd *)(page + 4096) - 1, 1 << 30, 10));
        printf("%d ", select(1, (fd_set *)16, NULL, NULL, &(struct timeval){0, 1000}));
        printf("%d ", epoll_wait(-1, NULL, 1, 10));
        printf("%d\n", select(-1, NULL, NULL, NULL, &(struct timeval){0, 1000}));
    }
    if (strcmp(scenario, "fortified") == 0) {
        const int files[] = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
        for (int i = 0; i < 5; i++) wait_fortified(files, SHORT_MS);
        wait_one(open("/dev/null", O_RDONLY), 1);
        planned_stall();
        for (int i = 0; i < 2; i++) wait_fortified(files, REST_MS / 2);
    }
    if (strcmp(scenario, "jump") == 0) {
        const int set = make_set();
        for (int i = 0; i < 5; i++) wait_for(set, SHORT_MS);
        signal(SIGALRM, jump_out);
        if (sigsetjmp(start, 1) == 0) {
            ualarm(SHORT_MS * 1000, 0);
            wait_for(set, REST_MS);
        }
        serve_deeper(set);
    }
    if (strcmp(scenario, "child") == 0) {
        // Before the first wait, as a daemon does; after it, as a worker's parent does.
        for (int i = 0; i < 2; i++) {
            const pid_t child = fork();
            if (child == 0) {
                serve(planned_stall);
                exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            printf("child %d\n", status);
            const int set = make_set();
            for (int k = 0; k < 4; k++) wait_for(set, SHORT_MS);
            close(set);
        }
    }
    // In a process whose agent is loaded, and in a child of one whose agent runs.
    if (strcmp(scenario, "forks") == 0) {
        serve_among_forks();
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            serve_among_forks();
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(scenario, "executed") == 0) {
        char command[4200];
        snprintf(command, sizeof command, "exec '%s' epoll", words[0]);
        const int status = system(command);
        printf("status %d\n", status);
    }
    if (strcmp(scenario, "blocking") == 0) serve_blocking();
    if (strcmp(scenario, "blocking-child") == 0) {
        serve(compute);
        const pid_t child = fork();
        if (child == 0) {
            serve_blocking();
            exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("child %d\n", status);
    }
    // Programs ask in this way whether they can use it.
    if (strcmp(scenario, "weak") == 0) {
        printf("%d\n", dlsym(RTLD_DEFAULT, "dispatch_sync_f") != NULL);
        serve(compute);
    }
    // A child without the handlers of fork.
    if (strcmp(scenario, "cloned") == 0) {
        struct timespec before, after;
        serve(compute);
        clock_gettime(CLOCK_MONOTONIC, &before);
        const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) exit(0);
        waitpid((pid_t)child, NULL, 0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("held %d\n", after.tv_sec - before.tv_sec > 1);
    }
    if (strcmp(scenario, "closed") == 0) {
        close_range(3, ~0U, 0);
        serve(planned_stall);
    }
    if (strcmp(scenario, "moved") == 0) {
        if (chdir("/") != 0) return 1;
        serve(planned_stall);
    }
    if (strcmp(scenario, "environment") == 0) {
        for (char **word = environ; *word; word++) puts(*word);
    }
    if (strcmp(scenario, "title") == 0) {
        // As nginx does: the arguments and the environment are one block.
        char *end = words[count - 1] + strlen(words[count - 1]) + 1;
        int found = 0;
        for (char **word = environ; *word && *word == end; word++, found++) end = *word + strlen(*word) + 1;
        int all = 0;
        for (char **word = environ; *word; word++) all++;
        printf("%d of %d\n", found, all);
    }
    if (strcmp(scenario, "signalled") == 0) {
        signal(SIGTERM, SIG_DFL);
        puts("ready");
        pause();
    }
    return scenario[0] ? 0 : 3;
}
