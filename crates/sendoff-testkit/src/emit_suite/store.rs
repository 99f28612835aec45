//! Cases: what is written, and when.

use std::time::{Duration, SystemTime};

use sendoff::emit::Dialect;
use sendoff::{Emitted, Event, Message};

use super::EmitHarness;
use super::rows::{hex, ids, rows};
use super::setup::message;

/// Commit: the message is in the outbox.
pub async fn a_committed_message_is_there<H: EmitHarness>(harness: &H) {
    let message = message("order.placed").key("k");
    let mut tx = harness.begin().await;
    let emitted = harness.emit(&harness.outbox(), &mut tx, message.clone()).await.unwrap();
    assert_eq!(emitted, Emitted::Stored { id: message.id() });
    harness.commit(tx).await;
    let rows = rows(harness).await;
    assert_eq!(ids(&rows), [message.id()]);
    assert_eq!(rows[0]["status"], "pending");
}

/// Rollback: there is no message, whichever statement emitted it.
pub async fn a_rolled_back_message_never_existed<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    let _ = harness.emit(&outbox, &mut tx, message("a")).await.unwrap();
    let _ = harness
        .emit_many(&outbox, &mut tx, vec![message("b"), message("c")])
        .await
        .unwrap();
    let _ = harness
        .emit(&outbox, &mut tx, message("d").idempotency_key("k"))
        .await
        .unwrap();
    harness.rollback(tx).await;
    assert!(rows(harness).await.is_empty());
}

/// Every field arrives in its column, set or not, from each of the statements.
pub async fn every_field_is_stored<H: EmitHarness>(harness: &H) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_micros(4_102_444_800_123_456);
    let event = || {
        Event::new("order", 42, "order.placed")
            .schema_version(3)
            .header("tenant", "acme")
    };
    let full = |event: Event| {
        let message = Message::from(event)
            .available_at(at)
            .expires_at(at + Duration::from_secs(1));
        message.priority(-7).max_attempts(9)
    };
    let bare = || Message::bytes("bare", "text/plain", "x");
    let mut tx = harness.begin().await;
    for message in [full(event()), bare(), full(event().repeatable())] {
        let _ = harness.emit(&harness.outbox(), &mut tx, message).await.unwrap();
    }
    let many = vec![bare(), full(event().repeatable())];
    let _ = harness.emit_many(&harness.outbox(), &mut tx, many).await.unwrap();
    harness.commit(tx).await;

    let rows = rows(harness).await;
    let topics: Vec<_> = rows.iter().map(|row| row["topic"].as_str().unwrap()).collect();
    assert_eq!(topics, ["order.placed", "bare", "order.placed", "bare", "order.placed"]);
    assert_eq!(rows[0]["idempotency_key"], "order:42");
    for mut row in rows {
        let expected = if row["topic"] == "bare" {
            serde_json::json!({
                "topic": "bare", "payload": hex(b"x"), "content_type": "text/plain", "headers": null, "key": null,
                "aggregate_type": null, "aggregate_id": null, "schema_version": null, "available_at": null,
                "expires_at": null, "priority": 0, "max_attempts": null, "status": "pending", "detail": null,
            })
        } else {
            serde_json::json!({
                "topic": "order.placed", "payload": hex(b"{}"), "content_type": null, "headers": {"tenant": "acme"},
                "key": "order:42", "aggregate_type": "order", "aggregate_id": "42", "schema_version": 3,
                "available_at": 4_102_444_800_123_456_i64, "expires_at": 4_102_444_801_123_456_i64, "priority": -7,
                "max_attempts": 9, "status": "scheduled", "detail": "scheduled",
            })
        };
        let object = row.as_object_mut().unwrap();
        object.remove("id");
        object.remove("idempotency_key");
        assert_eq!(row, expected);
    }
}

/// What is to come later is not among the messages that are ready.
pub async fn scheduled_messages_wait<H: EmitHarness>(harness: &H) {
    let hour = Duration::from_secs(3600);
    let later = || {
        vec![
            message("a").delay(hour),
            message("a").available_at(SystemTime::now() + hour),
        ]
    };
    let earlier = || message("b").available_at(SystemTime::UNIX_EPOCH);
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    for message in later() {
        let _ = harness.emit(&outbox, &mut tx, message).await.unwrap();
    }
    let _ = harness.emit_many(&outbox, &mut tx, later()).await.unwrap();
    let _ = harness
        .emit(&outbox, &mut tx, message("a").delay(hour).idempotency_key("k"))
        .await
        .unwrap();
    let _ = harness.emit(&outbox, &mut tx, earlier()).await.unwrap();
    harness.commit(tx).await;
    let select = |table| harness.sql(&format!("SELECT topic FROM outbox_{table}"));
    assert_eq!(harness.texts(&select("waiting")).await, ["a"; 5]);
    assert_eq!(harness.texts(&select("message")).await, ["b"]);
    let early = "SELECT topic FROM outbox_waiting WHERE due_at IS NULL OR due_at < ";
    let soon = match H::DIALECT {
        Dialect::Postgres => "now() + interval '59 minutes'",
        Dialect::Mysql => "UTC_TIMESTAMP() + INTERVAL 59 MINUTE",
        _ => "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + 3540000000",
    };
    assert!(harness.texts(&harness.sql(&format!("{early}{soon}"))).await.is_empty());
}
