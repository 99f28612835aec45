-- The outbox. Every state of a message is a table, so that the hot table stays small and only gets inserts and deletes.
-- Names start with `outbox_`; `sendoff migrate` replaces that with the configured prefix.
--
-- Times are microseconds since 1970, from SQLite's clock, which has millisecond precision. Ids are UUIDs as text.
-- The tables are STRICT, so that a value of the wrong type is refused in the producer's transaction, as on other
-- databases. Otherwise a date as text would sort after every number, and its message would never be due.

-- Ready now. seq is the order of commits, because SQLite has one writer at a time. Numbers are not reused
-- (AUTOINCREMENT), because the other tables keep the number of a message. They still repeat when
-- a backup is restored, or when an operator writes them: a row matches only if its id matches, too.
CREATE TABLE outbox_message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    -- 0 to 63 by the key. Without a key, 64 consecutive numbers share a lane, so that the rows of a relay are close
    -- together. Keyless messages with a priority have separate lanes, by the end of the id, so that urgent ones overtake
    -- a backlog (64 to 71) and low-priority ones never delay it (72 to 79).
    -- Only this expression computes the lane, so producers in all languages agree. SQLite has no hash function, so the
    -- lane depends on the length of the key, the first number in it, and some of its characters: where keys usually
    -- differ.
    lane INTEGER NOT NULL GENERATED ALWAYS AS (CASE
        WHEN key IS NOT NULL THEN ((
                length(key)
                + 7 * CAST(substr(ltrim(
                    key, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:@.-/# '), 1, 9) AS INTEGER)
                + 3 * coalesce(unicode(key), 0)
                + 5 * coalesce(unicode(substr(key, 2, 1)), 0)
                + 13 * coalesce(unicode(substr(key, 3, 1)), 0)
                + 17 * coalesce(unicode(substr(key, length(key) / 4 + 1, 1)), 0)
                + 29 * coalesce(unicode(substr(key, length(key) / 2 + 1, 1)), 0)
                + 101 * coalesce(unicode(substr(key, -3, 1)), 0)
                + 11 * coalesce(unicode(substr(key, -2, 1)), 0)
                + coalesce(unicode(substr(key, -1)), 0)
            ) * 40503 >> 8) & 63
        WHEN priority = 0 THEN seq >> 6 & 63
        WHEN priority > 0 THEN 64 + ((instr('0123456789abcdef', lower(substr(id, -1))) - 1) & 7)
        ELSE 72 + ((instr('0123456789abcdef', lower(substr(id, -1))) - 1) & 7)
    END) STORED,                     -- one byte; computing it for every row made reads 5 times slower
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    -- A UUID of version 7, for producers that omit the id.
    id TEXT NOT NULL DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8) || '-'
        || substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9) || '-7'
        || substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
        || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))),
    schema_version INTEGER,
    available_at INTEGER,
    expires_at INTEGER,
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,               -- NULL is application/json
    headers TEXT,                    -- a JSON object of strings
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    payload ANY NOT NULL             -- bytes, or text, which means its UTF-8 bytes
) STRICT;
-- Keyless messages with a priority, found without scanning the backlog. Rows without a priority are in neither
-- index, so emitting them costs nothing extra. There is no index on id: it would slow down every insert for rare look-ups.
CREATE INDEX ix_outbox_message_urgent ON outbox_message (seq) WHERE priority > 0 AND key IS NULL;
CREATE INDEX ix_outbox_message_idle ON outbox_message (seq) WHERE priority < 0 AND key IS NULL;

