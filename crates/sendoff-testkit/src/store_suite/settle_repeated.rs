//! Numbers that repeat: after a failover, a restored backup or a truncated table another message has the number of one that
//! a relay still works on. What is settled is a message, never a number.

use std::time::Duration;

use sendoff::store::{
    Command, DeadReason, DeliverySettlement, Filter, RelayCard, RetryOptions, Settlement, Status, Stored, Verdict,
};
use sendoff::{Outgoing, Uuid};

use super::Setup;
use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, eventually, numbered};

cases![
    a_settlement_ends_no_other_message_with_its_number,
    a_settlement_ends_no_other_message_with_its_number_where_there_is_a_retention
        with Setup { keep_delivered: true, ..Setup::PLAIN },
    two_messages_with_one_number_both_wait,
    two_messages_with_one_number_both_die,
    another_message_under_a_number_in_flight_is_read,
    a_quarantine_is_a_message_and_not_a_number,
    numbers_that_were_set_back_change_the_history,
    of_two_epochs_in_one_call_the_older_is_void,
    an_unrouted_row_that_finds_no_route_waits_where_it_is,
    a_lease_further_ahead_than_its_length_is_none needs Sql,
];

const DELIVERY: &str = "sink";
const KEYS: usize = 8;

/// Everything that a settlement can ask for.
fn verdicts() -> Vec<Vec<DeliverySettlement>> {
    vec![
        vec![],
        vec![sink(DELIVERY, Verdict::Delivered)],
        vec![sink(DELIVERY, retry(Duration::ZERO))],
        vec![sink(DELIVERY, Verdict::Blocked)],
        vec![sink(DELIVERY, dead(DeadReason::Permanent, true))],
        vec![sink(DELIVERY, Verdict::Delivered), sink("other", retry(Duration::ZERO))],
        vec![
            sink(DELIVERY, dead(DeadReason::Permanent, false)),
            sink("other", Verdict::Delivered),
        ],
    ]
}

fn only(id: Uuid) -> Filter {
    Filter {
        ids: vec![id],
        ..Filter::default()
    }
}

async fn emit_keys(scene: &Scene) -> sendoff::Result<Vec<Uuid>> {
    let emitted = scene.emit((0..KEYS).map(|n| numbered(&format!("k{n}"), n))).await?;
    Ok(emitted.into_iter().map(sendoff::Emitted::id).collect())
}

async fn rows(scene: &Scene, ids: &[Uuid]) -> sendoff::Result<Vec<Stored>> {
    let mut rows = Vec::new();
    for id in ids {
        rows.extend(scene.subject.operate.find(*id).await?);
    }
    Ok(rows)
}

/// Messages that a relay has in flight, and others that have their numbers now.
async fn replaced(scene: &Scene) -> sendoff::Result<(ManualRelay, Vec<Outgoing>, Vec<Uuid>)> {
    let mut relay = scene.relay().await?;
    scene.subject.database.set_back().await?;
    emit_keys(scene).await?;
    let old = read_again(&mut relay, KEYS).await?;
    scene.subject.database.set_back().await?;
    let new = emit_keys(scene).await?;
    let row_refs = |mut all: Vec<(i64, i64)>| {
        all.sort_unstable();
        all
    };
    let had = row_refs(old.iter().map(|d| (i64::from(d.row_ref.lane), d.row_ref.seq)).collect());
    let has = row_refs(rows(scene, &new).await?.iter().map(|row| (row.lane, row.seq)).collect());
    assert_eq!(had, has, "the numbers repeat");
    Ok((relay, old, new))
}

/// Leases all lanes anew, as a relay does that has noticed a change of history, and reads so many messages.
async fn read_again(relay: &mut ManualRelay, count: usize) -> sendoff::Result<Vec<Outgoing>> {
    relay.release(&relay.lanes()).await?;
    relay.acquire(usize::MAX).await?;
    Ok(relay.read_messages(count).await)
}

