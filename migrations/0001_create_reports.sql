-- Stalls as an agent writes them and as a central store collects them: one schema for both.
-- What many reports share (stacks, places, names, process runs) is stored once, under a hash of its
-- content that means the same in every store. A report is known by the store it was first written
-- to and its number there, so that taking it over twice changes nothing.
-- Names hang on places in an image's code, never on reports: they come later and can be redone.
-- Numbers that stand for words are the raw values of the enums in StallModel.

-- A store that reports were first written to. An agent's store knows one: itself.
create table source (
    id integer primary key,
    store blob not null unique check (length(store) = 16),
    -- In the store itself: the last revision given out. Elsewhere: the last one taken over.
    revision integer not null default 0
) strict;

-- One life of one process that carried an agent.
create table process_run (
    id integer primary key,
    uuid blob not null unique check (length(uuid) = 16),
    app text not null,
    version text not null,
    build_id blob,
    host text not null,
    pid integer not null,
    boot_id text not null,
    start_ticks integer not null,
    started_us integer not null
) strict;

-- A loop that a process watched.
create table loop (
    id integer primary key,
    run integer not null references process_run,
    name text not null,
    threshold_ns integer not null,
    unique (run, name, threshold_ns)
) strict;

-- A binary. Without a build ID nothing says that the file of the same path in another run is the
-- same program, so it belongs to one run. Code in no binary at all: neither path nor build ID.
create table image (
    id integer primary key,
    hash integer not null unique,
    path text,
    build_id blob,
    run integer references process_run
) strict;

-- Where a run's loader put an image: the address of a place is this plus the place's offset.
create table image_load (
    run integer not null references process_run,
    image integer not null references image,
    load_address integer not null,
    end_address integer not null,
    primary key (run, image)
) strict, without rowid;

-- A place in an image's code.
create table location (
    id integer primary key,
    hash integer not null unique,
    image integer not null references image,
    offset integer not null,
    kind integer not null,
    -- What is known of it. 0: not looked up, 1: no symbol, 2: a function, 3: a function and its line.
    detail integer not null default 0,
    -- When that last changed, as the store's revision.
    revision integer not null default 0
) strict;

-- A function as line tables and symbols name it.
create table function (
    id integer primary key,
    hash integer not null unique,
    name text,
    raw_name text,
    file text
) strict;

-- The names of a place: one frame, or several when calls were inlined there, innermost first.
create table location_frame (
    location integer not null references location,
    position integer not null,
    function integer references function,
    line integer,
    is_inlined integer not null,
    primary key (location, position)
) strict, without rowid;

-- A stack, innermost place first: LEB128 numbers, each (location id * 2 + is it a guess).
create table stack (
    id integer primary key,
    hash integer not null unique,
    is_truncated integer not null,
    locations blob not null
) strict;

-- A short string that reports repeat: modes and activities.
create table label (
    id integer primary key,
    value text not null unique
) strict;

-- A stall.
create table report (
    source integer not null references source,
    -- Never given out twice, also after the report was evicted.
    seq integer not null,
    -- Grows whenever the report changes: what is greater than the last one taken over is new.
    revision integer not null,
    -- A UUIDv7: what people and other systems call the report. Unique by its making.
    id blob not null check (length(id) = 16),
    loop integer not null references loop,
    mode integer not null references label,
    activity integer references label,
    phase integer not null,
    state integer not null,
    verdict integer not null,
    start_us integer not null,
    duration_ns integer not null,
    cpu_ns integer not null,
    detection_delay_ns integer not null,
    -- What was seen on the stalled thread, in order of time; docs/schema.md tells how to read it.
    -- Not a table: measured, a row for each sample doubles the time and the space of a report.
    samples blob not null,
    primary key (source, seq)
) strict, without rowid;

-- The few that may still change, or need closing when their process is gone.
create index report_open on report (source, seq) where state = 0;

-- Stalls that an agent saw and could not or would not keep, by reason.
create table loss (
    source integer not null references source,
    run integer not null references process_run,
    reason integer not null,
    report_count integer not null,
    revision integer not null,
    primary key (source, run, reason)
) strict, without rowid;
