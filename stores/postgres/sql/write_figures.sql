-- $1 owner, $2 sinks, $3 the figures of each, as JSON. A relay that is not registered writes nothing.
INSERT INTO outbox_figure (owner, sink, written_at, figures)
SELECT r.owner, s.sink, clock_timestamp(), s.figures
FROM outbox_relay AS r CROSS JOIN unnest($2, $3) AS s (sink, figures) WHERE r.owner = $1
ON CONFLICT (owner, sink) DO UPDATE SET written_at = excluded.written_at, figures = excluded.figures
