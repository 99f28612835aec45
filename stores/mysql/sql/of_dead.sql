-- What only dead letters have, as a condition on the rows of a: the reason, and died from and until in microseconds.
    (:reason IS NULL OR (a.status = 'dead' AND a.detail = :reason))
    AND (:died_from IS NULL OR (a.status = 'dead'
        AND a.ended_at >= TIMESTAMPADD(MICROSECOND, :died_from, TIMESTAMP'1970-01-01 00:00:00.000000')))
    AND (:died_until IS NULL OR (a.status = 'dead'
        AND a.ended_at < TIMESTAMPADD(MICROSECOND, :died_until, TIMESTAMP'1970-01-01 00:00:00.000000')))
