//! The counted values.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::store::DeadReason;
use sendoff_relay::{PublishedBatch, SettledBatch};

use crate::clock::Clock;
use crate::histogram::Histogram;
use crate::series::{Series, reason};

/// The name for all names beyond the limit.
pub(crate) const OTHER: &str = "other";
/// The longest name in bytes, because producers choose topics freely. Names that are equal up to here share a number.
pub(crate) const LONGEST_NAME: usize = 128;
/// The end of a shortened name.
const CUT: &str = "…";
/// How many durations of batches are kept for DogStatsD until they are sent.
const BATCHES_KEPT: usize = 1_000;

/// All values of a relay: plain numbers behind one lock, which a relay takes once per batch, so that counting a message
/// costs almost nothing.
pub(crate) struct Figures {
    pub(crate) clock: Option<Clock>,
    pub(crate) topics: Names,
    pub(crate) sinks: Names,
    /// By sink, then by topic.
    series: Vec<Vec<Option<Box<Series>>>>,
    pub(crate) batches: Vec<Histogram>,
    pub(crate) settle: Histogram,
    pub(crate) settle_lag: Histogram,
    pub(crate) settled: u64,
    pub(crate) lanes_lost: u64,
    pub(crate) history_changes: u64,
    /// How long batches took since the last datagram to DogStatsD; `None` without DogStatsD.
    pub(crate) durations: Option<Vec<Duration>>,
}

/// Names by number. All names beyond the limit share a number.
pub(crate) struct Names {
    numbers: FxHashMap<Arc<str>, usize>,
    names: Vec<Arc<str>>,
    most: usize,
}

impl Names {
    fn new(most: usize) -> Self {
        Self {
            numbers: FxHashMap::default(),
            names: vec![OTHER.into()],
            most,
        }
    }

    fn number(&mut self, name: &str) -> usize {
        let name = &*shortened(name);
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() > self.most || name == OTHER {
            return 0;
        }
        let (name, number) = (Arc::<str>::from(name), self.names.len());
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(crate) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or(OTHER, |name| name)
    }
}

/// A name of at most [`LONGEST_NAME`] bytes.
pub(crate) fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    let end = name.floor_char_boundary(LONGEST_NAME - CUT.len());
    [&name[..end], CUT].concat().into()
}

impl Figures {
    /// With room for `most` topics and as many sinks.
    pub(crate) fn new(most: usize, with_durations: bool) -> Self {
        Self {
            clock: None,
            topics: Names::new(most),
            sinks: Names::new(most),
            series: Vec::new(),
            batches: Vec::new(),
            settle: Histogram::default(),
            settle_lag: Histogram::default(),
            settled: 0,
            lanes_lost: 0,
            history_changes: 0,
            durations: with_durations.then(Vec::new),
        }
    }

    pub(crate) fn published(&mut self, batch: &PublishedBatch<'_>) {
        let took = batch.answered - batch.begun;
        let sink = self.sinks.number(batch.sink);
        if self.batches.len() <= sink {
            self.batches.resize_with(sink + 1, Histogram::default);
        }
        self.batches[sink].add_duration(took);
        if let Some(durations) = self.durations.as_mut().filter(|kept| kept.len() < BATCHES_KEPT) {
            durations.push(took);
        }
        let clock = self.clock;
        // Messages of a topic often come together.
        let mut last = ("", None);
        for message in batch.messages {
            let topic = message.outgoing.topic.as_str();
            let number = match last {
                (name, Some(number)) if name == topic => number,
                _ => self.topics.number(topic),
            };
            last = (topic, Some(number));
            let series = series(&mut self.series, sink, number);
            series.published(message, batch.answered, clock.as_ref());
        }
    }

    pub(crate) fn retried(&mut self, topic: &str, sink: &str) {
        self.of(topic, sink).retried += 1;
    }

    pub(crate) fn dead(&mut self, topic: &str, sink: &str, why: DeadReason) {
        self.of(topic, sink).dead[reason(why)] += 1;
    }

    pub(crate) fn settled(&mut self, settled: &SettledBatch) {
        self.settle.add_duration(settled.took);
        self.settle_lag.add_duration(settled.lag);
        self.settled += settled.rows as u64;
        self.lanes_lost += settled.lost as u64;
    }

    fn of(&mut self, topic: &str, sink: &str) -> &mut Series {
        let (topic, sink) = (self.topics.number(topic), self.sinks.number(sink));
        series(&mut self.series, sink, topic)
    }

    /// All series: topic, sink, values.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str, &Series)> {
        self.series.iter().enumerate().flat_map(move |(sink, topics)| {
            let of_sink = topics.iter().enumerate();
            of_sink.filter_map(move |(topic, series)| {
                Some((self.topics.name(topic), self.sinks.name(sink), series.as_deref()?))
            })
        })
    }
}

fn series(all: &mut Vec<Vec<Option<Box<Series>>>>, sink: usize, topic: usize) -> &mut Series {
    if all.len() <= sink {
        all.resize_with(sink + 1, Vec::new);
    }
    let topics = &mut all[sink];
    if topics.len() <= topic {
        topics.resize_with(topic + 1, || None);
    }
    topics[topic].get_or_insert_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_off_between_letters() {
        let mut figures = Figures::new(9, false);
        for end in ["", "b", "c"] {
            figures.retried(&format!("{}{end}", "é".repeat(500_000)), "sink");
        }
        figures.retried(&"a".repeat(128), "sink");
        let counted: Vec<_> = figures
            .all()
            .map(|(topic, _, series)| (topic.len(), topic.ends_with('…'), series.retried))
            .collect();
        assert_eq!(counted, [(127, true, 3), (128, false, 1)]);
    }

    #[test]
    fn topics_beyond_the_limit_are_counted_together() {
        let mut figures = Figures::new(2, false);
        for topic in ["a", "b", "c", "d", "a", "other"] {
            figures.retried(topic, "sink");
        }
        let mut counted: Vec<_> = figures
            .all()
            .map(|(topic, _, series)| (topic, series.retried))
            .collect();
        counted.sort_unstable();
        assert_eq!(counted, [("a", 2), ("b", 1), ("other", 3)]);
    }
}
