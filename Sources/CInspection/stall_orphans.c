#include "stall_orphans.h"

#include <sys/prctl.h>

void stall_adopt_orphans(void) { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }
