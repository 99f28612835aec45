-- The outbox. Every state of a message is a table, so that the hot table stays small and only gets inserts and deletes.
-- Names start with `outbox_`; `sendoff migrate` replaces that with the configured schema and prefix.
--
-- MySQL commits after every CREATE. So each statement here can be run again: the next run finishes an interrupted
-- migration. The view comes last; if it exists, the step is complete.
--
-- Times are in UTC, whatever the time zone of the server or the session. Ids are UUIDs as text. Text of producers is
-- utf8mb4; the other tables store values that are compared (keys, sinks) as the bytes of that text, because
-- every collation that both MySQL and MariaDB have treats 'a' and 'a ' as equal.

-- Ready now. The trigger below sets lane (it ignores the value of a producer) and a missing id.
-- Relays do not lease lanes 80 and 81: see the trigger. A row in any lane above would never be delivered.
CREATE TABLE IF NOT EXISTS outbox_message (
    lane SMALLINT NOT NULL DEFAULT 0 CHECK (lane BETWEEN 0 AND 81),
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,
    seq BIGINT NOT NULL AUTO_INCREMENT,
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT '',
    schema_version INT,
    available_at DATETIME(6),
    expires_at DATETIME(6),
    topic VARCHAR(1024) NOT NULL,
    `key` VARCHAR(1024),
    content_type VARCHAR(1024),          -- NULL is application/json
    headers JSON,                        -- an object of strings
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    payload LONGBLOB NOT NULL,
    PRIMARY KEY (lane, seq),
    KEY ix_outbox_message_seq (seq)      -- InnoDB needs an index that begins with the AUTO_INCREMENT column
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Scheduled, in retry, blocked behind the failed head of its key, or deferred (sink down or paused). One row per delivery:
-- sink is '' until the message is routed. seq is the number that the message got when it was emitted.
CREATE TABLE IF NOT EXISTS outbox_waiting (
    lane SMALLINT NOT NULL CHECK (lane BETWEEN 0 AND 79),
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,
    attempts INT NOT NULL DEFAULT 0,
    seq BIGINT NOT NULL,
    due_at DATETIME(6),                  -- NULL: blocked, until the head of its key is gone
    waiting_since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    schema_version INT,
    available_at DATETIME(6),
    expires_at DATETIME(6),
    sink VARBINARY(255) NOT NULL DEFAULT '',
    state VARCHAR(16) NOT NULL CHECK (state IN ('scheduled', 'retry', 'blocked', 'deferred', 'parked')),
    topic VARCHAR(1024) NOT NULL,
    `key` VARBINARY(1024),
    content_type VARCHAR(1024),
    headers JSON,
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    last_error TEXT,
    history JSON NOT NULL,
    payload LONGBLOB NOT NULL,
    PRIMARY KEY (lane, seq, sink, id),    -- numbers repeat after a failover: two messages may have the same
    KEY ix_outbox_waiting_due (due_at, seq),
    KEY ix_outbox_waiting_key (lane, `key`, sink, seq),
    KEY ix_outbox_waiting_id (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Dead letters (attempts used up, permanent failure, expired, unroutable or unreadable): the message, the reason, the attempts.
-- blocks: the followers of its key wait until an operator retries, discards or releases it.
CREATE TABLE IF NOT EXISTS outbox_dead (
    lane SMALLINT NOT NULL CHECK (lane BETWEEN 0 AND 79),
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,
    attempts INT NOT NULL DEFAULT 0,
    seq BIGINT NOT NULL,
    dead_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    schema_version INT,
    blocks BOOLEAN NOT NULL DEFAULT false,
    available_at DATETIME(6),
    expires_at DATETIME(6),
    sink VARBINARY(255) NOT NULL DEFAULT '',
    reason VARCHAR(16) NOT NULL
        CHECK (reason IN ('exhausted', 'permanent', 'expired', 'unroutable', 'unreadable', 'crashed')),
    topic VARCHAR(1024) NOT NULL,
    `key` VARBINARY(1024),
    content_type VARCHAR(1024),
    headers JSON,
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    last_error TEXT,
    history JSON NOT NULL,
    payload LONGBLOB NOT NULL,
    PRIMARY KEY (lane, seq, sink, id),
    KEY ix_outbox_dead_at (dead_at, seq),
    KEY ix_outbox_dead_id (id),
    KEY ix_outbox_dead_blocks (blocks, lane, `key`, sink)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Delivered messages, only while a retention is configured: one row for the sinks that confirmed a message together.
CREATE TABLE IF NOT EXISTS outbox_delivered (
    delivered_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    lane SMALLINT NOT NULL,
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,
    attempts INT NOT NULL DEFAULT 0,
    seq BIGINT NOT NULL,
    created_at DATETIME(6) NOT NULL,
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    schema_version INT,
    available_at DATETIME(6),
    expires_at DATETIME(6),
    sinks JSON NOT NULL,    -- the names of the sinks that confirmed it then
    topic VARCHAR(1024) NOT NULL,
    `key` VARBINARY(1024),
    content_type VARCHAR(1024),
    headers JSON,
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    history JSON,           -- failed attempts before that; NULL: none
    payload LONGBLOB NOT NULL,
    KEY ix_outbox_delivered_at (delivered_at, seq),
    KEY ix_outbox_delivered_seq (seq),
    KEY ix_outbox_delivered_id (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Registered relays. A lease is a row here that has not expired; all lanes of its owner depend on it. A lease that ends more
-- than 1.2 times its length from now is not valid: the server's clock was set back.
CREATE TABLE IF NOT EXISTS outbox_relay (
    owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,  -- new at every start of the process
    name VARCHAR(1024) NOT NULL,                                       -- for operators: host and pid
    version VARCHAR(255) NOT NULL,                                     -- of the program
    config VARCHAR(64) NOT NULL,                                       -- a hash of its configuration
    routes MEDIUMTEXT NOT NULL,                                        -- as JSON, for relays with another configuration
    started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    until DATETIME(6) NOT NULL,
    lease BIGINT NOT NULL                                              -- its length in microseconds
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What relays say about their work, every second or so, for operators: one row per relay, whose sink is '', and one per sink of
-- it. They go with the relay. No decision depends on them.
CREATE TABLE IF NOT EXISTS outbox_figure (
    owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    sink VARBINARY(255) NOT NULL,
    written_at DATETIME(6) NOT NULL,
    figures TEXT NOT NULL,                                             -- as JSON
    PRIMARY KEY (owner, sink),
    FOREIGN KEY (owner) REFERENCES outbox_relay (owner) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which relay works on which lane. epoch counts changes of the owner. crashed_by lists consecutive owners that vanished while
-- they held the lane; an owner that proves to be alive is removed from the list. The quarantine_ columns name the messages that
-- an owner worked on alone after these crashes (lowest and highest number; id and sink if it is one message). quarantine_by:
-- the owner that works on them now. quarantine_crashed_by: owners that vanished while they did. Lists have a comma after each owner.
CREATE TABLE IF NOT EXISTS outbox_lane (
    lane SMALLINT PRIMARY KEY,
    epoch BIGINT NOT NULL DEFAULT 0,
    owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    crashed_by VARCHAR(740) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    quarantine_first BIGINT,
    quarantine_last BIGINT,
    quarantine_sink VARBINARY(255),
    quarantine_id VARBINARY(36),
    quarantine_by CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    quarantine_crashed_by VARCHAR(740) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO outbox_lane (lane)
WITH RECURSIVE numbers (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM numbers WHERE lane < 79)
SELECT lane FROM numbers;

-- Idempotency keys within their window; the first message may be deleted already. is_stored: the message was written. A
-- producer that does not know whether its commit succeeded may emit the same message again: it is not written a second time.
-- Both parts of the key are the bytes of the text.
CREATE TABLE IF NOT EXISTS outbox_dedup (
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    until DATETIME(6) NOT NULL,
    is_stored BOOLEAN NOT NULL DEFAULT false,
    topic VARBINARY(1024) NOT NULL,
    idempotency_key VARBINARY(1024) NOT NULL,
    PRIMARY KEY (topic, idempotency_key),
    KEY ix_outbox_dedup_until (until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Messages that consumers of this database have handled, within a window.
CREATE TABLE IF NOT EXISTS outbox_inbox (
    consumer VARBINARY(255) NOT NULL,
    message_id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    handled_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (consumer, message_id),
    KEY ix_outbox_inbox_at (handled_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Paused topics and sinks.
CREATE TABLE IF NOT EXISTS outbox_control (
    kind VARCHAR(8) NOT NULL CHECK (kind IN ('topic', 'sink')),
    name VARBINARY(1024) NOT NULL,
    paused_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    paused_by VARCHAR(1024) NOT NULL DEFAULT '',
    PRIMARY KEY (kind, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The audit: actions of operators.
CREATE TABLE IF NOT EXISTS outbox_audit (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    login VARCHAR(512) NOT NULL,      -- the database user
    who VARCHAR(1024) NOT NULL,       -- the name that the operator gave
    action VARCHAR(64) NOT NULL,
    filter JSON NOT NULL,
    affected BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Settings that the database itself uses.
CREATE TABLE IF NOT EXISTS outbox_setting (
    name VARCHAR(64) PRIMARY KEY,
    value VARCHAR(1024) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_retention_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- A UUID of version 7, for producers that omit the id.
DROP PROCEDURE IF EXISTS outbox_uuid_v7;
CREATE PROCEDURE outbox_uuid_v7(OUT p_id CHAR(36) CHARACTER SET ascii)
NO SQL
BEGIN
    DECLARE v_random CHAR(32) CHARACTER SET ascii DEFAULT LEFT(SHA2(CONCAT(UUID(), RAND()), 256), 32);
    DECLARE v_time CHAR(12) CHARACTER SET ascii DEFAULT LPAD(
        LOWER(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)), 12, '0');
    SET p_id = CONCAT(
        LEFT(v_time, 8), '-', RIGHT(v_time, 4), '-7', SUBSTRING(v_random, 1, 3), '-',
        SUBSTRING('89ab', 1 + FLOOR(RAND() * 4), 1), SUBSTRING(v_random, 4, 3), '-', RIGHT(v_random, 12));
END;

-- Refuses a message if a part of it is too large; the error names the part. All sizes are bytes, except the number of
-- headers. The limits of texts are those of the library, and short enough for all tables and indexes that a message
-- may be moved to. The settings may allow larger payloads.
DROP PROCEDURE IF EXISTS outbox_check_sizes;
CREATE PROCEDURE outbox_check_sizes(
    IN p_payload BIGINT, IN p_topic INT, IN p_key INT, IN p_headers BIGINT, IN p_header_count INT, IN p_content_type INT,
    IN p_aggregate_type INT, IN p_aggregate_id INT, IN p_idempotency_key INT
)
READS SQL DATA
BEGIN
    DECLARE v_payload BIGINT DEFAULT 16777216;
    DECLARE v_text INT DEFAULT 1024;
    DECLARE v_headers INT DEFAULT 65536;
    DECLARE v_header_count INT DEFAULT 256;
    DECLARE v_words VARCHAR(128);
    IF p_payload > v_payload THEN
        SELECT greatest(v_payload, coalesce(max(CAST(value AS SIGNED)), 0)) INTO v_payload
        FROM outbox_setting WHERE name = 'max_payload_bytes';
    END IF;
    SET v_words = CASE
        WHEN p_payload > v_payload
            THEN CONCAT('payload: ', p_payload, ' bytes; max_payload_bytes in outbox_setting is ', v_payload)
        WHEN p_topic > v_text THEN CONCAT('topic: ', p_topic, ' bytes; the limit is ', v_text)
        WHEN p_key > v_text THEN CONCAT('key: ', p_key, ' bytes; the limit is ', v_text)
        WHEN p_headers > v_headers THEN CONCAT('headers: ', p_headers, ' bytes; the limit is ', v_headers)
        WHEN p_header_count > v_header_count
            THEN CONCAT('headers: there are ', p_header_count, '; the limit is ', v_header_count)
        WHEN p_content_type > v_text THEN CONCAT('content_type: ', p_content_type, ' bytes; the limit is ', v_text)
        WHEN p_aggregate_type > v_text THEN CONCAT('aggregate_type: ', p_aggregate_type, ' bytes; the limit is ', v_text)
        WHEN p_aggregate_id > v_text THEN CONCAT('aggregate_id: ', p_aggregate_id, ' bytes; the limit is ', v_text)
        WHEN p_idempotency_key > v_text
            THEN CONCAT('idempotency_key: ', p_idempotency_key, ' bytes; the limit is ', v_text)
    END;
    IF v_words IS NOT NULL THEN
        SET v_words = CONCAT('a message is too large: ', v_words);
        SIGNAL SQLSTATE '22001' SET MYSQL_ERRNO = 1406, MESSAGE_TEXT = v_words;
    END IF;
END;

-- Takes an idempotency key for a message. Returns the id that owns the key (the id of the caller if it was free) and whether
-- that message was written. A duplicate is usually found by a SELECT and writes nothing. The upsert waits for a concurrent
-- transaction that took the same key, so that exactly one of them emits; the outcome is read with a lock, because the
-- caller's transaction may have an older snapshot.
DROP PROCEDURE IF EXISTS outbox_dedup_take;
CREATE PROCEDURE outbox_dedup_take(
    IN p_topic VARBINARY(4096), IN p_idempotency_key VARBINARY(4096), IN p_id CHAR(36) CHARACTER SET ascii,
    OUT p_holder CHAR(36) CHARACTER SET ascii, OUT p_stored BOOLEAN
)
MODIFIES SQL DATA
BEGIN
    DECLARE v_window BIGINT;
    DECLARE v_lock VARCHAR(64) DEFAULT CONCAT(
        'sendoff ', LEFT(SHA2(CONCAT(DATABASE(), p_topic, 0x00, p_idempotency_key), 256), 32));
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        DO RELEASE_LOCK(v_lock);
        RESIGNAL;
    END;
    -- SELECT INTO, because a subquery of SET or DEFAULT would lock the rows it reads. It also sees keys that this transaction
    -- took: waiting for the lock below would deadlock with transactions that wait for this one.
    SELECT max(id), max(is_stored) INTO p_holder, p_stored FROM outbox_dedup
    WHERE topic = p_topic AND idempotency_key = p_idempotency_key AND until > UTC_TIMESTAMP(6)
        AND (is_stored OR id = p_id);
    IF p_holder IS NULL THEN
        SELECT coalesce(max(CAST(value AS SIGNED)), 604800) INTO v_window
        FROM outbox_setting WHERE name = 'dedup_window_seconds';
        -- Only one transaction at a time waits for the one that has the key: if several waited and that one rolled back, they
        -- would block each other's inserts, which is a deadlock. The lock is held for this statement only. If it is not
        -- granted in time, the statement runs without it.
        DO GET_LOCK(v_lock, 5);
        INSERT INTO outbox_dedup (id, until, topic, idempotency_key)
        VALUES (p_id, UTC_TIMESTAMP(6) + INTERVAL v_window SECOND, p_topic, p_idempotency_key)
        ON DUPLICATE KEY UPDATE
            -- In this order: each assignment sees the previous ones. A key whose message was never written is free, too:
            -- the statement that took it failed, but its transaction was committed.
            id = IF(until <= UTC_TIMESTAMP(6) OR NOT is_stored, VALUES(id), id),
            is_stored = IF(until <= UTC_TIMESTAMP(6), false, is_stored),
            until = IF(id = VALUES(id) AND NOT is_stored, VALUES(until), until);
        SELECT id, is_stored INTO p_holder, p_stored FROM outbox_dedup
        WHERE topic = p_topic AND idempotency_key = p_idempotency_key FOR UPDATE;
        DO RELEASE_LOCK(v_lock);
    END IF;
END;

-- Before a message is written: checks its size, sets its lane and a missing id, and takes its idempotency key. The trigger runs
-- with the rights of its definer, so a producer needs only INSERT on outbox_message.
--
-- The lane is 0 to 63 by the key, or by the id if there is no key. Keyless messages with a priority have separate lanes,
-- so that urgent ones overtake a backlog (64 to 71) and low-priority ones never delay it (72 to 79). Only this trigger
-- computes the lane, so producers in all languages agree.
--
-- A MySQL trigger cannot redirect or skip a row. A scheduled message goes to lane 80, and relays move it to
-- outbox_waiting; a message that is written a second time goes to lane 81, and relays delete it.
DROP TRIGGER IF EXISTS outbox_before_insert;
CREATE TRIGGER outbox_before_insert BEFORE INSERT ON outbox_message FOR EACH ROW
BEGIN
    DECLARE v_holder CHAR(36) CHARACTER SET ascii;
    DECLARE v_stored BOOLEAN DEFAULT false;
    DECLARE v_words VARCHAR(128);
    CALL outbox_check_sizes(
        OCTET_LENGTH(NEW.payload), OCTET_LENGTH(NEW.topic), OCTET_LENGTH(NEW.`key`), OCTET_LENGTH(NEW.headers),
        JSON_LENGTH(NEW.headers), OCTET_LENGTH(NEW.content_type), OCTET_LENGTH(NEW.aggregate_type),
        OCTET_LENGTH(NEW.aggregate_id), OCTET_LENGTH(NEW.idempotency_key));
    IF NEW.id = '' THEN
        CALL outbox_uuid_v7(v_holder);
        SET NEW.id = v_holder;
    END IF;
    IF NEW.idempotency_key IS NOT NULL THEN
        CALL outbox_dedup_take(
            CAST(NEW.topic AS BINARY), CAST(NEW.idempotency_key AS BINARY), NEW.id, v_holder, v_stored);
        IF v_holder <> NEW.id THEN
            SET v_words = CONCAT('the idempotency key was already used by message ', v_holder);
            SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062, MESSAGE_TEXT = v_words;
        END IF;
        IF NOT v_stored THEN
            UPDATE outbox_dedup SET is_stored = true
            WHERE topic = CAST(NEW.topic AS BINARY) AND idempotency_key = CAST(NEW.idempotency_key AS BINARY)
                AND NOT is_stored;
            SET v_stored = ROW_COUNT() = 0;
        END IF;
    END IF;
    SET NEW.lane = CASE
        WHEN v_stored THEN 81
        -- Or outbox_emit found a moment ago that it is scheduled.
        WHEN NEW.available_at > UTC_TIMESTAMP(6) OR (NEW.available_at IS NOT NULL AND NEW.lane = 80) THEN 80
        WHEN NEW.`key` IS NOT NULL THEN CRC32(NEW.`key`) % 64
        WHEN NEW.priority = 0 THEN CRC32(NEW.id) % 64
        WHEN NEW.priority > 0 THEN 64 + CRC32(NEW.id) % 8
        ELSE 72 + CRC32(NEW.id) % 8
    END;
END;

-- Moves one scheduled message from lane 80 to outbox_waiting.
DROP PROCEDURE IF EXISTS outbox_file;
CREATE PROCEDURE outbox_file(IN p_seq BIGINT)
MODIFIES SQL DATA
BEGIN
    INSERT INTO outbox_waiting (
        lane, priority, max_attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, state,
        topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, history, payload)
    SELECT
        CASE
            WHEN `key` IS NOT NULL THEN CRC32(`key`) % 64
            WHEN priority = 0 THEN CRC32(id) % 64
            WHEN priority > 0 THEN 64 + CRC32(id) % 8
            ELSE 72 + CRC32(id) % 8
        END,
        priority, max_attempts, seq, available_at, created_at, id, schema_version, available_at, expires_at,
        'scheduled', topic, CAST(`key` AS BINARY), content_type, headers, aggregate_type, aggregate_id,
        idempotency_key, '[]', payload
    FROM outbox_message WHERE lane = 80 AND seq = p_seq
    -- The same message is already there: that row stays as it is.
    ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq;
    DELETE FROM outbox_message WHERE lane = 80 AND seq = p_seq;
END;

-- Emits one message. p_later: whether the producer scheduled it. A short delay may be over when the message gets here; it
-- still goes through lane 80.
DROP PROCEDURE IF EXISTS outbox_emit_at;
CREATE PROCEDURE outbox_emit_at(
    IN p_topic VARCHAR(1024) CHARACTER SET utf8mb4, IN p_payload LONGBLOB,
    IN p_id CHAR(36) CHARACTER SET ascii, IN p_content_type VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_headers LONGTEXT CHARACTER SET utf8mb4, IN p_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_aggregate_type VARCHAR(1024) CHARACTER SET utf8mb4, IN p_aggregate_id VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_schema_version INT, IN p_idempotency_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_available_at DATETIME(6), IN p_expires_at DATETIME(6), IN p_priority SMALLINT, IN p_max_attempts SMALLINT,
    IN p_later BOOLEAN
)
MODIFIES SQL DATA
BEGIN
    DECLARE v_holder CHAR(36) CHARACTER SET ascii DEFAULT p_id;
    DECLARE v_stored BOOLEAN DEFAULT false;
    DECLARE v_later BOOLEAN DEFAULT p_available_at IS NOT NULL
        AND (coalesce(p_later, false) OR p_available_at > UTC_TIMESTAMP(6));
    IF v_holder IS NULL THEN
        CALL outbox_uuid_v7(v_holder);
        SET p_id = v_holder;
    END IF;
    IF p_idempotency_key IS NOT NULL THEN
        CALL outbox_dedup_take(
            CAST(p_topic AS BINARY), CAST(p_idempotency_key AS BINARY), p_id, v_holder, v_stored);
    END IF;
    IF v_holder = p_id AND NOT v_stored THEN
        INSERT INTO outbox_message (
            lane, id, topic, payload, content_type, headers, `key`, aggregate_type, aggregate_id, schema_version,
            idempotency_key, available_at, expires_at, priority, max_attempts)
        VALUES (
            IF(v_later, 80, 0), p_id, p_topic, p_payload, p_content_type, p_headers, p_key, p_aggregate_type,
            p_aggregate_id, p_schema_version, p_idempotency_key, p_available_at, p_expires_at, coalesce(p_priority, 0),
            p_max_attempts);
        IF v_later THEN
            CALL outbox_file(LAST_INSERT_ID());
        END IF;
    END IF;
    SELECT v_holder AS id;
END;

-- Emits one message and returns a row with its id, or the id of the first message if the idempotency key is taken.
-- The caller needs only EXECUTE on it. NULL means "not set"; available_at and expires_at are in UTC.
DROP PROCEDURE IF EXISTS outbox_emit;
CREATE PROCEDURE outbox_emit(
    IN p_topic VARCHAR(1024) CHARACTER SET utf8mb4, IN p_payload LONGBLOB,
    IN p_id CHAR(36) CHARACTER SET ascii, IN p_content_type VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_headers LONGTEXT CHARACTER SET utf8mb4, IN p_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_aggregate_type VARCHAR(1024) CHARACTER SET utf8mb4, IN p_aggregate_id VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_schema_version INT, IN p_idempotency_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_available_at DATETIME(6), IN p_expires_at DATETIME(6), IN p_priority SMALLINT, IN p_max_attempts SMALLINT
)
MODIFIES SQL DATA
BEGIN
    CALL outbox_emit_at(
        p_topic, p_payload, p_id, p_content_type, p_headers, p_key, p_aggregate_type, p_aggregate_id, p_schema_version,
        p_idempotency_key, p_available_at, p_expires_at, p_priority, p_max_attempts, NULL);
END;

-- Records that a consumer handles a message. Returns a row with its id the first time, and no row later. It waits for a
-- concurrent transaction that handles the same message; if that rolls back, this one is the first.
DROP PROCEDURE IF EXISTS outbox_inbox_once;
CREATE PROCEDURE outbox_inbox_once(
    IN p_message_id CHAR(36) CHARACTER SET ascii, IN p_consumer VARCHAR(255) CHARACTER SET utf8mb4
)
MODIFIES SQL DATA
BEGIN
    DECLARE v_seen BOOLEAN DEFAULT false;
    DECLARE CONTINUE HANDLER FOR 1062 SET v_seen = true;
    INSERT INTO outbox_inbox (message_id, consumer) VALUES (p_message_id, CAST(p_consumer AS BINARY));
    IF NOT v_seen THEN
        SELECT p_message_id AS id;
    END IF;
END;

-- Every delivery, and every message that is not routed yet, with the status that operators see.
CREATE OR REPLACE VIEW outbox_all AS
SELECT IF(lane = 80, 'scheduled', 'pending') AS status, lane, seq, id, topic, CAST(`key` AS BINARY) AS `key`, CAST('' AS BINARY) AS sink,
    aggregate_type, aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority,
    max_attempts, 0 AS attempts, NULL AS last_error, created_at, available_at, expires_at,
    IF(lane = 80, available_at, NULL) AS due_at, IF(lane = 80, 'scheduled', NULL) AS detail, NULL AS ended_at,
    NULL AS history
FROM outbox_message WHERE lane <= 80
UNION ALL
SELECT CASE
        WHEN state IN ('scheduled', 'deferred') THEN state
        WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
        WHEN attempts = 0 THEN 'pending'
        ELSE 'retry'
    END, lane, seq, id, topic, `key`, sink, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL, history
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, `key`, sink, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at, history
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, id, topic, `key`, CAST(s.sink AS BINARY), aggregate_type, aggregate_id, schema_version,
    idempotency_key, content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at,
    expires_at, NULL, NULL, delivered_at, coalesce(history, '[]')
FROM outbox_delivered AS d
JOIN JSON_TABLE(d.sinks, '$[*]' COLUMNS (sink VARCHAR(255) CHARACTER SET utf8mb4 PATH '$')) AS s;
