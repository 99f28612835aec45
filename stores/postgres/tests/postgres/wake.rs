//! The wake-up ladder's second wake source, both halves.

use std::time::Duration;

use sendoff::Waker;
use sendoff::store::RelayStore;

use crate::scratch::Scratch;

#[tokio::test]
async fn a_commit_in_one_process_wakes_a_relay_in_another() {
    let scratch = Scratch::new().await;
    let mut source = scratch
        .store
        .listen()
        .await
        .unwrap()
        .expect("a direct connection can listen");
    let (waker, store) = (Waker::new(), scratch.store.clone());
    let shared = waker.clone();
    let notifier = tokio::spawn(async move { store.notify_on_wake(&shared).await });
    for _commit in 0..100 {
        waker.wake();
    }
    let heard = tokio::time::timeout(Duration::from_secs(10), source.woken()).await;
    heard.expect("a signal comes").unwrap();
    notifier.abort();
}
