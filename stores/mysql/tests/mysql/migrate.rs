//! Migrating where every statement is committed by itself.

use mysql_async::prelude::Queryable;
use sendoff::store::{MigrateStore, RelayStore};

use crate::scratch::{Scratch, connect, message};

/// MySQL does not roll a step back: the next one who migrates has to finish it.
#[tokio::test]
async fn a_migration_that_was_cut_off_anywhere_is_finished() {
    let script = Scratch::bare().await.store.migrations().remove(0).sql;
    let row_refs: Vec<usize> = script.match_indices("\nCREATE ").map(|(at, _)| at).collect();
    assert!(row_refs.len() > 15, "there is little to cut: {}", row_refs.len());
    // After each of its statements that create something, but for the last.
    for at in row_refs.iter().skip(1).step_by(3) {
        let scratch = Scratch::bare().await;
        let script = scratch.store.migrations().remove(0).sql;
        let begun = &script[..*at];
        // A step that drops something to create it anew may be cut off between the two.
        connect().await.query_drop(begun).await.unwrap();
        assert_eq!(scratch.store.migration_state().await.unwrap().applied, 0);
        scratch.store.migrate().await.unwrap();
        scratch.store.check_schema().await.unwrap();
        scratch.emit(&[message("a").idempotency_key("k")]).await;
        assert_eq!(scratch.store.backlog().await.unwrap().ready, 1);
        assert_eq!(scratch.value("SELECT count(*) FROM outbox_lane").await, "80");
        assert_eq!(scratch.value("SELECT count(*) FROM outbox_setting").await, "4");
    }
}

#[tokio::test]
async fn messages_outlive_a_second_run_of_the_whole_text() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a")]).await;
    connect()
        .await
        .query_drop(scratch.store.migrations().remove(0).sql)
        .await
        .unwrap();
    assert_eq!(scratch.store.backlog().await.unwrap().ready, 1);
}
