-- Shorter reports. The evidence of causes as codes: most reports of a central store say the same in other numbers;
-- before, each had it as text, which was half of its row. Agents go on writing texts, within `cause_detail`: their
-- stores are small. And `report.samples` has times in microseconds, offsets by how far they are off what is expected,
-- and a stack that is that of the sample before only once; older rows are read as they are.

-- What some reports rest their cause on, without its numbers.
create table evidence (
    id integer primary key,
    hash integer not null unique
) strict;

-- Its facts: `system call`, `fsync(%d: /var/lib/photos.db)`. The format is that of SQLite's printf; `%s` alone is a
-- text that each report has for itself, in `cause_detail`.
create table evidence_fact (
    evidence integer not null references evidence,
    position integer not null,
    name text not null,
    format text not null,
    -- The place of its first number among the report's.
    first_number integer not null,
    primary key (evidence, position)
) strict, without rowid;

-- Null where the evidence is text in `cause_detail`, and where there is none.
alter table report add column evidence integer references evidence;
-- The numbers of all formats, in their order; LEB128.
alter table report add column evidence_numbers blob;
-- The confidence in thousandths; null where `cause_confidence` has it.
alter table report add column cause_permille integer;

drop view stall;
create view stall as
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
        when 4 then 'debugger' when 5 then 'saturated'
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
    report.seq
from report
join loop on loop.id = report.loop
join process_run on process_run.id = loop.run
join label mode on mode.id = report.mode
left join label activity on activity.id = report.activity;

-- What the causes of a central store rest on: `select name, value from stall_evidence where source = 1 and seq = 3`.
-- Unpacks `evidence_numbers`: select few reports, by source and seq. A text of the report's own is null.
create view stall_evidence as
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

-- The samples of each report. Unpacks `report.samples`: select few reports, by source and seq.
drop view stall_sample;
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
