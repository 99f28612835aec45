//! Figures about this relay, written to the store for operators: beside the work, and never in its way.

use std::collections::VecDeque;
use std::time::Duration;

use sendoff::store::{Figures, Page, Rates, RelayFigures, Row, SinkFigures, Table};
use sendoff::{ErrorKind, Outcome, Result};
use tokio::time::Instant;

use super::event::Event;
use super::running::Running;
use super::trouble::Step;
use crate::plan::SinkIndex;

/// How often figures are written while they change.
const PAUSE: Duration = Duration::from_secs(1);
/// How often they are written although nothing changed, so that an operator sees that they are not stale, and so that a
/// restored database gets them.
const REPEAT: Duration = Duration::from_secs(5);
/// The time that rates are about.
const MINUTE: Duration = Duration::from_secs(60);

/// Totals at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
struct Totals {
    read: u64,
    delivered: u64,
    retried: u64,
    dead: u64,
    /// Delivered and failed, by sink.
    sinks: Vec<(u64, u64)>,
}

/// What was counted for the figures, and what was written.
pub(super) struct FigureBook {
    /// When they are written next; `None` if they are not, because the run is short or the store keeps none.
    next: Option<Instant>,
    writing: bool,
    read: u64,
    sinks: Vec<SinkTally>,
    /// The totals of the last minute, oldest first.
    minute: VecDeque<(Instant, Totals)>,
    /// What was written last, when, and by which owner id.
    written: Option<Written>,
}

struct Written {
    owner: sendoff::store::OwnerId,
    repeat: Instant,
    figures: Figures,
}

#[derive(Debug, Clone, Default)]
struct SinkTally {
    delivered: u64,
    failed: u64,
    error: Option<(String, Instant)>,
}

impl FigureBook {
    /// A one-shot run is over before anybody looks.
    pub(super) fn new(now: Instant, sinks: usize, once: bool) -> Self {
        Self {
            next: (!once).then(|| now + PAUSE),
            writing: false,
            read: 0,
            sinks: vec![SinkTally::default(); sinks],
            minute: VecDeque::new(),
            written: None,
        }
    }

    /// When they are due; `None` while they are being written.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next.filter(|_| !self.writing)
    }

    /// A page was read. Rows of the waiting table were read before.
    pub(super) fn read(&mut self, page: &Page) {
        if self.next.is_some() {
            let is_new = |row: &&Row| row.row_ref().table == Table::Ready;
            self.read += page.rows.iter().filter(is_new).count() as u64;
        }
    }

    /// A sink has answered.
    pub(super) fn answered(&mut self, sink: SinkIndex, outcomes: &[Outcome], now: Instant) {
        let tally = &mut self.sinks[sink];
        let mut last = None;
        for outcome in outcomes {
            match outcome {
                Outcome::Delivered => tally.delivered += 1,
                // It was not tried.
                Outcome::NotYet(_) => {}
                Outcome::Temporary(reason)
                | Outcome::Permanent(reason)
                | Outcome::Unknown(reason)
                | Outcome::SinkDown(reason) => {
                    tally.failed += 1;
                    last = Some(reason);
                }
            }
        }
        if let Some(reason) = last {
            let text = reason.text().chars().take(SinkFigures::ERROR_CHARS).collect();
            tally.error = Some((text, now));
        }
    }

    /// Remembers the totals, and returns those of a minute ago with the seconds since.
    fn a_minute_ago(&mut self, now: Instant, totals: Totals) -> (Totals, f64) {
        self.minute.push_back((now, totals));
        // The first one that is older than a minute stays, so that the rates are about a whole minute.
        while self.minute.get(1).is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.minute.pop_front();
        }
        let (at, then) = self.minute.front().cloned().unwrap_or((now, Totals::default()));
        (then, (now - at).as_secs_f64())
    }

    /// What is to be written: all that changed, or everything after a while or under a new owner id.
    fn changed(&self, owner: sendoff::store::OwnerId, figures: &Figures, now: Instant) -> Figures {
        let known = self.written.as_ref();
        let Some(written) = known.filter(|written| written.owner == owner && now < written.repeat) else {
            return figures.clone();
        };
        let is_new = |(name, sink): &&(String, SinkFigures)| {
            let mut known = written.figures.sinks.iter();
            known
                .find(|(known, _)| known == name)
                .is_none_or(|(_, known)| known.without_ages() != sink.without_ages())
        };
        Figures {
            relay: figures
                .relay
                .clone()
                .filter(|relay| written.figures.relay.as_ref() != Some(relay)),
            sinks: figures.sinks.iter().filter(is_new).cloned().collect(),
        }
    }
}

fn rate(now: u64, then: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 {
        return 0.0;
    }
    // Two digits: more would make every figure a new one.
    (now.saturating_sub(then) as f64 / seconds * 100.0).round() / 100.0
}

impl Running {
    pub(super) fn start_figures(&mut self, now: Instant) {
        if self.figures.next().is_none_or(|next| now < next) || !self.trouble.allows(Step::Figures, now) {
            return;
        }
        self.figures.next = Some(now + PAUSE);
        let all = self.gather_figures(now);
        let figures = self.figures.changed(self.registration.owner, &all, now);
        if figures == Figures::default() {
            return;
        }
        let repeat = match &self.figures.written {
            Some(written) if written.owner == self.registration.owner && now < written.repeat => written.repeat,
            _ => now + REPEAT,
        };
        self.figures.writing = true;
        self.figures.written = Some(Written {
            owner: self.registration.owner,
            repeat,
            figures: all,
        });
        let (store, owner) = (self.store.clone(), self.registration.owner);
        self.under_way
            .tasks
            .spawn(async move { Event::Figures(store.write_figures(owner, &figures).await) });
    }

