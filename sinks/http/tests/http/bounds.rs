//! Limits on concurrent requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sendoff::{Outcome, Sink};
use sendoff_sink_http::HttpSink;

use crate::message::{config, messages, sink};
use crate::server::{Server, answer};

#[tokio::test]
async fn a_host_sees_no_more_requests_at_once_than_allowed_and_connections_are_used_again() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(None, move |_| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            answer(200)
        }
    })
    .await;
    let mut config = config(&server.url());
    config.requests_per_host = 4;
    let sink = HttpSink::new(config).unwrap();
    // Two concurrent batches share the limit.
    let (batch, other) = (messages(20), messages(20));
    let (one, two) = tokio::join!(sink.publish(&batch), sink.publish(&other));
    assert!(one.iter().chain(&two).all(|outcome| *outcome == Outcome::Delivered));
    assert_eq!(most.load(Ordering::SeqCst), 4, "exactly the limit");
    assert_eq!(server.seen().len(), 40);
    assert!(
        server.connections() <= 4,
        "{} connections for 40 requests",
        server.connections()
    );
}

#[tokio::test]
async fn a_publish_that_is_dropped_does_not_poison_the_next() {
    let slow = Arc::new(AtomicUsize::new(1));
    let is_slow = Arc::clone(&slow);
    let server = Server::start(None, move |_| {
        let wait = is_slow.load(Ordering::SeqCst) == 1;
        async move {
            if wait {
                tokio::time::sleep(Duration::from_secs(600)).await;
            }
            answer(200)
        }
    })
    .await;
    let sink = sink(&server.url());
    let batch = messages(40);
    let dropped = tokio::time::timeout(Duration::from_millis(300), sink.publish(&batch)).await;
    assert!(dropped.is_err());
    slow.store(0, Ordering::SeqCst);
    let outcomes = sink.publish(&batch).await;
    assert!(
        outcomes.iter().all(|outcome| *outcome == Outcome::Delivered),
        "{outcomes:?}"
    );
}
