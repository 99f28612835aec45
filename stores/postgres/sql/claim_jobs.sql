-- $1 worker, $2 how many, $3 lease in microseconds, $4 topics; none means any.
SELECT is_failed, due_at, seq, claim, attempts, {contents}
FROM outbox_claim_jobs($1, $2, $3, $4)