    fn gather_figures(&mut self, now: Instant) -> Figures {
        let report = self.dispatcher.report;
        let totals = Totals {
            read: self.figures.read,
            delivered: report.delivered,
            retried: report.retried,
            dead: report.dead,
            sinks: self
                .figures
                .sinks
                .iter()
                .map(|sink| (sink.delivered, sink.failed))
                .collect(),
        };
        let (then, seconds) = self.figures.a_minute_ago(now, totals.clone());
        let mut sinks = Vec::with_capacity(self.figures.sinks.len());
        for (at, (name, known)) in self.dispatcher.sink_figures(now).into_iter().enumerate() {
            let tally = &self.figures.sinks[at];
            let (delivered, failed) = then.sinks.get(at).copied().unwrap_or_default();
            let figures = SinkFigures {
                delivered: tally.delivered,
                failed: tally.failed,
                delivered_rate: rate(tally.delivered, delivered, seconds),
                failed_rate: rate(tally.failed, failed, seconds),
                last_error: tally.error.as_ref().map(|(text, _)| text.clone()),
                error_seconds: tally.error.as_ref().map(|(_, at)| (now - *at).as_secs_f64()),
                ..known
            };
            sinks.push((name.to_string(), figures));
        }
        Figures {
            relay: Some(RelayFigures {
                lanes: self.dispatcher.lane_loads().len() as u64,
                in_flight: self.dispatcher.in_flight() as u64,
                rates: Rates {
                    read: rate(totals.read, then.read, seconds),
                    delivered: rate(totals.delivered, then.delivered, seconds),
                    retried: rate(totals.retried, then.retried, seconds),
                    dead: rate(totals.dead, then.dead, seconds),
                },
            }),
            sinks,
        }
    }

    /// Figures were written, or not: everything is written again later.
    pub(super) fn figures_written(&mut self, written: Result<()>) {
        self.figures.writing = false;
        let Err(error) = written else { return };
        self.figures.written = None;
        if error.kind() == ErrorKind::Unsupported {
            self.figures.next = None;
        } else {
            self.trouble.failed(Step::Figures, &error, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::Reason;
    use sendoff::store::OwnerId;

    fn totals(read: u64) -> Totals {
        Totals {
            read,
            ..Totals::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_about_the_last_minute() {
        let mut book = FigureBook::new(Instant::now(), 0, false);
        let mut read = 0;
        for second in 0..120 {
            let (then, seconds) = book.a_minute_ago(Instant::now(), totals(read));
            let found = rate(read, then.read, seconds);
            match second {
                0 => assert!(found.abs() < 0.001, "nothing is known yet: {found}"),
                1..=59 => assert!((found - 10.0).abs() < 0.001, "second {second}: {found}"),
                _ => assert!(found <= 10.0 && seconds >= 60.0, "second {second}: {found}"),
            }
            if second == 119 {
                assert!(found.abs() < 0.2, "nothing was read for a minute: {found}");
            }
            if second < 59 {
                read += 10;
            }
            tokio::time::advance(PAUSE).await;
        }
        assert!(book.minute.len() <= 62, "{}", book.minute.len());
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_changed_is_written_and_everything_once_in_a_while() {
        let now = Instant::now();
        let (owner, other) = (OwnerId::random(), OwnerId::random());
        let sink = |delivered: u64, error_seconds: Option<f64>| SinkFigures {
            delivered,
            error_seconds,
            ..SinkFigures::default()
        };
        let all = |delivered, age| Figures {
            relay: Some(RelayFigures::default()),
            sinks: vec![("a".to_owned(), sink(delivered, age)), ("b".to_owned(), sink(7, age))],
        };
        let mut book = FigureBook::new(now, 2, false);
        assert_eq!(
            book.changed(owner, &all(1, None), now),
            all(1, None),
            "nothing is there yet"
        );
        book.written = Some(Written {
            owner,
            repeat: now + REPEAT,
            figures: all(1, Some(1.0)),
        });
        assert_eq!(
            book.changed(owner, &all(1, Some(2.0)), now),
            Figures::default(),
            "only older"
        );
        let changed = book.changed(owner, &all(2, Some(2.0)), now);
        assert_eq!((changed.relay, changed.sinks.len()), (None, 1));
        assert_eq!(
            book.changed(owner, &all(1, None), now + REPEAT),
            all(1, None),
            "after a while"
        );
        assert_eq!(book.changed(other, &all(1, None), now), all(1, None), "a new owner id");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_is_kept_and_cut() {
        let mut book = FigureBook::new(Instant::now(), 1, false);
        let long = "é".repeat(SinkFigures::ERROR_CHARS + 1);
        let outcomes = [
            Outcome::Delivered,
            Outcome::Temporary(Reason::new("first")),
            Outcome::SinkDown(Reason::new(long)),
            Outcome::NotYet(Reason::new("early")),
        ];
        book.answered(0, &outcomes, Instant::now());
        let tally = &book.sinks[0];
        assert_eq!((tally.delivered, tally.failed), (1, 2));
        let (text, _) = tally.error.as_ref().unwrap();
        assert_eq!(text.chars().count(), SinkFigures::ERROR_CHARS);
    }
}
