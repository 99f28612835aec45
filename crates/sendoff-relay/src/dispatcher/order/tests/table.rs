//! Every cell of the table in the head of the module.

use super::State::{Blocked, Free, Retrying, Sending, Undecided};
use super::*;

const NEW: Origin = Origin::New;
const WAITING: Origin = Origin::Waiting { parked: false };
const PARKED: Origin = Origin::Waiting { parked: true };
const FAILED: Followers = Followers::Wait { failed: true };

/// A key in a state. Its queue has `queued`, from number 10 on.
struct Case {
    order: KeyOrder,
    ids: Ids,
    queued: Vec<Member>,
    /// The message that others are behind, if it is undecided at another sink.
    undecided: Option<Member>,
}

impl Case {
    fn member(&mut self, seq: i64) -> Member {
        Member {
            ticket: self.ids.ticket(),
            seq,
            is_ready: false,
        }
    }

    /// A key in this state, with so many messages in its queue.
    fn new(state: State, queued: usize) -> Self {
        let mut case = Self {
            order: KeyOrder::default(),
            ids: Ids::default(),
            queued: Vec::new(),
            undecided: None,
        };
        for seq in 10..10 + queued as i64 {
            let member = case.member(seq);
            case.order.arrives(at("a"), member, PARKED, true);
            case.queued.push(member);
        }
        if matches!(state, Blocked | Retrying) {
            case.order.known_blocked(at("a"));
        }
        if state == Undecided {
            let member = case.member(5);
            case.order
                .decided(&at("a"), member, Followers::Wait { failed: false }, true);
            case.undecided = Some(member);
        }
        assert_eq!(case.order.state(&at("a")), state);
        case
    }

    fn arrives(&mut self, seq: i64, origin: Origin) -> (Arrival, State) {
        let member = self.member(seq);
        let arrival = self.order.arrives(at("a"), member, origin, true);
        (arrival, self.order.state(&at("a")))
    }

    fn first_decided(&mut self, followers: Followers, is_open: bool) -> (Next, State) {
        let next = self.order.decided(&at("a"), self.queued[0], followers, is_open);
        (next, self.order.state(&at("a")))
    }

    fn state(&self) -> State {
        self.order.state(&at("a"))
    }
}

/// Each state, with the number of messages in its queue.
const ALL: [(State, usize); 8] = [
    (Free, 0),
    (Sending, 1),
    (Sending, 2),
    (Blocked, 0),
    (Retrying, 1),
    (Retrying, 2),
    (Undecided, 0),
    (Undecided, 2),
];

#[test]
fn what_arrives_goes_queues_or_is_blocked() {
    for (state, queued) in ALL {
        let place = if queued == 0 { Arrival::First } else { Arrival::Behind };
        let new = match state {
            Free | Sending => (place, Sending),
            Blocked | Retrying | Undecided => (Arrival::Blocked, state),
        };
        assert_eq!(Case::new(state, queued).arrives(20, NEW), new, "{state:?}");
        let retried = if state == Undecided { Undecided } else { Retrying };
        assert_eq!(
            Case::new(state, queued).arrives(20, WAITING),
            (place, retried),
            "{state:?}"
        );
        let parked = match state {
            Free | Sending => Sending,
            Blocked | Retrying | Undecided => retried,
        };
        assert_eq!(
            Case::new(state, queued).arrives(20, PARKED),
            (place, parked),
            "{state:?}"
        );
    }
}

#[test]
fn one_behind_a_ready_one_queues_although_its_key_is_blocked() {
    let mut case = Case::new(Free, 0);
    let ready = Member {
        is_ready: true,
        ..case.member(10)
    };
    case.order.arrives(at("a"), ready, NEW, true);
    case.order.known_blocked(at("a"));
    assert_eq!(case.arrives(11, NEW), (Arrival::Behind, Retrying));
    assert_eq!(case.arrives(9, NEW), (Arrival::Blocked, Retrying));
}

#[test]
fn one_that_was_read_before_another_failed_is_blocked_until_a_read_has_seen_the_failure() {
    let mut case = Case::new(Sending, 1);
    let failed = case.queued[0];
    case.order.decided(&at("a"), failed, FAILED, false);
    assert_eq!(case.arrives(20, WAITING).0, Arrival::Blocked);
    case.order.read_begins(|_| false);
    assert_eq!(case.arrives(20, WAITING).0, Arrival::Blocked, "it is not written");
    case.order.written(&at("a"), failed, FAILED);
    case.order.read_begins(|_| true);
    assert_eq!(
        case.arrives(20, WAITING).0,
        Arrival::Blocked,
        "earlier rows wait to be admitted"
    );
    case.order.read_begins(|_| false);
    assert_eq!(case.arrives(20, WAITING), (Arrival::First, Retrying));
}

