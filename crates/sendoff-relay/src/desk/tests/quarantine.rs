//! How the message is found that makes relays crash.

use super::*;
use sendoff::store::Suspect;

fn suspicious(crashes: u32, suspect: Option<Suspect>) -> Desk {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    let grant = LaneGrant {
        suspect,
        ..grant_after_crashes(crashes)
    };
    desk.gain(&[grant], Vec::new(), Instant::now());
    desk
}

fn suspect(first: i64, last: i64, crashes: u32) -> Suspect {
    let alone = first == last;
    Suspect {
        first,
        last,
        id: alone.then(|| sendoff::Uuid::from_u128(first.unsigned_abs().into()).into()),
        leg: None,
        crashes,
    }
}

fn next_group(desk: &mut Desk) -> Vec<i64> {
    let group = desk.next_group(Instant::now());
    group.map_or_else(Vec::new, |(_, places)| places.iter().map(|place| place.seq).collect())
}

fn deliver_group(desk: &mut Desk) {
    desk.group_noted(Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    answer(desk, batch, &Outcome::Delivered);
    settle(desk);
}

fn settle(desk: &mut Desk) {
    let settlements = desk.take_settlements(100);
    desk.settled(settlements, &SettleReport::default().into(), Instant::now());
}

#[tokio::test]
async fn a_message_that_crashed_relays_while_alone_is_dead() {
    let mut desk = suspicious(4, Some(suspect(7, 7, 2)));
    desk.take(vec![row(6, None), row(7, Some("k"))], Instant::now());
    assert!(
        desk.next_batch(0, Instant::now()).is_none(),
        "nothing goes before it is noted as suspect"
    );
    assert_eq!(next_group(&mut desk), [6]);
    assert!(next_group(&mut desk).is_empty(), "one group at a time");
    deliver_group(&mut desk);
    assert_eq!(next_group(&mut desk), [7]);
    desk.group_noted(Instant::now());
    let settlements = desk.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(7, "dead, blocks")]);
    assert_eq!(
        &*settlements.settlements[0].legs[0].leg, "a",
        "it holds up its key at its sink"
    );
    desk.settled(settlements, &SettleReport::default().into(), Instant::now());
    desk.take(vec![row(8, Some("k"))], Instant::now());
    assert!(next_group(&mut desk).is_empty());
    assert_eq!(verdicts(&desk.take_settlements(9).settlements), [(8, "hold")]);
}

#[tokio::test]
async fn messages_go_in_groups_and_those_of_a_group_that_a_relay_died_on_go_alone() {
    let mut desk = suspicious(3, Some(suspect(4, 5, 1)));
    desk.take((1..=7).map(|seq| row(seq, None)).collect(), Instant::now());
    for group in [vec![1, 2, 3], vec![4], vec![5], vec![6, 7]] {
        assert_eq!(next_group(&mut desk), group);
        deliver_group(&mut desk);
    }
    assert!(next_group(&mut desk).is_empty());
    assert_eq!(
        desk.void_note(),
        Some(1),
        "the store is told that nothing is under suspicion"
    );
    assert_eq!(desk.void_note(), None);
}

#[tokio::test]
async fn a_group_waits_until_nothing_else_is_in_hand() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.take(vec![row(1, None)], Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    let other = LaneGrant {
        lane: 2,
        ..grant_after_crashes(2)
    };
    desk.gain(&[other], Vec::new(), Instant::now());
    desk.take(vec![row(2, None)], Instant::now());
    assert!(
        desk.next_batch(0, Instant::now()).is_none(),
        "all lanes are in quarantine"
    );
    assert!(
        next_group(&mut desk).is_empty(),
        "the group would be blamed for the other"
    );
    answer(&mut desk, batch, &Outcome::Delivered);
    settle(&mut desk);
    assert_eq!(next_group(&mut desk), [2]);
}

#[tokio::test]
async fn a_group_that_could_not_be_noted_is_tried_again_in_order() {
    let mut desk = suspicious(2, None);
    desk.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert_eq!(next_group(&mut desk), [1, 2]);
    desk.group_not_noted();
    assert_eq!((next_group(&mut desk), desk.in_hand()), (vec![1, 2], 2));
}

