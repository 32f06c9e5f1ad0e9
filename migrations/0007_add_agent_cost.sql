-- What a report has cost the agent that made it, and what the agent left out of it.

-- Time spent on captures and names, as of the last time the report was written.
alter table report add column agent_ns integer not null default 0;
-- Threads of the process that there was neither room nor time to look at.
alter table report add column skipped_threads integer not null default 0;
