// A program in C: its main thread marks its work and stalls once. `make c-example` builds and runs it.
//
//     watch-in-c [STORE]
//
// Without STORE: stalls.sqlite, here or in the directory that systemd gives a service for its state.
#include <stall_agent.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) void compress_slowly(void) {
    usleep(600000);
    __asm__ volatile("");  // keeps the call above from becoming a jump, which leaves no frame
}

static void live_well(stall_thread_marks *marks, int items) {
    for (int i = 0; i < items; i++) {
        stall_begin(marks);
        usleep(2000);
        stall_end(marks);
        usleep(18000);  // between end and begin nothing is expected of the thread
    }
}

int main(int count, char **arguments) {
    char error[200];
    stall_agent_configuration configuration = {
        .app = "in-c", .version = "1.0", .store = count > 1 ? arguments[1] : NULL};
    stall_agent *agent = stall_agent_start(&configuration, error, sizeof error);
    if (!agent) return fprintf(stderr, "%s\n", error), 1;
    stall_thread_marks *marks = stall_agent_watch_current_thread(agent, "compressor", 0);

    live_well(marks, 150);
    stall_begin(marks);
    stall_set_activity(marks, "compress album");
    compress_slowly();
    stall_set_activity(marks, NULL);
    stall_end(marks);
    live_well(marks, 100);

    stall_thread_marks_free(marks);
    stall_agent_stop(agent);
    puts("compress_slowly took 600 ms");
    return 0;
}
