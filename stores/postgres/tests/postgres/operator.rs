//! What an operator does is done by functions that write it down, under the login, and in no other way.

use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{Action, Command, Filter, OperateStore, Pausable, Retention, RetryOptions, WorkStore};
use sendoff_store_postgres::PostgresStore;

use crate::roles::{Roles, TABLES, is_denied};
use crate::scratch::connect_to;

/// What operators may call.
const ACTS: [&str; 10] = [
    "clean_up",
    "discard_dead",
    "discard_jobs",
    "pause",
    "reap",
    "release_key",
    "resume",
    "retry_dead",
    "retry_jobs",
    "retry_waiting",
];

/// Three dead letters of one key, of which all block it, one that waits, and three failed jobs.
const SOMETHING: &str = "INSERT INTO outbox_dead (lane, seq, id, blocks, reason, topic, key, sink, payload)
        SELECT 1, n, gen_random_uuid(), true, 'permanent', 't', 'k', 's', 'x' FROM generate_series(1, 3) AS n;
    INSERT INTO outbox_waiting (lane, seq, id, state, due_at, topic, payload)
        VALUES (1, 9, gen_random_uuid(), 'retry', now() + interval '1 day', 't', 'x');
    INSERT INTO outbox_job (topic, payload) VALUES ('t', 'x'), ('t', 'x'), ('t', 'x');
    UPDATE outbox_job SET state = 'failed', next_attempt_at = NULL";

async fn filled() -> Roles {
    let roles = Roles::new().await;
    run(&roles, SOMETHING).await;
    roles
}

async fn run(roles: &Roles, sql: &str) {
    roles.owner.batch_execute(&roles.names.render(sql)).await.unwrap();
}

async fn number(roles: &Roles, sql: &str) -> i64 {
    let row = roles.owner.query_one(&roles.names.render(sql), &[]).await.unwrap();
    row.get(0)
}

fn topic(topic: &str) -> Filter {
    Filter {
        topic: Some(topic.to_owned()),
        ..Filter::default()
    }
}

#[tokio::test]
async fn an_operator_changes_no_table_by_hand() {
    let roles = filled().await;
    let client = connect_to(&roles.login("operator").await).await;
    for table in TABLES.into_iter().chain(["outbox_job", "outbox_inbox"]) {
        let table = roles.names.render(table);
        for right in ["INSERT", "UPDATE", "REFERENCES"] {
            let sql = format!("SELECT has_any_column_privilege('{table}', '{right}')");
            let may: bool = client.query_one(&sql, &[]).await.unwrap().get(0);
            assert!(!may, "{right} on {table}");
        }
        for right in ["DELETE", "TRUNCATE", "TRIGGER"] {
            let sql = format!("SELECT has_table_privilege('{table}', '{right}')");
            let may: bool = client.query_one(&sql, &[]).await.unwrap().get(0);
            assert!(!may, "{right} on {table}");
        }
    }
    for sql in [
        "INSERT INTO outbox_audit (who, action, affected) VALUES ('bob', 'dead discard', 1)",
        "UPDATE outbox_audit SET affected = 0",
        "UPDATE outbox_audit SET who = 'eve', login = 'eve'",
        "DELETE FROM outbox_audit",
        "INSERT INTO outbox_dead (lane, seq, id, reason, topic, payload) VALUES (1, 1, gen_random_uuid(), 'expired', 't', '')",
        "UPDATE outbox_dead SET payload = ''",
        "DELETE FROM outbox_dead",
        "INSERT INTO outbox_waiting (lane, seq, id, state, topic, payload) VALUES (1, 1, gen_random_uuid(), 'retry', 't', '')",
        "UPDATE outbox_waiting SET payload = ''",
        "DELETE FROM outbox_waiting",
        "INSERT INTO outbox_control (kind, name) VALUES ('sink', 's')",
        "UPDATE outbox_control SET paused_by = 'eve'",
        "DELETE FROM outbox_control",
        "INSERT INTO outbox_job (topic, payload) VALUES ('t', '')",
        "UPDATE outbox_job SET payload = ''",
        "DELETE FROM outbox_job",
        "UPDATE outbox_relay SET until = now()",
        "DELETE FROM outbox_relay",
        "UPDATE outbox_lane SET owner = NULL",
        "DELETE FROM outbox_lane",
        "DELETE FROM outbox_dedup",
        "DELETE FROM outbox_inbox",
        "SELECT outbox_note('bob', 'dead discard', '{}', 1, NULL)",
        "SELECT outbox_clean_delivered(interval '0', 9, true)",
        "SELECT outbox_clean_dead(0, 9)",
        "SELECT outbox_clean_jobs(0, 9)",
        "SELECT outbox_evict()",
        "SELECT outbox_reap_jobs(0)",
        "SELECT outbox_follow_on('{1}', '{k}', '{s}')",
    ] {
        is_denied(&client, &roles.names.render(sql)).await;
    }
}

