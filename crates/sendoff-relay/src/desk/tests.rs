//! The desk's decisions about order, without a store or a sink.

mod elsewhere;
mod quarantine;
mod unanswered;

use std::time::{Duration, UNIX_EPOCH};

use sendoff::store::{RetryState, Room, SettleReport};
use sendoff::{Outcome, Sink};

use super::*;
use crate::plan::PlannedSink;
use crate::{HeadPolicy, RetryPolicy, SinkSettings, TopicPolicy};

struct Nowhere;
#[async_trait::async_trait]
impl Sink for Nowhere {
    async fn publish(&self, _: &[Arc<Delivery>]) -> Vec<Outcome> {
        Vec::new()
    }
}

fn desk_with(head: HeadPolicy, sinks: &[&str], attempts: u32) -> Desk {
    let planned = |name: &&str| PlannedSink {
        name: Arc::from(*name),
        sink: Arc::new(Nowhere),
        settings: SinkSettings::default(),
    };
    let policy = TopicPolicy {
        head,
        retry: RetryPolicy {
            attempts,
            ..RetryPolicy::default()
        },
    };
    let all = sinks.iter().map(ToString::to_string).collect();
    let last = sinks.last().map(ToString::to_string).into_iter().collect();
    let routes = vec![("t".parse().unwrap(), all), ("last".parse().unwrap(), last)];
    let plan = Plan::new(sinks.iter().map(planned).collect(), routes, Vec::new(), policy).unwrap();
    let mut desk = Desk::new(
        plan,
        HookList::default(),
        fastrand::Rng::with_seed(1),
        &Settings {
            window: 16,
            ..Settings::default()
        },
    );
    desk.gain(&[grant_after_crashes(0)], Vec::new(), Instant::now());
    desk
}

fn grant_after_crashes(crashes: u32) -> LaneGrant {
    LaneGrant {
        lane: 1,
        epoch: 1,
        crashes,
        suspect: None,
    }
}

fn row(seq: i64, key: Option<&str>) -> Row {
    row_of(1, seq, key)
}

fn row_of(lane: Lane, seq: i64, key: Option<&str>) -> Row {
    row_at(
        Place {
            room: Room::Ready,
            lane,
            seq,
            id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
            leg: None,
            spot: 0,
        },
        key,
    )
}

fn waiting(seq: i64, key: &str) -> Row {
    row_at(
        Place {
            room: Room::Waiting,
            lane: 1,
            seq,
            id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
            leg: Some(Arc::from("a")),
            spot: 0,
        },
        Some(key),
    )
}

fn row_at(place: Place, key: Option<&str>) -> Row {
    Row::Message(Arc::new(Delivery {
        id: sendoff::Uuid::from_u128(place.seq.unsigned_abs().into()),
        topic: "t".to_owned(),
        payload: Default::default(),
        content_type: None,
        headers: Default::default(),
        key: key.map(str::to_owned),
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: UNIX_EPOCH,
        expires_at: None,
        attempts: 0,
        max_attempts: None,
        place,
    }))
}

fn seqs(batch: &Option<Batch>) -> Vec<i64> {
    batch
        .as_ref()
        .map_or_else(Vec::new, |batch| batch.deliveries.iter().map(|d| d.place.seq).collect())
}

fn answer(desk: &mut Desk, batch: Option<Batch>, outcome: &Outcome) {
    for ticket in batch.unwrap().tickets {
        let sink = desk.items.get(ticket.item).and_then(|item| item.legs[ticket.leg].sink);
        desk.outcome(sink.unwrap_or(0), ticket, outcome.clone(), Instant::now());
    }
}

fn verdicts(settlements: &[Settlement]) -> Vec<(i64, &'static str)> {
    let word = |settlement: &Settlement| match settlement.legs.first().map(|leg| &leg.verdict) {
        None | Some(Verdict::Delivered) => "delivered",
        Some(Verdict::Retry {
            state: RetryState::Retry,
            ..
        }) => "retry",
        Some(Verdict::Retry {
            state: RetryState::Down,
            ..
        }) => "down",
        Some(Verdict::Retry {
            state: RetryState::Parked,
            ..
        }) => "parked",
        Some(Verdict::Hold) => "hold",
        Some(Verdict::Dead { blocks: true, .. }) => "dead, blocks",
        Some(Verdict::Dead { blocks: false, .. }) => "dead",
    };
    settlements
        .iter()
        .map(|settlement| (settlement.place.seq, word(settlement)))
        .collect()
}

fn freed(key: &str) -> SettleReport {
    SettleReport {
        freed: vec![blocked(key)],
        ..SettleReport::default()
    }
}

