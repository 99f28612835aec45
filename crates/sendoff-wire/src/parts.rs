//! After a batch broke its connection, it is sent again in parts of half the size each time, so that one message cannot
//! make the others fail.

use sendoff::Outcome;

/// After this many breaks the batch is not sent again: no single message is the cause. Finding one message among a
/// thousand takes ten breaks.
const MOST_BREAKS: u32 = 40;

/// The result for one message of a part of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The message has this outcome, regardless of the other messages of the part.
    Settled(Outcome),
    /// The connection broke, or the part was refused as a whole, before this message was answered. Another message of
    /// the part may be the cause. The outcome applies if the message was sent alone.
    Broken(Outcome),
}

/// How many messages of a batch are sent together: first all of them, after every break half as many, until a single
/// message is found to cause the breaks; then the size grows again.
#[derive(Debug, Clone, Copy)]
pub struct PartSize {
    most: usize,
    size: usize,
    /// A message that caused a break was found, so the rest may be fine.
    grows: bool,
    breaks: u32,
}

impl PartSize {
    /// Starts with all messages of a batch.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            size: most,
            grows: false,
            breaks: 0,
        }
    }

    /// The size of the next part.
    pub fn get(&self) -> usize {
        self.size
    }

    /// Notes that a part of this size broke.
    pub fn broke(&mut self, sent: usize) {
        self.breaks += 1;
        self.grows = sent <= 1;
        self.size = if self.grows { 2 } else { sent / 2 };
    }

    /// Notes that a part did not break.
    pub fn settled(&mut self) {
        if self.grows {
            self.size = self.size.saturating_mul(2).min(self.most.max(1));
        }
    }

    /// Whether any part broke.
    pub fn has_broken(&self) -> bool {
        self.breaks > 0
    }

    /// Whether there were too many breaks for a single message to be the cause.
    pub fn is_hopeless(&self) -> bool {
        self.breaks > MOST_BREAKS
    }
}

/// Divides a batch. The first part is the whole batch. After a break, parts are half as large, until a part of one
/// message breaks: this message is the cause, and the attempt is charged to it. Then the rest is sent.
///
/// ```
/// # use sendoff::Outcome;
/// # use sendoff_wire::{Fate, Parts};
/// let mut parts = Parts::new(3);
/// while let Some(part) = parts.next() {
///     // Send the messages at these indexes of the batch; after a break, on a connection of this batch alone.
///     let fates = part.iter().map(|_| Fate::Settled(Outcome::Delivered)).collect();
///     parts.settle(&part, fates);
/// }
/// assert_eq!(parts.into_outcomes(), vec![Outcome::Delivered; 3]);
/// ```
#[derive(Debug)]
pub struct Parts {
    places: Vec<Position>,
    size: PartSize,
    /// Everything before this index is settled.
    begin: usize,
}

#[derive(Debug, Clone, Default)]
struct Position {
    outcome: Option<Outcome>,
    /// The outcome if the message cannot be sent again.
    broken: Option<Outcome>,
}

impl Parts {
    /// A batch of this many messages; none is sent yet.
    pub fn new(count: usize) -> Self {
        Self {
            places: vec![Position::default(); count],
            size: PartSize::new(count),
            begin: 0,
        }
    }

    /// The indexes of the messages to send next; `None` when all are settled.
    #[allow(
        clippy::should_implement_trait,
        reason = "the next part depends on the result of the last one"
    )]
    pub fn next(&mut self) -> Option<Vec<usize>> {
        let open = |place: &usize| self.places[*place].outcome.is_none();
        let part: Vec<usize> = (self.begin..self.places.len())
            .filter(open)
            .take(self.size.get())
            .collect();
        self.begin = *part.first()?;
        Some(part)
    }

    /// Whether a part broke. From then on the batch needs its own connection
    /// ([`Connections::apart`](crate::Connections::apart)), so that a break affects no other batch.
    pub fn broke(&self) -> bool {
        self.size.has_broken()
    }

    /// Records the results of a part, in the order of its messages.
    pub fn settle(&mut self, part: &[usize], fates: Vec<Fate>) {
        let (mut broken, mut down) = (0, None);
        for (place, fate) in part.iter().zip(fates) {
            match fate {
                Fate::Settled(outcome) => {
                    if matches!(outcome, Outcome::SinkDown(_)) {
                        down = Some(outcome.clone());
                    }
                    self.places[*place].settle(outcome);
                }
                Fate::Broken(outcome) if part.len() == 1 => {
                    self.places[*place].settle(outcome);
                    broken += 1;
                }
                Fate::Broken(outcome) => {
                    self.places[*place].note(outcome);
                    broken += 1;
                }
            }
        }
        if broken > 0 {
            tracing::debug!(
                event = "batch_broke",
                messages = broken,
                "connection broke during a batch; sending it again in smaller parts"
            );
            self.size.broke(part.len());
        } else {
            self.size.settled();
        }
        if down.is_some() || self.size.is_hopeless() {
            self.give_up(down.as_ref());
        }
    }

    /// The outcome of each message, in the order of the batch.
    pub fn into_outcomes(self) -> Vec<Outcome> {
        let unsettled = || Outcome::Unknown("the sink returned no outcome (please report this as a bug)".into());
        let outcome = |place: Position| place.outcome.or(place.broken).unwrap_or_else(unsettled);
        self.places.into_iter().map(outcome).collect()
    }

    /// Settles the remaining messages without sending them again: the sink is down, or every part breaks.
    fn give_up(&mut self, down: Option<&Outcome>) {
        for place in self.places.iter_mut().filter(|place| place.outcome.is_none()) {
            place.outcome = place.broken.take().or_else(|| down.cloned());
        }
        self.begin = self.places.len();
    }
}

