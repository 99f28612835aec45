//! The roles can do their work, and nothing else.

use sendoff::emit::Names;
use sendoff::store::{
    Command, EmitStore, Filter, JobState, MigrateStore, OperateStore, RelayStore, Retention, RetryOptions, Verdict,
};
use sendoff::{ErrorKind, Message};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use tokio_postgres::Client;

use crate::scratch::{Relay, connect, connect_to, message, postgres_url, random_name, row_ref, topics};

pub(crate) const TABLES: [&str; 13] = [
    "outbox_message",
    "outbox_waiting",
    "outbox_dead",
    "outbox_delivered",
    "outbox_relay",
    "outbox_figure",
    "outbox_lane",
    "outbox_dedup",
    "outbox_control",
    "outbox_audit",
    "outbox_setting",
    "outbox_migration",
    "outbox_all",
];

pub(crate) struct Roles {
    pub(crate) names: Names,
    pub(crate) owner: Client,
    pub(crate) prefix: String,
}

impl Roles {
    /// Roles belong to the whole server, so these tables have a prefix of their own.
    pub(crate) async fn new() -> Self {
        let schema = random_name();
        let prefix = format!("r{}_", &schema[2..]);
        let names = Names::new(Some(&schema), &prefix).unwrap();
        let store = PostgresStore::new(PostgresConfig::new(postgres_url()).names(names.clone())).unwrap();
        store.migrate().await.unwrap();
        let owner = connect().await;
        owner.batch_execute(&store.roles_sql()).await.unwrap();
        store.create_roles().await.unwrap();
        Self { names, owner, prefix }
    }

    /// The login that has this role.
    pub(crate) fn login_name(&self, role: &str) -> String {
        format!("{}login_{role}", self.prefix)
    }

    /// The URL of a new login that has this role only.
    pub(crate) async fn login(&self, role: &str) -> String {
        let login = self.login_name(role);
        let create = format!(
            "CREATE ROLE {login} LOGIN PASSWORD 'x'; GRANT {}{role} TO {login}",
            self.prefix
        );
        self.owner.batch_execute(&create).await.unwrap();
        let driver: tokio_postgres::Config = postgres_url().parse().unwrap();
        let tokio_postgres::config::Host::Tcp(host) = &driver.get_hosts()[0] else {
            panic!("not reached by TCP")
        };
        format!(
            "postgres://{login}:x@{host}:{}/{}",
            driver.get_ports()[0],
            driver.get_dbname().unwrap()
        )
    }

    pub(crate) fn store(&self, url: &str) -> PostgresStore {
        PostgresStore::new(PostgresConfig::new(url).names(self.names.clone())).unwrap()
    }
}

pub(crate) async fn is_denied(client: &Client, sql: &str) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let code = error.code().map(|code| code.code().to_owned());
    assert_eq!(code.as_deref(), Some("42501"), "{sql}: {error:?}");
}

