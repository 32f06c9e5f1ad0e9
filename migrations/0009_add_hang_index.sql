-- How many stalls were never seen to end, without a look at every report: what `status` says of a store of millions.
-- Hangs are few, and a report that is none costs the index nothing.

create index report_hang on report (source, seq) where state = 2;