#[tokio::test]
async fn quarantine_ends_after_a_window_or_when_nothing_is_left() {
    // The window of these tests is 16.
    let mut desk = suspicious(2, None);
    desk.take((1..=40).map(|seq| row(seq, None)).collect(), Instant::now());
    assert!(desk.absolve(true, Instant::now()).is_empty());
    next_group(&mut desk);
    deliver_group(&mut desk);
    assert_eq!(desk.absolve(false, Instant::now()), [1]);
    desk.take(vec![row(41, None)], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [41], "it goes as usual");

    let mut desk = suspicious(2, None);
    assert!(desk.absolve(false, Instant::now()).is_empty(), "nothing was read yet");
    assert_eq!(desk.absolve(true, Instant::now()), [1]);
}

#[tokio::test(start_paused = true)]
async fn quarantine_ends_after_a_while_although_a_sink_hangs() {
    let mut desk = suspicious(2, None);
    desk.take((1..=70).map(|seq| row(seq, None)).collect(), Instant::now());
    next_group(&mut desk);
    desk.group_noted(Instant::now());
    assert_eq!(desk.next_batch(0, Instant::now()).unwrap().tickets.len(), 64);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert!(desk.absolve(true, Instant::now()).is_empty());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(desk.absolve(true, Instant::now()), [1]);
    assert_eq!(desk.next_batch(0, Instant::now()).unwrap().tickets.len(), 6);
}

#[tokio::test]
async fn messages_that_no_sink_could_take_do_not_end_a_quarantine() {
    let mut desk = suspicious(2, None);
    desk.take((1..=70).map(|seq| row(seq, None)).collect(), Instant::now());
    next_group(&mut desk);
    desk.group_noted(Instant::now());
    let batch = desk.next_batch(0, Instant::now());
    let (first, rest) = (batch.as_ref().map(|batch| batch.tickets.len()), 6);
    assert_eq!(first, Some(64));
    answer(&mut desk, batch, &Outcome::SinkDown("down".into()));
    settle(&mut desk);
    assert_eq!(next_group(&mut desk).len(), rest);
    desk.group_noted(Instant::now());
    assert!(desk.next_batch(0, Instant::now()).is_none(), "the sink is down");
}

#[tokio::test]
async fn a_single_crash_is_forgotten_after_a_while_without_a_quarantine() {
    tokio::time::pause();
    let mut desk = suspicious(1, None);
    desk.take(vec![row(1, None)], Instant::now());
    assert!(desk.absolve(true, Instant::now()).is_empty());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(desk.absolve(true, Instant::now()), [1]);
}

#[tokio::test]
async fn what_is_in_quarantine_does_not_overtake_a_message_that_was_not_sent() {
    let mut desk = suspicious(2, Some(suspect(1, 3, 1)));
    desk.take(
        vec![row(1, Some("k")), row(2, Some("k")), row(3, Some("other"))],
        Instant::now(),
    );
    assert_eq!(next_group(&mut desk), [1]);
    desk.group_noted(Instant::now());
    let ticket = desk.next_batch(0, Instant::now()).unwrap().tickets[0];
    desk.not_sent(ticket);
    assert_eq!(forgotten(&mut desk), [1, 2]);
    assert_eq!(next_group(&mut desk), [3]);
}

#[tokio::test]
async fn what_queues_is_not_overtaken_when_the_lane_with_the_crashes_is_given_away() {
    let mut desk = suspicious(2, None);
    let other = LaneGrant {
        lane: 2,
        ..grant_after_crashes(0)
    };
    desk.gain(&[other], Vec::new(), Instant::now());
    desk.take(vec![row_of(2, 1, Some("k"))], Instant::now());
    desk.lose(&[1]);
    desk.take(vec![row_of(2, 2, Some("k"))], Instant::now());
    assert!(desk.next_batch(0, Instant::now()).is_none(), "the one before it queues");
    assert!(next_group(&mut desk).is_empty(), "nothing is suspected any more");
    for seq in [1, 2] {
        let batch = desk.next_batch(0, Instant::now()).unwrap();
        assert_eq!(batch.deliveries[0].place.seq, seq);
        answer(&mut desk, Some(batch), &Outcome::Delivered);
    }
}

#[tokio::test]
async fn what_waits_for_the_head_of_its_key_is_no_suspect() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.gain(&[grant_after_crashes(2)], vec![blocked("k")], Instant::now());
    desk.take(vec![row(1, Some("k")), row(2, Some("other"))], Instant::now());
    assert_eq!(next_group(&mut desk), [2]);
    assert_eq!(verdicts(&desk.take_settlements(9).settlements), [(1, "hold")]);
}
