-- One message with an idempotency key or a schedule: returns the id that holds the key. Parameters as in emit.sql, but
-- topic and payload come before the id, and whether there is a delay comes last.
CALL outbox_emit_at(
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    coalesce(
        TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(?, 253370764800000000), 0), TIMESTAMP'1970-01-01 00:00:00.000000'),
        TIMESTAMPADD(MICROSECOND, LEAST(?, 31536000000000000), UTC_TIMESTAMP(6))),
    TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(?, 253370764800000000), 0), TIMESTAMP'1970-01-01 00:00:00.000000'), ?, ?, ?)
