//! What the reader promises about transactions that commit late.

use sendoff::store::EmitStore;

use crate::scratch::{Scratch, message, topics};

/// The case that a reader with a floor gets wrong: the late one commits, and only then its follower begins.
#[tokio::test]
async fn a_follower_of_a_late_commit_never_overtakes_it() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    for _ in 0..5 {
        let mut late = scratch.store.begin().await.unwrap();
        late.emit(&[message("late").key("k")]).await.unwrap();
        // Many that got higher numbers are read and settled meanwhile.
        for _ in 0..20 {
            scratch
                .emit(&[message("other").key("k2"), message("same").key("k")])
                .await;
            for outgoing in relay.read(2).await {
                relay.settle(&outgoing, &[]).await;
            }
        }
        late.commit().await.unwrap();
        scratch.emit(&[message("follower").key("k")]).await;
        let read = relay.read(2).await;
        assert_eq!(topics(&read), ["late", "follower"]);
        for outgoing in &read {
            relay.settle(outgoing, &[]).await;
        }
    }
}

/// More rows in flight than a page holds must not hide what is behind them, nor a late one among them.
#[tokio::test]
async fn rows_in_flight_hide_neither_what_is_behind_nor_what_is_among_them() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    let mut late = scratch.store.begin().await.unwrap();
    late.emit(&[message("late").key("k0")]).await.unwrap();
    let many = |n: usize| -> Vec<_> { (0..n).map(|n| message("m").key(format!("k{}", n % 5))).collect() };
    scratch.emit(&many(300)).await;
    let mut read = 0;
    while read < 300 {
        let page = relay.page(20).await;
        assert!(!page.rows.is_empty() && page.rows.len() <= 100, "{}", page.rows.len());
        read += page.rows.len();
    }
    assert!(relay.page(20).await.rows.is_empty());
    scratch.emit(&many(10)).await;
    late.commit().await.unwrap();
    let rest = relay.read(11).await;
    let of_k0: Vec<_> = rest
        .iter()
        .filter(|d| d.key.as_deref() == Some("k0"))
        .cloned()
        .collect();
    assert_eq!(topics(&of_k0), ["late", "m", "m"]);
}

#[tokio::test]
async fn urgent_messages_overtake_a_backlog_and_a_hot_key_gets_full_pages() {
    let scratch = Scratch::new().await;
    let hot: Vec<_> = (0..3000).map(|_| message("hot").key("hot")).collect();
    scratch.emit(&hot).await;
    scratch.emit(&[message("urgent").priority(5)]).await;
    let mut relay = scratch.relay().await;
    let first = relay.page(100).await;
    let sendoff::store::Row::Message(urgent) = &first.rows[0] else {
        panic!("{:?}", first.rows[0]);
    };
    assert_eq!(urgent.topic, "urgent");
    let (mut pages, mut read) = (1, first.rows.len());
    while read < 3001 {
        let page = relay.page(100).await;
        assert!(page.more || read + page.rows.len() == 3001);
        (pages, read) = (pages + 1, read + page.rows.len());
    }
    assert!(pages < 60, "{pages} pages");
}
