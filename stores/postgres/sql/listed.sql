-- The rows of each table that {looked} selects, as a list has them: ready, waiting, dead and delivered, which have a line per sink.
SELECT 'pending'::text AS status, t.lane, t.seq, {t.plain}, ''::text AS sink, 0 AS attempts, NULL::text AS last_error,
    NULL::timestamptz AS due_at, NULL::text AS detail, NULL::timestamptz AS ended_at
FROM outbox_message AS t
{looked}
;
SELECT CASE
        WHEN t.state IN ('scheduled', 'deferred') THEN t.state
        WHEN t.state = 'blocked' AND t.due_at IS NULL THEN 'blocked'
        WHEN t.attempts = 0 THEN 'pending'
        ELSE 'retry'
    END AS status, t.lane, t.seq, {t.plain}, t.sink, t.attempts, t.last_error, t.due_at, t.state AS detail,
    NULL::timestamptz AS ended_at
FROM outbox_waiting AS t
{looked}
;
SELECT 'dead'::text AS status, t.lane, t.seq, {t.plain}, t.sink, t.attempts, t.last_error, NULL::timestamptz AS due_at,
    t.reason AS detail, t.dead_at AS ended_at
FROM outbox_dead AS t
{looked}
;
SELECT 'delivered'::text AS status, t.lane, t.seq, {t.plain}, s.sink AS sink, t.attempts, NULL::text AS last_error,
    NULL::timestamptz AS due_at, NULL::text AS detail, t.delivered_at AS ended_at
FROM (
SELECT t.* FROM outbox_delivered AS t
{looked}
) AS t CROSS JOIN LATERAL jsonb_array_elements_text(t.sinks) AS s (sink)
