//! The inbox, inside tokio-postgres transactions.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::{Duration, Instant};

use sendoff::emit::Names;
use sendoff::{Inbox, Once, Uuid};
use sendoff_testkit::emit_suite;
use sendoff_tokio_postgres as _;
use tokio_postgres::{Client, NoTls};

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

async fn connect() -> Client {
    let (client, connection) = tokio_postgres::connect(&emit_suite::postgres_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// New tables, and one for the effects of consumers.
async fn fresh() -> (Client, Names, Inbox) {
    let names = emit_suite::fresh_names();
    let client = connect().await;
    let schema = names.schema().unwrap();
    let sql = format!(
        "CREATE SCHEMA {schema}; {}; CREATE TABLE {schema}.effect (id uuid)",
        names.render(SCHEMA)
    );
    client.batch_execute(&sql).await.unwrap();
    let inbox = Inbox::with_names(&names);
    (client, names, inbox)
}

async fn effects(client: &Client, names: &Names) -> i64 {
    let sql = format!("SELECT count(*) FROM {}.effect", names.schema().unwrap());
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_message_is_first_once_for_each_consumer() {
    let (mut client, _, inbox) = fresh().await;
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (id, consumer, expected) in [
        (one, "billing", Once::First),
        (one, "billing", Once::Seen),
        (one, "mails", Once::First),
        (other, "billing", Once::First),
        (other, "billing", Once::Seen),
    ] {
        let tx = client.transaction().await.unwrap();
        assert_eq!(inbox.once(&tx, id, consumer).await.unwrap(), expected, "{consumer}");
        tx.commit().await.unwrap();
    }
    let tx = client.transaction().await.unwrap();
    assert!(inbox.once(&tx, one, "").await.is_err());
}

#[tokio::test]
async fn a_consumer_that_crashes_before_its_commit_has_its_effect_once() {
    let (mut client, names, inbox) = fresh().await;
    let insert = format!("INSERT INTO {}.effect VALUES ($1)", names.schema().unwrap());
    let id = Uuid::now_v7();
    for (commits, expected) in [(false, Once::First), (true, Once::First), (true, Once::Seen)] {
        let tx = client.transaction().await.unwrap();
        let once = inbox.once(&tx, id, "billing").await.unwrap();
        assert_eq!(once, expected);
        if once == Once::First {
            tx.execute(&insert, &[&id]).await.unwrap();
        }
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
    }
    assert_eq!(effects(&client, &names).await, 1);
}

#[tokio::test]
async fn the_second_of_two_at_once_waits_for_the_first() {
    let (mut client, _, inbox) = fresh().await;
    for (commits, expected) in [(true, Once::Seen), (false, Once::First)] {
        let id = Uuid::now_v7();
        let first = client.transaction().await.unwrap();
        assert_eq!(inbox.once(&first, id, "billing").await.unwrap(), Once::First);
        let inbox_too = inbox.clone();
        let second = tokio::spawn(async move {
            let mut client = connect().await;
            let tx = client.transaction().await.unwrap();
            let once = inbox_too.once(&tx, id, "billing").await.unwrap();
            tx.commit().await.unwrap();
            once
        });
        let pid: i32 = first.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))";
        let (witness, began) = (connect().await, Instant::now());
        while !witness.query_one(waits, &[&pid]).await.unwrap().get::<_, bool>(0) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the second transaction must wait"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
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
