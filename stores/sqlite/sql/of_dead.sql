-- What only dead letters have, as a condition: ?15 the reason, ?16 and ?17 died from and until.
    (?15 IS NULL OR (status = 'dead' AND detail = ?15))
    AND (?16 IS NULL OR (status = 'dead' AND ended_at >= ?16))
    AND (?17 IS NULL OR (status = 'dead' AND ended_at < ?17))
