//! Who may take what, and what taking leaves behind.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use sendoff::ErrorKind;
use sendoff_store_django_celery::{Database, DjangoConfig, DjangoOutbox};

use crate::on_every_database;
use crate::scratch::{STALE, Scratch};

on_every_database! {
    what_is_fresh_due_or_stale_is_eligible_and_nothing_else
    a_claimed_row_carries_the_stamp_and_nobody_takes_it_again
    neither_relay_takes_a_retry_that_the_other_has_in_flight
    a_row_is_read_as_it_was_written
    many_claim_at_once_and_each_row_is_claimed_once
    tables_that_are_missing_are_told_with_djangos_command
}

async fn what_is_fresh_due_or_stale_is_eligible_and_nothing_else(scratch: Scratch) {
    let at = |seconds| scratch.stamp(seconds);
    let due = scratch.add(&at(-700), &at(-1), 2, 1).await;
    let _backing_off = scratch.add(&at(-700), &at(60), 2, 1).await;
    let _on_its_way = scratch.add(&at(-200), "NULL", 0, 1).await;
    let _retried_by_python = scratch.add(&at(-20), &at(-21), 2, 1).await;
    let python_is_gone = scratch.add(&at(-301), &at(-302), 2, 1).await;
    let stale = scratch.add(&at(-301), "NULL", 4, 1).await;
    let _of_the_future = scratch.add("NULL", "NULL", 0, 2).await;
    let _of_the_past = scratch.add("NULL", "NULL", 0, 0).await;
    let fresh = scratch.add("NULL", "NULL", 0, 1).await;
    let stats = scratch.outbox.stats(STALE).await.unwrap();
    assert_eq!((stats.eligible, stats.waiting, stats.dead), (4, 5, 0));
    assert!((55..70).contains(&stats.oldest.unwrap().as_secs()), "{stats:?}");
    assert_eq!(scratch.claimed().await, [due, python_is_gone, stale, fresh]);
    assert!(scratch.claimed().await.is_empty());
    assert_eq!(scratch.outbox.stats(STALE).await.unwrap().eligible, 0);
}

async fn a_claimed_row_carries_the_stamp_and_nobody_takes_it_again(scratch: Scratch) {
    let ids = scratch.add_fresh(3).await;
    let due = scratch.add(&scratch.stamp(-700), &scratch.stamp(-5), 1, 1).await;
    let first = scratch.outbox.claim(2, STALE).await.unwrap();
    assert_eq!(first.rows.iter().map(|row| row.id).collect::<Vec<_>>(), ids[..2]);
    assert_eq!(scratch.claimed().await, [ids[2], due]);
    let updated = scratch.seconds_to("updated_at");
    for seconds in scratch.values(&format!("SELECT {updated} FROM celery_outbox")).await {
        let seconds: f64 = seconds.parse().unwrap();
        assert!((-20.0..=1.0).contains(&seconds), "{seconds}");
    }
    // Left in the past, it would make the row eligible while it is on its way.
    assert_eq!(
        scratch
            .value("SELECT COUNT(*) FROM celery_outbox WHERE retry_after IS NOT NULL")
            .await,
        "0"
    );
    assert_eq!(
        scratch
            .value(&format!("SELECT retries FROM celery_outbox WHERE id = {due}"))
            .await,
        "1"
    );
}

async fn neither_relay_takes_a_retry_that_the_other_has_in_flight(scratch: Scratch) {
    let mut due = Vec::new();
    for _ in 0..4 {
        due.push(scratch.add(&scratch.stamp(-700), &scratch.stamp(-5), 1, 1).await);
    }
    // As the Python relay does it: it stamps, and leaves retry_after where it is.
    let (now, eligible) = (scratch.stamp(0), scratch.pythons_filter());
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET updated_at = {now} WHERE {eligible} AND id < {}",
            due[2]
        ))
        .await;
    assert_eq!(scratch.claimed().await, due[2..]);
    assert!(scratch.claimed().await.is_empty());
    let ours = format!("SELECT id FROM celery_outbox WHERE {eligible} AND id >= {}", due[2]);
    assert!(scratch.values(&ours).await.is_empty());
    // It gives one back for later, and dies with the other.
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET updated_at = {}, retry_after = {} WHERE id = {}",
            scratch.stamp(-40),
            scratch.stamp(-10),
            due[0]
        ))
        .await;
    assert_eq!(scratch.claimed().await, due[..1]);
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET updated_at = {}, retry_after = {} WHERE id = {}",
            scratch.stamp(-301),
            scratch.stamp(-302),
            due[1]
        ))
        .await;
    assert_eq!(scratch.claimed().await, due[1..2]);
}

