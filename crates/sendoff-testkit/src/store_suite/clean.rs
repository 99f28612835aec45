//! What is old goes, some at a time; what is not, stays.

use std::time::Duration;

use sendoff::store::{CleanCount, Cleaned, Command, DeadReason, Filter, Retention, Status};

use super::Setup;
use super::manual_relay::dead;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, eventually, plain};

cases![
    old_messages_go_some_at_a_time with Setup { keep_delivered: true, ..Setup::PLAIN },
    what_is_not_old_stays with Setup { keep_delivered: true, ..Setup::PLAIN },
    what_nobody_asked_for_stays with Setup { keep_delivered: true, ..Setup::PLAIN },
    a_dead_letter_that_blocks_is_never_cleaned_up,
    a_delivered_message_can_be_seen with Setup { keep_delivered: true, ..Setup::PLAIN },
    keys_go_when_their_window_is_over needs Sql
        with Setup { dedup_window: Some(Duration::from_secs(1)), ..Setup::PLAIN },
    a_relay_cleans_only_what_is_old needs Sql with Setup { keep_delivered: true, ..Setup::PLAIN },
    a_relay_cleans_up_old_dead_letters_where_it_is_told_to
        with Setup { dead_retention: Some(Duration::ZERO), ..Setup::PLAIN },
    a_relay_keeps_dead_letters_as_long_as_it_is_told_to
        with Setup { dead_retention: Some(Duration::from_secs(86_400)), ..Setup::PLAIN },
    old_notes_of_consumers_go needs Sql with Setup { inbox_retention: Some(Duration::from_secs(1)), ..Setup::PLAIN },
    an_operator_cleans_up_old_notes_of_consumers needs Sql,
];

const ALL: Retention = Retention {
    delivered: Some(Duration::ZERO),
    dead: Some(Duration::ZERO),
    dedup: true,
    inbox: Some(Duration::ZERO),
};

/// Delivered messages and dead letters.
async fn ended(scene: &Scene, delivered: usize, died: usize) -> CaseResult {
    scene.emit((0..delivered + died).map(|_| plain("t"))).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(delivered + died).await;
    relay.deliver(&read[..delivered]).await?;
    relay
        .settle_as(&dead(DeadReason::Permanent, false), &read[delivered..])
        .await?;
    relay.store.deregister(relay.owner).await?;
    // The clock of a database may stand still for a moment.
    tokio::time::sleep(super::scene::TICK).await;
    Ok(())
}

async fn old_messages_go_some_at_a_time(scene: Scene) -> CaseResult {
    ended(&scene, 4, 3).await?;
    let operate = &scene.subject.operate;
    assert_eq!(operate.clean_count(&ALL).await?, CleanCount { old: 7, all: 7 });
    let mut command = Command::by("ann");
    for (deleted, more) in [(5, true), (2, false), (0, false)] {
        let cleaned = operate.clean_up(&ALL, 5, &mut command).await?;
        assert_eq!(cleaned, Cleaned { deleted, more });
    }
    assert_eq!(operate.clean_count(&ALL).await?, CleanCount::default());
    assert_eq!(operate.count(&Filter::default()).await?, 0);
    let audit = operate.audit(10).await?;
    let short: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    assert_eq!(short, [("ann", "cleanup", 7)], "a command has one row");
    Ok(())
}

async fn what_is_not_old_stays(scene: Scene) -> CaseResult {
    ended(&scene, 2, 2).await?;
    scene.emit([plain("t").idempotency_key("a")]).await?;
    let day = Some(Duration::from_secs(86_400));
    let retention = Retention {
        delivered: day,
        dead: day,
        dedup: true,
        inbox: day,
    };
    let operate = &scene.subject.operate;
    let cleaned = operate.clean_up(&retention, 100, &mut Command::by("suite")).await?;
    assert_eq!(cleaned, Cleaned::default());
    let messages = Retention {
        dedup: false,
        ..retention
    };
    assert_eq!(operate.clean_count(&messages).await?, CleanCount { old: 0, all: 4 });
    assert_eq!(operate.count(&Filter::default()).await?, 5);
    assert!(scene.emit([plain("t").idempotency_key("a")]).await?[0].is_duplicate());
    Ok(())
}

async fn what_nobody_asked_for_stays(scene: Scene) -> CaseResult {
    ended(&scene, 2, 3).await?;
    let operate = &scene.subject.operate;
    let none = operate
        .clean_up(&Retention::default(), 100, &mut Command::by("suite"))
        .await?;
    assert_eq!(none, Cleaned::default());
    let only_dead = Retention {
        dead: ALL.dead,
        ..Retention::default()
    };
    assert_eq!(
        operate
            .clean_up(&only_dead, 100, &mut Command::by("suite"))
            .await?
            .deleted,
        3
    );
    assert_eq!(scene.count(Status::Delivered).await?, 2);
    Ok(())
}

async fn a_dead_letter_that_blocks_is_never_cleaned_up(scene: Scene) -> CaseResult {
    scene.emit_key("k", 2).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    relay.settle_as(&dead(DeadReason::Permanent, true), &read[..1]).await?;
    relay.settle_as(&dead(DeadReason::Permanent, false), &read[1..]).await?;
    tokio::time::sleep(super::scene::TICK).await;
    let cleaned = scene
        .subject
        .operate
        .clean_up(&ALL, 100, &mut Command::by("suite"))
        .await?;
    assert_eq!(cleaned.deleted, 1);
    let dead = Retention {
        dead: ALL.dead,
        ..Retention::default()
    };
    let left = scene.subject.operate.clean_count(&dead).await?;
    assert_eq!(left, CleanCount { old: 0, all: 1 });
    assert_eq!(scene.find_one(read[0].id).await?.status, Status::Dead);
    Ok(())
}

