//! The inbox, inside sqlx transactions.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::{Duration, Instant};

use sendoff::emit::Names;
use sendoff::{Inbox, Once, Uuid};
use sendoff_sqlx as _;
use sendoff_testkit::emit_suite;
use sqlx::{AssertSqlSafe, PgPool};

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

/// New tables, and one for the effects of consumers.
async fn fresh() -> (PgPool, Names, Inbox) {
    let names = emit_suite::fresh_names();
    let pool = PgPool::connect(&emit_suite::postgres_url()).await.unwrap();
    let schema = names.schema().unwrap();
    let sql = format!(
        "CREATE SCHEMA {schema}; {}; CREATE TABLE {schema}.effect (id text)",
        names.render(SCHEMA)
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    let inbox = Inbox::with_names(&names);
    (pool, names, inbox)
}

#[tokio::test]
async fn a_message_is_first_once_for_each_consumer() {
    let (pool, _, inbox) = fresh().await;
    let id = Uuid::now_v7();
    for (consumer, expected) in [
        ("billing", Once::First),
        ("billing", Once::Seen),
        ("mails", Once::First),
        ("mails", Once::Seen),
    ] {
        let mut tx = pool.begin().await.unwrap();
        assert_eq!(inbox.once(&mut tx, id, consumer).await.unwrap(), expected);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_consumer_that_crashes_before_its_commit_has_its_effect_once() {
    let (pool, names, inbox) = fresh().await;
    let schema = names.schema().unwrap();
    let id = Uuid::now_v7();
    for (commits, expected) in [(false, Once::First), (true, Once::First), (true, Once::Seen)] {
        let mut tx = pool.begin().await.unwrap();
        let once = inbox.once(&mut tx, id, "billing").await.unwrap();
        assert_eq!(once, expected);
        if once == Once::First {
            let effect = format!("INSERT INTO {schema}.effect VALUES ('{id}')");
            sqlx::query(AssertSqlSafe(effect)).execute(&mut *tx).await.unwrap();
        }
        if commits {
            tx.commit().await.unwrap();
        }
    }
    let count = format!("SELECT count(*) FROM {schema}.effect");
    let effects: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&pool).await.unwrap();
    assert_eq!(effects, 1);
}

#[tokio::test]
async fn the_second_of_two_at_once_waits_for_the_first() {
    let (pool, _, inbox) = fresh().await;
    for (commits, expected) in [(true, Once::Seen), (false, Once::First)] {
        let id = Uuid::now_v7();
        let mut first = pool.begin().await.unwrap();
        assert_eq!(inbox.once(&mut first, id, "billing").await.unwrap(), Once::First);
        let (pool_too, inbox_too) = (pool.clone(), inbox.clone());
        let second = tokio::spawn(async move {
            let mut tx = pool_too.begin().await.unwrap();
            let once = inbox_too.once(&mut tx, id, "billing").await.unwrap();
            tx.commit().await.unwrap();
            once
        });
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut *first)
            .await
            .unwrap();
        let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))";
        let began = Instant::now();
        while !sqlx::query_scalar::<_, bool>(waits)
            .bind(pid)
            .fetch_one(&pool)
            .await
            .unwrap()
        {
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
