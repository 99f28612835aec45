//! Items: how they end, and how they come back.

use std::time::Duration;

use sendoff::store::{CleanCount, Cleaned, Command, Filter, ItemState, Status, Stored, StoredItem, Windows};
use sendoff::{Message, Uuid};

use super::Setup;
use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, TICK, eventually, numbered, plain};
use super::work_scene::{SHORT_LEASE, claims};

const KEEPING: Setup = Setup {
    keep_delivered: true,
    ..Setup::PLAIN
};

cases![
    an_item_has_as_many_attempts_as_it_says needs Items,
    an_item_has_five_attempts_unless_it_says_otherwise needs Items,
    an_item_that_kills_its_workers_is_given_up needs Items,
    an_item_that_is_given_back_is_due_at_once_and_not_charged needs Items,
    failed_items_come_back_when_an_operator_says_so needs Items,
    items_of_every_state_are_listed_with_their_lease needs Items with KEEPING,
    failed_items_are_listed_in_pages_and_discarded needs Items,
    an_expired_item_fails_and_is_not_handed_out needs Items,
    an_unreadable_item_fails_and_holds_up_nobody needs ItemsAndSql,
    completed_items_are_kept_where_a_retention_says_so needs Items with KEEPING,
    any_error_can_be_noted needs ItemsAndSql,
];

async fn an_item_has_as_many_attempts_as_it_says(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items([plain("t").max_attempts(2)]).await?;
    let first = scene.claim_one("w").await?;
    let state = work.mark_retry("w", first.claim, Duration::ZERO, "once").await?;
    assert_eq!(state, ItemState::Retry);
    let second = scene.claim_when_due("w", LONG_LEASE).await?.remove(0);
    assert_eq!((second.attempt, second.max_attempts), (2, 2));
    let state = work.mark_retry("w", second.claim, Duration::ZERO, "twice").await?;
    assert_eq!(state, ItemState::Failed);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?, []);
    assert_eq!(work.item_counts().await?.failed, 1);
    Ok(())
}

async fn an_item_has_five_attempts_unless_it_says_otherwise(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items([plain("t")]).await?;
    for attempt in 1..=5 {
        let item = scene.claim_when_due("w", LONG_LEASE).await?.remove(0);
        assert_eq!((item.attempt, item.max_attempts), (attempt, 5));
        let state = work.mark_retry("w", item.claim, Duration::ZERO, "no").await?;
        assert_eq!(state == ItemState::Failed, attempt == 5);
    }
    Ok(())
}

async fn an_item_that_kills_its_workers_is_given_up(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items([plain("deadly").max_attempts(2)]).await?;
    for worker in ["first victim", "second victim"] {
        assert_eq!(scene.claim_when_due(worker, SHORT_LEASE).await?.len(), 1);
    }
    let handed_out = std::sync::atomic::AtomicUsize::new(0);
    eventually("it is given up", async || {
        let items = work.claim_batch("third", 1, LONG_LEASE).await?;
        handed_out.fetch_add(items.len(), std::sync::atomic::Ordering::Relaxed);
        Ok(work.item_counts().await?.failed == 1)
    })
    .await?;
    assert_eq!(handed_out.into_inner(), 0, "two attempts are two attempts");
    Ok(())
}

async fn an_item_that_is_given_back_is_due_at_once_and_not_charged(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene
        .emit_items((0..3).map(|n| numbered("k", n).max_attempts(1)))
        .await?;
    let items = work.claim_batch("w", 3, LONG_LEASE).await?;
    assert_eq!(work.release("w", &claims(&items)).await?, []);
    assert_eq!(work.item_counts().await?.pending, 3);
    let again = work.claim_batch("another", 3, LONG_LEASE).await?;
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|item| item.attempt == 1));
    Ok(())
}

async fn failed_items_come_back_when_an_operator_says_so(scene: Scene) -> CaseResult {
    let work = scene.work();
    let asked = Filter {
        topic: Some("suite.*".into()),
        ..Filter::default()
    };
    let ids = scene
        .emit_items((0..4).map(|n| numbered("k", n).max_attempts(1)))
        .await?;
    let items = work.claim_batch("w", 4, LONG_LEASE).await?;
    for item in &items {
        work.mark_failed("w", item.claim, "no").await?;
    }
    assert_eq!(
        work.retry_failed(&[ids[2].id()], 10, &asked, &mut Command::by("ann"))
            .await?,
        1
    );
    let back = scene.claim_one("w").await?;
    assert_eq!((back.id, back.attempt), (ids[2].id(), 1));
    assert_eq!(work.retry_failed(&[], 2, &asked, &mut Command::by("ann")).await?, 2);
    assert_eq!(work.retry_failed(&[], 10, &asked, &mut Command::by("ann")).await?, 1);
    assert_eq!(work.retry_failed(&[], 10, &asked, &mut Command::by("ann")).await?, 0);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?.len(), 3);
    let audit = scene.subject.operate.audit(10).await?;
    let noted: Vec<_> = audit
        .iter()
        .rev()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    let retried = |count| ("ann", "items retry", count);
    assert_eq!(noted, [1, 2, 1, 0].map(retried));
    let filter: Filter = serde_json::from_str(&audit[0].filter).expect("a filter as JSON");
    assert_eq!(filter, asked, "what was asked for, not what it came to");
    Ok(())
}

