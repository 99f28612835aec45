-- $1 how old in microseconds, $2 how many, $3 whether to the row, or else by whole days where there are partitions. Returns how
-- many rows went, and whether there may be more.
SELECT gone, more FROM outbox_clean_delivered($1 * interval '1 microsecond', $2, $3)
