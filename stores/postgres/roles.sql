-- Roles with exactly the rights that each kind of work needs. Run this once after `sendoff migrate`, as the owner of the
-- tables with the right to create roles; it can be run again. Then grant them to the roles that log in:
--
--     GRANT {emitter} TO shop;                 -- the application: can only emit
--     GRANT {consumer} TO billing;             -- an application that handles messages once, with the inbox
--     GRANT {worker} TO fulfilment;            -- an application that works on jobs
--     GRANT {relay_role} TO sendoff;           -- `sendoff relay`
--     GRANT {operator} TO alice;               -- reads, retries, pauses; the audit has every change, under her login
--     GRANT {viewer} TO grafana;               -- reads everything, including payloads
DO $$
DECLARE
    v_role text;
    v_schema text := coalesce(nullif('{schema}', ''), current_schema());
BEGIN
    FOREACH v_role IN ARRAY ARRAY['{emitter}', '{consumer}', '{worker}', '{relay_role}', '{operator}', '{viewer}'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = v_role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_schema, v_role);
    END LOOP;
END
$$;

-- Emitting. Only the columns that a producer sets: the database sets lane, seq and created_at.
GRANT INSERT ({emitted}) ON outbox_message TO {emitter};
GRANT INSERT ({emitted}) ON outbox_job TO {emitter};
GRANT EXECUTE ON FUNCTION outbox_emit, outbox_emit_json, outbox_emit_job, outbox_uuid_v7 TO {emitter};

-- Consuming: records that a message was handled.
GRANT INSERT (consumer, message_id), SELECT (consumer, message_id) ON outbox_inbox TO {consumer};

-- Working on jobs.
GRANT SELECT, UPDATE, DELETE ON outbox_job TO {worker};
GRANT SELECT ON outbox_setting, outbox_migration TO {worker};
GRANT EXECUTE ON FUNCTION outbox_job_limit, outbox_claim_jobs, outbox_complete_jobs TO {worker};

-- Relaying.
GRANT SELECT, DELETE ON outbox_message TO {relay_role};
GRANT SELECT ON SEQUENCE outbox_message_seq_seq TO {relay_role};
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_waiting, outbox_dead, outbox_relay TO {relay_role};
GRANT SELECT, INSERT, UPDATE ON outbox_figure TO {relay_role};
GRANT SELECT, INSERT ON outbox_delivered TO {relay_role};
GRANT SELECT, UPDATE ON outbox_lane TO {relay_role};
GRANT SELECT, DELETE ON outbox_dedup, outbox_inbox TO {relay_role};
GRANT SELECT, UPDATE, DELETE ON outbox_job TO {relay_role};
GRANT SELECT ON outbox_delivered_default TO {relay_role};
GRANT SELECT ON outbox_control, outbox_migration TO {relay_role};
GRANT SELECT, INSERT, UPDATE ON outbox_setting TO {relay_role};
GRANT EXECUTE ON FUNCTION outbox_read_head, outbox_is_lease, outbox_check_lanes, outbox_end_settlements, outbox_settle_delivered, outbox_delete_locators, outbox_is_blocked,
    outbox_add_history, outbox_clean_delivered, outbox_delivered_is_untidy, outbox_delivered_days, outbox_inbox_retention
    TO {relay_role};

-- Operating.
GRANT SELECT ON outbox_all, outbox_message, outbox_waiting, outbox_dead, outbox_delivered, outbox_relay, outbox_lane,
    outbox_dedup, outbox_control, outbox_audit, outbox_setting, outbox_migration, outbox_job TO {operator}, {viewer};
-- `sendoff status` reads the figures of relays, and which of them are alive.
GRANT SELECT ON outbox_figure TO {operator}, {viewer};
GRANT EXECUTE ON FUNCTION outbox_is_lease TO {operator}, {viewer};
GRANT SELECT ON outbox_inbox TO {operator};
-- Operators change data only with functions, and each function writes to the audit. They cannot change any table directly.
GRANT EXECUTE ON FUNCTION outbox_retry_dead, outbox_discard_dead, outbox_release_key, outbox_retry_waiting, outbox_pause, outbox_resume,
    outbox_retry_jobs, outbox_discard_jobs, outbox_reap, outbox_clean_up TO {operator};