/// All that acts with the owner's rights, and who may call it.
#[tokio::test]
async fn only_operators_may_do_what_operators_do() {
    let roles = Roles::new().await;
    let of = "SELECT proname::text FROM pg_proc
         WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'outbox_audit'::regclass) AND prosecdef
             AND has_function_privilege($1, oid, 'EXECUTE') ORDER BY proname";
    for (role, may) in [
        ("operator", &ACTS[..]),
        ("viewer", &[]),
        ("worker", &[]),
        ("consumer", &[]),
        ("relay_role", &["clean_delivered"]),
        ("emitter", &["emit", "emit_job", "emit_json"]),
    ] {
        let (of, role) = (roles.names.render(of), format!("{}{role}", roles.prefix));
        let rows = roles.owner.query(&of, &[&role]).await.unwrap();
        let called: Vec<String> = rows
            .iter()
            .map(|row| row.get::<_, &str>(0).trim_start_matches(&roles.prefix).to_owned())
            .collect();
        assert_eq!(called, may, "{role}");
    }
}

/// Does everything that an operator can do, each once.
async fn do_everything(operator: &PostgresStore) -> Vec<(Action, u64)> {
    let by = || Command::by("alice");
    let (filter, paused) = (topic("t*"), Pausable::Topic("t.*".to_owned()));
    let everything = Retention {
        delivered: Some(Duration::ZERO),
        dead: Some(Duration::ZERO),
        dedup: true,
        inbox: Some(Duration::ZERO),
    };
    let reset = RetryOptions {
        reset: true,
        ..RetryOptions::default()
    };
    let retried = operator.retry_dead(&filter, None, 1, &mut by()).await.unwrap();
    let discarded = operator.discard_dead(&filter, None, 1, &mut by()).await.unwrap();
    let released = operator.release_key("k", None, "alice").await.unwrap();
    let made_due = operator
        .retry_waiting(&filter, RetryOptions::default(), None, 9, &mut by())
        .await;
    let again = operator.retry_waiting(&filter, reset, None, 9, &mut by()).await;
    let pause = operator.pause(&paused, "alice").await.unwrap();
    let resume = operator.resume(&paused, "alice").await.unwrap();
    let jobs_back = operator.retry_failed(&[], 1, &filter, &mut by()).await.unwrap();
    let jobs_gone = operator.discard_failed(&[], 1, &filter, &mut by()).await.unwrap();
    let reaped = operator.reap_gone(Duration::ZERO, "alice").await.unwrap();
    let cleaned = operator.clean_up(&everything, 9, &mut by()).await.unwrap();
    vec![
        (Action::RetryDead, retried),
        (Action::DiscardDead, discarded),
        (Action::ReleaseKey, released),
        (Action::Retry, made_due.unwrap().due),
        (Action::Reset, again.unwrap().due),
        (Action::Pause, pause.into()),
        (Action::Resume, resume.into()),
        (Action::RetryJobs, jobs_back),
        (Action::DiscardJobs, jobs_gone),
        (Action::Reap, reaped.lanes + reaped.jobs),
        (Action::CleanUp, cleaned.deleted),
    ]
}