fn messages(items: Vec<StoredItem>) -> Vec<Stored> {
    items.into_iter().map(|item| item.message).collect()
}

async fn items_of_every_state_are_listed_with_their_lease(scene: Scene) -> CaseResult {
    let work = scene.work();
    let states = [
        ItemState::Completed,
        ItemState::Failed,
        ItemState::Retry,
        ItemState::Running,
        ItemState::Pending,
    ];
    let ids = scene.emit_items(states.map(|state| plain(state.as_str()))).await?;
    let before = scene.now().await?;
    let items = work.claim_batch("w", 4, LONG_LEASE).await?;
    let after = scene.now().await?;
    assert_eq!(work.mark_success("w", &claims(&items[..1])).await?, []);
    work.mark_failed("w", items[1].claim, "never").await?;
    work.mark_retry("w", items[2].claim, LONG_LEASE, "later").await?;
    let all = work.items(None, &[], i64::MIN, 10).await?;
    assert_eq!(all.iter().map(|item| item.state).collect::<Vec<_>>(), states);
    for (item, id) in all.iter().zip(&ids) {
        let (state, message) = (item.state, &item.message);
        assert_eq!((message.id, message.topic.as_str()), (Some(id.id()), state.as_str()));
        assert_eq!(message.detail.as_deref(), Some(state.as_str()));
        assert_eq!(
            work.items(Some(state), &[], i64::MIN, 10).await?,
            std::slice::from_ref(item)
        );
        assert_eq!(
            work.items(None, &[id.id()], i64::MIN, 10).await?,
            std::slice::from_ref(item)
        );
        assert_eq!(work.items(Some(state), &[], message.seq, 10).await?, []);
        let is_running = state == ItemState::Running;
        assert_eq!(item.lease_owner.as_deref(), is_running.then_some("w"));
        assert_eq!(item.lease_until.is_some(), is_running);
        assert_eq!(
            message.due_at.is_some(),
            matches!(state, ItemState::Pending | ItemState::Retry)
        );
        assert_eq!(message.ended_at.is_some(), state == ItemState::Completed);
    }
    let until = all[3].lease_until.expect("it is running");
    assert!(until >= before + LONG_LEASE - TICK && until <= after + LONG_LEASE + TICK);
    assert_eq!(all[2].message.last_error.as_deref(), Some("later"));
    assert_eq!(work.items(None, &[], i64::MIN, 2).await?, all[..2]);
    Ok(())
}

async fn failed_items_are_listed_in_pages_and_discarded(scene: Scene) -> CaseResult {
    let (work, asked) = (scene.work(), Filter::default());
    let message = |n| numbered("k", n).max_attempts(3).idempotency_key(format!("once {n}"));
    let ids = scene.emit_items((0..5).map(message)).await?;
    scene.emit_items([plain("another")]).await?;
    let items = work.claim_batch("w", 5, LONG_LEASE).await?;
    for item in &items {
        work.mark_failed("w", item.claim, "no paper").await?;
    }
    let failed = Some(ItemState::Failed);
    let first = messages(work.items(failed, &[], i64::MIN, 3).await?);
    assert_eq!(first.len(), 3);
    let (one, given) = (&first[0], &items[0]);
    assert_eq!((one.id, &one.topic), (Some(ids[0].id()), &given.topic));
    assert_eq!((&one.key, one.payload.as_slice()), (&given.key, &given.payload[..]));
    assert_eq!((one.attempts, one.max_attempts), (1, Some(3)));
    assert_eq!(one.last_error.as_deref(), Some("no paper"));
    assert_eq!((one.status, one.detail.as_deref()), (Status::Dead, Some("failed")));
    assert_eq!(one.idempotency_key.as_deref(), Some("once 0"));
    assert_eq!(one.created_at, given.created_at);
    let rest = messages(work.items(failed, &[], first[2].seq, 3).await?);
    let all: Vec<_> = first.iter().chain(&rest).map(|item| item.id).collect();
    assert_eq!(
        all,
        ids.iter().map(|id| Some(id.id())).collect::<Vec<_>>(),
        "in order, each once"
    );
    let named = messages(work.items(failed, &[ids[3].id(), Uuid::new_v4()], i64::MIN, 10).await?);
    assert_eq!(
        named.iter().map(|item| item.id).collect::<Vec<_>>(),
        [Some(ids[3].id())]
    );
    let mut command = Command::by("ann");
    let one = [ids[1].id()];
    assert_eq!(work.discard_failed(&one, 10, &asked, &mut command).await?, 1);
    assert_eq!(work.discard_failed(&one, 10, &asked, &mut command).await?, 0);
    assert_eq!(
        work.discard_failed(&[], 2, &asked, &mut command).await?,
        2,
        "the oldest first"
    );
    let left = messages(work.items(failed, &[], i64::MIN, 10).await?);
    assert_eq!(
        left.iter().map(|item| item.id).collect::<Vec<_>>(),
        [Some(ids[3].id()), Some(ids[4].id())]
    );
    let counts = work.item_counts().await?;
    assert_eq!((counts.failed, counts.pending), (2, 1), "others are not touched");
    let audit = scene.subject.operate.audit(10).await?;
    let noted: Vec<u64> = audit
        .iter()
        .rev()
        .filter(|row| row.action == "items discard")
        .map(|row| row.affected)
        .collect();
    assert_eq!(noted, [3], "a command has one row");
    Ok(())
}

