-- Writes one row of a relay's figures, if the relay is registered. Parameters: owner, sink, figures as JSON.
INSERT INTO outbox_figure (owner, sink, written_at, figures)
SELECT owner, ?2, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), ?3
FROM outbox_relay WHERE owner = ?1
ON CONFLICT (owner, sink) DO UPDATE SET written_at = excluded.written_at, figures = excluded.figures
