-- Watched time by day, so that a rate does not read every minute of every loop; and views from reports to their stacks and
-- from days to their reports, for people who ask in SQL of their own.

-- What the stretches of `exposure` of a source's loop add up to that began on a day (since 1970, UTC). Only in a central
-- store: ingest keeps it in step with the stretches.
create table exposure_day (
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

-- Totals by host, whatever the group: as `rollup` has them by group.
create table host (
    id integer primary key,
    name text not null unique
) strict;

create table host_rollup (
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
    histogram blob not null,
    primary key (day_count, first_day, cohort, host)
) strict, without rowid;

-- The first day that `host_rollup` is complete from; null until it was added up. The hosts of reports that were
-- pruned before are unknown.
alter table grouping add column hosts_from_day integer;

-- 1: `exposure_day` is complete. 0 in a store of before, until the next ingest adds it up.
alter table grouping add column has_exposure_days integer not null default 0;

-- The locations of each stack, innermost first. Unpacks `stack.locations`: select few stacks.
create view stack_location as
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

-- The functions of each stack, innermost first: those of a place that has several are inlined.
create view stack_function as
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

-- The samples of each report. Unpacks `report.samples`: select few reports, by source and seq.
create view stall_sample as
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
        list (numbers) as (select json_group_array(number) from byte where place > 0 and is_last),
        -- Where each sample begins.
        sample (first) as (
            select 0
            union all
            select
                flags.key + 3 + (flags.value & 64 = 0) + (flags.value & 8 = 0) + (flags.value & 2 = 2)
                    + case when flags.value & 4 = 4 then 1 + json_extract(numbers, '$[' || (
                        flags.key + 3 + (flags.value & 64 = 0) + (flags.value & 8 = 0) + (flags.value & 2 = 2)
                    ) || ']') else 0 end
            from sample, list, json_each(list.numbers) as flags
            where flags.key = sample.first
        )
    select json_group_array(json_array(
        flags.value,
        json_extract(numbers, '$[' || (first + 1) || ']'),
        case when flags.value & 2 = 2 then json_extract(numbers, '$[' || (
            first + 3 + (flags.value & 64 = 0) + (flags.value & 8 = 0)) || ']') end))
    from sample, list, json_each(list.numbers) as flags
    where flags.key = sample.first
)) as sample;

-- The reports of each day, without a look at those of others: `where day = strftime('%s', '2026-11-20') / 86400`.
create view stall_of_day as
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
        when 4 then 'debugger' when 5 then 'saturated'
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

-- The groups by day and build, from roll-ups: no report is read.
create view hotspot_of_day as
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

-- Each stall with the functions of its group, the accounting one first: from a function to the days that its groups were
-- seen on, and to the reports of those days.
create index signature_frame_name on signature_frame (name, position);
drop view stall_frame;
create view stall_frame as
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
