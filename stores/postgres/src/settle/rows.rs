//! The steps of a plan as parameters of the settling statements: one array per column.

use std::borrow::Cow;

use sendoff::Uuid;
use sendoff::store::{DeathStep, KeepStep, PlannedKeys, RowRef, WaitStep};
use tokio_postgres::types::Type;

use crate::decode::{micros, smallint};
use crate::pipeline::Param;
use crate::tid::Tid;

/// Ready rows that are done, lane after lane.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    lanes: Vec<i16>,
    epochs: Vec<i64>,
    counts: Vec<i32>,
    seqs: Vec<i64>,
    ids: Vec<Uuid>,
    locators: Vec<Tid>,
}

impl Delivered {
    /// `epoch` tells the epoch of a lane.
    pub(super) fn new(row_refs: &[&RowRef], epoch: impl Fn(&RowRef) -> i64) -> Self {
        let mut row_refs = row_refs.to_vec();
        row_refs.sort_by_key(|row_ref| row_ref.lane);
        let mut rows = Self::default();
        for of_lane in row_refs.chunk_by(|a, b| a.lane == b.lane) {
            rows.lanes.push(smallint(of_lane[0].lane));
            rows.epochs.push(epoch(of_lane[0]));
            rows.counts.push(i32::try_from(of_lane.len()).unwrap_or(i32::MAX));
            for row_ref in of_lane {
                rows.seqs.push(row_ref.seq);
                rows.ids.push(row_ref.id.uuid());
                rows.locators.push(Tid::from_locator(row_ref.locator));
            }
        }
        rows
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }

    pub(super) fn params<'p>(&'p self, owner: &'p Uuid) -> Vec<Param<'p>> {
        vec![
            (owner, Type::UUID),
            (&self.lanes, Type::INT2_ARRAY),
            (&self.epochs, Type::INT8_ARRAY),
            (&self.counts, Type::INT4_ARRAY),
            (&self.seqs, Type::INT8_ARRAY),
            (&self.ids, Type::UUID_ARRAY),
            (&self.locators, Type::TID_ARRAY),
        ]
    }
}

/// Rows by place and id.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    lanes: Vec<i16>,
    seqs: Vec<i64>,
    ids: Vec<Uuid>,
    /// The delivery of each, as far as the statement takes one.
    deliveries: Vec<&'a str>,
}

impl<'a> Rows<'a> {
    /// Rows with the deliveries that they have.
    pub(super) fn of(row_refs: &[&'a RowRef]) -> Self {
        let mut rows = Self::default();
        for row_ref in row_refs {
            rows.push(row_ref, row_ref.sink.as_deref().unwrap_or_default());
        }
        rows
    }

    /// Rows with the deliveries that they get.
    fn for_deliveries(steps: impl Iterator<Item = (&'a RowRef, &'a str)>) -> Self {
        let mut rows = Self::default();
        for (row_ref, sink) in steps {
            rows.push(row_ref, sink);
        }
        rows
    }

    fn push(&mut self, row_ref: &RowRef, sink: &'a str) {
        self.lanes.push(smallint(row_ref.lane));
        self.seqs.push(row_ref.seq);
        self.ids.push(row_ref.id.uuid());
        self.deliveries.push(sink);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }

    /// Lanes, seqs, ids.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.lanes, Type::INT2_ARRAY),
            (&self.seqs, Type::INT8_ARRAY),
            (&self.ids, Type::UUID_ARRAY),
        ]
    }

    /// Lanes, seqs, ids, deliveries.
    pub(super) fn params_with_deliveries(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.deliveries, Type::TEXT_ARRAY));
        params
    }
}

/// Copies to be kept.
#[derive(Debug, Default)]
pub(super) struct Kept<'a> {
    rows: Rows<'a>,
    /// The sinks that confirmed each, as a JSON array.
    confirmed: Vec<String>,
}

