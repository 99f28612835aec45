//! Jobs after a failover.

use sendoff::ErrorKind;
use sendoff::store::WorkStore;

use crate::scratch::{LEASE, Scratch};

/// A replica that takes over without the last jobs gives their numbers a second time, and counts their hand-outs anew.
#[tokio::test]
async fn a_claim_from_before_a_failover_does_not_touch_the_job_with_its_numbers() {
    let scratch = Scratch::new().await;
    let claimed = async |topic| {
        let insert = format!("INSERT INTO outbox_job (topic, payload) VALUES ('{topic}', 'x')");
        scratch.run(&insert).await;
        let jobs = scratch.store.claim_batch("one", 10, LEASE).await.unwrap();
        let [job] = <[_; 1]>::try_from(jobs).unwrap();
        job
    };
    let old = claimed("old").await;
    // What such a replica knows.
    scratch.run("TRUNCATE TABLE outbox_job").await;
    let new = claimed("new").await;
    assert_ne!(old.id, new.id);

    let job = "SELECT concat_ws(' ', topic, state, lease_owner, attempts, lease_until, next_attempt_at, last_error) \
                FROM outbox_job";
    let before = scratch.value(job).await;
    let store = &scratch.store;
    assert_eq!(store.extend("one", &[old.claim], 2 * LEASE).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    let retried = store.mark_retry("one", old.claim, LEASE, "of the old one").await;
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(retried.unwrap_err().kind(), ErrorKind::LeaseLost);
    let failed = store.mark_failed("one", old.claim, "of the old one").await;
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(store.release("one", &[old.claim]).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(store.mark_success("one", &[old.claim]).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(store.mark_success("one", &[new.claim]).await.unwrap(), []);
}
