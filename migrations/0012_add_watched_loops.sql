-- A rate is of loops whose watched time is recorded, over that time; roll-ups must therefore tell the stalls of these
-- loops apart. And the groups that cut stacks, or stalls that waited for something else, were first seen under have rows
-- of their own, so that a group's name does not depend on the order of ingest. And one report is known by its id, under
-- whatever source it comes: `run_source` says where to look.

-- The loops of a source that recorded watched time: kept when that time is deleted with its roll-ups.
create table watched_loop (
    source integer not null references source,
    loop integer not null references loop,
    primary key (source, loop)
) strict, without rowid;
insert into watched_loop select distinct source, loop from exposure;

-- Whether the loops recorded their watched time. Of reports that were pruned before this column came nobody knows: they
-- count as watched, as they did.
alter table cohort add column is_watched integer not null default 1;
drop index cohort_content;
create unique index cohort_content
on cohort (app, version, ifnull(build_id, x''), loop, verdict, ifnull(cause, -1), is_watched);

-- The sources that reports of a process came from; nearly always one.
create table run_source (
    run integer not null references process_run,
    source integer not null references source,
    primary key (run, source)
) strict, without rowid;
insert into run_source
select distinct loop.run, report.source from report join loop on loop.id = report.loop
where exists (select 1 from grouping);

drop view hotspot;

-- A group of reports under the rules of `grouping`, by one of its titles: rows of one hash are one group.
-- Indented because it does not keep this name: what begins a line is looked for in every store.
    create table titled_signature (
    id integer primary key,
    hash integer not null,
    -- The hash of the accounting function alone.
    family integer not null,
    title text not null,
    -- The stacks were cut before the callers.
    is_cut integer not null default 0,
    -- Another row has the hash too.
    is_variant integer not null default 0,
    unique (hash, title)
) strict;
insert into titled_signature (id, hash, family, title, is_cut)
select id, hash, family, title, title like '%<- …' from signature;
drop table signature;
alter table titled_signature rename to signature;
create index signature_family on signature (family);
create index signature_special on signature (id) where is_cut = 1 or is_variant = 1;

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
group by signature.hash, cohort.app
order by total_ms desc;

-- The next ingest decides all groups anew and adds them up.
update grouping set rules_hash = ~rules_hash;