-- Scheduled, in retry, blocked behind the failed head of its key, or deferred (sink down or paused). One row per delivery:
-- sink is '' until the message is routed. seq is the number that the message got when it was emitted. Two messages may have
-- the same number.
CREATE TABLE outbox_waiting (
    lane INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 79),
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    due_at INTEGER,                  -- NULL: blocked, until the head of its key is gone
    waiting_since INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    id TEXT NOT NULL,
    schema_version INTEGER,
    available_at INTEGER,
    expires_at INTEGER,
    sink TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('scheduled', 'retry', 'blocked', 'deferred', 'parked')),
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,
    headers TEXT,
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    last_error TEXT,
    history TEXT NOT NULL DEFAULT '[]',
    payload ANY NOT NULL,
    PRIMARY KEY (lane, seq, sink, id)
) STRICT;
CREATE INDEX ix_outbox_waiting_due ON outbox_waiting (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX ix_outbox_waiting_key ON outbox_waiting (lane, key, sink, seq) WHERE key IS NOT NULL;
CREATE INDEX ix_outbox_waiting_id ON outbox_waiting (id);

-- Dead letters (attempts used up, permanent failure, expired, unroutable or unreadable): the message, the reason, the attempts.
-- blocks: the followers of its key wait until an operator retries, discards or releases it.
-- The constraints here must accept every row of the tables above, whatever its values are.
CREATE TABLE outbox_dead (
    lane INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 79),
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    dead_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    id TEXT NOT NULL,
    schema_version INTEGER,
    blocks INTEGER NOT NULL DEFAULT 0,
    available_at INTEGER,
    expires_at INTEGER,
    sink TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL CHECK (reason IN ('exhausted', 'permanent', 'expired', 'unroutable', 'unreadable', 'crashed')),
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,
    headers TEXT,
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    last_error TEXT,
    history TEXT NOT NULL DEFAULT '[]',
    payload ANY NOT NULL,
    PRIMARY KEY (lane, seq, sink, id)
) STRICT;
CREATE INDEX ix_outbox_dead_at ON outbox_dead (dead_at, seq);
CREATE INDEX ix_outbox_dead_id ON outbox_dead (id);
CREATE INDEX ix_outbox_dead_blocks ON outbox_dead (lane, key, sink) WHERE blocks;

-- Delivered messages, only while a retention is configured: one row for the sinks that confirmed a message together.
CREATE TABLE outbox_delivered (
    delivered_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    schema_version INTEGER,
    available_at INTEGER,
    expires_at INTEGER,
    sinks TEXT NOT NULL DEFAULT '[""]',  -- the names of the sinks that confirmed it then
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,
    headers TEXT,
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    history TEXT,                       -- failed attempts before that; NULL: none
    payload ANY NOT NULL
) STRICT;
CREATE INDEX ix_outbox_delivered_at ON outbox_delivered (delivered_at, seq);
CREATE INDEX ix_outbox_delivered_seq ON outbox_delivered (seq);
CREATE INDEX ix_outbox_delivered_id ON outbox_delivered (id);

-- Registered relays. All lanes of an owner depend on its lease. A lease is valid while `until` is in the future, but at most
-- 1.2 times the length of the lease from now. Beyond that, the clock was set back, and no relay could take over for that long.
CREATE TABLE outbox_relay (
    owner TEXT NOT NULL PRIMARY KEY, -- new at every start of the process
    name TEXT NOT NULL,              -- for operators: host and pid
    version TEXT NOT NULL,           -- of the program
    config TEXT NOT NULL,            -- a hash of its configuration
    routes TEXT NOT NULL,            -- its routes as JSON, for relays with another configuration
    started_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    until INTEGER NOT NULL,
    lease INTEGER NOT NULL           -- how long it is, in microseconds
) STRICT;

-- What relays say about their work, every second or so, for operators: one row per relay, whose sink is '', and one per sink of
-- it. They go with the relay. No decision depends on them.
CREATE TABLE outbox_figure (
    owner TEXT NOT NULL,
    sink TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    figures TEXT NOT NULL,           -- as JSON
    PRIMARY KEY (owner, sink)
) STRICT, WITHOUT ROWID;
-- A trigger, because SQLite checks foreign keys only for connections that ask for it.
CREATE TRIGGER tr_outbox_figure AFTER DELETE ON outbox_relay
BEGIN
    DELETE FROM outbox_figure WHERE owner = OLD.owner;
END;

