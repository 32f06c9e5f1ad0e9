// The schema's history: the files of the folder migrations/, as they are. In C, whose compiler embeds a file as it is: as an
// array in Swift, which each pass of its optimizer visits byte by byte, they took a third of the time of StallStore.
#pragma once

/// A numbered step of the schema.
typedef struct {
    const char *_Nonnull name;  ///< the file's without its extension; it begins with four digits
    const char *_Nonnull sql;
} StallMigration;

extern const int stall_migration_count;

/// The one at `index`, from 0 to below `stall_migration_count`, in order.
const StallMigration *_Nonnull stall_migration(int index);

/// The schema after all of them, as one script.
const char *_Nonnull stall_newest_schema(void);
