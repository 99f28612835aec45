//! What is written back.

use std::time::Duration;

use sendoff_store_django_celery::{Dead, Later, Settlement};

use crate::on_every_database;
use crate::scratch::{STALE, Scratch};

on_every_database! {
    every_end_leaves_its_own_trace
    a_dead_letter_keeps_the_whole_row_and_the_reason
    a_relay_that_was_taken_over_changes_nothing_but_what_it_sent
}

const COLUMNS: &str = "task_id, task_name, args, kwargs, options, sentry_trace_id, sentry_baggage, structlog_context,
    redacted_args, redacted_kwargs, schema_version, retries";

async fn every_end_leaves_its_own_trace(scratch: Scratch) {
    let ids = scratch.add_fresh(7).await;
    let claim = scratch.outbox.claim(6, STALE).await.unwrap();
    let settlement = Settlement {
        sent: vec![ids[0]],
        failed: vec![
            Later {
                id: ids[1],
                delay: Duration::from_secs(120),
            },
            Later {
                id: ids[2],
                delay: Duration::from_millis(3_600_500),
            },
        ],
        deferred: vec![ids[3]],
        cooldown: Duration::from_secs(30),
        released: vec![ids[4]],
        held: vec![Later {
            id: ids[5],
            delay: Duration::from_secs(900),
        }],
        ..Settlement::default()
    };
    scratch.outbox.settle(&claim.stamp, &settlement).await.unwrap();
    let left = scratch.values("SELECT id FROM celery_outbox ORDER BY id").await;
    assert_eq!(left, ids[1..].iter().map(ToString::to_string).collect::<Vec<_>>());
    let (after, updated) = (scratch.seconds_to("retry_after"), scratch.seconds_to("updated_at"));
    for (id, retries, seconds) in [
        (ids[1], "1", 120.0),
        (ids[2], "1", 3600.5),
        (ids[3], "0", 30.0),
        (ids[5], "0", 900.0),
    ] {
        let column = |sql: &str| format!("SELECT {sql} FROM celery_outbox WHERE id = {id}");
        assert_eq!(scratch.value(&column("retries")).await, retries);
        let delay: f64 = scratch.value(&column(&after)).await.parse().unwrap();
        assert!(
            (seconds - 20.0..=seconds + 1.0).contains(&delay),
            "{delay} instead of {seconds}"
        );
        let touched: f64 = scratch.value(&column(&updated)).await.parse().unwrap();
        assert!((-20.0..=1.0).contains(&touched), "{touched}");
    }
    // What was given back, and what was never claimed.
    assert_eq!(scratch.claimed().await, [ids[4], ids[6]]);
    // A settlement that was written and not heard of is written again: it changes nothing more.
    scratch.outbox.settle(&claim.stamp, &settlement).await.unwrap();
    assert_eq!(
        scratch
            .value(&format!("SELECT retries FROM celery_outbox WHERE id = {}", ids[1]))
            .await,
        "1"
    );
}

async fn a_dead_letter_keeps_the_whole_row_and_the_reason(scratch: Scratch) {
    let id = scratch.add("NULL", "NULL", 4, 1).await;
    let whole = |table: &str| {
        let columns: Vec<String> = COLUMNS
            .split(',')
            .map(|column| format!("COALESCE({}, '')", text(column)))
            .collect();
        format!("SELECT CONCAT_WS('|', {}) FROM {table}", columns.join(","))
    };
    let before = scratch.value(&whole("celery_outbox")).await;
    assert!(before.contains("shop.add"), "{before}");
    let claim = scratch.outbox.claim(1, STALE).await.unwrap();
    let reason = "unroutable: no queue \"m\u{e4}il\"".to_owned();
    let settlement = Settlement {
        dead: vec![Dead {
            id,
            reason: reason.clone(),
        }],
        ..Settlement::default()
    };
    scratch.outbox.settle(&claim.stamp, &settlement).await.unwrap();
    assert_eq!(scratch.count("celery_outbox").await, "0");
    assert_eq!(scratch.value(&whole("celery_outbox_dead_letter")).await, before);
    assert_eq!(
        scratch
            .value("SELECT failure_reason FROM celery_outbox_dead_letter")
            .await,
        reason
    );
    assert_eq!(scratch.outbox.stats(STALE).await.unwrap().dead, 1);
    scratch.outbox.settle(&claim.stamp, &settlement).await.unwrap();
    assert_eq!(scratch.count("celery_outbox_dead_letter").await, "1");
}

async fn a_relay_that_was_taken_over_changes_nothing_but_what_it_sent(scratch: Scratch) {
    let ids = scratch.add_fresh(6).await;
    let slow = scratch.outbox.claim(10, STALE).await.unwrap();
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET updated_at = {}",
            scratch.stamp(-400)
        ))
        .await;
    assert_eq!(scratch.claimed().await, ids);
    let stamps = scratch.values("SELECT updated_at FROM celery_outbox ORDER BY id").await;
    let settlement = Settlement {
        sent: vec![ids[0]],
        failed: vec![Later {
            id: ids[1],
            delay: Duration::from_secs(1),
        }],
        deferred: vec![ids[2]],
        cooldown: Duration::from_secs(1),
        dead: vec![Dead {
            id: ids[3],
            reason: "x".to_owned(),
        }],
        released: vec![ids[4]],
        held: vec![Later {
            id: ids[5],
            delay: Duration::from_secs(1),
        }],
    };
    scratch.outbox.settle(&slow.stamp, &settlement).await.unwrap();
    assert_eq!(
        scratch.values("SELECT updated_at FROM celery_outbox ORDER BY id").await,
        stamps[1..]
    );
    assert_eq!(scratch.value("SELECT SUM(retries) FROM celery_outbox").await, "0");
    assert_eq!(scratch.count("celery_outbox_dead_letter").await, "0");
}

/// A column as text, whatever it is.
fn text(column: &str) -> String {
    format!("CAST({column} AS CHAR(200))")
}
