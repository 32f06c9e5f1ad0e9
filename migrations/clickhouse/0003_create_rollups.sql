-- Totals by day, of each shard's own reports. They are added up from the reports again when a day has changed, never by a
-- view that an insert feeds: what is sent twice would count twice.
-- Each time is a generation, and a day's rows are those of the generation in `rollup_day`, which is written when every shard
-- has them. Who reads meanwhile reads the generation before; its partition is dropped afterwards.

-- One row a day, whole on every shard.
create table if not exists {database}.rollup_day (
    day Int32,
    -- Its roll-ups; 0 while it is not fresh.
    generation Int64,
    -- 0 from when a writer begins to add reports of the day until its roll-ups are those of all: then read the reports.
    is_fresh UInt8,
    -- When this was so, in microseconds since 1970.
    version Int64
) engine = ReplacingMergeTree(version) order by day;

create table if not exists {database}.rollup_local (
    day Int32,
    generation Int64,
    app String,
    version String,
    build_id String,
    loop_name String,
    verdict UInt8,
    cause Int8,
    -- Whether the loop recorded its watched time.
    is_watched UInt8,
    signature Int64,
    report_count Int64,
    total_ns Int64,
    cpu_ns Int64,
    min_ns Int64,
    max_ns Int64,
    -- The longest report.
    max_id FixedString(16),
    first_us Int64,
    last_us Int64,
    -- How many durations are in which bucket; sumMap adds them up.
    bucket Array(UInt16),
    bucket_count Array(Int64)
) engine = MergeTree partition by (day, generation)
order by (day, app, version, loop_name, verdict, cause, signature);

create table if not exists {database}.rollup as {database}.rollup_local
engine = {shards of rollup_local};

-- The same by host instead of group.
create table if not exists {database}.host_rollup_local (
    day Int32,
    generation Int64,
    app String,
    version String,
    build_id String,
    loop_name String,
    verdict UInt8,
    cause Int8,
    is_watched UInt8,
    host String,
    report_count Int64,
    total_ns Int64,
    cpu_ns Int64,
    min_ns Int64,
    max_ns Int64,
    max_id FixedString(16),
    first_us Int64,
    last_us Int64,
    bucket Array(UInt16),
    bucket_count Array(Int64)
) engine = MergeTree partition by (day, generation)
order by (day, app, version, loop_name, verdict, cause, host);

create table if not exists {database}.host_rollup as {database}.host_rollup_local
engine = {shards of host_rollup_local};
