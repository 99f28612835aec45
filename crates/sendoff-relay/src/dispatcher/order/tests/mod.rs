//! The machine alone: its table, and random events against a model.

mod model;
mod random;
mod table;

use slotmap::SlotMap;

use super::at_sink::KeyAtSink;
use super::*;

/// The states of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Free,
    Sending,
    Blocked,
    Retrying,
    Undecided,
}

impl KeyOrder {
    fn state(&self, at: &KeyRef) -> State {
        self.keys.get(at).map_or(State::Free, KeyAtSink::state)
    }

    /// What the next steps depend on, in numbers.
    pub(in crate::dispatcher) fn code(&self, ticket: impl Fn(Ticket) -> i64) -> Vec<i64> {
        let mut known: Vec<_> = self.keys.iter().collect();
        known.sort_by_key(|(at, _)| *at);
        let mut code = Vec::new();
        for (at, key) in known {
            code.push(i64::from(at.sink.as_bytes()[0]));
            code.extend(members(key).map(|member| ticket(member.ticket)));
            let blocked = key.blocked.map(|blocked| {
                let is_new = blocked.round == self.round;
                i64::from(blocked.unwritten) * 2 + i64::from(is_new)
            });
            let failure = key.failure.map(|failure| failure.seq * 2 + i64::from(failure.written));
            code.extend([-1, blocked.unwrap_or(-1), failure.unwrap_or(-1)]);
            if let Some(undecided) = &key.undecided {
                code.push(ticket(Ticket {
                    entry: undecided.entry,
                    delivery: 0,
                }));
                code.extend(undecided.queue.iter().map(|member| ticket(member.ticket)));
            }
        }
        code.push(self.read_again.len() as i64);
        code
    }
}

impl KeyAtSink {
    fn state(&self) -> State {
        match (self.undecided.is_some(), self.blocked.is_some(), self.queue.is_empty()) {
            (true, ..) => State::Undecided,
            (false, true, true) => State::Blocked,
            (false, true, false) => State::Retrying,
            (false, false, true) => State::Free,
            (false, false, false) => State::Sending,
        }
    }
}

/// The queue of a key.
fn members(key: &KeyAtSink) -> impl Iterator<Item = &Member> {
    key.queue.first.iter().chain(&key.queue.rest)
}

/// Ids of entries.
#[derive(Default)]
struct Ids(SlotMap<EntryId, ()>);

impl Ids {
    fn ticket(&mut self) -> Ticket {
        Ticket {
            entry: self.0.insert(()),
            delivery: 0,
        }
    }
}

fn at(sink: &str) -> KeyRef {
    KeyRef {
        lane: 1,
        key: "k".into(),
        sink: sink.into(),
    }
}
