//! How an outbox is, at a glance and without counting it.

use std::time::Duration;

use sendoff::store::{Command, Filter, StoreHealth};

use super::operate::in_every_state;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, plain};

cases![
    health_are_exact_while_there_is_little,
    the_oldest_ready_message_grows_older_until_it_is_gone,
    health_of_a_large_backlog_are_about_right needs Sql,
];

async fn health(scene: &Scene) -> sendoff::Result<StoreHealth> {
    Ok(scene.subject.relay.health().await?.expect("every store of ours tells"))
}

async fn health_are_exact_while_there_is_little(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let found = health(&scene).await?;
    assert_eq!((found.ready, found.waiting, found.dead), (2, 3, 2));
    assert_eq!(found.oldest_due, None);
    let filter = Filter::default();
    scene
        .subject
        .operate
        .retry_dead(&filter, None, usize::MAX, &mut Command::by("suite"))
        .await?;
    let found = health(&scene).await?;
    assert_eq!((found.ready, found.waiting, found.dead), (2, 5, 0));
    let due = found.oldest_due.expect("those that were dead are due now");
    assert!(due < Duration::from_secs(60), "{due:?}");
    Ok(())
}

async fn the_oldest_ready_message_grows_older_until_it_is_gone(scene: Scene) -> CaseResult {
    assert_eq!(health(&scene).await?.oldest_ready(), None);
    scene.emit([plain("a"), plain("b")]).await?;
    let first = health(&scene).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = health(&scene).await?;
    assert!(
        second.now >= first.now + Duration::from_millis(40),
        "the database's clock goes"
    );
    let age = |health: &StoreHealth| health.oldest_ready().expect("there are ready ones");
    assert!(age(&first) < Duration::from_secs(60), "{first:?}");
    assert!(
        age(&second) >= age(&first) + Duration::from_millis(40),
        "{first:?}, {second:?}"
    );
    let mut heads: Vec<(u16, i64)> = second.heads.iter().map(|head| (head.lane, head.seq)).collect();
    heads.sort_unstable();
    let mut relay = scene.relay().await?;
    let read = relay.read_rows(2).await;
    let mut rows: Vec<(u16, i64)> = read.iter().map(|row| (row.row_ref().lane, row.row_ref().seq)).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|(lane, _)| *lane);
    assert_eq!(heads, rows, "the first of every lane");
    assert!(second.heads.iter().all(|head| !head.held), "nobody held them");
    assert!(
        health(&scene).await?.heads.iter().all(|head| head.held),
        "somebody does now"
    );
    Ok(())
}

async fn health_of_a_large_backlog_are_about_right(scene: Scene) -> CaseResult {
    let many = u64::from(StoreHealth::BOUND) + 2_000;
    scene.emit((0..many).map(|_| plain("many"))).await?;
    let found = health(&scene).await?;
    assert!(
        (u64::from(StoreHealth::BOUND)..=2 * many).contains(&found.ready),
        "{} of {many}",
        found.ready
    );
    Ok(())
}
