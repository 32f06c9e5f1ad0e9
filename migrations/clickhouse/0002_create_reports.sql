-- The reports, and what else a store counts. The shard of a row is a hash of the report's id, or of the source: the program
-- that writes decides it (Sources/StallClickHouse/Write/ShardedRows.swift), so that a batch that is sent again replaces itself.
-- Partitions are spans of 32 days since 1970, which is what `prune` drops. `day` is no Date: those end in 2105.

create table if not exists {database}.report_local (
    -- What filters, and what rankings add up.
    app String,
    day Int32,
    id FixedString(16),
    version String,
    -- The bytes; empty for none.
    build_id String,
    host String,
    loop_name String,
    verdict UInt8,
    -- -1 where none was decided.
    cause Int8,
    state UInt8,
    start_us Int64,
    duration_ns Int64,
    cpu_ns Int64,
    -- Where the duration is in a histogram.
    bucket UInt16,
    -- The key of `signature`; 0 for none.
    signature Int64,
    -- Its group was decided while some place on its stacks had not been looked up.
    is_unnamed UInt8,
    -- The rest of the report.
    source FixedString(16),
    seq Int64,
    revision Int64,
    loop Int64,
    mode String,
    activity Nullable(String),
    phase UInt8,
    -- -1 for none.
    ending Int8,
    detection_delay_ns Int64,
    agent_ns Int64,
    skipped_threads Int64,
    -- The hashes of its stacks. The lists in `samples` and `threads` are as docs/schema.md has them, where the number of a
    -- stack is its place here, from 0.
    stack Array(Int64),
    samples String,
    threads Nullable(String),
    -- The bits of the number: texts of it are not read exactly.
    cause_confidence_bits Nullable(Int64),
    cause_permille Nullable(Int16),
    cause_detail Nullable(String),
    evidence Nullable(Int64),
    evidence_numbers Nullable(String)
) engine = ReplacingMergeTree(revision) partition by intDiv(day, 32) order by (app, day, id);

create table if not exists {database}.report as {database}.report_local
engine = {shards of report_local};

-- Stretches of loops' watched time.
create table if not exists {database}.exposure_local (
    source FixedString(16),
    revision Int64,
    loop Int64,
    app String,
    version String,
    host String,
    loop_name String,
    day Int32,
    start_us Int64,
    watched_ns Int64,
    busy_ns Int64,
    ready_delay_ns Int64,
    micro_stall_count Int64,
    micro_stall_ns Int64,
    iteration_count Int64,
    -- How many iterations were how long, by bucket.
    length_bucket Array(UInt16),
    length_count Array(Int64)
) engine = ReplacingMergeTree partition by intDiv(day, 32) order by (source, revision, loop);

create table if not exists {database}.exposure as {database}.exposure_local
engine = {shards of exposure_local};

create table if not exists {database}.suppression_local (
    source FixedString(16),
    loop Int64,
    place Int64,
    reason UInt8,
    stall_count Int64,
    total_ns Int64,
    revision Int64
) engine = ReplacingMergeTree(revision) order by (source, loop, place, reason);

create table if not exists {database}.suppression as {database}.suppression_local
engine = {shards of suppression_local};

create table if not exists {database}.loss_local (
    source FixedString(16),
    run FixedString(16),
    reason UInt8,
    report_count Int64,
    revision Int64
) engine = ReplacingMergeTree(revision) order by (source, run, reason);

create table if not exists {database}.loss as {database}.loss_local
engine = {shards of loss_local};
