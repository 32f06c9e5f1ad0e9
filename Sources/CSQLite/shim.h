#include <sqlite3.h>

// SQLite guards its memory statistics with one mutex for the whole process, which threads with a connection each
// contend for. Call it before SQLite's first use. In C, because sqlite3_config is variadic, which Swift cannot call.
static inline int stall_sqlite_without_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

// Text in double quotes must be an identifier: by default SQLite treats an unknown one as a string.
static inline void stall_sqlite_expect_plain_sql(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
}

// No row or value is larger than in any store of this program. CellSizes.swift checks those that SQLite accepts
// regardless.
static inline void stall_sqlite_limit_values(sqlite3 *database) {
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 4 << 20);
}

// Hardens a connection to an untrusted file: nothing in its schema runs, and no value, statement or program is larger
// than in any store of this program. Call it before the first statement.
static inline void stall_sqlite_distrust(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
    stall_sqlite_limit_values(database);
    sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(database, SQLITE_LIMIT_COLUMN, 100);
    sqlite3_limit(database, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(database, SQLITE_LIMIT_COMPOUND_SELECT, 20);
    sqlite3_limit(database, SQLITE_LIMIT_VDBE_OP, 100000);
    sqlite3_limit(database, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(database, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(database, SQLITE_LIMIT_WORKER_THREADS, 0);
}

// For a store that this program writes: the same protection from its schema, but no limits.
static inline void stall_sqlite_ignore_programs(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}

// The file of an open database as SQLite has it open, or its log if `log` is set. Null if there is none.
static inline sqlite3_file *stall_sqlite_file(sqlite3 *database, int log) {
    sqlite3_file *file = 0;
    int which = log ? SQLITE_FCNTL_JOURNAL_POINTER : SQLITE_FCNTL_FILE_POINTER;
    if (sqlite3_file_control(database, "main", which, &file) != SQLITE_OK) return 0;
    return file && file->pMethods ? file : 0;
}

static inline long long stall_sqlite_file_size(sqlite3 *database, int log) {
    sqlite3_file *file = stall_sqlite_file(database, log);
    sqlite3_int64 size = 0;
    return file && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : 0;
}

// Whether `count` bytes could be read; those behind the end are 0.
static inline int stall_sqlite_file_read(sqlite3 *database, int log, void *bytes, int count, long long offset) {
    sqlite3_file *file = stall_sqlite_file(database, log);
    int code = file ? file->pMethods->xRead(file, bytes, count, offset) : SQLITE_ERROR;
    return code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ;
}
