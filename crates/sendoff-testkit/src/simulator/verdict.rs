//! What came of a simulation.

use std::fmt;

use super::Plan;

/// What must hold in every simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A committed message arrives at each of its sinks, or is a dead letter.
    NothingLost,
    /// Only committed messages are handed to a sink.
    NoPhantom,
    /// Messages of a key first arrive at a sink in commit order.
    Order,
    /// Of a key, one message at a time is with a sink; a message is with a sink once at a time.
    OneAtATime,
    /// A relay hands over nothing after its lease.
    Leased,
    /// The lease of a relay is not taken before its time.
    Evicted,
    /// A relay that does not hold a lane settles nothing of it.
    Fenced,
    /// What is settled as delivered was confirmed.
    Confirmed,
    /// What was settled as delivered is not handed over again.
    SentAgain,
    /// A dead letter has the cause that it names.
    Cause,
    /// No attempt is charged without an answer.
    Charged,
    /// What is paused is not handed over by a relay that knows it.
    Paused,
    /// What is scheduled is not handed over before its time.
    TooEarly,
    /// Once faults have ended, nothing that is due waits for long.
    StandsStill,
    /// Nothing panics, and no relay ends by itself.
    Survives,
    /// When nothing is left, nothing is in flight.
    InFlight,
    /// A relay that is told to stop does so in time and leaves nothing behind.
    StopsCleanly,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// How, in words.
    pub what: String,
    /// When, in milliseconds of the simulation.
    pub at: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} ms: {}", self.rule, self.at, self.what)
    }
}

/// What came of a simulation.
#[derive(Debug)]
pub struct Report {
    /// What was to happen.
    pub plan: Plan,
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// Everything that happened, if it was asked for.
    pub log: Vec<String>,
    /// How many messages were committed, and how often one was handed to a sink.
    pub messages: usize,
    /// How often a message was handed to a sink.
    pub publications: u64,
    /// How long it took, in milliseconds of the simulation.
    pub took: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.plan.seed;
        match &self.violation {
            None => writeln!(f, "seed {seed}: all rules hold")?,
            Some(violation) => writeln!(f, "seed {seed}: {violation}")?,
        }
        write!(f, "{}", self.plan)?;
        for line in &self.log {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
