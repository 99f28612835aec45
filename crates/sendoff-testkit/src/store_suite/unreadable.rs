//! Rows that are no messages, as another program may write them.

use sendoff::store::{Command, DeadReason, Row, Status, Table, Verdict};

use super::manual_relay::sink;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    a_bad_row_spoils_no_other needs Sql,
    a_bad_row_becomes_a_dead_letter_as_it_is needs Sql,
    a_bad_row_that_waits_becomes_a_dead_letter needs Sql,
];

/// What every database lets a program write, unless its tables forbid it.
const VANDALISM: &[(&str, &str)] = &[
    (
        "headers that are a list",
        "UPDATE outbox_message SET headers = '[\"a\"]' WHERE topic = 'vandalised'",
    ),
    (
        "headers that are a number",
        "UPDATE outbox_message SET headers = '5' WHERE topic = 'vandalised'",
    ),
    (
        "headers with a number",
        "UPDATE outbox_message SET headers = '{\"a\": 1}' WHERE topic = 'vandalised'",
    ),
    (
        "headers within headers",
        "UPDATE outbox_message SET headers = '{\"a\": {}}' WHERE topic = 'vandalised'",
    ),
    (
        "a negative limit of attempts",
        "UPDATE outbox_message SET max_attempts = -5 WHERE topic = 'vandalised'",
    ),
    (
        "an empty topic",
        "UPDATE outbox_message SET topic = '' WHERE topic = 'vandalised'",
    ),
];

/// Writes one bad row of each kind. Returns how many there are; a table that does not take one keeps the good row, which
/// is then removed.
async fn vandalise(scene: &Scene) -> sendoff::Result<usize> {
    let database = &scene.subject.database;
    let own = database.vandalism();
    let mut written = 0;
    for (what, sql) in VANDALISM.iter().chain(&own) {
        scene.emit([plain("vandalised")]).await?;
        match database.execute(sql).await {
            Ok(changed) => {
                assert_eq!(changed, 1, "{what}");
                written += 1;
                // Out of reach of the next one.
                database
                    .execute("UPDATE outbox_message SET topic = 'bad' WHERE topic = 'vandalised'")
                    .await?;
            }
            Err(refused) => {
                assert!(!own.iter().any(|(name, _)| name == what), "{what}: {refused}");
                database
                    .execute("DELETE FROM outbox_message WHERE topic = 'vandalised'")
                    .await?;
            }
        }
    }
    assert!(
        written >= 3,
        "the tables took {written} bad rows: there is nothing to test"
    );
    Ok(written)
}

async fn a_bad_row_spoils_no_other(scene: Scene) -> CaseResult {
    scene.emit((0..50).map(|n| numbered(&format!("k{n}"), n))).await?;
    let bad = vandalise(&scene).await?;
    scene.emit((0..50).map(|n| numbered(&format!("k{n}"), n))).await?;
    let mut relay = scene.relay().await?;
    let rows = relay.read_rows(100 + bad).await;
    let unreadable: Vec<&Row> = rows
        .iter()
        .filter(|row| matches!(row, Row::Unreadable { .. }))
        .collect();
    assert_eq!(unreadable.len(), bad, "{unreadable:#?}");
    for row in unreadable {
        let Row::Unreadable { row_ref, why } = row else {
            continue;
        };
        assert_eq!(row_ref.table, Table::Ready);
        assert!(!why.is_empty());
    }
    Ok(())
}

/// What the relay does with a row that it cannot read.
fn unreadable(why: &str) -> Verdict {
    Verdict::Dead {
        reason: DeadReason::Unreadable,
        error: why.to_owned(),
        charged: false,
        blocks: false,
    }
}

async fn a_bad_row_becomes_a_dead_letter_as_it_is(scene: Scene) -> CaseResult {
    let bad = vandalise(&scene).await?;
    let mut relay = scene.relay().await?;
    for row in relay.read_rows(bad).await {
        let Row::Unreadable { row_ref, why } = row else {
            panic!("it was read: {row:#?}");
        };
        let settlement = sendoff::store::Settlement {
            epoch: relay.epochs[&row_ref.lane],
            deliveries: vec![sink("", unreadable(&why))],
            key: None,
            attempts: 0,
            row_ref,
        };
        let report = relay.settle(&[settlement]).await?;
        assert!(report.lost.is_empty());
    }
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!((backlog.ready, backlog.dead), (0, bad as u64));
    // An operator sees them, can repair them, and brings them back.
    let listing = scene.subject.operate.list(&Default::default(), 100).await?;
    assert_eq!(listing.messages.len(), bad);
    for stored in &listing.messages {
        assert_eq!(
            (stored.status, stored.detail.as_deref()),
            (Status::Dead, Some("unreadable"))
        );
        assert_eq!(stored.attempts, 0);
        assert!(stored.last_error.is_some());
    }
    let whole = listing.messages.iter().filter(|stored| stored.payload == b"null");
    assert!(whole.count() >= 3, "payloads are kept, whatever else is wrong");
    let repair = "UPDATE outbox_dead SET headers = NULL, max_attempts = NULL, topic = 'repaired'";
    scene.subject.database.execute(repair).await?;
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("suite"))
            .await?,
        bad as u64
    );
    let rows = relay.read_rows(bad).await;
    assert!(
        rows.iter()
            .any(|row| matches!(row, Row::Message(outgoing) if outgoing.topic == "repaired"))
    );
    Ok(())
}

async fn a_bad_row_that_waits_becomes_a_dead_letter(scene: Scene) -> CaseResult {
    use std::time::Duration;
    let ids = scene.emit([plain("waits"), plain("waits")]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    relay
        .settle_as(&super::manual_relay::retry(Duration::from_millis(50)), &read)
        .await?;
    let sql = "UPDATE outbox_waiting SET headers = '[1]' \
               WHERE seq = (SELECT seq FROM (SELECT min(seq) AS seq FROM outbox_waiting) AS it)";
    assert_eq!(scene.subject.database.execute(sql).await?, 1);
    let rows = relay.read_rows(2).await;
    let bad = rows.iter().find_map(|row| match row {
        Row::Unreadable { row_ref, .. } => Some(row_ref.clone()),
        Row::Message(_) | Row::Expired(_) => None,
    });
    let row_ref = bad.expect("one is unreadable");
    assert_eq!((row_ref.table, row_ref.sink.as_deref()), (Table::Waiting, Some("sink")));
    let settlement = sendoff::store::Settlement {
        epoch: relay.epochs[&row_ref.lane],
        deliveries: vec![sink("sink", unreadable("headers"))],
        key: None,
        attempts: 1,
        row_ref,
    };
    relay.settle(&[settlement]).await?;
    let dead = scene.find_one(ids[0].id()).await?;
    assert_eq!(
        (dead.status, dead.detail.as_deref(), dead.attempts),
        (Status::Dead, Some("unreadable"), 1)
    );
    Ok(())
}
