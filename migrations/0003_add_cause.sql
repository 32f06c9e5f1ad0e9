-- Why a report's loop stalled, and what other threads did meanwhile: the holder of a lock, the
-- members of a pool, all of them when the app asked for that.

alter table report add column cause integer;
-- From 0 to 1.
alter table report add column cause_confidence real;
-- Shares of the classes, holder of the lock, evidence; docs/schema.md tells how to read it.
alter table report add column cause_detail blob;
-- Other threads and their stacks; docs/schema.md tells how to read it. Not a table, like samples.
alter table report add column threads blob;

drop view stall;

-- One row for each report.
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
        when 4 then 'debugger'
    end as verdict,
    case report.cause
        when 0 then 'unknown' when 1 then 'cpu' when 2 then 'lock' when 3 then 'disk'
        when 4 then 'network' when 5 then 'ipc' when 6 then 'sleep' when 7 then 'page-fault'
        when 8 then 'starved' when 9 then 'throttled' when 10 then 'stopped'
    end as cause,
    report.cause_confidence,
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
