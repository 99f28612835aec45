//! What happens when the server is away, slow, or not what was expected.

use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{EmitStore, OwnerId, RelayCard, RelayStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};

use crate::scratch::{LEASE, Scratch, connect, message, postgres_url, random_name};

#[tokio::test]
async fn a_commit_wakes_whoever_listens() {
    let scratch = Scratch::new().await;
    let mut signals = scratch
        .store
        .listen()
        .await
        .unwrap()
        .expect("a direct connection can listen");
    scratch.emit(&[message("a")]).await;
    tokio::time::timeout(Duration::from_secs(10), signals.woken())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_listener_whose_connection_ends_says_so() {
    let name = random_name();
    let scratch = Scratch::with(|config| config.application_name(&name)).await;
    let mut signals = scratch
        .store
        .listen()
        .await
        .unwrap()
        .expect("a direct connection can listen");
    let kill = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'");
    scratch.sql.batch_execute(&kill).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), signals.woken())
        .await
        .unwrap();
    assert!(ended.unwrap_err().is_temporary());
}

#[tokio::test]
async fn every_call_works_again_after_the_connections_were_cut() {
    let name = random_name();
    let scratch = Scratch::with(|config| config.application_name(&name)).await;
    let owner = OwnerId::random();
    scratch
        .store
        .register(owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    scratch.emit(&[message("a")]).await;
    let kill = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'");
    scratch.sql.batch_execute(&kill).await.unwrap();
    let mut failures = 0;
    while let Err(error) = scratch.store.heartbeat(owner, LEASE).await {
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        failures += 1;
        assert!(failures < 10, "{error}");
    }
    while let Err(error) = scratch.store.backlog().await {
        assert!(error.is_temporary(), "{error}");
        failures += 1;
        assert!(failures < 10, "{error}");
    }
}

#[tokio::test]
async fn a_statement_that_waits_too_long_is_ended_by_the_server() {
    let name = random_name();
    let scratch = Scratch::with(|config| {
        config
            .application_name(&name)
            .statement_timeout(Duration::from_millis(300))
    })
    .await;
    let relay = scratch.relay().await;
    let blocker = connect().await;
    blocker
        .batch_execute(&scratch.names.render("BEGIN; LOCK TABLE outbox_relay"))
        .await
        .unwrap();
    let error = scratch.store.heartbeat(relay.owner, LEASE).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("statement timeout"), "{error}");
    let waiting =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'");
    while scratch.value(&waiting).await != "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    blocker.batch_execute("COMMIT").await.unwrap();
    assert!(scratch.store.heartbeat(relay.owner, LEASE).await.unwrap().alive);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_nothing_and_no_lock() {
    let name = random_name();
    let scratch = Scratch::with(|config| config.application_name(&name)).await;
    let mut tx = scratch.store.begin().await.unwrap();
    tx.emit(&[message("a")]).await.unwrap();
    drop(tx);
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state LIKE 'idle in transaction%'"
    );
    while scratch.value(&open).await != "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
}

#[tokio::test]
async fn errors_say_what_to_do_and_keep_secrets() {
    let nobody = PostgresStore::new(PostgresConfig::new("postgres://shop:hunter2@127.0.0.1:1/shop")).unwrap();
    let error = nobody.backlog().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let bad = PostgresStore::new(PostgresConfig::new("postgres://shop:hunter2@127.0.0.1:port/shop")).unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::Invalid);
    let missing = Scratch::bare(&random_name(), |config| config)
        .await
        .store
        .backlog()
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::SchemaMissing);
    assert!(missing.next().unwrap().contains("sendoff migrate"));
    let database = PostgresStore::new(PostgresConfig::new(format!("{}_no", postgres_url()))).unwrap();
    assert_eq!(database.backlog().await.unwrap_err().kind(), ErrorKind::Invalid);
    for error in [&error, &bad, &missing] {
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
