//! What an operator counts and brings back, and how much of it is seen.

use std::time::Duration;

use sendoff::Message;
use sendoff::store::{Command, Filter, LISTED_BYTES, Status};

use super::operate::in_every_state;
use super::registry::{CaseResult, cases};
use super::scene::Scene;

cases![
    the_summary_counts,
    the_backlog_counts,
    only_dead_letters_that_fit_are_retried,
    retrying_is_written_into_the_audit needs Sql,
    a_list_has_the_beginning_of_what_is_long,
];

async fn the_summary_counts(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let summary = scene.subject.operate.summary().await?;
    assert_eq!((summary.ready, summary.waiting, summary.failed), (2, 3, 2));
    assert_eq!((summary.dead, summary.delivered), (2, 0));
    let age = summary.oldest_ready.expect("there are ready ones");
    assert!(age < Duration::from_secs(60), "{age:?}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let later = scene
        .subject
        .operate
        .summary()
        .await?
        .oldest_ready
        .expect("they are still there");
    assert!(
        later >= age + Duration::from_millis(40),
        "it grows older: {age:?}, {later:?}"
    );
    Ok(())
}

async fn the_backlog_counts(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!(
        (backlog.ready, backlog.due, backlog.waiting, backlog.dead),
        (2, 0, 3, 2)
    );
    scene
        .subject
        .operate
        .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("suite"))
        .await?;
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!(
        (backlog.ready, backlog.due, backlog.waiting, backlog.dead),
        (2, 2, 3, 0)
    );
    Ok(())
}

async fn only_dead_letters_that_fit_are_retried(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let retry = async |filter: Filter| {
        scene
            .subject
            .operate
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("suite"))
            .await
    };
    let pending = Filter {
        status: Some(Status::Pending),
        ..Filter::default()
    };
    assert_eq!(retry(pending).await?, 0);
    let other = Filter {
        topic: Some("retry.*".into()),
        ..Filter::default()
    };
    assert_eq!(retry(other).await?, 0, "what is not dead is left alone");
    let order = Filter {
        aggregate_type: Some("order".into()),
        ..Filter::default()
    };
    assert_eq!(retry(order.clone()).await?, 1);
    assert_eq!(retry(order).await?, 0, "it is not dead any more");
    let error = Filter {
        error: Some("404".into()),
        status: Some(Status::Dead),
        ..Filter::default()
    };
    assert_eq!(retry(error).await?, 1);
    assert_eq!(scene.count(Status::Dead).await?, 0);
    assert_eq!(scene.count(Status::Retry).await?, 2);
    Ok(())
}

async fn retrying_is_written_into_the_audit(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let filter = Filter {
        topic: Some("dead.*".into()),
        ..Filter::default()
    };
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("ann 'o'"))
            .await?,
        2
    );
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("bob"))
            .await?,
        0
    );
    let sql = "SELECT who, action, CAST(affected AS text), CAST(filter AS text) FROM outbox_audit ORDER BY id";
    let rows = scene.subject.database.fetch(sql).await?;
    let text = |row: usize, column: usize| rows[row][column].clone().unwrap_or_default();
    assert_eq!(
        (rows.len(), text(0, 0), text(0, 2)),
        (2, "ann 'o'".to_owned(), "2".to_owned())
    );
    assert_eq!((text(1, 0), text(1, 2)), ("bob".to_owned(), "0".to_owned()));
    assert_eq!(text(0, 1), text(1, 1));
    assert!(!text(0, 1).is_empty());
    let noted: Filter = serde_json::from_str(&text(0, 3)).expect("the filter as JSON");
    assert_eq!(noted, filter);
    Ok(())
}

/// A thousand messages in a list must not be a thousand times what a message may have.
async fn a_list_has_the_beginning_of_what_is_long(scene: Scene) -> CaseResult {
    let payload: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let long = Message::bytes("long", "text/plain", payload.clone()).header("h", "v".repeat(60_000));
    let (long, short) = (
        long.key("k"),
        Message::bytes("short", "text/plain", b"abc".to_vec()).header("h", "v"),
    );
    let bare = Message::bytes("bare", "text/plain", Vec::new());
    scene.emit([long.clone(), short.clone(), bare]).await?;
    let listed = scene.subject.operate.list(&Filter::default(), 1000).await?.messages;
    let of = |topic: &str| {
        listed
            .iter()
            .find(|stored| stored.topic == topic)
            .expect("it is listed")
    };
    assert_eq!(
        (of("long").payload_bytes, &of("long").payload[..]),
        (300_000, &payload[..LISTED_BYTES])
    );
    assert_eq!((&of("long").headers, of("long").headers_cut), (&None, true));
    assert_eq!((of("short").payload_bytes, &of("short").payload[..]), (3, &b"abc"[..]));
    assert!(of("short").headers.is_some() && !of("short").headers_cut);
    assert_eq!((&of("bare").headers, of("bare").headers_cut), (&None, false));
    let found = scene.find_one(long.id()).await?;
    assert_eq!((found.payload_bytes, found.payload), (300_000, payload));
    assert!(found.headers.is_some_and(|headers| headers.len() > 60_000) && !found.headers_cut);
    Ok(())
}
