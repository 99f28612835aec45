//! Whether a relay is alive and ready, and if not, why.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::Vitals;
use sendoff::{Error, ErrorKind};
use sendoff_relay::{Pulse, SinkState};
use tokio::time::Instant;

use crate::stall::{Stall, Stalled};

/// A relay that gives no sign of life for so long is taken for dead. It gives four a second.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// What keeps a relay from being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// In one word, one of [`Obstacle::KINDS`].
    pub kind: &'static str,
    /// In words, for an operator.
    pub why: String,
}

impl Obstacle {
    /// All words there are.
    pub const KINDS: [&'static str; 7] = ["starting", "stopping", "silent", "store", "schema", "sinks", "stalled"];

    fn new(kind: &'static str, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }
}

/// Whether a relay is ready: without an obstacle it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
}

impl Readiness {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.obstacles.is_empty()
    }

    /// With the name of the relay that it is about, if it has one.
    pub(crate) fn named(mut self, name: &str) -> Self {
        if !name.is_empty() {
            for obstacle in &mut self.obstacles {
                obstacle.why = format!("{name}: {}", obstacle.why);
            }
        }
        self
    }

    /// As a document, for programs and people.
    pub fn to_json(&self) -> serde_json::Value {
        let obstacles = self.obstacles.iter();
        let obstacles = obstacles.map(|obstacle| serde_json::json!({"kind": obstacle.kind, "why": obstacle.why}));
        serde_json::json!({"ready": self.is_ready(), "obstacles": obstacles.collect::<Vec<_>>()})
    }
}

/// All that probes go by.
#[derive(Default)]
pub(crate) struct Health {
    stall_after: Duration,
    pub(crate) pulse: Option<Pulse>,
    pub(crate) vitals: Option<Vitals>,
    /// Since when the store has not answered, and what it said last.
    pub(crate) unanswered: Option<(Instant, String)>,
    schema: Option<String>,
    /// The last check of every sink; an error in words.
    pub(crate) checks: Vec<(Arc<str>, Result<(), String>)>,
    stall: Stall,
    stalled: Option<Stalled>,
}

impl Health {
    pub(crate) fn new(stall_after: Duration) -> Self {
        Self {
            stall_after,
            ..Self::default()
        }
    }

    /// The store told how it is.
    pub(crate) fn looked(&mut self, vitals: Option<Vitals>, now: Instant) {
        self.unanswered = None;
        let (Some(vitals), Some(pulse)) = (&vitals, &self.pulse) else {
            self.stalled = None;
            self.stall.forget();
            self.vitals = vitals;
            return;
        };
        // Nobody is meant to take anything while an operator has paused all sinks.
        if pulse.sinks.iter().all(|sink| sink.paused) {
            self.stalled = None;
            self.stall.forget();
        } else {
            self.stalled = self.stall.look(now, &vitals.heads, &pulse.lanes, self.stall_after);
        }
        self.vitals = Some(vitals.clone());
    }

    /// The store did not.
    pub(crate) fn look_failed(&mut self, why: String, now: Instant) {
        let since = self.unanswered.take().map_or(now, |(since, _)| since);
        self.unanswered = Some((since, why));
    }

    /// The tables were compared with what this program needs.
    pub(crate) fn schema_checked(&mut self, checked: &Result<(), Error>) {
        match checked {
            Ok(()) => self.schema = None,
            Err(error) => match error.kind() {
                ErrorKind::SchemaMissing | ErrorKind::SchemaTooOld | ErrorKind::SchemaTooNew => {
                    self.schema = Some(error.to_string());
                }
                // It is not known: looking at the store will tell.
                _ => {}
            },
        }
    }

    /// A sink was asked whether it can be reached.
    pub(crate) fn sink_checked(&mut self, sink: &Arc<str>, checked: Result<(), String>) {
        match self.checks.iter_mut().find(|(of, _)| of == sink) {
            Some((_, last)) => *last = checked,
            None => self.checks.push((sink.clone(), checked)),
        }
    }

    /// Whether the relay has begun to work.
    pub(crate) fn has_started(&self) -> bool {
        self.pulse.is_some()
    }

    /// Whether it works, or has yet to begin.
    pub(crate) fn is_alive(&self, now: Instant) -> bool {
        self.pulse.as_ref().is_none_or(|pulse| now - pulse.at < SILENCE)
    }

    pub(crate) fn readiness(&self, now: Instant) -> Readiness {
        let mut obstacles = Vec::new();
        let mut add = |kind, why: String| obstacles.push(Obstacle::new(kind, why));
        match &self.pulse {
            None => add("starting", "the relay has not begun to work".to_owned()),
            Some(pulse) if pulse.stopping => add("stopping", "the relay was told to stop".to_owned()),
            Some(pulse) if now - pulse.at >= SILENCE => {
                let silent = (now - pulse.at).as_secs();
                add("silent", format!("the relay has given no sign of life for {silent} s"));
            }
            Some(pulse) => {
                if let Some(why) = self.no_sink(pulse) {
                    add("sinks", why);
                }
                if let Some(unsettled) = pulse.unsettled.filter(|waited| *waited >= self.stall_after) {
                    let waited = unsettled.as_secs();
                    add(
                        "stalled",
                        format!("what became of messages could not be written for {waited} s"),
                    );
                }
            }
        }
        if let Some(why) = &self.schema {
            add("schema", why.clone());
        }
        if let Some((since, why)) = &self.unanswered
            && now - *since >= self.stall_after
        {
            add(
                "store",
                format!(
                    "the database has not answered for {} s: {why}",
                    (now - *since).as_secs()
                ),
            );
        }
        if let Some(stalled) = &self.stalled {
            let Stalled { lane, seq, unclaimed } = stalled;
            let text = format!(
                "message {seq} of lane {lane} is ready, and nobody has taken it for {} s",
                unclaimed.as_secs()
            );
            add("stalled", text);
        }
        Readiness { obstacles }
    }

    /// Why no sink at all can be reached.
    fn no_sink(&self, pulse: &Pulse) -> Option<String> {
        let mut reasons = Vec::new();
        for sink in &pulse.sinks {
            let check = self.checks.iter().find(|(name, _)| *name == sink.name);
            match (sink.state, check) {
                (SinkState::Down, _) => reasons.push(format!("{} is down", sink.name)),
                (SinkState::Up | SinkState::RampingUp, Some((name, Err(why)))) => {
                    reasons.push(format!("{name} cannot be reached: {why}"));
                }
                (SinkState::Up | SinkState::RampingUp, _) => return None,
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}
