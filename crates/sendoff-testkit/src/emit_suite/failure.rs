//! Cases: what goes wrong.

use std::error::Error as _;

use sendoff::{ErrorKind, Message, Outbox};

use super::EmitHarness;
use super::rows::hex;
use super::setup::nowhere;

/// Without tables the error says what to run, and keeps the driver's own; the payload is in neither.
pub async fn a_missing_table_is_explained<H: EmitHarness>(harness: &H) {
    let outbox = Outbox::builder().names(nowhere()).build();
    let secret = || Message::json("a", &"hunter2").unwrap();
    for messages in [
        vec![secret()],
        vec![secret(), secret()],
        vec![secret().idempotency_key("k")],
    ] {
        let mut tx = harness.begin().await;
        let error = harness.emit_many(&outbox, &mut tx, messages).await.unwrap_err();
        harness.rollback(tx).await;
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("`sendoff migrate`"), "{error}");
        assert!(error.to_string().contains("nowhere_"), "{error}");
        assert!(error.source().is_some_and(H::is_driver_error), "{error:?}");
        let shown = format!("{error:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains(&hex(b"hunter2")),
            "{shown}"
        );
    }
}
