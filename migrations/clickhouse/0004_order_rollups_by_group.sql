-- Roll-ups that are read by group: a partition is a span of 32 days, as of the reports, and in it the rows of a group are
-- side by side. A partition for each generation of each day, as before, made a question about a month open thirty of them,
-- which took most of its time. Rows of generations that are no more read are deleted when they are as many as the others.
-- Each statement can be run again, wherever the last run ended.

create table if not exists {database}.rollup_next (
    day Int32,
    generation Int64,
    app String,
    version String,
    build_id String,
    loop_name String,
    verdict UInt8,
    cause Int8,
    is_watched UInt8,
    signature Int64,
    report_count Int64,
    total_ns Int64,
    cpu_ns Int64,
    min_ns Int64,
    max_ns Int64,
    -- The longest report; of several the one with the greatest id.
    max_id FixedString(16),
    first_us Int64,
    last_us Int64,
    bucket Array(UInt16),
    bucket_count Array(Int64)
) engine = MergeTree partition by intDiv(day, 32) order by (signature, day) settings index_granularity = 256;

truncate table {database}.rollup_next;

insert into {database}.rollup_next select * from {database}.rollup_local;

drop table if exists {database}.rollup_before;

rename table {database}.rollup_local to {database}.rollup_before, {database}.rollup_next to {database}.rollup_local;

drop table {database}.rollup_before;

create table if not exists {database}.host_rollup_next (
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
) engine = MergeTree partition by intDiv(day, 32) order by (host, day) settings index_granularity = 256;

truncate table {database}.host_rollup_next;

insert into {database}.host_rollup_next select * from {database}.host_rollup_local;

drop table if exists {database}.host_rollup_before;

rename table {database}.host_rollup_local to {database}.host_rollup_before,
    {database}.host_rollup_next to {database}.host_rollup_local;

drop table {database}.host_rollup_before;

-- The same by nothing but the cohort, for questions in which neither groups nor hosts matter.
create table if not exists {database}.cohort_rollup_local (
    day Int32,
    generation Int64,
    app String,
    version String,
    build_id String,
    loop_name String,
    verdict UInt8,
    cause Int8,
    is_watched UInt8,
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
) engine = MergeTree partition by intDiv(day, 32) order by (app, day) settings index_granularity = 256;

create table if not exists {database}.cohort_rollup as {database}.cohort_rollup_local
engine = {shards of cohort_rollup_local};

truncate table {database}.cohort_rollup_local;

insert into {database}.cohort_rollup_local
select day, generation, app, version, build_id, loop_name, verdict, cause, is_watched, sum(count), sum(total), sum(cpu),
    min(low), max(high), tupleElement(max(longest), 2), min(first), max(last), tupleElement(sumMap(bucket, bucket_count) as sums, 1),
    tupleElement(sums, 2)
from (
    select *, report_count as count, total_ns as total, cpu_ns as cpu, min_ns as low, max_ns as high,
        tuple(max_ns, max_id) as longest, first_us as first, last_us as last
    from {database}.host_rollup_local)
group by day, generation, app, version, build_id, loop_name, verdict, cause, is_watched;
