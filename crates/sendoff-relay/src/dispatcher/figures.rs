//! What the relay writes about its sinks, for operators.

use sendoff::store::SinkFigures;

use super::*;
use crate::SinkState;

impl Dispatcher {
    /// Every sink with what is known here: its state, and what is in flight for it. In the order of the plan.
    pub(crate) fn sink_figures(&self, now: Instant) -> Vec<(Arc<str>, SinkFigures)> {
        let mut oldest: Vec<Option<Instant>> = vec![None; self.sinks.len()];
        for entry in self.entries.values() {
            for sink in entry.deliveries.iter().filter(|delivery| delivery.at_sink) {
                if let Some(oldest) = sink.sink.and_then(|sink| oldest.get_mut(sink)) {
                    *oldest = Some(oldest.map_or(entry.claim.at, |at| at.min(entry.claim.at)));
                }
            }
        }
        let figures = |((planned, queue), oldest): ((&PlannedSink, &SinkQueue), Option<Instant>)| {
            let outage = queue.breaker.outage();
            let figures = SinkFigures {
                down_seconds: outage.map(|(since, _)| (now - since).as_secs_f64()),
                ramping_up: queue.breaker.state() == SinkState::RampingUp,
                in_flight: queue.load as u64,
                oldest_seconds: oldest.map(|at| (now - at).as_secs_f64()),
                probe_seconds: outage.map(|(_, until)| until.saturating_duration_since(now).as_secs_f64()),
                ..SinkFigures::default()
            };
            (planned.name.clone(), figures)
        };
        let sinks = self.plan.sinks.iter().zip(&self.sinks).zip(oldest);
        sinks.map(figures).collect()
    }
}