#[tokio::test]
async fn an_emitter_emits_in_every_way_and_can_do_nothing_else() {
    let roles = Roles::new().await;
    let url = roles.login("emitter").await;
    let store = roles.store(&url);
    let mut tx = store.begin().await.unwrap();
    let once = || Message::bytes("once", "x/y", vec![]).idempotency_key("1");
    tx.emit(&[message("plain")]).await.unwrap();
    tx.emit(&[message("many"), message("many")]).await.unwrap();
    assert!(!tx.emit(&[once()]).await.unwrap()[0].is_duplicate());
    assert!(tx.emit(&[once()]).await.unwrap()[0].is_duplicate());
    tx.emit(&[message("later").delay(std::time::Duration::from_secs(60))])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let client = connect_to(&url).await;
    let render = |sql: &str| roles.names.render(sql);
    client
        .batch_execute(&render(
            "INSERT INTO outbox_message (topic, payload, idempotency_key) VALUES ('sql', '', '2');
             SELECT outbox_emit('function', '\\x00'); SELECT outbox_emit_json('json', '{}', idempotency_key => '3')",
        ))
        .await
        .unwrap();
    let count = render("SELECT (SELECT count(*) FROM outbox_message) + (SELECT count(*) FROM outbox_waiting)");
    assert_eq!(roles.owner.query_one(&count, &[]).await.unwrap().get::<_, i64>(0), 8);

    for table in TABLES {
        let table = render(table);
        is_denied(&client, &format!("SELECT * FROM {table}")).await;
        if !table.ends_with("_all") {
            is_denied(&client, &format!("DELETE FROM {table}")).await;
            is_denied(&client, &format!("TRUNCATE {table}")).await;
        }
    }
    for sql in [
        "UPDATE outbox_message SET topic = 'x'",
        "UPDATE outbox_dead SET blocks = false",
        "UPDATE outbox_lane SET owner = NULL",
        "UPDATE outbox_setting SET value = '0'",
        "INSERT INTO outbox_message (topic, payload, seq) VALUES ('x', '', 1)",
        "INSERT INTO outbox_message (topic, payload, lane) VALUES ('x', '', DEFAULT)",
        "INSERT INTO outbox_message (topic, payload, created_at) VALUES ('x', '', now())",
        "INSERT INTO outbox_waiting (lane, seq, id, state, topic, payload) VALUES (1, 1, gen_random_uuid(), 'retry', 'x', '')",
        "INSERT INTO outbox_dedup (id, until, topic, idempotency_key) VALUES (gen_random_uuid(), now(), 'x', 'x')",
        "SELECT outbox_dedup_take('x', 'x', gen_random_uuid())",
        "SELECT nextval('outbox_message_seq_seq')",
        "SELECT last_value FROM outbox_message_seq_seq",
    ] {
        is_denied(&client, &render(sql)).await;
    }
    let denied = roles.store(&url).backlog().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_temporary_table_of_the_callers_is_never_taken_for_the_real_one() {
    let roles = Roles::new().await;
    let client = connect_to(&roles.login("emitter").await).await;
    let bare = |table: &str| format!("{}{table}", roles.prefix);
    client
        .batch_execute(&format!(
            "CREATE TEMP TABLE {} (LIKE {}); CREATE TEMP TABLE {} (LIKE {})",
            bare("dedup"),
            "pg_class",
            bare("setting"),
            "pg_class"
        ))
        .await
        .unwrap();
    let emit = roles
        .names
        .render("SELECT outbox_emit('t', '', idempotency_key => 'k')");
    client.batch_execute(&emit).await.unwrap();
}

/// What the owner of the tables writes there is not kept either.
#[tokio::test]
async fn nobody_chooses_a_lane_or_a_number() {
    let roles = Roles::new().await;
    let insert = "INSERT INTO outbox_message (lane, seq, topic, payload) VALUES (99, 1, 't', ''), (-7, 1, 't', '')";
    roles.owner.batch_execute(&roles.names.render(insert)).await.unwrap();
    let rows = "SELECT array_agg(lane::int ORDER BY seq), array_agg(seq ORDER BY seq) FROM outbox_message";
    let row = roles.owner.query_one(&roles.names.render(rows), &[]).await.unwrap();
    assert_eq!(
        (row.get::<_, Vec<i32>>(0), row.get::<_, Vec<i64>>(1)),
        (vec![0, 0], vec![1, 2])
    );
}

#[tokio::test]
async fn relay_operator_and_viewer_have_what_they_need() {
    let roles = Roles::new().await;
    let emitter = roles.store(&roles.login("emitter").await);
    let mut tx = emitter.begin().await.unwrap();
    tx.emit(&[message("a").key("k"), message("b").key("k"), message("c")])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let url = roles.login("relay_role").await;
    let keeping = PostgresConfig::new(&url)
        .names(roles.names.clone())
        .retention(Some(std::time::Duration::from_secs(60)))
        .dedup_window(Some(std::time::Duration::from_secs(60)));
    for store in [roles.store(&url), PostgresStore::new(keeping).unwrap()] {
        store.check_schema().await.unwrap();
        store.write_retention().await.unwrap();
        let mut relay = Relay::new(store.clone()).await;
        for _ in 0..6 {
            let found = relay.read().await;
            for outgoing in &found {
                let dead = Verdict::Dead {
                    reason: sendoff::store::DeadReason::Permanent,
                    error: "no".to_owned(),
                    charged: true,
                    blocks: true,
                };
                let verdict = match (outgoing.topic.as_str(), &outgoing.row_ref.sink) {
                    ("a", None) => vec![("s", Verdict::Blocked)],
                    ("a", Some(_)) => vec![("s", dead)],
                    ("b", _) => vec![("s", Verdict::Blocked)],
                    _ => vec![],
                };
                relay.settle(outgoing, &verdict).await;
            }
        }
        store.quarantine(relay.owner, 1, &[row_ref(1, 1, None)]).await.unwrap();
        store.clear_quarantine(relay.owner, &[1]).await.unwrap();
        store.heartbeat(relay.owner, crate::scratch::LEASE).await.unwrap();
        store.blocked_keys(&[1]).await.unwrap();
        store.release_orphans(relay.owner, &[1]).await.unwrap();
        store.paused().await.unwrap();
        store.evict().await.unwrap();
        store.release(relay.owner, &[1]).await.unwrap();
        store.deregister(relay.owner).await.unwrap();
        assert_eq!(store.backlog().await.unwrap().dead, 1);
    }
    let operator = roles.store(&roles.login("operator").await);
    assert_eq!(operator.summary().await.unwrap().dead, 1);
    assert_eq!(
        operator
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("alice"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(operator.list(&Default::default(), 10).await.unwrap().messages.len(), 2);
    let everything = Retention {
        delivered: Some(std::time::Duration::ZERO),
        dead: Some(std::time::Duration::ZERO),
        dedup: true,
        inbox: Some(std::time::Duration::ZERO),
    };
    let mut command = Command::by("alice");
    for _ in 0..2 {
        operator.clean_up(&everything, 100, &mut command).await.unwrap();
    }
    operator.clean_count(&everything).await.unwrap();
    let all = Filter::default();
    operator
        .retry_waiting_count(&all, RetryOptions::default())
        .await
        .unwrap();
    operator
        .retry_waiting(&all, RetryOptions::default(), None, 9, &mut Command::by("alice"))
        .await
        .unwrap();
    operator.reap_gone(crate::scratch::LEASE, "alice").await.unwrap();
    let viewer = roles.store(&roles.login("viewer").await);
    assert_eq!(viewer.list(&Default::default(), 10).await.unwrap().messages.len(), 2);
    assert_eq!(
        viewer
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("eve"))
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
    let mut relay = Relay::new(roles.store(&url)).await;
    assert_eq!(topics(&relay.next().await), ["a"]);
}

#[tokio::test]
async fn a_worker_works_on_jobs_and_can_do_nothing_else() {
    use sendoff::store::WorkStore;

    const LEASE: std::time::Duration = std::time::Duration::from_secs(60);
    let roles = Roles::new().await;
    let emitter = roles.store(&roles.login("emitter").await);
    let mut tx = emitter.begin_jobs().await.unwrap();
    tx.emit(&[message("a"), message("b"), message("c"), message("d"), message("e")])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let url = roles.login("worker").await;
    let worker = roles.store(&url);
    worker.check_schema().await.unwrap();
    let jobs = worker.claim_batch("w", 5, LEASE).await.unwrap();
    let claims: Vec<_> = jobs.iter().map(|job| job.claim).collect();
    assert_eq!(claims.len(), 5);
    assert_eq!(worker.extend("w", &claims, LEASE).await.unwrap(), []);
    assert_eq!(worker.mark_success("w", &claims[..1]).await.unwrap(), []);
    worker.mark_retry("w", claims[1], LEASE, "no").await.unwrap();
    worker.mark_failed("w", claims[2], "no").await.unwrap();
    worker.mark_failed("w", claims[3], "no").await.unwrap();
    assert_eq!(WorkStore::release(&worker, "w", &claims[4..]).await.unwrap(), []);
    worker.reap(LEASE).await.unwrap();
    assert_eq!(worker.job_counts().await.unwrap().failed, 2);
    let keeping = PostgresConfig::new(&url)
        .names(roles.names.clone())
        .retention(Some(LEASE));
    let keeping = PostgresStore::new(keeping).unwrap();
    let kept = keeping.claim_batch("w", 1, LEASE).await.unwrap();
    assert_eq!(keeping.mark_success("w", &[kept[0].claim]).await.unwrap(), []);

    let client = connect_to(&url).await;
    for table in TABLES {
        let table = roles.names.render(table);
        let may_look = table.ends_with("setting") || table.ends_with("migration");
        if !may_look {
            is_denied(&client, &format!("SELECT * FROM {table}")).await;
        }
        if !table.ends_with("_all") {
            is_denied(&client, &format!("DELETE FROM {table}")).await;
        }
    }
    for sql in [
        "INSERT INTO outbox_job (topic, payload) VALUES ('x', '')",
        "INSERT INTO outbox_audit (who, action) VALUES ('x', 'y')",
        "UPDATE outbox_setting SET value = '0'",
        "TRUNCATE outbox_job",
        "SELECT outbox_emit_job('x', '')",
    ] {
        is_denied(&client, &roles.names.render(sql)).await;
    }

    let operator = roles.store(&roles.login("operator").await);
    let failed = operator
        .jobs(Some(JobState::Failed), &[], None, i64::MIN, 10)
        .await
        .unwrap();
    assert_eq!(failed.len(), 2);
    let one = [failed[0].message.id.unwrap()];
    assert_eq!(
        operator
            .retry_failed(&one, 10, &Filter::default(), &mut Command::by("alice"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        operator
            .discard_failed(&[], 10, &Filter::default(), &mut Command::by("alice"))
            .await
            .unwrap(),
        1
    );
    operator.reap_gone(LEASE, "alice").await.unwrap();
    let viewer = roles.store(&roles.login("viewer").await);
    assert_eq!(viewer.job_counts().await.unwrap().failed, 0);
    for denied in [
        viewer
            .discard_failed(&[], 10, &Filter::default(), &mut Command::by("eve"))
            .await,
        viewer
            .retry_failed(&[], 10, &Filter::default(), &mut Command::by("eve"))
            .await,
        viewer.reap(LEASE).await,
        // Workers and relays do so unasked; what an operator does is in the audit.
        operator.reap(LEASE).await,
    ] {
        assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    }
}
