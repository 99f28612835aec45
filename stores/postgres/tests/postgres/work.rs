//! Jobs: what a hand-out and a mark make the server do.

use sendoff::ErrorKind;
use sendoff::store::{Claim, WorkStore};
use tokio_postgres::types::{ToSql, Type};

use crate::scratch::{LEASE, Scratch};

/// A planner that takes the table to be small likes to read the index of what is due from end to end, for every batch.
#[tokio::test]
async fn marking_reads_the_jobs_and_no_index_as_a_whole() {
    let scratch = Scratch::new().await;
    scratch
        .run("INSERT INTO outbox_job (topic, payload) SELECT 'a', 'x' FROM generate_series(1, 2000)")
        .await;
    let jobs = scratch.store.claim_batch("one", 100, LEASE).await.unwrap();
    let seqs: Vec<i64> = jobs.iter().map(|job| job.claim.seq).collect();
    let (number, lease) = (jobs[0].claim.number, 60_000_000_i64);
    let four: [(&(dyn ToSql + Sync), Type); 4] = [
        (&"one", Type::TEXT),
        (&seqs, Type::INT8_ARRAY),
        (&number, Type::INT8),
        (&lease, Type::INT8),
    ];
    let three = &four[..3];
    let read = "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index \
                WHERE indrelid = 'outbox_job'::regclass AND indexrelid::regclass::text LIKE '%due'";
    let marks = [
        (include_str!("../../sql/extend_jobs.sql"), &four[..], 100),
        (include_str!("../../sql/release_jobs.sql"), three, 100),
        (include_str!("../../sql/keep_jobs.sql"), three, 100),
        // It names those that were not held.
        (include_str!("../../sql/complete_jobs.sql"), three, 0),
    ];
    for (sql, params, named) in marks {
        scratch.run("BEGIN; SET LOCAL enable_seqscan = off").await;
        let rows = scratch
            .sql
            .query_typed(&scratch.names.render(sql), params)
            .await
            .unwrap();
        assert_eq!(rows.len(), named, "{sql}");
        let row = scratch.sql.query_one(&scratch.names.render(read), &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "{sql}");
        scratch.run("ROLLBACK").await;
    }
}

/// The server writes the new version of a row beside the old one, and nothing into the indexes.
#[tokio::test]
async fn a_claim_leaves_the_indexes_alone() {
    let scratch = Scratch::new().await;
    let fill = "INSERT INTO outbox_job (topic, payload) SELECT 'a', decode(repeat('00', 256), 'hex') \
                FROM generate_series(1, 1000)";
    scratch.run(fill).await;
    scratch.run("BEGIN").await;
    scratch
        .run("SELECT count(*) FROM outbox_claim_jobs('one', 1000, 60000000)")
        .await;
    let updated = "SELECT concat_ws(' ', pg_stat_get_xact_tuples_updated(oid), pg_stat_get_xact_tuples_hot_updated(oid)) \
                   FROM pg_class WHERE oid = 'outbox_job'::regclass";
    assert_eq!(scratch.value(updated).await, "1000 1000");
    scratch.run("ROLLBACK").await;
}

/// A job that takes long would otherwise be passed over by every claim until it is done.
#[tokio::test]
async fn an_extended_job_is_not_among_what_is_due() {
    let scratch = Scratch::new().await;
    scratch
        .run("INSERT INTO outbox_job (topic, payload) SELECT 'a', 'x' FROM generate_series(1, 3)")
        .await;
    let jobs = scratch.store.claim_batch("one", 2, LEASE).await.unwrap();
    let claims: Vec<Claim> = jobs.iter().map(|job| job.claim).collect();
    let due = "SELECT count(*) FROM outbox_job WHERE next_attempt_at <= now()";
    assert_eq!(scratch.value(due).await, "3");
    assert!(scratch.store.extend("one", &claims, LEASE).await.unwrap().is_empty());
    assert_eq!(scratch.value(due).await, "1");
}

/// It would never be claimed, and never be found among the failed either.
#[tokio::test]
async fn an_job_without_a_next_attempt_is_refused() {
    let scratch = Scratch::new().await;
    let insert = "INSERT INTO outbox_job (topic, payload, next_attempt_at) VALUES ('a', 'x', NULL)";
    let error = scratch
        .sql
        .batch_execute(&scratch.names.render(insert))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::CHECK_VIOLATION));
}

/// A batch may hold jobs of several hand-outs, the same twice, and some that are lost.
#[tokio::test]
async fn exactly_the_jobs_that_were_not_held_are_named() {
    let scratch = Scratch::new().await;
    scratch
        .run("INSERT INTO outbox_job (topic, payload) SELECT 'a', 'x' FROM generate_series(1, 6)")
        .await;
    let claimed = async |limit| -> Vec<Claim> {
        let jobs = scratch.store.claim_batch("one", limit, LEASE).await.unwrap();
        jobs.iter().map(|job| job.claim).collect()
    };
    let (first, second) = (claimed(3).await, claimed(3).await);
    scratch
        .run(&format!(
            "UPDATE outbox_job SET claim = claim + 1000 WHERE seq = {}",
            first[1].seq
        ))
        .await;
    let mut asked = [first.clone(), second.clone()].concat();
    asked.push(first[0]);
    asked.push(Claim {
        seq: second[0].seq,
        number: first[0].number,
    });
    let lost = scratch.store.mark_success("one", &asked).await.unwrap();
    assert_eq!(lost, [first[1], asked[7]]);
    assert_eq!(
        scratch.value("SELECT string_agg(seq::text, ',') FROM outbox_job").await,
        first[1].seq.to_string()
    );
    let lost = scratch.store.mark_success("one", &asked).await.unwrap();
    assert_eq!(lost, asked, "a job is marked once");
}

/// A standby that takes over without the last jobs gives their numbers, and those of their hand-outs, a second time.
#[tokio::test]
async fn a_claim_from_before_a_failover_does_not_touch_the_job_with_its_numbers() {
    let scratch = Scratch::new().await;
    let claimed = async |topic| {
        let insert = format!("INSERT INTO outbox_job (topic, payload) VALUES ('{topic}', 'x')");
        scratch.run(&insert).await;
        let jobs = scratch.store.claim_batch("one", 10, LEASE).await.unwrap();
        let [job] = <[_; 1]>::try_from(jobs).unwrap();
        job
    };
    let old = claimed("old").await;
    // What such a standby knows.
    scratch.run("TRUNCATE outbox_job RESTART IDENTITY").await;
    let new = claimed("new").await;
    assert_ne!(old.id, new.id);

    let job = "SELECT concat_ws(' ', topic, state, lease_owner, attempts, lease_until, next_attempt_at, last_error) \
                FROM outbox_job";
    let before = scratch.value(job).await;
    let store = &scratch.store;
    assert_eq!(store.extend("one", &[old.claim], 2 * LEASE).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    let retried = store.mark_retry("one", old.claim, LEASE, "of the old one").await;
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(retried.unwrap_err().kind(), ErrorKind::LeaseLost);
    let failed = store.mark_failed("one", old.claim, "of the old one").await;
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(store.release("one", &[old.claim]).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(store.mark_success("one", &[old.claim]).await.unwrap(), [old.claim]);
    assert_eq!(scratch.value(job).await, before);
    assert_eq!(store.mark_success("one", &[new.claim]).await.unwrap(), []);
}
