-- What it costs on PostgreSQL to keep delivered messages: 200,000 messages of 256 bytes are copied in batches of 500, as a settlement
-- does, into a table with the columns and indexes of outbox_delivered. Prints the time and the bytes per message for each form of
-- the column with the sinks. In any database: psql -f bench/sql/kept.sql
\set ON_ERROR_STOP on
\timing off
SET client_min_messages = warning;
SET synchronous_commit = off;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
DROP SCHEMA IF EXISTS bench_kept CASCADE;
CREATE SCHEMA bench_kept;
SET search_path = bench_kept;
CREATE TABLE message (
    lane smallint NOT NULL, priority smallint NOT NULL DEFAULT 0, max_attempts smallint, seq bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), id uuid NOT NULL, schema_version integer, available_at timestamptz,
    expires_at timestamptz, topic text NOT NULL, key text, content_type text, headers jsonb, aggregate_type text,
    aggregate_id text, idempotency_key text, payload bytea NOT NULL, PRIMARY KEY (lane, seq));
INSERT INTO message (lane, seq, id, topic, key, payload)
SELECT 1, n, gen_random_uuid(), 'order.placed', 'customer-' || n % 5000, decode(repeat('07', 256), 'hex') FROM generate_series(1, 200000) AS n;
CREATE TABLE result (form text, sinks int, seconds float8, wal float8, heap float8, indexes float8, round int);

CREATE PROCEDURE measure(p_form text, p_type text, p_sinks text[], p_values text, p_round int) LANGUAGE plpgsql AS $$
DECLARE v_began timestamptz; v_wal pg_lsn; v_first bigint; v_seconds float8;
BEGIN
    EXECUTE 'DROP TABLE IF EXISTS kept';
    EXECUTE format('CREATE TABLE kept (
        delivered_at timestamptz NOT NULL DEFAULT now(), lane smallint NOT NULL, priority smallint NOT NULL DEFAULT 0,
        max_attempts smallint, attempts integer NOT NULL DEFAULT 0, seq bigint NOT NULL, created_at timestamptz NOT NULL,
        id uuid NOT NULL, schema_version integer, available_at timestamptz, expires_at timestamptz, sinks %s NOT NULL,
        topic text NOT NULL, key text, content_type text, headers jsonb, aggregate_type text, aggregate_id text,
        idempotency_key text, history jsonb, payload bytea NOT NULL)', p_type);
    CREATE INDEX ON kept (delivered_at);
    CREATE INDEX ON kept (id);
    COMMIT;
    v_wal := pg_current_wal_insert_lsn();
    v_seconds := 0;
    FOR v_batch IN 0 .. 399 LOOP
        v_first := v_batch * 500;
        v_began := clock_timestamp();
        EXECUTE format('INSERT INTO kept (
            lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, sinks, topic, key,
            content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
        SELECT m.lane, m.priority, m.max_attempts, m.seq, m.created_at, m.id, m.schema_version, m.available_at, m.expires_at,
            %s, m.topic, m.key, m.content_type, m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key, m.payload
        FROM unnest($1, $2, $3) AS d (lane, seq, sinks)
        JOIN message AS m ON m.lane = d.lane AND m.seq = d.seq', p_values)
        USING (SELECT array_agg(1::smallint) FROM generate_series(1, 500), unnest(p_sinks)),
            (SELECT array_agg(v_first + n ORDER BY n) FROM generate_series(1, 500) AS n, unnest(p_sinks)),
            (SELECT array_agg(s ORDER BY n) FROM generate_series(1, 500) AS n, unnest(p_sinks) AS s);
        v_seconds := v_seconds + extract(epoch FROM clock_timestamp() - v_began);
        COMMIT;
    END LOOP;
    INSERT INTO result VALUES (p_form, 0, v_seconds, pg_current_wal_insert_lsn() - v_wal,
        pg_relation_size('kept'), pg_indexes_size('kept'), p_round);
END $$;
DO $$ BEGIN FOR r IN 1 .. 3 LOOP
    CALL measure('0 sink empty, one row (before)', 'text', '{""}', 'd.sinks', r);
    CALL measure('1 sink, text, a row a delivery', 'text', '{orders}', 'd.sinks', r);
    CALL measure('1 sink, jsonb list', 'jsonb', '{"[\"orders\"]"}', 'd.sinks::jsonb', r);
    CALL measure('1 sink, text[] list', 'text[]', '{"{orders}"}', 'd.sinks::text[]', r);
    CALL measure('2 sinks, text, a row a delivery', 'text', '{orders,audit}', 'd.sinks', r);
    CALL measure('2 sinks, jsonb list', 'jsonb', '{"[\"orders\",\"audit\"]"}', 'd.sinks::jsonb', r);
    CALL measure('2 sinks, text[] list', 'text[]', '{"{orders,audit}"}', 'd.sinks::text[]', r);
END LOOP; END $$;
SELECT form, round((percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) / 200000 * 1e6)::numeric, 2) AS us,
    round((avg(heap) / 200000)::numeric) AS heap_bytes, round((avg(indexes) / 200000)::numeric) AS index_bytes,
    round((avg(wal) / 200000)::numeric) AS wal_bytes FROM result GROUP BY form ORDER BY form;
DROP SCHEMA bench_kept CASCADE;
