-- The outbox. Every state of a message is a table, so that the hot table stays small and only gets inserts and deletes.
-- Names start with `outbox_`; `sendoff migrate` replaces that with the configured schema and prefix.

-- The search path of a caller never decides what these functions call. Names in a RETURN or BEGIN ATOMIC body are resolved
-- when the function is created. The other functions name their schema (it replaces `@` at the end), and either set a search
-- path without user schemas or use fully qualified names.
SELECT set_config('check_function_bodies', 'off', false);

-- A UUID of version 7, for producers that omit the id. Names in a RETURN body are resolved when the function is created:
-- the search path of a caller does not matter.
CREATE FUNCTION outbox_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE
RETURN (
    substr(to_hex(281474976710656 + (date_part('epoch', clock_timestamp()) * 1000)::bigint), 2)
    || '7' || substr(gen_random_uuid()::text, 16)
)::uuid;

-- Lane of a message: 0 to 63 by its key. Without a key, 32 consecutive numbers share a lane, so that the rows of a relay are
-- close together. Keyless messages with a priority have separate lanes, by their id, so that urgent ones overtake
-- a backlog (64 to 71) and low-priority ones never delay it (72 to 79).
-- Only this function computes the lane, so producers in all languages agree.
CREATE FUNCTION outbox_lane_of(key text, seq bigint, id uuid, priority smallint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (CASE
    WHEN key IS NOT NULL THEN hashtextextended(key, 0) & 63
    WHEN priority = 0 THEN seq >> 5 & 63
    WHEN priority > 0 THEN 64 + (uuid_hash_extended(id, 0) & 7)
    ELSE 72 + (uuid_hash_extended(id, 0) & 7)
END)::smallint;

-- Maximum bytes of a payload without reading the settings; max_payload_bytes there may allow more.
CREATE FUNCTION outbox_payload_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 16777216;

-- Maximum bytes of all headers together, written as JSON, and maximum number of headers.
CREATE FUNCTION outbox_headers_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 65536;
CREATE FUNCTION outbox_header_count_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 256;

-- Maximum bytes of every other text: the same as in the library, and few enough for the indexes of all tables that a message
-- may be moved to.
CREATE FUNCTION outbox_text_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1024;

-- Ready now. outbox_take_in sets lane and seq and ignores the values in an INSERT. A CHECK that relays read this lane would
-- slow down every INSERT; sql/lane_heads.sql reports rows that the table owner writes to another lane, past the trigger.
CREATE TABLE outbox_message (
    lane smallint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint,
    seq bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    id uuid NOT NULL DEFAULT outbox_uuid_v7(),
    schema_version integer,
    available_at timestamptz,
    expires_at timestamptz,
    topic text NOT NULL,
    key text,
    content_type text,               -- NULL is application/json
    headers jsonb,                   -- an object of strings
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    payload bytea NOT NULL,
    PRIMARY KEY (lane, seq)
) WITH (
    -- The table is a queue: dead tuples must be vacuumed soon, whatever its size.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 200000,
    autovacuum_vacuum_cost_delay = 0
);
-- Look-ups by id are rare: a btree would slow down every insert.
CREATE INDEX ix_outbox_message_id ON outbox_message USING brin (id uuid_minmax_multi_ops) WITH (pages_per_range = 32);

-- CACHE 1 is required: readers rely on numbers being assigned in order.
CREATE SEQUENCE outbox_message_seq_seq CACHE 1 OWNED BY outbox_message.seq;

-- Scheduled, in retry, blocked behind the failed head of its key, or deferred (sink down or paused). One row per delivery:
-- sink is '' until the message is routed. seq is the number that the message got when it was emitted. Numbers
-- repeat after a failover or a restored backup: a row belongs to a message only if the id matches, too.
CREATE TABLE outbox_waiting (
    lane smallint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint,
    attempts integer NOT NULL DEFAULT 0,
    seq bigint NOT NULL,
    due_at timestamptz,              -- NULL: blocked, until the head of its key is gone
    waiting_since timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    id uuid NOT NULL,
    schema_version integer,
    available_at timestamptz,
    expires_at timestamptz,
    sink text NOT NULL DEFAULT '',
    state text NOT NULL,
    topic text NOT NULL,
    key text,
    content_type text,
    headers jsonb,
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    last_error text,
    history jsonb NOT NULL DEFAULT '[]',
    payload bytea NOT NULL,
    PRIMARY KEY (lane, seq, sink, id),
    -- One constraint, because each one is planned again in every execution. Relays read no other lanes.
    CHECK (
        lane BETWEEN 0 AND 79 AND seq > 0 AND state IN ('scheduled', 'retry', 'blocked', 'deferred', 'parked')
        AND octet_length(key) <= 1024)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ix_outbox_waiting_due ON outbox_waiting (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX ix_outbox_waiting_key ON outbox_waiting (lane, key, sink, seq) WHERE key IS NOT NULL;
CREATE INDEX ix_outbox_waiting_id ON outbox_waiting (id);

-- Dead letters (attempts used up, permanent failure, expired, unroutable or unreadable): the message, the reason, the attempts.
-- blocks: the followers of its key wait until an operator retries, discards or releases it.
CREATE TABLE outbox_dead (
    lane smallint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint,
    attempts integer NOT NULL DEFAULT 0,
    seq bigint NOT NULL,
    dead_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    id uuid NOT NULL,
    schema_version integer,
    blocks boolean NOT NULL DEFAULT false,
    available_at timestamptz,
    expires_at timestamptz,
    sink text NOT NULL DEFAULT '',
    reason text NOT NULL,
    topic text NOT NULL,
    key text,
    content_type text,
    headers jsonb,
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    last_error text,
    history jsonb NOT NULL DEFAULT '[]',
    payload bytea NOT NULL,
    PRIMARY KEY (lane, seq, sink, id),
    CHECK (
        lane BETWEEN 0 AND 79 AND seq > 0
        AND reason IN ('exhausted', 'permanent', 'expired', 'unroutable', 'unreadable', 'crashed'))
);
CREATE INDEX ix_outbox_dead_at ON outbox_dead (dead_at, seq);
CREATE INDEX ix_outbox_dead_id ON outbox_dead (id);
CREATE INDEX ix_outbox_dead_blocks ON outbox_dead (lane, key, sink) WHERE blocks;

-- Delivered messages, only while a retention is configured: one row for the sinks that confirmed a message together. One
-- partition per day, so that cleaning up drops a partition.
CREATE TABLE outbox_delivered (
    delivered_at timestamptz NOT NULL DEFAULT now(),
    lane smallint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint,
    attempts integer NOT NULL DEFAULT 0,
    seq bigint NOT NULL,
    created_at timestamptz NOT NULL,
    id uuid NOT NULL,
    schema_version integer,
    available_at timestamptz,
    expires_at timestamptz,
    sinks jsonb NOT NULL DEFAULT '[""]',  -- the names of the sinks that confirmed it then
    topic text NOT NULL,
    key text,
    content_type text,
    headers jsonb,
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    history jsonb,                       -- failed attempts before that; NULL: none
    payload bytea NOT NULL
) PARTITION BY RANGE (delivered_at);
CREATE TABLE outbox_delivered_default PARTITION OF outbox_delivered DEFAULT;
CREATE INDEX ix_outbox_delivered_at ON outbox_delivered (delivered_at, seq);
CREATE INDEX ix_outbox_delivered_seq ON outbox_delivered (seq);
CREATE INDEX ix_outbox_delivered_id ON outbox_delivered (id);

-- Registered relays. A lease is a row here that has not expired; all lanes of its owner depend on it.
CREATE TABLE outbox_relay (
    owner uuid PRIMARY KEY,          -- new at every start of the process
    name text NOT NULL,              -- for operators: host and pid
    version text NOT NULL,           -- of the program
    config text NOT NULL,            -- a hash of its configuration
    routes text NOT NULL,            -- its routes as JSON, for relays with another configuration
    started_at timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL,
    lease bigint NOT NULL            -- its length, in microseconds
) WITH (fillfactor = 10);

-- What relays say about their work, every second or so, for operators: one row per relay, whose sink is '', and one per sink of
-- it. They go with the relay. No decision depends on them.
CREATE TABLE outbox_figure (
    owner uuid NOT NULL REFERENCES outbox_relay ON DELETE CASCADE,
    sink text NOT NULL,
    written_at timestamptz NOT NULL,
    figures text NOT NULL,           -- as JSON
    PRIMARY KEY (owner, sink)
) WITH (fillfactor = 10);

-- Whether a lease is valid. A lease that ends further in the future than its length was granted before the clock stepped
-- back: it must not keep the lanes of a stopped relay for that long. VOLATILE, so that it is inlined.
CREATE FUNCTION outbox_is_lease(p_until timestamptz, p_lease bigint) RETURNS boolean LANGUAGE sql VOLATILE
RETURN p_until > clock_timestamp() AND p_until <= clock_timestamp() + (p_lease + p_lease / 5) * interval '1 microsecond';

-- Which relay works on which lane. epoch counts changes of the owner. crashed_by lists consecutive owners that vanished while
-- they held the lane; an owner that proves to be alive is removed from the list. The quarantine_ columns name the messages that
-- an owner worked on alone after these crashes (lowest and highest number; id and sink if it is one message). quarantine_by:
-- the owner that works on them now. quarantine_crashed_by: owners that vanished while they did. Lists have a space after each owner.
CREATE TABLE outbox_lane (
    lane smallint PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    owner uuid,
    crashed_by text NOT NULL DEFAULT '',
    quarantine_first bigint,
    quarantine_last bigint,
    quarantine_id uuid,
    quarantine_sink text,
    quarantine_by uuid,
    quarantine_crashed_by text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);
INSERT INTO outbox_lane (lane) SELECT generate_series(0, 79);

-- Idempotency keys within their window, and the message that owns each key, which may be deleted already. A producer that does
-- not know whether its commit succeeded may emit the same message (same id) again: it is not written a second time.
CREATE TABLE outbox_dedup (
    id uuid NOT NULL,
    until timestamptz NOT NULL,
    topic text NOT NULL,
    idempotency_key text NOT NULL,
    PRIMARY KEY (topic, idempotency_key)
);
CREATE INDEX ix_outbox_dedup_until ON outbox_dedup (until);

-- Messages that consumers of this database have handled, within a window.
CREATE TABLE outbox_inbox (
    consumer text NOT NULL,
    message_id uuid NOT NULL,
    handled_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, message_id)
);
CREATE INDEX ix_outbox_inbox_at ON outbox_inbox (handled_at);

-- Paused topics and sinks.
CREATE TABLE outbox_control (
    kind text NOT NULL CHECK (kind IN ('topic', 'sink')),
    name text NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT now(),
    paused_by text NOT NULL DEFAULT current_user,
    PRIMARY KEY (kind, name)
);

-- The audit: actions of operators. login is the database user; who is the name that the operator gave. Only outbox_note writes
-- here.
CREATE TABLE outbox_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    last_at timestamptz NOT NULL DEFAULT now(),    -- when a batch of the command last added to the row
    login text NOT NULL DEFAULT session_user,
    who text NOT NULL,
    action text NOT NULL,
    filter jsonb NOT NULL DEFAULT '{}',
    affected bigint NOT NULL
);

-- Settings that the database itself uses.
CREATE TABLE outbox_setting (
    name text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_retention_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- Whether a part of a message is too large. One expression, because it runs for every message. It counts headers only if they
-- are long enough to be too many.
CREATE FUNCTION outbox_is_too_large(
    topic text, payload bytea, content_type text, headers jsonb, key text, aggregate_type text, aggregate_id text,
    idempotency_key text
) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN octet_length(payload) > outbox_payload_limit()
    OR octet_length(topic) > outbox_text_limit()
    OR octet_length(key) > outbox_text_limit()
    OR octet_length(headers::text) > 6 * outbox_header_count_limit()
    OR octet_length(content_type) > outbox_text_limit()
    OR octet_length(aggregate_type) > outbox_text_limit()
    OR octet_length(aggregate_id) > outbox_text_limit()
    OR octet_length(idempotency_key) > outbox_text_limit();

-- Refuses a message that is too large. The error names the column, its size and the limit.
CREATE FUNCTION outbox_refuse_too_large(
    topic text, payload bytea, content_type text, headers jsonb, key text, aggregate_type text, aggregate_id text,
    idempotency_key text
) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_payload bigint := (SELECT value FROM @.outbox_setting WHERE name = 'max_payload_bytes');
    v_what text;
    v_size bigint;
    v_limit bigint;
    v_unit text;
BEGIN
    SELECT what, size, most, unit INTO v_what, v_size, v_limit, v_unit FROM (VALUES
        ('payload', octet_length(payload)::bigint, greatest(v_payload, @.outbox_payload_limit()), 'bytes'),
        ('topic', octet_length(topic), @.outbox_text_limit(), 'bytes'),
        ('key', octet_length(key), @.outbox_text_limit(), 'bytes'),
        ('headers', octet_length(headers::text), @.outbox_headers_limit(), 'bytes of JSON'),
        ('headers', CASE jsonb_typeof(headers) WHEN 'object' THEN (SELECT count(*) FROM jsonb_object_keys(headers)) END,
            @.outbox_header_count_limit(), 'headers'),
        ('content_type', octet_length(content_type), @.outbox_text_limit(), 'bytes'),
        ('aggregate_type', octet_length(aggregate_type), @.outbox_text_limit(), 'bytes'),
        ('aggregate_id', octet_length(aggregate_id), @.outbox_text_limit(), 'bytes'),
        ('idempotency_key', octet_length(idempotency_key), @.outbox_text_limit(), 'bytes')
    ) AS measured (what, size, most, unit)
    WHERE size > most LIMIT 1;
    IF FOUND THEN
        RAISE check_violation USING
            MESSAGE = format('a message exceeds the limit of its %s', v_what),
            DETAIL = format('It has %s %s and the limit is %s.', v_size, v_unit, v_limit),
            HINT = CASE v_what
                WHEN 'payload' THEN
                    'Store it elsewhere and send a reference, or raise max_payload_bytes in outbox_setting.'
                WHEN 'headers' THEN 'Put what is large into the payload.'
                ELSE 'Shorten it, or use a hash of it.' END,
            COLUMN = v_what;
    END IF;
END
$$;

-- Takes an idempotency key for a message. Returns the message that owns the key, or NULL if this message owns it now. A
-- duplicate is found by a SELECT and writes nothing. The INSERT waits for a concurrent transaction that took the same key, so
-- that exactly one of them emits; a separate statement reads the outcome, because it has a newer snapshot.
CREATE FUNCTION outbox_dedup_take(p_topic text, p_idempotency_key text, p_id uuid) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_holder pg_catalog.uuid;
BEGIN
    LOOP
        INSERT INTO @.outbox_dedup (id, until, topic, idempotency_key)
        VALUES (p_id, pg_catalog.now() OPERATOR(pg_catalog.+) (coalesce((
            SELECT s.value::bigint FROM @.outbox_setting AS s WHERE s.name OPERATOR(pg_catalog.=) 'dedup_window_seconds'
        ), 604800) OPERATOR(pg_catalog.*) interval '1 second'), p_topic, p_idempotency_key)
        ON CONFLICT (topic, idempotency_key) DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        SELECT d.id INTO v_holder FROM @.outbox_dedup AS d
        WHERE d.topic OPERATOR(pg_catalog.=) p_topic AND d.idempotency_key OPERATOR(pg_catalog.=) p_idempotency_key
            AND d.until OPERATOR(pg_catalog.>) pg_catalog.now();
        IF FOUND THEN
            RETURN v_holder;
        END IF;
        -- The key has expired: the transaction that deletes it takes it. If a concurrent one is first, the next round finds it.
        DELETE FROM @.outbox_dedup AS d
        WHERE d.topic OPERATOR(pg_catalog.=) p_topic AND d.idempotency_key OPERATOR(pg_catalog.=) p_idempotency_key
            AND d.until OPERATOR(pg_catalog.<=) pg_catalog.now();
    END LOOP;
END
$$;

-- Trigger of every INSERT. It runs with the rights of its owner, so a producer needs only INSERT on outbox_message and can only
-- emit: lane and number are set here. All names are fully qualified, because setting a search path for every message would add
-- a third to the total cost.
--
-- A statement that emits gets its transaction id before its first seq. Readers need that order: once every transaction with an
-- id below X has ended, no seq that was assigned before X can appear any more.
--
-- outbox_emit marks its rows with lane -1: a duplicate is not an error there.
CREATE FUNCTION outbox_take_in() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_holder pg_catalog.uuid;
BEGIN
    IF @.outbox_is_too_large(
        NEW.topic, NEW.payload, NEW.content_type, NEW.headers, NEW.key, NEW.aggregate_type, NEW.aggregate_id,
        NEW.idempotency_key)
    THEN
        PERFORM @.outbox_refuse_too_large(
            NEW.topic, NEW.payload, NEW.content_type, NEW.headers, NEW.key, NEW.aggregate_type, NEW.aggregate_id,
            NEW.idempotency_key);
    END IF;
    IF NEW.idempotency_key IS NOT NULL THEN
        v_holder := @.outbox_dedup_take(NEW.topic, NEW.idempotency_key, NEW.id);
        IF v_holder IS NOT NULL THEN
            IF v_holder OPERATOR(pg_catalog.=) NEW.id OR NEW.lane OPERATOR(pg_catalog.=) -1 THEN
                RETURN NULL;
            END IF;
            RAISE unique_violation USING
                MESSAGE = 'a message with this topic and idempotency key was already emitted',
                DETAIL = pg_catalog.format('The first one is %s.', v_holder),
                HINT = 'Use outbox_emit() to get the first id instead of an error.';
        END IF;
    END IF;
    NEW.seq := CASE WHEN pg_catalog.pg_current_xact_id() IS NOT NULL
        THEN pg_catalog.nextval('@.outbox_message_seq_seq'::pg_catalog.regclass) END;
    NEW.lane := @.outbox_lane_of(NEW.key, NEW.seq, NEW.id, NEW.priority);
    IF NEW.available_at IS NOT NULL AND NEW.available_at OPERATOR(pg_catalog.>) pg_catalog.now() THEN
        INSERT INTO @.outbox_waiting (
            lane, priority, max_attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, state,
            topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
        VALUES (
            NEW.lane, NEW.priority, NEW.max_attempts, NEW.seq, NEW.available_at, NEW.created_at, NEW.id,
            NEW.schema_version, NEW.available_at, NEW.expires_at, 'scheduled', NEW.topic, NEW.key, NEW.content_type,
            NEW.headers, NEW.aggregate_type, NEW.aggregate_id, NEW.idempotency_key, NEW.payload);
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER tr_outbox_take_in BEFORE INSERT ON outbox_message FOR EACH ROW EXECUTE FUNCTION outbox_take_in();

-- Emits one message and returns its id, or the id of the first message if the idempotency key is taken.
CREATE FUNCTION outbox_emit(
    topic text,
    payload bytea,
    id uuid DEFAULT NULL,
    content_type text DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    key text DEFAULT NULL,
    aggregate_type text DEFAULT NULL,
    aggregate_id text DEFAULT NULL,
    schema_version integer DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    available_at timestamptz DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    priority smallint DEFAULT 0,
    max_attempts smallint DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $$
-- Parameters have the names of columns; a name without a qualifier means the parameter.
#variable_conflict use_variable
DECLARE
    v_holder pg_catalog.uuid;
BEGIN
    IF id IS NULL THEN
        id := @.outbox_uuid_v7();
    END IF;
    LOOP
        INSERT INTO @.outbox_message (
            lane, id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version,
            idempotency_key, available_at, expires_at, priority, max_attempts)
        VALUES (
            -1, id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version,
            idempotency_key, available_at, expires_at, priority, max_attempts);
        IF FOUND OR idempotency_key IS NULL THEN
            RETURN id;
        END IF;
        -- A duplicate, or scheduled.
        SELECT d.id INTO v_holder FROM @.outbox_dedup AS d
        WHERE d.topic OPERATOR(pg_catalog.=) topic AND d.idempotency_key OPERATOR(pg_catalog.=) idempotency_key
            AND d.until OPERATOR(pg_catalog.>) pg_catalog.now();
        IF FOUND THEN
            RETURN v_holder;
        END IF;
    END LOOP;
END
$$;

-- The same for a payload that is JSON text.
CREATE FUNCTION outbox_emit_json(
    topic text,
    payload json,
    id uuid DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    key text DEFAULT NULL,
    aggregate_type text DEFAULT NULL,
    aggregate_id text DEFAULT NULL,
    schema_version integer DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    available_at timestamptz DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    priority smallint DEFAULT 0,
    max_attempts smallint DEFAULT NULL
) RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER
RETURN outbox_emit(
    topic, convert_to(payload::text, 'UTF8'), id, NULL, headers, key, aggregate_type, aggregate_id, schema_version,
    idempotency_key, available_at, expires_at, priority, max_attempts);
REVOKE ALL ON FUNCTION outbox_refuse_too_large FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox_dedup_take FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox_take_in FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox_emit FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox_emit_json FROM PUBLIC;

-- Returns those of the lanes that the relay holds with that epoch; none if its lease has expired.
-- The key-share lock on the relay's row conflicts only with evicting that relay and with releasing lanes: a lane that was
-- checked here cannot change its owner before this transaction ends. A separate statement reads the lanes, so that it sees
-- changes made while this one waited for the lock.
-- A client that freezes or vanishes after this must not keep its lanes for longer than its lease: then the server ends a
-- session that is idle in the transaction. Not every wait for a client counts as idle, so an advisory lock shows
-- other relays whose settlement this is (see outbox_end_settlements).
CREATE FUNCTION outbox_check_lanes(p_owner uuid, p_lanes smallint[], p_epochs bigint[]) RETURNS smallint[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_until timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(uuid_hash_extended(p_owner, 0));
    SELECT until INTO v_until FROM @.outbox_relay WHERE owner = p_owner AND @.outbox_is_lease(until, lease) FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    PERFORM set_config(
        'idle_in_transaction_session_timeout',
        greatest(1, (extract(epoch FROM v_until - clock_timestamp()) * 1000)::integer)::text, true);
    RETURN ARRAY(
        SELECT l.lane FROM unnest(p_lanes, p_epochs) AS c (lane, epoch)
        JOIN @.outbox_lane AS l ON l.lane = c.lane AND l.epoch = c.epoch AND l.owner = p_owner);
END
$$;

-- Ends settlements of relays whose lease has expired: their open transactions prevent the eviction of these relays, and the
-- client may never end them. Returns how many it ended. A role may end sessions of the same role only; the timeout of
-- outbox_check_lanes ends the others.
CREATE FUNCTION outbox_end_settlements() RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_pid integer;
    v_ended integer := 0;
BEGIN
    FOR v_pid IN
        SELECT l.pid FROM pg_locks AS l JOIN (
            SELECT uuid_hash_extended(owner, 0) AS number FROM @.outbox_relay WHERE NOT @.outbox_is_lease(until, lease)
        ) AS gone ON l.classid::bigint = gone.number >> 32 & 4294967295 AND l.objid::bigint = gone.number & 4294967295
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.mode = 'ShareLock' AND l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.pid <> pg_backend_pid()
    LOOP
        BEGIN
            v_ended := v_ended + pg_terminate_backend(v_pid)::integer;
        EXCEPTION WHEN insufficient_privilege THEN
            NULL;
        END;
    END LOOP;
    RETURN v_ended;
END
$$;

-- The read of a relay without a backlog: sql/read_ready.sql with a plan that the session keeps, because planning takes longer
-- than reading a few rows. A relay with a backlog does not use it, because this function copies every row once more.
CREATE FUNCTION outbox_read_head(p_lanes smallint[], p_starts bigint[], p_sizes bigint[], p_mark boolean)
RETURNS TABLE (
    lane smallint, seq bigint, id uuid, topic text, payload bytea, content_type text, headers text, key text,
    aggregate_type text, aggregate_id text, schema_version integer, idempotency_key text, priority smallint,
    max_attempts smallint, created_at timestamptz, expires_at timestamptz, expired boolean, xid bigint, locator tid)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_sort = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        NULL::smallint,
        (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM @.outbox_message_seq_seq),
        NULL::uuid, pg_current_snapshot()::text, NULL::bytea, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text,
        NULL::integer, NULL::text, NULL::smallint, NULL::smallint,
        pg_postmaster_start_time(), NULL::timestamptz, false,
        CASE WHEN p_mark THEN pg_current_xact_id()::text::bigint END,
        NULL::tid
    UNION ALL
    SELECT
        m.lane, m.seq, m.id, m.topic, m.payload, m.content_type, m.headers::text, m.key, m.aggregate_type, m.aggregate_id,
        m.schema_version, m.idempotency_key, m.priority, m.max_attempts, m.created_at, m.expires_at,
        coalesce(m.expires_at <= now(), false), NULL, m.ctid
    FROM unnest(p_lanes, p_starts, p_sizes) AS l (lane, floor, size)
    CROSS JOIN LATERAL (
        SELECT o.*, o.ctid FROM @.outbox_message AS o WHERE o.lane = l.lane AND o.seq > l.floor ORDER BY o.seq LIMIT l.size
    ) AS m;
END
$$;

-- Deletes rows by the ctid that the reader saw. Another row may have that ctid by now, so the id is compared, too. With
-- statistics from a moment when the table was nearly empty, the planner would scan the whole index for each row, which takes
-- seconds: so all plans but the TID scan are disabled. It is planned again each time, because only then does the
-- server look up the list of ids by hash.
CREATE FUNCTION outbox_delete_locators(p_ids uuid[], p_locators tid[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_gone bigint;
BEGIN
    EXECUTE 'DELETE FROM @.outbox_message WHERE ctid = ANY ($1) AND id = ANY ($2)' USING p_locators, p_ids;
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END
$$;

-- Settles delivered messages of several lanes in one round trip: p_counts[i] of the rows, in order, belong to p_lanes[i].
-- Returns the lanes that the caller does not hold (any more); their rows are not touched.
-- If a server crash loses the commit, messages are only sent twice: so the commit is asynchronous. The table may have
-- been nearly empty when the plan was made, and be huge now: a sequential scan must not happen.
-- p_locators has the ctid that the reader saw for each row, which saves an index look-up per row. After a rewrite of the table
-- the ctids differ: then the index is used.
CREATE FUNCTION outbox_settle_delivered(
    p_owner uuid, p_lanes smallint[], p_epochs bigint[], p_counts integer[], p_seqs bigint[], p_ids uuid[], p_locators tid[]
) RETURNS smallint[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_held smallint[];
    v_lost smallint[] := '{}';
    v_at integer := 1;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true);
    v_held := @.outbox_check_lanes(p_owner, p_lanes, p_epochs);
    IF cardinality(v_held) = cardinality(p_lanes) THEN
        IF @.outbox_delete_locators(p_ids, p_locators) = cardinality(p_ids) THEN
            RETURN v_lost;
        END IF;
    END IF;
    FOR i IN 1 .. cardinality(p_lanes) LOOP
        IF p_lanes[i] = ANY (v_held) THEN
            DELETE FROM @.outbox_message
            WHERE lane = p_lanes[i] AND seq = ANY (p_seqs[v_at : v_at + p_counts[i] - 1])
                AND id = ANY (p_ids[v_at : v_at + p_counts[i] - 1]);
        ELSE
            v_lost := v_lost || p_lanes[i];
        END IF;
        v_at := v_at + p_counts[i];
    END LOOP;
    RETURN v_lost;
END
$$;

-- Whether a message is blocked at this sink by others of its key: by a failed one, by an earlier one that is blocked, too, or
-- by a dead letter that blocks. Rows without a sink (not routed yet) may go to any sink.
CREATE FUNCTION outbox_is_blocked(p_lane smallint, p_seq bigint, p_key text, p_sink text) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (
    SELECT 1 FROM outbox_waiting
    WHERE lane = p_lane AND key = p_key AND sink IN (p_sink, '') AND seq <> p_seq
        AND (state IN ('retry', 'deferred') OR (state = 'blocked' AND seq < p_seq))
) OR EXISTS (
    SELECT 1 FROM outbox_dead WHERE lane = p_lane AND key = p_key AND sink IN (p_sink, '') AND blocks
);

-- The history of a message with a new entry; the last 20 entries are kept.
CREATE FUNCTION outbox_add_history(p_history jsonb, p_sink text, p_error text) RETURNS jsonb LANGUAGE sql STABLE
RETURN CASE
    WHEN jsonb_typeof(p_history) <> 'array' THEN '[]'::jsonb
    WHEN jsonb_array_length(p_history) >= 20 THEN p_history - 0
    ELSE p_history END
    || jsonb_build_object(
        'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'sink', p_sink, 'error', p_error);

-- How long inbox records are kept.
CREATE FUNCTION outbox_inbox_retention() RETURNS interval LANGUAGE sql STABLE
RETURN coalesce((SELECT value::bigint FROM outbox_setting WHERE name = 'inbox_retention_seconds'), 2592000)
    * interval '1 second';

-- The partitions of delivered messages (one per UTC day), and the end of each day.
CREATE FUNCTION outbox_delivered_days() RETURNS TABLE (name text, day date, ends timestamptz)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname), d.day, (d.day + 1)::timestamp AT TIME ZONE 'UTC'
    FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.relname ~ '_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day
    ) AS d
    WHERE i.inhparent = '@.outbox_delivered'::regclass AND d.day IS NOT NULL
$$;

-- Whether a partition must be created or dropped, or the default partition has rows that are too old.
CREATE FUNCTION outbox_delivered_is_untidy(p_keep interval) RETURNS boolean LANGUAGE sql STABLE
RETURN (SELECT count(*) FROM outbox_delivered_days()
        WHERE day IN ((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1)) < 2
    OR EXISTS (SELECT 1 FROM outbox_delivered_days() WHERE ends <= now() - p_keep)
    OR coalesce((SELECT min(delivered_at) FROM outbox_delivered_default) <= now() - p_keep, false);

-- Creates the partitions of today and tomorrow, drops partitions that are entirely too old, and deletes up to p_limit rows
-- from the default partition (with p_exact: from any partition). Returns the number of deleted rows and whether there may be
-- more. It runs with the rights of its owner, because only the owner of a table may create or drop its partitions.
-- The lock timeout: creating and dropping need an exclusive lock on the table. Behind a long reader they would wait, and
-- every settlement would wait behind them; so they give up soon, and the next call tries again.
CREATE FUNCTION outbox_clean_delivered(p_keep interval, p_limit bigint, p_exact boolean, OUT gone bigint, OUT more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '100ms' SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_table record;
    v_rows bigint;
    v_today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
    gone := 0;
    more := false;
    FOR v_table IN SELECT name FROM @.outbox_delivered_days() WHERE ends <= now() - p_keep ORDER BY day LOOP
        BEGIN
            IF p_exact THEN
                -- Locked before counting, so that behind a long reader the partition is not counted again at every call.
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', v_table.name);
            END IF;
            -- For a large day an estimate is enough, unless the caller wants an exact count.
            EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %s LIMIT $1) AS first', v_table.name)
                INTO v_rows USING CASE WHEN NOT p_exact THEN 100000 END;
            EXECUTE format('DROP TABLE %s', v_table.name);
            gone := gone + v_rows;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            EXIT WHEN p_exact;
            CONTINUE;
        END;
        -- The table stays locked until the end of the transaction: the next day is left to the next call.
        IF p_exact THEN
            more := true;
            RETURN;
        END IF;
    END LOOP;
    -- Creating a partition scans the default partition, so not while that is large. It fails if the default partition has rows
    -- of that day: then they stay there and are deleted row by row when they are old.
    PERFORM 1 FROM @.outbox_delivered_default OFFSET 10000 LIMIT 1;
    IF NOT FOUND AND NOT p_exact THEN
        FOR v_day IN 0 .. 1 LOOP
            CONTINUE WHEN EXISTS (SELECT 1 FROM @.outbox_delivered_days() WHERE day = v_today + v_day)
                OR EXISTS (
                    SELECT 1 FROM @.outbox_delivered_default
                    WHERE delivered_at >= (v_today + v_day)::timestamp AT TIME ZONE 'UTC'
                        AND delivered_at < (v_today + v_day + 1)::timestamp AT TIME ZONE 'UTC');
            BEGIN
                EXECUTE format(
                    'CREATE TABLE @.outbox_delivered_%s PARTITION OF @.outbox_delivered FOR VALUES FROM (%L) TO (%L)',
                    to_char(v_today + v_day, 'YYYYMMDD'),
                    (v_today + v_day)::timestamp AT TIME ZONE 'UTC',
                    (v_today + v_day + 1)::timestamp AT TIME ZONE 'UTC');
            EXCEPTION WHEN check_violation OR lock_not_available OR deadlock_detected OR duplicate_table THEN
                NULL;
            END;
        END LOOP;
    END IF;
    FOR v_table IN
        SELECT '@.outbox_delivered_default' AS name, NULL::date AS day
        UNION ALL
        SELECT name, day FROM @.outbox_delivered_days() WHERE p_exact AND ends - interval '1 day' <= now() - p_keep
        ORDER BY day NULLS FIRST
    LOOP
        EXIT WHEN gone >= p_limit;
        EXECUTE format(
            'DELETE FROM %1$s WHERE ctid = ANY (ARRAY('
            'SELECT ctid FROM %1$s WHERE delivered_at <= $1 ORDER BY delivered_at LIMIT $2 FOR UPDATE SKIP LOCKED))',
            v_table.name) USING now() - p_keep, p_limit - gone;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        gone := gone + v_rows;
    END LOOP;
    more := gone >= p_limit;
END
$$;
REVOKE ALL ON FUNCTION outbox_clean_delivered FROM PUBLIC;

-- Every delivery, and every message that is not routed yet, with the status that operators see.
CREATE VIEW outbox_all AS
SELECT 'pending' AS status, lane, seq, id, topic, key, ''::text AS sink, aggregate_type, aggregate_id, schema_version,
    idempotency_key, content_type, headers, payload, priority, max_attempts, 0 AS attempts, NULL::text AS last_error,
    created_at, available_at, expires_at, NULL::timestamptz AS due_at, NULL::text AS detail, NULL::timestamptz AS ended_at,
    NULL::jsonb AS history
FROM outbox_message
UNION ALL
SELECT CASE
        WHEN state IN ('scheduled', 'deferred') THEN state
        WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
        WHEN attempts = 0 THEN 'pending'
        ELSE 'retry'
    END, lane, seq, id, topic, key, sink, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL, history
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, key, sink, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at, history
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, id, topic, key, s.sink, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at, expires_at, NULL,
    NULL, delivered_at, coalesce(history, '[]')
FROM outbox_delivered CROSS JOIN LATERAL jsonb_array_elements_text(sinks) AS s (sink);

-- Functions for operators. Operators may not change tables: they call these functions, which run with the rights of the owner.
-- Each function makes its change and writes it to the audit, with the filter that it used.

-- Writes down what an operator did, and returns which row that is; or adds to the row of an earlier batch of the same command. Who
-- that is, is the login: a name can be given by everybody. A row that is not theirs, of another command, or of one that ended an hour
-- ago, is not added to.
CREATE FUNCTION outbox_note(p_who text, p_action text, p_filter jsonb, p_affected bigint, p_row bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_row IS NULL THEN
        INSERT INTO @.outbox_audit (login, who, action, filter, affected)
        VALUES (session_user, p_who, p_action, p_filter, p_affected)
        RETURNING id INTO p_row;
        RETURN p_row;
    END IF;
    UPDATE @.outbox_audit SET affected = affected + p_affected, last_at = now()
    WHERE id = p_row AND login = session_user AND who = p_who AND action = p_action AND filter = p_filter
        AND last_at > now() - interval '1 hour';
    IF NOT FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('row %s of the audit is not one that this command may add to', p_row),
            DETAIL = 'It is of another login or another command, or was written more than an hour ago.',
            HINT = 'Run the command again: it gets a row of its own.';
    END IF;
    RETURN p_row;
END
$$;
REVOKE ALL ON FUNCTION outbox_note FROM PUBLIC;

-- A topic, in which * stands for any text, as a LIKE pattern.
CREATE FUNCTION outbox_like(p_topic text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN replace(replace(replace(replace(p_topic, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%');

-- Whether a payload is JSON with these values: a JSON array of {"path": ["customer", "id"], "value": "42"}. A value is a text as
-- it is, or anything else as JSON; a part of a path that is all digits is a position in an array. Not every server can tell
-- whether a text is JSON before it is read: hence the exception.
CREATE FUNCTION outbox_payload_fits(p_payload bytea, p_paths text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_payload jsonb;
    v_wanted record;
    v_path text[];
BEGIN
    BEGIN
        v_payload := convert_from(p_payload, 'UTF8')::jsonb;
    EXCEPTION WHEN OTHERS THEN
        RETURN false;
    END;
    FOR v_wanted IN SELECT w -> 'path' AS path, w ->> 'value' AS value FROM jsonb_array_elements(p_paths::jsonb) AS w LOOP
        v_path := ARRAY(SELECT jsonb_array_elements_text(v_wanted.path));
        IF jsonb_typeof(v_payload #> v_path) IN ('object', 'array')
            OR coalesce(v_payload #>> v_path, CASE WHEN jsonb_typeof(v_payload #> v_path) = 'null' THEN 'null' END)
                IS DISTINCT FROM v_wanted.value
        THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- A filter in the columns that statements compare; NULL where it says nothing. A field that is misspelt must not mean everything.
CREATE FUNCTION outbox_filter(p_filter jsonb)
RETURNS TABLE (
    ids uuid[], status text, topic text, key text, aggregate_type text, aggregate_id text, idempotency_key text, sink text,
    error text, payload bytea, created_from timestamptz, created_until timestamptz, search text, payload_paths text,
    reason text, died_from timestamptz, died_until timestamptz, scheduled boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_known text[] := ARRAY['ids', 'status', 'topic', 'key', 'aggregate_type', 'aggregate_id', 'idempotency_key', 'sink',
        'error', 'payload', 'created_from', 'created_until', 'search', 'payload_paths', 'reason', 'died_from', 'died_until',
        'group', 'scheduled'];
    v_other text := (SELECT string_agg(k, ', ') FROM jsonb_object_keys(p_filter) AS k WHERE k <> ALL (v_known));
BEGIN
    IF v_other IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('a filter has no field %s', v_other),
            HINT = 'Use ' || array_to_string(v_known, ', ') || '.';
    END IF;
    RETURN QUERY SELECT
        CASE WHEN jsonb_array_length(p_filter -> 'ids') > 0
            THEN ARRAY(SELECT jsonb_array_elements_text(p_filter -> 'ids')::uuid) END,
        p_filter ->> 'status', @.outbox_like(p_filter ->> 'topic'), @.outbox_like(p_filter ->> 'key'),
        @.outbox_like(p_filter ->> 'aggregate_type'), @.outbox_like(p_filter ->> 'aggregate_id'), p_filter ->> 'idempotency_key', p_filter ->> 'sink', p_filter ->> 'error',
        convert_to(p_filter ->> 'payload', 'UTF8'),
        @.outbox_time(p_filter -> 'created_from'), @.outbox_time(p_filter -> 'created_until'), p_filter ->> 'search',
        CASE WHEN jsonb_array_length(p_filter -> 'payload_paths') > 0 THEN p_filter ->> 'payload_paths' END,
        p_filter ->> 'reason', @.outbox_time(p_filter -> 'died_from'), @.outbox_time(p_filter -> 'died_until'),
        coalesce((p_filter ->> 'scheduled')::boolean, false);
END
$$;

-- A time as a filter has it, to the microsecond.
CREATE FUNCTION outbox_time(p_time jsonb) RETURNS timestamptz LANGUAGE sql STABLE
RETURN '1970-01-01 00:00:00+00'::timestamptz + (p_time ->> 'secs_since_epoch')::bigint * interval '1 second'
    + (p_time ->> 'nanos_since_epoch')::bigint / 1000 * interval '1 microsecond';

-- Lets go what waited behind rows that have gone: sql/follow_on.sql, which relays run as it is.
CREATE FUNCTION outbox_follow_on(smallint[], text[], text[]) RETURNS SETOF boolean LANGUAGE sql BEGIN ATOMIC
WITH gone AS (
    SELECT lane, key, sink FROM unnest($1, $2, $3) AS k (lane, key, sink) WHERE sink <> ''
    UNION
    SELECT w.lane, w.key, w.sink FROM unnest($1, $2, $3) AS k (lane, key, sink)
    JOIN outbox_waiting AS w ON w.lane = k.lane AND w.key = k.key
    WHERE k.sink = ''
), open AS (
    SELECT lane, key, sink, coalesce((
        SELECT min(b.seq) FROM outbox_waiting AS b
        WHERE b.lane = gone.lane AND b.key = gone.key AND b.sink IN (gone.sink, '') AND b.state IN ('retry', 'blocked', 'deferred')
            AND b.due_at > now()
    ), 9223372036854775807) AS until
    FROM gone
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.lane = gone.lane AND d.key = gone.key AND d.sink IN (gone.sink, '') AND d.blocks)
), next AS (
    SELECT h.lane, h.seq, h.sink, h.id FROM open CROSS JOIN LATERAL (
        SELECT w.lane, w.seq, w.sink, w.id FROM outbox_waiting AS w
        WHERE w.lane = open.lane AND w.key = open.key AND w.sink = open.sink AND w.seq < open.until
            AND w.state = 'blocked' AND w.due_at IS NULL
        ORDER BY w.seq LIMIT 64
    ) AS h
)
UPDATE outbox_waiting AS w SET due_at = now() FROM next
WHERE w.lane = next.lane AND w.seq = next.seq AND w.sink = next.sink AND w.id = next.id
RETURNING true;
END;
REVOKE ALL ON FUNCTION outbox_follow_on FROM PUBLIC;

-- A letter whose delivery is waiting already stays where it is. All of a key are due at the same moment: ties are read in the order of
-- seq. Followers of a letter that blocked wait for it as before, and are let go when it is settled. One that has expired comes back
-- without its date: otherwise it would die again at once. p_until: by when they had died, or NULL.
CREATE FUNCTION outbox_retry_dead(
    p_who text, p_filter jsonb, p_limit bigint, p_until timestamptz DEFAULT NULL, p_row bigint DEFAULT NULL,
    OUT noted bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    f record;
BEGIN
    SELECT * INTO f FROM @.outbox_filter(p_filter);
    WITH chosen AS (
        SELECT a.lane, a.seq, a.sink, a.id FROM @.outbox_dead AS a
        WHERE (f.status IS NULL OR f.status = 'dead') AND (p_until IS NULL OR a.dead_at <= p_until)
            AND (f.reason IS NULL OR a.reason = f.reason)
            AND (f.died_from IS NULL OR a.dead_at >= f.died_from) AND (f.died_until IS NULL OR a.dead_at < f.died_until)
            AND NOT EXISTS (
                SELECT 1 FROM @.outbox_waiting AS w
                WHERE w.lane = a.lane AND w.seq = a.seq AND w.sink = a.sink AND w.id = a.id)
            AND
            (f.ids IS NULL OR a.id = ANY (f.ids))
            AND (f.topic IS NULL OR a.topic LIKE f.topic)
            AND (f.key IS NULL OR a.key LIKE f.key)
            AND (f.aggregate_type IS NULL OR a.aggregate_type LIKE f.aggregate_type)
            AND (f.aggregate_id IS NULL OR a.aggregate_id LIKE f.aggregate_id)
            AND (f.idempotency_key IS NULL OR a.idempotency_key = f.idempotency_key)
            AND (f.sink IS NULL OR a.sink = f.sink)
            AND (f.error IS NULL OR strpos(a.last_error, f.error) > 0)
            AND (f.payload IS NULL OR position(f.payload IN a.payload) > 0)
            AND (f.created_from IS NULL OR a.created_at >= f.created_from)
            AND (f.created_until IS NULL OR a.created_at < f.created_until)
            AND (f.search IS NULL OR starts_with(a.id::text, lower(f.search)) OR strpos(concat_ws(chr(1), a.topic, a.key,
                a.aggregate_type, a.aggregate_id, a.idempotency_key, a.last_error), f.search) > 0)
            AND (f.payload_paths IS NULL OR @.outbox_payload_fits(a.payload, f.payload_paths))
        ORDER BY a.lane, a.seq, a.sink, a.id LIMIT p_limit
    ), gone AS (
        DELETE FROM @.outbox_dead AS d USING chosen AS c
        WHERE d.lane = c.lane AND d.seq = c.seq AND d.sink = c.sink AND d.id = c.id
        RETURNING d.*
    )
    INSERT INTO @.outbox_waiting (
        lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, sink,
        state, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
        payload)
    SELECT
        lane, priority, max_attempts, 0, seq, now(), created_at, id, schema_version, available_at,
        CASE WHEN expires_at > now() THEN expires_at END, sink, 'retry', topic, key, content_type, headers, aggregate_type,
        aggregate_id, idempotency_key, last_error, history, payload
    FROM gone;
    GET DIAGNOSTICS affected = ROW_COUNT;
    noted := @.outbox_note(p_who, 'dead retry', p_filter, affected, p_row);
END
$$;
REVOKE ALL ON FUNCTION outbox_retry_dead FROM PUBLIC;

-- What a relay is holding back at this very moment is not let go here; it finds such rows by itself.
CREATE FUNCTION outbox_discard_dead(
    p_who text, p_filter jsonb, p_limit bigint, p_until timestamptz DEFAULT NULL, p_row bigint DEFAULT NULL,
    OUT noted bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    f record;
    v_lanes smallint[];
    v_keys text[];
    v_deliveries text[];
BEGIN
    SELECT * INTO f FROM @.outbox_filter(p_filter);
    WITH chosen AS (
        SELECT a.lane, a.seq, a.sink, a.id FROM @.outbox_dead AS a
        WHERE (f.status IS NULL OR f.status = 'dead') AND (p_until IS NULL OR a.dead_at <= p_until)
            AND (f.reason IS NULL OR a.reason = f.reason)
            AND (f.died_from IS NULL OR a.dead_at >= f.died_from) AND (f.died_until IS NULL OR a.dead_at < f.died_until) AND
            (f.ids IS NULL OR a.id = ANY (f.ids))
            AND (f.topic IS NULL OR a.topic LIKE f.topic)
            AND (f.key IS NULL OR a.key LIKE f.key)
            AND (f.aggregate_type IS NULL OR a.aggregate_type LIKE f.aggregate_type)
            AND (f.aggregate_id IS NULL OR a.aggregate_id LIKE f.aggregate_id)
            AND (f.idempotency_key IS NULL OR a.idempotency_key = f.idempotency_key)
            AND (f.sink IS NULL OR a.sink = f.sink)
            AND (f.error IS NULL OR strpos(a.last_error, f.error) > 0)
            AND (f.payload IS NULL OR position(f.payload IN a.payload) > 0)
            AND (f.created_from IS NULL OR a.created_at >= f.created_from)
            AND (f.created_until IS NULL OR a.created_at < f.created_until)
            AND (f.search IS NULL OR starts_with(a.id::text, lower(f.search)) OR strpos(concat_ws(chr(1), a.topic, a.key,
                a.aggregate_type, a.aggregate_id, a.idempotency_key, a.last_error), f.search) > 0)
            AND (f.payload_paths IS NULL OR @.outbox_payload_fits(a.payload, f.payload_paths))
        ORDER BY a.lane, a.seq, a.sink, a.id LIMIT p_limit
    ), gone AS (
        DELETE FROM @.outbox_dead AS d USING chosen AS c
        WHERE d.lane = c.lane AND d.seq = c.seq AND d.sink = c.sink AND d.id = c.id
        RETURNING d.lane, d.key, d.sink, d.blocks AND d.key IS NOT NULL AS blocked
    )
    SELECT count(*), array_agg(lane) FILTER (WHERE blocked), array_agg(key) FILTER (WHERE blocked),
        array_agg(sink) FILTER (WHERE blocked)
    INTO affected, v_lanes, v_keys, v_deliveries FROM gone;
    PERFORM @.outbox_follow_on(v_lanes, v_keys, v_deliveries);
    noted := @.outbox_note(p_who, 'dead discard', p_filter, affected, p_row);
END
$$;
REVOKE ALL ON FUNCTION outbox_discard_dead FROM PUBLIC;

-- The dead letters stay, and stand in nobody's way any more. p_sink: NULL for all.
CREATE FUNCTION outbox_release_key(p_who text, p_key text, p_sink text DEFAULT NULL, OUT noted bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    v_lanes smallint[];
    v_keys text[];
    v_deliveries text[];
BEGIN
    WITH released AS (
        UPDATE @.outbox_dead SET blocks = false
        WHERE key = p_key AND blocks AND (p_sink IS NULL OR sink = p_sink)
        RETURNING lane, key, sink
    )
    SELECT count(*), array_agg(lane), array_agg(key), array_agg(sink) INTO affected, v_lanes, v_keys, v_deliveries FROM released;
    PERFORM @.outbox_follow_on(v_lanes, v_keys, v_deliveries);
    noted := @.outbox_note(
        p_who, 'keys release', jsonb_strip_nulls(jsonb_build_object('key', p_key, 'sink', p_sink)), affected, NULL);
END
$$;
REVOKE ALL ON FUNCTION outbox_release_key FROM PUBLIC;

-- Makes waiting messages due. p_reset: as if they had never been tried. p_lane to p_id: behind which place to begin. What is due already
-- is left alone; a held row waits for its turn, whoever asks. Returns how many became due, how many were looked at, and where the
-- last of those is. Which ones is said in sql/to_retry.sql, too, for counting them.
CREATE FUNCTION outbox_retry_waiting(
    p_who text, p_filter jsonb, p_limit bigint, p_reset boolean DEFAULT false, p_lane smallint DEFAULT -1,
    p_seq bigint DEFAULT 0, p_sink text DEFAULT '', p_id uuid DEFAULT '00000000-0000-0000-0000-000000000000',
    p_row bigint DEFAULT NULL, OUT noted bigint, OUT affected bigint, OUT looked_at bigint, OUT last_lane smallint,
    OUT last_seq bigint, OUT last_delivery text, OUT last_id uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    f record;
BEGIN
    SELECT * INTO f FROM @.outbox_filter(p_filter);
    WITH chosen AS (
        SELECT a.lane, a.seq, a.sink, a.id FROM @.outbox_waiting AS a
        WHERE (a.lane, a.seq, a.sink, a.id) > (p_lane, p_seq, p_sink, p_id)
            AND f.reason IS NULL AND f.died_from IS NULL AND f.died_until IS NULL AND
            (f.status IS NULL OR f.status = CASE
                WHEN a.state IN ('scheduled', 'deferred') THEN a.state
                WHEN a.attempts = 0 THEN 'pending'
                ELSE 'retry'
            END)
            AND a.state <> 'blocked' AND (f.scheduled OR a.state <> 'scheduled')
            AND (a.due_at > now() OR (p_reset AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
            AND
            (f.ids IS NULL OR a.id = ANY (f.ids))
            AND (f.topic IS NULL OR a.topic LIKE f.topic)
            AND (f.key IS NULL OR a.key LIKE f.key)
            AND (f.aggregate_type IS NULL OR a.aggregate_type LIKE f.aggregate_type)
            AND (f.aggregate_id IS NULL OR a.aggregate_id LIKE f.aggregate_id)
            AND (f.idempotency_key IS NULL OR a.idempotency_key = f.idempotency_key)
            AND (f.sink IS NULL OR a.sink = f.sink)
            AND (f.error IS NULL OR strpos(a.last_error, f.error) > 0)
            AND (f.payload IS NULL OR position(f.payload IN a.payload) > 0)
            AND (f.created_from IS NULL OR a.created_at >= f.created_from)
            AND (f.created_until IS NULL OR a.created_at < f.created_until)
            AND (f.search IS NULL OR starts_with(a.id::text, lower(f.search)) OR strpos(concat_ws(chr(1), a.topic, a.key,
                a.aggregate_type, a.aggregate_id, a.idempotency_key, a.last_error), f.search) > 0)
            AND (f.payload_paths IS NULL OR @.outbox_payload_fits(a.payload, f.payload_paths))
        ORDER BY a.lane, a.seq, a.sink, a.id LIMIT p_limit
    ), due AS (
        UPDATE @.outbox_waiting AS w SET
            due_at = least(w.due_at, now()),
            attempts = CASE WHEN p_reset THEN 0 ELSE w.attempts END,
            last_error = CASE WHEN p_reset THEN NULL ELSE w.last_error END
        FROM chosen AS c
        WHERE w.lane = c.lane AND w.seq = c.seq AND w.sink = c.sink AND w.id = c.id AND w.state <> 'blocked'
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM chosen), lane, seq, sink, id
    INTO affected, looked_at, last_lane, last_seq, last_delivery, last_id
    FROM chosen ORDER BY lane DESC, seq DESC, sink DESC, id DESC LIMIT 1;
    affected := coalesce(affected, 0);
    looked_at := coalesce(looked_at, 0);
    noted := @.outbox_note(p_who, CASE WHEN p_reset THEN 'retry --reset' ELSE 'retry' END, p_filter, affected, p_row);
END
$$;
REVOKE ALL ON FUNCTION outbox_retry_waiting FROM PUBLIC;

-- A pause that is there stays as it was.
CREATE FUNCTION outbox_pause(p_who text, p_kind text, p_name text, OUT noted bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO @.outbox_control (kind, name, paused_by) VALUES (p_kind, p_name, p_who) ON CONFLICT (kind, name) DO NOTHING;
    GET DIAGNOSTICS affected = ROW_COUNT;
    noted := @.outbox_note(p_who, 'pause', jsonb_build_object(p_kind, p_name), affected, NULL);
END
$$;
REVOKE ALL ON FUNCTION outbox_pause FROM PUBLIC;

-- The topics that a pause may have stopped, as a LIKE pattern. The pause may say more than LIKE can: then all that wait for a pause are
-- looked at again, and those of another pause wait again.
CREATE FUNCTION outbox_paused_topics(p_name text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN translate(p_name, '?{[\', '') = p_name THEN outbox_like(p_name) ELSE '%' END;

-- What waited because its topic was paused is due at once; what waits for a sink is found by the relay when it asks what is paused.
CREATE FUNCTION outbox_resume(p_who text, p_kind text, p_name text, OUT noted bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_topics text := @.outbox_paused_topics(p_name);
BEGIN
    WITH ended AS (
        DELETE FROM @.outbox_control WHERE kind = p_kind AND name = p_name RETURNING kind
    ), woken AS (
        UPDATE @.outbox_waiting SET due_at = now()
        WHERE state = 'deferred' AND last_error = 'the topic is paused' AND due_at > now() AND topic LIKE v_topics
            AND EXISTS (SELECT 1 FROM ended WHERE kind = 'topic')
    )
    SELECT count(*) INTO affected FROM ended;
    noted := @.outbox_note(p_who, 'resume', jsonb_build_object(p_kind, p_name), affected, NULL);
END
$$;
REVOKE ALL ON FUNCTION outbox_resume FROM PUBLIC;

