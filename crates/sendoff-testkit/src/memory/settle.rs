//! Settling: what is to happen with a row, and the fence in front of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use sendoff::store::{BlockedKey, Lane, LegSettlement, OwnerId, Room, SettleReport, Settlement, Verdict};

use super::clock::{Micros, span};
use super::tables::{Dead, Kept, LegAt, Tables, Tried, UNROUTED, WaitState, Waiting};

/// How many tries the history of a message keeps, and how many characters of an error.
const LONGEST_HISTORY: usize = 20;
const LONGEST_ERROR: usize = 2_000;

/// One call of settle.
pub(super) struct Settling<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) now: Micros,
    pub(super) keep_delivered: bool,
    report: SettleReport,
    /// Keys whose waiting rows were settled.
    touched: BTreeSet<BlockedKey>,
    /// Legs to hold, once everything that could hold them is in its place.
    holds: Vec<(LegAt, Waiting)>,
}

impl<'a> Settling<'a> {
    pub(super) fn new(tables: &'a mut Tables, now: Micros, keep_delivered: bool) -> Self {
        Self {
            tables,
            now,
            keep_delivered,
            report: SettleReport::default(),
            touched: BTreeSet::new(),
            holds: Vec::new(),
        }
    }

    pub(super) fn settle(mut self, owner: OwnerId, settlements: &[Settlement]) -> SettleReport {
        let lost: BTreeSet<Lane> = settlements
            .iter()
            .filter(|settlement| !self.holds_lane(owner, settlement))
            .map(|settlement| settlement.place.lane)
            .collect();
        for settlement in settlements.iter().filter(|s| !lost.contains(&s.place.lane)) {
            match settlement.place.room {
                Room::Ready => self.settle_ready(settlement),
                Room::Waiting => self.settle_waiting(settlement),
            }
        }
        // In the order of the key, so that none is held by one behind it.
        self.holds.sort_by_key(|((_, seq, _), _)| *seq);
        for (at, row) in std::mem::take(&mut self.holds) {
            self.hold(at, row);
        }
        for touched in std::mem::take(&mut self.touched) {
            if !self.tables.key_left(&touched) {
                self.report.freed.push(touched);
            }
        }
        self.report.lost = lost.into_iter().collect();
        self.report
    }

    fn holds_lane(&self, owner: OwnerId, settlement: &Settlement) -> bool {
        let lane = self.tables.lanes.get(usize::from(settlement.place.lane));
        self.tables.has_lease(owner, self.now)
            && lane.is_some_and(|row| row.owner == Some(owner) && row.epoch == settlement.epoch)
    }

    fn settle_ready(&mut self, settlement: &Settlement) {
        let place = &settlement.place;
        let Some(content) = self.tables.ready.remove(&(place.lane, place.seq)) else {
            return;
        };
        let row = Waiting {
            content,
            attempts: 0,
            state: WaitState::Scheduled,
            due_at: None,
            last_error: None,
            history: Vec::new(),
        };
        self.split(settlement, row);
    }

    fn settle_waiting(&mut self, settlement: &Settlement) {
        let place = &settlement.place;
        let leg = place.leg.clone().unwrap_or_else(|| UNROUTED.into());
        let at = (place.lane, place.seq, leg.clone());
        let Some(row) = self.tables.waiting.remove(&at) else {
            return;
        };
        if *leg == *UNROUTED {
            self.split(settlement, row);
        } else if let Some(settled) = settlement.legs.first() {
            self.settle_leg(at.clone(), row, &settled.verdict);
        } else {
            self.keep(&at, &row);
        }
        if let Some(key) = &settlement.key {
            self.tend_followers(&at, key, &settlement.legs);
        }
    }

    /// A row that was not routed yet becomes one a leg; those that are not listed are delivered.
    fn split(&mut self, settlement: &Settlement, row: Waiting) {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        if settlement.legs.is_empty() {
            self.keep(&(lane, seq, UNROUTED.into()), &row);
        }
        for LegSettlement { leg, verdict } in &settlement.legs {
            self.settle_leg((lane, seq, leg.clone()), row.clone(), verdict);
        }
    }

    fn settle_leg(&mut self, at: LegAt, mut row: Waiting, verdict: &Verdict) {
        match verdict {
            Verdict::Delivered => self.keep(&at, &row),
            Verdict::Retry {
                state,
                delay,
                charged,
                error,
            } => {
                row.charge(&at.2, *charged, error, self.now);
                row.state = WaitState::Tried(*state);
                row.due_at = Some(self.now.saturating_add(span(*delay)));
                self.tables.waiting.insert(at, row);
            }
            Verdict::Hold => self.holds.push((at, row)),
            Verdict::Dead {
                reason,
                error,
                charged,
                blocks,
            } => {
                row.charge(&at.2, *charged, error, self.now);
                let dead = Dead {
                    content: row.content,
                    attempts: row.attempts,
                    reason: *reason,
                    blocks: *blocks,
                    dead_at: self.now,
                    last_error: row.last_error,
                    history: row.history,
                };
                self.tables.dead.insert(at, dead);
            }
        }
    }

    fn hold(&mut self, at: LegAt, mut row: Waiting) {
        let key = row.content.key.clone();
        let held = key.is_some_and(|key| self.tables.is_held(&at, &key));
        row.state = WaitState::Held;
        row.due_at = if held { None } else { Some(self.now) };
        self.report.woke |= !held;
        self.tables.waiting.insert(at, row);
    }

    /// A row of a key left the waiting table, or stays in it: those behind it may go, or have to stay.
    fn tend_followers(&mut self, (lane, seq, leg): &LegAt, key: &Arc<str>, settled: &[LegSettlement]) {
        self.touched.insert(BlockedKey {
            lane: *lane,
            key: key.clone(),
            leg: leg.clone(),
        });
        let mut passes = true;
        for LegSettlement { leg, verdict } in settled {
            let has_to_wait = match verdict {
                Verdict::Retry { state, .. } => WaitState::Tried(*state).blocks(),
                Verdict::Dead { blocks, .. } => *blocks,
                Verdict::Hold | Verdict::Delivered => false,
            };
            if has_to_wait {
                self.tables.hold_back(*lane, key, leg, *seq);
            }
            passes &= !has_to_wait && *verdict != Verdict::Hold;
        }
        // What was not routed held every leg; those of its own legs that have to wait are looked at one by one.
        if passes || **leg == *UNROUTED {
            self.report.woke |= self.tables.follow_on(*lane, key, leg, self.now);
        }
    }

    fn keep(&mut self, at: &LegAt, row: &Waiting) {
        if self.keep_delivered {
            self.tables.delivered.push(Kept {
                content: row.content.clone(),
                at: at.clone(),
                attempts: row.attempts,
                delivered_at: self.now,
            });
        }
    }
}

impl Waiting {
    fn charge(&mut self, leg: &Arc<str>, charged: bool, error: &str, now: Micros) {
        let error: String = error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect();
        if charged || self.last_error.as_deref() != Some(&error) {
            self.history.push(Tried {
                at: now,
                leg: leg.clone(),
                error: error.clone(),
            });
            let surplus = self.history.len().saturating_sub(LONGEST_HISTORY);
            self.history.drain(..surplus);
        }
        self.attempts += u32::from(charged);
        self.last_error = Some(error);
    }
}
