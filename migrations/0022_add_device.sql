-- The system and the device of a process: reports of other programs come from many. Null where unknown, as in rows of
-- before. A row's checksum counts them where they hold something.

-- The operating system with its version and without its build: `iOS 17.4.1`, `Debian GNU/Linux 12`.
alter table process_run add column os text;
-- As the maker names it: `iPhone14,2`.
alter table process_run add column device text;
