-- How much of a stall was not its thread's own time, as migrations/0018_add_delayed_time.sql has it. 0 where none is
-- known: of what was written before, all counts as the thread's own. A column that the last run added is left as it is.

alter table {database}.report_local add column delayed_ns Int64;

alter table {database}.report add column delayed_ns Int64;

alter table {database}.rollup_local add column delayed_ns Int64;

alter table {database}.rollup add column delayed_ns Int64;

alter table {database}.host_rollup_local add column delayed_ns Int64;

alter table {database}.host_rollup add column delayed_ns Int64;

alter table {database}.cohort_rollup_local add column delayed_ns Int64;

alter table {database}.cohort_rollup add column delayed_ns Int64;
