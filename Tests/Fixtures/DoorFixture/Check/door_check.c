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
    stall_door *door = stall_door_open(STALL_DOOR_ANY);
    stall_beacon *beacon = stall_door_beacon(door);
    stall_beacon_retain(beacon);
    for (int i = 0; i < ROUNDS; i++) door_loop_wait(&loop, call, 1);
    printf("%s %d %u\n", names[call], (int)stall_door_crossings(door), status_of(beacon));
    stall_door_close(door);
    door_loop_wait(&loop, call, 0);  // leaves
    stall_beacon_release(beacon);
    close(loop.descriptor);
    close(loop.set);
}

// A thread has one door until its last watcher leaves, and then another one. A loop that waits by epoll does not take a
// poll before its first wait for its own.
static void watch_twice(void) {
    door_loop loop = door_loop_make();
    stall_door *first = stall_door_open(STALL_DOOR_EPOLL), *second = stall_door_open(STALL_DOOR_ANY);
    door_loop_wait(&loop, DOOR_LOOP_POLL, 0);
    stall_door_close(first);
    for (int i = 0; i < ROUNDS; i++) door_loop_wait(&loop, DOOR_LOOP_EPOLL, 1);
    const int waits = (int)stall_door_crossings(second);
    stall_beacon *beacon = stall_door_beacon(second);
    stall_beacon_retain(beacon);
    stall_door_close(second);
    stall_door *third = stall_door_open(STALL_DOOR_ANY);
    printf("twice %d %d, then %u\n", first == second, waits, status_of(beacon));
    printf("again %d %d\n", stall_door_beacon(third) == beacon, (int)stall_door_crossings(third));
    stall_door_close(third);
    door_loop_wait(&loop, DOOR_LOOP_EPOLL, 0);  // leaves
    stall_beacon_release(beacon);
    close(loop.descriptor);
    close(loop.set);
}

static stall_door *waiting_door;

static void *wait_for_ever(void *context) {
    door_loop loop = door_loop_make();
    struct pollfd polled = {loop.descriptor, POLLIN, 0};
    (void)context;
    __atomic_store_n(&waiting_door, stall_door_open(STALL_DOOR_ANY), __ATOMIC_RELEASE);
    poll(&polled, 1, -1);
    return NULL;
}

static void cancel(void) {
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    while (!__atomic_load_n(&waiting_door, __ATOMIC_ACQUIRE)) usleep(1000);
    stall_beacon *waiting = stall_door_beacon(waiting_door);
    while (status_of(waiting) != STALL_LOOP_WAITING) usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d, then %u\n", result == PTHREAD_CANCELED, status_of(waiting));
    stall_door_close(waiting_door);
}

static void *wait_often(void *context) {
    door_loop loop = door_loop_make();
    stall_door *door = stall_door_open(STALL_DOOR_ANY);
    stall_beacon_retain(stall_door_beacon(door));
    __atomic_store_n((stall_beacon **)context, stall_door_beacon(door), __ATOMIC_RELEASE);
    for (int i = 0; i < MANY; i++) door_loop_wait(&loop, i % 2 ? DOOR_LOOP_EPOLL : DOOR_LOOP_POLL, 0);
    stall_door_close(door);
    close(loop.descriptor);
    close(loop.set);
    return NULL;
}

static void wait_in_threads(void) {
    pthread_t threads[THREADS];
    stall_beacon *beacons[THREADS] = {NULL};
    uint64_t read = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, wait_often, &beacons[i]);
    }
    for (int round = 0; round < MANY; round++) {
        for (int i = 0; i < THREADS; i++) {
            const stall_beacon *beacon = __atomic_load_n(&beacons[i], __ATOMIC_ACQUIRE);
            if (beacon) read |= stall_beacon_word(beacon);
        }
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
    watch_twice();
#if !__has_feature(thread_sanitizer)  // which reports a thread that is cancelled in poll, also without the door
    cancel();
#endif
    wait_in_threads();
    return 0;
}
