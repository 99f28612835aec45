//! One key at one sink, and the queue of its messages.

use std::collections::VecDeque;

use super::{Origin, Ticket};
use crate::dispatcher::EntryId;

/// What is known of a key at a sink.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct KeyAtSink {
    /// Its messages in flight, one of them with the sink or about to be.
    pub(super) queue: Queue,
    pub(super) blocked: Option<Blocked>,
    pub(super) failure: Option<Failure>,
    pub(super) undecided: Option<Box<Undecided>>,
}

/// Rows of the key wait, or block from the dead letters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    /// How many of them are on their way to the table.
    pub(super) unwritten: u32,
    /// When this last changed, counted in reads of the blocked keys.
    pub(super) round: u32,
}

/// The last failed message of the key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure {
    pub(super) seq: i64,
    /// Whether it is written.
    pub(super) written: bool,
}

/// A message that has to wait here and is undecided at another sink. It is written when all its sinks have answered. Until
/// then those behind it must not be written either: they would be alone in the table, and be released before it is there.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Undecided {
    pub(super) entry: EntryId,
    pub(super) queue: VecDeque<Member>,
}

impl KeyAtSink {
    /// Whether a message that arrives has to wait.
    pub(super) fn stops(&self, member: &Member, origin: Origin) -> bool {
        match origin {
            // It was due when it was read. Since then, a message before it has failed.
            Origin::Waiting { .. } => self.failed_before(member.seq),
            Origin::New => {
                self.blocked.is_some() && !self.queue.has_ready_before(member.seq) && !planted!(OvertakesHead)
            }
        }
    }

    pub(super) fn failed_before(&self, seq: i64) -> bool {
        self.failure.is_some_and(|failure| failure.seq < seq)
    }

    /// A row of it waits or is going to, or blocks from the dead letters.
    pub(super) fn block(&mut self, round: u32) -> &mut Blocked {
        let blocked = self.blocked.get_or_insert(Blocked { unwritten: 0, round });
        blocked.round = round;
        blocked
    }

    /// One of the rows on their way is in the table.
    pub(super) fn arrived(&mut self, seq: i64, round: u32) {
        if let Some(failure) = self.failure.as_mut().filter(|failure| failure.seq == seq) {
            failure.written = true;
        }
        if let Some(blocked) = &mut self.blocked {
            blocked.unwritten = blocked.unwritten.saturating_sub(1);
            blocked.round = round;
        }
    }

    /// None of its rows is in the tables. Rows that are not written yet came after that, and block it again.
    pub(super) fn free(&mut self) {
        self.blocked
            .take_if(|blocked| blocked.unwritten == 0 || planted!(FreedTooEarly));
    }

    /// A message failed. Returns whether none was remembered before.
    pub(super) fn fails(&mut self, seq: i64) -> bool {
        let failure = Failure { seq, written: false };
        self.failure.replace(failure).is_none()
    }

    /// One behind the failed one may go as well, as when it has expired: the others still wait.
    pub(super) fn forget_failure_of(&mut self, seq: i64) {
        self.failure.take_if(|failure| failure.seq == seq);
    }

    /// A message lets its followers go. Returns the next one, if this was the first.
    pub(super) fn goes(&mut self, member: Member) -> Option<Ticket> {
        self.forget_failure_of(member.seq);
        self.queue.leave(member.ticket)
    }

    /// A message is undecided at another sink. Returns whether none was before.
    pub(super) fn shut(&mut self, entry: EntryId) -> bool {
        let is_first = self.undecided.is_none();
        self.undecided.get_or_insert_with(|| {
            Box::new(Undecided {
                entry,
                queue: VecDeque::new(),
            })
        });
        is_first
    }

    /// This message is decided everywhere. Returns those behind it, if it was the one that they queued behind.
    pub(super) fn open(&mut self, entry: EntryId) -> Option<VecDeque<Member>> {
        let opened = self.undecided.take_if(|undecided| undecided.entry == entry);
        opened.map(|undecided| undecided.queue)
    }

    /// Nothing has to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.blocked.is_none() && self.failure.is_none() && self.undecided.is_none()
    }
}

/// One message of a key, at one sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::dispatcher) struct Member {
    pub(in crate::dispatcher) ticket: Ticket,
    pub(in crate::dispatcher) seq: i64,
    /// Its row is in the ready table.
    pub(in crate::dispatcher) is_ready: bool,
}

/// The first message, and those behind it. Usually a key has one message in flight: that takes no allocation.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Queue {
    pub(super) first: Option<Member>,
    pub(super) rest: VecDeque<Member>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn first(&self) -> Option<Ticket> {
        self.first.map(|member| member.ticket)
    }

    /// Returns how many there are now.
    pub(super) fn push(&mut self, member: Member) -> usize {
        if self.first.is_none() {
            self.first = Some(member);
        } else {
            self.rest.push_back(member);
        }
        1 + self.rest.len()
    }

    /// Whether one that is in the ready table stands before this number.
    pub(super) fn has_ready_before(&self, seq: i64) -> bool {
        let mut members = self.first.iter().chain(&self.rest);
        members.any(|member| member.is_ready && member.seq < seq)
    }

    /// A message is done. Returns the next one, if it was the first.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Ticket> {
        if self.first() != Some(ticket) {
            self.drop(ticket);
            return None;
        }
        self.first = self.rest.pop_front();
        self.first()
    }

    /// A message leaves, wherever it is.
    pub(super) fn drop(&mut self, ticket: Ticket) {
        if self.first() == Some(ticket) {
            self.first = self.rest.pop_front();
        } else {
            self.rest.retain(|member| member.ticket != ticket);
        }
    }

    /// A message has to wait: if it is the first, all others leave as well, and are returned.
    pub(super) fn take_behind(&mut self, ticket: Ticket) -> VecDeque<Member> {
        // A blocked one was never in the queue, or is behind the one that blocks it.
        if self.first() != Some(ticket) {
            self.drop(ticket);
            return VecDeque::new();
        }
        self.first = None;
        std::mem::take(&mut self.rest)
    }
}