fn temporary() -> Outcome {
    Outcome::Temporary("no".into())
}

#[tokio::test]
async fn one_message_of_a_key_is_with_a_sink_at_a_time() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(
        vec![
            row(1, Some("k")),
            row(2, Some("k")),
            row(3, Some("other")),
            row(4, None),
        ],
        Instant::now(),
    );
    let first = desk.next_batch(0, Instant::now());
    assert_eq!(seqs(&first), [1, 3, 4]);
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [] as [i64; 0]);
    answer(&mut desk, first, &Outcome::Delivered);
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}

#[tokio::test]
async fn followers_of_a_failed_head_are_held_and_so_are_those_read_later() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(&mut desk, batch, &temporary());
    desk.take(vec![row(3, Some("k")), row(4, Some("free"))], Instant::now());
    assert_eq!(
        verdicts(&desk.take_settlements(9).settlements),
        [(1, "retry"), (2, "hold"), (3, "hold")]
    );
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [4]);
}

#[tokio::test]
async fn a_freed_key_stays_blocked_while_a_held_row_is_on_its_way() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![waiting(1, "k")], Instant::now());
    let head = desk.next_batch(0, Instant::now());
    answer(&mut desk, head, &Outcome::Delivered);
    let first = desk.take_settlements(9);
    desk.take(vec![row(2, Some("k"))], Instant::now());
    let second = desk.take_settlements(9);
    assert_eq!(verdicts(&second.settlements), [(2, "hold")]);
    desk.settled(first, &freed("k").into(), Instant::now());
    // Row 2 is not in the waiting table yet, or due there: row 3 would overtake it.
    desk.take(vec![row(3, Some("k"))], Instant::now());
    let third = desk.take_settlements(9);
    assert_eq!(verdicts(&third.settlements), [(3, "hold")]);
    desk.settled(second, &SettleReport::default().into(), Instant::now());
    desk.settled(third, &freed("k").into(), Instant::now());
    desk.take(vec![row(4, Some("k"))], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [4]);
}

#[tokio::test]
async fn the_followers_of_a_dead_head_wait_go_on_or_never_waited() {
    for (head, dead, then) in [
        (HeadPolicy::Block, "dead, blocks", "hold"),
        (HeadPolicy::Skip, "dead", "goes"),
        (HeadPolicy::Park, "dead", "goes"),
    ] {
        let mut desk = desk_with(head, &["a"], 1);
        desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
        let batch = desk.next_batch(0, Instant::now());
        answer(&mut desk, batch, &temporary());
        let settlements = desk.take_settlements(9);
        if then == "hold" {
            assert_eq!(verdicts(&settlements.settlements), [(1, dead), (2, "hold")]);
        } else {
            assert_eq!(verdicts(&settlements.settlements), [(1, dead)]);
            assert!(
                desk.next_batch(0, Instant::now()).is_none(),
                "not before the dead letter is written"
            );
            desk.settled(settlements, &SettleReport::default().into(), Instant::now());
            assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
        }
    }
}

#[tokio::test]
async fn a_parked_head_is_retried_beside_its_followers() {
    let mut desk = desk_with(HeadPolicy::Park, &["a"], 5);
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(&mut desk, batch, &temporary());
    let settlements = desk.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(1, "parked")]);
    desk.settled(settlements, &SettleReport::default().into(), Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}

