use std::time::Duration;

use sendoff::store::WorkStore;

use crate::outbox::{TestOutbox, text};

#[tokio::test]
async fn a_claim_fits_no_other_even_where_a_restored_backup_forgot_it() {
    let outbox = TestOutbox::new().await;
    let mut transaction = outbox.store.begin_jobs().await.unwrap();
    transaction.emit(&[text("a")]).await.unwrap();
    transaction.commit().await.unwrap();
    let claim = async || {
        let jobs = outbox.store.claim_batch("worker", 1, Duration::from_secs(60)).await;
        jobs.unwrap().pop().unwrap().claim
    };
    let before = claim().await;
    assert!(before.number > 0);
    outbox.run(
        "UPDATE outbox_job SET state = 'pending', claim = 0, attempts = 0, lease_owner = NULL, lease_until = NULL,
             next_attempt_at = 1",
    );
    let after = claim().await;
    assert_eq!(after.seq, before.seq);
    assert_eq!(outbox.store.mark_success("worker", &[before]).await.unwrap(), [before]);
    assert_eq!(outbox.store.mark_success("worker", &[after]).await.unwrap(), []);
}
