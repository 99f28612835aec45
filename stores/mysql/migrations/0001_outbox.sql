-- The outbox. Every state of a message is a table, so that the hot one stays small and is only ever appended to and
-- deleted from. Names start with `outbox_`; `sendoff migrate` puts the configured schema and prefix in their place.
--
-- MySQL commits every CREATE by itself. So each statement here can be run again: a migration that was cut off in the
-- middle is finished by the next one. The view comes last; where it is there, the step is complete.
--
-- Times are in UTC, whatever the zone of the server or of a session is. Ids are UUIDs in text. Text of producers is
-- utf8mb4; what is compared with one another (keys, legs) is kept as the bytes of that text in the other tables, because
-- every collation that MySQL and MariaDB share takes 'a' and 'a ' for equal.

-- Ready now. lane and a missing id are filled in by the trigger below: whatever a producer writes there is not kept.
-- Lanes 80 and 81 are no lanes that a relay leases: see the trigger.
CREATE TABLE IF NOT EXISTS outbox_message (
    lane SMALLINT NOT NULL DEFAULT 0,
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
    KEY ix_outbox_message_seq (seq)      -- InnoDB wants one that begins with the number it gives
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Scheduled, backing off, held behind the failed head of its key, or waiting for a sink that is down. One row a leg:
-- leg is the sink it waits for, '' when it has not been routed yet. seq is the one it got when it was emitted.
CREATE TABLE IF NOT EXISTS outbox_waiting (
    lane SMALLINT NOT NULL,
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,
    attempts INT NOT NULL DEFAULT 0,
    seq BIGINT NOT NULL,
    due_at DATETIME(6),                  -- NULL: held, until the head of its key is gone
    waiting_since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL,
    schema_version INT,
    available_at DATETIME(6),
    expires_at DATETIME(6),
    leg VARBINARY(255) NOT NULL DEFAULT '',
    state VARCHAR(16) NOT NULL CHECK (state IN ('scheduled', 'retry', 'held', 'down', 'parked')),
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
    PRIMARY KEY (lane, seq, leg, id),    -- numbers repeat after a failover: two messages may have one
    KEY ix_outbox_waiting_due (due_at, seq),
    KEY ix_outbox_waiting_key (lane, `key`, leg, seq),
    KEY ix_outbox_waiting_id (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Exhausted, permanently failed, expired, unroutable or unreadable: the whole message, why, and what was tried.
-- blocks: the followers of its key wait until an operator retries, discards or releases it.
CREATE TABLE IF NOT EXISTS outbox_dead (
    lane SMALLINT NOT NULL,
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
    leg VARBINARY(255) NOT NULL DEFAULT '',
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
    PRIMARY KEY (lane, seq, leg, id),
    KEY ix_outbox_dead_at (dead_at),
    KEY ix_outbox_dead_id (id),
    KEY ix_outbox_dead_blocks (blocks, lane, `key`, leg)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Delivered messages, only while a retention is configured.
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
    leg VARBINARY(255) NOT NULL DEFAULT '',
    topic VARCHAR(1024) NOT NULL,
    `key` VARBINARY(1024),
    content_type VARCHAR(1024),
    headers JSON,
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    payload LONGBLOB NOT NULL,
    KEY ix_outbox_delivered_at (delivered_at),
    KEY ix_outbox_delivered_id (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Relays that run. A lease is a row here that has not run out; every lane of its owner hangs on it. One that ends further
-- ahead than it is long, by more than a fifth, is none: the server's clock was set back.
CREATE TABLE IF NOT EXISTS outbox_relay (
    owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,  -- made anew at every start of a process
    name VARCHAR(1024) NOT NULL,                                       -- for people: host and pid
    version VARCHAR(255) NOT NULL,                                     -- of the program
    config VARCHAR(64) NOT NULL,                                       -- a hash of its configuration
    routes MEDIUMTEXT NOT NULL,                                        -- as JSON, for relays with another configuration
    started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    until DATETIME(6) NOT NULL,
    lease BIGINT NOT NULL                                              -- its length in microseconds
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Who works on which lane. epoch counts changes of hands. crashed_by lists owners in a row that vanished while they held the
-- lane; one that shows that it lives is taken off. suspect: the messages that an owner was working on and on nothing else,
-- after such crashes (their lowest and highest number; the id and the sink if it is one), suspect_by: the owner that works on
-- them now, suspect_crashed_by: those that vanished while they did. Lists have a comma behind every owner.
CREATE TABLE IF NOT EXISTS outbox_lane (
    lane SMALLINT PRIMARY KEY,
    epoch BIGINT NOT NULL DEFAULT 0,
    owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    crashed_by VARCHAR(740) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    suspect_first BIGINT,
    suspect_last BIGINT,
    suspect_leg VARBINARY(255),
    suspect_id VARBINARY(36),
    suspect_by CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    suspect_crashed_by VARCHAR(740) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO outbox_lane (lane)
WITH RECURSIVE numbers (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM numbers WHERE lane < 79)
SELECT lane FROM numbers;

-- Idempotency keys within their window, whether or not the first message is still here. is_stored: its message was
-- written, so that the very same message, emitted again by a producer that does not know how its commit ended, is not.
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

-- What operators did.
CREATE TABLE IF NOT EXISTS outbox_audit (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    who VARCHAR(1024) NOT NULL,
    action VARCHAR(64) NOT NULL,
    filter JSON NOT NULL,
    affected BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Settings that the database itself acts on.
CREATE TABLE IF NOT EXISTS outbox_setting (
    name VARCHAR(64) PRIMARY KEY,
    value VARCHAR(1024) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_window_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- A UUID of version 7, for producers that leave the id out.
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

-- Refuses a message of which something is larger than may be, and says what. All sizes are bytes, but for the number of
-- headers. Texts may be as long as the library lets them be, which is short enough for the tables and indexes that a message
-- may be moved to. The settings may allow larger payloads.
DROP PROCEDURE IF EXISTS outbox_check_sizes;
CREATE PROCEDURE outbox_check_sizes(
    IN p_payload BIGINT, IN p_topic INT, IN p_key INT, IN p_headers BIGINT, IN p_header_count INT, IN p_content_type INT,
    IN p_aggregate_type INT, IN p_aggregate_id INT, IN p_idempotency_key INT
)
READS SQL DATA
BEGIN
    DECLARE v_payload BIGINT DEFAULT 16777216;
    DECLARE v_words VARCHAR(128);
    IF p_payload > v_payload THEN
        SELECT greatest(v_payload, coalesce(max(CAST(value AS SIGNED)), 0)) INTO v_payload
        FROM outbox_setting WHERE name = 'max_payload_bytes';
    END IF;
    SET v_words = CASE
        WHEN p_payload > v_payload
            THEN CONCAT('payload: ', p_payload, ' bytes; max_payload_bytes in outbox_setting is ', v_payload)
        WHEN p_topic > 1024 THEN CONCAT('topic: ', p_topic, ' bytes; the limit is 1024')
        WHEN p_key > 1024 THEN CONCAT('key: ', p_key, ' bytes; the limit is 1024')
        WHEN p_headers > 65536 THEN CONCAT('headers: ', p_headers, ' bytes; the limit is 65536')
        WHEN p_header_count > 256 THEN CONCAT('headers: there are ', p_header_count, '; the limit is 256')
        WHEN p_content_type > 1024 THEN CONCAT('content_type: ', p_content_type, ' bytes; the limit is 1024')
        WHEN p_aggregate_type > 1024 THEN CONCAT('aggregate_type: ', p_aggregate_type, ' bytes; the limit is 1024')
        WHEN p_aggregate_id > 1024 THEN CONCAT('aggregate_id: ', p_aggregate_id, ' bytes; the limit is 1024')
        WHEN p_idempotency_key > 1024
            THEN CONCAT('idempotency_key: ', p_idempotency_key, ' bytes; the limit is 1024')
    END;
    IF v_words IS NOT NULL THEN
        SET v_words = CONCAT('a message is too large: ', v_words);
        SIGNAL SQLSTATE '22001' SET MYSQL_ERRNO = 1406, MESSAGE_TEXT = v_words;
    END IF;
END;

-- Takes an idempotency key for a message: the id that holds it, the caller's own if it was free, and whether that
-- message was written. A duplicate is mostly found by looking, and writes nothing. The upsert waits for a concurrent
-- transaction that took the same key, so that exactly one of them emits; its outcome is read with a lock, because the
-- caller's transaction may have a snapshot from before it.
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
    -- By SELECT INTO: as a subquery of SET or DEFAULT it would lock what it reads. What this transaction has taken itself
    -- is seen here, too: asking for the lock below would wait for those who wait for this transaction.
    SELECT max(id), max(is_stored) INTO p_holder, p_stored FROM outbox_dedup
    WHERE topic = p_topic AND idempotency_key = p_idempotency_key AND until > UTC_TIMESTAMP(6)
        AND (is_stored OR id = p_id);
    IF p_holder IS NULL THEN
        SELECT coalesce(max(CAST(value AS SIGNED)), 604800) INTO v_window
        FROM outbox_setting WHERE name = 'dedup_window_seconds';
        -- One at a time waits for a transaction that has the key: when that rolls back, several that wait would each keep
        -- the others from inserting, which is a deadlock. The lock is held for this statement only, and does without
        -- where it does not come.
        DO GET_LOCK(v_lock, 5);
        INSERT INTO outbox_dedup (id, until, topic, idempotency_key)
        VALUES (p_id, UTC_TIMESTAMP(6) + INTERVAL v_window SECOND, p_topic, p_idempotency_key)
        ON DUPLICATE KEY UPDATE
            -- In this order: each assignment sees those before it. A key whose message was never written is free, too:
            -- the statement that took it failed, and its transaction was committed all the same.
            id = IF(until <= UTC_TIMESTAMP(6) OR NOT is_stored, VALUES(id), id),
            is_stored = IF(until <= UTC_TIMESTAMP(6), false, is_stored),
            until = IF(id = VALUES(id) AND NOT is_stored, VALUES(until), until);
        SELECT id, is_stored INTO p_holder, p_stored FROM outbox_dedup
        WHERE topic = p_topic AND idempotency_key = p_idempotency_key FOR UPDATE;
        DO RELEASE_LOCK(v_lock);
    END IF;
END;

-- Before a message is written: its size, its lane, its id if the producer left it out, and its idempotency key. It acts with the
-- rights of whoever created it, so a producer needs nothing but INSERT on outbox_message.
--
-- The lane is 0 to 63 by the key, or by the id where there is no key. Keyless messages with a priority have lanes of
-- their own, so that urgent ones overtake a backlog (64 to 71) and idle ones never hold it up (72 to 79). This is the
-- only place that computes it; producers in every language agree because none of them does.
--
-- A trigger of MySQL cannot turn a row away. One that is to come later goes to lane 80, out of which relays move it to
-- outbox_waiting; the very same message written again goes to lane 81, out of which they delete it.
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
        -- Or outbox_emit has found it to be later, a moment ago.
        WHEN NEW.available_at > UTC_TIMESTAMP(6) OR (NEW.available_at IS NOT NULL AND NEW.lane = 80) THEN 80
        WHEN NEW.`key` IS NOT NULL THEN CRC32(NEW.`key`) % 64
        WHEN NEW.priority = 0 THEN CRC32(NEW.id) % 64
        WHEN NEW.priority > 0 THEN 64 + CRC32(NEW.id) % 8
        ELSE 72 + CRC32(NEW.id) % 8
    END;
END;

-- Moves one message out of lane 80 to where it waits for its time.
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
    -- The same message, in the same place: it goes its own way.
    ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq;
    DELETE FROM outbox_message WHERE lane = 80 AND seq = p_seq;
END;

-- Emits one message. p_later: whether it is to come later, as far as its producer knows; a short delay may be over when
-- the message gets here, and it waits for its turn all the same.
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

-- Emits one message and returns, as a row, its id, or the id of the first one where the idempotency key was already
-- used. Whoever calls it needs EXECUTE on it and nothing else. NULL stands for what is not given; available_at and
-- expires_at are in UTC.
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

-- Takes note that a consumer handles a message: returns its id, as a row, the first time, and nothing later. A concurrent
-- transaction that handles the same message is waited for; if it rolls back, this one is the first.
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

-- Every message with the status that operators know.
CREATE OR REPLACE VIEW outbox_all AS
SELECT 'pending' AS status, lane, seq, id, topic, CAST(`key` AS BINARY) AS `key`, CAST('' AS BINARY) AS leg,
    aggregate_type, aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority,
    max_attempts, 0 AS attempts, NULL AS last_error, created_at, available_at, expires_at,
    IF(lane = 80, available_at, NULL) AS due_at, IF(lane = 80, 'scheduled', NULL) AS detail, NULL AS ended_at
FROM outbox_message WHERE lane <= 80
UNION ALL
SELECT CASE WHEN attempts = 0 THEN 'pending' ELSE 'retry' END, lane, seq, id, topic, `key`, leg, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, `key`, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, id, topic, `key`, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at, expires_at, NULL,
    NULL, delivered_at
FROM outbox_delivered;