#[tokio::test]
async fn legs_are_settled_together_and_listed_unless_all_are_delivered() {
    for (outcome, listed) in [(temporary(), vec!["a", "b"]), (Outcome::Delivered, vec![])] {
        let mut desk = desk_with(HeadPolicy::Block, &["a", "b"], 5);
        desk.take(vec![row(1, None)], Instant::now());
        let (a, b) = (desk.next_batch(0, Instant::now()), desk.next_batch(1, Instant::now()));
        answer(&mut desk, a, &Outcome::Delivered);
        assert!(!desk.has_settlements());
        answer(&mut desk, b, &outcome);
        let decided = desk.take_settlements(9);
        let legs = &decided.settlements[0].legs;
        assert_eq!(legs.iter().map(|leg| &*leg.leg).collect::<Vec<_>>(), listed);
        assert!(legs.first().is_none_or(|leg| leg.verdict == Verdict::Delivered));
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_charges_nothing_and_keeps_nothing_in_hand() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 1);
    desk.take(vec![row(1, None)], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    desk.take(vec![row(2, None)], Instant::now());
    answer(&mut desk, batch, &Outcome::SinkDown("gone".into()));
    desk.take(vec![row(3, None)], Instant::now());
    let settlements = desk.take_settlements(9);
    assert_eq!(
        verdicts(&settlements.settlements),
        [(1, "down"), (2, "down"), (3, "down")]
    );
    assert!(
        settlements
            .settlements
            .iter()
            .all(|s| matches!(s.legs[0].verdict, Verdict::Retry { charged: false, .. }))
    );
    assert!(desk.all_shut(Instant::now()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!desk.all_shut(Instant::now()));
}

#[tokio::test]
async fn what_comes_too_early_waits_uncharged_and_those_behind_it_go_on() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 1);
    desk.take(vec![row(1, Some("k")), row(2, Some("k")), row(3, None)], Instant::now());
    let early = Outcome::NotYet(sendoff::Reason::new("at noon").retry_after(Duration::from_secs(90)));
    let batch = desk.next_batch(0, Instant::now());
    assert_eq!(seqs(&batch), [1, 3]);
    answer(&mut desk, batch, &early);
    let decided = desk.take_settlements(9);
    assert_eq!(verdicts(&decided.settlements), [(1, "parked"), (3, "retry")]);
    let all_uncharged = decided.settlements.iter().all(|settlement| {
        let Verdict::Retry { charged, delay, .. } = settlement.legs[0].verdict else {
            return false;
        };
        !charged && delay == Duration::from_secs(90)
    });
    assert!(all_uncharged, "{:?}", decided.settlements);
    desk.settled(decided, &SettleReport::default().into(), Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_early_is_no_probe_of_a_sink_that_is_down() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 1);
    desk.take(vec![row(1, None)], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(&mut desk, batch, &Outcome::SinkDown("gone".into()));
    tokio::time::advance(Duration::from_secs(2)).await;
    desk.take(vec![row(2, None), row(3, None)], Instant::now());
    let probe = desk.next_batch(0, Instant::now());
    let (first, other) = if seqs(&probe) == [2] { ([2], [3]) } else { ([3], [2]) };
    assert_eq!(seqs(&probe), first);
    answer(&mut desk, probe, &Outcome::NotYet("later".into()));
    desk.answered(0);
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), other, "another probe");
}

#[tokio::test]
async fn what_a_lost_lane_had_in_hand_is_dropped_without_a_word() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    desk.lose(&[1]);
    answer(&mut desk, batch, &Outcome::Delivered);
    assert_eq!((desk.in_hand(), desk.has_settlements()), (0, false));
    assert_eq!(desk.bytes_in_hand(), 0);
}

#[tokio::test]
async fn a_lane_is_given_back_once_its_sinks_have_answered() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, None)], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    desk.take(vec![row(2, None)], Instant::now());
    desk.leave(&[1]);
    assert!(desk.ready_to_leave().is_empty());
    answer(&mut desk, batch, &Outcome::Delivered);
    let settlements = desk.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(1, "delivered")]);
    desk.settled(settlements, &SettleReport::default().into(), Instant::now());
    assert_eq!(desk.ready_to_leave(), [1]);
}

#[tokio::test]
async fn a_follower_that_was_read_while_its_head_failed_is_held_again() {
    for written_before_the_page_comes in [false, true] {
        let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
        desk.begin_read();
        desk.take(vec![waiting(1, "k")], Instant::now());
        let batch = desk.next_batch(0, Instant::now());
        // This read finds the second one due, because the first has not failed yet.
        desk.begin_read();
        answer(&mut desk, batch, &Outcome::Temporary("busy".into()));
        let mut settlements = desk.take_settlements(9);
        assert_eq!(verdicts(&settlements.settlements), [(1, "retry")]);
        if written_before_the_page_comes {
            desk.settled(
                std::mem::take(&mut settlements),
                &SettleReport::default().into(),
                Instant::now(),
            );
        }
        desk.take(vec![waiting(2, "k")], Instant::now());
        assert!(
            desk.next_batch(0, Instant::now()).is_none(),
            "it would overtake the first"
        );
        let held = desk.take_settlements(9);
        assert_eq!(verdicts(&held.settlements), [(2, "hold")]);
        settlements.items.extend(held.items);
        settlements.settlements.extend(held.settlements);
        desk.settled(settlements, &SettleReport::default().into(), Instant::now());

        desk.begin_read();
        desk.take(vec![waiting(1, "k")], Instant::now());
        let batch = desk.next_batch(0, Instant::now());
        answer(&mut desk, batch, &Outcome::Delivered);
        let settlements = desk.take_settlements(9);
        desk.settled(settlements, &SettleReport::default().into(), Instant::now());
        desk.begin_read();
        desk.take(vec![waiting(2, "k")], Instant::now());
        let batch = desk.next_batch(0, Instant::now()).expect("now it is the head");
        assert_eq!(batch.deliveries[0].place.seq, 2);
    }
}

