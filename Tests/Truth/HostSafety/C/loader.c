// The dynamic linker's lock, which every lookup of images takes: an agent that keeps it for longer than usual, and a
// forked child that needs it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "host_safety.h"

static uint64_t kept_ns;

void host_keep_loader_longer(uint64_t ns) { __atomic_store_n(&kept_ns, ns, __ATOMIC_SEQ_CST); }

// The sanitizers interpose it themselves.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
typedef int (*image_callback)(struct dl_phdr_info *, size_t, void *);
typedef struct {
    image_callback callback;
    void *context;
    bool has_rested;
} visit;

static int rest_and_visit(struct dl_phdr_info *image, size_t size, void *context) {
    visit *own = context;
    if (!own->has_rested) host_rest(__atomic_load_n(&kept_ns, __ATOMIC_SEQ_CST));
    own->has_rested = true;
    return own->callback(image, size, own->context);
}

// Interposed: the agent's threads sleep in it, as if they had lost their CPU there.
int dl_iterate_phdr(image_callback callback, void *context) {
    static int (*next)(image_callback, void *);
    int (*known)(image_callback, void *) = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    if (!known) {
        known = (int (*)(image_callback, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
        __atomic_store_n(&next, known, __ATOMIC_RELEASE);
    }
    char name[17] = {0};
    if (__atomic_load_n(&kept_ns, __ATOMIC_SEQ_CST) != 0) prctl(PR_GET_NAME, name, 0, 0, 0);
    if (strncmp(name, "stall-", 6) != 0) return known(callback, context);
    visit own = {callback, context, false};
    return known(rest_and_visit, &own);
}
#endif

static int count_image(struct dl_phdr_info *image, size_t size, void *context) {
    (void)image, (void)size;
    ++*(int *)context;
    return 0;
}

static void *nothing(void *context) { return context; }

void host_use_loader(void) {
    int count = 0;
    pthread_t thread;
    dl_iterate_phdr(count_image, &count);
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    if (library) dlclose(library);
    if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
}
