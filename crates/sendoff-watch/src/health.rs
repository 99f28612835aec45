//! Whether a relay is alive and ready, and if not, why.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{StoreHealth, Stray};
use sendoff::{Error, ErrorKind};
use sendoff_relay::{RelayHealth, SinkState};
use tokio::time::Instant;

use crate::stall::{Stall, Stalled};

/// A relay without a health report for this long counts as dead. It sends four per second.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// A reason why a relay is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The kind of the obstacle, one of [`Obstacle::KINDS`].
    pub kind: &'static str,
    /// The explanation for an operator.
    pub why: String,
}

impl Obstacle {
    /// All kinds of obstacles.
    pub const KINDS: [&'static str; 8] = [
        "starting", "stopping", "silent", "store", "schema", "sinks", "stalled", "stray",
    ];

    fn new(kind: &'static str, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }
}

/// Whether a relay is ready. It is ready if there is no obstacle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// All obstacles of the relay.
    pub obstacles: Vec<Obstacle>,
}

impl Readiness {
    /// Whether the relay is ready.
    pub fn is_ready(&self) -> bool {
        self.obstacles.is_empty()
    }

    /// Adds the name of the relay to every obstacle, if the relay has one.
    pub(crate) fn named(mut self, name: &str) -> Self {
        if !name.is_empty() {
            for obstacle in &mut self.obstacles {
                obstacle.why = format!("{name}: {}", obstacle.why);
            }
        }
        self
    }

    /// The JSON body of `/ready`.
    pub fn to_json(&self) -> serde_json::Value {
        let obstacles = self.obstacles.iter();
        let obstacles = obstacles.map(|obstacle| serde_json::json!({"kind": obstacle.kind, "why": obstacle.why}));
        serde_json::json!({"ready": self.is_ready(), "obstacles": obstacles.collect::<Vec<_>>()})
    }
}

/// All inputs of the probes.
#[derive(Default)]
pub(crate) struct Health {
    stall_after: Duration,
    pub(crate) relay_health: Option<RelayHealth>,
    pub(crate) store_health: Option<StoreHealth>,
    /// Since when the store has not answered, and its last error.
    pub(crate) unanswered: Option<(Instant, String)>,
    schema: Option<String>,
    /// The last check of every sink; an error is a text.
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

    /// The store has reported its health.
    pub(crate) fn looked(&mut self, store_health: Option<StoreHealth>, now: Instant) {
        self.unanswered = None;
        self.tell_stray(store_health.as_ref());
        let (Some(store_health), Some(relay_health)) = (&store_health, &self.relay_health) else {
            self.stalled = None;
            self.stall.forget();
            self.store_health = store_health;
            return;
        };
        // No relay takes messages while an operator has paused all sinks.
        if relay_health.sinks.iter().all(|sink| sink.paused) {
            self.stalled = None;
            self.stall.forget();
        } else {
            self.stalled = self
                .stall
                .look(now, &store_health.heads, &relay_health.lanes, self.stall_after);
        }
        self.store_health = Some(store_health.clone());
    }

    /// Logs once that no relay will ever read a row.
    fn tell_stray(&self, store_health: Option<&StoreHealth>) {
        let place = |store_health: &StoreHealth| store_health.stray.map(|stray| (stray.lane, stray.seq));
        let found = store_health.and_then(place);
        if let Some((lane, seq)) = found.filter(|_| found != self.store_health.as_ref().and_then(place)) {
            tracing::error!(
                event = "row_stray",
                lane,
                seq,
                "row is never delivered: no relay reads its lane or number; emit the message again"
            );
        }
    }

    /// The store did not answer.
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
                // Unknown: the next check of the store decides.
                _ => {}
            },
        }
    }

    /// A sink was checked.
    pub(crate) fn sink_checked(&mut self, sink: &Arc<str>, checked: Result<(), String>) {
        match self.checks.iter_mut().find(|(of, _)| of == sink) {
            Some((_, last)) => *last = checked,
            None => self.checks.push((sink.clone(), checked)),
        }
    }

    /// Whether the relay has started to work.
    pub(crate) fn has_started(&self) -> bool {
        self.relay_health.is_some()
    }

    /// Whether it works, or has not started yet.
    pub(crate) fn is_alive(&self, now: Instant) -> bool {
        self.relay_health
            .as_ref()
            .is_none_or(|relay_health| now - relay_health.at < SILENCE)
    }

    pub(crate) fn readiness(&self, now: Instant) -> Readiness {
        let mut obstacles = Vec::new();
        let mut add = |kind, why: String| obstacles.push(Obstacle::new(kind, why));
        match &self.relay_health {
            None => add("starting", "the relay has not started to work".to_owned()),
            Some(relay_health) if relay_health.stopping => add("stopping", "the relay is stopping".to_owned()),
            Some(relay_health) if now - relay_health.at >= SILENCE => {
                let silent = (now - relay_health.at).as_secs();
                add("silent", format!("the relay's loop has not run for {silent} s"));
            }
            Some(relay_health) => {
                if let Some(why) = self.no_sink(relay_health) {
                    add("sinks", why);
                }
                if let Some(unsettled) = relay_health.unsettled.filter(|waited| *waited >= self.stall_after) {
                    let waited = unsettled.as_secs();
                    add(
                        "stalled",
                        format!("results could not be written to the database for {waited} s"),
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
                "message {seq} of lane {lane} is ready, and no relay has taken it for {} s",
                unclaimed.as_secs()
            );
            add("stalled", text);
        }
        if let Some(Stray { lane, seq, .. }) = self.store_health.as_ref().and_then(|store_health| store_health.stray) {
            let text = format!("no relay reads row {seq} of lane {lane}; emit it again");
            add("stray", text);
        }
        Readiness { obstacles }
    }

    /// Why no sink can be reached; `None` if one can.
    fn no_sink(&self, relay_health: &RelayHealth) -> Option<String> {
        let mut reasons = Vec::new();
        for sink in &relay_health.sinks {
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_row_where_no_relay_reads_is_an_obstacle_until_it_is_gone() {
        let mut health = Health::new(Duration::from_secs(60));
        let mut store_health = StoreHealth {
            now: SystemTime::UNIX_EPOCH,
            ready: 1,
            waiting: 0,
            dead: 0,
            oldest_due: None,
            heads: Vec::new(),
            stray: Some(Stray {
                lane: 99,
                seq: -7,
                age: Duration::from_secs(5),
            }),
        };
        assert_eq!(store_health.oldest_ready(), Some(Duration::from_secs(5)));
        let strays = |health: &Health| {
            let obstacles = health.readiness(Instant::now()).obstacles.into_iter();
            let strays = obstacles.filter(|obstacle| obstacle.kind == "stray");
            strays.map(|obstacle| obstacle.why).collect::<Vec<_>>()
        };
        health.looked(Some(store_health.clone()), Instant::now());
        let found = strays(&health);
        assert!(found.len() == 1 && found[0].contains("row -7 of lane 99"), "{found:?}");
        store_health.stray = None;
        health.looked(Some(store_health), Instant::now());
        assert_eq!(strays(&health), Vec::<String>::new());
    }
}
