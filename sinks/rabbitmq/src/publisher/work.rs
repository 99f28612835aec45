//! The messages of a batch without an outcome.

use std::collections::{HashMap, HashSet};

use lapin::types::ShortString;
use sendoff::Outcome;
use sendoff_wire::PartSize;

use super::send::{End, Fate, Sent};
use super::{Make, Prepared};
use crate::error::{self, Failure};

pub(super) struct Work<'a> {
    make: Make<'a>,
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// Everything before this index has an outcome.
    begin: usize,
    /// The outcome of a message whose connection was lost, if it cannot be sent again.
    lost: Vec<Option<Outcome>>,
    /// A message made the broker close the channel: messages are sent one by one until it is found.
    pub(super) one_by_one: bool,
    /// A message may have made the broker close the connection: it is searched in smaller and smaller parts.
    size: PartSize,
    /// Exchanges that do not accept messages, with the outcome of their messages.
    pub(super) refused: HashMap<ShortString, Outcome>,
    max_message_bytes: usize,
    pub(super) frame_max: usize,
}

impl<'a> Work<'a> {
    pub(super) fn new(count: usize, make: Make<'a>, max_message_bytes: usize) -> Self {
        Self {
            make,
            outcomes: vec![None; count],
            lost: vec![None; count],
            begin: 0,
            one_by_one: false,
            size: PartSize::new(count),
            refused: HashMap::new(),
            max_message_bytes,
            frame_max: usize::MAX,
        }
    }

    /// Whether a message has no outcome yet.
    pub(super) fn is_open(&mut self) -> bool {
        self.next_place(self.begin)
            .inspect(|place| self.begin = *place)
            .is_some()
    }

    /// The first message without an outcome that can be sent.
    pub(super) fn next(&mut self) -> Option<(usize, Prepared)> {
        self.next_from(self.begin)
    }

    /// Returns one message after the other, starting with this one, up to the first with an unchecked exchange.
    pub(super) fn feed(
        &mut self,
        first: (usize, Prepared),
        known: &HashSet<ShortString>,
    ) -> impl FnMut() -> Option<(usize, Prepared)> + Send {
        let mut from = first.0 + 1;
        let mut first = Some(first);
        let mut left = if self.one_by_one { 1 } else { self.size.get() };
        move || {
            left = left.checked_sub(1)?;
            if first.is_some() {
                return first.take();
            }
            let (place, message) = self.next_from(from)?;
            if !known.contains(&message.exchange) {
                from = self.outcomes.len();
                return None;
            }
            from = place + 1;
            Some((place, message))
        }
    }

    /// Settles the rest without sending it. Messages whose connection was lost may have arrived, so they keep that
    /// outcome.
    pub(super) fn settle_rest(&mut self, outcome: &Outcome) {
        for (open, lost) in self.outcomes.iter_mut().zip(&mut self.lost) {
            if open.is_none() {
                *open = Some(lost.take().unwrap_or_else(|| outcome.clone()));
            }
        }
    }

    /// Settles the sent messages. If the channel was closed, or the connection was lost and a single message may be the
    /// cause, unconfirmed messages stay open and are sent again.
    pub(super) fn settle(&mut self, sent: Sent) -> Option<End> {
        let Sent { fates, returned, end } = sent;
        let (mut again, mut first) = (false, false);
        let (unsent, unconfirmed) = match &end {
            None => {
                self.size.settled();
                (None, None)
            }
            Some(End::Closed(error)) if error::channel_error(error).is_some() => (None, None),
            Some(End::Closed(error)) => {
                first = !self.size.has_broken();
                self.size.broke(fates.len());
                again = error::may_be_due_to_a_message(error) && !self.size.is_hopeless();
                let failure = Failure::lost(error);
                (Some(failure.outcome()), Some(failure.unknown()))
            }
            Some(End::Silent(failure)) => (Some(failure.outcome()), Some(failure.unknown())),
            Some(End::Blocked(failure)) => (Some(failure.outcome()), Some(failure.outcome())),
        };
        let alone = fates.len() == 1;
        for (place, fate) in &fates {
            self.outcomes[*place] = match fate {
                Fate::Acked => Some(Outcome::Delivered),
                Fate::Nacked => Some(error::nacked()),
                Fate::Sent if again && !alone => {
                    self.lost[*place].clone_from(&unconfirmed);
                    None
                }
                Fate::Sent => unconfirmed.clone(),
                // The connection may have been dead before. If it fails again, this message cannot be written.
                Fate::Unsent if again && alone && !first => unconfirmed.clone(),
                Fate::Unsent if again => None,
                Fate::Unsent => unsent.clone(),
            };
        }
        if again {
            tracing::debug!(
                event = "batch_broke",
                messages = fates.len(),
                "connection broke during a batch; sending it again in smaller parts"
            );
        }
        if !returned.is_empty() {
            let sent: Vec<(usize, Option<Prepared>)> = fates
                .iter()
                .map(|(place, _)| (*place, (self.make)(*place).ok()))
                .collect();
            for message in returned {
                // With several messages confirmed together, the client does not know which one was returned.
                let is_it = |(place, made): &&(usize, Option<Prepared>)| {
                    let is_it = made.as_ref().is_some_and(|made| made.is(&message));
                    is_it && !matches!(self.outcomes[*place], Some(Outcome::Permanent(_)))
                };
                if let Some((place, Some(made))) = sent.iter().find(is_it) {
                    let text = message.reply_text.as_str();
                    self.outcomes[*place] = Some(error::unroutable(made, message.reply_code, text));
                } else {
                    self.doubt_all(&sent);
                }
            }
        }
        if let Some(unsent) = unsent.filter(|_| !again) {
            self.settle_rest(&unsent);
        }
        end
    }

    /// One of them was returned, and it is unknown which: none of them counts as delivered.
    fn doubt_all(&mut self, sent: &[(usize, Option<Prepared>)]) {
        for (place, _) in sent {
            if self.outcomes[*place] == Some(Outcome::Delivered) {
                let reason = "RabbitMQ returned a message of this batch that has no unique id (give every message its \
                              own message_id)";
                self.outcomes[*place] = Some(Outcome::Unknown(reason.into()));
            }
        }
    }

    fn next_place(&self, from: usize) -> Option<usize> {
        (from..self.outcomes.len()).find(|place| self.outcomes[*place].is_none())
    }

    /// The next message that can be sent. Messages before it that cannot are settled.
    fn next_from(&mut self, mut from: usize) -> Option<(usize, Prepared)> {
        loop {
            let place = self.next_place(from)?;
            let outcome = match (self.make)(place) {
                Ok(message) => match self.refusal(&message) {
                    None => return Some((place, message)),
                    Some(outcome) => outcome,
                },
                Err(outcome) => outcome,
            };
            self.outcomes[place] = Some(outcome);
            from = place + 1;
        }
    }

    fn refusal(&self, message: &Prepared) -> Option<Outcome> {
        let unsendable = message.unsendable(self.max_message_bytes, self.frame_max);
        unsendable
            .map(Outcome::Permanent)
            .or_else(|| self.refused.get(&message.exchange).cloned())
    }
}
