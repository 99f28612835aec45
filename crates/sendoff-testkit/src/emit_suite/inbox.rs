//! Cases: a consumer handles a message once.

use std::time::{Duration, Instant};

use sendoff::emit::Dialect;
use sendoff::{Once, Uuid};

use super::EmitHarness;
use super::rows::rows;
use super::setup::message;

/// The names of consumers are compared byte by byte.
pub async fn a_message_is_first_once_for_each_consumer<H: EmitHarness>(harness: &H) {
    let inbox = harness.inbox();
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (id, consumer, expected) in [
        (one, "billing", Once::First),
        (one, "billing", Once::Seen),
        (one, "Billing", Once::First),
        (one, "billing ", Once::First),
        (one, "billing", Once::Seen),
        (other, "billing", Once::First),
        (other, "billing", Once::Seen),
    ] {
        let mut tx = harness.begin().await;
        let once = harness.once(&inbox, &mut tx, id, consumer).await.unwrap();
        assert_eq!(once, expected, "{consumer:?}");
        harness.commit(tx).await;
    }
    let mut tx = harness.begin().await;
    assert!(harness.once(&inbox, &mut tx, one, "").await.is_err());
    harness.rollback(tx).await;
}

/// The record and the effect, here a message, are one transaction.
pub async fn a_consumer_that_crashes_before_its_commit_has_its_effect_once<H: EmitHarness>(harness: &H) {
    let (inbox, outbox, id) = (harness.inbox(), harness.outbox(), Uuid::now_v7());
    for (commits, expected) in [(false, Once::First), (true, Once::First), (true, Once::Seen)] {
        let mut tx = harness.begin().await;
        let once = harness.once(&inbox, &mut tx, id, "billing").await.unwrap();
        assert_eq!(once, expected);
        if once == Once::First {
            let _ = harness.emit(&outbox, &mut tx, message("effect")).await.unwrap();
        }
        if commits {
            harness.commit(tx).await;
        } else {
            harness.rollback(tx).await;
        }
    }
    assert_eq!(rows(harness).await.len(), 1);
}

/// The second knows what it is only when the first has ended.
pub async fn the_second_of_two_consumers_at_once_waits_for_the_first<H: EmitHarness>(harness: &H) {
    for (commits, expected) in [(true, Once::Seen), (false, Once::First)] {
        let (inbox, id) = (harness.inbox(), Uuid::now_v7());
        let mut first = harness.begin().await;
        let once = harness.once(&inbox, &mut first, id, "billing").await.unwrap();
        assert_eq!(once, Once::First);
        let end = async {
            if commits {
                harness.commit(first).await;
            } else {
                harness.rollback(first).await;
            }
        };
        let second = async {
            let mut tx = harness.begin().await;
            let once = harness.once(&inbox, &mut tx, id, "billing").await.unwrap();
            harness.commit(tx).await;
            once
        };
        let once = if H::DIALECT == Dialect::Sqlite {
            // Only one transaction has the write lock, and a driver that blocks would wait for it on this thread.
            end.await;
            second.await
        } else {
            let end_while_second_waits = async {
                until_one_waits(harness).await;
                end.await;
            };
            tokio::join!(end_while_second_waits, second).1
        };
        assert_eq!(once, expected);
    }
}

/// Returns when a transaction on these tables waits for another.
async fn until_one_waits<H: EmitHarness>(harness: &H) {
    let schema = harness.names().schema().unwrap_or_default();
    let (waiting, pause) = if H::DIALECT == Dialect::Postgres {
        let waiting = format!(
            "SELECT pid::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%' \
             AND pid <> pg_backend_pid()"
        );
        (waiting, 5)
    } else {
        let waiting = format!(
            "SELECT CAST(trx_id AS CHAR) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' \
             AND trx_query LIKE '%{schema}%'"
        );
        // The server refreshes this table only after 100 ms without a query.
        (waiting, 150)
    };
    let begun = Instant::now();
    while harness.texts(&waiting).await.is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the second transaction must wait"
        );
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}
