-- The view `watched` added up 64-bit integers, and SQLite ends a query whose sum exceeds them: one source's claims, each of
-- them within the limits, made it say "integer overflow" to every reader. Its sums end at the largest number now.

-- Watched time in hours and what fell into it, by app, version and loop. Each sum is that of the upper bits and that of the
-- lower 31, neither of which can exceed 64 bits.
drop view watched;
create view watched as
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
