//! Settling: the steps of the plan, and the fence in front of it.

use std::sync::Arc;

use sendoff::store::{
    BlockedKey, DeathStep, KeepStep, Lane, OwnerId, RowRef, SettlePlan, SettleReport, Settlement, Table, WaitStep,
};

use super::clock::{Micros, span};
use super::tables::{Dead, DeliveryAt, Kept, Tables, Tried, UNROUTED, WaitState, Waiting};

/// How many tries the history of a message keeps.
const LONGEST_HISTORY: usize = 20;

/// One call of settle.
pub(super) struct Settling<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) now: Micros,
    pub(super) keep_delivered: bool,
}

impl Settling<'_> {
    pub(super) fn settle(&mut self, owner: OwnerId, settlements: &[Settlement]) -> SettleReport {
        let mut held = SettlePlan::epochs(settlements);
        let lost: Vec<Lane> = held
            .iter()
            .filter(|(lane, epoch)| !self.holds_lane(owner, **lane, **epoch))
            .map(|(lane, _)| *lane)
            .collect();
        held.retain(|lane, _| !lost.contains(lane));
        let mut plan = SettlePlan::new(settlements, &held, self.keep_delivered);
        if !planted!(PauseEndsUnseen) {
            let paused = &self.tables.paused;
            plan.end_pauses(|name| paused.contains_key(&("topic".to_owned(), name.to_owned())));
        }
        let became_due = self.carry_out(&plan);
        let (freed, woke) = self.settle_keys(&plan);
        SettleReport {
            lost,
            freed,
            woke: plan.due || became_due || woke,
        }
    }

    fn holds_lane(&self, owner: OwnerId, lane: Lane, epoch: i64) -> bool {
        planted!(FenceDropped) || self.tables.holds(owner, lane, epoch, self.now)
    }

    /// Every step, in the order of the plan. Tells whether something that was to be held is due.
    fn carry_out(&mut self, plan: &SettlePlan<'_>) -> bool {
        for step in plan.kept_ready.iter().chain(&plan.kept_waiting) {
            self.keep(step);
        }
        for row_ref in &plan.delivered {
            if self.ready(row_ref).is_some() {
                self.tables.ready.remove(&(row_ref.lane, row_ref.seq));
                if planted!(DeletesRange) {
                    self.tables
                        .ready
                        .retain(|(lane, seq), _| *lane != row_ref.lane || *seq > row_ref.seq);
                }
            }
        }
        for row_ref in &plan.done {
            self.tables.waiting.remove(&at(row_ref));
        }
        for step in plan.wait_again.iter().chain(&plan.wait_ready).chain(&plan.split) {
            self.wait(step);
        }
        for step in plan.die_ready.iter().chain(&plan.die_waiting) {
            self.die(step);
        }
        let mut became_due = false;
        for step in plan.held() {
            became_due |= self.hold(step);
        }
        for row_ref in &plan.remove_ready {
            if self.ready(row_ref).is_some() {
                self.tables.ready.remove(&(row_ref.lane, row_ref.seq));
            }
        }
        for row_ref in &plan.remove_waiting {
            self.tables.waiting.remove(&at(row_ref));
        }
        became_due
    }

    /// The queues of keys. Returns those of which nothing is left, and whether rows became due.
    fn settle_keys(&mut self, plan: &SettlePlan<'_>) -> (Vec<BlockedKey>, bool) {
        for ((lane, key, sink), seq) in &plan.behind {
            self.tables.block_followers(*lane, key, sink, *seq);
        }
        let mut woke = false;
        for (lane, key, sink) in plan.gone.keys() {
            woke |= self.tables.follow_on(*lane, key, sink, self.now);
        }
        for step in plan.held() {
            woke |= self.let_go(step);
        }
        let touched = plan.gone.keys().map(|(lane, key, sink)| BlockedKey {
            lane: *lane,
            key: (*key).into(),
            sink: (*sink).into(),
        });
        (touched.filter(|key| !self.tables.key_left(key)).collect(), woke)
    }

    /// The ready row at this place, if it is this message's.
    fn ready(&self, row_ref: &RowRef) -> Option<Waiting> {
        let content = self.tables.ready.get(&(row_ref.lane, row_ref.seq))?;
        (planted!(SettlesByNumber) || content.id == row_ref.id.uuid()).then(|| Waiting {
            content: content.clone(),
            attempts: 0,
            state: WaitState::Scheduled,
            due_at: None,
            last_error: None,
            history: Vec::new(),
        })
    }

    /// The row that a step is about, wherever it is.
    fn row(&self, row_ref: &RowRef) -> Option<Waiting> {
        match row_ref.table {
            Table::Ready => self.ready(row_ref),
            Table::Waiting => self.tables.waiting.get(&at(row_ref)).cloned(),
        }
    }

    fn wait(&mut self, step: &WaitStep<'_>) {
        let Some(mut row) = self.row(step.row_ref) else { return };
        let again = row.attempts != step.attempts && !planted!(ChargedTwice);
        row.charge(
            step.sink,
            step.charged && !again,
            step.error.as_deref().unwrap_or_default(),
            self.now,
        );
        row.state = step.state.map_or(WaitState::Blocked, WaitState::Tried);
        row.due_at = Some(self.now.saturating_add(span(step.delay)));
        self.tables.waiting.insert(at_delivery(step.row_ref, step.sink), row);
    }

    fn hold(&mut self, step: &WaitStep<'_>) -> bool {
        let Some(mut row) = self.row(step.row_ref) else {
            return false;
        };
        let at = at_delivery(step.row_ref, step.sink);
        let held = row
            .content
            .key
            .as_deref()
            .is_some_and(|key| self.tables.is_held(&at, key));
        row.state = WaitState::Blocked;
        row.due_at = if held { None } else { Some(self.now) };
        self.tables.waiting.insert(at, row);
        !held
    }

    /// A row that was held becomes due when nothing holds it after all.
    fn let_go(&mut self, step: &WaitStep<'_>) -> bool {
        let at = at_delivery(step.row_ref, step.sink);
        let Some(row) = self.tables.waiting.get(&at).filter(|row| row.due_at.is_none()) else {
            return false;
        };
        if row
            .content
            .key
            .clone()
            .is_some_and(|key| self.tables.is_held(&at, &key))
        {
            return false;
        }
        if let Some(row) = self.tables.waiting.get_mut(&at) {
            row.due_at = Some(self.now);
        }
        true
    }

    fn die(&mut self, step: &DeathStep<'_>) {
        let Some(mut row) = self.row(step.row_ref) else { return };
        row.charge(step.sink, step.charged, &step.error, self.now);
        let dead = Dead {
            content: row.content,
            attempts: row.attempts,
            reason: step.reason,
            blocks: step.blocks,
            dead_at: self.now,
            last_error: row.last_error,
            history: row.history,
        };
        self.tables.dead.insert(at_delivery(step.row_ref, step.sink), dead);
    }

    fn keep(&mut self, step: &KeepStep<'_>) {
        let Some(row) = self.row(step.row_ref) else { return };
        for sink in &step.sinks {
            self.tables.delivered.push(Kept {
                content: row.content.clone(),
                at: at_delivery(step.row_ref, sink),
                attempts: row.attempts,
                delivered_at: self.now,
                history: row.history.clone(),
            });
        }
    }
}

fn delivery_of(row_ref: &RowRef) -> &str {
    row_ref.sink.as_deref().unwrap_or(UNROUTED)
}

fn at(row_ref: &RowRef) -> DeliveryAt {
    at_delivery(row_ref, delivery_of(row_ref))
}

fn at_delivery(row_ref: &RowRef, sink: &str) -> DeliveryAt {
    (row_ref.lane, row_ref.seq, Arc::from(sink), row_ref.id.uuid())
}

impl Waiting {
    fn charge(&mut self, sink: &str, charged: bool, error: &str, now: Micros) {
        if charged || self.last_error.as_deref() != Some(error) {
            self.history.push(Tried {
                at: now,
                sink: sink.into(),
                error: error.to_owned(),
            });
            let surplus = self.history.len().saturating_sub(LONGEST_HISTORY);
            self.history.drain(..surplus);
        }
        self.attempts += u32::from(charged);
        self.last_error = Some(error.to_owned());
    }
}
