//! Delivered messages in partitions of a day.

use std::time::Duration;

use sendoff::store::{CleanCount, Cleaned, Command, OperateStore, RelayStore, Retention};

use crate::scratch::Scratch;

const DAY: Duration = Duration::from_secs(86_400);

const DAYS: &str = "SELECT count(*) FROM outbox_delivered_days()";

async fn kept() -> Scratch {
    Scratch::with(|config| config.retention(Some(7 * DAY))).await
}

/// A delivered message, so many days ago.
async fn delivered(scratch: &Scratch, days: u32, count: u32) {
    let sql = format!(
        "INSERT INTO outbox_delivered (delivered_at, lane, seq, created_at, id, topic, payload)
        SELECT now() - {days} * interval '1 day', 1, n, now(), gen_random_uuid(), 't', ''
        FROM generate_series(1, {count}) AS n"
    );
    scratch.run(&sql).await;
}

/// A partition for the day so many days ago.
async fn partition(scratch: &Scratch, days: u32) {
    let sql = format!(
        "DO $do$ DECLARE d date := (now() AT TIME ZONE 'UTC')::date - {days}; BEGIN
        EXECUTE format('CREATE TABLE outbox_delivered_%s PARTITION OF outbox_delivered FOR VALUES FROM (%L) TO (%L)',
            to_char(d, 'YYYYMMDD'), d::timestamp AT TIME ZONE 'UTC', (d + 1)::timestamp AT TIME ZONE 'UTC');
        END $do$"
    );
    scratch.run(&sql).await;
}

#[tokio::test]
async fn partitions_of_today_and_tomorrow_are_made_ahead() {
    let scratch = kept().await;
    assert_eq!(scratch.store.clean(100).await.unwrap(), 0);
    assert_eq!(scratch.value(DAYS).await, "2");
    delivered(&scratch, 0, 3).await;
    assert_eq!(
        scratch.value("SELECT count(*) FROM outbox_delivered_default").await,
        "0"
    );
    assert_eq!(scratch.store.clean(100).await.unwrap(), 0);
    assert_eq!(scratch.value(DAYS).await, "2");
}

/// Relays ask all the time whether there is something old. Without fresh statistics the planner takes a third of the keys to
/// be, and expects to come across one soon.
#[tokio::test]
async fn nobody_reads_a_whole_table_to_find_that_nothing_is_old() {
    let scratch = kept().await;
    let fill = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until) \
                SELECT 't', n::text, gen_random_uuid(), now() + interval '1 day' FROM generate_series(1, 20000) AS n; \
                INSERT INTO outbox_inbox (consumer, message_id) \
                SELECT 'c', gen_random_uuid() FROM generate_series(1, 20000); \
                INSERT INTO outbox_dead (lane, seq, sink, created_at, id, topic, payload, reason) \
                SELECT 1, n, '', now(), gen_random_uuid(), 't', '', 'permanent' FROM generate_series(1, 20000) AS n; \
                INSERT INTO outbox_job (topic, payload, state, next_attempt_at, completed_at) \
                SELECT 't', '', 'completed', NULL, now() FROM generate_series(1, 20000)";
    scratch.run(fill).await;
    delivered(&scratch, 0, 20_000).await;
    let week = "604800000000";
    let ask = include_str!("../../sql/clean_needed.sql");
    let ask = ask.replace("$1", week).replace("$2", week);
    // Of fresh rows the first readers set hints.
    for _ in 0..2 {
        scratch.value(&ask).await;
    }
    let plan = explain(&scratch, &ask).await;
    let read = plan[0]["Plan"]["Shared Hit Blocks"].as_u64().unwrap();
    assert!(read < 100, "{read} blocks: {plan:#}");
}

#[tokio::test]
async fn nobody_reads_a_whole_table_to_delete_a_few_rows() {
    let scratch = kept().await;
    let fill = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until) \
                SELECT 't', n::text, gen_random_uuid(), now() FROM generate_series(1, 20000) AS n; \
                INSERT INTO outbox_inbox (consumer, message_id, handled_at) \
                SELECT 'c', gen_random_uuid(), now() - interval '1 year' FROM generate_series(1, 20000); \
                INSERT INTO outbox_dead (lane, seq, sink, created_at, id, topic, payload, reason) \
                SELECT 1, n, '', now(), gen_random_uuid(), 't', '', 'permanent' FROM generate_series(1, 20000) AS n; \
                INSERT INTO outbox_job (topic, payload, state, next_attempt_at, completed_at) \
                SELECT 't', '', 'completed', NULL, now() FROM generate_series(1, 20000)";
    scratch.run(fill).await;
    for (sql, params) in [
        (include_str!("../../sql/clean_dedup.sql"), ["200", ""]),
        (include_str!("../../sql/clean_inbox.sql"), ["NULL", "200"]),
        (include_str!("../../sql/clean_dead.sql"), ["0", "200"]),
        (include_str!("../../sql/clean_jobs.sql"), ["0", "200"]),
    ] {
        let plan = explain(&scratch, &sql.replace("$1", params[0]).replace("$2", params[1])).await;
        assert!(most_rows(&plan) <= 200.0, "{plan:#}");
    }
}

