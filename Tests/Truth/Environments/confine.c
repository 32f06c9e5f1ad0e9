// Runs a program with less than this machine gives: scripts/environments builds it statically, since it is executed in roots
// that contain hardly anything.
//
//     confine [--in FOLDER] [--refuse CALL[,CALL...]] [--docker] [--old-docker] [--hide NAME[,NAME...]] -- PROGRAM [ARGUMENT...]
//
// --refuse: these system calls fail with EPERM. --docker: those that Docker's default profile refuses on kernels from 4.8 on;
// --old-docker: on older ones, where ptrace and process_vm_readv are refused as well. --hide: files of these names below
// /proc do not exist, as gVisor has no /proc/PID/syscall.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct call {
    const char *name;
    int number;
    int error;
};

#define CALL(name) {#name, SYS_##name, EPERM}

// The names that --refuse takes beside Docker's profile.
static const struct call known[] = {
    CALL(process_vm_readv), CALL(rt_tgsigqueueinfo), CALL(ptrace), CALL(futex), CALL(openat), CALL(membarrier),
    CALL(memfd_create), CALL(prctl), CALL(epoll_pwait), CALL(eventfd2), CALL(timerfd_create),
};

// Source: moby/profiles seccomp/default.json: what is on no list of it for a container without capabilities of its own. The
// profile is a list of what is allowed; this is the other side of it.
static const struct call docker[] = {
    CALL(acct), CALL(add_key), CALL(bpf), CALL(clock_adjtime), CALL(clock_settime), {"clone3", SYS_clone3, ENOSYS},
    CALL(delete_module), CALL(finit_module), CALL(fanotify_init), CALL(fsconfig), CALL(fsmount), CALL(fsopen), CALL(fspick),
    CALL(get_mempolicy), CALL(init_module), CALL(io_uring_setup), CALL(io_uring_enter), CALL(io_uring_register), CALL(kcmp),
    CALL(kexec_load), CALL(kexec_file_load), CALL(keyctl), CALL(lookup_dcookie), CALL(mbind), CALL(mount),
    CALL(mount_setattr), CALL(move_mount), CALL(move_pages), CALL(open_by_handle_at), CALL(open_tree),
    CALL(perf_event_open), CALL(personality), CALL(pivot_root), CALL(process_madvise), CALL(quotactl), CALL(quotactl_fd),
    CALL(reboot), CALL(request_key), CALL(set_mempolicy), CALL(setdomainname), CALL(sethostname), CALL(setns),
    CALL(settimeofday), CALL(swapoff), CALL(swapon), CALL(syslog), CALL(umount2), CALL(unshare), CALL(userfaultfd),
    CALL(vhangup),
#ifdef __x86_64__
    CALL(create_module), CALL(ioperm), CALL(iopl), CALL(nfsservctl), CALL(sysfs), CALL(uselib), CALL(ustat), CALL(_sysctl),
#endif
};

// Of kernels before 4.8.
static const struct call old_docker[] = {CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev)};

enum { MOST = 160, NAMES = 8 };
static struct sock_filter program[2 * MOST];
static unsigned short length;

static void fail(const char *what) {
    perror(what);
    exit(125);
}

static void refuse(const struct call *call) {
    if (length + 2 > 2 * MOST - 2) fail("too many calls");
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 1);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)call->error);
}

static void refuse_all(const struct call *calls, size_t count) {
    for (size_t i = 0; i < count; i++) refuse(&calls[i]);
}

static void refuse_named(char *list) {
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i].name, name) != 0) i++;
        if (i == sizeof known / sizeof *known) {
            fprintf(stderr, "confine: it does not know the system call %s\n", name);
            exit(64);
        }
        refuse(&known[i]);
    }
}

static int install(unsigned flags) {
    struct sock_fprog whole = {.len = length, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
    const int result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole);
    if (result < 0) fail("seccomp");
    return result;
}