async fn an_expired_item_fails_and_is_not_handed_out(scene: Scene) -> CaseResult {
    let work = scene.work();
    let expiry = scene.now().await? + Duration::from_millis(30);
    scene
        .emit_items([plain("late").expires_at(expiry), plain("fine")])
        .await?;
    eventually("it has expired", async || Ok(scene.now().await? > expiry + TICK)).await?;
    let items = work.claim_batch("w", 1, LONG_LEASE).await?;
    assert_eq!(items.len(), 1, "what cannot be handed out hides nothing behind it");
    assert_eq!(items[0].topic, "fine");
    assert_eq!(work.item_counts().await?.failed, 1);
    // Brought back it is worked on, whatever its date says.
    assert_eq!(
        work.retry_failed(&[], 10, &Filter::default(), &mut Command::by("ann"))
            .await?,
        1
    );
    assert_eq!(scene.claim_one("w").await?.topic, "late");
    Ok(())
}

async fn an_unreadable_item_fails_and_holds_up_nobody(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items([plain("vandalised"), plain("fine")]).await?;
    let vandalise = "UPDATE outbox_item SET headers = '[1]' WHERE topic = 'vandalised'";
    assert_eq!(scene.subject.database.execute(vandalise).await?, 1);
    let items = work.claim_batch("w", 10, LONG_LEASE).await?;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].topic, "fine");
    assert_eq!(work.item_counts().await?.failed, 1);
    let errors = scene
        .subject
        .database
        .fetch("SELECT last_error FROM outbox_item WHERE state = 'failed'")
        .await?;
    assert!(
        errors[0][0]
            .as_deref()
            .is_some_and(|error| error.contains("unreadable")),
        "{errors:?}"
    );
    Ok(())
}

async fn completed_items_are_kept_where_a_retention_says_so(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items((0..3).map(|n| numbered("k", n))).await?;
    let items = work.claim_batch("w", 2, LONG_LEASE).await?;
    assert_eq!(work.mark_success("w", &claims(&items)).await?, []);
    let counts = work.item_counts().await?;
    assert_eq!((counts.completed, counts.pending), (2, 1));
    assert_eq!(scene.subject.relay.clean(100).await?, 0, "they are not old yet");
    let windows = Windows {
        delivered: Some(Duration::ZERO),
        ..Windows::default()
    };
    let operate = &scene.subject.operate;
    assert_eq!(operate.clean_count(&windows).await?, CleanCount { old: 2, all: 2 });
    let mut command = Command::by("ann");
    for (deleted, more) in [(1, true), (1, true), (0, false)] {
        let cleaned = operate.clean_up(&windows, 1, &mut command).await?;
        assert_eq!(cleaned, Cleaned { deleted, more });
    }
    assert_eq!(operate.clean_count(&windows).await?, CleanCount::default());
    assert_eq!(work.item_counts().await?.pending, 1);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?.len(), 1);
    Ok(())
}

async fn any_error_can_be_noted(scene: Scene) -> CaseResult {
    let work = scene.work();
    let errors = ["nul \0 byte", "quote ' and \\ and 🔑", "", &"long ".repeat(100_000)];
    for error in errors {
        let id = scene.emit_items([Message::json("t", &())?]).await?[0].id();
        let item = scene.claim_one("w").await?;
        assert_eq!(item.id, id);
        work.mark_failed("w", item.claim, error).await?;
    }
    let noted = scene
        .subject
        .database
        .fetch("SELECT last_error FROM outbox_item WHERE last_error LIKE 'quote%'")
        .await?;
    assert_eq!(noted[0][0].as_deref(), Some("quote ' and \\ and 🔑"));
    Ok(())
}