impl Position {
    fn settle(&mut self, outcome: Outcome) {
        // An earlier attempt may have arrived, even if the sink is down now.
        self.outcome = Some(match (outcome, self.broken.take()) {
            (Outcome::SinkDown(_), Some(broken @ Outcome::Unknown(_))) => broken,
            (outcome, _) => outcome,
        });
    }

    fn note(&mut self, outcome: Outcome) {
        if !matches!(self.broken, Some(Outcome::Unknown(_))) {
            self.broken = Some(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> Outcome {
        Outcome::Unknown("lost".into())
    }

    /// A broker that settles a part only if it holds no poison message. Returns the outcomes, how often each message
    /// was sent, and the number of parts.
    fn run(count: usize, is_poison: impl Fn(usize) -> bool) -> (Vec<Outcome>, Vec<usize>, usize) {
        let (mut parts, mut sent, mut rounds) = (Parts::new(count), vec![0; count], 0);
        while let Some(part) = parts.next() {
            rounds += 1;
            let breaks = part.iter().any(|place| is_poison(*place));
            let fates = part.iter().map(|place| {
                sent[*place] += 1;
                match breaks {
                    true => Fate::Broken(lost()),
                    false => Fate::Settled(Outcome::Delivered),
                }
            });
            let fates = fates.collect();
            parts.settle(&part, fates);
        }
        (parts.into_outcomes(), sent, rounds)
    }

    #[test]
    fn one_message_that_breaks_connections_is_charged_and_no_other() {
        for count in [1, 2, 3, 10, 500] {
            for poison in [0, count / 3, count / 2, count - 1] {
                let (outcomes, _, rounds) = run(count, |place| place == poison);
                for (place, outcome) in outcomes.iter().enumerate() {
                    let expected = if place == poison { lost() } else { Outcome::Delivered };
                    assert_eq!(*outcome, expected, "{place} of {count}, poison at {poison}");
                }
                assert!(rounds <= 30, "{rounds} rounds for {count}");
            }
        }
        let (outcomes, ..) = run(500, |place| place % 167 == 3);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == lost()).count(), 3);
    }

    #[test]
    fn what_is_well_is_sent_once() {
        assert_eq!(run(500, |_| false).2, 1);
        assert_eq!(run(0, |_| false), (Vec::new(), Vec::new(), 0));
    }

    #[test]
    fn a_sink_that_breaks_everything_is_not_tried_for_ever() {
        let (outcomes, sent, rounds) = run(500, |_| true);
        assert!(outcomes.iter().all(|outcome| *outcome == lost()));
        assert!(
            rounds <= 41 && sent.iter().all(|count| *count <= 12),
            "{rounds} rounds, {sent:?}"
        );
    }

    #[test]
    fn what_may_have_arrived_stays_unknown_when_the_sink_is_down_afterwards() {
        let down = || Outcome::SinkDown("down".into());
        let mut parts = Parts::new(4);
        let part = parts.next().unwrap();
        let first = [
            Fate::Settled(Outcome::Delivered),
            Fate::Broken(lost()),
            Fate::Broken(lost()),
        ];
        parts.settle(&part, first.into_iter().chain([Fate::Broken(down())]).collect());
        let part = parts.next().unwrap();
        assert_eq!(part, [1, 2]);
        parts.settle(&part, vec![Fate::Settled(down()); 2]);
        assert_eq!(parts.next(), None);
        assert_eq!(parts.into_outcomes(), [Outcome::Delivered, lost(), lost(), down()]);
    }
}
