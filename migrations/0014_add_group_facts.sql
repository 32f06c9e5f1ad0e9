-- What a group's stacks say was waited for, and whether its functions are the app's: facts that were only in the words of
-- its title, and were read back out of them.

-- sleep, lock, disk, network, ipc, io or poll; null where the samples mostly ran.
alter table signature add column wait text;
-- 0: none of the app's functions was on the stacks, so that the system's name the group.
alter table signature add column has_app_frame integer not null default 1;

-- Groups that were decided before: for the last time from their titles.
update signature set wait = substr(title, 1, instr(title, ' in ') - 1)
where instr(title, ' in ') > 0
    and substr(title, 1, instr(title, ' in ') - 1)
        in ('sleep', 'lock', 'disk', 'network', 'ipc', 'io', 'poll');
update signature set has_app_frame = 0
where instr(title, ' (no app frame)') > 0
    or not exists (select 1 from signature_frame where signature_frame.signature = signature.id);
