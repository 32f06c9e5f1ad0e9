#define _GNU_SOURCE
#include "capture_testing.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

typedef struct {
    uint64_t *addresses;
    uint32_t capacity, count, skip;
} recording;

static _Unwind_Reason_Code record(struct _Unwind_Context *context, void *argument) {
    recording *recording = argument;
    uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || recording->count == recording->capacity) return _URC_NORMAL_STOP;
    if (recording->skip > 0) recording->skip--; else recording->addresses[recording->count++] = address;
    return _URC_NO_REASON;
}

__attribute__((noinline)) uint32_t testing_return_addresses(uint64_t *addresses, uint32_t capacity) {
    recording recording = {addresses, capacity, 0, 1};
    _Unwind_Backtrace(record, &recording);
    return recording.count;
}

uint64_t testing_function_start(uint64_t address) {
    return (uint64_t)_Unwind_FindEnclosingFunction((void *)(uintptr_t)address);
}

// A frame with a frame pointer, a call of the first argument with the second, and back: no image, no table.
bool testing_call_from_generated_code(void (*body)(void *), void *context) {
#if defined(__x86_64__)
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
#else
    static const uint32_t code[] = {
        0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#endif
    uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    memcpy(memory, code, sizeof code);
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0) return false;
    ((void (*)(void (*)(void *), void *))(uintptr_t)memory)(body, context);
    munmap(memory, 4096);
    return true;
}

int testing_connect_to_full_backlog(int milliseconds) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bind(listener, (struct sockaddr *)&address, length);
    listen(listener, 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    for (int i = 0; i < 4; i++) {
        connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), (struct sockaddr *)&address, length);
    }
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_usec = milliseconds * 1000};
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return connect(client, (struct sockaddr *)&address, length);
}

static _Thread_local struct {
    uint32_t microseconds;
    int result;
} sleep_request;

static void sleep_in_handler(int number) {
    (void)number;
    sleep_request.result = usleep(sleep_request.microseconds);
}

int testing_sleep_in_handler(int on_alternate_stack, uint32_t microseconds) {
    struct sigaction action = {.sa_handler = sleep_in_handler, .sa_flags = SA_ONSTACK};
    if (on_alternate_stack) {
        stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
        sigaltstack(&stack, NULL);
    }
    sigset_t unblocked;  // the test's own thread may come from a pool that blocks signals
    sigemptyset(&unblocked);
    sigaddset(&unblocked, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &unblocked, NULL);
    sleep_request.microseconds = microseconds;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    return sleep_request.result;
}

static atomic_int owner_signals;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&owner_signals, 1);
}

void testing_own_signal(void) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGURG, &action, NULL);
}

int testing_owner_signal_count(void) { return atomic_load(&owner_signals); }

const int testing_process_vm_readv = SYS_process_vm_readv, testing_openat = SYS_openat, testing_pipe2 = SYS_pipe2,
          testing_rt_tgsigqueueinfo = SYS_rt_tgsigqueueinfo;

int testing_forbid_system_call(int number) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = instructions};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    // On all threads: the sampler may be used on another one than this.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : errno;
}

int testing_hide_proc(void) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    return mount("none", "/proc", "tmpfs", 0, NULL) == 0 ? 0 : errno;
}

static struct {
    int spins;
    volatile int *reached;
} overflow_request;

static void handle_overflow(int number) {
    (void)number;
    *overflow_request.reached = 1;
    while (overflow_request.spins) {}
    for (;;) pause();
}

__attribute__((noinline)) static int overflow(volatile int *previous) {
    volatile int here[64];
    here[0] = *previous + 1;
    return overflow(here) + here[0];
}

void testing_overflow_stack(int spins, volatile int *reached) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = handle_overflow, .sa_flags = SA_ONSTACK};
    volatile int zero = 0;
    overflow_request.spins = spins;
    overflow_request.reached = reached;
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    overflow(&zero);
}

const char *testing_library_of(const char *symbol) {
    Dl_info found;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    return address && dladdr(address, &found) ? found.dli_fname : NULL;
}

static uint8_t same_buffer[2 << 20];

// A hole of a file takes long to read and no memory.
int64_t testing_long_system_call(void) {
    enum { COUNT = 1023 };
    struct iovec parts[COUNT];
    int file = memfd_create("hole", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, INT64_C(1) << 32) != 0) return -1;
    for (int i = 0; i < COUNT; i++) parts[i] = (struct iovec){same_buffer, sizeof same_buffer};
    int64_t count = preadv(file, parts, COUNT, 0);
    close(file);
    return count;
}

int testing_vfork(uint32_t microseconds) {
    const struct timespec length = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    pid_t child = vfork();
    if (child == 0) {
        syscall(SYS_nanosleep, &length, NULL);
        _exit(0);
    }
    return child > 0 ? waitpid(child, NULL, 0) == child ? 0 : -1 : -1;
}

static _Thread_local volatile char large_thread_local[66000];

int testing_use_large_thread_local(void) { return large_thread_local[1]++; }
