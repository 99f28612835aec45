//! Outcomes of messages, by what their handlers do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use sendoff::{ErrorKind, Headers, Outcome, Outgoing, Reason, Sink};
use sendoff_sink_handlers::{Context, HandlerError, Handlers};
use sendoff_testkit::outgoing;
use tokio::sync::{Notify, mpsc};

#[derive(serde::Deserialize)]
struct Order {
    total: u32,
}

fn message(topic: &str, payload: &'static str) -> Arc<Outgoing> {
    Arc::new(Outgoing {
        headers: Headers::from_iter([("tenant", "acme")]),
        key: Some("k".into()),
        attempts: 3,
        ..outgoing(topic, payload)
    })
}

fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason)
        | Outcome::Permanent(reason)
        | Outcome::Unknown(reason)
        | Outcome::SinkDown(reason)
        | Outcome::NotYet(reason) => reason.text(),
    }
}

#[tokio::test]
async fn a_handler_gets_its_type_and_the_message_around_it() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let handlers = Handlers::builder()
        .on("order.*", move |order: Order, ctx: Context| {
            let sender = sender.clone();
            async move {
                sender.send((order.total, ctx))?;
                Ok(())
            }
        })
        .build()
        .unwrap();
    let sent = message("order.placed", r#"{"total": 12}"#);
    assert_eq!(
        handlers.publish(std::slice::from_ref(&sent)).await,
        [Outcome::Delivered]
    );
    let (total, ctx) = seen.recv().await.unwrap();
    assert_eq!((total, ctx.id(), ctx.topic()), (12, sent.id, "order.placed"));
    assert_eq!(
        (ctx.key(), ctx.attempts(), ctx.created_at()),
        (Some("k"), 3, SystemTime::UNIX_EPOCH)
    );
    assert_eq!(ctx.headers().get("tenant"), Some("acme"));
    assert_eq!(ctx.outgoing(), &*sent);
}

#[tokio::test]
async fn the_first_handler_that_fits_takes_the_message() {
    let handlers = Handlers::builder()
        .on_raw("order.paid", |_| async { Err(HandlerError::permanent("first")) })
        .on_raw("order.*", |_| async { Err(HandlerError::permanent("second")) })
        .on_raw("*", |_| async { Ok(()) })
        .build()
        .unwrap();
    let batch = ["order.sent", "invoice", "order.paid"].map(|topic| message(topic, "{}"));
    assert_eq!(
        handlers.publish(&batch).await,
        [
            Outcome::Permanent("second".into()),
            Outcome::Delivered,
            Outcome::Permanent("first".into())
        ]
    );
}

