SELECT state, jobs FROM outbox_job_count
