-- The first number of a table at or after ?1: ready, waiting, dead, delivered. For waiting and dead rows each lane is asked,
-- because their primary keys start with it.
SELECT {extreme}(t.seq) FROM outbox_message AS t WHERE t.seq {beyond} ?1
;
SELECT {extreme}((
    SELECT t.seq FROM outbox_waiting AS t WHERE t.lane = l.lane AND t.seq {beyond} ?1 ORDER BY t.seq {direction} LIMIT 1
)) FROM outbox_lane AS l
;
SELECT {extreme}((
    SELECT t.seq FROM outbox_dead AS t WHERE t.lane = l.lane AND t.seq {beyond} ?1 ORDER BY t.seq {direction} LIMIT 1
)) FROM outbox_lane AS l
;
SELECT {extreme}(t.seq) FROM outbox_delivered AS t WHERE t.seq {beyond} ?1
