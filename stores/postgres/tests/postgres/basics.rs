//! The way of a message through the tables.

use std::time::Duration;

use sendoff::store::{DeadReason, RelayStore, RetryState, Verdict};

use crate::scratch::{Scratch, message, topics};

fn retry(delay: Duration) -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay,
        charged: true,
        error: "refused".to_owned(),
    }
}

#[tokio::test]
async fn a_message_is_read_once_and_gone_when_it_is_delivered() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k"), message("b").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    assert_eq!(topics(&found), ["a", "b"]);
    assert_eq!(found[0].payload.as_ref(), b"a");
    assert!(relay.read().await.is_empty(), "what is in hand is not returned again");
    let report = relay.deliver(&found).await;
    assert_eq!(report, Default::default());
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn a_failed_message_waits_comes_back_and_dies_with_its_history() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    let report = relay.settle(&found[0], &[("shop", retry(Duration::ZERO))]).await;
    assert!(report.woke, "it is due at once");
    let again = relay.next().await;
    assert_eq!((again[0].attempts, again[0].place.leg.as_deref()), (1, Some("shop")));
    let dead = Verdict::Dead {
        reason: DeadReason::Exhausted,
        error: "gave up".to_owned(),
        charged: true,
        blocks: true,
    };
    relay.settle(&again[0], &[("shop", dead)]).await;
    let row = "SELECT concat_ws(' ', attempts, reason, last_error, blocks, jsonb_array_length(history), history -> 1 ->> 'error') FROM outbox_dead";
    assert_eq!(scratch.value(row).await, "2 exhausted gave up t 2 gave up");
    let blocked = scratch.store.blocked_keys(&[found[0].place.lane]).await.unwrap();
    assert_eq!((blocked.len(), &*blocked[0].key, &*blocked[0].leg), (1, "k", "shop"));
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!(
        (backlog.ready, backlog.due, backlog.waiting, backlog.dead),
        (0, 0, 0, 1)
    );
}
