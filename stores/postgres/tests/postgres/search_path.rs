//! What somebody puts in front of the server's own functions and operators is called by nothing that acts with the owner's rights.

use sendoff::store::{Action, OperateStore};
use tokio_postgres::Client;

use crate::roles::Roles;
use crate::scratch::connect_to;

/// A session of a new login with this role, whose search path begins with a schema of its own. There, what the functions of the outbox
/// use has better overloads: they say by whom they are called, and fail.
async fn with_a_schema_in_front(roles: &Roles, role: &str) -> Client {
    let url = roles.login(role).await;
    let (login, evil) = (roles.login_name(role), format!("{}evil", roles.prefix));
    let create = format!("CREATE SCHEMA {evil} AUTHORIZATION {login}");
    roles.owner.batch_execute(&create).await.unwrap();
    let client = connect_to(&url).await;
    let functions = [
        ("hashtextextended", "text, integer", "bigint"),
        ("hashtextextended", "text, bigint", "bigint"),
        ("uuid_hash_extended", "uuid, bigint", "bigint"),
        ("nextval", "regclass", "bigint"),
        ("pg_current_xact_id", "", "xid8"),
        ("now", "", "timestamptz"),
        ("clock_timestamp", "", "timestamptz"),
        ("gen_random_uuid", "", "uuid"),
        ("octet_length", "text", "integer"),
        ("octet_length", "bytea", "integer"),
        ("format", "text, uuid", "text"),
        ("equal", "uuid, uuid", "boolean"),
        ("equal", "text, text", "boolean"),
        ("more", "integer, integer", "boolean"),
        ("more", "timestamptz, timestamptz", "boolean"),
        ("plus", "timestamptz, interval", "timestamptz"),
        ("times", "bigint, interval", "interval"),
        ("both", "bigint, bigint", "bigint"),
        ("sum", "bigint, bigint", "bigint"),
        ("minus", "timestamptz, interval", "timestamptz"),
        ("until", "timestamptz, timestamptz", "boolean"),
        ("other", "text, text", "boolean"),
        ("fits", "text, text", "boolean"),
        ("field", "jsonb, text", "text"),
        ("part", "jsonb, text", "jsonb"),
        ("same", "jsonb, jsonb", "boolean"),
        ("strpos", "text, text", "integer"),
        ("replace", "text, text, text", "text"),
        ("translate", "text, text, text", "text"),
        ("jsonb_object_keys", "jsonb", "SETOF text"),
        ("jsonb_strip_nulls", "jsonb", "jsonb"),
        ("jsonb_build_object", "text, text", "jsonb"),
        ("convert_to", "text, text", "bytea"),
        ("round", "numeric", "numeric"),
        ("unnest", "uuid[]", "SETOF uuid"),
    ];
    for (name, parameters, result) in functions {
        let create = format!(
            "CREATE FUNCTION {evil}.{name}({parameters}) RETURNS {result} LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION '{name} was called by %', current_user; END $$"
        );
        client.batch_execute(&create).await.unwrap();
        let operator = match name {
            "equal" => "=",
            "more" => ">",
            "plus" => "+",
            "times" => "*",
            "both" => "&",
            "sum" => "+",
            "minus" => "-",
            "until" => "<=",
            "other" => "<>",
            "fits" => "~~",
            "field" => "->>",
            "part" => "->",
            "same" => "=",
            _ => continue,
        };
        let (left, right) = parameters.split_once(", ").unwrap();
        let create = format!(
            "CREATE OPERATOR {evil}.{operator} (FUNCTION = {evil}.{name}, LEFTARG = {left}, RIGHTARG = {right})"
        );
        client.batch_execute(&create).await.unwrap();
    }
    let in_front = format!("SET search_path = {evil}, pg_catalog");
    client.batch_execute(&in_front).await.unwrap();
    client
}

