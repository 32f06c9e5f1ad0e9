-- Written by SchemaTests (RECORD_SNAPSHOTS=1): what the migrations make.
CREATE TABLE source (
    id integer primary key,
    store blob not null unique check (length(store) = 16),
    -- In the store itself: the last revision given out. Elsewhere: the last one taken over.
    revision integer not null default 0
, origin blob check (origin is null or length(origin) = 16), line_count integer not null default 0, machine text, boot_id text, device integer, inode integer, partial_seq integer, partial_revision integer) strict;
CREATE TABLE process_run (
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
, checksum integer, os text, device text) strict;
CREATE TABLE loop (
    id integer primary key,
    run integer not null references process_run,
    name text not null,
    threshold_ns integer not null, checksum integer,
    unique (run, name, threshold_ns)
) strict;
CREATE TABLE image (
    id integer primary key,
    hash integer not null unique,
    path text,
    build_id blob,
    run integer references process_run
) strict;
CREATE TABLE image_load (
    run integer not null references process_run,
    image integer not null references image,
    load_address integer not null,
    end_address integer not null,
    primary key (run, image)
) strict, without rowid;
CREATE TABLE location (
    id integer primary key,
    hash integer not null unique,
    image integer not null references image,
    offset integer not null,
    kind integer not null,
    -- What is known of it. 0: not looked up, 1: no symbol, 2: a function, 3: a function and its line.
    detail integer not null default 0,
    -- When that last changed, as the store's revision.
    revision integer not null default 0
, namer integer) strict;
CREATE TABLE function (
    id integer primary key,
    hash integer not null unique,
    name text,
    raw_name text,
    file text
) strict;
CREATE TABLE location_frame (
    location integer not null references location,
    position integer not null,
    function integer references function,
    line integer,
    is_inlined integer not null,
    primary key (location, position)
) strict, without rowid;
CREATE TABLE stack (
    id integer primary key,
    hash integer not null unique,
    is_truncated integer not null,
    locations blob not null
) strict;
CREATE TABLE label (
    id integer primary key,
    value text not null unique
, checksum integer) strict;
CREATE TABLE report (
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
    samples blob not null, cause integer, cause_confidence real, cause_detail blob, threads blob, signature integer references signature, agent_ns integer not null default 0, skipped_threads integer not null default 0, checksum integer, ending integer, evidence integer references evidence, evidence_numbers blob, cause_permille integer, delayed_ns integer,
    primary key (source, seq)
) strict, without rowid;
CREATE TABLE loss (
    source integer not null references source,
    run integer not null references process_run,
    reason integer not null,
    report_count integer not null,
    revision integer not null,
    primary key (source, run, reason)
) strict, without rowid;
CREATE TABLE exposure (
    source integer not null references source,
    -- Grows as reports' do: what is greater than the last one taken over is new.
    revision integer not null,
    loop integer not null references loop,
    start_us integer not null,
    watched_ns integer not null,
    busy_ns integer not null,
    -- The thread was ready to run and waited for a CPU.
    ready_delay_ns integer not null,
    -- Busy spans of 100 ms up to the loop's threshold.
    micro_stall_count integer not null,
    micro_stall_ns integer not null,
    iteration_count integer not null,
    -- How many iterations were how long; docs/schema.md tells how to read it.
    lengths blob not null,
    primary key (source, revision, loop)
) strict, without rowid;
CREATE TABLE suppression (
    source integer not null references source,
    revision integer not null,
    loop integer not null references loop,
    -- A hash of the place in the app's code.
    place integer not null,
    reason integer not null,
    stall_count integer not null,
    total_ns integer not null,
    primary key (source, loop, place, reason)
) strict, without rowid;
CREATE TABLE signature_frame (
    signature integer not null references signature,
    position integer not null,
    name text not null,
    primary key (signature, position)
) strict, without rowid;
CREATE TABLE unnamed_report (
    source integer not null references source,
    seq integer not null,
    primary key (source, seq)
) strict, without rowid;
CREATE TABLE report_day (
    day integer not null,
    source integer not null references source,
    first_seq integer not null,
    last_seq integer not null,
    primary key (day, source)
) strict, without rowid;
CREATE TABLE cohort (
    id integer primary key,
    app text not null,
    version text not null,
    build_id blob,
    loop text not null,
    verdict integer not null,
    -- Null where no cause was decided.
    cause integer
, is_watched integer not null default 1) strict;
CREATE TABLE rollup (
    day_count integer not null check (day_count in (1, 32)),
    first_day integer not null,
    cohort integer not null references cohort,
    signature integer not null references signature,
    report_count integer not null,
    total_ns integer not null,
    cpu_ns integer not null,
    min_ns integer not null,
    max_ns integer not null,
    -- The report that lasted longest; it may have been pruned since.
    max_source integer not null references source,
    max_seq integer not null,
    first_us integer not null,
    last_us integer not null,
    -- How many lasted how long; docs/schema.md tells how to read it.
    histogram blob not null, delayed_ns integer not null default 0,
    primary key (day_count, first_day, cohort, signature)
) strict, without rowid;
CREATE TABLE grouping (
    id integer primary key check (id = 1),
    -- Of the rules that all groups were decided under.
    rules_hash integer not null,
    -- Reports that began before it may have been pruned: roll-ups of those days may say more than
    -- the reports do.
    pruned_before_us integer
, hosts_from_day integer, has_exposure_days integer not null default 0, rules_text text) strict;
CREATE TABLE watched_loop (
    source integer not null references source,
    loop integer not null references loop,
    primary key (source, loop)
) strict, without rowid;
CREATE TABLE run_source (
    run integer not null references process_run,
    source integer not null references source,
    primary key (run, source)
) strict, without rowid;
CREATE TABLE "signature" (
    id integer primary key,
    hash integer not null,
    -- The hash of the accounting function alone.
    family integer not null,
    title text not null,
    -- The stacks were cut before the callers.
    is_cut integer not null default 0,
    -- Another row has the hash too.
    is_variant integer not null default 0, wait text, has_app_frame integer not null default 1,
    unique (hash, title)
) strict;
CREATE TABLE name_conflict (
    location integer not null references location,
    source integer not null references source,
    primary key (location, source)
) strict, without rowid;
CREATE TABLE exposure_day (
    day integer not null,
    source integer not null references source,
    loop integer not null references loop,
    -- 1: stretches that end on a later day. A time range that ends between may divide them.
    crosses_midnight integer not null,
    stretch_count integer not null,
    -- Where the first of them begins and the last one ends.
    start_us integer not null,
    end_us integer not null,
    -- Their revisions are among these.
    first_revision integer not null,
    last_revision integer not null,
    watched_ns integer not null,
    busy_ns integer not null,
    ready_delay_ns integer not null,
    micro_stall_count integer not null,
    micro_stall_ns integer not null,
    -- The sum of `exposure.lengths`.
    lengths blob not null,
    primary key (day, source, loop, crosses_midnight)
) strict, without rowid;
CREATE TABLE host (
    id integer primary key,
    name text not null unique
) strict;
CREATE TABLE host_rollup (
    day_count integer not null,
    first_day integer not null,
    cohort integer not null references cohort,
    host integer not null references host,
    report_count integer not null,
    total_ns integer not null,
    cpu_ns integer not null,
    min_ns integer not null,
    max_ns integer not null,
    max_source integer not null references source,
    max_seq integer not null,
    first_us integer not null,
    last_us integer not null,
    histogram blob not null, delayed_ns integer not null default 0,
    primary key (day_count, first_day, cohort, host)
) strict, without rowid;
CREATE TABLE source_file (
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
CREATE TABLE evidence (
    id integer primary key,
    hash integer not null unique
) strict;
CREATE TABLE evidence_fact (
    evidence integer not null references evidence,
    position integer not null,
    name text not null,
    format text not null,
    -- The place of its first number among the report's.
    first_number integer not null,
    primary key (evidence, position)
) strict, without rowid;
CREATE INDEX report_open on report (source, seq) where state = 0;
CREATE VIEW place as
select
    location.id as location,
    image.path as image,
    lower(hex(image.build_id)) as build_id,
    location.offset,
    case location.kind
        when 0 then 'interrupted' when 1 then 'returnAddress' when 2 then 'asyncResume'
    end as kind,
    ifnull(location_frame.position, 0) as position,
    function.name as function,
    function.raw_name,
    function.file,
    location_frame.line,
    ifnull(location_frame.is_inlined, 0) as is_inlined
from location
join image on image.id = location.image
left join location_frame on location_frame.location = location.id
left join function on function.id = location_frame.function;
CREATE INDEX report_hang on report (source, seq) where state = 2;
CREATE UNIQUE INDEX cohort_content
on cohort (app, version, ifnull(build_id, x''), loop, verdict, ifnull(cause, -1), is_watched);
CREATE INDEX signature_family on signature (family);
CREATE INDEX signature_special on signature (id) where is_cut = 1 or is_variant = 1;
CREATE INDEX source_origin on source (origin) where origin is not null;
CREATE VIEW stack_location as
select
    stack.id as stack,
    entry.key as position,
    entry.value >> 1 as location,
    entry.value & 1 as is_guessed
from stack, json_each((
    with recursive byte (place, number, shift, is_last) as (
        select 0, 0, 0, 1
        union all
        select
            place + 1,
            case when is_last then 0 else number end
                | ((((instr('0123456789ABCDEF', substr(hex(stack.locations), 2 * place + 1, 1)) - 1) & 7) << 4
                    | (instr('0123456789ABCDEF', substr(hex(stack.locations), 2 * place + 2, 1)) - 1))
                    << case when is_last then 0 else shift end),
            case when is_last then 0 else shift end + 7,
            substr(hex(stack.locations), 2 * place + 1, 1) < '8'
        from byte
        where place < length(stack.locations)
    )
    select json_group_array(number) from byte where place > 0 and is_last
)) as entry;
CREATE VIEW stack_function as
select
    stack_location.stack,
    stack_location.position,
    place.position as inlined_position,
    place.function,
    place.image,
    place.offset,
    place.file,
    place.line,
    stack_location.is_guessed
from stack_location
join place on place.location = stack_location.location;
CREATE VIEW hotspot_of_day as
select
    rollup.first_day as day,
    date(rollup.first_day * 86400, 'unixepoch') as date,
    cohort.app,
    cohort.version,
    cohort.loop,
    signature.title,
    printf('%016x', signature.hash) as signature,
    sum(rollup.report_count) as stall_count,
    sum(rollup.total_ns / 1e6) as total_ms,
    max(rollup.max_ns) / 1e6 as max_ms,
    -- The longest of them, if it was not pruned.
    lower(hex(report.id)) as longest
from rollup
join cohort on cohort.id = rollup.cohort
join signature on signature.id = rollup.signature
left join report on report.source = rollup.max_source and report.seq = rollup.max_seq
where rollup.day_count = 1 and cohort.verdict = 0
group by rollup.first_day, cohort.app, cohort.version, cohort.loop, signature.hash;
CREATE INDEX signature_frame_name on signature_frame (name, position);
CREATE VIEW stall_frame as
select
    lower(hex(report.id)) as id,
    process_run.app,
    strftime('%Y-%m-%dT%H:%M:%fZ', report.start_us / 1e6, 'unixepoch') as start,
    report.duration_ns / 1e6 as duration_ms,
    signature_frame.position,
    signature_frame.name as function
from signature_frame
cross join report_day
cross join report on report.source = report_day.source
    and report.seq between report_day.first_seq and report_day.last_seq
    and report.signature = signature_frame.signature
    and report.start_us >= report_day.day * 86400000000
    and report.start_us < report_day.day * 86400000000 + 86400000000
join loop on loop.id = report.loop
join process_run on process_run.id = loop.run
where report_day.day in (
    select rollup.first_day from rollup
    where rollup.day_count = 1 and rollup.signature = signature_frame.signature);
CREATE INDEX report_revision on report (source, revision) where signature is null;
CREATE VIEW stall_evidence as
select
    lower(hex(report.id)) as id,
    evidence_fact.position,
    evidence_fact.name,
    evidence_fact.format,
    case when format <> '%s' then printf(
        format,
        json_extract(list.value, '$[' || first_number || ']'),
        json_extract(list.value, '$[' || (first_number + 1) || ']'),
        json_extract(list.value, '$[' || (first_number + 2) || ']'),
        json_extract(list.value, '$[' || (first_number + 3) || ']'),
        json_extract(list.value, '$[' || (first_number + 4) || ']'),
        json_extract(list.value, '$[' || (first_number + 5) || ']'),
        json_extract(list.value, '$[' || (first_number + 6) || ']'),
        json_extract(list.value, '$[' || (first_number + 7) || ']')) end as value,
    report.source,
    report.seq
from report
join evidence_fact on evidence_fact.evidence = report.evidence
join json_each((
    with recursive byte (place, number, shift, is_last) as (
        select 0, 0, 0, 1
        union all
        select
            place + 1,
            case when is_last then 0 else number end
                | ((((instr('0123456789ABCDEF', substr(hex(evidence_numbers), 2 * place + 1, 1)) - 1) & 7) << 4
                    | (instr('0123456789ABCDEF', substr(hex(evidence_numbers), 2 * place + 2, 1)) - 1))
                    << case when is_last then 0 else shift end),
            case when is_last then 0 else shift end + 7,
            substr(hex(evidence_numbers), 2 * place + 1, 1) < '8'
        from byte
        where place < length(evidence_numbers)
    )
    select json_array(json_group_array(number)) from byte where place > 0 and is_last
)) as list;
CREATE VIEW stall_sample as
select
    report.source,
    report.seq,
    sample.key as number,
    json_extract(sample.value, '$[1]') / 1e6 as offset_ms,
    json_extract(sample.value, '$[0]') & 1 as is_late,
    json_extract(sample.value, '$[2]') as stack
from report, json_each((
    with recursive
        byte (place, number, shift, is_last) as (
            select 0, 0, 0, 1
            union all
            select
                place + 1,
                case when is_last then 0 else number end
                    | ((((instr('0123456789ABCDEF', substr(hex(report.samples), 2 * place + 1, 1)) - 1) & 7) << 4
                        | (instr('0123456789ABCDEF', substr(hex(report.samples), 2 * place + 2, 1)) - 1))
                        << case when is_last then 0 else shift end),
                case when is_last then 0 else shift end + 7,
                substr(hex(report.samples), 2 * place + 1, 1) < '8'
            from byte
            where place < length(report.samples)
        ),
        -- 8: times are in microseconds, 9: in nanoseconds; another first number: as before schema version 17.
        list (numbers, is_short, unit) as (
            select
                numbers,
                ifnull(json_extract(numbers, '$[0]') in (8, 9), 0),
                case json_extract(numbers, '$[0]') when 8 then 1000 else 1 end
            from (select json_group_array(number) as numbers from byte where place > 0 and is_last)
        ),
        -- Of a sample that begins with this number: how far its offset is off, the places behind its thread and stack.
        part (first, flags, error, behind_thread, behind_stack) as (
            select
                place, flags, case when error & 1 then -(error >> 1) - 1 else error >> 1 end, behind_thread,
                behind_thread + (flags & 2 = 2 and not (is_short and flags & 64 = 64))
            from (
                select
                    flags.key as place,
                    flags.value as flags,
                    json_extract(numbers, '$[' || (flags.key + 1) || ']') as error,
                    is_short,
                    flags.key + 3 + (flags.value & 8 = 0)
                        + case when is_short then flags.value & 128 = 128 else flags.value & 64 = 0 end
                        as behind_thread
                from list, json_each(list.numbers) as flags
            )
        ),
        -- Where each sample begins, the last stack before it, and its offset less what is written of it.
        sample (first, stack, expected, last) as (
            select is_short, null, 0, 0 from list
            union all
            select
                part.behind_stack + case when part.flags & 4 = 4
                    then 1 + json_extract(numbers, '$[' || part.behind_stack || ']') else 0 end,
                case when part.behind_stack > part.behind_thread
                    then json_extract(numbers, '$[' || part.behind_thread || ']') else sample.stack end,
                3 * (sample.expected + part.error) - 2 * sample.last,
                sample.expected + part.error
            from sample, list, part
            where part.first = sample.first
        )
    select json_group_array(json_array(
        part.flags,
        case when is_short then sample.expected + part.error
            else json_extract(numbers, '$[' || (part.first + 1) || ']') end * unit,
        case when part.behind_stack > part.behind_thread
            then json_extract(numbers, '$[' || part.behind_thread || ']')
            when part.flags & 2 = 2 then sample.stack end))
    from sample, list, part
    where part.first = sample.first
)) as sample;
CREATE VIEW hotspot as
select
    signature.title,
    cohort.app,
    sum(rollup.report_count) as stall_count,
    sum(rollup.total_ns / 1e6) as total_ms,
    max(rollup.max_ns) / 1e6 as max_ms,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(rollup.first_us) / 1e6, 'unixepoch') as first_seen,
    strftime('%Y-%m-%dT%H:%M:%fZ', max(rollup.last_us) / 1e6, 'unixepoch') as last_seen,
    printf('%016x', signature.hash) as signature,
    sum(rollup.total_ns / 1e6) - sum(rollup.delayed_ns / 1e6) as own_ms
