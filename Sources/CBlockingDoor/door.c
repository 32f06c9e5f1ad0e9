// libstallwatch-blocking.so: the interposed functions (CBlockingCalls/Calls) in a program that was not built with them.
// `stallctl run --forbid-blocking` has it loaded behind libstallwatch-preload.so. Their reports go to the agent, which is
// another object and comes later.
//
// libstallwatch-dispatch.so is the same with the functions of Dispatch, for programs that are linked with it: in others they
// must not seem to be there.
#define _GNU_SOURCE
#include "../CBlockingCalls/blocking.h"
#include "blocking_door.h"

#include <dlfcn.h>

#ifdef STALL_DOOR_OF_DISPATCH
#define stallwatch_blocking_set stallwatch_dispatch_set
#endif
// Of the other object, if that is loaded.
extern void stallwatch_dispatch_set(const stall_blocking_core *given, bool is_watched) __attribute__((weak));

bool blocking_is_watched;
static const stall_blocking_core *core;

void stallwatch_blocking_set(const stall_blocking_core *given, bool is_watched) {
    if (given) core = given;
    __atomic_store_n(&blocking_is_watched, is_watched, __ATOMIC_RELEASE);
#ifndef STALL_DOOR_OF_DISPATCH
    if (stallwatch_dispatch_set) stallwatch_dispatch_set(given, is_watched);
#endif
}

bool blocking_is_forbidden_here(uintptr_t frame) { return core->is_forbidden_here(frame); }

blocking_call blocking_begin(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller) {
    return core->begin(name, kind, frame, caller);
}

void blocking_end(const blocking_call *call) { core->end(call); }

void *blocking_next(const char *name) { return dlsym(RTLD_NEXT, name); }
