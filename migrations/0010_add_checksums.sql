-- Checksums of the rows that no content hash covers, so that a flipped bit in a version, a loop's name or a duration is
-- seen. Null in rows of older programs: nobody can tell what they were.
-- From this file on `user_version` is the number of the last migration.

-- Of all other columns but the key; Sources/StallStore/RowChecksums.swift says how.
alter table process_run add column checksum integer;
alter table loop add column checksum integer;
alter table label add column checksum integer;
alter table report add column checksum integer;
