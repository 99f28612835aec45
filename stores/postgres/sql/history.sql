-- The history: the cluster, its timeline and the start of the server; and the last assigned number.
SELECT
    (SELECT system_identifier FROM pg_control_system())::text
        || ' ' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
        || ' ' || extract(epoch FROM pg_postmaster_start_time())::text,
    CASE WHEN is_called THEN last_value ELSE last_value - 1 END
FROM outbox_message_seq_seq