from rollup
join cohort on cohort.id = rollup.cohort
join signature on signature.id = rollup.signature
where rollup.day_count = 32 and cohort.verdict = 0
group by signature.hash, cohort.app
order by own_ms desc;
CREATE VIEW watched as
select
    app,
    version,
    loop,
    case when (watched_low >> 31) + watched_high < 1 << 32
        then (watched_high << 31) + watched_low else 9223372036854775807 end / 3600e9 as watched_hours,
    case when (busy_low >> 31) + busy_high < 1 << 32
        then (busy_high << 31) + busy_low else 9223372036854775807 end / 3600e9 as busy_hours,
    case when (iteration_low >> 31) + iteration_high < 1 << 32
        then (iteration_high << 31) + iteration_low else 9223372036854775807 end as iterations,
    case when (micro_stall_low >> 31) + micro_stall_high < 1 << 32
        then (micro_stall_high << 31) + micro_stall_low else 9223372036854775807 end as micro_stalls,
    case when (ready_delay_low >> 31) + ready_delay_high < 1 << 32
        then (ready_delay_high << 31) + ready_delay_low else 9223372036854775807 end / 1e6 as ready_delay_ms
from (
    select
        process_run.app,
        process_run.version,
        loop.name as loop,
        sum(exposure.watched_ns >> 31) as watched_high,
        sum(exposure.watched_ns & 2147483647) as watched_low,
        sum(exposure.busy_ns >> 31) as busy_high,
        sum(exposure.busy_ns & 2147483647) as busy_low,
        sum(exposure.iteration_count >> 31) as iteration_high,
        sum(exposure.iteration_count & 2147483647) as iteration_low,
        sum(exposure.micro_stall_count >> 31) as micro_stall_high,
        sum(exposure.micro_stall_count & 2147483647) as micro_stall_low,
        sum(exposure.ready_delay_ns >> 31) as ready_delay_high,
        sum(exposure.ready_delay_ns & 2147483647) as ready_delay_low
    from exposure
    join loop on loop.id = exposure.loop
    join process_run on process_run.id = loop.run
    group by process_run.app, process_run.version, loop.name
);
CREATE VIEW stall as
select
    lower(hex(report.id)) as id,
    process_run.app,
    process_run.version,
    process_run.host,
    process_run.pid,
    loop.name as loop,
    mode.value as mode,
    activity.value as activity,
    case report.phase
        when 1 then 'observer' when 2 then 'block' when 3 then 'source' when 4 then 'timer'
        when 5 then 'descriptor' when 6 then 'mainQueue' when 7 then 'marked'
    end as phase,
    case report.state when 0 then 'open' when 1 then 'ended' when 2 then 'hang' end as state,
    case report.verdict
        when 0 then 'stalled' when 1 then 'starved' when 2 then 'stopped' when 3 then 'throttled'
        when 4 then 'debugger' when 5 then 'saturated' when 6 then 'sampled'
        when 7 then 'blocking' when 8 then 'expected'
    end as verdict,
    case report.cause
        when 0 then 'unknown' when 1 then 'cpu' when 2 then 'lock' when 3 then 'disk'
        when 4 then 'network' when 5 then 'ipc' when 6 then 'sleep' when 7 then 'page-fault'
        when 8 then 'starved' when 9 then 'throttled' when 10 then 'stopped'
    end as cause,
    ifnull(report.cause_confidence, report.cause_permille / 1000.0) as cause_confidence,
    strftime('%Y-%m-%dT%H:%M:%fZ', report.start_us / 1e6, 'unixepoch') as start,
    report.duration_ns / 1e6 as duration_ms,
    report.cpu_ns / 1e6 as cpu_ms,
    loop.threshold_ns / 1e6 as threshold_ms,
    report.detection_delay_ns / 1e6 as detection_delay_ms,
    report.source,
    report.seq,
    (report.duration_ns - ifnull(report.delayed_ns, 0)) / 1e6 as own_ms
