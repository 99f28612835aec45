//! The schema, its ledger, and programs that migrate at the same time.

use sendoff::ErrorKind;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, MigrationState};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};

use crate::scratch::{Relay, Scratch, connect, message, postgres_url, random_name, topics};

#[tokio::test]
async fn migrating_twice_changes_nothing_the_second_time() {
    let scratch = Scratch::bare(&random_name(), |config| config).await;
    assert_eq!(
        scratch.store.migration_state().await.unwrap(),
        MigrationState { applied: 0, needed: 1 }
    );
    let missing = scratch.store.check_schema().await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::SchemaMissing);
    assert_eq!(scratch.store.migrate().await.unwrap(), scratch.store.migrations());
    assert!(scratch.store.migrate().await.unwrap().is_empty());
    scratch.store.check_schema().await.unwrap();
}

#[tokio::test]
async fn a_schema_that_is_missing_is_created() {
    let names = Names::new(Some(&random_name()), "ob_").unwrap();
    let store = PostgresStore::new(PostgresConfig::new(postgres_url()).names(names)).unwrap();
    assert_eq!(store.migrate().await.unwrap().len(), 1);
    store.check_schema().await.unwrap();
}

/// They could put functions and operators of their own in front of the server's.
#[tokio::test]
async fn a_schema_in_which_others_may_create_is_refused_with_the_remedy() {
    let scratch = Scratch::bare(&random_name(), |config| config).await;
    let client = connect().await;
    let schema = scratch.names.schema().unwrap();
    for whom in ["PUBLIC", "pg_monitor"] {
        let grant = format!("GRANT CREATE ON SCHEMA {schema} TO {whom}");
        client.batch_execute(&grant).await.unwrap();
        let error = scratch.store.migrate().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let revoke = format!("REVOKE CREATE ON SCHEMA {schema} FROM {whom};");
        assert!(error.to_string().contains(&revoke), "{error}");
        client.batch_execute(&revoke).await.unwrap();
    }
    assert_eq!(scratch.store.migrate().await.unwrap().len(), 1);
}

#[tokio::test]
async fn numbers_that_are_handed_out_otherwise_are_noticed() {
    let scratch = Scratch::new().await;
    for (change, remedy) in [
        ("ALTER SEQUENCE outbox_message_seq_seq CACHE 20", "CACHE 1;"),
        (
            "ALTER TABLE outbox_message DISABLE TRIGGER USER",
            "ENABLE TRIGGER USER;",
        ),
    ] {
        scratch.run(change).await;
        let error = scratch.store.check_schema().await.unwrap_err().to_string();
        let remedy = error
            .split('`')
            .find(|part| part.ends_with(remedy))
            .unwrap_or_else(|| panic!("{error}"));
        connect().await.batch_execute(remedy).await.unwrap();
        scratch.store.check_schema().await.unwrap();
    }
}

#[tokio::test]
async fn programs_that_migrate_at_once_do_it_once() {
    let scratch = Scratch::bare(&random_name(), |config| config).await;
    let stores: Vec<_> = (0..6).map(|_| scratch.again(|config| config)).collect();
    let migrating = stores
        .into_iter()
        .map(|store| tokio::spawn(async move { store.migrate().await }));
    let mut applied = 0;
    for task in migrating.collect::<Vec<_>>() {
        applied += task.await.unwrap().unwrap().len();
    }
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn tables_that_another_tool_created_are_adopted() {
    let scratch = Scratch::bare(&random_name(), |config| config).await;
    for migration in scratch.store.migrations() {
        scratch.sql.batch_execute(&migration.sql).await.unwrap();
    }
    scratch.store.check_schema().await.unwrap();
    assert!(scratch.store.migrate().await.unwrap().is_empty());
    assert_eq!(scratch.value("SELECT max(version) FROM outbox_migration").await, "1");
    scratch.emit(&[message("a")]).await;
}

#[tokio::test]
async fn newer_tables_and_changed_steps_are_left_alone() {
    let scratch = Scratch::new().await;
    scratch.run("UPDATE outbox_migration SET checksum = 'other'").await;
    let changed = scratch.store.migrate().await.unwrap_err();
    assert!(changed.to_string().contains("other SQL"), "{changed}");
    scratch
        .run("DELETE FROM outbox_migration; INSERT INTO outbox_migration VALUES (9, 'later', now(), 'x')")
        .await;
    let newer = scratch.store.migrate().await.unwrap_err();
    assert_eq!(newer.kind(), ErrorKind::SchemaTooNew);
    assert_eq!(
        scratch.store.check_schema().await.unwrap_err().kind(),
        ErrorKind::SchemaTooNew
    );
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_migration").await, "1");
}

#[tokio::test]
async fn tables_without_a_schema_are_where_the_search_path_leads() {
    let database = random_name();
    connect()
        .await
        .batch_execute(&format!("CREATE DATABASE {database}"))
        .await
        .unwrap();
    let mut url: tokio_postgres::Config = postgres_url().parse().unwrap();
    url.dbname(&database);
    let host = match &url.get_hosts()[0] {
        tokio_postgres::config::Host::Tcp(host) => host.clone(),
        other => panic!("the tests' server is not reached by TCP but by {other:?}"),
    };
    let url = format!(
        "postgres://{}@{host}:{}/{database}",
        url.get_user().unwrap(),
        url.get_ports()[0]
    );
    let store = PostgresStore::new(PostgresConfig::new(url)).unwrap();
    store.migrate().await.unwrap();
    let mut tx = sendoff::store::EmitStore::begin(&store).await.unwrap();
    tx.emit(&[message("a")]).await.unwrap();
    tx.commit().await.unwrap();
    let mut relay = Relay::new(store).await;
    assert_eq!(topics(&relay.read().await), ["a"]);
}