impl<'a> Kept<'a> {
    pub(super) fn new(steps: &[KeepStep<'a>]) -> Self {
        Self {
            rows: Rows::of(&steps.iter().map(|step| step.row_ref).collect::<Vec<_>>()),
            confirmed: steps.iter().map(KeepStep::sinks_json).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Of ready rows: lanes, seqs, ids, confirmed sinks.
    pub(super) fn ready_params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params();
        params.push((&self.confirmed, Type::TEXT_ARRAY));
        params
    }

    /// Of waiting rows: lanes, seqs, ids, deliveries, confirmed sinks.
    pub(super) fn waiting_params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params_with_deliveries();
        params.push((&self.confirmed, Type::TEXT_ARRAY));
        params
    }
}

/// Deliveries that wait.
#[derive(Debug, Default)]
pub(super) struct Waits<'a> {
    rows: Rows<'a>,
    states: Vec<&'static str>,
    delays: Vec<i64>,
    charged: Vec<bool>,
    attempts: Vec<i32>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Waits<'a> {
    pub(super) fn new(steps: &'a [WaitStep<'a>]) -> Self {
        Self {
            rows: Rows::for_deliveries(steps.iter().map(|step| (step.row_ref, step.sink))),
            states: steps.iter().map(WaitStep::state_word).collect(),
            delays: steps.iter().map(|step| micros(step.delay)).collect(),
            charged: steps.iter().map(|step| step.charged).collect(),
            attempts: steps.iter().map(|step| integer(step.attempts)).collect(),
            errors: steps.iter().map(|step| step.error.as_deref()).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params_with_deliveries();
        params.push((&self.states, Type::TEXT_ARRAY));
        params.push((&self.delays, Type::INT8_ARRAY));
        params.push((&self.charged, Type::BOOL_ARRAY));
        params.push((&self.errors, Type::TEXT_ARRAY));
        params
    }

    /// The same with the attempts that each had.
    pub(super) fn params_with_attempts(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.attempts, Type::INT4_ARRAY));
        params
    }
}

fn integer(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Deliveries that die.
#[derive(Debug, Default)]
pub(super) struct Deaths<'a> {
    rows: Rows<'a>,
    deliveries: Vec<&'a str>,
    reasons: Vec<&'static str>,
    errors: Vec<&'a Cow<'a, str>>,
    charged: Vec<bool>,
    blocks: Vec<bool>,
}

impl<'a> Deaths<'a> {
    pub(super) fn new(steps: &'a [DeathStep<'a>]) -> Self {
        Self {
            rows: Rows::of(&steps.iter().map(|step| step.row_ref).collect::<Vec<_>>()),
            deliveries: steps.iter().map(|step| step.sink).collect(),
            reasons: steps.iter().map(|step| step.reason.as_str()).collect(),
            errors: steps.iter().map(|step| &step.error).collect(),
            charged: steps.iter().map(|step| step.charged).collect(),
            blocks: steps.iter().map(|step| step.blocks).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params_with_deliveries();
        params.push((&self.deliveries, Type::TEXT_ARRAY));
        params.push((&self.reasons, Type::TEXT_ARRAY));
        params.push((&self.errors, Type::TEXT_ARRAY));
        params.push((&self.charged, Type::BOOL_ARRAY));
        params.push((&self.blocks, Type::BOOL_ARRAY));
        params
    }
}

/// Keys whose followers have to be looked at.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    lanes: Vec<i16>,
    keys: Vec<&'a str>,
    deliveries: Vec<&'a str>,
    seqs: Vec<i64>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(planned: &PlannedKeys<'a>) -> Self {
        let mut keys = Self::default();
        for ((lane, key, sink), seq) in planned {
            keys.lanes.push(smallint(*lane));
            keys.keys.push(key);
            keys.deliveries.push(sink);
            keys.seqs.push(*seq);
        }
        keys
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Lanes, keys, deliveries.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.lanes, Type::INT2_ARRAY),
            (&self.keys, Type::TEXT_ARRAY),
            (&self.deliveries, Type::TEXT_ARRAY),
        ]
    }

    /// Lanes, keys, deliveries, seqs.
    pub(super) fn params_with_seq(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.seqs, Type::INT8_ARRAY));
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::Table;

    #[test]
    fn delivered_rows_come_lane_after_lane_with_their_ids() {
        let row_ref = |lane, seq: i64| RowRef {
            table: Table::Ready,
            lane,
            seq,
            id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
            sink: None,
            locator: 0,
        };
        let row_refs = [row_ref(9, 3), row_ref(3, 1), row_ref(3, 2)];
        let rows = Delivered::new(&row_refs.iter().collect::<Vec<_>>(), |row_ref| {
            i64::from(row_ref.lane) * 10
        });
        assert_eq!(
            (rows.lanes, rows.epochs, rows.counts),
            (vec![3, 9], vec![30, 90], vec![2, 1])
        );
        assert_eq!(rows.seqs, [1, 2, 3]);
        assert_eq!(rows.ids, [1, 2, 3].map(Uuid::from_u128));
    }
}
