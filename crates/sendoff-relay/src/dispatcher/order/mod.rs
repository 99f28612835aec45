//! The order of a key: what its messages may do next at a sink.
//!
//! There is one state machine per key and sink, [`KeyAtSink`]. Other files only report events to [`KeyOrder`], and do what it
//! answers. Messages without a key never come here. A key without messages and without failures is in no map.
//!
//! # States
//! A sink gets one message of a key at a time. The others in flight *queue* behind it. A key is *blocked* while a row of it is
//! in the waiting table, or on its way there, or blocks from the dead letters.
//!
//! | state | blocked | queue | meaning |
//! |---|---|---|---|
//! | `Free` | no | empty | the next message may go |
//! | `Sending` | no | not empty | the first is queued at the sink, with the sink, or has a verdict that must be written before others go |
//! | `Blocked` | yes | empty | what is read goes to the waiting table |
//! | `Retrying` | yes | not empty | as `Blocked`; a row came back from the waiting table and is in flight |
//! | `Undecided` | yes | any | a message has to wait here, and is undecided at another sink. Those behind it queue until it is being written |
//!
//! # Transitions
//! | event | `Free` | `Sending` | `Blocked` | `Retrying` | `Undecided` |
//! |---|---|---|---|---|---|
//! | [`arrives`](KeyOrder::arrives), not tried before | `Sending`: queue it at the sink | stays: it queues | stays: block it | stays: block it¹ | stays: block it¹ |
//! | `arrives`, from the waiting table | `Retrying`²: queue it at the sink | `Retrying`²: it queues | `Retrying`: queue it at the sink³ | stays: it queues³ | stays: it queues³ |
//! | [`has_to_wait`](KeyOrder::has_to_wait) | block it | block it | block it | block it | stays: it queues behind the undecided one |
//! | [`decided`](KeyOrder::decided): `Go` | | `Free` or stays: queue the next one at the sink | | `Blocked` or stays: queue the next one at the sink | stays, likewise |
//! | `decided`: `GoOnceSettled` | | stays | | stays | stays |
//! | `decided`: `Wait` | `Blocked`⁴ | `Blocked`⁴: block the followers⁵ | stays⁴ | `Blocked`⁴: block the followers⁵ | stays: followers queue⁵ |
//! | [`complete`](KeyOrder::complete) | | | | | `Blocked` or `Retrying`: block those that queued behind it |
//! | [`written`](KeyOrder::written): `GoOnceSettled` | | `Free` or stays: queue the next one at the sink | | `Blocked` or stays, likewise | stays, likewise |
//! | `written`: `Wait` | | | stays: one row less is on its way | likewise | likewise |
//! | [`freed`](KeyOrder::freed), [`recheck`](KeyOrder::recheck) | | | `Free`⁶ | `Sending`⁶ | stays |
//! | [`leaves`](KeyOrder::leaves) | | `Free` or stays | | `Blocked` or stays | stays |
//! | [`known_blocked`](KeyOrder::known_blocked) | `Blocked` | `Retrying` | stays | stays | stays |
//! | [`lose`](KeyOrder::lose) | | `Free` | `Free` | `Free` | `Free` |
//!
//! 1. Unless one from the ready table, with a lower number, queues here: then it queues, too. In the waiting table it would be
//!    found in front of that one after a crash.
//! 2. `Sending` if failed messages of its topic are parked: a parked one blocks nobody.
//! 3. Unless a message before it failed since the read that found it began: then it is blocked again. See `failure`.
//! 4. `Undecided` if the message is undecided at another sink.
//! 5. Those behind the first. If another one has to wait, only that one leaves the queue.
//! 6. Only if no row is on its way to the waiting table: that row would be overtaken. `recheck` also leaves keys alone that
//!    changed since the store was asked.
//!
//! # Failures that a read has not seen
//! Settling a failed row blocks its followers in the waiting table that were due. A read that began before may still return
//! them. So a key remembers its last failure until a read begins after the failure is written.

