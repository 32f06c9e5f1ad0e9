-- Two verdicts are new: `blocking`, a call that may block where blocking is forbidden, and `expected`, a stall that the app
-- declared as meant. The views name them; no table, index or row changes. The version keeps a program that does not know
-- them from reading one as a damaged report.

-- One row for each report.
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

-- The reports that began on a day.
drop view stall_of_day;
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
