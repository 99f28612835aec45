-- Work items: what the application's own workers claim, row by row, and finish themselves. Written in the application's
-- transaction like a message, and never touched by a relay.
--
-- next_attempt_at of a running item is the end of its lease: so one index finds both what is due and what a worker has
-- left behind, and an expired lease needs nobody to notice it. claim is a random number, new at every hand-out: a worker's
-- claim fits no later one, not even where numbers of items repeat because a backup was restored.
CREATE TABLE outbox_item (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    claim INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    lease_until INTEGER,
    leased_at INTEGER,               -- when it was last claimed or extended
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    completed_at INTEGER,
    -- A UUID of version 7, for producers that leave the id out.
    id TEXT NOT NULL DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8) || '-'
        || substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9) || '-7'
        || substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
        || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))),
    attempts INTEGER NOT NULL DEFAULT 0,
    schema_version INTEGER,
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,            -- NULL: as the setting item_max_attempts says
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
    payload ANY NOT NULL             -- bytes, or text, which stands for its bytes in UTF-8
) STRICT;
-- Exactly the order of claiming, and only what can be claimed.
CREATE INDEX ix_outbox_item_due ON outbox_item (next_attempt_at, seq) WHERE state IN ('pending', 'retry', 'running');
CREATE INDEX ix_outbox_item_failed ON outbox_item (seq) WHERE state = 'failed';
CREATE INDEX ix_outbox_item_completed ON outbox_item (completed_at) WHERE state = 'completed';

INSERT INTO outbox_setting (name, value) VALUES ('item_max_attempts', '5');

-- Limits are those of messages.
CREATE TRIGGER tr_outbox_limit_item AFTER INSERT ON outbox_item
WHEN length(NEW.payload) > 4194304 OR length(NEW.topic) > 256 OR length(NEW.key) > 256 OR length(NEW.headers) > 1536
    OR length(NEW.content_type) > 256 OR length(NEW.aggregate_type) > 256 OR length(NEW.aggregate_id) > 256
    OR length(NEW.idempotency_key) > 256
BEGIN
    SELECT RAISE(ABORT, 'a message is too large: payload: more bytes than max_payload_bytes in outbox_setting')
    WHERE length(CAST(NEW.payload AS BLOB)) > max(16777216, coalesce(
        (SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'max_payload_bytes'), 0));
    SELECT RAISE(ABORT, 'a message is too large: topic: the limit is 1024 bytes')
    WHERE length(CAST(NEW.topic AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a message is too large: key: the limit is 1024 bytes')
    WHERE length(CAST(NEW.key AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a message is too large: headers: the limit is 65536 bytes')
    WHERE length(CAST(NEW.headers AS BLOB)) > 65536;
    SELECT RAISE(ABORT, 'a message is too large: headers: the limit is 256 of them')
    WHERE length(NEW.headers) > 1536 AND json_valid(NEW.headers) AND (SELECT count(*) FROM json_each(NEW.headers)) > 256;
    SELECT RAISE(ABORT, 'a message is too large: content_type: the limit is 1024 bytes')
    WHERE length(CAST(NEW.content_type AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a message is too large: aggregate_type: the limit is 1024 bytes')
    WHERE length(CAST(NEW.aggregate_type AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a message is too large: aggregate_id: the limit is 1024 bytes')
    WHERE length(CAST(NEW.aggregate_id AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a message is too large: idempotency_key: the limit is 1024 bytes')
    WHERE length(CAST(NEW.idempotency_key AS BLOB)) > 1024;
END;

-- Runs only for items with an idempotency key or a schedule, as its WHEN says. Keys are those of messages, too: one that
-- a message of the topic has used is taken. A producer may have taken the key for this id already, to learn who holds it.
CREATE TRIGGER tr_outbox_after_item AFTER INSERT ON outbox_item
WHEN NEW.idempotency_key IS NOT NULL OR NEW.available_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'an item or message with this topic and idempotency key was already emitted')
    FROM outbox_dedup
    WHERE topic = NEW.topic AND idempotency_key = NEW.idempotency_key AND id <> NEW.id
        AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
    -- The very same item was written before.
    DELETE FROM outbox_item WHERE seq = NEW.seq AND EXISTS (
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
    UPDATE outbox_item SET next_attempt_at = NEW.available_at
    WHERE seq = NEW.seq AND NEW.available_at > next_attempt_at;
END;
