-- $1 how old in microseconds, $2 how many, $3 whether to the row, or else by whole days where there are partitions.
SELECT outbox_clean_delivered($1 * interval '1 microsecond', $2, $3)
