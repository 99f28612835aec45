-- The outbox. Every state of a message is a table, so that the hot one stays small and is only ever appended to and
-- deleted from. Names start with `outbox_`; `sendoff migrate` puts the configured prefix in its place.
--
-- Times are microseconds since 1970, by the clock of SQLite itself, as far as its milliseconds go. Ids are UUIDs in
-- text. The tables are STRICT, so that a value of the wrong type is refused in the producer's own transaction, as it is
-- on other databases. Otherwise a date in text would sort after every number and its message would never be due.

-- Ready now. seq is the order of commits, because SQLite has one writer at a time, and it is not used again
-- (AUTOINCREMENT), because the other tables keep it for as long as they keep a message. Numbers repeat all the same when
-- a backup is restored, or when a person writes them: a row is only meant when its id is the same, too.
CREATE TABLE outbox_message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    -- 0 to 63 by the key. Where there is no key, 64 numbers in a row have one lane, so that the rows of a relay lie
    -- together. Keyless messages with a priority have lanes of their own, by the end of the id, so that urgent ones overtake a backlog (64 to 71) and idle ones never hold it up (72 to 79).
    -- The only place that computes it; producers in every language agree because none of them does. SQLite
    -- has no hash function, so the key is judged by its length, the first number in it, and some of its characters:
    -- the places where keys differ from one another.
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
    END) STORED,                     -- one byte; computing it anew made reads 5 times slower, which look at every row's
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    -- A UUID of version 7, for producers that leave the id out.
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
    payload ANY NOT NULL             -- bytes, or text, which stands for its bytes in UTF-8
) STRICT;
-- Keyless messages with a priority, found without a walk through the backlog. Rows without a priority are in neither
-- index, so emitting them costs nothing more. There is no index by id: every insert would pay for a rare look-up.
CREATE INDEX ix_outbox_message_urgent ON outbox_message (seq) WHERE priority > 0 AND key IS NULL;
CREATE INDEX ix_outbox_message_idle ON outbox_message (seq) WHERE priority < 0 AND key IS NULL;

-- Scheduled, backing off, held behind the failed head of its key, or waiting for a sink that is down. One row a leg:
-- leg is the sink it waits for, '' when it has not been routed yet. seq is the one it got when it was emitted. Two messages
-- with one number both fit.
CREATE TABLE outbox_waiting (
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    due_at INTEGER,                  -- NULL: held, until the head of its key is gone
    waiting_since INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    id TEXT NOT NULL,
    schema_version INTEGER,
    available_at INTEGER,
    expires_at INTEGER,
    leg TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('scheduled', 'retry', 'held', 'down', 'parked')),
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
    PRIMARY KEY (lane, seq, leg, id)
) STRICT;
CREATE INDEX ix_outbox_waiting_due ON outbox_waiting (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX ix_outbox_waiting_key ON outbox_waiting (lane, key, leg, seq) WHERE key IS NOT NULL;
CREATE INDEX ix_outbox_waiting_id ON outbox_waiting (id);

-- Exhausted, permanently failed, expired, unroutable or unreadable: the whole message, why, and what was tried.
-- blocks: the followers of its key wait until an operator retries, discards or releases it.
-- Nothing here can refuse a row of the tables above, whatever is in it.
CREATE TABLE outbox_dead (
    lane INTEGER NOT NULL,
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
    leg TEXT NOT NULL DEFAULT '',
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
    PRIMARY KEY (lane, seq, leg, id)
) STRICT;
CREATE INDEX ix_outbox_dead_at ON outbox_dead (dead_at);
CREATE INDEX ix_outbox_dead_id ON outbox_dead (id);
CREATE INDEX ix_outbox_dead_blocks ON outbox_dead (lane, key, leg) WHERE blocks;

-- Delivered messages, only while a retention is configured.
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
    leg TEXT NOT NULL DEFAULT '',
    topic TEXT NOT NULL,
    key TEXT,
    content_type TEXT,
    headers TEXT,
    aggregate_type TEXT,
    aggregate_id TEXT,
    idempotency_key TEXT,
    payload ANY NOT NULL
) STRICT;
CREATE INDEX ix_outbox_delivered_at ON outbox_delivered (delivered_at);
CREATE INDEX ix_outbox_delivered_id ON outbox_delivered (id);

