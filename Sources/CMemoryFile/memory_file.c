#define _GNU_SOURCE
#include "stall_memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int stall_memory_file(void) { return memfd_create("stallctl", MFD_CLOEXEC); }

int stall_closed_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
