// Waits by every call through the interposed functions, in several threads and until a cancellation. WatchedWaitsTests
// builds it in several ways: as it is, static, and with each sanitizer.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/select.h>
#include <unistd.h>

#include "door_loop.h"
#include "stall_beacon.h"
#include "stall_clock.h"
#include "stall_door.h"

enum { ROUNDS = 3, THREADS = 4, MANY = 200 };

static const char *const names[] = {"epoll_wait", "epoll_pwait", "poll", "ppoll", "select"};

static unsigned status_of(const stall_beacon *beacon) { return (unsigned)(stall_beacon_word(beacon) >> 56); }

static void play(int call) {
    door_loop loop = door_loop_make();
    stall_beacon *beacon = stall_beacon_create();
    stall_door *door = stall_door_open(beacon);
    for (int i = 0; i < ROUNDS; i++) door_loop_wait(&loop, call, 1);
    printf("%s %d %u\n", names[call], (int)stall_door_crossings(door), status_of(beacon));
    stall_door_close(door);
    door_loop_wait(&loop, call, 0);  // leaves
    stall_beacon_release(beacon);
    close(loop.descriptor);
    close(loop.set);
}

static stall_beacon *waiting;
static stall_door *waiting_door;

static void *wait_for_ever(void *context) {
    door_loop loop = door_loop_make();
    struct pollfd polled = {loop.descriptor, POLLIN, 0};
    (void)context;
    waiting_door = stall_door_open(waiting);
    poll(&polled, 1, -1);
    return NULL;
}

static void cancel(void) {
    pthread_t thread;
    void *result = NULL;
    waiting = stall_beacon_create();
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    while (status_of(waiting) != STALL_LOOP_WAITING) usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    stall_door_close(waiting_door);
    printf("cancelled %d, then %u\n", result == PTHREAD_CANCELED, status_of(waiting));
    stall_beacon_release(waiting);
}

static void *wait_often(void *context) {
    door_loop loop = door_loop_make();
    stall_door *door = stall_door_open(context);
    for (int i = 0; i < MANY; i++) door_loop_wait(&loop, i % 2 ? DOOR_LOOP_EPOLL : DOOR_LOOP_POLL, 0);
    stall_door_close(door);
    close(loop.descriptor);
    close(loop.set);
    return NULL;
}

static void wait_in_threads(void) {
    pthread_t threads[THREADS];
    stall_beacon *beacons[THREADS];
    uint64_t read = 0;
    for (int i = 0; i < THREADS; i++) {
        beacons[i] = stall_beacon_create();
        pthread_create(&threads[i], NULL, wait_often, beacons[i]);
    }
    for (int round = 0; round < MANY; round++) {
        for (int i = 0; i < THREADS; i++) read |= stall_beacon_word(beacons[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("%u", status_of(beacons[i]));
        stall_beacon_release(beacons[i]);
    }
    printf(" %s\n", read <= UINT64_MAX ? "read" : "");
}

// Arguments of select that libc accepts and the kernel's call does not, and the other way round.
static void select_oddly(void) {
    struct timeval second = {0, 1000001}, none = {0, 0}, negative = {0, -1};
    int results[] = {select(0, NULL, NULL, NULL, &second), select(0, NULL, NULL, NULL, &none)};
    int error = select(0, NULL, NULL, NULL, &negative) == -1 ? errno : 0;
    printf("selected %d %d %d\n", results[0], results[1], error);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int call = DOOR_LOOP_EPOLL; call <= DOOR_LOOP_SELECT; call++) play(call);
    select_oddly();
#if !__has_feature(thread_sanitizer)  // which reports a thread that is cancelled in poll, also without the door
    cancel();
#endif
    wait_in_threads();
    return 0;
}
