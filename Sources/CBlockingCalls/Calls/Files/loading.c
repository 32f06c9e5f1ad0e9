// Libraries. The loader searches on behalf of its caller (RUNPATH, namespace), which it knows by the return address: it is called
// last, so that the return address is the program's. The report is made before, and has no length.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#if defined(__GLIBC__) && defined(__clang__)
#include <dlfcn.h>

#include "../interpose.h"

INTERPOSE(dlopen)
INTERPOSE(dlmopen)

static bool may_load(const char *file, int mode) { return file && *file && !(mode & RTLD_NOLOAD); }

#define LOAD(name, arguments)                                                    \
    if (blocking_is_forbidden() && may_load(file, mode)) {                       \
        const blocking_call call = BLOCKING_BEGIN(#name, STALL_BLOCKING_DISK);   \
        blocking_end(&call);                                                     \
    }                                                                            \
    __attribute__((musttail)) return NEXT(name) arguments

void *dlopen(const char *file, int mode) { LOAD(dlopen, (file, mode)); }

void *dlmopen(Lmid_t names, const char *file, int mode) { LOAD(dlmopen, (names, file, mode)); }
#endif