async fn a_delivered_message_can_be_seen(scene: Scene) -> CaseResult {
    let before = scene.now().await?;
    ended(&scene, 1, 0).await?;
    let delivered = Filter {
        status: Some(Status::Delivered),
        ..Filter::default()
    };
    let listed = scene.subject.operate.list(&delivered, 10).await?.messages;
    assert_eq!((listed.len(), listed[0].topic.as_str()), (1, "t"));
    assert!(listed[0].ended_at.is_some_and(|at| at + super::scene::TICK >= before));
    let found = scene.find_one(listed[0].id.expect("an id")).await?;
    assert_eq!(found.status, Status::Delivered);
    assert_eq!(scene.subject.operate.summary().await?.delivered, 1);
    Ok(())
}

async fn rows(scene: &Scene, table: &str) -> sendoff::Result<String> {
    let counted = scene
        .subject
        .database
        .fetch(&format!("SELECT count(*) FROM outbox_{table}"))
        .await?;
    Ok(counted[0][0].clone().unwrap_or_default())
}

async fn keys_go_when_their_window_is_over(scene: Scene) -> CaseResult {
    scene
        .emit((0..5).map(|n| plain("t").idempotency_key(format!("k{n}"))))
        .await?;
    assert_eq!(rows(&scene, "dedup").await?, "5");
    let relay = scene.subject.relay.clone();
    // Where each key was noted by a statement of its own, their windows end one after the other.
    eventually("the keys go", || async {
        let count = relay.clean(2).await?;
        assert!(count <= 2, "{count} at a time are more than were asked for");
        Ok(rows(&scene, "dedup").await? == "0")
    })
    .await
}

async fn a_relay_cleans_only_what_is_old(scene: Scene) -> CaseResult {
    // Without, and then with what the first cleaning prepares.
    for round in 1..3 {
        ended(&scene, 3, 2).await?;
        assert_eq!(scene.subject.relay.clean(100).await?, 0);
        assert_eq!(scene.count(Status::Delivered).await?, 3 * round);
        assert_eq!(scene.count(Status::Dead).await?, 2 * round);
    }
    let many = (0..4).map(|_| async { scene.subject.relay.clean(100).await });
    for cleaned in futures::future::join_all(many).await {
        assert_eq!(cleaned?, 0, "several relays may clean at once");
    }
    Ok(())
}

async fn a_relay_cleans_up_old_dead_letters_where_it_is_told_to(scene: Scene) -> CaseResult {
    scene.emit_key("k", 1).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.settle_as(&dead(DeadReason::Permanent, true), &read).await?;
    relay.store.deregister(relay.owner).await?;
    ended(&scene, 0, 5).await?;
    for expected in [2, 2, 1, 0] {
        assert_eq!(scene.subject.relay.clean(2).await?, expected);
    }
    let left = scene.find_one(read[0].id).await?;
    assert_eq!(
        left.status,
        Status::Dead,
        "one that blocks its key is not old, but unsolved"
    );
    assert_eq!(scene.count(Status::Dead).await?, 1);
    Ok(())
}

async fn a_relay_keeps_dead_letters_as_long_as_it_is_told_to(scene: Scene) -> CaseResult {
    ended(&scene, 0, 3).await?;
    assert_eq!(scene.subject.relay.clean(100).await?, 0);
    assert_eq!(scene.count(Status::Dead).await?, 3);
    Ok(())
}

async fn note_five_messages(scene: &Scene) -> CaseResult {
    for n in 0..5 {
        let id = format!("00000000-0000-7000-8000-00000000000{n}");
        let note = format!("INSERT INTO outbox_inbox (consumer, message_id) VALUES ('billing', '{id}')");
        scene.subject.database.execute(&note).await?;
    }
    tokio::time::sleep(super::scene::TICK).await;
    Ok(())
}

async fn an_operator_cleans_up_old_notes_of_consumers(scene: Scene) -> CaseResult {
    note_five_messages(&scene).await?;
    let operate = &scene.subject.operate;
    let of_age = |age| Retention {
        inbox: Some(age),
        ..Retention::default()
    };
    let young = operate
        .clean_up(&of_age(Duration::from_secs(3600)), 100, &mut Command::by("suite"))
        .await?;
    assert_eq!(young, Cleaned::default());
    let count = operate.clean_count(&of_age(Duration::from_secs(3600))).await?;
    assert_eq!(count, CleanCount { old: 0, all: 5 });
    let mut command = Command::by("suite");
    for (deleted, more) in [(3, true), (2, false)] {
        let cleaned = operate.clean_up(&of_age(Duration::ZERO), 3, &mut command).await?;
        assert_eq!(cleaned, Cleaned { deleted, more });
    }
    assert_eq!(rows(&scene, "inbox").await?, "0");
    Ok(())
}

async fn old_notes_of_consumers_go(scene: Scene) -> CaseResult {
    note_five_messages(&scene).await?;
    let relay = scene.subject.relay.clone();
    eventually("the notes go", || async {
        let count = relay.clean(2).await?;
        assert!(count <= 2, "{count} at a time are more than were asked for");
        Ok(rows(&scene, "inbox").await? == "0")
    })
    .await
}
