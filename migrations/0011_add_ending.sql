-- How a stall came to its end, which its state does not say: the loop recovered, or the process went in it, and in which way.

-- StallEnding: 1 recovered, 2 exit, 3 exec, 4 crash, 5 killed, 6 stop. Null while it lasts, and where nobody knows.
alter table report add column ending integer;
