//! A batch whose connection broke is sent again in smaller and smaller parts: one message never kills its neighbours.

use sendoff::Outcome;

/// After so many breaks a batch is left as it is: no single message is at fault. One that is found among a thousand takes ten.
const MOST_BREAKS: u32 = 40;

/// What became of one message of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// This, whatever was sent with it.
    Settled(Outcome),
    /// The connection broke, or the part was refused as a whole, before it was answered: another message of the part may be
    /// the cause. The outcome is what it means for a message that was sent alone.
    Broken(Outcome),
}

/// How many messages of a batch are sent at once: all, then half as many after every break until one alone is found to cause it, then
/// more and more again.
#[derive(Debug, Clone, Copy)]
pub struct PartSize {
    most: usize,
    size: usize,
    /// One that caused a break was found, so that the next may be well.
    grows: bool,
    breaks: u32,
}

impl PartSize {
    /// All of so many.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            size: most,
            grows: false,
            breaks: 0,
        }
    }

    /// How many are next.
    pub fn get(&self) -> usize {
        self.size
    }

    /// A part of so many broke.
    pub fn broke(&mut self, sent: usize) {
        self.breaks += 1;
        self.grows = sent <= 1;
        self.size = if self.grows { 2 } else { sent / 2 };
    }

    /// A part did not break.
    pub fn settled(&mut self) {
        if self.grows {
            self.size = self.size.saturating_mul(2).min(self.most.max(1));
        }
    }

    /// Whether any part broke.
    pub fn has_broken(&self) -> bool {
        self.breaks > 0
    }

    /// Whether too many have: no single message is at fault.
    pub fn is_hopeless(&self) -> bool {
        self.breaks > MOST_BREAKS
    }
}

/// Divides a batch. The first part is all of it; after a break parts are half as large, until one message alone is left,
/// which is the one that breaks connections and is charged for it. Then the rest goes on.
///
/// ```
/// # use sendoff::Outcome;
/// # use sendoff_wire::{Fate, Parts};
/// let mut parts = Parts::new(3);
/// while let Some(part) = parts.next() {
///     // Sends the messages at these places of the batch, apart from other batches once a part broke.
///     let fates = part.iter().map(|_| Fate::Settled(Outcome::Delivered)).collect();
///     parts.settle(&part, fates);
/// }
/// assert_eq!(parts.into_outcomes(), vec![Outcome::Delivered; 3]);
/// ```
#[derive(Debug)]
pub struct Parts {
    places: Vec<Place>,
    size: PartSize,
    /// Everything before this place is settled.
    begin: usize,
}

#[derive(Debug, Clone, Default)]
struct Place {
    outcome: Option<Outcome>,
    /// What it is if it cannot be sent again.
    broken: Option<Outcome>,
}

impl Parts {
    /// So many messages, none of them sent.
    pub fn new(count: usize) -> Self {
        Self {
            places: vec![Place::default(); count],
            size: PartSize::new(count),
            begin: 0,
        }
    }

    /// The places of those that are sent next; `None` when all are settled.
    #[allow(
        clippy::should_implement_trait,
        reason = "what is next depends on how the last part fared"
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

    /// Whether a part broke. What is sent from now on has a connection of its own ([`Line::apart`](crate::Line::apart)): what
    /// breaks here then breaks no other batch, and the other way round.
    pub fn broke(&self) -> bool {
        self.size.has_broken()
    }

    /// Notes what became of a part: a fate for each, in its order.
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
            tracing::debug!(event = "batch_broke", messages = broken, "sent again in smaller parts");
            self.size.broke(part.len());
        } else {
            self.size.settled();
        }
        if down.is_some() || self.size.is_hopeless() {
            self.give_up(down.as_ref());
        }
    }

    /// An outcome for each message, in the order of the batch.
    pub fn into_outcomes(self) -> Vec<Outcome> {
        let unsettled = || Outcome::Unknown("the sink has not said what became of the message".into());
        let outcome = |place: Place| place.outcome.or(place.broken).unwrap_or_else(unsettled);
        self.places.into_iter().map(outcome).collect()
    }

    /// What is open is not sent again: the sink is down, or breaks whatever it is given.
    fn give_up(&mut self, down: Option<&Outcome>) {
        for place in self.places.iter_mut().filter(|place| place.outcome.is_none()) {
            place.outcome = place.broken.take().or_else(|| down.cloned());
        }
        self.begin = self.places.len();
    }
}

impl Place {
    fn settle(&mut self, outcome: Outcome) {
        // It may have arrived before, and that is not undone by a sink that is down now.
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

    /// A broker that answers what comes before a message that it closes the connection for. Returns how often each message was
    /// sent.
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
