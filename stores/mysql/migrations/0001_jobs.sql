-- Jobs: rows that the application's own workers claim and complete. They are written in the application's transaction like a
-- message; relays never touch them. Each statement can be run again; the view comes last.
--
-- next_attempt_at of a running job is the end of its lease, and NULL once the job has ended: so one index finds due jobs and
-- abandoned jobs, and nothing else. claim is a random number, new for each claim: no number is used twice, not even after a
-- failover that lost the last claim.
CREATE TABLE IF NOT EXISTS outbox_job (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    claim BIGINT NOT NULL DEFAULT 0,
    next_attempt_at DATETIME(6) DEFAULT (UTC_TIMESTAMP(6)),
    lease_until DATETIME(6),
    leased_at DATETIME(6),               -- when it was last claimed or extended
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    completed_at DATETIME(6),
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT '',
    attempts INT NOT NULL DEFAULT 0,
    schema_version INT,
    priority SMALLINT NOT NULL DEFAULT 0,
    max_attempts SMALLINT,               -- NULL: the setting job_max_attempts
    available_at DATETIME(6),
    expires_at DATETIME(6),
    state VARCHAR(16) NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'running', 'retry', 'completed', 'failed')),
    lease_owner VARBINARY(255),
    topic VARCHAR(1024) NOT NULL,
    `key` VARCHAR(1024),
    content_type VARCHAR(1024),          -- NULL is application/json
    headers JSON,                        -- an object of strings
    aggregate_type VARCHAR(1024),
    aggregate_id VARCHAR(1024),
    idempotency_key VARCHAR(1024),
    last_error TEXT,
    payload LONGBLOB NOT NULL,
    KEY ix_outbox_job_due (next_attempt_at, seq),
    KEY ix_outbox_job_completed (completed_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO outbox_setting (name, value) VALUES ('job_max_attempts', '5');

-- Before a job is written: sets a missing id and its schedule, and takes its idempotency key (a key that a message of the topic
-- has used is taken). The trigger runs with the rights of its definer. A MySQL trigger cannot skip a row: a job that is written
-- a second time is marked as completed.
DROP TRIGGER IF EXISTS outbox_before_job;
CREATE TRIGGER outbox_before_job BEFORE INSERT ON outbox_job FOR EACH ROW
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
    IF NEW.available_at > NEW.next_attempt_at THEN
        SET NEW.next_attempt_at = NEW.available_at;
    END IF;
    IF NEW.idempotency_key IS NOT NULL THEN
        CALL outbox_dedup_take(
            CAST(NEW.topic AS BINARY), CAST(NEW.idempotency_key AS BINARY), NEW.id, v_holder, v_stored);
        IF v_holder <> NEW.id THEN
            SET v_words = CONCAT('the idempotency key was already used by ', v_holder);
            SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062, MESSAGE_TEXT = v_words;
        END IF;
        IF NOT v_stored THEN
            UPDATE outbox_dedup SET is_stored = true
            WHERE topic = CAST(NEW.topic AS BINARY) AND idempotency_key = CAST(NEW.idempotency_key AS BINARY)
                AND NOT is_stored;
            SET v_stored = ROW_COUNT() = 0;
        END IF;
        IF v_stored THEN
            SET NEW.state = 'completed', NEW.completed_at = UTC_TIMESTAMP(6), NEW.next_attempt_at = NULL;
        END IF;
    END IF;
END;

-- Emits one job. p_later has no effect: it is there so that libraries can call this like outbox_emit_at.
DROP PROCEDURE IF EXISTS outbox_emit_job_at;
CREATE PROCEDURE outbox_emit_job_at(
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
    IF v_holder IS NULL THEN
        CALL outbox_uuid_v7(v_holder);
        SET p_id = v_holder;
    END IF;
    IF p_idempotency_key IS NOT NULL THEN
        CALL outbox_dedup_take(
            CAST(p_topic AS BINARY), CAST(p_idempotency_key AS BINARY), p_id, v_holder, v_stored);
    END IF;
    IF v_holder = p_id AND NOT v_stored THEN
        INSERT INTO outbox_job (
            id, topic, payload, content_type, headers, `key`, aggregate_type, aggregate_id, schema_version,
            idempotency_key, available_at, expires_at, priority, max_attempts)
        VALUES (
            p_id, p_topic, p_payload, p_content_type, p_headers, p_key, p_aggregate_type, p_aggregate_id,
            p_schema_version, p_idempotency_key, p_available_at, p_expires_at, coalesce(p_priority, 0), p_max_attempts);
    END IF;
    SELECT v_holder AS id;
END;

-- Emits one job and returns a row with its id, or the id of the first job if the idempotency key is taken.
-- Parameters and rights are those of outbox_emit.
DROP PROCEDURE IF EXISTS outbox_emit_job;
CREATE PROCEDURE outbox_emit_job(
    IN p_topic VARCHAR(1024) CHARACTER SET utf8mb4, IN p_payload LONGBLOB,
    IN p_id CHAR(36) CHARACTER SET ascii, IN p_content_type VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_headers LONGTEXT CHARACTER SET utf8mb4, IN p_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_aggregate_type VARCHAR(1024) CHARACTER SET utf8mb4, IN p_aggregate_id VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_schema_version INT, IN p_idempotency_key VARCHAR(1024) CHARACTER SET utf8mb4,
    IN p_available_at DATETIME(6), IN p_expires_at DATETIME(6), IN p_priority SMALLINT, IN p_max_attempts SMALLINT
)
MODIFIES SQL DATA
BEGIN
    CALL outbox_emit_job_at(
        p_topic, p_payload, p_id, p_content_type, p_headers, p_key, p_aggregate_type, p_aggregate_id, p_schema_version,
        p_idempotency_key, p_available_at, p_expires_at, p_priority, p_max_attempts, NULL);
END;

-- Number of jobs in each state.
CREATE OR REPLACE VIEW outbox_job_count AS SELECT state, count(*) AS jobs FROM outbox_job GROUP BY state;
