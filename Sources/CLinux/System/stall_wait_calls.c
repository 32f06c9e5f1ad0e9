#include "stall_wait_calls.h"

#include <stddef.h>

void *(*stall_wait_calls_behind)(const char *name);