/// Whatever a producer puts there, none of it is called: it would be with the rights of the owner, or choose a lane.
#[tokio::test]
async fn nothing_of_a_producers_own_is_called() {
    let roles = Roles::new().await;
    let client = with_a_schema_in_front(&roles, "emitter").await;
    let emit = "
         INSERT INTO outbox_message (topic, payload) VALUES ('t', '');
         INSERT INTO outbox_message (topic, payload, key) VALUES ('t', '', 'k');
         INSERT INTO outbox_message (topic, payload, priority) VALUES ('t', '', 1);
         INSERT INTO outbox_message (topic, payload, idempotency_key) VALUES ('t', '', 'a');
         INSERT INTO outbox_message (topic, payload, available_at) VALUES ('t', '', '2999-01-01');
         INSERT INTO outbox_job (topic, payload, idempotency_key) VALUES ('t', '', 'b');
         SELECT outbox_emit('t', '', idempotency_key => 'c');
         SELECT outbox_emit('t', '', idempotency_key => 'c');
         SELECT outbox_emit_json('t', '{}');
         SELECT outbox_emit_job('t', '', idempotency_key => 'd')";
    client.batch_execute(&roles.names.render(emit)).await.unwrap();
    for (refused, why) in [
        (
            "INSERT INTO outbox_message (topic, payload, key) VALUES ('t', '', repeat('k', 1025))",
            "its key",
        ),
        (
            "INSERT INTO outbox_message (topic, payload, idempotency_key) VALUES ('t', '', 'a')",
            "already emitted",
        ),
    ] {
        let error = client.batch_execute(&roles.names.render(refused)).await.unwrap_err();
        assert!(format!("{error:?}").contains(why), "{error:?}");
    }
    let lanes = roles
        .names
        .render("SELECT count(*), min(lane), max(lane) FROM outbox_message");
    let row = roles.owner.query_one(&lanes, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 6);
    assert!(row.get::<_, i16>(1) >= 0 && row.get::<_, i16>(2) < 80);
}

/// Nor of an operator's: with the rights of the owner it could write what it likes into the audit.
#[tokio::test]
async fn nothing_of_an_operators_own_is_called() {
    let roles = Roles::new().await;
    let client = with_a_schema_in_front(&roles, "operator").await;
    let own = ["audit", "dead", "waiting", "job", "control", "relay"];
    for table in own {
        let create = format!("CREATE TEMP TABLE {}{table} (LIKE pg_class)", roles.prefix);
        client.batch_execute(&create).await.unwrap();
    }
    let dead = "INSERT INTO outbox_dead (lane, seq, id, blocks, reason, topic, key, sink, payload)
         SELECT 1, n, gen_random_uuid(), true, 'permanent', 't', 'k', 's', 'x' FROM generate_series(1, 3) AS n;
         INSERT INTO outbox_job (topic, payload) VALUES ('t', 'x'), ('t', 'x');
         UPDATE outbox_job SET state = 'failed', next_attempt_at = NULL";
    roles.owner.batch_execute(&roles.names.render(dead)).await.unwrap();
    let filter = r#"{"topic": "t*", "error": "", "payload": "x", "created_from": {"secs_since_epoch": 1, "nanos_since_epoch": 1}}"#;
    let messages = filter.replace(r#""error": "", "#, "");
    let retention = r#"{"delivered_seconds": 0, "dead_seconds": 0, "dedup": true, "inbox_seconds": 0}"#;
    let acts = format!(
        "SELECT outbox_retry_dead('a', '{messages}', 1);
         SELECT outbox_retry_waiting('a', '{filter}', 9, true);
         SELECT outbox_discard_dead('a', '{messages}', 1);
         SELECT outbox_release_key('a', 'k');
         SELECT outbox_pause('a', 'topic', 't.*');
         SELECT outbox_resume('a', 'topic', 't.*');
         SELECT outbox_retry_jobs('a', '{messages}', 1);
         SELECT outbox_discard_jobs('a', '{messages}', 1);
         SELECT outbox_reap('a', '{{\"stale_after_seconds\": 0}}');
         SELECT outbox_clean_up('a', '{retention}', 9)"
    );
    client.batch_execute(&roles.names.render(&acts)).await.unwrap();
    let store = roles.store(&crate::scratch::postgres_url());
    let noted: Vec<(String, u64)> = (store.audit(99).await.unwrap().into_iter().rev())
        .map(|row| (row.action, row.affected))
        .collect();
    let expected = [
        (Action::RetryDead, 1),
        (Action::Reset, 0),
        (Action::DiscardDead, 1),
        (Action::ReleaseKey, 1),
        (Action::Pause, 1),
        (Action::Resume, 1),
        (Action::RetryJobs, 1),
        (Action::DiscardJobs, 1),
        (Action::Reap, 0),
        (Action::CleanUp, 1),
    ];
    assert_eq!(
        noted,
        expected.map(|(action, count)| (action.as_str().to_owned(), count))
    );
}
