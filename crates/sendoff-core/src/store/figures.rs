//! Figures that relays write about their work, for operators.

use serde::{Deserialize, Serialize};

/// The figures of one relay, for operators only: nothing is decided by them. A relay writes them about every second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The figures of the relay as a whole; `None` if they have not changed.
    pub relay: Option<RelayFigures>,
    /// The figures of the relay's sinks, by name. Sinks without a change are left out.
    pub sinks: Vec<(String, SinkFigures)>,
}

impl Figures {
    /// The figures as rows: the sink and its figures as JSON. The sink of the relay's own row is empty.
    pub fn rows(&self) -> Vec<(String, String)> {
        let relay = self.relay.iter().map(|figures| (String::new(), text(figures)));
        let sinks = self.sinks.iter().map(|(sink, figures)| (sink.clone(), text(figures)));
        relay.chain(sinks).collect()
    }
}

fn text(figures: &impl Serialize) -> String {
    serde_json::to_string(figures).unwrap_or_default()
}

/// Rates per second, over the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Messages read for the first time, per second.
    pub read: f64,
    /// Deliveries that sinks confirmed, per second.
    pub delivered: f64,
    /// Failed attempts after which a delivery is tried again, per second.
    pub retried: f64,
    /// Deliveries that became dead letters, per second.
    pub dead: f64,
}

impl Rates {
    /// The sum of two relays' rates.
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
    /// The number of lanes that the relay holds.
    pub lanes: u64,
    /// The number of messages that the relay has in flight.
    pub in_flight: u64,
    /// What the relay does per second.
    pub rates: Rates,
}

/// The figures of one sink, as one relay sees it. Ages are relative to the moment of writing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SinkFigures {
    /// How long the sink has been down; `None` while it is up.
    pub down_seconds: Option<f64>,
    /// Whether the sink is up again and gets larger batches step by step.
    pub ramping_up: bool,
    /// The number of messages in flight for this sink.
    pub in_flight: u64,
    /// How long the oldest message for this sink has been in flight.
    pub oldest_seconds: Option<f64>,
    /// Deliveries that the sink confirmed since the relay started.
    pub delivered: u64,
    /// Attempts at this sink that failed since the relay started.
    pub failed: u64,
    /// Confirmed deliveries per second, over the last minute.
    pub delivered_rate: f64,
    /// Failed attempts per second, over the last minute.
    pub failed_rate: f64,
    /// The sink's last error, cut to [`SinkFigures::ERROR_CHARS`].
    pub last_error: Option<String>,
    /// The age of the sink's last error.
    pub error_seconds: Option<f64>,
    /// The time until the next probe of the sink, if it is down.
    pub probe_seconds: Option<f64>,
}

impl SinkFigures {
    /// How many characters of an error are kept.
    pub const ERROR_CHARS: usize = 200;

    /// The figures without ages, which change even if nothing happens.
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
