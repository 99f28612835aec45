-- $1 minimum age in microseconds, $2 how many; whole days if they are partitions. Returns how many rows were deleted.
SELECT gone FROM outbox_clean_delivered($1 * interval '1 microsecond', $2, false)
