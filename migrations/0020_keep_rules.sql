-- The rules that a central store is grouped by are its own. It had only their hash, so that jobs which each found other rules
-- in their own directories grouped all of it again in turns.

-- The text of the rules before the built-in ones; empty where there are none. Null in a store that
-- was grouped before this column came, until the next ingest.
alter table grouping add column rules_text text;
