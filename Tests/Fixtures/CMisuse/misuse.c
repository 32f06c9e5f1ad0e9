// Misuses the C interface in every way that the compiler accepts. Prints the expected result; a test compares.
#include <pthread.h>
#include <stall_agent.h>
#include <stdio.h>
#include <unistd.h>

static void *mark_elsewhere(void *marks) {
    stall_begin(marks);
    usleep(400000);
    stall_end(marks);
    return NULL;
}

int main(int count, char **arguments) {
    char error[64] = "", cut[8] = "";
    if (stall_agent_start(NULL, error, sizeof error)) return 1;
    puts(error);
    if (stall_agent_start(&(stall_agent_configuration){.store = arguments[1]}, error, sizeof error)) return 1;
    puts(error);
    if (stall_agent_start(&(stall_agent_configuration){.app = "a", .threshold_ms = 3}, cut, sizeof cut)) return 1;
    puts(cut);
    if (stall_agent_start(&(stall_agent_configuration){0}, NULL, 0)) return 1;
    stall_begin(NULL);
    stall_end(NULL);
    stall_set_activity(NULL, "none");
    stall_thread_marks_free(NULL);
    stall_agent_stop(NULL);
    if (stall_agent_watch_current_thread(NULL, "main", 0)) return 1;

    stall_agent *agent = stall_agent_start(
        &(stall_agent_configuration){.app = "misuse", .store = arguments[count - 1], .threshold_ms = 100}, NULL, 0);
    stall_thread_marks *marks = stall_agent_watch_current_thread(agent, NULL, 0);
    stall_end(marks);
    pthread_t other;
    pthread_create(&other, NULL, mark_elsewhere, marks);
    pthread_join(other, NULL);
    stall_begin(marks);
    stall_set_activity(marks, "\xff\xfe not UTF-8");
    stall_agent_stop(agent);
    stall_end(marks);
    stall_begin(marks);
    stall_thread_marks_free(marks);
    puts("done");
    return 0;
}
