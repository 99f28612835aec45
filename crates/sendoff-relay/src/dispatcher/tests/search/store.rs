//! The tables of a small world, which settle as every store does: by the steps of the real plan.

use std::collections::{BTreeMap, BTreeSet};

use sendoff::store::SettlePlan;

use super::*;

/// A sink, by its index.
pub(super) type At = (i64, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Due {
    Now,
    Later,
    /// When another one of its key lets it go.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Why {
    Failed,
    Parked,
    Paused,
    Blocked,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tables {
    pub(super) ready: BTreeSet<i64>,
    pub(super) waiting: BTreeMap<At, (Why, Due)>,
    /// Dead letters, and whether they block.
    pub(super) dead: BTreeMap<At, bool>,
    /// An operator paused the topic.
    pub(super) paused: bool,
}

fn sink_of(name: &str) -> usize {
    SINKS.iter().position(|sink| *sink == name).unwrap()
}

fn at_of(row_ref: &RowRef) -> At {
    (row_ref.seq, sink_of(row_ref.sink.as_deref().unwrap()))
}

impl Tables {
    fn exists(&self, row_ref: &RowRef) -> bool {
        match row_ref.table {
            Table::Ready => self.ready.contains(&row_ref.seq),
            Table::Waiting => self.waiting.contains_key(&at_of(row_ref)),
        }
    }

    /// Writes settlements.
    pub(super) fn settle(&mut self, settlements: &[Settlement]) -> SettleReport {
        let mut plan = SettlePlan::new(settlements, &SettlePlan::epochs(settlements), false);
        plan.end_pauses(|_| self.paused);
        for row_ref in &plan.delivered {
            self.ready.remove(&row_ref.seq);
        }
        for row_ref in &plan.done {
            self.waiting.remove(&at_of(row_ref));
        }
        for step in plan.wait_again.iter().chain(&plan.wait_ready) {
            let why = match step.state {
                Some(RetryState::Parked) => Why::Parked,
                _ if step.pause.is_some() => Why::Paused,
                _ => Why::Failed,
            };
            let due = if step.delay.is_zero() { Due::Now } else { Due::Later };
            if self.exists(step.row_ref) {
                self.waiting.insert((step.row_ref.seq, sink_of(step.sink)), (why, due));
            }
        }
        for step in plan.die_ready.iter().chain(&plan.die_waiting) {
            if self.exists(step.row_ref) {
                self.dead.insert((step.row_ref.seq, sink_of(step.sink)), step.blocks);
            }
        }
        for step in plan.held() {
            let at = (step.row_ref.seq, sink_of(step.sink));
            if self.exists(step.row_ref) {
                let due = if self.is_held(at) { Due::Never } else { Due::Now };
                self.waiting.insert(at, (Why::Blocked, due));
            }
        }
        for row_ref in &plan.remove_ready {
            self.ready.remove(&row_ref.seq);
        }
        for row_ref in &plan.remove_waiting {
            self.waiting.remove(&at_of(row_ref));
        }
        for ((_, _, sink), seq) in &plan.behind {
            let behind = self
                .waiting
                .iter_mut()
                .filter(|(at, _)| at.0 > *seq && at.1 == sink_of(sink));
            for (_, row) in behind.filter(|(_, (why, due))| *why != Why::Parked && *due != Due::Never) {
                *row = (Why::Blocked, Due::Never);
            }
        }
        for (_, _, sink) in plan.gone.keys() {
            self.follow_on(sink_of(sink));
        }
        for step in plan.held() {
            let at = (step.row_ref.seq, sink_of(step.sink));
            if self.waiting.get(&at).is_some_and(|row| row.1 == Due::Never) && !self.is_held(at) {
                self.waiting.insert(at, (Why::Blocked, Due::Now));
            }
        }
        let sinks: BTreeSet<usize> = plan.gone.keys().map(|(_, _, sink)| sink_of(sink)).collect();
        let freed = sinks.into_iter().filter(|sink| !self.is_left(*sink));
        SettleReport {
            freed: freed.map(blocked_key).collect(),
            ..SettleReport::default()
        }
    }

    fn rows_at(&self, sink: usize) -> impl Iterator<Item = (i64, Why, Due)> {
        let rows = self
            .waiting
            .iter()
            .filter(move |(at, row)| at.1 == sink && row.0 != Why::Parked);
        rows.map(|(at, row)| (at.0, row.0, row.1))
    }

    fn has_blocking_dead(&self, sink: usize) -> bool {
        self.dead.iter().any(|(at, blocks)| at.1 == sink && *blocks)
    }

    fn is_held(&self, (seq, sink): At) -> bool {
        let mut rows = self.rows_at(sink);
        rows.any(|(other, why, _)| other != seq && (other < seq || why != Why::Blocked)) || self.has_blocking_dead(sink)
    }

    fn is_left(&self, sink: usize) -> bool {
        self.rows_at(sink).next().is_some() || self.has_blocking_dead(sink)
    }

    /// Lets the next rows of the key go.
    pub(super) fn follow_on(&mut self, sink: usize) {
        if self.has_blocking_dead(sink) {
            return;
        }
        for (_, row) in self
            .waiting
            .iter_mut()
            .filter(|(at, row)| at.1 == sink && row.0 != Why::Parked)
        {
            match row.1 {
                Due::Later => break,
                Due::Now => {}
                Due::Never => row.1 = Due::Now,
            }
        }
    }

    pub(super) fn blocked_keys(&self) -> Vec<BlockedKey> {
        let blocked = (0..SINKS.len()).filter(|sink| self.is_left(*sink));
        blocked.map(blocked_key).collect()
    }
}

fn blocked_key(sink: usize) -> BlockedKey {
    BlockedKey {
        lane: 1,
        key: "k".into(),
        sink: SINKS[sink].into(),
    }
}