#[tokio::test]
async fn every_act_of_an_operator_is_one_row_with_the_login_and_the_name() {
    let roles = filled().await;
    let operator = roles.store(&roles.login("operator").await);
    let done = do_everything(&operator).await;
    let counts: Vec<u64> = done.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1]);
    let audit = operator.audit(99).await.unwrap();
    let noted: Vec<_> = audit
        .iter()
        .rev()
        .map(|row| (row.login.clone(), row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    let login = roles.login_name("operator");
    let expected: Vec<_> = done
        .iter()
        .map(|(action, count)| (Some(login.clone()), "alice", action.as_str(), *count))
        .collect();
    assert_eq!(noted, expected);

    let viewer = roles.store(&roles.login("viewer").await);
    let denied = viewer.pause(&Pausable::Sink("s".to_owned()), "alice").await;
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(viewer.audit(99).await.unwrap(), audit);
}

#[tokio::test]
async fn a_batch_adds_to_the_row_of_its_own_command_only() {
    let roles = filled().await;
    let url = roles.login("operator").await;
    let (operator, owner) = (roles.store(&url), roles.store(&crate::scratch::postgres_url()));
    let (mut mine, mut theirs) = (Command::by("alice"), Command::by("alice"));
    assert_eq!(operator.discard_dead(&topic("t"), None, 1, &mut mine).await.unwrap(), 1);
    assert_eq!(owner.discard_dead(&topic("t"), None, 0, &mut theirs).await.unwrap(), 0);
    let at = |row: Option<i64>, who: &str| {
        let mut command = Command::by(who);
        command.is_noted(row.unwrap());
        command
    };
    let (mine, theirs) = (mine.row(), theirs.row());
    let discard = async |filter: &Filter, mut command: Command| {
        let gone = operator.discard_dead(filter, None, 1, &mut command).await;
        gone.map_err(|error| error.kind())
    };
    // Another login, a row that is not there, another name, another filter, another action.
    assert_eq!(discard(&topic("t"), at(theirs, "alice")).await, Err(ErrorKind::Denied));
    assert_eq!(
        discard(&topic("t"), at(Some(999), "alice")).await,
        Err(ErrorKind::Denied)
    );
    assert_eq!(discard(&topic("t"), at(mine, "bob")).await, Err(ErrorKind::Denied));
    assert_eq!(discard(&topic("t*"), at(mine, "alice")).await, Err(ErrorKind::Denied));
    let retried = operator.retry_dead(&topic("t"), None, 1, &mut at(mine, "alice")).await;
    let said = retried.unwrap_err().to_string();
    assert!(said.contains("is not one that this command may add to"), "{said}");
    assert_eq!(
        number(&roles, "SELECT count(*) FROM outbox_dead").await,
        2,
        "nothing was done"
    );
    let audited = "SELECT array_agg(affected ORDER BY id) = '{1,0}' AND count(*) = 2 FROM outbox_audit";
    let is_as_before = roles.owner.query_one(&roles.names.render(audited), &[]).await.unwrap();
    assert!(is_as_before.get::<_, bool>(0));

    assert_eq!(discard(&topic("t"), at(mine, "alice")).await, Ok(1));
    assert_eq!(
        number(&roles, "SELECT affected FROM outbox_audit ORDER BY id LIMIT 1").await,
        2
    );
    run(
        &roles,
        "UPDATE outbox_audit SET last_at = now() - interval '61 minutes'",
    )
    .await;
    assert_eq!(discard(&topic("t"), at(mine, "alice")).await, Err(ErrorKind::Denied));
}

/// What is in the audit is what was done: ids beside a filter that they do not fit are left alone, and a field that nobody knows is
/// no filter.
#[tokio::test]
async fn the_audit_tells_by_what_rows_were_chosen() {
    let roles = filled().await;
    let url = roles.login("operator").await;
    let (operator, client) = (roles.store(&url), connect_to(&url).await);
    let ids: Vec<_> = (operator.jobs(None, &[], None, i64::MIN, 9).await.unwrap().into_iter())
        .filter_map(|job| job.message.id)
        .collect();
    let one = Filter {
        ids: vec![ids[0]],
        ..Filter::default()
    };
    let mut command = Command::by("alice");
    assert_eq!(
        operator
            .discard_failed(&ids, 9, &topic("another"), &mut command)
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        operator
            .discard_failed(&ids, 9, &one, &mut Command::by("alice"))
            .await
            .unwrap(),
        1
    );
    let misspelt = roles
        .names
        .render("SELECT outbox_discard_dead('a', '{\"topics\": \"t\"}', 9)");
    let refused = client.batch_execute(&misspelt).await.unwrap_err();
    assert!(format!("{refused:?}").contains("no field topics"), "{refused:?}");
    assert_eq!(number(&roles, "SELECT count(*) FROM outbox_dead").await, 3);
}
