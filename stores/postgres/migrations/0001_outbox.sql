-- The outbox. Every state of a message is a table, so that the hot one stays small and is only ever appended to and
-- deleted from. Names start with `outbox_`; `sendoff migrate` puts the configured schema and prefix in their place.

-- Nobody but the server and these functions has a say in what they call: a body that is RETURN or BEGIN ATOMIC is looked up
-- when it is created; the others name their schema, which is put in place of `@` at the end, and either have a search
-- path without anybody's schema or call everything by its full name.
SELECT set_config('check_function_bodies', 'off', false);

-- A UUID of version 7, for producers that leave the id out. Functions whose body is RETURN are looked up when they are created:
-- no search path of a caller has a say in what they call.
CREATE FUNCTION outbox_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE
RETURN (
    substr(to_hex(281474976710656 + (date_part('epoch', clock_timestamp()) * 1000)::bigint), 2)
    || '7' || substr(gen_random_uuid()::text, 16)
)::uuid;

-- Lane of a message: 0 to 63 by its key. Where there is no key, 32 numbers in a row have one lane, so that the rows of a
-- relay lie together. Keyless messages with a priority have lanes of their own, by their id, so that urgent ones overtake
-- a backlog (64 to 71) and idle ones never hold it up (72 to 79).
-- The only place that computes it; producers in every language agree because none of them does.
CREATE FUNCTION outbox_lane_of(key text, seq bigint, id uuid, priority smallint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (CASE
    WHEN key IS NOT NULL THEN hashtextextended(key, 0) & 63
    WHEN priority = 0 THEN seq >> 5 & 63
    WHEN priority > 0 THEN 64 + (uuid_hash_extended(id, 0) & 7)
    ELSE 72 + (uuid_hash_extended(id, 0) & 7)
END)::smallint;

-- How many bytes a payload may have without a look at the settings, where max_payload_bytes may allow more.
CREATE FUNCTION outbox_payload_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 16777216;

-- How many bytes all headers together may have, written as JSON, and how many there may be.
CREATE FUNCTION outbox_headers_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 65536;
CREATE FUNCTION outbox_header_count_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 256;

-- How many bytes every other text may have: as many as the library lets it, and few enough for the indexes of the tables that
-- a message may be moved to.
CREATE FUNCTION outbox_text_limit() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1024;

-- Ready now. Lane and seq are given by outbox_take_in, whatever an INSERT says.
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
    -- The table is a queue: dead rows must go soon, whatever its size.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 200000,
    autovacuum_vacuum_cost_delay = 0
);
-- A look-up by id needs no btree that every insert would pay for.
CREATE INDEX ix_outbox_message_id ON outbox_message USING brin (id uuid_minmax_multi_ops) WITH (pages_per_range = 32);

-- CACHE 1 is needed: readers rely on it that numbers are handed out in order.
CREATE SEQUENCE outbox_message_seq_seq CACHE 1 OWNED BY outbox_message.seq;

