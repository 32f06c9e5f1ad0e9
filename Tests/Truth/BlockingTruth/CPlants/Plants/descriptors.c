// Plants that read and write descriptors which are not O_NONBLOCK.
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "planting.h"

static char bytes[512];
static const struct iovec part = {bytes, sizeof bytes};

static void rewind_file(void) { NEED(lseek(plants_file, 0, SEEK_SET) == 0); }
static void fill_pipe(void) { plants_make_pipe(true); }
static void make_pipe(void) { plants_make_pipe(false); }
static void make_full_socket(void) { plants_make_sockets(SOCK_STREAM, true); }
static void make_socket(void) { plants_make_sockets(SOCK_STREAM, false); }

PLANT(read_pipe) { NEED(read(plants_ends[0], bytes, 1) == 1); }
PLANT(readv_pipe) { NEED(readv(plants_ends[0], &part, 1) == 1); }
PLANT(read_socket) { NEED(read(plants_ends[0], bytes, 1) == 1); }
PLANT(read_file) { NEED(read(plants_file, bytes, sizeof bytes) > 0); }
PLANT(pread_file) { NEED(pread(plants_file, bytes, sizeof bytes, 0) > 0); }
PLANT(preadv_file) { NEED(preadv(plants_file, &part, 1, 0) > 0); }
PLANT(preadv2_file) { NEED(preadv2(plants_file, &part, 1, 0, 0) > 0); }
PLANT(write_pipe) { NEED(write(plants_ends[1], bytes, 1) == 1); }
PLANT(writev_pipe) { NEED(writev(plants_ends[1], &part, 1) > 0); }
PLANT(write_socket) { NEED(write(plants_ends[1], bytes, 1) == 1); }
PLANT(write_file) { NEED(write(plants_file, bytes, sizeof bytes) > 0); }
PLANT(pwrite_file) { NEED(pwrite(plants_file, bytes, sizeof bytes, 0) > 0); }
PLANT(pwritev_file) { NEED(pwritev(plants_file, &part, 1, 0) > 0); }

static int timer = -1;

static void set_timer(void) {
    if (timer < 0) timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    NEED(timer >= 0);
}

// The timer starts here, so that it is not ready before the call.
PLANT(read_timer) {
    timerfd_settime(timer, 0, &(struct itimerspec){.it_value = {0, MILLISECOND}}, NULL);
    uint64_t count;
    NEED(read(timer, &count, sizeof count) == sizeof count);
}

static int terminal = -1;

static void open_terminal(void) {
    if (terminal >= 0) return;
    const int other = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    NEED(other >= 0 && grantpt(other) == 0 && unlockpt(other) == 0);
    terminal = open(ptsname(other), O_RDWR | O_NOCTTY | O_CLOEXEC);
    NEED(terminal >= 0);
}

PLANT(write_terminal) { NEED(write(terminal, "", 1) == 1); }

PLANT(recv) { NEED(recv(plants_ends[0], bytes, 1, 0) == 1); }
PLANT(recvfrom) { NEED(recvfrom(plants_ends[0], bytes, 1, 0, NULL, NULL) == 1); }
PLANT(recvmsg) {
    struct msghdr message = {.msg_iov = (struct iovec *)&part, .msg_iovlen = 1};
    NEED(recvmsg(plants_ends[0], &message, 0) == 1);
}
PLANT(send) { NEED(send(plants_ends[0], bytes, 1, 0) == 1); }
PLANT(sendto) { NEED(sendto(plants_ends[0], bytes, 1, 0, NULL, 0) == 1); }
PLANT(sendmsg) {
    const struct msghdr message = {.msg_iov = (struct iovec *)&part, .msg_iovlen = 1};
    NEED(sendmsg(plants_ends[0], &message, 0) > 0);
}

static int second_pipe[2] = {-1, -1};

static void make_pipes(void) {
    for (int i = 0; i < 2; i++) {
        if (second_pipe[i] >= 0) close(second_pipe[i]);
    }
    NEED(pipe2(second_pipe, O_CLOEXEC) == 0);
    fill_pipe();
}

static int copy = -1;

static void open_copy(void) {
    if (copy < 0) copy = open(plants_path("copy"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    NEED(copy >= 0 && lseek(copy, 0, SEEK_SET) == 0);
    make_pipe();
}

PLANT(sendfile) { NEED(sendfile(plants_ends[1], plants_file, &(off_t){0}, 100) > 0); }
PLANT(splice) { NEED(splice(plants_file, &(off64_t){0}, plants_ends[1], NULL, 100, 0) > 0); }
PLANT(tee) { NEED(tee(plants_ends[0], second_pipe[1], 1, 0) == 1); }
PLANT(vmsplice) { NEED(vmsplice(plants_ends[1], &part, 1, 0) > 0); }
PLANT(copy_file_range) { NEED(copy_file_range(plants_file, &(off64_t){0}, copy, NULL, 100, 0) > 0); }

static const plant plants[] = {
    {"read_pipe", STALL_BLOCKING_IPC, fill_pipe, plant_read_pipe},
    {"readv_pipe", STALL_BLOCKING_IPC, fill_pipe, plant_readv_pipe},
    {"read_socket", STALL_BLOCKING_IPC, make_full_socket, plant_read_socket},
    {"read_file", STALL_BLOCKING_DISK, rewind_file, plant_read_file},
    {"pread_file", STALL_BLOCKING_DISK, NULL, plant_pread_file},
    {"preadv_file", STALL_BLOCKING_DISK, NULL, plant_preadv_file},
    {"preadv2_file", STALL_BLOCKING_DISK, NULL, plant_preadv2_file},
    {"write_pipe", STALL_BLOCKING_IPC, make_pipe, plant_write_pipe},
    {"writev_pipe", STALL_BLOCKING_IPC, make_pipe, plant_writev_pipe},
    {"write_socket", STALL_BLOCKING_IPC, make_socket, plant_write_socket},
    {"write_file", STALL_BLOCKING_DISK, rewind_file, plant_write_file},
    {"pwrite_file", STALL_BLOCKING_DISK, NULL, plant_pwrite_file},
    {"pwritev_file", STALL_BLOCKING_DISK, NULL, plant_pwritev_file},
    {"read_timer", STALL_BLOCKING_IPC, set_timer, plant_read_timer},
    {"write_terminal", STALL_BLOCKING_IPC, open_terminal, plant_write_terminal},
    {"recv", STALL_BLOCKING_IPC, make_full_socket, plant_recv},
    {"recvfrom", STALL_BLOCKING_IPC, make_full_socket, plant_recvfrom},
    {"recvmsg", STALL_BLOCKING_IPC, make_full_socket, plant_recvmsg},
    {"send", STALL_BLOCKING_IPC, make_socket, plant_send},
    {"sendto", STALL_BLOCKING_IPC, make_socket, plant_sendto},
    {"sendmsg", STALL_BLOCKING_IPC, make_socket, plant_sendmsg},
    {"sendfile", STALL_BLOCKING_DISK, make_pipe, plant_sendfile},
    {"splice", STALL_BLOCKING_DISK, make_pipe, plant_splice},
    {"tee", STALL_BLOCKING_IPC, make_pipes, plant_tee},
    {"vmsplice", STALL_BLOCKING_IPC, make_pipe, plant_vmsplice},
    {"copy_file_range", STALL_BLOCKING_DISK, open_copy, plant_copy_file_range},
};
const plant_family descriptor_family = {plants, COUNT_OF(plants)};
