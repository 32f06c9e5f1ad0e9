-- How much of a stall was its thread's own time. A stall that exceeds the threshold by its own time may also have
-- waited for a CPU, and that is not the fault of the function that it is ranked under.

-- The part of `duration_ns` in which the thread waited for a CPU or was stopped; the rest is its own time. Null where
-- that is negligible or unknown, as in reports of agents before this column came: then all of the duration counts. Null
-- also where the verdict is not `stalled`, and speaks for the whole.
alter table report add column delayed_ns integer;
-- The part of `total_ns` in which the threads did: the sum of `report.delayed_ns`.
alter table rollup add column delayed_ns integer not null default 0;
alter table host_rollup add column delayed_ns integer not null default 0;

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
    report.seq,
    (report.duration_ns - ifnull(report.delayed_ns, 0)) / 1e6 as own_ms
from report
join loop on loop.id = report.loop
join process_run on process_run.id = loop.run
join label mode on mode.id = report.mode
left join label activity on activity.id = report.activity;

-- The groups in words, the worst first.
drop view hotspot;
create view hotspot as
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
