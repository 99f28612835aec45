//! Cases: at most one message of an idempotency key.

use std::sync::{Arc, Barrier, Mutex};

use sendoff::emit::Duplicates;
use sendoff::{Emitted, ErrorKind, Event, Message, OnDuplicate, Outbox};

use super::EmitHarness;
use super::rows::{ids, rows};
use super::setup::{block_on, message};

/// A duplicate reports the first id: in the same transaction, in a later one, and after the first was delivered.
pub async fn a_duplicate_names_the_first_message<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let first = message("order.placed").idempotency_key("k");
    let again = || message("order.placed").idempotency_key("k");
    let duplicate = Emitted::Duplicate { first: first.id() };

    let mut tx = harness.begin().await;
    assert_eq!(
        harness.emit(&outbox, &mut tx, first.clone()).await.unwrap().id(),
        first.id()
    );
    assert_eq!(harness.emit(&outbox, &mut tx, again()).await.unwrap(), duplicate);
    let other = message("order.paid").idempotency_key("k");
    assert!(
        !harness
            .emit(&outbox, &mut tx, other.clone())
            .await
            .unwrap()
            .is_duplicate()
    );
    harness.commit(tx).await;

    let mut tx = harness.begin().await;
    assert_eq!(harness.emit(&outbox, &mut tx, again()).await.unwrap(), duplicate);
    harness.commit(tx).await;
    assert_eq!(ids(&rows(harness).await), [first.id(), other.id()]);

    harness.execute(&harness.sql("DELETE FROM outbox_message")).await;
    let mut tx = harness.begin().await;
    assert_eq!(harness.emit(&outbox, &mut tx, again()).await.unwrap(), duplicate);
    harness.commit(tx).await;
    assert!(rows(harness).await.is_empty());
}

/// Rolling back gives the idempotency key back.
pub async fn a_key_of_a_rolled_back_transaction_is_free<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    let _ = harness
        .emit(&outbox, &mut tx, message("a").idempotency_key("k"))
        .await
        .unwrap();
    harness.rollback(tx).await;
    let mut tx = harness.begin().await;
    let second = message("a").idempotency_key("k");
    let emitted = harness.emit(&outbox, &mut tx, second.clone()).await.unwrap();
    assert_eq!(emitted, Emitted::Stored { id: second.id() });
    harness.commit(tx).await;
}

/// A duplicate may be an error; what else the transaction did can still be committed.
pub async fn a_duplicate_that_is_to_fail_leaves_the_transaction_usable<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    let first = message("a").idempotency_key("k");
    let _ = harness.emit(&outbox, &mut tx, first.clone()).await.unwrap();
    let second = message("a").idempotency_key("k").on_duplicate(OnDuplicate::Fail);
    let error = harness.emit(&outbox, &mut tx, second).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    assert!(error.to_string().contains(&first.id().to_string()), "{error}");
    let after = message("b");
    let _ = harness.emit(&outbox, &mut tx, after.clone()).await.unwrap();
    harness.commit(tx).await;
    assert_eq!(ids(&rows(harness).await), [first.id(), after.id()]);
}

/// A second event of an aggregate is an error without a choice of the application. It leaves the transaction usable, and
/// names the ways out, which work.
pub async fn a_second_event_of_an_aggregate_fails_unless_its_key_is_chosen<H: EmitHarness>(harness: &H) {
    let outbox = harness.outbox();
    let updated = || Event::new("order", 42, "order.updated");
    let mut tx = harness.begin().await;
    let first = harness.emit(&outbox, &mut tx, updated().into()).await.unwrap();
    assert!(!first.is_duplicate());
    harness.commit(tx).await;

    let mut tx = harness.begin().await;
    let error = harness.emit(&outbox, &mut tx, updated().into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    let duplicate = Emitted::Duplicate { first: first.id() };
    assert_eq!(Duplicates::of(&error).unwrap().emitted(), [duplicate]);
    let text = error.to_string();
    let id = first.id().to_string();
    for part in [
        "order.updated",
        "order:42",
        &id,
        ".idempotency_key(..)",
        ".repeatable()",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let report = updated().on_duplicate(OnDuplicate::Report);
    assert_eq!(harness.emit(&outbox, &mut tx, report.into()).await.unwrap(), duplicate);
    let own = harness
        .emit(&outbox, &mut tx, updated().idempotency_key("request-9").into())
        .await;
    let again = harness
        .emit(&outbox, &mut tx, updated().idempotency_key("request-9").into())
        .await;
    let own = own.unwrap().id();
    assert_eq!(again.unwrap(), Emitted::Duplicate { first: own });
    let repeated = harness
        .emit(&outbox, &mut tx, updated().repeatable().into())
        .await
        .unwrap();
    harness.commit(tx).await;
    assert_eq!(ids(&rows(harness).await), [first.id(), own, repeated.id()]);
}

/// When one of many is a duplicate that fails, the others are written, their hooks have run, and the error has the result
/// of each.
pub async fn a_duplicate_among_many_fails_after_the_others_are_written<H: EmitHarness>(harness: &H) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let seen = seen.clone();
        move |message: &Message| {
            seen.lock().unwrap().push(message.id());
            Ok(())
        }
    };
    let outbox = Outbox::builder()
        .names(harness.names().clone())
        .on_created(hook)
        .build();
    let event = |order: u32| Message::from(Event::new("order", order, "order.placed"));
    let messages = vec![event(1), event(2), event(1), message("order.mailed"), event(2)];
    let written = [messages[0].id(), messages[1].id(), messages[3].id()];
    let mut tx = harness.begin().await;
    let error = harness.emit_many(&outbox, &mut tx, messages).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    let expected = [
        Emitted::Stored { id: written[0] },
        Emitted::Stored { id: written[1] },
        Emitted::Duplicate { first: written[0] },
        Emitted::Stored { id: written[2] },
        Emitted::Duplicate { first: written[1] },
    ];
    assert_eq!(Duplicates::of(&error).unwrap().emitted(), expected);
    assert!(
        error.to_string().contains("3 of 5 messages of the call are written"),
        "{error}"
    );
    assert_eq!(*seen.lock().unwrap(), written);
    harness.commit(tx).await;
    assert_eq!(ids(&rows(harness).await), written);
}

/// Of many transactions at once that use one key, of which some roll back, one message is left.
pub async fn concurrent_emits_of_one_idempotency_key_store_exactly_one<H: EmitHarness>(harness: &H) {
    const TRANSACTIONS: usize = 8;
    let outbox = harness.outbox();
    let start = Barrier::new(TRANSACTIONS);
    let work = |number: usize| {
        block_on(async {
            start.wait();
            let mut tx = harness.begin().await;
            let emitted = harness
                .emit(&outbox, &mut tx, message("a").idempotency_key("k"))
                .await
                .unwrap();
            if number.is_multiple_of(2) {
                harness.rollback(tx).await;
                return None;
            }
            harness.commit(tx).await;
            Some(emitted)
        })
    };
    let committed: Vec<Emitted> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..TRANSACTIONS)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect()
    });
    let stored: Vec<_> = committed.iter().filter(|emitted| !emitted.is_duplicate()).collect();
    assert_eq!((committed.len(), stored.len()), (TRANSACTIONS / 2, 1), "{committed:?}");
    assert!(
        committed.iter().all(|emitted| emitted.id() == stored[0].id()),
        "{committed:?}"
    );
    assert_eq!(ids(&rows(harness).await), [stored[0].id()]);
}
