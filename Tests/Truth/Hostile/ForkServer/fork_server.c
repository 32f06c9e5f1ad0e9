// Preloaded into stallctl by fork_server.py: takes the place of its `main`, which then runs in a forked child for each request.
// Linking, the Swift runtime's types and the tables of commands are ready in the child; a crash ends only the child.
//
// A request on the descriptor that HOSTILE_CHANNEL names is two words, kind and length, and the program's arguments, each with a NUL. An answer is three
// words: ANSWER_RUNS with the child's pid, once, where it has not ended within a second; then ANSWER_ENDED with its status
// and its largest resident size in KiB.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORDS = 64, MOST_BYTES = 1 << 20 };
// A warm-up runs in the server itself, so that every child finds what it left. A child that is to die is a sabotaged one.
enum request { REQUEST_WARM_UP = 1, REQUEST_RUN = 2, REQUEST_DIE = 3 };
enum answer { ANSWER_RUNS = 1, ANSWER_ENDED = 2 };

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

// Arguments.swift: what `CommandLine.arguments` says.
void hostile_set_arguments(int32_t count, char *const *words);

static int channel = -1;
static main_function *program_main;
static struct sigaction actions[NSIG];
static sigset_t mask;

static void fail(const char *what) {
    dprintf(STDERR_FILENO, "fork server: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static void get(void *to, size_t size) {
    for (char *next = to; size > 0;) {
        ssize_t count = read(channel, next, size);
        if (count == 0) _exit(0);  // The driver is gone.
        if (count < 0 && errno != EINTR) fail("read");
        if (count > 0) next += count, size -= (size_t)count;
    }
}

static void answer(enum answer kind, int64_t first, int64_t second) {
    int64_t words[] = {kind, first, second};
    if (write(channel, words, sizeof words) != sizeof words) fail("write");
}

static int run_main(int count, char **words, char **environment) {
    hostile_set_arguments(count, words);
    return program_main(count, words, environment);
}

// The signals as a process of its own would find them, whatever a warm-up changed, and the driver's limits.
static void become_new(void) {
    for (int number = 1; number < NSIG; number++) sigaction(number, &actions[number], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    struct rlimit cpu = {10, 12}, core = {0, 0};
    if (setrlimit(RLIMIT_CPU, &cpu) || setrlimit(RLIMIT_CORE, &core)) fail("setrlimit");
    close(channel);
}

static void wait_for(pid_t child, const sigset_t *ended) {
    int status;
    struct rusage usage;
    for (int has_said = 0; wait4(child, &status, WNOHANG, &usage) != child;) {
        struct timespec second = {1, 0};
        if (sigtimedwait(ended, NULL, &second) < 0 && errno == EAGAIN && !has_said) {
            has_said = 1;
            answer(ANSWER_RUNS, child, 0);
        }
    }
    answer(ANSWER_ENDED, status, usage.ru_maxrss);
}

static int serve(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    channel = atoi(getenv("HOSTILE_CHANNEL"));
    unsetenv("HOSTILE_CHANNEL");
    unsetenv("LD_PRELOAD");
    for (int number = 1; number < NSIG; number++) sigaction(number, NULL, &actions[number]);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    static char text[MOST_BYTES];
    for (;;) {
        uint32_t head[2];
        get(head, sizeof head);
        if (head[1] > sizeof text) errno = E2BIG, fail("request");
        get(text, head[1]);
        char *words[MOST_WORDS + 1];
        int count = 0;
        for (char *word = text; word < text + head[1] && count < MOST_WORDS; word += strlen(word) + 1) words[count++] = word;
        words[count] = NULL;
        if (head[0] == REQUEST_WARM_UP) {
            answer(ANSWER_ENDED, run_main(count, words, environment), 0);
            continue;
        }
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            become_new();
            if (head[0] == REQUEST_DIE) raise(SIGILL);
            return run_main(count, words, environment);
        }
        wait_for(child, &ended);
    }
}

// glibc's start code calls this with the program's main.
int __libc_start_main(
    main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    if (!start) fail("dlsym");
    program_main = main;
    return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
