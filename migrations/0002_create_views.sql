-- Stalls and places in words, for people who ask in SQL of their own. Nothing of ours reads these
-- views; docs/schema.md says what they cannot show.

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

-- The functions of each place, innermost first; one row without a function where nothing is known.
create view place as
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
