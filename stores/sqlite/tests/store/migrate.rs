use sendoff::ErrorKind;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, MigrationState, OperateStore, RelayStore};

use crate::outbox::{TestOutbox, text};

#[tokio::test]
async fn migrating_twice_changes_nothing_the_second_time() {
    let outbox = TestOutbox::unmigrated(|config| config);
    let needed = MigrationState { applied: 0, needed: 1 };
    assert_eq!(outbox.store.migration_state().await.unwrap(), needed);
    assert_eq!(
        outbox.store.check_schema().await.unwrap_err().kind(),
        ErrorKind::SchemaMissing
    );
    assert!(!outbox.path().exists(), "asking creates no file");
    assert_eq!(outbox.store.migrate().await.unwrap(), outbox.store.migrations());
    assert_eq!(outbox.store.migrate().await.unwrap(), []);
    outbox.store.check_schema().await.unwrap();
    assert_eq!(outbox.ask::<String>("PRAGMA journal_mode"), "wal");
    assert_eq!(
        outbox.ask::<i64>("SELECT count(*) FROM outbox_lane"),
        i64::from(outbox.store.lanes())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_programs_may_migrate_at_once() {
    let outbox = TestOutbox::unmigrated(|config| config);
    let migrations = (0..6)
        .map(|_| outbox.another())
        .map(|store| tokio::spawn(async move { store.migrate().await }));
    let mut applied = 0;
    for migration in migrations.collect::<Vec<_>>() {
        applied += migration.await.unwrap().unwrap().len();
    }
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn tables_that_are_not_there_are_said_to_be_missing() {
    let outbox = TestOutbox::unmigrated(|config| config);
    assert_eq!(
        outbox.store.backlog().await.unwrap_err().kind(),
        ErrorKind::SchemaMissing
    );
    outbox.run("CREATE TABLE own (id INTEGER)");
    let error = outbox.store.backlog().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMissing);
    assert!(error.to_string().contains("sendoff migrate"), "{error}");
    outbox.store.migrate().await.unwrap();
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn tables_that_somebody_created_with_another_tool_are_adopted() {
    let outbox = TestOutbox::unmigrated(|config| config);
    for migration in outbox.store.migrations() {
        outbox.run(&migration.sql);
    }
    outbox.store.check_schema().await.unwrap();
    outbox.emit(&[text("a")]).await;
    assert_eq!(outbox.store.migrate().await.unwrap(), []);
    assert_eq!(outbox.ask::<i64>("SELECT max(version) FROM outbox_migration"), 1);
    assert_eq!(outbox.store.summary().await.unwrap().ready, 1);
}

#[tokio::test]
async fn tables_that_are_half_there_are_not_touched() {
    let outbox = TestOutbox::new().await;
    outbox.run("DROP TABLE outbox_migration; DROP TABLE outbox_dead");
    let error = outbox.store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("outbox_dead"), "{error}");
    let ledgers = "SELECT count(*) FROM sqlite_schema WHERE name = 'outbox_migration'";
    assert_eq!(outbox.ask::<i64>(ledgers), 0);
}

#[tokio::test]
async fn newer_tables_are_left_alone() {
    let outbox = TestOutbox::new().await;
    outbox.run("INSERT INTO outbox_migration (version, name, checksum) VALUES (99, 'future', '')");
    assert_eq!(
        outbox.store.migrate().await.unwrap_err().kind(),
        ErrorKind::SchemaTooNew
    );
    assert_eq!(
        outbox.store.check_schema().await.unwrap_err().kind(),
        ErrorKind::SchemaTooNew
    );
}

#[tokio::test]
async fn a_step_that_was_changed_after_it_was_applied_is_found_out() {
    let outbox = TestOutbox::new().await;
    outbox.run("UPDATE outbox_migration SET checksum = 'another'");
    let error = outbox.store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.next().is_some());
}

#[tokio::test]
async fn two_outboxes_with_different_prefixes_share_a_file() {
    let outbox = TestOutbox::new().await;
    let config = outbox.store.config().clone().names(Names::new(None, "shop_").unwrap());
    let shop = sendoff_store_sqlite::SqliteStore::new(config).unwrap();
    shop.migrate().await.unwrap();
    outbox.emit(&[text("a")]).await;
    let mut relay = crate::outbox::TestRelay::start(&shop).await;
    assert!(relay.read().await.is_empty());
    outbox.run("INSERT INTO shop_message (topic, payload) VALUES ('t', 'b')");
    let row = relay.outgoing().await.pop().unwrap();
    assert_eq!(row.payload, "b");
    relay.settle(&row, &[]).await;
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 1);
}
