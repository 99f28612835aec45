//! The inbox, inside mysql_async transactions.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, TxOpts};
use sendoff::{Inbox, Once, Uuid};
use sendoff_mysql_async as _;
use sendoff_testkit::emit_suite;

const SCHEMA: &str = include_str!("../../../stores/mysql/migrations/0001_outbox.sql");

async fn connect() -> Conn {
    Conn::new(Opts::from_url(&emit_suite::mysql_url()).unwrap())
        .await
        .unwrap()
}

/// New tables, and one for the effects of consumers.
async fn fresh() -> (Conn, String, Inbox) {
    let names = emit_suite::fresh_names();
    let mut conn = connect().await;
    let schema = names.schema().unwrap();
    let sql = format!(
        "CREATE DATABASE {schema}; {} CREATE TABLE {schema}.effect (id CHAR(36))",
        names.render(SCHEMA)
    );
    conn.query_drop(sql).await.unwrap();
    (conn, schema.to_owned(), Inbox::with_names(&names))
}

#[tokio::test]
async fn a_message_is_first_once_for_each_consumer() {
    let (mut conn, _, inbox) = fresh().await;
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (id, consumer, expected) in [
        (one, "billing", Once::First),
        (one, "billing", Once::Seen),
        (one, "Billing", Once::First),
        (one, "billing ", Once::First),
        (other, "billing", Once::First),
        (other, "billing", Once::Seen),
    ] {
        let mut tx = conn.start_transaction(TxOpts::new()).await.unwrap();
        assert_eq!(
            inbox.once(&mut tx, id, consumer).await.unwrap(),
            expected,
            "{consumer:?}"
        );
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_consumer_that_crashes_before_its_commit_has_its_effect_once() {
    let (mut conn, schema, inbox) = fresh().await;
    let id = Uuid::now_v7();
    for (commits, expected) in [(false, Once::First), (true, Once::First), (true, Once::Seen)] {
        let mut tx = conn.start_transaction(TxOpts::new()).await.unwrap();
        let once = inbox.once(&mut tx, id, "billing").await.unwrap();
        assert_eq!(once, expected);
        if once == Once::First {
            tx.query_drop(format!("INSERT INTO {schema}.effect VALUES ('{id}')"))
                .await
                .unwrap();
        }
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
    }
    let effects: Option<u64> = conn
        .query_first(format!("SELECT count(*) FROM {schema}.effect"))
        .await
        .unwrap();
    assert_eq!(effects, Some(1));
}

#[tokio::test]
async fn the_second_of_two_at_once_waits_for_the_first() {
    let (mut conn, schema, inbox) = fresh().await;
    for (commits, expected) in [(true, Once::Seen), (false, Once::First)] {
        let id = Uuid::now_v7();
        let mut first = conn.start_transaction(TxOpts::new()).await.unwrap();
        assert_eq!(inbox.once(&mut first, id, "billing").await.unwrap(), Once::First);
        let inbox_too = inbox.clone();
        let second = tokio::spawn(async move {
            let mut conn = connect().await;
            let mut tx = conn.start_transaction(TxOpts::new()).await.unwrap();
            let once = inbox_too.once(&mut tx, id, "billing").await.unwrap();
            tx.commit().await.unwrap();
            once
        });
        let waiting = format!(
            "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE \
             '%{schema}%'"
        );
        let (mut witness, began) = (connect().await, Instant::now());
        while witness.query_first::<i64, _>(&waiting).await.unwrap() != Some(1) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the second transaction must wait"
            );
            // The server refreshes this table only after 100 ms without a query.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        assert!(!second.is_finished(), "the second transaction must wait for the first");
        if commits {
            first.commit().await.unwrap();
        } else {
            first.rollback().await.unwrap();
        }
        assert_eq!(second.await.unwrap(), expected);
    }
}
