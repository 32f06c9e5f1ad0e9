-- Which stalls are the same, and totals by day, so that ranking reads groups and not reports. Only
-- a central store has them: an agent does not group. Totals outlive the reports that made them.

-- A group of reports, under the rules of `grouping`.
create table signature (
    id integer primary key,
    hash integer not null unique,
    -- The hash of the accounting function alone.
    family integer not null,
    title text not null
) strict;

-- The functions that name a group, the accounting one first.
create table signature_frame (
    signature integer not null references signature,
    position integer not null,
    name text not null,
    primary key (signature, position)
) strict, without rowid;

-- Null in an agent's store.
alter table report add column signature integer references signature;

-- Reports whose group was decided while nobody had looked up some place on their stacks: it is
-- decided again when names arrive.
create table unnamed_report (
    source integer not null references source,
    seq integer not null,
    primary key (source, seq)
) strict, without rowid;

-- Which of a source's numbers may have begun on a day (days since 1970, UTC): a report of a time is
-- found without an index of all reports.
create table report_day (
    day integer not null,
    source integer not null references source,
    first_seq integer not null,
    last_seq integer not null,
    primary key (day, source)
) strict, without rowid;

-- What reports of one roll-up have in common besides their group.
create table cohort (
    id integer primary key,
    app text not null,
    version text not null,
    build_id blob,
    loop text not null,
    verdict integer not null,
    -- Null where no cause was decided.
    cause integer
) strict;
create unique index cohort_content
on cohort (app, version, ifnull(build_id, x''), loop, verdict, ifnull(cause, -1));

-- The totals of a group in a cohort over `day_count` days from `first_day`: 1, or 32 in a row so
-- that a long time is read in few rows.
create table rollup (
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
    histogram blob not null,
    primary key (day_count, first_day, cohort, signature)
) strict, without rowid;

-- The state of groups and roll-ups; one row, or none before the first grouping.
create table grouping (
    id integer primary key check (id = 1),
    -- Of the rules that all groups were decided under.
    rules_hash integer not null,
    -- Reports that began before it may have been pruned: roll-ups of those days may say more than
    -- the reports do.
    pruned_before_us integer
) strict;

-- The groups in words, the worst first.
create view hotspot as
select
    signature.title,
    cohort.app,
    sum(rollup.report_count) as stall_count,
    sum(rollup.total_ns / 1e6) as total_ms,
    max(rollup.max_ns) / 1e6 as max_ms,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(rollup.first_us) / 1e6, 'unixepoch') as first_seen,
    strftime('%Y-%m-%dT%H:%M:%fZ', max(rollup.last_us) / 1e6, 'unixepoch') as last_seen,
    printf('%016x', signature.hash) as signature
from rollup
join cohort on cohort.id = rollup.cohort
join signature on signature.id = rollup.signature
where rollup.day_count = 32 and cohort.verdict = 0
group by signature.id, cohort.app
order by total_ms desc;

-- Each stall with the functions of its group, the accounting one first.
create view stall_frame as
select
    stall.id,
    stall.app,
    stall.start,
    stall.duration_ms,
    signature_frame.position,
    signature_frame.name as function
from stall
join report on report.source = stall.source and report.seq = stall.seq
join signature_frame on signature_frame.signature = report.signature;
