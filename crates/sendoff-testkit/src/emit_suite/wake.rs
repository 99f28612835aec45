//! Cases: a commit wakes the relay.

use futures::FutureExt;

use super::EmitHarness;
use super::rows::rows;
use super::setup::message;

/// One call commits and wakes. Until then nobody is woken.
pub async fn a_commit_by_the_outbox_wakes_the_relay<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    let _ = harness.emit(&outbox, &mut tx, message("a")).await.unwrap();
    assert!(outbox.waker().woken().now_or_never().is_none());
    harness.commit_by(&outbox, tx).await;
    assert!(outbox.waker().woken().now_or_never().is_some());
    assert!(outbox.waker().woken().now_or_never().is_none(), "one commit wakes once");
    assert_eq!(rows(harness).await.len(), 1);
}
