-- A large source is imported in several transactions, a source file that is as it was is not opened again, and what
-- changed in an agent's store is found without a look at all its reports.

-- Of a source that is imported in part: its reports up to this number are here as they were at this revision. Null once
-- all is here: then `revision` says so of everything.
alter table source add column partial_seq integer;
alter table source add column partial_revision integer;

-- What a source file and its write-ahead log were like when all of it was imported. Only a central store has rows.
create table source_file (
    path text primary key,
    device integer not null,
    inode integer not null,
    size integer not null,
    modified_ns integer not null,
    changed_ns integer not null,
    -- Null where there was no log. Without the time of its last other change: a reader that is root sets its owner.
    log_inode integer,
    log_size integer,
    log_modified_ns integer
) strict, without rowid;

-- Only an agent's reports have no group, and only an agent's store is read once a minute: a central store does not pay
-- for it, which would take 13 bytes a report.
create index report_revision on report (source, revision) where signature is null;
