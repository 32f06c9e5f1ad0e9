// How a site stalls: always in line, as if it had been written there.
#pragma once
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "grouping_sites.h"

#define STALL_MS 40

#define STALL(leaf)                                                                              \
    do {                                                                                         \
        if ((leaf) == site_leaf_sleep) {                                                         \
            usleep(STALL_MS * 1000);                                                             \
        } else if ((leaf) == site_leaf_lock) {                                                   \
            sem_t semaphore;                                                                     \
            struct timespec limit;                                                               \
            sem_init(&semaphore, 0, 0);                                                          \
            clock_gettime(CLOCK_REALTIME, &limit);                                               \
            limit.tv_nsec += STALL_MS * 1000000;                                                 \
            if (limit.tv_nsec >= 1000000000) {                                                   \
                limit.tv_nsec -= 1000000000;                                                     \
                limit.tv_sec += 1;                                                               \
            }                                                                                    \
            sem_timedwait(&semaphore, &limit);                                                   \
            sem_destroy(&semaphore);                                                             \
        } else {                                                                                 \
            struct timespec begin, now;                                                          \
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);                                      \
            do {                                                                                 \
                for (volatile int turn = 0; turn < 20000; turn += 1) {                           \
                }                                                                                \
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);                                    \
            } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < \
                     STALL_MS);                                                                  \
        }                                                                                        \
    } while (0)
