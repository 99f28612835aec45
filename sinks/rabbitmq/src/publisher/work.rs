//! What is left to do of a batch.

use std::collections::{HashMap, HashSet};

use lapin::types::ShortString;
use sendoff::Outcome;

use super::send::{End, Fate, Sent};
use super::{Make, Prepared};
use crate::error::{self, Failure};

pub(super) struct Work<'a> {
    make: Make<'a>,
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// Everything before this place has an outcome.
    begin: usize,
    /// A message made the broker close the channel: they go one by one until it is found.
    pub(super) one_by_one: bool,
    /// Exchanges that cannot be published to, and what that means for their messages.
    pub(super) refused: HashMap<ShortString, Outcome>,
    max_message_bytes: usize,
    pub(super) frame_max: usize,
}

impl<'a> Work<'a> {
    pub(super) fn new(count: usize, make: Make<'a>, max_message_bytes: usize) -> Self {
        Self {
            make,
            outcomes: vec![None; count],
            begin: 0,
            one_by_one: false,
            refused: HashMap::new(),
            max_message_bytes,
            frame_max: usize::MAX,
        }
    }

    /// Whether anything has no outcome yet.
    pub(super) fn is_open(&mut self) -> bool {
        self.next_place(self.begin)
            .inspect(|place| self.begin = *place)
            .is_some()
    }

    /// The first message without an outcome that can be sent.
    pub(super) fn next(&mut self) -> Option<(usize, Prepared)> {
        self.next_from(self.begin)
    }

    /// One message after the other, beginning with this one, up to the first that goes to an exchange of which nothing is
    /// known.
    pub(super) fn feed(
        &mut self,
        first: (usize, Prepared),
        known: &HashSet<ShortString>,
    ) -> impl FnMut() -> Option<(usize, Prepared)> + Send {
        let mut from = first.0 + 1;
        let mut first = Some(first);
        move || {
            if first.is_some() {
                return first.take();
            }
            if self.one_by_one {
                return None;
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

    pub(super) fn settle_rest(&mut self, outcome: &Outcome) {
        for open in self.outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *open = Some(outcome.clone());
        }
    }

    /// Settles what was sent. After the channel alone was closed, what was not confirmed is left to be sent again.
    pub(super) fn settle(&mut self, sent: Sent) -> Option<End> {
        let Sent { fates, returned, end } = sent;
        let (unsent, unconfirmed) = match &end {
            None => (None, None),
            Some(End::Closed(error)) if error::channel_error(error).is_some() => (None, None),
            Some(End::Closed(error)) => {
                let failure = Failure::lost(error);
                (Some(failure.outcome()), Some(failure.unknown()))
            }
            Some(End::Silent(failure)) => (Some(failure.outcome()), Some(failure.unknown())),
            Some(End::Blocked(failure)) => (Some(failure.outcome()), Some(failure.outcome())),
        };
        for (place, fate) in &fates {
            self.outcomes[*place] = match fate {
                Fate::Acked => Some(Outcome::Delivered),
                Fate::Nacked => Some(error::nacked()),
                Fate::Sent => unconfirmed.clone(),
                Fate::Unsent => unsent.clone(),
            };
        }
        if !returned.is_empty() {
            let sent: Vec<(usize, Option<Prepared>)> = fates
                .iter()
                .map(|(place, _)| (*place, (self.make)(*place).ok()))
                .collect();
            for message in returned {
                // The client does not know which message a return belongs to when several are confirmed at once.
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
        if let Some(unsent) = unsent {
            self.settle_rest(&unsent);
        }
        end
    }

    /// One of them was not routed, and nobody knows which: none of them may count as delivered.
    fn doubt_all(&mut self, sent: &[(usize, Option<Prepared>)]) {
        for (place, _) in sent {
            if self.outcomes[*place] == Some(Outcome::Delivered) {
                let reason = "RabbitMQ returned a message of this batch that has no id of its own";
                self.outcomes[*place] = Some(Outcome::Unknown(reason.into()));
            }
        }
    }

    fn next_place(&self, from: usize) -> Option<usize> {
        (from..self.outcomes.len()).find(|place| self.outcomes[*place].is_none())
    }

    /// Settles on the way what cannot be sent.
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
