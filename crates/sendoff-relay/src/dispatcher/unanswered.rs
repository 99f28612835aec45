//! Messages that a sink gave no answer for: it went down, or the outcome is unknown.
//!
//! Usually the cause is the sink or the network: no attempt is charged, and the message is sent again as soon as the sink
//! answers. But the message can be the cause, such as one that makes a broker close the connection. The sign is that it stays
//! without an answer while the sink answers for others.

use super::*;

/// How many messages are remembered per sink. Beyond that all are forgotten, and each has one more try.
const REMEMBERED: usize = 20_000;

/// The longest pause for a message at which a sink says that it is down, again and again, while it answers for others.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Unanswered {
    /// How many messages the sink has answered for.
    answers: u64,
    /// Whether it answered for one of the batch that is looked at, and whether that is a single message.
    in_batch: bool,
    alone: bool,
    /// When it last gave no answer for a message. What was under way then proves nothing.
    failed: Option<Instant>,
    messages: FxHashMap<sendoff::Uuid, Strikes>,
}

#[cfg_attr(test, derive(Clone))]
struct Strikes {
    /// How many messages the sink had answered for, the last time that it did not for this one.
    answers: u64,
    count: u32,
}

impl Unanswered {
    /// The sink answered for so many of the messages of a batch that was handed over at `begun`.
    pub(super) fn batch(&mut self, answers: usize, messages: usize, begun: Instant) {
        if self.failed.is_none_or(|failed| begun > failed) {
            self.answers += answers as u64;
        }
        (self.in_batch, self.alone) = (answers > 0, messages == 1);
    }

    /// Whether it answered for another message of this batch.
    pub(super) fn answered_others(&self) -> bool {
        self.in_batch
    }

    /// It answered for this message.
    pub(super) fn clear(&mut self, id: sendoff::Uuid) {
        if !self.messages.is_empty() {
            self.messages.remove(&id);
        }
    }

    /// It gave no answer for this message. Returns how often that happened while it answered for others in between.
    pub(super) fn strike(&mut self, id: sendoff::Uuid, now: Instant) -> u32 {
        self.failed = Some(now);
        if self.messages.len() >= REMEMBERED {
            self.messages.clear();
        }
        let answers = self.answers;
        let strikes = self.messages.entry(id).or_insert(Strikes { answers, count: 0 });
        if answers > strikes.answers {
            *strikes = Strikes {
                answers,
                count: strikes.count + 1,
            };
        }
        // A whole batch without an answer proves nothing about one of its messages.
        if self.in_batch || self.alone { strikes.count } else { 0 }
    }
}

/// How long a message waits at which a sink says that it is down while it answers for others.
pub(super) fn pause_after(strikes: u32) -> Duration {
    Duration::from_secs(1 << strikes.min(10)).min(LONGEST_PAUSE)
}

impl Dispatcher {
    /// What the sink says of a whole batch, before each of its messages is looked at.
    pub(crate) fn begin_answers(&mut self, sink: SinkIndex, outcomes: &[sendoff::Outcome], begun: Instant) {
        let answers = outcomes.iter().filter(|outcome| is_answer(outcome)).count();
        self.sinks[sink].unanswered.batch(answers, outcomes.len(), begun);
    }

    /// Puts another message in front than the last that probed in vain: it may have been the cause.
    pub(super) fn choose_probe(&mut self, sink: SinkIndex) {
        let sink_queue = &mut self.sinks[sink];
        let id_of = |ticket: &Ticket| self.entries.get(ticket.entry).map(|entry| entry.outgoing.id);
        let others: Vec<usize> = (0..sink_queue.queue.len())
            .filter(|at| {
                let id = id_of(&sink_queue.queue[*at]);
                id.is_some() && id != sink_queue.probe
            })
            .collect();
        if let Some(at) = self.rng.choice(&others)
            && let Some(ticket) = sink_queue.queue.remove(*at)
        {
            sink_queue.queue.push_front(ticket);
        }
        sink_queue.probe = sink_queue.queue.front().and_then(id_of);
    }
}

/// Whether an outcome is about the message itself.
pub(super) fn is_answer(outcome: &sendoff::Outcome) -> bool {
    use sendoff::Outcome;
    matches!(
        outcome,
        Outcome::Delivered | Outcome::Temporary(_) | Outcome::Permanent(_)
    )
}
