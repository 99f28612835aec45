//! Cases: hooks, and what goes wrong.

use std::error::Error as _;
use std::sync::{Arc, Mutex};

use sendoff::emit::Names;
use sendoff::{ErrorKind, Message, Outbox};

use super::EmitHarness;
use super::rows::{hex, ids, rows};
use super::setup::{message, nowhere};

/// A hook sees each message that was stored, and no other; its error reaches the caller, and the row is there.
pub async fn created_hooks_run_after_the_row_is_written<H: EmitHarness>(harness: &H) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let build = |names: &Names| {
        let seen = seen.clone();
        let hook = move |message: &Message| {
            seen.lock().unwrap().push(message.id());
            if message.topic() == "refused" {
                Err("not today".into())
            } else {
                Ok(())
            }
        };
        Outbox::builder().names(names.clone()).on_created(hook).build()
    };
    let outbox = build(harness.names());
    let (first, refused) = (message("a").idempotency_key("k"), message("refused"));
    let mut tx = harness.begin().await;
    harness.emit(&outbox, &mut tx, first.clone()).await.unwrap();
    harness
        .emit(&outbox, &mut tx, message("a").idempotency_key("k"))
        .await
        .unwrap();
    let error = harness.emit(&outbox, &mut tx, refused.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert_eq!(error.source().unwrap().to_string(), "not today");
    harness.commit(tx).await;
    assert_eq!(*seen.lock().unwrap(), [first.id(), refused.id()]);
    assert_eq!(ids(&rows(harness).await), [first.id(), refused.id()]);

    let mut tx = harness.begin().await;
    harness
        .emit(&build(&nowhere()), &mut tx, message("a"))
        .await
        .unwrap_err();
    harness.rollback(tx).await;
    assert_eq!(seen.lock().unwrap().len(), 2);
}

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