async fn a_row_is_read_as_it_was_written(scratch: Scratch) {
    scratch.add("NULL", "NULL", 0, 1).await;
    let claim = scratch.outbox.claim(10, STALE).await.unwrap();
    let row = &claim.rows[0];
    let age = SystemTime::now().duration_since(row.created_at).unwrap();
    assert!((55..90).contains(&age.as_secs()), "{age:?}");
    assert_eq!(row.task_name, "shop.add");
    assert_eq!(row.args.replace(' ', ""), "[1,2.50]");
    assert_eq!(row.sentry_trace_id.as_deref(), Some("trace"));
    assert_eq!(row.structlog_context.as_deref(), Some(r#"{"u": 1}"#));
    let outgoing = row.outgoing().unwrap();
    assert_eq!(outgoing.id.to_string(), row.task_id);
    assert!(String::from_utf8_lossy(&outgoing.payload).contains('\u{e4}'));
    assert_eq!(outgoing.headers.get("baggage"), Some("bag"));
    assert_eq!(
        outgoing.headers.len(),
        2,
        "workers get what the Python relay sends them"
    );
}

async fn many_claim_at_once_and_each_row_is_claimed_once(scratch: Scratch) {
    const ROWS: usize = 300;
    scratch.add_many(ROWS).await;
    let outbox = || DjangoOutbox::new(&DjangoConfig::new(scratch.database.clone())).unwrap();
    let claimers: Vec<_> = (0..4)
        .map(|_| outbox())
        .map(|outbox| {
            tokio::spawn(async move {
                let mut ids = Vec::new();
                loop {
                    let claim = outbox.claim(7, STALE).await.unwrap();
                    if claim.rows.is_empty() {
                        return ids;
                    }
                    ids.extend(claim.rows.iter().map(|row| row.id));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.unwrap());
    }
    // A claimer may have met only locked rows and ended early: what it left behind is still there.
    all.extend(scratch.claimed().await);
    assert_eq!(all.len(), ROWS);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), ROWS);
}

async fn tables_that_are_missing_are_told_with_djangos_command(scratch: Scratch) {
    scratch.outbox.check().await.unwrap();
    scratch.run("DROP TABLE celery_outbox_dead_letter").await;
    let error = scratch.outbox.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMissing);
    assert!(error.next().unwrap().contains("manage.py migrate"), "{error}");
    scratch.run("DROP TABLE celery_outbox").await;
    assert_eq!(
        scratch.outbox.claim(1, STALE).await.unwrap_err().kind(),
        ErrorKind::SchemaMissing
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stamps_are_in_the_time_zone_of_djangos_sessions_on_mysql() {
    let scratch = Scratch::mysql().await;
    let config = DjangoConfig::new(scratch.database.clone()).mysql_time_zone(Some("+05:00".to_owned()));
    let outbox = DjangoOutbox::new(&config).unwrap();
    let there = |seconds: i64| format!("CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', '+05:00') + INTERVAL {seconds} SECOND");
    let due = scratch.add(&there(-600), &there(-2), 1, 1).await;
    scratch.add(&there(-600), &there(30), 1, 1).await;
    let on_its_way = scratch.add(&there(-100), "NULL", 0, 1).await;
    let claim = outbox.claim(10, STALE).await.unwrap();
    assert_eq!(claim.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [due]);
    let claim = outbox.claim(10, Duration::from_secs(50)).await.unwrap();
    assert_eq!(claim.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [on_its_way]);
    let config = DjangoConfig::new(scratch.database.clone()).mysql_time_zone(Some("Nowhere/Land".to_owned()));
    let error = DjangoOutbox::new(&config).unwrap().claim(1, STALE).await.unwrap_err();
    assert!(error.to_string().contains("time zone"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.sqlite3");
    let outbox = DjangoOutbox::new(&DjangoConfig::new(Database::Sqlite(path.clone()))).unwrap();
    assert_eq!(outbox.check().await.unwrap_err().kind(), ErrorKind::SchemaMissing);
    assert!(!path.exists());
}
