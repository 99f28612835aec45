-- What only dead letters have, as a condition on the rows of a: $15 the reason, $16 and $17 died from and until.
    ($15::text IS NULL OR (a.status = 'dead' AND a.detail = $15))
    AND ($16::timestamptz IS NULL OR (a.status = 'dead' AND a.ended_at >= $16))
    AND ($17::timestamptz IS NULL OR (a.status = 'dead' AND a.ended_at < $17))
