//! Cases: what runs around an emit, hooks and contexts.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sendoff::emit::OutboxBuilder;
use sendoff::{BoxError, Context, ErrorKind, Headers, Message, Outbox, Uuid};

use super::EmitHarness;
use super::rows::{ids, rows};
use super::setup::{message, nowhere};

type Seen = Arc<Mutex<Vec<Uuid>>>;

fn look(seen: &Seen, message: &Message) -> Result<(), BoxError> {
    seen.lock().unwrap().push(message.id());
    match message.topic() {
        "refused" => Err("not today".into()),
        _ => Ok(()),
    }
}

fn with_hook(builder: OutboxBuilder, seen: &Seen, waits: bool) -> Outbox {
    let seen = seen.clone();
    if !waits {
        return builder.on_created(move |message| look(&seen, message)).build();
    }
    let hook = move |message: &Message| look(&seen, message);
    let hook = Arc::new(hook);
    let builder = builder.on_created_async(move |message| {
        let hook = hook.clone();
        Box::pin(async move { hook(message) })
    });
    builder.build()
}

/// A hook sees each message that was stored, and no other; its error reaches the caller, and the row is there.
pub async fn created_hooks_run_after_the_row_is_written<H: EmitHarness>(harness: &H) {
    for waits in [false, true] {
        let seen = Seen::default();
        let outbox = with_hook(Outbox::builder().names(harness.names().clone()), &seen, waits);
        let key = format!("k{waits}");
        let (first, refused) = (message("a").idempotency_key(&key), message("refused"));
        let mut tx = harness.begin().await;
        let _ = harness.emit(&outbox, &mut tx, first.clone()).await.unwrap();
        let _ = harness
            .emit(&outbox, &mut tx, message("a").idempotency_key(&key))
            .await
            .unwrap();
        let error = harness.emit(&outbox, &mut tx, refused.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hook);
        assert_eq!(error.source().unwrap().to_string(), "not today");
        harness.commit(tx).await;
        assert_eq!(*seen.lock().unwrap(), [first.id(), refused.id()]);
        let stored = ids(&rows(harness).await);
        assert!(stored.ends_with(&[first.id(), refused.id()]), "{stored:?}");

        let broken = with_hook(Outbox::builder().names(nowhere()), &seen, waits);
        let mut tx = harness.begin().await;
        harness.emit(&broken, &mut tx, message("a")).await.unwrap_err();
        harness.rollback(tx).await;
        assert_eq!(seen.lock().unwrap().len(), 2);
    }
}

/// With many messages a hook sees each that was stored, in order, until one is refused; a caller who rolls back then has
/// stored none of them.
pub async fn a_created_hook_can_refuse_many<H: EmitHarness>(harness: &H) {
    for waits in [false, true] {
        let seen = Seen::default();
        let outbox = with_hook(Outbox::builder().names(harness.names().clone()), &seen, waits);
        let good = vec![message("a"), message("b").idempotency_key("k")];
        let mut tx = harness.begin().await;
        let _ = harness.emit_many(&outbox, &mut tx, good.clone()).await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [good[0].id(), good[1].id()]);
        let more = vec![message("a"), message("refused"), message("c")];
        let error = harness.emit_many(&outbox, &mut tx, more.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hook);
        assert!(error.to_string().contains(&more[1].id().to_string()), "{error}");
        assert_eq!(seen.lock().unwrap()[2..], [more[0].id(), more[1].id()]);
        harness.rollback(tx).await;
        assert!(rows(harness).await.is_empty());
    }
}

/// Counts its calls, and says how many there were.
struct Where(Arc<AtomicUsize>);

impl Context for Where {
    fn capture(&self, headers: &mut Headers) {
        let call = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        headers.insert("x-call", call.to_string());
        headers.insert("traceparent", "captured");
        headers.insert("tracestate", "captured");
    }
}

/// Where the caller is goes into the headers of the row, asked for once an emit; what the message says itself stays.
pub async fn the_callers_context_is_stored<H: EmitHarness>(harness: &H) {
    let calls = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox::builder().names(harness.names().clone());
    let outbox = outbox.context(Where(calls.clone())).build();
    let own = || message("b").header("traceparent", "own").header("x-tenant", "acme");
    let mut tx = harness.begin().await;
    let _ = harness.emit(&outbox, &mut tx, message("a")).await.unwrap();
    let _ = harness
        .emit_many(&outbox, &mut tx, vec![message("a"), own()])
        .await
        .unwrap();
    let once = own().idempotency_key("k");
    let _ = harness.emit(&outbox, &mut tx, once).await.unwrap();
    harness.commit(tx).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let headers: Vec<_> = rows(harness).await.iter().map(|row| row["headers"].clone()).collect();
    let captured =
        |call: &str| serde_json::json!({"x-call": call, "traceparent": "captured", "tracestate": "captured"});
    let kept = |call: &str| serde_json::json!({"x-call": call, "traceparent": "own", "x-tenant": "acme"});
    assert_eq!(headers, [captured("1"), captured("2"), kept("2"), kept("3")]);
}
