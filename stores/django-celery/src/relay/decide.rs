//! Decides the result of each row, by the rules of the Python relay.

use sendoff::{Outcome, Reason};

use super::Settings;
use crate::{Dead, Later, Row, Settlement};

/// Decides about rows, one after the other.
pub(super) struct Decision<'a> {
    settings: &'a Settings,
    pub(super) settlement: Settlement,
    /// Whether the broker seems to be down.
    pub(super) outage: Option<String>,
}

impl<'a> Decision<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            settlement: Settlement {
                cooldown: settings.broker_outage_cooldown,
                ..Settlement::default()
            },
            outage: None,
        }
    }

    /// A row that had used all its attempts before it was claimed: `max_retries` was lowered, or a relay stopped in between.
    pub(super) fn exceeded(&mut self, row: &Row) {
        let reason = format!(
            "{} attempts failed; max_retries is {}",
            row.retries, self.settings.max_retries
        );
        self.die(row, row.retries, reason);
    }

    /// Decides the result of a row by its outcome. No attempt is charged if the broker is down or closed the connection.
    pub(super) fn answered(&mut self, row: &Row, outcome: Outcome, rng: &mut fastrand::Rng) {
        match outcome {
            Outcome::Delivered => self.settlement.sent.push(row.id),
            Outcome::SinkDown(reason) | Outcome::Unknown(reason) => {
                self.settlement.deferred.push(row.id);
                self.outage.get_or_insert_with(|| reason.text().to_owned());
            }
            Outcome::Temporary(reason) | Outcome::Permanent(reason) => self.failed(row, &reason, rng),
            Outcome::NotYet(reason) => self.settlement.held.push(Later {
                id: row.id,
                delay: reason.asked_delay().unwrap_or(self.settings.idle_time),
            }),
        }
    }

    /// Charges an attempt, also for a permanent failure, because it may be corrected: a queue exists once its worker starts.
    pub(super) fn failed(&mut self, row: &Row, reason: &Reason, rng: &mut fastrand::Rng) {
        let Row {
            id,
            task_id,
            task_name,
            retries,
            structlog_context,
            ..
        } = row;
        let context = structlog_context.as_deref().filter(|context| !context.is_empty());
        // The log shows the number of failed attempts including this one.
        let attempts = retries.saturating_add(1);
        if attempts >= self.settings.max_retries {
            return self.die(row, attempts, reason.text().to_owned());
        }
        let delay = self.settings.delay(*retries, rng);
        let delay = delay.max(reason.asked_delay().unwrap_or_default());
        let reason = reason.text();
        tracing::warn!(
            event = "celery_task_failed", id, %task_id, %task_name, retries = attempts, ?delay, context, reason,
            "task failed; will retry"
        );
        self.settlement.failed.push(Later { id: *id, delay });
    }

    /// `attempts` is the number of failed attempts, including the last one.
    fn die(&mut self, row: &Row, attempts: u16, reason: String) {
        let Row {
            id,
            task_id,
            task_name,
            structlog_context,
            ..
        } = row;
        let context = structlog_context.as_deref().filter(|context| !context.is_empty());
        tracing::error!(
            event = "celery_task_dead", id, %task_id, %task_name, retries = attempts, context, %reason,
            "task failed and is not retried; it becomes a dead letter"
        );
        self.settlement.dead.push(Dead { id: *id, reason });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn row(id: i64, retries: u16) -> Row {
        Row {
            id,
            task_id: "t".to_owned(),
            task_name: "n".to_owned(),
            args: "[]".to_owned(),
            kwargs: "{}".to_owned(),
            options: "{}".to_owned(),
            retries,
            created_at: SystemTime::UNIX_EPOCH,
            sentry_trace_id: None,
            sentry_baggage: None,
            structlog_context: None,
        }
    }

    #[test]
    fn every_outcome_has_its_end() {
        let settings = Settings::default();
        let mut rng = fastrand::Rng::with_seed(1);
        let mut decision = Decision::new(&settings);
        decision.answered(&row(1, 0), Outcome::Delivered, &mut rng);
        decision.answered(&row(2, 4), Outcome::SinkDown("gone".into()), &mut rng);
        decision.answered(&row(3, 4), Outcome::Unknown("hung up".into()), &mut rng);
        decision.answered(&row(4, 3), Outcome::Permanent("unroutable".into()), &mut rng);
        decision.answered(&row(5, 4), Outcome::Permanent("unroutable".into()), &mut rng);
        let late = Reason::new("busy").retry_after(Duration::from_secs(5000));
        decision.answered(&row(6, 0), Outcome::Temporary(late), &mut rng);
        decision.exceeded(&row(7, 9));
        let early = Reason::new("at noon").retry_after(Duration::from_secs(90));
        decision.answered(&row(8, 4), Outcome::NotYet(early), &mut rng);
        assert_eq!(decision.outage.as_deref(), Some("gone"));
        let settlement = decision.settlement;
        assert_eq!((settlement.sent, settlement.deferred), (vec![1], vec![2, 3]));
        assert_eq!(settlement.cooldown, Duration::from_secs(30));
        let delay = Duration::from_secs(90);
        assert_eq!(settlement.held, [Later { id: 8, delay }]);
        let delays: Vec<(i64, u64)> = settlement
            .failed
            .iter()
            .map(|row| (row.id, row.delay.as_secs()))
            .collect();
        assert!(matches!(delays[..], [(4, 960..=972), (6, 5000)]), "{delays:?}");
        let [first, second] = &settlement.dead[..] else {
            panic!("{:?}", settlement.dead)
        };
        assert_eq!((first.id, first.reason.as_str()), (5, "unroutable"));
        assert!(second.id == 7 && second.reason.contains("max_retries is 5"));
    }
}
