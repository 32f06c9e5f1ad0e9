-- The texts of grouping rules, by the hash that `grouping` has. A collector on another machine has no file of rules, and
-- groups by those of the cluster.

create table if not exists {database}.rules_text (
    rules_hash Int64,
    -- A file of rules; empty for the built-in rules alone.
    text String,
    version Int64
) engine = ReplacingMergeTree(version) order by rules_hash;