-- Scheduled, backing off, held behind the failed head of its key, or waiting for a sink that is down. One row a leg:
-- leg is the sink it waits for, '' when it has not been routed yet. seq is the one it got when it was emitted. Numbers
-- repeat after a failover or a restored backup: a row is one message's only where the id is the same, too.
CREATE TABLE outbox_waiting (
    lane smallint NOT NULL,
    priority smallint NOT NULL DEFAULT 0,
    max_attempts smallint,
    attempts integer NOT NULL DEFAULT 0,
    seq bigint NOT NULL,
    due_at timestamptz,              -- NULL: held, until the head of its key is gone
    waiting_since timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    id uuid NOT NULL,
    schema_version integer,
    available_at timestamptz,
    expires_at timestamptz,
    leg text NOT NULL DEFAULT '',
    state text NOT NULL CHECK (state IN ('scheduled', 'retry', 'held', 'down', 'parked')),
    topic text NOT NULL,
    key text CHECK (octet_length(key) <= 1024),
    content_type text,
    headers jsonb,
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    last_error text,
    history jsonb NOT NULL DEFAULT '[]',
    payload bytea NOT NULL,
    PRIMARY KEY (lane, seq, leg, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ix_outbox_waiting_due ON outbox_waiting (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX ix_outbox_waiting_key ON outbox_waiting (lane, key, leg, seq) WHERE key IS NOT NULL;
CREATE INDEX ix_outbox_waiting_id ON outbox_waiting (id);

-- Exhausted, permanently failed, expired, unroutable or unreadable: the whole message, why, and what was tried.
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
    leg text NOT NULL DEFAULT '',
    reason text NOT NULL CHECK (reason IN ('exhausted', 'permanent', 'expired', 'unroutable', 'unreadable', 'crashed')),
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
    PRIMARY KEY (lane, seq, leg, id)
);
CREATE INDEX ix_outbox_dead_at ON outbox_dead (dead_at);
CREATE INDEX ix_outbox_dead_id ON outbox_dead (id);
CREATE INDEX ix_outbox_dead_blocks ON outbox_dead (lane, key, leg) WHERE blocks;

-- Delivered messages, only while a retention is configured; a partition a day, so that cleaning up drops one.
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
    leg text NOT NULL DEFAULT '',
    topic text NOT NULL,
    key text,
    content_type text,
    headers jsonb,
    aggregate_type text,
    aggregate_id text,
    idempotency_key text,
    payload bytea NOT NULL
) PARTITION BY RANGE (delivered_at);
CREATE TABLE outbox_delivered_default PARTITION OF outbox_delivered DEFAULT;
CREATE INDEX ix_outbox_delivered_at ON outbox_delivered (delivered_at);
CREATE INDEX ix_outbox_delivered_id ON outbox_delivered (id);

-- Relays that run. A lease is a row here that has not run out; every lane of its owner hangs on it.
CREATE TABLE outbox_relay (
    owner uuid PRIMARY KEY,          -- made anew at every start of a process
    name text NOT NULL,              -- for people: host and pid
    version text NOT NULL,           -- of the program
    config text NOT NULL,            -- a hash of its configuration
    routes text NOT NULL,            -- its routes as JSON, for relays with another configuration
    started_at timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL,
    lease bigint NOT NULL            -- its length, in microseconds
) WITH (fillfactor = 10);

-- Whether a lease holds. One that ends further ahead than it is long was given by a clock that has stepped back since: it
-- must not keep the lanes of a relay that is gone for as long as the step was. Volatile, so that it is inlined.
CREATE FUNCTION outbox_is_lease(p_until timestamptz, p_lease bigint) RETURNS boolean LANGUAGE sql VOLATILE
RETURN p_until > clock_timestamp() AND p_until <= clock_timestamp() + (p_lease + p_lease / 5) * interval '1 microsecond';

-- Who works on which lane. epoch counts changes of hands. crashed_by lists owners in a row that vanished while they held the
-- lane; one that shows that it lives is taken off. suspect: the messages that an owner was working on and on nothing else,
-- after such crashes (their lowest and highest number; the id and the sink if it is one), suspect_by: the owner that works on
-- them now, suspect_crashed_by: those that vanished while they did. Lists have a space behind every owner.
CREATE TABLE outbox_lane (
    lane smallint PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    owner uuid,
    crashed_by text NOT NULL DEFAULT '',
    suspect_first bigint,
    suspect_last bigint,
    suspect_id uuid,
    suspect_leg text,
    suspect_by uuid,
    suspect_crashed_by text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);
INSERT INTO outbox_lane (lane) SELECT generate_series(0, 79);

-- Idempotency keys within their window, whether or not the first message is still here, and the message that has each of
-- them. The very same message, emitted again by a producer that does not know how its commit ended, is not written again.
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

-- What operators did.
CREATE TABLE outbox_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL,
    action text NOT NULL,
    filter jsonb NOT NULL DEFAULT '{}',
    affected bigint NOT NULL
);