-- Which relay works on which lane. epoch counts changes of the owner. crashed_by lists consecutive owners that vanished while
-- they held the lane; an owner that proves to be alive is removed from the list. The quarantine_ columns name the messages that
-- an owner worked on alone after these crashes (lowest and highest number; id and sink if it is one message). quarantine_by:
-- the owner that works on them now. quarantine_crashed_by: owners that vanished while they did. Lists have a space after each owner.
CREATE TABLE outbox_lane (
    lane INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    crashed_by TEXT NOT NULL DEFAULT '',
    quarantine_first INTEGER,
    quarantine_last INTEGER,
    quarantine_id TEXT,
    quarantine_sink TEXT,
    quarantine_by TEXT,
    quarantine_crashed_by TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO outbox_lane (lane)
WITH RECURSIVE numbers (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM numbers WHERE lane < 79)
SELECT lane FROM numbers;

-- Idempotency keys within their window; the first message may be deleted already. is_stored: the message was written. A
-- producer that does not know whether its commit succeeded may emit the same message again: it is not written a second time.
CREATE TABLE outbox_dedup (
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    is_stored INTEGER NOT NULL DEFAULT 0,
    topic TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    PRIMARY KEY (topic, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_outbox_dedup_until ON outbox_dedup (until);

-- Messages that consumers of this database have handled, within a window.
CREATE TABLE outbox_inbox (
    consumer TEXT NOT NULL,
    message_id TEXT NOT NULL,
    handled_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_outbox_inbox_at ON outbox_inbox (handled_at);

-- Paused topics and sinks.
CREATE TABLE outbox_control (
    kind TEXT NOT NULL CHECK (kind IN ('topic', 'sink')),
    name TEXT NOT NULL,
    paused_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    paused_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (kind, name)
) STRICT;

-- The audit: actions of operators.
CREATE TABLE outbox_audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    filter TEXT NOT NULL DEFAULT '{}',
    affected INTEGER NOT NULL
) STRICT;

-- Settings that the database itself uses.
CREATE TABLE outbox_setting (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
INSERT INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_retention_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- An INSERT here checks the sizes of a message: too large a value is refused, and the error names it.
-- The limits of texts are those of the library. The settings may allow larger payloads. This view has no rows.
CREATE VIEW outbox_size AS
SELECT NULL AS payload, NULL AS topic, NULL AS key, NULL AS headers, NULL AS content_type, NULL AS aggregate_type,
    NULL AS aggregate_id, NULL AS idempotency_key
WHERE false;
CREATE TRIGGER tr_outbox_size INSTEAD OF INSERT ON outbox_size
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

-- A character has at most four bytes: most messages need no closer check.
CREATE TRIGGER tr_outbox_limit_message AFTER INSERT ON outbox_message
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

-- Runs only for messages with an idempotency key or a schedule (see WHEN). It runs after the insert, because seq and lane
-- are not known before it; insert and trigger are one atomic statement.
-- A producer may have taken the idempotency key for this id already, to learn which message owns it: that is no duplicate.
CREATE TRIGGER tr_outbox_after_insert AFTER INSERT ON outbox_message
WHEN NEW.idempotency_key IS NOT NULL OR NEW.available_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a message with this topic and idempotency key was already emitted')
    FROM outbox_dedup
    WHERE topic = NEW.topic AND idempotency_key = NEW.idempotency_key AND id <> NEW.id
        AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
    -- The same message was written before.
    DELETE FROM outbox_message WHERE seq = NEW.seq AND EXISTS (
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
    INSERT INTO outbox_waiting (
        lane, priority, max_attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, state,
        topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
    SELECT
        NEW.lane, NEW.priority, NEW.max_attempts, NEW.seq, NEW.available_at, NEW.created_at, NEW.id, NEW.schema_version,
        NEW.available_at, NEW.expires_at, 'scheduled', NEW.topic, NEW.key, NEW.content_type, NEW.headers,
        NEW.aggregate_type, NEW.aggregate_id, NEW.idempotency_key, NEW.payload
    WHERE NEW.available_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        AND EXISTS (SELECT 1 FROM outbox_message WHERE seq = NEW.seq);
    -- By the row just inserted, not by the clock again: the message must be in exactly one of the two tables.
    DELETE FROM outbox_message WHERE seq = NEW.seq AND EXISTS (
        SELECT 1 FROM outbox_waiting WHERE lane = NEW.lane AND seq = NEW.seq AND sink = '' AND id = NEW.id);
END;

-- Every delivery, and every message that is not routed yet, with the status that operators see.
CREATE VIEW outbox_all AS
SELECT 'pending' AS status, lane, seq, id, topic, key, '' AS sink, aggregate_type, aggregate_id, schema_version,
    idempotency_key, content_type, headers, payload, priority, max_attempts, 0 AS attempts, NULL AS last_error,
    created_at, available_at, expires_at, NULL AS due_at, NULL AS detail, NULL AS ended_at, NULL AS history
FROM outbox_message
UNION ALL
SELECT CASE
        WHEN state IN ('scheduled', 'deferred') THEN state
        WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
        WHEN attempts = 0 THEN 'pending'
        ELSE 'retry'
    END, lane, seq, id, topic, key, sink, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL, history
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, key, sink, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at, history
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, d.id, topic, d.key, s.value, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at, expires_at, NULL,
    NULL, delivered_at, coalesce(history, '[]')
FROM outbox_delivered AS d CROSS JOIN json_each(d.sinks) AS s;