-- Relays that run. Every lane of an owner depends on its lease. A lease is valid while until is ahead, and not further
-- ahead than the lease is long, give or take a fifth: then the clock was set back, and nobody would take over for as long.
CREATE TABLE outbox_relay (
    owner TEXT NOT NULL PRIMARY KEY, -- made anew at every start of a process
    name TEXT NOT NULL,              -- for people: host and pid
    version TEXT NOT NULL,           -- of the program
    config TEXT NOT NULL,            -- a hash of its configuration
    routes TEXT NOT NULL,            -- its routes as JSON, for relays with another configuration
    started_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    until INTEGER NOT NULL,
    lease INTEGER NOT NULL           -- how long it is, in microseconds
) STRICT;

-- Who works on which lane. epoch counts changes of hands. crashed_by lists owners in a row that vanished while they held the
-- lane; one that shows that it lives is taken off. suspect: the messages that an owner was working on and on nothing else,
-- after such crashes (their lowest and highest number; the id and the sink if it is one), suspect_by: the owner that works on
-- them now, suspect_crashed_by: those that vanished while they did. Lists have a space behind every owner.
CREATE TABLE outbox_lane (
    lane INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    crashed_by TEXT NOT NULL DEFAULT '',
    suspect_first INTEGER,
    suspect_last INTEGER,
    suspect_id TEXT,
    suspect_leg TEXT,
    suspect_by TEXT,
    suspect_crashed_by TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO outbox_lane (lane)
WITH RECURSIVE numbers (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM numbers WHERE lane < 79)
SELECT lane FROM numbers;

-- Idempotency keys within their window, whether or not the first message is still here. is_stored: its message was
-- written, so that the very same message, emitted again by a producer that does not know how its commit ended, is not.
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

-- What operators did.
CREATE TABLE outbox_audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    filter TEXT NOT NULL DEFAULT '{}',
    affected INTEGER NOT NULL
) STRICT;

-- Settings that the database itself acts on.
CREATE TABLE outbox_setting (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
INSERT INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_window_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- A message of which something is larger than may be is refused, with its name. Texts may be as long as the library lets
-- them be. A text has at most four bytes a character: most are not looked at closer. The settings may allow larger payloads.
CREATE TRIGGER tr_outbox_limit_message AFTER INSERT ON outbox_message
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

-- Runs only for messages with an idempotency key or a schedule, as its WHEN says. Before the insert seq and lane would
-- not be known yet, so it runs after it; all of it is one statement, which stands or falls as a whole.
-- A producer may have taken the idempotency key for this id already, to learn who holds it: that is no duplicate.
CREATE TRIGGER tr_outbox_after_insert AFTER INSERT ON outbox_message
WHEN NEW.idempotency_key IS NOT NULL OR NEW.available_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a message with this topic and idempotency key was already emitted')
    FROM outbox_dedup
    WHERE topic = NEW.topic AND idempotency_key = NEW.idempotency_key AND id <> NEW.id
        AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
    -- The very same message was written before.
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
    -- By what was just inserted and not by the clock once more: the message must be in exactly one of both tables.
    DELETE FROM outbox_message WHERE seq = NEW.seq AND EXISTS (
        SELECT 1 FROM outbox_waiting WHERE lane = NEW.lane AND seq = NEW.seq AND leg = '' AND id = NEW.id);
END;

-- Every message with the status that operators know.
CREATE VIEW outbox_all AS
SELECT 'pending' AS status, lane, seq, id, topic, key, '' AS leg, aggregate_type, aggregate_id, schema_version,
    idempotency_key, content_type, headers, payload, priority, max_attempts, 0 AS attempts, NULL AS last_error,
    created_at, available_at, expires_at, NULL AS due_at, NULL AS detail, NULL AS ended_at
FROM outbox_message
UNION ALL
SELECT CASE WHEN attempts = 0 THEN 'pending' ELSE 'retry' END, lane, seq, id, topic, key, leg, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, key, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, id, topic, key, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at, expires_at, NULL,
    NULL, delivered_at
FROM outbox_delivered;
