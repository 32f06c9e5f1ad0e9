// Orphans of a program: processes below it whose parents have ended.
#pragma once

/// Makes this process the parent of all orphans below it, instead of init. It has to take their statuses.
void stall_adopt_orphans(void);
