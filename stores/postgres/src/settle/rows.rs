//! Steps of the plan as the settling statements take them: one array a column.

use std::borrow::Cow;

use sendoff::Uuid;
use sendoff::store::{DeathStep, KeepStep, Place, PlannedKeys, WaitStep};
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
    spots: Vec<Tid>,
}

impl Delivered {
    /// `epoch` tells the epoch of a lane.
    pub(super) fn new(places: &[&Place], epoch: impl Fn(&Place) -> i64) -> Self {
        let mut places = places.to_vec();
        places.sort_by_key(|place| place.lane);
        let mut rows = Self::default();
        for of_lane in places.chunk_by(|a, b| a.lane == b.lane) {
            rows.lanes.push(smallint(of_lane[0].lane));
            rows.epochs.push(epoch(of_lane[0]));
            rows.counts.push(i32::try_from(of_lane.len()).unwrap_or(i32::MAX));
            for place in of_lane {
                rows.seqs.push(place.seq);
                rows.ids.push(place.id.uuid());
                rows.spots.push(Tid::from_spot(place.spot));
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
            (&self.spots, Type::TID_ARRAY),
        ]
    }
}

/// Rows by place and id.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    lanes: Vec<i16>,
    seqs: Vec<i64>,
    ids: Vec<Uuid>,
    /// The leg of each, as far as the statement takes one.
    legs: Vec<&'a str>,
}

impl<'a> Rows<'a> {
    /// Rows with the legs that they have.
    pub(super) fn of(places: &[&'a Place]) -> Self {
        let mut rows = Self::default();
        for place in places {
            rows.push(place, place.leg.as_deref().unwrap_or_default());
        }
        rows
    }

    /// Rows with the legs that they get.
    fn for_legs(steps: impl Iterator<Item = (&'a Place, &'a str)>) -> Self {
        let mut rows = Self::default();
        for (place, leg) in steps {
            rows.push(place, leg);
        }
        rows
    }

    fn push(&mut self, place: &Place, leg: &'a str) {
        self.lanes.push(smallint(place.lane));
        self.seqs.push(place.seq);
        self.ids.push(place.id.uuid());
        self.legs.push(leg);
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

    /// Lanes, seqs, ids, legs.
    pub(super) fn params_with_legs(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.legs, Type::TEXT_ARRAY));
        params
    }
}

/// Copies to be kept.
#[derive(Debug, Default)]
pub(super) struct Kept<'a> {
    rows: Rows<'a>,
    /// The legs that confirmed them; none where the statement goes by the leg of the row.
    confirmed: Vec<&'a str>,
}

impl<'a> Kept<'a> {
    /// Legs of rows that have others, too.
    pub(super) fn legs(steps: &[KeepStep<'a>]) -> Self {
        Self {
            rows: Rows::of(&steps.iter().map(|step| step.place).collect::<Vec<_>>()),
            confirmed: steps.iter().map(|step| step.leg).collect(),
        }
    }

    /// Whole rows.
    pub(super) fn rows(places: &[&'a Place]) -> Self {
        Self {
            rows: Rows::of(places),
            confirmed: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Of ready rows: lanes, seqs, ids, confirmed legs.
    pub(super) fn ready_params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params();
        params.push((&self.confirmed, Type::TEXT_ARRAY));
        params
    }

    /// Of waiting rows: lanes, seqs, ids, legs, confirmed legs.
    pub(super) fn waiting_params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params_with_legs();
        params.push((&self.confirmed, Type::TEXT_ARRAY));
        params
    }
}

/// Legs that wait.
#[derive(Debug, Default)]
pub(super) struct Waits<'a> {
    rows: Rows<'a>,
    states: Vec<&'static str>,
    delays: Vec<i64>,
    charged: Vec<bool>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Waits<'a> {
    pub(super) fn new(steps: &'a [WaitStep<'a>]) -> Self {
        Self {
            rows: Rows::for_legs(steps.iter().map(|step| (step.place, step.leg))),
            states: steps.iter().map(WaitStep::state_word).collect(),
            delays: steps.iter().map(|step| micros(step.delay)).collect(),
            charged: steps.iter().map(|step| step.charged).collect(),
            errors: steps.iter().map(|step| step.error.as_deref()).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.rows.params_with_legs();
        params.push((&self.states, Type::TEXT_ARRAY));
        params.push((&self.delays, Type::INT8_ARRAY));
        params.push((&self.charged, Type::BOOL_ARRAY));
        params.push((&self.errors, Type::TEXT_ARRAY));
        params
    }
}

/// Legs that die.
#[derive(Debug, Default)]
pub(super) struct Deaths<'a> {
    rows: Rows<'a>,
    legs: Vec<&'a str>,
    reasons: Vec<&'static str>,
    errors: Vec<&'a Cow<'a, str>>,
    charged: Vec<bool>,
    blocks: Vec<bool>,
}

impl<'a> Deaths<'a> {
    pub(super) fn new(steps: &'a [DeathStep<'a>]) -> Self {
        Self {
            rows: Rows::of(&steps.iter().map(|step| step.place).collect::<Vec<_>>()),
            legs: steps.iter().map(|step| step.leg).collect(),
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
        let mut params = self.rows.params_with_legs();
        params.push((&self.legs, Type::TEXT_ARRAY));
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
    legs: Vec<&'a str>,
    seqs: Vec<i64>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(planned: &PlannedKeys<'a>) -> Self {
        let mut keys = Self::default();
        for ((lane, key, leg), seq) in planned {
            keys.lanes.push(smallint(*lane));
            keys.keys.push(key);
            keys.legs.push(leg);
            keys.seqs.push(*seq);
        }
        keys
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Lanes, keys, legs.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.lanes, Type::INT2_ARRAY),
            (&self.keys, Type::TEXT_ARRAY),
            (&self.legs, Type::TEXT_ARRAY),
        ]
    }

    /// Lanes, keys, legs, seqs.
    pub(super) fn params_with_seq(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.seqs, Type::INT8_ARRAY));
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::Room;

    #[test]
    fn delivered_rows_come_lane_after_lane_with_their_ids() {
        let place = |lane, seq: i64| Place {
            room: Room::Ready,
            lane,
            seq,
            id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
            leg: None,
            spot: 0,
        };
        let places = [place(9, 3), place(3, 1), place(3, 2)];
        let rows = Delivered::new(&places.iter().collect::<Vec<_>>(), |place| i64::from(place.lane) * 10);
        assert_eq!(
            (rows.lanes, rows.epochs, rows.counts),
            (vec![3, 9], vec![30, 90], vec![2, 1])
        );
        assert_eq!(rows.seqs, [1, 2, 3]);
        assert_eq!(rows.ids, [1, 2, 3].map(Uuid::from_u128));
    }
}
