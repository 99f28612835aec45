//! Cases: jobs go the same way as messages.

use std::time::Duration;

use sendoff::{Emitted, ErrorKind, Event, Message, Outbox};

use super::EmitHarness;
use super::rows::{hex, rows};
use super::setup::message;

/// Jobs are emitted by each of the statements, into a table of their own, and are gone after a rollback.
pub async fn jobs_are_emitted_like_messages<H: EmitHarness>(harness: &H) {
    let jobs = Outbox::builder().names(harness.names().clone()).jobs().build();
    let mut tx = harness.begin().await;
    let _ = harness.emit(&jobs, &mut tx, message("never")).await.unwrap();
    harness.rollback(tx).await;

    let mut tx = harness.begin().await;
    let one = Message::bytes("one", "x/y", vec![0, 255]).header("tenant", "acme");
    let _ = harness.emit(&jobs, &mut tx, one).await.unwrap();
    let _ = harness
        .emit_many(&jobs, &mut tx, vec![message("two"), message("three")])
        .await
        .unwrap();
    let once = message("once").idempotency_key("k");
    let first = once.id();
    let emitted = harness.emit(&jobs, &mut tx, once).await.unwrap();
    assert_eq!(emitted, Emitted::Stored { id: first });
    let again = harness.emit(&jobs, &mut tx, message("once").idempotency_key("k")).await;
    assert_eq!(again.unwrap(), Emitted::Duplicate { first });
    let event = || Event::new("order", 42, "event");
    let _ = harness.emit(&jobs, &mut tx, event().into()).await.unwrap();
    let error = harness.emit(&jobs, &mut tx, event().into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    let later = message("later").delay(Duration::from_secs(3600));
    let _ = harness.emit(&jobs, &mut tx, later).await.unwrap();
    harness.commit(tx).await;

    let texts = async |sql: &str| harness.texts(&harness.sql(sql)).await;
    let topics = "SELECT topic FROM outbox_job WHERE state = 'pending' ORDER BY seq";
    assert_eq!(texts(topics).await, ["one", "two", "three", "once", "event", "later"]);
    let due = "SELECT topic FROM outbox_job WHERE available_at IS NULL OR next_attempt_at < available_at ORDER BY seq";
    assert_eq!(texts(due).await, ["one", "two", "three", "once", "event"]);
    let payload = match H::DIALECT {
        sendoff::emit::Dialect::Postgres => "SELECT encode(payload, 'hex') FROM outbox_job WHERE topic = 'one'",
        _ => "SELECT lower(hex(payload)) FROM outbox_job WHERE topic = 'one'",
    };
    assert_eq!(texts(payload).await, [hex(&[0, 255])]);
    assert!(rows(harness).await.is_empty(), "no relay sees any of them");
}
