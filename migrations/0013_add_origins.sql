-- Stores that were copied and then written to by two agents, and names that sources do not agree on.

-- Null for a store of its own. Of a copy that went its own way: the store that it says to be; its own `store` is then derived
-- from its first report.
alter table source add column origin blob check (origin is null or length(origin) = 16);
create index source_origin on source (origin) where origin is not null;

-- How often a report of it came as a line: `revision` says only how far the store itself was taken.
alter table source add column line_count integer not null default 0;
update source set line_count = 1
where revision = 0 and exists (select 1 from report where report.source = source.id);

-- Where the agent ran that writes under this source: what tells a copy from the store that it was made of. Null in a
-- central store.
alter table source add column machine text;
alter table source add column boot_id text;
alter table source add column device integer;
alter table source add column inode integer;

-- The source whose names a place has; null for those that `symbolicate` gave it, and of stores before.
alter table location add column namer integer;

-- Places that other sources name otherwise. Their first names stay.
create table name_conflict (
    location integer not null references location,
    source integer not null references source,
    primary key (location, source)
) strict, without rowid;