#[tokio::test]
async fn a_follower_is_not_written_before_the_message_in_front_of_it() {
    let mut desk = desk_with(HeadPolicy::Block, &["a", "b"], 5);
    desk.take(vec![row(1, Some("k")), waiting(2, "k")], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(&mut desk, batch, &temporary());
    assert!(!desk.has_settlements(), "the first is still open at the other sink");
    let other = desk.next_batch(1, Instant::now());
    answer(&mut desk, other, &Outcome::Delivered);
    assert_eq!(
        verdicts(&desk.take_settlements(9).settlements),
        [(1, "retry"), (2, "hold")]
    );
}

#[tokio::test]
async fn what_queues_behind_a_message_that_was_not_sent_is_read_again_with_it() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let ticket = desk.next_batch(0, Instant::now()).unwrap().tickets[0];
    desk.not_sent(ticket);
    assert_eq!(forgotten(&mut desk), [1, 2]);
    assert_eq!(desk.in_hand(), 0);
    desk.begin_read();
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [1]);
}

/// A message that came too early holds up nobody, although it comes back from the waiting table.
#[tokio::test]
async fn what_comes_back_from_waiting_does_not_send_those_behind_ready_ones_to_wait() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(2, Some("k")), row(3, Some("k"))], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    desk.take(vec![waiting(1, "k")], Instant::now());
    desk.take(vec![row(4, Some("k"))], Instant::now());
    assert!(
        desk.take_settlements(9).settlements.is_empty(),
        "it is not held while the third is ready"
    );
    let mut arrived = seqs(&batch);
    let mut next = batch;
    while next.is_some() {
        answer(&mut desk, next, &Outcome::Delivered);
        next = desk.next_batch(0, Instant::now());
        arrived.extend(seqs(&next));
    }
    assert_eq!(arrived, [2, 3, 1, 4]);
}

/// A message for the last sink only.
fn for_last_sink(seq: i64, key: &str) -> Row {
    let Row::Message(message) = row(seq, Some(key)) else {
        unreachable!()
    };
    Row::Message(Arc::new(Delivery {
        topic: "last".to_owned(),
        ..(*message).clone()
    }))
}

#[tokio::test]
async fn a_message_that_was_begun_at_another_sink_does_not_overtake_one_that_is_put_down() {
    let mut desk = desk_with(HeadPolicy::Block, &["a", "b"], 5);
    let rows = vec![for_last_sink(1, "k"), row(2, Some("k")), for_last_sink(3, "k")];
    desk.take(rows, Instant::now());
    let at_a = desk.next_batch(0, Instant::now());
    assert_eq!(seqs(&at_a), [2]);
    desk.put_down_all();
    answer(&mut desk, at_a, &Outcome::Delivered);
    for seq in [1, 2] {
        let at_b = desk.next_batch(1, Instant::now());
        assert_eq!(seqs(&at_b), [seq]);
        answer(&mut desk, at_b, &Outcome::Delivered);
    }
    assert!(
        desk.next_batch(1, Instant::now()).is_none(),
        "what is behind them was put down"
    );
}

#[tokio::test]
async fn a_message_that_was_not_sent_stays_in_front_of_one_that_another_sink_has() {
    let mut desk = desk_with(HeadPolicy::Block, &["a", "b"], 5);
    desk.take(
        vec![for_last_sink(1, "k"), row(2, Some("k")), row(3, Some("k"))],
        Instant::now(),
    );
    let at_a = desk.next_batch(0, Instant::now());
    assert_eq!(seqs(&at_a), [2]);
    answer(&mut desk, at_a, &Outcome::Delivered);
    let ticket = desk.next_batch(1, Instant::now()).unwrap().tickets[0];
    desk.not_sent(ticket);
    // The second has to be written down for its other sink. In the ready table the first would be found behind it.
    let decided = desk.take_settlements(10);
    assert_eq!(verdicts(&decided.settlements), [(1, "down"), (2, "delivered")]);
    assert_eq!(decided.settlements[1].legs[1].verdict, Verdict::Hold);
    assert!(forgotten(&mut desk).is_empty());
}

fn forgotten(desk: &mut Desk) -> Vec<i64> {
    desk.take_forgotten().iter().map(|place| place.seq).collect()
}