#[tokio::test]
async fn errors_are_transient_unless_they_say_otherwise() {
    let handlers = Handlers::builder()
        .on("parse", |text: String, _| async move {
            text.parse::<u8>()?;
            Ok(())
        })
        .on_raw("later", |_| async {
            Err(HandlerError::transient("busy").retry_after(Duration::from_secs(90)))
        })
        .build()
        .unwrap();
    let batch = [
        message("parse", r#""x""#),
        message("parse", r#""7""#),
        message("later", ""),
    ];
    assert_eq!(
        handlers.publish(&batch).await,
        [
            Outcome::Temporary("invalid digit found in string".into()),
            Outcome::Delivered,
            Outcome::Temporary(Reason::new("busy").retry_after(Duration::from_secs(90))),
        ]
    );
}

#[tokio::test]
async fn a_payload_that_does_not_decode_is_permanent_and_not_quoted() {
    let handlers = Handlers::builder()
        .on("*", |_: Order, _| async { Ok(()) })
        .build()
        .unwrap();
    let mut binary = Outgoing::clone(&message("t", r#"{"total": 1}"#));
    binary.content_type = Some("application/x-protobuf".into());
    let batch = [
        message("t", "{\"total\":\n  \"hunter2\"}"),
        message("t", "{\"total\": hunter2}"),
        message("t", "{\"total\": 1"),
        message("t", ""),
        Arc::new(binary),
    ];
    let outcomes = handlers.publish(&batch).await;
    for (outcome, expected) in outcomes.iter().zip([
        "does not match handlers::Order at line 2, column 11",
        "is not valid JSON at line 1, column 11",
        "ends in the middle of a value at line 1, column 11",
        "ends in the middle of a value at line 1, column 0",
        "on_raw",
    ]) {
        assert!(matches!(outcome, Outcome::Permanent(_)), "{outcome:?}");
        assert!(text(outcome).contains(expected), "{outcome:?}");
        assert!(!text(outcome).contains("hunter2"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_panic_stays_with_its_message() {
    let handlers = Handlers::builder()
        .on_raw("before", |_| {
            if true {
                panic!("before the future exists")
            }
            async { Ok(()) }
        })
        .on_raw("within", |_| async { panic!("within the future") })
        .on_raw("fine", |_| async { Ok(()) })
        .concurrency(1)
        .build()
        .unwrap();
    for _ in 0..2 {
        let outcomes = handlers
            .publish(&["before", "within", "fine"].map(|topic| message(topic, "")))
            .await;
        for outcome in &outcomes[..2] {
            assert!(matches!(outcome, Outcome::Temporary(_)), "{outcome:?}");
            assert!(text(outcome).starts_with("the handler panicked"), "{outcome:?}");
        }
        assert_eq!(outcomes[2], Outcome::Delivered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_is_unknown_and_the_wait_for_its_turn_is_not_counted() {
    let handlers = Handlers::builder()
        .on_raw("stuck", |_| std::future::pending())
        .on_raw("slow", |_| async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            Ok(())
        })
        .concurrency(1)
        .build()
        .unwrap();
    let outcomes = handlers
        .publish(&["slow", "stuck", "slow"].map(|topic| message(topic, "")))
        .await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
    assert!(
        matches!(&outcomes[1], Outcome::Unknown(reason) if reason.text().contains("30s")),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn no_more_handlers_run_at_once_than_allowed_over_all_batches() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handlers = Handlers::builder()
        .on_raw("*", {
            let (running, most) = (running.clone(), most.clone());
            move |_| {
                let (running, most) = (running.clone(), most.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    for _ in 0..20 {
                        tokio::task::yield_now().await;
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }
            }
        })
        .concurrency(3)
        .build()
        .unwrap();
    assert_eq!(
        (handlers.concurrency(), handlers.timeout()),
        (3, Duration::from_secs(30))
    );
    let batch: Vec<_> = (0..20).map(|_| message("t", "")).collect();
    let (one, two) = tokio::join!(handlers.publish(&batch), handlers.publish(&batch));
    assert!(one.iter().chain(&two).all(|outcome| *outcome == Outcome::Delivered));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn handlers_end_when_the_relay_stops_waiting_for_them() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handlers = Handlers::builder()
        .on_raw("*", {
            let (started, dropped) = (started.clone(), dropped.clone());
            move |_| {
                let (started, dropped) = (started.clone(), Dropped(dropped.clone()));
                async move {
                    let _dropped = dropped;
                    started.notify_one();
                    std::future::pending().await
                }
            }
        })
        .build()
        .unwrap();
    let batch = [message("t", "")];
    tokio::select! {
        outcomes = handlers.publish(&batch) => panic!("{outcomes:?}"),
        () = started.notified() => {}
    }
    dropped.notified().await;
}

#[tokio::test]
async fn a_topic_without_a_handler_is_permanent_with_advice() {
    let handlers = Handlers::builder()
        .on_raw("order.*", |_| async { Ok(()) })
        .build()
        .unwrap();
    let outcomes = handlers
        .publish(&[message("invoice", ""), message("order.placed", "")])
        .await;
    assert!(matches!(&outcomes[0], Outcome::Permanent(reason) if reason.text().contains("register one")));
    assert_eq!(outcomes[1], Outcome::Delivered);
    assert_eq!(handlers.publish(&[]).await, []);
}

#[test]
fn handlers_that_could_never_run_are_refused() {
    let none = || Handlers::builder();
    let one = || none().on_raw("order.*", |_| async { Ok(()) });
    for (bad, word) in [
        (none(), "no handler"),
        (one().concurrency(0), "concurrency"),
        (one().timeout(Duration::ZERO), "timeout"),
        (one().on_raw("order.[", |_| async { Ok(()) }), "order.["),
        (one().on_raw("order.*", |_| async { Ok(()) }), "never be called"),
    ] {
        let error = bad.build().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(word) && error.next().is_some(), "{error}");
    }
}
