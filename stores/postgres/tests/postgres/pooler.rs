//! Everything works through a pooler that gives out a connection per transaction.

use std::time::Duration;

use sendoff::store::{Command, EmitStore, MigrateStore, OperateStore, RelayCard, RelayStore, RetryState, Verdict};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};

use crate::scratch::{Relay, Scratch, message, random_name, row_ref, server, topics};

fn pooled(scratch: &Scratch) -> PostgresStore {
    let url = server("SENDOFF_TEST_PGBOUNCER_URL");
    PostgresStore::new(PostgresConfig::new(url).names(scratch.names.clone())).unwrap()
}

#[tokio::test]
async fn a_whole_life_passes_through_the_pooler() {
    let scratch = Scratch::bare(&random_name(), |config| config).await;
    let store = pooled(&scratch);
    assert_eq!(store.migrate().await.unwrap().len(), 1);
    store.check_schema().await.unwrap();
    // Several relays at once share the server's connections.
    let mut relays = Vec::new();
    for _ in 0..4 {
        let store = pooled(&scratch);
        let owner = sendoff::store::OwnerId::random();
        store
            .register(owner, &RelayCard::named("pooled"), Duration::from_secs(60))
            .await
            .unwrap();
        store.heartbeat(owner, Duration::from_secs(60)).await.unwrap();
        store.deregister(owner).await.unwrap();
        relays.push(store);
    }
    let mut tx = store.begin().await.unwrap();
    let messages: Vec<_> = (0..200).map(|n| message("m").key(n % 20)).collect();
    tx.emit(&messages).await.unwrap();
    tx.emit(&[message("once").idempotency_key("k")]).await.unwrap();
    tx.commit().await.unwrap();
    let mut relay = Relay::new(store.clone()).await;
    let (mut delivered, mut failed) = (0, false);
    while delivered < 201 {
        let found = relay.next().await;
        let mut settlements = Vec::new();
        for outgoing in &found {
            let fail = !failed && outgoing.topic == "once";
            failed |= fail;
            let retry = Verdict::Retry {
                state: RetryState::Retry,
                delay: Duration::ZERO,
                charged: true,
                error: "no".to_owned(),
            };
            let deliveries = if fail { vec![("s", retry)] } else { vec![] };
            delivered += usize::from(!fail);
            settlements.push(relay.settlement(outgoing, &deliveries));
        }
        assert!(relay.settle_all(&settlements).await.lost.is_empty());
    }
    assert!(failed);
    store
        .quarantine(relay.owner, 1, &[row_ref(1, 1, Some("s"))])
        .await
        .unwrap();
    assert_eq!(store.summary().await.unwrap(), Default::default());
    assert_eq!(
        store
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("alice"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(store.list(&Default::default(), 10).await.unwrap().messages.len(), 0);
}

#[tokio::test]
async fn a_held_transaction_is_waited_for_through_the_pooler() {
    let scratch = Scratch::new().await;
    let mut relay = Relay::new(pooled(&scratch)).await;
    let mut slow = pooled(&scratch).begin().await.unwrap();
    slow.emit(&[message("slow").key("k")]).await.unwrap();
    for _ in 0..50 {
        scratch.emit(&[message("quick")]).await;
        let found = relay.read().await;
        relay.deliver(&found).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    slow.commit().await.unwrap();
    scratch.emit(&[message("after").key("k")]).await;
    let found = relay.next().await;
    assert_eq!(topics(&found), ["slow", "after"]);
}

#[tokio::test]
async fn nobody_is_promised_wake_ups_that_a_pooler_swallows() {
    let scratch = Scratch::new().await;
    let through_pooler = pooled(&scratch).listen().await.unwrap();
    assert!(through_pooler.is_none());
    let switched_off = scratch.again(|config| config.listen(false));
    assert!(switched_off.listen().await.unwrap().is_none());
}