/// How many rows the step of a plan had to look at that had the most.
fn most_rows(plan: &serde_json::Value) -> f64 {
    let below = |plans: &serde_json::Value| {
        plans
            .as_array()
            .into_iter()
            .flatten()
            .map(most_rows)
            .fold(0.0, f64::max)
    };
    let own = plan["Actual Rows"].as_f64().unwrap_or(0.0);
    own.max(below(plan))
        .max(below(&plan["Plans"]))
        .max(plan.get("Plan").map_or(0.0, most_rows))
}

/// The plan of a statement, which is run for it.
async fn explain(scratch: &Scratch, sql: &str) -> serde_json::Value {
    let plan = scratch
        .value(&format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"))
        .await;
    serde_json::from_str(&plan).unwrap()
}

#[tokio::test]
async fn without_a_retention_nothing_is_made_or_deleted() {
    let scratch = Scratch::new().await;
    delivered(&scratch, 30, 3).await;
    assert_eq!(scratch.store.clean(100).await.unwrap(), 0);
    assert_eq!(scratch.value(DAYS).await, "0");
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_delivered").await, "3");
}

#[tokio::test]
async fn rows_in_the_default_partition_hold_nothing_up_and_go_in_batches() {
    let scratch = kept().await;
    delivered(&scratch, 0, 2).await;
    delivered(&scratch, 20, 5).await;
    for gone in [3, 2, 0] {
        assert_eq!(scratch.store.clean(3).await.unwrap(), gone);
    }
    assert_eq!(
        scratch.value(DAYS).await,
        "1",
        "tomorrow's; of today there are rows already"
    );
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_delivered").await, "2");
}

#[tokio::test]
async fn a_day_that_is_over_goes_as_a_whole() {
    let scratch = kept().await;
    for days in [9, 7, 6] {
        partition(&scratch, days).await;
        delivered(&scratch, days, 4).await;
    }
    assert_eq!(
        scratch.store.clean(2).await.unwrap(),
        4,
        "a partition is dropped, not emptied"
    );
    let left = "SELECT count(DISTINCT delivered_at) FROM outbox_delivered";
    assert_eq!(
        scratch.value(left).await,
        "2",
        "a day is kept until its last moment is old"
    );
    assert_eq!(scratch.value(DAYS).await, "4");
}

#[tokio::test]
async fn a_long_reader_is_not_waited_for() {
    let scratch = kept().await;
    partition(&scratch, 9).await;
    delivered(&scratch, 9, 4).await;
    scratch.run("BEGIN; SELECT count(*) FROM outbox_delivered").await;
    let cleaned = tokio::time::timeout(Duration::from_secs(5), scratch.store.clean(100));
    assert_eq!(cleaned.await.expect("it gives up soon").unwrap(), 0);
    scratch.run("COMMIT").await;
    assert_eq!(scratch.store.clean(100).await.unwrap(), 4, "and tries again");
}

#[tokio::test]
async fn an_operator_drops_whole_days_and_cleans_up_the_rest_to_the_row() {
    let scratch = kept().await;
    for (days, rows) in [(10, 0), (9, 5000), (8, 2), (5, 5)] {
        partition(&scratch, days).await;
        delivered(&scratch, days, rows).await;
    }
    delivered(&scratch, 4, 2).await;
    let retention = Retention {
        delivered: Some(5 * DAY),
        ..Retention::default()
    };
    let count = scratch.store.clean_count(&retention).await.unwrap();
    assert_eq!(count, CleanCount { old: 5007, all: 5009 });
    let mut command = Command::by("ann");
    // A day that is over goes as a whole, whatever its size. Of the last one only some hours are old.
    for (deleted, more) in [(0, true), (5000, true), (2, true), (3, true), (2, false)] {
        let cleaned = scratch.store.clean_up(&retention, 3, &mut command).await.unwrap();
        assert_eq!(cleaned, Cleaned { deleted, more });
    }
    assert_eq!(scratch.value(DAYS).await, "1");
    let count = scratch.store.clean_count(&retention).await.unwrap();
    assert_eq!(count, CleanCount { old: 0, all: 2 });
    assert_eq!(
        scratch
            .value("SELECT action || ' ' || affected FROM outbox_audit")
            .await,
        "cleanup 5007"
    );
}

#[tokio::test]
async fn behind_a_long_reader_a_day_is_cleaned_up_row_by_row() {
    let scratch = kept().await;
    partition(&scratch, 9).await;
    delivered(&scratch, 9, 4).await;
    let retention = Retention {
        delivered: Some(5 * DAY),
        ..Retention::default()
    };
    scratch.run("BEGIN; SELECT count(*) FROM outbox_delivered").await;
    let mut command = Command::by("ann");
    let cleaned = tokio::time::timeout(
        Duration::from_secs(5),
        scratch.store.clean_up(&retention, 3, &mut command),
    );
    let cleaned = cleaned.await.expect("nobody is waited for").unwrap();
    assert_eq!(cleaned, Cleaned { deleted: 3, more: true });
    scratch.run("COMMIT").await;
    let cleaned = scratch.store.clean_up(&retention, 3, &mut command).await.unwrap();
    assert_eq!((cleaned.deleted, scratch.value(DAYS).await.as_str()), (1, "0"));
}
