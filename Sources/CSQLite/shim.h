#include <sqlite3.h>

// SQLite counts its memory under one mutex for the whole process, which threads that each have a connection then wait for.
// Only before its first use; variadic, which Swift cannot call.
static inline int stall_sqlite_without_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
