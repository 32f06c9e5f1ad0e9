// Functions that do nothing but wait.
#include <time.h>
#include <unistd.h>

#include "../blocking.h"

static struct {
    int (*usleep)(useconds_t);
} next;

__attribute__((constructor)) static void find_next(void) {
    __atomic_store_n((void **)&next.usleep, blocking_next("usleep"), __ATOMIC_RELEASE);
}

int usleep(useconds_t time) {
    if (time == 0 || !blocking_is_forbidden()) return next.usleep(time);
    const blocking_call call = BLOCKING_BEGIN("usleep", STALL_BLOCKING_SLEEP);
    const int result = next.usleep(time);
    blocking_end(&call);
    return result;
}
