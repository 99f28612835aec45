-- What it costs on SQLite to keep delivered messages: 200,000 messages of 256 bytes are copied into a table with the columns and
-- indexes of outbox_delivered. @form: 1 no sink is named, 2 one sink, 3 a list with one sink, 4 a row for each of two sinks, 5 a list
-- with two sinks. Prints the time, and the bytes per message. In an empty file:
--   sqlite3 FILE -cmd '.parameter init' -cmd '.parameter set @form 5' < bench/sql/kept_sqlite.sql
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE message (
    lane INTEGER NOT NULL, priority INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER, seq INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL, id TEXT NOT NULL, schema_version INTEGER, available_at INTEGER, expires_at INTEGER,
    topic TEXT NOT NULL, key TEXT, content_type TEXT, headers TEXT, aggregate_type TEXT, aggregate_id TEXT,
    idempotency_key TEXT, payload ANY NOT NULL) STRICT;
CREATE TABLE kept (
    delivered_at INTEGER NOT NULL, lane INTEGER NOT NULL, priority INTEGER NOT NULL, max_attempts INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL, created_at INTEGER NOT NULL, id TEXT NOT NULL,
    schema_version INTEGER, available_at INTEGER, expires_at INTEGER, sinks TEXT NOT NULL, topic TEXT NOT NULL, key TEXT,
    content_type TEXT, headers TEXT, aggregate_type TEXT, aggregate_id TEXT, idempotency_key TEXT, history TEXT,
    payload ANY NOT NULL) STRICT;
CREATE TABLE form (form INTEGER NOT NULL, sinks TEXT NOT NULL) STRICT;
INSERT INTO form VALUES (1, ''), (2, 'orders'), (3, '["orders"]'), (4, 'orders'), (4, 'audit'), (5, '["orders","audit"]');
CREATE INDEX kept_at ON kept (delivered_at);
CREATE INDEX kept_id ON kept (id);
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200000)
INSERT INTO message (lane, seq, created_at, id, topic, key, payload)
SELECT 1, n, 1700000000000000 + n, lower(printf('%s-%s-7%s-a%s-%s', hex(randomblob(4)), hex(randomblob(2)),
    substr(hex(randomblob(2)), 2), substr(hex(randomblob(2)), 2), hex(randomblob(6)))), 'order.placed',
    'customer-' || n % 5000, zeroblob(256) FROM n;
.timer on
INSERT INTO kept (
    delivered_at, lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, sinks, topic,
    key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    1700000001000000, m.lane, m.priority, m.max_attempts, m.seq, m.created_at, m.id, m.schema_version, m.available_at,
    m.expires_at, f.sinks, m.topic, m.key, m.content_type, m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key,
    m.payload
FROM message AS m CROSS JOIN form AS f WHERE f.form = @form;
.timer off
SELECT 'form ' || @form, (sum(pgsize) / 200000) || ' bytes per message' FROM dbstat WHERE name LIKE 'kept%';
