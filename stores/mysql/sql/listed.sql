-- The rows of each table that {looked} selects, as a list has them: ready, waiting, dead and delivered, which have a line per sink.
SELECT IF(t.lane = 80, 'scheduled', 'pending') AS status, t.lane, t.seq, {t.plain but key},
    CAST(t.`key` AS BINARY) AS `key`, CAST('' AS BINARY) AS sink, 0 AS attempts, NULL AS last_error,
    IF(t.lane = 80, t.available_at, NULL) AS due_at, IF(t.lane = 80, 'scheduled', NULL) AS detail, NULL AS ended_at
FROM outbox_message AS t
{looked}
;
SELECT CASE
        WHEN t.state IN ('scheduled', 'deferred') THEN t.state
        WHEN t.state = 'blocked' AND t.due_at IS NULL THEN 'blocked'
        WHEN t.attempts = 0 THEN 'pending'
        ELSE 'retry'
    END AS status, t.lane, t.seq, {t.plain}, t.sink, t.attempts, t.last_error, t.due_at, t.state AS detail,
    NULL AS ended_at
FROM outbox_waiting AS t
{looked}
;
SELECT 'dead' AS status, t.lane, t.seq, {t.plain}, t.sink, t.attempts, t.last_error, NULL AS due_at,
    t.reason AS detail, t.dead_at AS ended_at
FROM outbox_dead AS t
{looked}
;
SELECT 'delivered' AS status, t.lane, t.seq, {t.plain}, CAST(s.sink AS BINARY) AS sink, t.attempts, NULL AS last_error,
    NULL AS due_at, NULL AS detail, t.delivered_at AS ended_at
FROM (
SELECT t.* FROM outbox_delivered AS t
{looked}
) AS t JOIN JSON_TABLE(t.sinks, '$[*]' COLUMNS (sink VARCHAR(255) CHARACTER SET utf8mb4 PATH '$')) AS s
