-- How long each loop was watched and what it did meanwhile, so that stalls can be counted per watched hour; and the
-- stalls of which no report was kept on purpose, so that nothing that was seen disappears.

-- A stretch of a loop's watched time, usually a minute.
create table exposure (
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

-- Stalls that have no report because a limit or a policy held it back.
create table suppression (
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

-- Watched time in hours and what fell into it, by app, version and loop.
create view watched as
select
    process_run.app,
    process_run.version,
    loop.name as loop,
    sum(exposure.watched_ns) / 3600e9 as watched_hours,
    sum(exposure.busy_ns) / 3600e9 as busy_hours,
    sum(exposure.iteration_count) as iterations,
    sum(exposure.micro_stall_count) as micro_stalls,
    sum(exposure.ready_delay_ns) / 1e6 as ready_delay_ms
from exposure
join loop on loop.id = exposure.loop
join process_run on process_run.id = loop.run
group by process_run.app, process_run.version, loop.name;

drop view stall;

-- One row for each report; a verdict is new.
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
