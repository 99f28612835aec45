-- The filter as a condition on the rows of a, inserted into other statements. NULL means "any": ids as a JSON
-- array, topic, key and aggregate as LIKE patterns, created from and until in microseconds, values in the payload as JSON: paths
-- and hexadecimal values. Every statement checks the status itself, and what only dead letters have.
-- Texts are compared by their bytes: collations treat 'a' and 'a ' as equal, except in LIKE and INSTR.
    (:ids IS NULL OR a.id IN (SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) PATH '$')) AS j))
    AND (:topic IS NULL OR a.topic LIKE :topic)
    AND (:key IS NULL OR CAST(a.`key` AS BINARY) LIKE CAST(:key AS BINARY))
    AND (:aggregate_type IS NULL OR CAST(a.aggregate_type AS BINARY) LIKE CAST(:aggregate_type AS BINARY))
    AND (:aggregate_id IS NULL OR CAST(a.aggregate_id AS BINARY) LIKE CAST(:aggregate_id AS BINARY))
    AND (:idempotency_key IS NULL OR CAST(a.idempotency_key AS BINARY) = CAST(:idempotency_key AS BINARY))
    AND (:sink IS NULL OR a.sink = CAST(:sink AS BINARY))
    AND (:error IS NULL OR INSTR(a.last_error, :error) > 0)
    AND (:payload IS NULL OR INSTR(a.payload, CAST(:payload AS BINARY)) > 0)
    AND (:created_from IS NULL
        OR a.created_at >= TIMESTAMPADD(MICROSECOND, :created_from, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:created_until IS NULL
        OR a.created_at < TIMESTAMPADD(MICROSECOND, :created_until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:search IS NULL OR LEFT(LOWER(a.id), CHAR_LENGTH(:search)) = LOWER(:search)
        OR INSTR(CONCAT_WS(CHAR(1), CAST(a.topic AS BINARY), a.`key`, CAST(a.aggregate_type AS BINARY),
            CAST(a.aggregate_id AS BINARY), CAST(a.idempotency_key AS BINARY), CAST(a.last_error AS BINARY)),
            CAST(:search AS BINARY)) > 0)
    AND (:payload_paths IS NULL OR IF(JSON_VALID(CONVERT(a.payload USING utf8mb4)), NOT EXISTS (
        SELECT 1 FROM JSON_TABLE(:payload_paths, '$[*]' COLUMNS (
            path VARCHAR(2048) PATH '$.path', wanted VARCHAR(8192) CHARACTER SET ascii PATH '$.value')) AS j
        WHERE NOT COALESCE(
            JSON_TYPE(JSON_EXTRACT(CONVERT(a.payload USING utf8mb4), j.path)) NOT IN ('OBJECT', 'ARRAY')
            AND CAST(JSON_UNQUOTE(JSON_EXTRACT(CONVERT(a.payload USING utf8mb4), j.path)) AS BINARY)
                = UNHEX(j.wanted), FALSE)), FALSE))
