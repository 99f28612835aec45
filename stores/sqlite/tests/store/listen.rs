use std::time::Duration;

use sendoff::store::RelayStore;

use crate::outbox::{TestOutbox, text};

#[tokio::test]
async fn a_commit_of_another_connection_wakes() {
    let outbox = TestOutbox::new().await;
    let mut source = outbox.store.listen().await.unwrap().unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(30), source.woken()).await;
    assert!(quiet.is_err(), "nothing was committed");
    outbox.emit(&[text("a")]).await;
    tokio::time::timeout(Duration::from_secs(10), source.woken())
        .await
        .unwrap()
        .unwrap();
    let plain = outbox.plain();
    plain
        .execute_batch("BEGIN; INSERT INTO outbox_message (topic, payload) VALUES ('t', 'x')")
        .unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(30), source.woken()).await;
    assert!(quiet.is_err(), "nothing more was committed");
    plain.execute_batch("COMMIT").unwrap();
    tokio::time::timeout(Duration::from_secs(10), source.woken())
        .await
        .unwrap()
        .unwrap();
}
