//! Reading what is to be delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::{Budget, InFlight, Lane, LaneGrant, Outgoing, Page, ReadRequest, Reader, Row, Table};

use super::clock::{Micros, micros};
use super::tables::{Tables, UNROUTED};
use super::{MemoryStore, Verb};

/// Reads the lanes of one relay.
///
/// It looks through each lane from its beginning every time, so that no late commit can slip behind it, and needs no
/// floor: what it has returned is in flight, and that is a bounded number of rows.
#[derive(Debug)]
pub struct MemoryReader {
    store: MemoryStore,
    lanes: BTreeSet<Lane>,
    hand: InFlight,
    /// Where among the common lanes the next page begins, so that a hot lane does not starve those behind it.
    turn: usize,
    /// How far each lane was read, for a bug on purpose.
    floors: BTreeMap<Lane, i64>,
}

impl MemoryReader {
    pub(super) fn new(store: MemoryStore) -> Self {
        Self {
            store,
            lanes: BTreeSet::new(),
            hand: InFlight::default(),
            turn: 0,
            floors: BTreeMap::new(),
        }
    }

    /// The lanes in the order of this page: urgent ones, common ones in turn, idle ones.
    fn order(&mut self) -> Vec<Lane> {
        let lanes = self.store.shared.lanes;
        let idle = lanes.common + lanes.priority;
        let (mut common, rest): (Vec<Lane>, Vec<Lane>) = self.lanes.iter().partition(|lane| **lane < lanes.common);
        if !common.is_empty() {
            self.turn = (self.turn + 1) % common.len();
            common.rotate_left(self.turn);
        }
        let (urgent, idle): (Vec<Lane>, Vec<Lane>) = rest.into_iter().partition(|lane| *lane < idle);
        [urgent, common, idle].concat()
    }

    fn read_ready(&mut self, tables: &Tables, limit: usize, budget: &mut Budget, now: Micros, page: &mut Page) {
        let order = self.order();
        // A share for each lane first, then what is left of the limit for those that have more.
        let share = limit.div_ceil(order.len().max(1)).max(1);
        for lane in &order {
            self.read_lane(tables, *lane, share, budget, now, page);
        }
        for lane in &order {
            let left = limit.saturating_sub(page.rows.len());
            page.more |= self.read_lane(tables, *lane, left, budget, now, page);
        }
    }

    /// Returns whether it stopped at its limit. What lies behind may be in flight; then the next read says that there is
    /// no more.
    fn read_lane(
        &mut self,
        tables: &Tables,
        lane: Lane,
        limit: usize,
        budget: &mut Budget,
        now: Micros,
        page: &mut Page,
    ) -> bool {
        let unrouted = Arc::from(UNROUTED);
        let mut taken = 0;
        for ((_, seq), content) in tables.ready.range((lane, i64::MIN)..(lane + 1, i64::MIN)) {
            if taken == limit || budget.is_spent() {
                return true;
            }
            if planted!(FloorDoesNotLag) && self.floors.get(&lane).is_some_and(|floor| seq <= floor) {
                continue;
            }
            let outgoing = content.outgoing(Table::Ready, lane, *seq, &unrouted, 0);
            if self.hand.take(&outgoing.row_ref) {
                if planted!(FloorDoesNotLag) {
                    self.floors.insert(lane, *seq);
                }
                taken += 1;
                budget.spend(outgoing.bytes());
                page.rows.push(row(outgoing, now));
            }
        }
        false
    }

    fn read_due(&mut self, tables: &Tables, request: &ReadRequest, budget: &mut Budget, now: Micros, page: &mut Page) {
        let mut due: Vec<_> = tables
            .waiting
            .iter()
            .filter(|((lane, _, sink, _), _)| {
                self.lanes.contains(lane) && !request.skip_sinks.iter().any(|skip| **skip == **sink)
            })
            .filter_map(|(at, waiting)| Some((waiting.due_at.filter(|due| *due <= now)?, at, waiting)))
            .collect();
        due.sort_by_key(|(due, (_, seq, ..), _)| (*due, *seq));
        let mut taken = 0;
        for (_, (lane, seq, sink, _), waiting) in due {
            if taken == request.limit.max(1) || budget.is_spent() {
                page.more = true;
                break;
            }
            let outgoing = waiting
                .content
                .outgoing(Table::Waiting, *lane, *seq, sink, waiting.attempts);
            if self.hand.take(&outgoing.row_ref) || planted!(DueTwice) {
                taken += 1;
                budget.spend(outgoing.bytes());
                page.rows.push(row(outgoing, now));
            }
        }
    }
}

#[async_trait]
impl Reader for MemoryReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            self.hand.drop_lane(grant.lane);
            self.floors.remove(&grant.lane);
            self.lanes.insert(grant.lane);
        }
    }

    fn lost(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.hand.drop_lane(*lane);
            self.lanes.remove(lane);
        }
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.hand.begin(&request);
        let store = self.store.clone();
        store.faults().before(Verb::Read).await?;
        store.faults().after(Verb::Read)?;
        let now = store.shared.clock.now();
        let tables = store.tables();
        let mut page = Page::default();
        if request.ready {
            // Not all of it, so that neither table keeps the other waiting.
            let part = if request.due { 2 } else { 1 };
            let mut budget = Budget::new(request.bytes.div_ceil(part));
            self.read_ready(&tables, request.limit, &mut budget, now, &mut page);
        }
        if request.due {
            let mut budget = Budget::new(request.bytes);
            budget.spend(page.rows.iter().map(Row::bytes).sum());
            self.read_due(&tables, &request, &mut budget, now, &mut page);
        }
        Ok(page)
    }
}

fn row(outgoing: Outgoing, now: Micros) -> Row {
    if outgoing.expires_at.is_some_and(|at| micros(at) <= now) {
        Row::Expired(Arc::new(outgoing))
    } else {
        Row::Message(Arc::new(outgoing))
    }
}
