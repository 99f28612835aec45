//! The server of the tests is not in UTC, and a session may be in yet another zone.

use std::time::{Duration, SystemTime};

use mysql_async::prelude::Queryable;
use sendoff::store::{Filter, OperateStore, RelayStore};

use crate::scratch::{Scratch, connect, message};

#[tokio::test]
async fn times_are_in_utc_whatever_the_zone_of_server_and_session() {
    let scratch = Scratch::new().await;
    let zone: Option<String> = connect().await.query_first("SELECT @@time_zone").await.unwrap();
    let mut far = connect().await;
    far.query_drop("SET time_zone = '-08:00'").await.unwrap();
    let insert = scratch
        .names
        .render("INSERT INTO outbox_message (topic, payload) VALUES ('far', 'x')");
    far.query_drop(insert).await.unwrap();
    let hour = Duration::from_secs(3600);
    let at = SystemTime::now() + hour;
    scratch
        .emit(&[
            message("delayed").delay(hour),
            message("at").available_at(at),
            message("now").expires_at(at),
        ])
        .await;
    let listed = scratch.store.list(&Filter::default(), 10).await.unwrap().messages;
    assert_eq!(listed.len(), 4);
    for stored in &listed {
        let age = stored.created_at.elapsed().unwrap_or_default();
        assert!(age < Duration::from_secs(60), "{} in {zone:?}: {age:?}", stored.topic);
        if let Some(due) = stored.due_at {
            let wait = due.duration_since(SystemTime::now()).unwrap();
            assert!(wait > hour - Duration::from_secs(60) && wait <= hour, "{wait:?}");
        }
    }
    let read = scratch.relay().await.read(2).await;
    let expires = read.iter().find_map(|outgoing| outgoing.expires_at).unwrap();
    let off = expires.duration_since(at).unwrap_or_else(|before| before.duration());
    assert!(off < Duration::from_millis(1), "{off:?}");
    let summary = scratch.store.summary().await.unwrap();
    assert!(summary.oldest_ready.unwrap() < Duration::from_secs(60));
    assert_eq!(scratch.store.evict().await.unwrap(), 0, "a fresh lease has not run out");
}
