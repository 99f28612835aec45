-- Jobs: rows that the application's own workers claim and complete. They are written in the application's transaction like a
-- message; relays never touch them.
--
-- next_attempt_at of a running job is the end of its lease: so one index finds both due jobs and abandoned jobs, and an
-- expired lease needs no clean-up. claim is a random number, new for each claim: a worker's claim matches no later one,
-- not even if the numbers of jobs repeat after a restored backup.
CREATE TABLE outbox_job (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    claim INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    lease_until INTEGER,
    leased_at INTEGER,               -- when it was last claimed or extended
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    completed_at INTEGER,
    -- A UUID of version 7, for producers that omit the id.
    id TEXT NOT NULL DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8) || '-'
        || substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9) || '-7'
        || substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
        || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))),
    attempts INTEGER NOT NULL DEFAULT 0,
    schema_version INTEGER,
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,            -- NULL: the setting job_max_attempts
    available_at INTEGER,
    expires_at INTEGER,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'retry', 'completed', 'failed')),
    lease_owner TEXT,
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,               -- NULL is application/json
    headers TEXT,                    -- a JSON object of strings
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    last_error TEXT,
    payload ANY NOT NULL             -- bytes, or text, which means its UTF-8 bytes
) STRICT;
-- Exactly the order of claiming, and only jobs that can be claimed.
CREATE INDEX ix_outbox_job_due ON outbox_job (next_attempt_at, seq) WHERE state IN ('pending', 'retry', 'running');
CREATE INDEX ix_outbox_job_failed ON outbox_job (seq) WHERE state = 'failed';
CREATE INDEX ix_outbox_job_completed ON outbox_job (completed_at) WHERE state = 'completed';

INSERT INTO outbox_setting (name, value) VALUES ('job_max_attempts', '5');

-- The limits are those of messages.
CREATE TRIGGER tr_outbox_limit_job AFTER INSERT ON outbox_job
WHEN length(NEW.payload) > 4194304 OR length(NEW.topic) > 256 OR length(NEW.key) > 256 OR length(NEW.headers) > 1536
    OR length(NEW.content_type) > 256 OR length(NEW.aggregate_type) > 256 OR length(NEW.aggregate_id) > 256
    OR length(NEW.idempotency_key) > 256
BEGIN
    INSERT INTO outbox_size (
        payload, topic, key, headers, content_type, aggregate_type, aggregate_id, idempotency_key)
    VALUES (
        NEW.payload, NEW.topic, NEW.key, NEW.headers, NEW.content_type, NEW.aggregate_type, NEW.aggregate_id,
        NEW.idempotency_key);
END;

-- Runs only for jobs with an idempotency key or a schedule (see WHEN). Jobs and messages share idempotency keys: a key that
-- a message of the topic has used is taken. A producer may have taken the key for this id already, to learn which job owns it.
CREATE TRIGGER tr_outbox_after_job AFTER INSERT ON outbox_job
WHEN NEW.idempotency_key IS NOT NULL OR NEW.available_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a job or message with this topic and idempotency key was already emitted')
    FROM outbox_dedup
    WHERE topic = NEW.topic AND idempotency_key = NEW.idempotency_key AND id <> NEW.id
        AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
    -- The same job was written before.
    DELETE FROM outbox_job WHERE seq = NEW.seq AND EXISTS (
        SELECT 1 FROM outbox_dedup
        WHERE topic = NEW.topic AND idempotency_key = NEW.idempotency_key AND is_stored
            AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));
    INSERT INTO outbox_dedup (id, until, is_stored, topic, idempotency_key)
    SELECT NEW.id, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + 1000000 * coalesce(
        (SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'dedup_window_seconds'), 604800),
        1, NEW.topic, NEW.idempotency_key
    WHERE NEW.idempotency_key IS NOT NULL
    ON CONFLICT (topic, idempotency_key) DO UPDATE SET
        id = excluded.id, is_stored = 1,
        until = CASE WHEN until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            THEN excluded.until ELSE until END
    WHERE NOT is_stored OR until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
    UPDATE outbox_job SET next_attempt_at = NEW.available_at
    WHERE seq = NEW.seq AND NEW.available_at > next_attempt_at;
END;