mod at_sink;
mod read_again;
mod recheck;
#[cfg(test)]
mod tests;
mod whole_key;

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::collections::hash_map::Entry as Known;
use std::sync::Arc;

use sendoff::store::{BlockedKey, Lane};

use super::{EntryId, Ticket};
pub(super) use at_sink::Member;
use at_sink::{Failure, KeyAtSink};
pub(super) use whole_key::{last_begun, of_key};

/// A key at a sink. A key is in one lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyRef {
    pub(super) lane: Lane,
    pub(super) key: Arc<str>,
    pub(super) sink: Arc<str>,
}

impl From<BlockedKey> for KeyRef {
    fn from(BlockedKey { lane, key, sink }: BlockedKey) -> Self {
        Self { lane, key, sink }
    }
}

/// Where a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// No sink had it.
    New,
    /// The waiting table has a row for this delivery: its key waits for it, unless it is `parked`.
    Waiting { parked: bool },
}

/// What to do with a message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// None of its key is in front of it.
    First,
    /// It queues.
    Behind,
    /// It has to wait in the table.
    Blocked,
}

/// What the messages behind one with a verdict may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followers {
    /// They may go.
    Go,
    /// They may go when the verdict is written. After a crash before that, the message would be read again and could arrive
    /// after them.
    GoOnceSettled,
    /// They have to wait as well: it failed, or is itself blocked.
    Wait { failed: bool },
}

/// What to do after a verdict.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// This one may go to the sink.
    Send(Ticket),
    /// These have to wait, in this order.
    Wait(VecDeque<Member>),
}

/// The order of all keys of the lanes that are held.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct KeyOrder {
    keys: FxHashMap<KeyRef, KeyAtSink>,
    /// Keys that remember a failure; some may have forgotten it.
    failures: Vec<KeyRef>,
    /// How many keys are undecided.
    undecided: usize,
    /// Keys that are read again, until the next read begins. One that is under way may bring what comes behind them.
    read_again: FxHashSet<(Lane, Arc<str>)>,
    /// How often the store was asked for blocked keys.
    round: u32,
}

impl KeyOrder {
    /// A message was read. It `joins` the queue unless its sink is not here.
    pub(super) fn arrives(&mut self, at: KeyRef, member: Member, origin: Origin, joins: bool) -> Arrival {
        let blocks = origin == Origin::Waiting { parked: false };
        let key = match self.keys.entry(at) {
            Known::Occupied(known) => {
                let key = known.into_mut();
                if key.stops(&member, origin) {
                    return Arrival::Blocked;
                }
                key
            }
            Known::Vacant(_) if !blocks && !joins => return Arrival::First,
            Known::Vacant(free) => free.insert(KeyAtSink::default()),
        };
        if blocks {
            key.block(self.round);
        }
        if joins && key.queue.push(member) > 1 {
            Arrival::Behind
        } else {
            Arrival::First
        }
    }

    /// A message has to wait. Returns whether it is to be blocked now: otherwise it queues behind the undecided one.
    pub(super) fn has_to_wait(&mut self, at: &KeyRef, member: Member) -> bool {
        let undecided = if self.undecided > 0 {
            self.keys.get_mut(at)
        } else {
            None
        };
        match undecided.and_then(|key| key.undecided.as_mut()) {
            Some(undecided) => {
                undecided.queue.push_back(member);
                false
            }
            None => true,
        }
    }

    /// A message has a verdict here. It `is_open` while it has none at another sink.
    pub(super) fn decided(&mut self, at: &KeyRef, member: Member, followers: Followers, is_open: bool) -> Next {
        match followers {
            Followers::Go => match self.change(at, |key| key.goes(member)).flatten() {
                Some(next) => Next::Send(next),
                None => Next::Nothing,
            },
            Followers::GoOnceSettled => {
                self.change(at, |key| key.forget_failure_of(member.seq));
                Next::Nothing
            }
            Followers::Wait { failed } => {
                let key = self.keys.entry(at.clone()).or_default();
                if is_open && key.shut(member.ticket.entry) {
                    self.undecided += 1;
                }
                if failed && key.fails(member.seq) {
                    self.failures.push(at.clone());
                }
                key.block(self.round).unwritten += 1;
                Next::Wait(key.queue.take_behind(member.ticket))
            }
        }
    }

