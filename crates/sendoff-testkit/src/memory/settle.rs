//! Settling: the steps of the plan, and the fence in front of it.

use std::sync::Arc;

use sendoff::store::{
    BlockedKey, DeathStep, Lane, OwnerId, Place, Room, SettlePlan, SettleReport, Settlement, WaitStep,
};

use super::clock::{Micros, span};
use super::tables::{Dead, Kept, LegAt, Tables, Tried, UNROUTED, WaitState, Waiting};

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
        let plan = SettlePlan::new(settlements, &held);
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
        for place in &plan.delivered {
            if let Some(row) = self.ready(place) {
                self.keep(place, UNROUTED, &row);
                self.tables.ready.remove(&(place.lane, place.seq));
                if planted!(DeletesRange) {
                    self.tables
                        .ready
                        .retain(|(lane, seq), _| *lane != place.lane || *seq > place.seq);
                }
            }
        }
        for step in &plan.confirmed {
            if let Some(row) = self.ready(step.place) {
                self.keep(step.place, step.leg, &row);
            }
        }
        for place in &plan.done {
            if let Some(row) = self.tables.waiting.remove(&at(place)) {
                self.keep(place, leg_of(place), &row);
            }
        }
        for step in &plan.confirmed_waiting {
            if let Some(row) = self.tables.waiting.get(&at(step.place)).cloned() {
                self.keep(step.place, step.leg, &row);
            }
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
        for place in &plan.remove_ready {
            if self.ready(place).is_some() {
                self.tables.ready.remove(&(place.lane, place.seq));
            }
        }
        for place in &plan.remove_waiting {
            self.tables.waiting.remove(&at(place));
        }
        became_due
    }

    /// The queues of keys. Returns those of which nothing is left, and whether rows became due.
    fn settle_keys(&mut self, plan: &SettlePlan<'_>) -> (Vec<BlockedKey>, bool) {
        for ((lane, key, leg), seq) in &plan.behind {
            self.tables.hold_back(*lane, key, leg, *seq);
        }
        let mut woke = false;
        for (lane, key, leg) in plan.gone.keys() {
            woke |= self.tables.follow_on(*lane, key, leg, self.now);
        }
        for step in plan.held() {
            woke |= self.let_go(step);
        }
        let touched = plan.gone.keys().map(|(lane, key, leg)| BlockedKey {
            lane: *lane,
            key: (*key).into(),
            leg: (*leg).into(),
        });
        (touched.filter(|key| !self.tables.key_left(key)).collect(), woke)
    }

    /// The ready row at this place, if it is this message's.
    fn ready(&self, place: &Place) -> Option<Waiting> {
        let content = self.tables.ready.get(&(place.lane, place.seq))?;
        (planted!(SettlesByNumber) || content.id == place.id.uuid()).then(|| Waiting {
            content: content.clone(),
            attempts: 0,
            state: WaitState::Scheduled,
            due_at: None,
            last_error: None,
            history: Vec::new(),
        })
    }

    /// The row that a step is about, wherever it is.
    fn row(&self, place: &Place) -> Option<Waiting> {
        match place.room {
            Room::Ready => self.ready(place),
            Room::Waiting => self.tables.waiting.get(&at(place)).cloned(),
        }
    }

    fn wait(&mut self, step: &WaitStep<'_>) {
        let Some(mut row) = self.row(step.place) else { return };
        row.charge(
            step.leg,
            step.charged,
            step.error.as_deref().unwrap_or_default(),
            self.now,
        );
        row.state = step.state.map_or(WaitState::Held, WaitState::Tried);
        row.due_at = Some(self.now.saturating_add(span(step.delay)));
        self.tables.waiting.insert(at_leg(step.place, step.leg), row);
    }

    fn hold(&mut self, step: &WaitStep<'_>) -> bool {
        let Some(mut row) = self.row(step.place) else {
            return false;
        };
        let at = at_leg(step.place, step.leg);
        let held = row
            .content
            .key
            .as_deref()
            .is_some_and(|key| self.tables.is_held(&at, key));
        row.state = WaitState::Held;
        row.due_at = if held { None } else { Some(self.now) };
        self.tables.waiting.insert(at, row);
        !held
    }

    /// A row that was held becomes due when nothing holds it after all.
    fn let_go(&mut self, step: &WaitStep<'_>) -> bool {
        let at = at_leg(step.place, step.leg);
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
        let Some(mut row) = self.row(step.place) else { return };
        row.charge(step.leg, step.charged, &step.error, self.now);
        let dead = Dead {
            content: row.content,
            attempts: row.attempts,
            reason: step.reason,
            blocks: step.blocks,
            dead_at: self.now,
            last_error: row.last_error,
            history: row.history,
        };
        self.tables.dead.insert(at_leg(step.place, step.leg), dead);
    }

    fn keep(&mut self, place: &Place, leg: &str, row: &Waiting) {
        if self.keep_delivered {
            self.tables.delivered.push(Kept {
                content: row.content.clone(),
                at: at_leg(place, leg),
                attempts: row.attempts,
                delivered_at: self.now,
            });
        }
    }
}

fn leg_of(place: &Place) -> &str {
    place.leg.as_deref().unwrap_or(UNROUTED)
}

fn at(place: &Place) -> LegAt {
    at_leg(place, leg_of(place))
}

fn at_leg(place: &Place, leg: &str) -> LegAt {
    (place.lane, place.seq, Arc::from(leg), place.id.uuid())
}

impl Waiting {
    fn charge(&mut self, leg: &str, charged: bool, error: &str, now: Micros) {
        if charged || self.last_error.as_deref() != Some(error) {
            self.history.push(Tried {
                at: now,
                leg: leg.into(),
                error: error.to_owned(),
            });
            let surplus = self.history.len().saturating_sub(LONGEST_HISTORY);
            self.history.drain(..surplus);
        }
        self.attempts += u32::from(charged);
        self.last_error = Some(error.to_owned());
    }
}