async fn a_settlement_ends_no_other_message_with_its_number(scene: Scene) -> CaseResult {
    for deliveries in verdicts() {
        let (mut relay, old, new) = replaced(&scene).await?;
        let before = rows(&scene, &new).await?;
        let settlements: Vec<Settlement> = old.iter().map(|d| relay.settlement(d, deliveries.clone())).collect();
        let report = relay.settle(&settlements).await?;
        assert!(report.lost.is_empty(), "{deliveries:?}");
        assert_eq!(rows(&scene, &new).await?, before, "{deliveries:?}");
        let old_ids: Vec<Uuid> = old.iter().map(|outgoing| outgoing.id).collect();
        assert!(
            rows(&scene, &old_ids).await?.is_empty(),
            "{deliveries:?}: rows of messages that are not there"
        );
        // All of the new ones are there to be delivered.
        let read = read_again(&mut relay, KEYS).await?;
        relay.deliver(&read).await?;
        let left = rows(&scene, &new).await?;
        assert!(
            left.iter().all(|row| row.status == Status::Delivered),
            "{deliveries:?}: {left:#?}"
        );
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn a_settlement_ends_no_other_message_with_its_number_where_there_is_a_retention(scene: Scene) -> CaseResult {
    a_settlement_ends_no_other_message_with_its_number(scene).await
}

async fn two_messages_with_one_number_both_wait(scene: Scene) -> CaseResult {
    let (mut relay, first, second) = wait_for_each(&scene, &retry(Duration::from_secs(3600))).await?;
    let all = || async { rows(&scene, &[first.clone(), second.clone()].concat()).await };
    assert_eq!(all().await?.len(), 2 * KEYS);
    assert!(all().await?.iter().all(|row| row.status == Status::Retry));
    // An operator makes one half of them due: it is read and delivered, and the other half stays.
    for id in &first {
        scene
            .subject
            .operate
            .retry_waiting(&only(*id), RetryOptions::default(), None, 10, &mut Command::by("suite"))
            .await?;
    }
    let read = relay.read_messages(KEYS).await;
    assert!(read.iter().all(|outgoing| first.contains(&outgoing.id)));
    relay.deliver(&read).await?;
    let left = all().await?;
    assert_eq!(left.len(), KEYS);
    assert!(left.iter().all(|row| second.iter().any(|id| row.id == Some(*id))));
    Ok(())
}

async fn two_messages_with_one_number_both_die(scene: Scene) -> CaseResult {
    let (_, first, second) = wait_for_each(&scene, &dead(DeadReason::Permanent, false)).await?;
    assert_eq!(scene.count(Status::Dead).await?, 2 * KEYS);
    for id in &first {
        let gone = scene
            .subject
            .operate
            .discard_dead(&only(*id), None, 10, &mut Command::by("suite"))
            .await?;
        assert_eq!(gone, 1);
    }
    assert_eq!(scene.count(Status::Dead).await?, KEYS);
    for id in &second {
        assert_eq!(
            scene
                .subject
                .operate
                .retry_dead(&only(*id), None, 10, &mut Command::by("suite"))
                .await?,
            1
        );
    }
    assert_eq!(scene.count(Status::Dead).await?, 0);
    assert_eq!(rows(&scene, &second).await?.len(), KEYS);
    Ok(())
}

/// Messages with this verdict, and then others with the same numbers and the same verdict.
async fn wait_for_each(scene: &Scene, verdict: &Verdict) -> sendoff::Result<(ManualRelay, Vec<Uuid>, Vec<Uuid>)> {
    let mut relay = scene.relay().await?;
    let mut all = Vec::new();
    for _ in 0..2 {
        scene.subject.database.set_back().await?;
        let ids = emit_keys(scene).await?;
        let read = read_again(&mut relay, KEYS).await?;
        relay.settle_as(verdict, &read).await?;
        all.push(ids);
    }
    let second = all.pop().expect("two rounds");
    let first = all.pop().expect("two rounds");
    Ok((relay, first, second))
}

async fn another_message_under_a_number_in_flight_is_read(scene: Scene) -> CaseResult {
    let (mut relay, _, new) = replaced(&scene).await?;
    let mut found = Vec::new();
    let began = tokio::time::Instant::now();
    while found.len() < KEYS {
        let page = relay.read(1000).await?;
        if page.history_changed {
            assert!(page.rows.is_empty());
            relay.release(&relay.lanes()).await?;
            relay.acquire(usize::MAX).await?;
        }
        found.extend(page.rows.iter().map(|row| row.row_ref().id.uuid()));
        // A reader that does not notice finds them with its next sweep, in minutes.
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "found {} of {KEYS}",
            found.len()
        );
    }
    found.sort_unstable();
    let mut new = new;
    new.sort_unstable();
    assert_eq!(found, new);
    Ok(())
}

async fn a_quarantine_is_a_message_and_not_a_number(scene: Scene) -> CaseResult {
    let (relay, old, _) = replaced(&scene).await?;
    let row_ref = old[0].row_ref.clone();
    let mut other = row_ref.clone();
    other.id = Uuid::from_u128(1).into();
    for (quarantined, crashes) in [(&row_ref, 1), (&row_ref, 2), (&other, 1)] {
        relay
            .store
            .quarantine(relay.owner, row_ref.lane, std::slice::from_ref(quarantined))
            .await?;
        let next = scene.idle_relay().await?;
        relay.vanish(&next).await?;
        next.store.evict().await?;
        // The same owner comes back, as the next one would.
        relay
            .store
            .register(relay.owner, &RelayCard::named("again"), LONG_LEASE)
            .await?;
        let grants = relay.store.acquire(relay.owner, usize::MAX).await?;
        let grant = grants
            .iter()
            .find(|grant| grant.lane == row_ref.lane)
            .expect("all lanes");
        let found = grant.quarantined.as_ref().expect("a quarantined message");
        assert!(found.is_at(quarantined));
        assert_eq!(found.crashes, crashes);
    }
    Ok(())
}

async fn numbers_that_were_set_back_change_the_history(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    let history = || async {
        let beat = relay.store.heartbeat(relay.owner, LONG_LEASE).await?;
        Ok::<_, sendoff::Error>(beat.history.expect("the store knows its history"))
    };
    let first = history().await?;
    emit_keys(&scene).await?;
    eventually("the head moves", async || Ok(history().await?.head > first.head)).await?;
    let second = history().await?;
    assert_eq!(second.breaks_with(&first), None);
    assert_eq!(history().await?.breaks_with(&second), None);
    scene.subject.database.set_back().await?;
    eventually("the change shows", async || {
        Ok(history().await?.breaks_with(&second).is_some())
    })
    .await
}

async fn of_two_epochs_in_one_call_the_older_is_void(scene: Scene) -> CaseResult {
    let ids = scene.emit_key("k", 2).await?;
    let mut relay = scene.relay().await?;
    let old = relay.read_messages(2).await;
    let stale = relay.settlement(&old[0], vec![]);
    let read = read_again(&mut relay, 2).await?;
    let fresh = relay.settlement(&read[1], vec![]);
    let report = relay.settle(&[stale, fresh]).await?;
    assert!(report.lost.is_empty());
    assert_eq!(scene.find_one(ids[0]).await?.status, Status::Pending);
    assert!(scene.subject.operate.find(ids[1]).await?.is_empty());
    Ok(())
}

async fn an_unrouted_row_that_finds_no_route_waits_where_it_is(scene: Scene) -> CaseResult {
    for verdict in [retry(Duration::from_secs(3600)), Verdict::Blocked] {
        let emitted = scene.emit([numbered("k", 0).delay(Duration::from_millis(1))]).await?;
        let mut relay = scene.relay().await?;
        let read = relay.read_messages(1).await;
        let settlement = relay.settlement(&read[0], vec![sink("", verdict.clone())]);
        relay.settle(&[settlement]).await?;
        let row = scene.find_one(emitted[0].id()).await?;
        assert_eq!(row.sink, "", "{verdict:?}");
        relay.deliver(&read).await?;
        assert!(scene.subject.operate.find(emitted[0].id()).await?.is_empty());
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

/// A clock that steps back leaves leases that end further ahead than they are long.
async fn a_lease_further_ahead_than_its_length_is_none(scene: Scene) -> CaseResult {
    scene.emit_key("k", 1).await?;
    let mut gone = scene.relay().await?;
    let read = gone.read_messages(1).await;
    let other = ManualRelay::register(scene.subject.relay.clone(), Duration::from_secs(10)).await?;
    let held = async || {
        let health = scene.subject.relay.health().await?.expect("health");
        Ok::<_, sendoff::Error>(health.heads.iter().all(|head| head.held))
    };
    assert!(held().await?);
    let owner = gone.owner;
    let step_back = format!("UPDATE outbox_relay SET lease = 10000000 WHERE owner = '{owner}'");
    scene.subject.database.execute(&step_back).await?;
    assert!(!held().await?, "nobody holds the lane");
    let beat = other.store.heartbeat(other.owner, Duration::from_secs(10)).await?;
    assert_eq!(beat.owners(), [other.owner]);
    let settlement = gone.settlement(&read[0], vec![]);
    assert_eq!(gone.settle(&[settlement]).await?.lost, [read[0].row_ref.lane]);
    assert!(other.store.evict().await? > 0);
    assert_eq!(
        other.store.acquire(other.owner, usize::MAX).await?.len(),
        usize::from(other.store.lanes())
    );
    assert!(!gone.store.heartbeat(owner, LONG_LEASE).await?.alive);
    // A live owner renews it before anybody takes it away.
    scene
        .subject
        .database
        .execute(&step_back.replace(&owner.to_string(), &other.owner.to_string()))
        .await?;
    assert!(other.store.heartbeat(other.owner, Duration::from_secs(10)).await?.alive);
    Ok(())
}