#[test]
fn one_that_has_to_wait_queues_only_behind_an_undecided_one() {
    for (state, queued) in ALL {
        let mut case = Case::new(state, queued);
        let member = case.member(20);
        assert_eq!(case.order.has_to_wait(&at("a"), member), state != Undecided);
        assert_eq!(case.state(), state);
        if let Some(undecided) = case.undecided {
            let behind = case.order.complete(&at("a"), undecided.ticket.entry);
            assert_eq!(behind, [member]);
            assert_eq!(case.state(), if queued == 0 { Blocked } else { Retrying });
        }
    }
}

#[test]
fn a_verdict_lets_the_next_one_go_now_or_later_or_makes_all_wait() {
    for (state, queued) in ALL.into_iter().filter(|(_, queued)| *queued > 0) {
        let empty = match state {
            Free | Sending => Free,
            Blocked | Retrying => Blocked,
            Undecided => Undecided,
        };
        let left = if queued > 1 { state } else { empty };
        let case = || Case::new(state, queued);
        let next = |case: &Case| case.queued.get(1).map(|member| member.ticket);
        let mut goes = case();
        let expected = next(&goes).map_or(Next::Nothing, Next::Send);
        assert_eq!(goes.first_decided(Followers::Go, false), (expected, left));

        let mut settles = case();
        assert_eq!(
            settles.first_decided(Followers::GoOnceSettled, false),
            (Next::Nothing, state)
        );
        let first = settles.queued[0];
        let sent = settles.order.written(&at("a"), first, Followers::GoOnceSettled);
        assert_eq!((sent, settles.state()), (next(&settles), left));

        for is_open in [false, true] {
            let mut waits = case();
            let behind: VecDeque<Member> = waits.queued[1..].iter().copied().collect();
            let stays = if is_open || state == Undecided {
                Undecided
            } else {
                Blocked
            };
            assert_eq!(waits.first_decided(FAILED, is_open), (Next::Wait(behind), stays));
        }
        let mut other = Case::new(state, 3);
        let last = other.queued[2];
        let waits = other.order.decided(&at("a"), last, FAILED, false);
        assert_eq!(waits, Next::Wait(VecDeque::new()), "only the last one leaves");
        assert_eq!(other.order.firsts().collect::<Vec<_>>(), [other.queued[0].ticket]);
    }
}

#[test]
fn a_key_is_free_when_no_row_of_it_is_in_the_tables_or_on_its_way_there() {
    let freed = BlockedKey {
        lane: 1,
        key: "k".into(),
        sink: "a".into(),
    };
    for (state, queued) in ALL {
        let mut case = Case::new(state, queued);
        case.order.freed(&freed);
        let free = match state {
            Free | Blocked => Free,
            Sending | Retrying => Sending,
            Undecided => Undecided,
        };
        assert_eq!(case.state(), free, "{state:?}");
    }
    let mut case = Case::new(Sending, 1);
    let failed = case.queued[0];
    case.order.decided(&at("a"), failed, FAILED, false);
    case.order.freed(&freed);
    assert_eq!(case.state(), Blocked, "a row is on its way");
    case.order.written(&at("a"), failed, FAILED);
    case.order.freed(&freed);
    assert_eq!(case.state(), Free);
    case.order.read_begins(|_| false);
    assert!(
        case.order.keys.is_empty() && case.order.failures.is_empty(),
        "nothing is left"
    );
}

#[test]
fn what_leaves_and_what_is_lost_takes_nothing_with_it() {
    for (state, queued) in ALL {
        let mut case = Case::new(state, queued);
        let before = case.state();
        if let Some(first) = case.queued.first().copied() {
            case.order.leaves(&at("a"), first.ticket);
            let left = match state {
                _ if queued > 1 => before,
                Sending => Free,
                Retrying => Blocked,
                other => other,
            };
            assert_eq!(case.state(), left);
        }
        case.order.lose(&[2]);
        case.order.known_blocked(KeyRef { lane: 2, ..at("a") });
        case.order.lose(&[1]);
        assert_eq!((case.state(), case.order.has_undecided()), (Free, false));
        assert_eq!(case.order.keys.len(), 1, "the other lane stays");
    }
}
