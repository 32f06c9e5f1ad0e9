-- The system and the device of a process, as migrations/0022_add_device.sql has them. Null where unknown. A column that
-- the last run added is left as it is.

alter table {database}.process_run add column os Nullable(String);

alter table {database}.process_run add column device Nullable(String);