-- Settings that the database itself acts on.
CREATE TABLE outbox_setting (
    name text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO outbox_setting (name, value) VALUES
    ('dedup_window_seconds', '604800'),
    ('inbox_window_seconds', '2592000'),
    ('max_payload_bytes', '16777216');

-- Whether something of a message is larger than may be: asked of every message, so it is one expression. Headers of a message
-- that has few of them are not counted.
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

-- Refuses a message that is too large, and says what of it is and by how much.
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

-- Takes an idempotency key for a message. Returns the message that has it, or NULL when this one has it now. A duplicate is
-- found by looking, and writes nothing. An INSERT waits for a concurrent transaction that took the same key, so that exactly
-- one of them emits; its outcome is looked at in a statement of its own, which sees it.
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
        -- Its time is over: whoever removes it takes it. A concurrent one that does so first is found in the next round.
        DELETE FROM @.outbox_dedup AS d
        WHERE d.topic OPERATOR(pg_catalog.=) p_topic AND d.idempotency_key OPERATOR(pg_catalog.=) p_idempotency_key
            AND d.until OPERATOR(pg_catalog.<=) pg_catalog.now();
    END LOOP;
END
$$;

-- Every message comes in here. It acts with its owner's rights, so a producer needs nothing but INSERT on outbox_message, and
-- can do nothing but emit: lane and number are given here, and everything is called by its full name, because a search path
-- that is set for every message would cost a third of the whole.
--
-- A statement that emits has its transaction id before it gets its first seq. Readers need that order: once every
-- transaction with an id below X has ended, no seq can turn up any more that was handed out before X was.
--
-- outbox_emit marks what it inserts by the lane -1: there a duplicate is no error.
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

-- Emits one message and returns its id, or the id of the first one where the idempotency key was already used.
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

-- The same for a payload written as JSON text.
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

-- Of these lanes, those that the relay holds with that epoch; none when its own lease has run out.
-- The key-share lock on the relay's row conflicts with the eviction of that relay and with giving lanes back, and with
-- nothing else: a lane that was checked here cannot change hands before this transaction ends. The lanes are looked at
-- in a statement of their own, so that what happened while the lock was waited for is seen.
-- A client that freezes or vanishes from here on must not keep its lanes for longer than its lease: the server ends a
-- session that is idle in the transaction by then. Not every wait for a client counts as idle, so an advisory lock tells
-- others whose settlement this is (see outbox_end_settlements).
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

-- Ends settlements of relays whose lease is over: their transactions keep these relays from being evicted, and whoever
-- began them may never end them. Returns how many were ended. A role may end the sessions of its own role; those of
-- another one are left to the timeout of outbox_check_lanes.
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

-- What a relay reads that has nothing behind: sql/read_ready.sql with a plan that the session keeps, because planning takes
-- longer than looking at a few rows. A relay with a backlog does without: here every row is copied once more.
CREATE FUNCTION outbox_read_head(p_lanes smallint[], p_starts bigint[], p_sizes bigint[], p_mark boolean)
RETURNS TABLE (
    lane smallint, seq bigint, id uuid, topic text, payload bytea, content_type text, headers text, key text,
    aggregate_type text, aggregate_id text, schema_version integer, idempotency_key text, priority smallint,
    max_attempts smallint, created_at timestamptz, expires_at timestamptz, expired boolean, xid bigint, spot tid)
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

-- Deletes rows where the reader found them. Another row may be in a place by now, so the id decides. With statistics of
-- a moment when the table was nearly empty the planner would rather look for each row in all of the index, which takes
-- seconds: there is no way left for it but by the places. It is planned anew each time, because only then is its list of
-- ids looked up by hash.
CREATE FUNCTION outbox_delete_spots(p_ids uuid[], p_spots tid[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_gone bigint;
BEGIN
    EXECUTE 'DELETE FROM @.outbox_message WHERE ctid = ANY ($1) AND id = ANY ($2)' USING p_spots, p_ids;
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END
$$;

-- Settles delivered messages of several lanes in one round trip: p_counts[i] of the rows, in order, belong to p_lanes[i].
-- Returns the lanes that the caller does not hold (any more); nothing of theirs is touched.
-- Losing the commit in a crash of the server only sends messages twice, so it need not be waited for. The table may have
-- been nearly empty when the plan was made, and be huge now: it must not be scanned as a whole.
-- p_spots says where the reader found each row, which saves a descent of the index for every one of them. A table that was
-- rewritten has its rows elsewhere: then the index is asked.
CREATE FUNCTION outbox_settle_delivered(
    p_owner uuid, p_lanes smallint[], p_epochs bigint[], p_counts integer[], p_seqs bigint[], p_ids uuid[], p_spots tid[]
) RETURNS smallint[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_held smallint[];
    v_lost smallint[] := '{}';
    v_at integer := 1;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true);
    v_held := @.outbox_check_lanes(p_owner, p_lanes, p_epochs);
    IF cardinality(v_held) = cardinality(p_lanes) THEN
        IF @.outbox_delete_spots(p_ids, p_spots) = cardinality(p_ids) THEN
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

-- Whether a message of a key has to wait for others of it at this leg: for one that failed, for one before it that is
-- held, too, or for a dead letter that blocks. Rows with no leg yet may go to any leg.
CREATE FUNCTION outbox_is_held(p_lane smallint, p_seq bigint, p_key text, p_leg text) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (
    SELECT 1 FROM outbox_waiting
    WHERE lane = p_lane AND key = p_key AND leg IN (p_leg, '') AND seq <> p_seq
        AND (state IN ('retry', 'down') OR (state = 'held' AND seq < p_seq))
) OR EXISTS (
    SELECT 1 FROM outbox_dead WHERE lane = p_lane AND key = p_key AND leg IN (p_leg, '') AND blocks
);

-- The history of a message with one more entry; the last 20 are kept.
CREATE FUNCTION outbox_add_history(p_history jsonb, p_leg text, p_error text) RETURNS jsonb LANGUAGE sql STABLE
RETURN CASE
    WHEN jsonb_typeof(p_history) <> 'array' THEN '[]'::jsonb
    WHEN jsonb_array_length(p_history) >= 20 THEN p_history - 0
    ELSE p_history END
    || jsonb_build_object(
        'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'leg', p_leg, 'error', p_error);

-- How long a consumer's notes are kept.
CREATE FUNCTION outbox_inbox_window() RETURNS interval LANGUAGE sql STABLE
RETURN coalesce((SELECT value::bigint FROM outbox_setting WHERE name = 'inbox_window_seconds'), 2592000)
    * interval '1 second';

-- The partitions of delivered messages that hold one day each, by UTC, and when that day ends.
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

-- Whether a partition has to be made or dropped, or rows that are in none of them are too old.
CREATE FUNCTION outbox_delivered_is_untidy(p_keep interval) RETURNS boolean LANGUAGE sql STABLE
RETURN (SELECT count(*) FROM outbox_delivered_days()
        WHERE day IN ((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1)) < 2
    OR EXISTS (SELECT 1 FROM outbox_delivered_days() WHERE ends <= now() - p_keep)
    OR coalesce((SELECT min(delivered_at) FROM outbox_delivered_default) <= now() - p_keep, false);

-- Makes the partitions of today and tomorrow, drops those that are too old as a whole, and deletes up to p_limit rows
-- elsewhere: of the default partition, or with p_exact of any. Says how many rows went, and whether there may be more.
-- It acts with its owner's rights, because only the owner of a table may make or drop its partitions.
-- The lock timeout: making and dropping need a moment alone with the table. Behind a long reader they would wait, and
-- every settlement behind them; so they give up soon, and the next call tries again.
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
                -- Locked before it is counted, so that behind a long reader it is not counted again and again.
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', v_table.name);
            END IF;
            -- Of a large day an estimate is enough to tell, unless somebody wants to know.
            EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %s LIMIT $1) AS first', v_table.name)
                INTO v_rows USING CASE WHEN NOT p_exact THEN 100000 END;
            EXECUTE format('DROP TABLE %s', v_table.name);
            gone := gone + v_rows;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            EXIT WHEN p_exact;
            CONTINUE;
        END;
        -- From here until the end of the transaction nobody else gets at the table: the next day is not counted now.
        IF p_exact THEN
            more := true;
            RETURN;
        END IF;
    END LOOP;
    -- Making a partition reads all of the default one, so not while that is large; and rows of the day that are in it
    -- forbid it. Then they stay there, and are deleted row by row when they are old.
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

-- Every message with the status that operators know.
CREATE VIEW outbox_all AS
SELECT 'pending' AS status, lane, seq, id, topic, key, ''::text AS leg, aggregate_type, aggregate_id, schema_version,
    idempotency_key, content_type, headers, payload, priority, max_attempts, 0 AS attempts, NULL::text AS last_error,
    created_at, available_at, expires_at, NULL::timestamptz AS due_at, NULL::text AS detail, NULL::timestamptz AS ended_at
FROM outbox_message
UNION ALL
SELECT CASE WHEN attempts = 0 THEN 'pending' ELSE 'retry' END, lane, seq, id, topic, key, leg, aggregate_type,
    aggregate_id, schema_version, idempotency_key, content_type, headers, payload, priority, max_attempts, attempts,
    last_error, created_at, available_at, expires_at, due_at, state, NULL
FROM outbox_waiting
UNION ALL
SELECT 'dead', lane, seq, id, topic, key, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, last_error, created_at, available_at, expires_at,
    NULL, reason, dead_at
FROM outbox_dead
UNION ALL
SELECT 'delivered', lane, seq, id, topic, key, leg, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, max_attempts, attempts, NULL, created_at, available_at, expires_at, NULL,
    NULL, delivered_at
FROM outbox_delivered;

-- The schema's name, in place of `@`.
SELECT set_config('check_function_bodies', 'on', false);
DO $$
DECLARE
    v_schema oid := (SELECT relnamespace FROM pg_class WHERE oid = 'outbox_message'::regclass);
    v_function oid;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc WHERE pronamespace = v_schema AND strpos(prosrc, '@.outbox_') > 0
    LOOP
        EXECUTE replace(pg_get_functiondef(v_function), '@.outbox_', v_schema::regnamespace || '.outbox_');
    END LOOP;
END
$$;