    /// Whether a key may have messages that queue behind an undecided one.
    pub(super) fn has_undecided(&self) -> bool {
        self.undecided > 0
    }

    /// A message has all its verdicts, and is being written. Returns those that queued behind it.
    pub(super) fn complete(&mut self, at: &KeyRef, entry: EntryId) -> VecDeque<Member> {
        let opened = self.change(at, |key| key.open(entry)).flatten();
        self.undecided -= usize::from(opened.is_some());
        opened.unwrap_or_default()
    }

    /// The verdict of a message is written. Returns the next one, if it may go to the sink now.
    pub(super) fn written(&mut self, at: &KeyRef, member: Member, followers: Followers) -> Option<Ticket> {
        let round = self.round;
        match followers {
            Followers::Go => None,
            Followers::GoOnceSettled => self.change(at, |key| key.queue.leave(member.ticket)).flatten(),
            Followers::Wait { .. } => {
                self.change(at, |key| key.arrived(member.seq, round));
                None
            }
        }
    }

    /// The store has a row that blocks this key.
    pub(super) fn known_blocked(&mut self, at: KeyRef) {
        self.keys.entry(at).or_default().block(self.round);
    }

    /// None of its rows is in the tables any more.
    pub(super) fn freed(&mut self, freed: &BlockedKey) {
        self.change(&freed.clone().into(), KeyAtSink::free);
    }

    /// A message is dropped from memory, without a verdict or with one. The next one of its queue stays where it is.
    pub(super) fn leaves(&mut self, at: &KeyRef, ticket: Ticket) {
        self.change(at, |key| key.queue.drop(ticket));
    }

    /// These lanes belong to another relay now.
    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        self.keys.retain(|at, _| !lanes.contains(&at.lane));
        self.failures.retain(|at| !lanes.contains(&at.lane));
        self.undecided = self.keys.values().filter(|key| key.undecided.is_some()).count();
    }

    /// The first message of each queue.
    pub(super) fn firsts(&self) -> impl Iterator<Item = Ticket> {
        self.keys.values().filter_map(|key| key.queue.first())
    }

    /// Whether what is read of this key has to wait.
    pub(super) fn is_blocked(&self, at: &KeyRef) -> bool {
        self.keys.get(at).is_some_and(|key| key.blocked.is_some())
    }

    /// Whether a message before this one failed, and a read that is under way may not have seen it.
    pub(super) fn follows_failure(&self, at: &KeyRef, seq: i64) -> bool {
        self.keys.get(at).is_some_and(|key| key.failed_before(seq))
    }

    /// A read begins: it sees all that is written by now. Rows of some lanes that came with earlier reads `wait` to be
    /// admitted.
    pub(super) fn read_begins(&mut self, wait: impl Fn(Lane) -> bool) {
        self.read_again.clear();
        if self.failures.is_empty() {
            return;
        }
        let mut failures = std::mem::take(&mut self.failures);
        failures.retain(|at| {
            let seen = |failure: &mut Failure| failure.written && !wait(at.lane);
            let remembers = self.change(at, |key| {
                key.failure.take_if(seen);
                key.failure.is_some()
            });
            remembers == Some(true)
        });
        self.failures = failures;
    }

    /// Changes a key that is known, and drops it when it is free.
    fn change<T>(&mut self, at: &KeyRef, change: impl FnOnce(&mut KeyAtSink) -> T) -> Option<T> {
        let key = self.keys.get_mut(at)?;
        let changed = change(key);
        if key.is_idle() {
            self.keys.remove(at);
        }
        Some(changed)
    }
}
