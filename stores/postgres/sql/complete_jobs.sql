-- $1 worker, $2 jobs, $3 the claim's number. Returns the jobs that the worker did not hold.
SELECT outbox_complete_jobs($1, $2, $3)
