#define _GNU_SOURCE
#include "stall_pin.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "stall_fork.h"

// A program cannot be unloaded; it has no name in the loader's list. dlopen is searched for, because a static program's
// linker warns of every reference to it.
static void pin_image(void) {
    static const char within = 0;
    Dl_info info;
    struct link_map *image = NULL;
    if (dladdr1(&within, &info, (void **)&image, RTLD_DL_LINKMAP) == 0 || !image || !image->l_name[0]) return;
    void *(*load)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    void *handle = load ? load(image->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    if (handle) dlclose(handle);  // the image stays
}

void stall_pin_image(void) {
    stall_fork_defer();
    pin_image();
    stall_fork_allow();
}
