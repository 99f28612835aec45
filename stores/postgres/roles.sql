-- Roles with exactly the rights that each kind of work needs. Run this once after `sendoff migrate`, as the owner of the
-- tables with the right to create roles; running it again does no harm. Then grant them to the roles that log in:
--
--     GRANT {emitter} TO shop;                 -- the application: emits, and can do nothing else here
--     GRANT {consumer} TO billing;             -- an application that handles messages once, with the inbox
--     GRANT {worker} TO fulfilment;            -- an application that works on items
--     GRANT {relay_role} TO sendoff;           -- `sendoff relay`
--     GRANT {operator} TO alice;               -- looks, retries, pauses
--     GRANT {viewer} TO grafana;               -- looks; payloads included
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

-- Emitting. The columns that a producer fills in, and no others: lane, seq and created_at are the database's.
GRANT INSERT (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts
) ON outbox_message TO {emitter};
GRANT INSERT (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts
) ON outbox_item TO {emitter};
GRANT EXECUTE ON FUNCTION outbox_emit, outbox_emit_json, outbox_emit_item, outbox_uuid_v7 TO {emitter};

-- Consuming: notes that a message was handled.
GRANT INSERT (consumer, message_id), SELECT (consumer, message_id) ON outbox_inbox TO {consumer};

-- Working on items.
GRANT SELECT, UPDATE, DELETE ON outbox_item TO {worker};
GRANT SELECT ON outbox_setting, outbox_migration TO {worker};
GRANT EXECUTE ON FUNCTION outbox_item_limit, outbox_claim_items, outbox_complete_items TO {worker};

-- Relaying.
GRANT SELECT, DELETE ON outbox_message TO {relay_role};
GRANT SELECT ON SEQUENCE outbox_message_seq_seq TO {relay_role};
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_waiting, outbox_dead, outbox_relay TO {relay_role};
GRANT SELECT, INSERT ON outbox_delivered TO {relay_role};
GRANT SELECT, UPDATE ON outbox_lane TO {relay_role};
GRANT SELECT, DELETE ON outbox_dedup, outbox_inbox TO {relay_role};
GRANT SELECT, UPDATE, DELETE ON outbox_item TO {relay_role};
GRANT SELECT ON outbox_delivered_default TO {relay_role};
GRANT SELECT ON outbox_control, outbox_migration TO {relay_role};
GRANT SELECT, INSERT, UPDATE ON outbox_setting TO {relay_role};
GRANT EXECUTE ON FUNCTION outbox_read_head, outbox_is_lease, outbox_check_lanes, outbox_end_settlements, outbox_settle_delivered, outbox_delete_spots, outbox_is_held,
    outbox_add_history, outbox_clean_delivered, outbox_delivered_is_untidy, outbox_delivered_days, outbox_inbox_window
    TO {relay_role};

-- Operating.
GRANT SELECT ON outbox_all, outbox_message, outbox_waiting, outbox_dead, outbox_delivered, outbox_relay, outbox_lane,
    outbox_dedup, outbox_control, outbox_audit, outbox_setting, outbox_migration, outbox_item TO {operator}, {viewer};
GRANT INSERT, UPDATE, DELETE ON outbox_waiting, outbox_dead, outbox_control TO {operator};
-- A command in batches adds to the count of its row. Nothing else of the audit can be changed.
GRANT INSERT, UPDATE (affected) ON outbox_audit TO {operator};
GRANT UPDATE, DELETE ON outbox_relay TO {operator};
GRANT UPDATE (owner, epoch, crashed_by, suspect_by, suspect_crashed_by) ON outbox_lane TO {operator};
GRANT UPDATE, DELETE ON outbox_item TO {operator};
GRANT DELETE ON outbox_dedup TO {operator};
GRANT SELECT, DELETE ON outbox_inbox TO {operator};
GRANT EXECUTE ON FUNCTION outbox_clean_delivered, outbox_inbox_window, outbox_is_lease, outbox_end_settlements TO {operator};