// MARK: Hidden files

static int hidden_count;
static const char *hidden[NAMES];

static int is_hidden(const char *path) {
    if (*path == '/' && strncmp(path, "/proc/", 6) != 0) return 0;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    for (int i = 0; i < hidden_count; i++)
        if (strcmp(last, hidden[i]) == 0) return 1;
    return 0;
}

// The path that a thread's openat names; false if it cannot be read whole.
static int read_path(pid_t thread, uint64_t address, char *path, size_t size) {
    memset(path, 0, size);
    // Not beyond the page: the next one may not be mapped.
    for (size_t done = 0; done + 1 < size;) {
        size_t part = 4096 - (address + done) % 4096;
        if (part > size - 1 - done) part = size - 1 - done;
        struct iovec own = {path + done, part}, its = {(void *)(uintptr_t)(address + done), part};
        if (process_vm_readv(thread, &own, 1, &its, 1, 0) <= 0) return 0;
        if (memchr(path + done, 0, part)) return 1;
        done += part;
    }
    return 0;
}

static void answer(int listener) {
    struct seccomp_notif request = {0};
    struct pollfd waiting = {listener, POLLIN, 0};
    // Without POLLIN the last process below the filter has ended.
    if (poll(&waiting, 1, -1) > 0 && !(waiting.revents & POLLIN)) exit(0);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
        if (errno == EINTR || errno == ENOENT) return;
        exit(0);
    }
    char path[256];
    const int hides = read_path((pid_t)request.pid, request.data.args[1], path, sizeof path) && is_hidden(path);
    struct seccomp_notif_resp response = {
        .id = request.id,
        .error = hides ? -ENOENT : 0,
        .flags = hides ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE,
    };
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void send_descriptor(int socket, int descriptor) {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (sendmsg(socket, &message, 0) != 1) fail("sendmsg");
}

static int receive_descriptor(int socket) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) exit(125);
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

// A child answers for the program: who started this process is to have the program itself as its child.
static int begin_hiding(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail("socketpair");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child != 0) {
        close(pair[1]);
        waitpid(child, NULL, 0);
        return pair[0];
    }
    // Nobody's child: the program may wait for every child that it finds.
    if (fork() != 0) _exit(0);
    close(pair[0]);
    // Not the program's standard output: who reads that waits for its end.
    close(0), close(1), close(2);
    signal(SIGINT, SIG_IGN);
    const int listener = receive_descriptor(pair[1]);
    for (;;) answer(listener);
}

int main(int count, char **words) {
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    int i = 1;
    for (; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--docker") == 0) {
            refuse_all(docker, sizeof docker / sizeof *docker);
        } else if (strcmp(words[i], "--old-docker") == 0) {
            refuse_all(docker, sizeof docker / sizeof *docker);
            refuse_all(old_docker, sizeof old_docker / sizeof *old_docker);
        } else if (strcmp(words[i], "--in") == 0 && i + 1 < count) {
            if (chdir(words[++i]) != 0) fail(words[i]);
        } else if (strcmp(words[i], "--refuse") == 0 && i + 1 < count) {
            refuse_named(words[++i]);
        } else if (strcmp(words[i], "--hide") == 0 && i + 1 < count) {
            for (char *name = strtok(words[++i], ","); name && hidden_count < NAMES; name = strtok(NULL, ","))
                hidden[hidden_count++] = name;
        } else {
            fprintf(stderr, "confine: unknown option %s\n", words[i]);
            return 64;
        }
    }
    if (i + 1 >= count) return 64;
    const int socket = hidden_count ? begin_hiding() : -1;
    if (hidden_count) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (hidden_count) {
        send_descriptor(socket, install(SECCOMP_FILTER_FLAG_NEW_LISTENER));
        close(socket);
    } else if (length > 2) {
        install(0);
    }
    execv(words[i + 1], words + i + 1);
    fail(words[i + 1]);
}
