#define _GNU_SOURCE
#include "thread_progress.h"

#include <errno.h>
#include <time.h>

enum { CLOCK_PAUSE_NS = 50000 };

// If the kernel does not count, the thread's CPU clock must suffice.
int stall_thread_progress(stall_thread_files *files, thread_progress *progress) {
    stall_thread_schedule schedule;
    const int error = stall_thread_read_schedule(files, &schedule);
    *progress = (thread_progress){schedule.cpu_ns, schedule.slices};
    if (error == 0 && schedule.slices != 0) return 0;
    if (error == ESRCH || (error != 0 && files->numbers[STALL_THREAD_SCHEDSTAT] >= 0)) return error;
    return stall_thread_cpu_ns(files->thread, &progress->cpu_ns);
}

// Without /proc: a thread whose CPU clock advances is running.
static int is_clock_running(int32_t thread, bool *is_running) {
    const struct timespec pause = {.tv_nsec = CLOCK_PAUSE_NS};
    uint64_t before, after;
    int error = stall_thread_cpu_ns(thread, &before);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    if (error == 0) error = stall_thread_cpu_ns(thread, &after);
    *is_running = error == 0 && after - before >= CLOCK_PAUSE_NS / 2;
    return error;
}

static int find_out_whether_running(stall_thread_files *files, stall_thread_position *position) {
    stall_thread_state state;
    *position = (stall_thread_position){.system_call = -1};
    int error = stall_thread_read_state(files, &state);
    const bool is_state_known = error == 0;
    if (error == 0) position->is_running = state.letter == 'R';
    else if (error != ESRCH) error = is_clock_running(files->thread, &position->is_running);
    if (error != 0) return error;
    if (position->is_running) return 0;
    return is_state_known ? ENODATA : EAGAIN;
}

int stall_thread_find_position(stall_thread_files *files, stall_thread_position *position) {
    if (!stall_thread_files_have_position(files)) return find_out_whether_running(files, position);
    const int error = stall_thread_read_position(files, position);
    if (error != 0 || position->is_running) return error;
    return position->stack_pointer != 0 && position->program_counter != 0 ? 0 : ENODATA;
}
