//! Text: keys that look alike, and every character there is.

use std::time::Duration;

use sendoff::Message;
use sendoff::store::{RelayStore, RetryState, Verdict};

use crate::scratch::{Scratch, message};

fn retry() -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay: Duration::from_secs(3600),
        charged: true,
        error: "no 🔑".to_owned(),
    }
}

/// Every collation that MySQL and MariaDB share takes some of these for equal.
#[tokio::test]
async fn keys_that_differ_by_case_accent_or_trailing_space_are_different_keys() {
    let scratch = Scratch::new().await;
    let alike = ["key", "KEY", "key ", "kéy", "ke\u{301}y", "key\u{a0}", "🔑", "🗝"];
    for key in alike {
        scratch
            .emit(&[message("head").key(key), message("follower").key(key)])
            .await;
    }
    let mut relay = scratch.relay().await;
    let read = relay.read(2 * alike.len()).await;
    let of = |topic: &str, key: &str| {
        let fits = |d: &&sendoff::Outgoing| d.topic == topic && d.key.as_deref() == Some(key);
        read.iter().find(fits).unwrap()
    };
    // The head of one key fails and its follower is held. Every other key is free.
    relay.settle(of("head", "key"), &[("sink", retry())]).await;
    relay.settle(of("follower", "key"), &[("sink", Verdict::Blocked)]).await;
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    let blocked = relay.store.blocked_keys(&lanes).await.unwrap();
    assert_eq!(blocked.iter().map(|key| &*key.key).collect::<Vec<_>>(), ["key"]);
    for key in &alike[1..] {
        relay.settle(of("head", key), &[("sink", retry())]).await;
        relay.settle(of("follower", key), &[("sink", Verdict::Blocked)]).await;
    }
    assert_eq!(relay.store.blocked_keys(&lanes).await.unwrap().len(), alike.len());
    let held = "SELECT count(*) FROM outbox_waiting WHERE state = 'blocked' AND due_at IS NULL";
    assert_eq!(scratch.value(held).await, alike.len().to_string());
}

/// Keys that look alike are mostly in different lanes, which would hide it if they were taken for one another.
#[tokio::test]
async fn keys_that_look_alike_do_not_hold_each_other_in_one_lane() {
    let scratch = Scratch::new().await;
    let pairs: Vec<_> = (0..300).map(|n| (format!("key {n}"), format!("key {n} "))).collect();
    let messages = pairs
        .iter()
        .flat_map(|(one, other)| [message("one").key(one), message("other").key(other)]);
    scratch.emit(&messages.collect::<Vec<_>>()).await;
    let mut relay = scratch.relay().await;
    let read = relay.read(600).await;
    let of = |key: &str| {
        read.iter()
            .find(|outgoing| outgoing.key.as_deref() == Some(key))
            .unwrap()
    };
    let mut compared = 0;
    for (one, other) in &pairs {
        let (one, other) = (of(one), of(other));
        if one.row_ref.lane == other.row_ref.lane {
            relay.settle(one, &[("sink", retry())]).await;
            assert!(
                relay.settle(other, &[("sink", Verdict::Blocked)]).await.woke,
                "nothing holds {:?}",
                other.key
            );
            compared += 1;
        }
    }
    assert!(compared > 0, "no pair is in one lane");
}

#[tokio::test]
async fn idempotency_keys_that_look_alike_are_different_keys() {
    let scratch = Scratch::new().await;
    for key in ["key", "KEY", "key ", "kéy"] {
        scratch
            .emit(&[message("t").idempotency_key(key), message("t ").idempotency_key(key)])
            .await;
    }
    assert_eq!(scratch.store.backlog().await.unwrap().ready, 8);
}

#[tokio::test]
async fn payloads_of_any_bytes_and_texts_of_any_characters_come_back() {
    let scratch = Scratch::new().await;
    let payload: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let odd = "'\"\\ % _ ; -- 🔑\u{10ffff}\n\t ";
    let make = || {
        Message::bytes(odd, odd, payload.clone())
            .key(odd)
            .header(odd, odd)
            .header("empty", "")
    };
    scratch.emit(&[make()]).await;
    scratch
        .emit(&[make(), make(), Message::bytes("empty", "x/y", Vec::new())])
        .await;
    scratch.emit(&[make().idempotency_key(odd)]).await;
    let mut relay = scratch.relay().await;
    let read = relay.read(5).await;
    for outgoing in read.iter().filter(|outgoing| outgoing.topic != "empty") {
        assert_eq!((outgoing.topic.as_str(), outgoing.key.as_deref()), (odd, Some(odd)));
        assert_eq!(outgoing.content_type(), odd);
        assert_eq!(outgoing.headers.get(odd), Some(odd));
        assert_eq!(outgoing.payload, payload);
    }
    for outgoing in &read {
        relay.settle(outgoing, &[(odd, retry())]).await;
    }
    let error = "SELECT DISTINCT last_error FROM outbox_waiting";
    assert_eq!(scratch.value(error).await, "no 🔑");
    scratch.run("UPDATE outbox_waiting SET due_at = UTC_TIMESTAMP(6)").await;
    for outgoing in relay.read(5).await {
        assert_eq!(outgoing.row_ref.sink.as_deref(), Some(odd));
        assert!(outgoing.topic == "empty" || outgoing.payload == payload);
    }
}
