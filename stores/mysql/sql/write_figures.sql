-- Writes one row of a relay's figures. One that is not registered is refused by the foreign key.
INSERT INTO outbox_figure (owner, sink, written_at, figures) VALUES (:owner, :sink, UTC_TIMESTAMP(6), :figures)
ON DUPLICATE KEY UPDATE written_at = VALUES(written_at), figures = VALUES(figures)
