-- $1 a number. The first number of a table at or after it: ready, waiting, dead, delivered. Each lane is asked, because the
-- primary keys start with it. Ready rows that the owner of the table wrote to a lane of no relay are listed, too.
SELECT {extreme}(next.seq) FROM (
    SELECT lane FROM outbox_lane
    UNION ALL
    SELECT DISTINCT lane FROM outbox_message WHERE lane < 0 OR lane > 79
) AS l CROSS JOIN LATERAL (
    SELECT t.seq FROM outbox_message AS t WHERE t.lane = l.lane AND t.seq {beyond} $1 ORDER BY t.seq {direction} LIMIT 1
) AS next
;
SELECT {extreme}(next.seq) FROM outbox_lane AS l CROSS JOIN LATERAL (
    SELECT t.seq FROM outbox_waiting AS t WHERE t.lane = l.lane AND t.seq {beyond} $1 ORDER BY t.seq {direction} LIMIT 1
) AS next
;
SELECT {extreme}(next.seq) FROM outbox_lane AS l CROSS JOIN LATERAL (
    SELECT t.seq FROM outbox_dead AS t WHERE t.lane = l.lane AND t.seq {beyond} $1 ORDER BY t.seq {direction} LIMIT 1
) AS next
;
SELECT {extreme}(t.seq) FROM outbox_delivered AS t WHERE t.seq {beyond} $1
