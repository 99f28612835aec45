//! Cases: many messages at once.

use sendoff::emit::Dialect;
use sendoff::{Emitted, Message};

use super::EmitHarness;
use super::rows::{hex, ids, rows};

/// The order of the messages is the order of their `seq`; on PostgreSQL it takes one statement.
pub async fn a_thousand_messages_are_one_statement_in_order<H: EmitHarness>(harness: &H) {
    note_statements(harness).await;
    let messages: Vec<_> = (0..1000).map(mixed).collect();
    let expected: Vec<_> = messages.iter().map(Message::id).collect();
    let mut tx = harness.begin().await;
    let emitted = harness
        .emit_many(&harness.outbox(), &mut tx, messages.clone())
        .await
        .unwrap();
    harness.commit(tx).await;
    assert_eq!(
        emitted.into_vec(),
        expected.iter().map(|&id| Emitted::Stored { id }).collect::<Vec<_>>()
    );
    let rows = rows(harness).await;
    assert_eq!(ids(&rows), expected);
    for (row, message) in rows.iter().zip(&messages) {
        assert_eq!(row["key"].as_str(), message.ordering_key());
        assert_eq!(row["payload"], hex(message.payload()));
        assert_eq!(
            row["headers"].as_object().map(serde_json::Map::len).unwrap_or_default(),
            message.headers_ref().len()
        );
    }
    one_statement(harness).await;
}

/// As [`a_thousand_messages_are_one_statement_in_order`], with duplicates among them.
pub async fn a_thousand_messages_with_idempotency_keys_are_stored_in_order<H: EmitHarness>(harness: &H) {
    note_statements(harness).await;
    // Of every ten messages two have a key, the second one the key of the first.
    let message = |number: usize| match number % 10 {
        3 | 7 => mixed(number).idempotency_key(number / 10),
        _ => mixed(number),
    };
    let messages: Vec<_> = (0..1000).map(message).collect();
    let mut tx = harness.begin().await;
    let emitted = harness
        .emit_many(&harness.outbox(), &mut tx, messages.clone())
        .await
        .unwrap();
    harness.commit(tx).await;
    for (number, emitted) in emitted.iter().enumerate() {
        let expected = match number % 10 {
            7 => Emitted::Duplicate {
                first: messages[number - 4].id(),
            },
            _ => Emitted::Stored {
                id: messages[number].id(),
            },
        };
        assert_eq!(*emitted, expected, "{number}");
    }
    let stored = messages
        .iter()
        .zip(&emitted)
        .filter(|(_, emitted)| !emitted.is_duplicate());
    assert_eq!(
        ids(&rows(harness).await),
        stored.map(|(message, _)| message.id()).collect::<Vec<_>>()
    );
    one_statement(harness).await;
}

/// Messages of which neighbours differ in what they leave out.
fn mixed(number: usize) -> Message {
    let payload = vec![0xf0; number % 7];
    let mut message = Message::bytes("t", "x/y", payload);
    if number.is_multiple_of(2) {
        message = message.key(number % 5);
    }
    for header in 0..number % 3 {
        message = message.header(format!("h{header}"), "v");
    }
    message
}

/// From now on every message notes which statement emitted it. PostgreSQL only: SQLite does not tell, and is in the same
/// process.
async fn note_statements<H: EmitHarness>(harness: &H) {
    if H::DIALECT == Dialect::Postgres {
        let column = "ALTER TABLE outbox_message ADD COLUMN statement_at timestamptz DEFAULT statement_timestamp()";
        harness.execute(&harness.sql(column)).await;
    }
}

async fn one_statement<H: EmitHarness>(harness: &H) {
    if H::DIALECT == Dialect::Postgres {
        let statements = "SELECT DISTINCT statement_at::text FROM outbox_message";
        let statements = harness.texts(&harness.sql(statements)).await;
        assert_eq!(statements.len(), 1, "{statements:?}");
    }
}
