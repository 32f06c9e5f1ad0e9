-- What many reports share, whole on every shard, so that no question joins over the network. Rows are known by the content
-- hashes that every store has (docs/schema.md), or by their uuids: sending a row twice changes nothing. Equal keys are
-- merged at some time, until then they are there twice: read with `any join`, `in` or `final`.
-- Who sends these statements puts the name for {database}, and an engine that reads all shards for {shards of ...}. A
-- statement ends with a semicolon at the end of a line.

-- What was applied here.
create table if not exists {database}.schema_version (
    version UInt32,
    name String
) engine = ReplacingMergeTree order by version;

-- A store that reports were first written to, and how far it is here: written when every shard has its rows.
create table if not exists {database}.source (
    store FixedString(16),
    -- The identity that a copy claims which was written to apart from the original.
    origin Nullable(FixedString(16)),
    -- All of it, as it was at this revision, is here.
    revision Int64,
    line_count Int64,
    -- The report of the greatest number until then, by which a sender notices that its store is a copy.
    last_seq Int64,
    last_id FixedString(16),
    machine Nullable(String),
    boot_id Nullable(String)
) engine = ReplacingMergeTree(revision) order by store;

-- The apps that a store has rows of: who may send for one of them only is not to move the position of another's store.
create table if not exists {database}.source_app (
    source FixedString(16),
    app String
) engine = ReplacingMergeTree order by (source, app);

create table if not exists {database}.process_run (
    uuid FixedString(16),
    app String,
    version String,
    -- The bytes; empty for none.
    build_id String,
    host String,
    pid Int64,
    boot_id String,
    start_ticks Int64,
    started_us Int64
) engine = ReplacingMergeTree order by uuid;

create table if not exists {database}.loop (
    -- Of the run's uuid, the name and the threshold.
    hash Int64,
    run FixedString(16),
    name String,
    threshold_ns Int64
) engine = ReplacingMergeTree order by hash;

-- The loops of a source that recorded watched time.
create table if not exists {database}.watched_loop (
    source FixedString(16),
    loop Int64
) engine = ReplacingMergeTree order by (source, loop);

create table if not exists {database}.image (
    hash Int64,
    path Nullable(String),
    build_id Nullable(String),
    run Nullable(FixedString(16))
) engine = ReplacingMergeTree order by hash;

create table if not exists {database}.image_load (
    run FixedString(16),
    image Int64,
    load_address Int64,
    end_address Int64
) engine = ReplacingMergeTree order by (run, image);

-- A place in an image's code with its names, innermost first: who knows more of it replaces the row.
create table if not exists {database}.location (
    hash Int64,
    image Int64,
    offset Int64,
    kind Int64,
    detail Int64,
    -- The store whose names these are.
    namer Nullable(FixedString(16)),
    -- Of `function`; 0 where none is known.
    frame_function Array(Int64),
    -- -1 where none is known.
    frame_line Array(Int64),
    frame_is_inlined Array(UInt8)
) engine = ReplacingMergeTree(detail) order by hash;

create table if not exists {database}.function (
    hash Int64,
    name Nullable(String),
    raw_name Nullable(String),
    file Nullable(String)
) engine = ReplacingMergeTree order by hash;

create table if not exists {database}.stack (
    hash Int64,
    is_truncated UInt8,
    -- Innermost first.
    location Array(Int64),
    is_guessed Array(UInt8)
) engine = ReplacingMergeTree order by hash;

-- What many reports say of their cause, by position.
create table if not exists {database}.evidence_fact (
    evidence Int64,
    position Int64,
    name String,
    format String,
    first_number Int64
) engine = ReplacingMergeTree order by (evidence, position);

-- A group. Several rows may have one hash, and other titles; `key` is a hash of both.
create table if not exists {database}.signature (
    key Int64,
    hash Int64,
    family Int64,
    title String,
    is_cut UInt8,
    -- Empty for none.
    wait String,
    has_app_frame UInt8
) engine = ReplacingMergeTree order by key;

-- The functions that name a group, the accounting one first.
create table if not exists {database}.signature_frame (
    signature Int64,
    position Int64,
    name String
) engine = ReplacingMergeTree order by (signature, position);

-- One row: the rules of the groups, and what was pruned.
create table if not exists {database}.grouping (
    id UInt8,
    rules_hash Int64,
    -- Stalls that began before exist in roll-ups only; 0 for none.
    pruned_before_us Int64,
    version Int64
) engine = ReplacingMergeTree(version) order by id;