#[tokio::test]
async fn what_a_read_under_way_brings_does_not_overtake_a_message_that_was_not_sent() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, Some("k"))], Instant::now());
    let ticket = desk.next_batch(0, Instant::now()).unwrap().tickets[0];
    desk.begin_read();
    desk.not_sent(ticket);
    desk.take(vec![row(2, Some("k")), row(3, Some("other"))], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [3]);
    assert_eq!(forgotten(&mut desk), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_lane_was_lost_still_tells_of_its_sink() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, Some("k"))], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(&mut desk, batch, &Outcome::SinkDown("down".into()));
    tokio::time::advance(Duration::from_secs(2)).await;
    desk.take(vec![row(2, Some("other"))], Instant::now());
    let probe = desk.next_batch(0, Instant::now());
    desk.lose(&[1]);
    answer(&mut desk, probe, &Outcome::Delivered);
    desk.answered(0);
    desk.gain(&[grant_after_crashes(0)], Vec::new(), Instant::now());
    desk.take(vec![row(2, Some("other"))], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}

/// Whether a message of the key would be held, by a look that changes nothing.
fn is_blocked(desk: &mut Desk, key: &str) -> bool {
    desk.has_to_wait(&row(99, Some(key)))
}

fn blocked(key: &str) -> BlockedKey {
    BlockedKey {
        lane: 1,
        key: key.into(),
        leg: "a".into(),
    }
}

#[tokio::test]
async fn a_blocked_key_that_the_store_does_not_know_any_more_is_forgotten() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    assert!(desk.begin_recheck().is_empty(), "there is nothing to ask");
    desk.gain(
        &[grant_after_crashes(0)],
        vec![blocked("stays"), blocked("discarded")],
        Instant::now(),
    );
    let lanes = desk.begin_recheck();
    assert_eq!(lanes, [1]);
    desk.recheck(&lanes, vec![blocked("stays")]);
    assert!(is_blocked(&mut desk, "stays"));
    assert!(!is_blocked(&mut desk, "discarded"));
}

#[tokio::test]
async fn a_key_that_was_blocked_while_the_store_was_asked_stays_blocked() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    let fail = |desk: &mut Desk, seq, key| {
        desk.take(vec![row(seq, Some(key))], Instant::now());
        let batch = desk.next_batch(0, Instant::now());
        answer(desk, batch, &temporary());
        desk.take_settlements(9)
    };
    let on_its_way = fail(&mut desk, 1, "on its way");
    let before = fail(&mut desk, 2, "written meanwhile");
    let lanes = desk.begin_recheck();
    let during = fail(&mut desk, 3, "failed meanwhile");
    desk.settled(before, &SettleReport::default().into(), Instant::now());
    desk.settled(during, &SettleReport::default().into(), Instant::now());
    desk.take(vec![waiting(4, "retried meanwhile")], Instant::now());
    desk.recheck(&lanes, Vec::new());
    let keys = [
        "on its way",
        "written meanwhile",
        "failed meanwhile",
        "retried meanwhile",
    ];
    assert!(keys.into_iter().all(|key| is_blocked(&mut desk, key)));
    desk.settled(on_its_way, &SettleReport::default().into(), Instant::now());
    let lanes = desk.begin_recheck();
    desk.recheck(&lanes, Vec::new());
    assert!(!keys.into_iter().any(|key| is_blocked(&mut desk, key)));
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_paused_topic_waits_only_by_news_that_are_younger_than_it() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    let paused = [("topic".to_owned(), "t".to_owned())];
    let before = Instant::now();
    desk.pause(&paused, before, before);
    tokio::time::advance(Duration::from_millis(1)).await;
    desk.claim(Claimed {
        at: Instant::now(),
        caught_up: None,
    });
    desk.take(vec![row(1, Some("k")), row(2, Some("k")), row(3, None)], Instant::now());
    assert!(desk.is_in_doubt() && desk.next_batch(0, Instant::now()).is_none());
    desk.pause(&paused, before, Instant::now());
    assert!(
        desk.is_in_doubt() && !desk.has_settlements(),
        "the pause may have ended since"
    );
    desk.pause(&paused, Instant::now(), Instant::now());
    assert_eq!(
        verdicts(&desk.take_settlements(9).settlements),
        [(1, "down"), (2, "hold"), (3, "down")]
    );
    assert!(!desk.is_in_doubt());
}

#[tokio::test]
async fn what_is_in_doubt_goes_on_in_its_order_when_the_topic_is_paused_no_longer() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.pause(&[("topic".to_owned(), "t".to_owned())], Instant::now(), Instant::now());
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert!(desk.pause(&[], Instant::now(), Instant::now()), "something goes on");
    let first = desk.next_batch(0, Instant::now());
    assert_eq!(seqs(&first), [1]);
    answer(&mut desk, first, &Outcome::Delivered);
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}
