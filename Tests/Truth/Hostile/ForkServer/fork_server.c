// Preloaded into stallctl by runs.py: takes the place of its `main`, which then runs in a forked child for each request.
// Linking, the Swift runtime's types and the tables of commands are ready in the child; a crash ends only the child.
//
// A request on the descriptor that HOSTILE_CHANNEL names is two words, kind and length, and commands: each argument with a NUL, and
// one more NUL behind each command. A child runs them one after another, up to the first that fails where that is asked for: a
// command that ends by `exit` ends there, not the child. An answer is three
// words: ANSWER_RUNS with the child's pid, once, where it has not ended within a second; then ANSWER_ENDED with its status
// and its largest resident size in KiB. Which command it is at stands in the file that HOSTILE_PROGRESS names, mapped by both.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORDS = 64, MOST_BYTES = 1 << 20, MOST_SECONDS = 10 };
// A warm-up runs in the server itself, so that every child finds what it left. A child that is to die is a sabotaged one.
enum request { REQUEST_WARM_UP = 1, REQUEST_RUN = 2, REQUEST_DIE = 3, REQUEST_RUN_ALL = 4 };
enum answer { ANSWER_RUNS = 1, ANSWER_ENDED = 2 };

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

typedef void exit_function(int);

// Arguments.swift: what `CommandLine.arguments` says.
void hostile_set_arguments(int32_t count, char *const *words);

static int channel = -1;
static volatile int64_t *at;
// Where a command that a child runs ends.
static jmp_buf command_end;
static volatile int is_in_command, exit_status;
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

// The signals as a process of its own would find them, whatever a command before changed, and the driver's limits.
static void become_new(void) {
    for (int number = 1; number < NSIG; number++) sigaction(number, &actions[number], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    struct rlimit cpu = {(rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1 + MOST_SECONDS), RLIM_INFINITY}, core = {0, 0};
    if (setrlimit(RLIMIT_CPU, &cpu) || setrlimit(RLIMIT_CORE, &core)) fail("setrlimit");
}

// The words of the next command; `next` is then behind it.
static int take_command(char **next, const char *end, char **words) {
    int count = 0;
    for (; *next < end && **next; *next += strlen(*next) + 1) {
        if (count < MOST_WORDS) words[count++] = *next;
    }
    words[count] = NULL;
    *next += 1;
    return count;
}

// stallctl's own errors have been thrown up to its `main` before it calls this.
void exit(int status) {
    if (is_in_command) {
        exit_status = status;
        longjmp(command_end, 1);
    }
    exit_function *end = (exit_function *)dlsym(RTLD_NEXT, "exit");
    if (end) end(status);
    _exit(status);
}

static int run_command(int count, char **words, char **environment) {
    is_in_command = 1;
    int status = _setjmp(command_end) ? exit_status : run_main(count, words, environment);
    is_in_command = 0;
    fflush(NULL);
    return status;
}

// The child: what a command prints before one that fails is of no use.
static int run_all(char *text, const char *end, char **environment, int ends_at_failure) {
    close(channel);
    char *words[MOST_WORDS + 1];
    for (char *next = text; next < end; ++*at) {
        int count = take_command(&next, end, words);
        if (ftruncate(STDOUT_FILENO, 0) || lseek(STDOUT_FILENO, 0, SEEK_SET)) fail("output");
        become_new();
        int status = run_command(count, words, environment);
        if (status && ends_at_failure) return status;
    }
    return 0;
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
    int progress = atoi(getenv("HOSTILE_PROGRESS"));
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, progress, 0);
    if (at == MAP_FAILED) fail("mmap");
    close(progress);
    unsetenv("HOSTILE_CHANNEL");
    unsetenv("HOSTILE_PROGRESS");
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
        const char *end = text + head[1];
        *at = 0;
        if (head[0] == REQUEST_WARM_UP) {
            char *next = text, *words[MOST_WORDS + 1];
            int count = take_command(&next, end, words);
            answer(ANSWER_ENDED, run_main(count, words, environment), 0);
            continue;
        }
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            if (head[0] == REQUEST_DIE) become_new(), raise(SIGILL);
            return run_all(text, end, environment, head[0] == REQUEST_RUN);
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
