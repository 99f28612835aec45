//! Figures that relays write about their work, for operators.

use serde::{Deserialize, Serialize};

/// The figures of one relay. They are written every second or so and never decide anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Those of the relay as a whole; `None` if they have not changed.
    pub relay: Option<RelayFigures>,
    /// Those of its sinks, by name; sinks without a change are left out.
    pub sinks: Vec<(String, SinkFigures)>,
}

impl Figures {
    /// One row per sink, with the figures as JSON. The sink of the relay's own row is empty.
    pub fn rows(&self) -> Vec<(String, String)> {
        let relay = self.relay.iter().map(|figures| (String::new(), text(figures)));
        let sinks = self.sinks.iter().map(|(sink, figures)| (sink.clone(), text(figures)));
        relay.chain(sinks).collect()
    }
}

fn text(figures: &impl Serialize) -> String {
    serde_json::to_string(figures).unwrap_or_default()
}

/// Per second, over the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Messages that were read for the first time.
    pub read: f64,
    /// Deliveries that sinks confirmed.
    pub delivered: f64,
    /// Deliveries that will be tried again.
    pub retried: f64,
    /// Deliveries that became dead letters.
    pub dead: f64,
}

impl Rates {
    /// The rates of two relays together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            delivered: self.delivered + other.delivered,
            retried: self.retried + other.retried,
            dead: self.dead + other.dead,
        }
    }
}

/// The figures of a relay as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayFigures {
    /// The lanes that it holds.
    pub lanes: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// What it does per second.
    pub rates: Rates,
}

/// The figures of one sink, as one relay sees it. Ages count back from the moment of writing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SinkFigures {
    /// For how long it has been down; `None` while it takes messages.
    pub down_seconds: Option<f64>,
    /// Whether it is up again and gets larger batches step by step.
    pub ramping_up: bool,
    /// Messages in flight for it.
    pub in_flight: u64,
    /// How long the oldest of them has been in flight.
    pub oldest_seconds: Option<f64>,
    /// Deliveries that it confirmed since the relay started.
    pub delivered: u64,
    /// Attempts that failed since the relay started.
    pub failed: u64,
    /// Confirmed deliveries per second, over the last minute.
    pub delivered_rate: f64,
    /// Failed attempts per second, over the last minute.
    pub failed_rate: f64,
    /// Its last error, cut to [`SinkFigures::ERROR_CHARS`].
    pub last_error: Option<String>,
    /// How long ago that was.
    pub error_seconds: Option<f64>,
    /// After how long it is probed, if it is down.
    pub probe_seconds: Option<f64>,
}

impl SinkFigures {
    /// How much of an error is kept.
    pub const ERROR_CHARS: usize = 200;

    /// The same without ages, which change although nothing happens.
    #[must_use]
    pub fn without_ages(&self) -> Self {
        Self {
            down_seconds: self.down_seconds.map(|_| 0.0),
            oldest_seconds: None,
            error_seconds: None,
            probe_seconds: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_another_version_are_read_as_far_as_they_are_known() {
        let read: SinkFigures = serde_json::from_str(r#"{"in_flight": 3, "unheard_of": [1]}"#).unwrap();
        assert_eq!((read.in_flight, read.delivered), (3, 0));
    }

    #[test]
    fn the_row_of_the_relay_has_no_sink() {
        let figures = Figures {
            relay: Some(RelayFigures::default()),
            sinks: vec![("cache".to_owned(), SinkFigures::default())],
        };
        let sinks: Vec<String> = figures.rows().into_iter().map(|(sink, _)| sink).collect();
        assert_eq!(sinks, ["", "cache"]);
    }
}
