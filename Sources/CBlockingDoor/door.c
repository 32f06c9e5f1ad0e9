// libstallwatch-blocking.so: the interposed functions (CBlockingCalls/Calls) in a program that was not built with them.
// `stallctl run --forbid-blocking` has it loaded behind libstallwatch-preload.so. Their reports go to the agent, which is
// another object and comes later.
#define _GNU_SOURCE
#include "../CBlockingCalls/blocking.h"
#include "blocking_door.h"

#include <dlfcn.h>
#include <link.h>

bool blocking_is_watched;
static const stall_blocking_core *core;

void stallwatch_blocking_set(const stall_blocking_core *given, bool is_watched) {
    if (given) core = given;
    __atomic_store_n(&blocking_is_watched, is_watched, __ATOMIC_RELEASE);
}

bool blocking_is_forbidden_here(uintptr_t frame) { return core->is_forbidden_here(frame); }

blocking_call blocking_begin(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller) {
    return core->begin(name, kind, frame, caller);
}

void blocking_end(const blocking_call *call) { core->end(call); }

typedef struct {
    const char *name;
    void *found;
} search;

static bool is_own(const void *address) {
    Dl_info here, there;
    return dladdr(&core, &here) != 0 && dladdr(address, &there) != 0 && here.dli_fbase == there.dli_fbase;
}

static int search_image(struct dl_phdr_info *image, size_t size, void *context) {
    (void)size;
    search *search = context;
    void *handle = image->dlpi_name && *image->dlpi_name ? dlopen(image->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = handle ? dlsym(handle, search->name) : NULL;
    if (found && !is_own(found)) search->found = found;
    if (handle) dlclose(handle);
    return search->found != NULL;
}

// A plug-in's libraries, libdispatch for example, are behind no other object, but its calls come here as well.
void *blocking_next(const char *name) {
    search search = {name, dlsym(RTLD_NEXT, name)};
    if (!search.found) dl_iterate_phdr(search_image, &search);
    return search.found;
}
