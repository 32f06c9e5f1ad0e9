#include <sqlite3.h>

// SQLite counts its memory under one mutex for the whole process, which threads that each have a connection then wait for.
// Only before its first use; variadic, which Swift cannot call.
static inline int stall_sqlite_without_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

// A name in double quotes is a name: SQLite takes one that it does not know for a text.
static inline void stall_sqlite_expect_plain_sql(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
}

// A connection to a file that may have been made to harm its reader: nothing in its schema runs, and no value, statement or
// program is larger than any store of ours has. Before its first statement.
static inline void stall_sqlite_distrust(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 4 << 20);
    sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(database, SQLITE_LIMIT_COLUMN, 100);
    sqlite3_limit(database, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(database, SQLITE_LIMIT_COMPOUND_SELECT, 20);
    sqlite3_limit(database, SQLITE_LIMIT_VDBE_OP, 100000);
    sqlite3_limit(database, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(database, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(database, SQLITE_LIMIT_WORKER_THREADS, 0);
}

// The store that we write ourselves: the same for its schema, and no limits.
static inline void stall_sqlite_ignore_programs(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
