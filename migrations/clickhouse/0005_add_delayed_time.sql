-- How much of a stall was not its thread's own time, as migrations/0018_add_delayed_time.sql has it. 0 where none is
-- known: of what was written before, all counts as the thread's own. Each statement can be run again, wherever the last
-- run ended.

alter table {database}.report_local add column if not exists delayed_ns Int64;

alter table {database}.report add column if not exists delayed_ns Int64;

alter table {database}.rollup_local add column if not exists delayed_ns Int64;

alter table {database}.rollup add column if not exists delayed_ns Int64;

alter table {database}.host_rollup_local add column if not exists delayed_ns Int64;

alter table {database}.host_rollup add column if not exists delayed_ns Int64;

alter table {database}.cohort_rollup_local add column if not exists delayed_ns Int64;

alter table {database}.cohort_rollup add column if not exists delayed_ns Int64;
