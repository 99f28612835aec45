//! Prometheus' text format.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use sendoff_relay::{RelayHealth, SinkState, WakeSource};
use tokio::time::Instant;

use crate::family::{self as f, FAMILIES, Family};
use crate::figures::Figures;
use crate::health::{Health, Obstacle};
use crate::histogram::Histogram;
use crate::series::{OUTCOMES, REASONS, Series};
use crate::subject::Subject;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of all relays. Series of one name have to be adjacent, so there is one text per metric for all relays.
pub(crate) fn render(subjects: &[Arc<Subject>], now: Instant) -> String {
    let mut text = Text {
        source: String::new(),
        parts: vec![String::new(); FAMILIES.len()],
    };
    text.value(&f::BUILD, &[env!("CARGO_PKG_VERSION")], 1);
    for subject in subjects {
        subject.name().clone_into(&mut text.source);
        let health = subject.health();
        outgoing(&mut text, &subject.figures());
        probes(&mut text, &health, now);
        outbox(&mut text, &health);
        if let Some(relay_health) = &health.relay_health {
            relay(&mut text, relay_health);
        }
    }
    let mut whole = String::with_capacity(16 << 10);
    for (Family { name, kind, help, .. }, part) in FAMILIES.iter().zip(text.parts) {
        let _ = writeln!(whole, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
        whole.push_str(&part);
    }
    whole
}

fn outgoing(text: &mut Text, figures: &Figures) {
    for (topic, sink, series) in figures.all() {
        for (outcome, count) in OUTCOMES.iter().zip(series.outcomes).filter(|(_, count)| *count > 0) {
            text.value(&f::PUBLISHED, &[topic, sink, outcome], count);
        }
        if series.retried > 0 {
            text.value(&f::RETRIED, &[topic, sink], series.retried);
        }
        for (reason, count) in REASONS.iter().zip(series.dead).filter(|(_, count)| *count > 0) {
            text.value(&f::DEAD, &[topic, sink, reason.as_str()], count);
        }
        stages(text, &[topic, sink], series);
    }
    for (sink, batches) in figures.batches.iter().enumerate() {
        text.histogram(&f::BATCH, &[figures.sinks.name(sink)], batches);
    }
    text.histogram(&f::SETTLE, &[], &figures.settle);
    text.histogram(&f::SETTLE_LAG, &[], &figures.settle_lag);
    text.value(&f::SETTLED, &[], figures.settled);
    text.value(&f::HISTORY_CHANGES, &[], figures.history_changes);
    text.value(&f::LANES_LOST, &[], figures.lanes_lost);
}

fn stages(text: &mut Text, labels: &[&str], series: &Series) {
    text.histogram(&f::EMIT_TO_READY, labels, &series.emit_to_ready);
    text.histogram(&f::READY_TO_CLAIMED, labels, &series.ready_to_claimed);
    text.histogram(&f::CLAIMED_TO_CONFIRMED, labels, &series.claimed_to_confirmed);
    text.histogram(&f::BEGIN_TO_CONFIRMED, labels, &series.begin_to_confirmed);
}

fn probes(text: &mut Text, health: &Health, now: Instant) {
    let readiness = health.readiness(now);
    text.value(&f::READY, &[], u8::from(readiness.is_ready()));
    for kind in Obstacle::KINDS {
        let there = readiness.obstacles.iter().any(|obstacle| obstacle.kind == kind);
        text.value(&f::OBSTACLE, &[kind], u8::from(there));
    }
    for (sink, check) in &health.checks {
        text.value(&f::SINK_REACHABLE, &[sink], u8::from(check.is_ok()));
    }
}

/// The metrics of the whole outbox.
fn outbox(text: &mut Text, health: &Health) {
    text.value(&f::STORE_UP, &[], u8::from(health.unanswered.is_none()));
    let Some(store_health) = &health.store_health else {
        return;
    };
    for (state, count) in [
        ("ready", store_health.ready),
        ("waiting", store_health.waiting),
        ("dead", store_health.dead),
    ] {
        text.value(&f::ROWS, &[state], count);
    }
    let seconds = |age: Option<Duration>| age.unwrap_or_default().as_secs_f64();
    text.value(&f::OLDEST_READY, &[], seconds(store_health.oldest_ready()));
    text.value(&f::OLDEST_DUE, &[], seconds(store_health.oldest_due));
}

/// The metrics of this relay.
fn relay(text: &mut Text, relay_health: &RelayHealth) {
    let hooks = relay_health.hooks;
    for (kind, count) in [
        ("failed", hooks.failed),
        ("panicked", hooks.panicked),
        ("dropped", hooks.dropped),
    ] {
        text.value(&f::HOOKS, &[kind], count);
    }
    text.value(&f::RELAYS, &[], relay_health.relays);
    text.value(&f::LANES, &[], relay_health.lanes.len());
    text.value(&f::IN_FLIGHT, &[], relay_health.in_flight);
    text.value(&f::IN_FLIGHT_BYTES, &[], relay_health.bytes_in_flight);
    text.value(
        &f::UNSETTLED,
        &[],
        relay_health.unsettled.unwrap_or_default().as_secs_f64(),
    );
    for wake_source in WakeSource::ALL {
        text.value(
            &f::WAKE_SOURCE,
            &[wake_source.as_str()],
            u8::from(wake_source == relay_health.wake_source),
        );
    }
    for sink in &relay_health.sinks {
        for state in SinkState::ALL {
            let is_it = u8::from(state == sink.state);
            text.value(&f::SINK_STATE, &[&sink.name, state.as_str()], is_it);
        }
        text.value(&f::SINK_PAUSED, &[&sink.name], u8::from(sink.paused));
        text.value(&f::SINK_IN_FLIGHT, &[&sink.name], sink.in_flight);
    }
}

/// The series by metric. Writing into a string cannot fail, so results of `write!` are ignored.
struct Text {
    source: String,
    parts: Vec<String>,
}

impl Text {
    fn value(&mut self, family: &Family, labels: &[&str], value: impl Display) {
        self.line(family, "", labels, None, value);
    }

    /// Writes nothing without a value: most topics never reach most sinks.
    fn histogram(&mut self, family: &Family, labels: &[&str], histogram: &Histogram) {
        if histogram.count() == 0 && !labels.is_empty() {
            return;
        }
        for (end, count) in histogram.steps() {
            self.line(family, "_bucket", labels, Some(end), count);
        }
        self.line(family, "_sum", labels, None, histogram.sum());
        self.line(family, "_count", labels, None, histogram.count());
    }

    fn line(&mut self, family: &Family, suffix: &str, values: &[&str], end: Option<&str>, value: impl Display) {
        debug_assert_eq!(family.labels.len(), values.len(), "{}", family.name);
        let Some(at) = FAMILIES.iter().position(|of| of.name == family.name) else {
            return;
        };
        let part = &mut self.parts[at];
        let _ = write!(part, "{}{suffix}", family.name);
        let source = (!self.source.is_empty()).then_some(("source", self.source.as_str()));
        let labels = family.labels.iter().copied().zip(values.iter().copied());
        let mut labels = labels.chain(source).chain(end.map(|end| ("le", end))).peekable();
        let has_labels = labels.peek().is_some();
        for (number, (name, value)) in labels.enumerate() {
            let _ = write!(part, "{}{name}=\"", if number == 0 { '{' } else { ',' });
            escape(part, value);
            part.push('"');
        }
        let _ = writeln!(part, "{} {value}", if has_labels { "}" } else { "" });
    }
}

fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            // Control characters, which a terminal would interpret.
            control if control.is_control() => {
                let _ = write!(text, "\\\\x{:02x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_brings_no_control_characters_and_ends_where_it_should() {
        let mut text = String::new();
        escape(&mut text, "a\\b\"c\nd\u{1b}[31m\u{9b}é");
        assert_eq!(text, r#"a\\b\"c\nd\\x1b[31m\\x9bé"#);
    }
}
