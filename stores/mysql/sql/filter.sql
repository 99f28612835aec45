-- The filter as a condition on the rows of a, put in where a statement says so. NULL where it says nothing: ids as a JSON
-- array, topic as a LIKE pattern, created from and until in microseconds. The status every statement knows by itself.
-- Texts are compared by their bytes: collations take 'a' and 'a ' for equal, but in LIKE and INSTR.
    (:ids IS NULL OR a.id IN (SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) PATH '$')) AS j))
    AND (:topic IS NULL OR a.topic LIKE :topic)
    AND (:key IS NULL OR CAST(a.`key` AS BINARY) = CAST(:key AS BINARY))
    AND (:aggregate_type IS NULL OR CAST(a.aggregate_type AS BINARY) = CAST(:aggregate_type AS BINARY))
    AND (:aggregate_id IS NULL OR CAST(a.aggregate_id AS BINARY) = CAST(:aggregate_id AS BINARY))
    AND (:idempotency_key IS NULL OR CAST(a.idempotency_key AS BINARY) = CAST(:idempotency_key AS BINARY))
    AND (:leg IS NULL OR a.leg = CAST(:leg AS BINARY))
    AND (:error IS NULL OR INSTR(a.last_error, :error) > 0)
    AND (:payload IS NULL OR INSTR(a.payload, CAST(:payload AS BINARY)) > 0)
    AND (:created_from IS NULL
        OR a.created_at >= TIMESTAMPADD(MICROSECOND, :created_from, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:created_until IS NULL
        OR a.created_at < TIMESTAMPADD(MICROSECOND, :created_until, TIMESTAMP'1970-01-01 00:00:00.000000'))