from report
join loop on loop.id = report.loop
join process_run on process_run.id = loop.run
join label mode on mode.id = report.mode
left join label activity on activity.id = report.activity;
CREATE VIEW stall_of_day as
select
    report_day.day,
    lower(hex(report.id)) as id,
    process_run.app,
    process_run.version,
    process_run.host,
    loop.name as loop,
    case report.state when 0 then 'open' when 1 then 'ended' when 2 then 'hang' end as state,
    case report.verdict
        when 0 then 'stalled' when 1 then 'starved' when 2 then 'stopped' when 3 then 'throttled'
        when 4 then 'debugger' when 5 then 'saturated' when 6 then 'sampled'
        when 7 then 'blocking' when 8 then 'expected'
    end as verdict,
    signature.title,
    printf('%016x', signature.hash) as signature,
    strftime('%Y-%m-%dT%H:%M:%fZ', report.start_us / 1e6, 'unixepoch') as start,
    report.duration_ns / 1e6 as duration_ms,
    report.source,
    report.seq
from report_day
cross join report on report.source = report_day.source
    and report.seq between report_day.first_seq and report_day.last_seq
    and report.start_us >= report_day.day * 86400000000
    and report.start_us < report_day.day * 86400000000 + 86400000000
join loop on loop.id = report.loop
join process_run on process_run.id = loop.run
left join signature on signature.id = report.signature;
