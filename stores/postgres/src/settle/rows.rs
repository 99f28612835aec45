//! Lists of rows as the settling statements take them: one array a column.

use std::borrow::Cow;

use sendoff::Uuid;
use sendoff::store::{DeadReason, Lane, RetryState};
use tokio_postgres::types::Type;

use crate::decode::smallint;
use crate::pipeline::Param;
use crate::tid::Tid;

/// The longest error that is kept, in characters.
const LONGEST_ERROR: usize = 2000;

/// Ready rows that are done, lane after lane.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    pub(super) lanes: Vec<i16>,
    pub(super) epochs: Vec<i64>,
    pub(super) counts: Vec<i32>,
    pub(super) seqs: Vec<i64>,
    pub(super) spots: Vec<Tid>,
}

impl Delivered {
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
            (&self.spots, Type::TID_ARRAY),
        ]
    }

    /// The rows by their place.
    pub(super) fn places(&self) -> Places<'static> {
        let lanes = self.lanes.iter().zip(&self.counts);
        let lanes = lanes.flat_map(|(lane, count)| std::iter::repeat_n(*lane, count.unsigned_abs() as usize));
        Places {
            lanes: lanes.collect(),
            seqs: self.seqs.clone(),
            legs: Vec::new(),
        }
    }
}

/// Rows by their place.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    lanes: Vec<i16>,
    seqs: Vec<i64>,
    legs: Vec<&'a str>,
}

impl<'a> Places<'a> {
    pub(super) fn push(&mut self, lane: Lane, seq: i64, leg: &'a str) {
        self.lanes.push(smallint(lane));
        self.seqs.push(seq);
        self.legs.push(leg);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }

    /// Lanes, seqs, legs.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.ready_params();
        params.push((&self.legs, Type::TEXT_ARRAY));
        params
    }

    /// Lanes, seqs, legs, and what else there is for each row.
    pub(super) fn params_with<'p>(&'p self, legs: &'p Vec<&'a str>) -> Vec<Param<'p>> {
        let mut params = self.params();
        params.push((legs, Type::TEXT_ARRAY));
        params
    }

    /// Lanes, seqs: ready rows have no leg.
    pub(super) fn ready_params(&self) -> Vec<Param<'_>> {
        vec![(&self.lanes, Type::INT2_ARRAY), (&self.seqs, Type::INT8_ARRAY)]
    }
}

/// Confirmed legs of rows that have others.
#[derive(Debug, Default)]
pub(super) struct Confirmed<'a> {
    places: Places<'a>,
    legs: Vec<&'a str>,
}

impl<'a> Confirmed<'a> {
    /// A leg of a waiting row that had not been routed.
    pub(super) fn push(&mut self, lane: Lane, seq: i64, leg: &'a str) {
        self.places.push(lane, seq, "");
        self.legs.push(leg);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Lanes, seqs, legs of the rows, legs.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.places.params_with(&self.legs)
    }
}

/// Legs that wait.
#[derive(Debug, Default)]
pub(super) struct Waits<'a> {
    places: Places<'a>,
    states: Vec<&'static str>,
    delays: Vec<i64>,
    charged: Vec<bool>,
    errors: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Waits<'a> {
    pub(super) fn push(
        &mut self,
        place: (Lane, i64, &'a str),
        state: RetryState,
        delay: i64,
        charged: bool,
        error: &'a str,
    ) {
        self.places.push(place.0, place.1, place.2);
        self.states.push(state.as_str());
        self.delays.push(delay);
        self.charged.push(charged);
        self.errors.push(Some(fit(error)));
    }

    pub(super) fn push_held(&mut self, place: (Lane, i64, &'a str)) {
        self.places.push(place.0, place.1, place.2);
        self.states.push("held");
        self.delays.push(0);
        self.charged.push(false);
        self.errors.push(None);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.places.params();
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
    places: Places<'a>,
    legs: Vec<&'a str>,
    reasons: Vec<&'static str>,
    errors: Vec<Cow<'a, str>>,
    charged: Vec<bool>,
    blocks: Vec<bool>,
}

impl<'a> Deaths<'a> {
    /// `place` is where the row is, `leg` the one that dies.
    pub(super) fn push(
        &mut self,
        place: (Lane, i64, &'a str),
        leg: &'a str,
        (reason, error): (DeadReason, &'a str),
        charged: bool,
        blocks: bool,
    ) {
        self.places.push(place.0, place.1, place.2);
        self.legs.push(leg);
        self.reasons.push(reason.as_str());
        self.errors.push(fit(error));
        self.charged.push(charged);
        self.blocks.push(blocks);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params = self.places.params();
        params.push((&self.legs, Type::TEXT_ARRAY));
        params.push((&self.reasons, Type::TEXT_ARRAY));
        params.push((&self.errors, Type::TEXT_ARRAY));
        params.push((&self.charged, Type::BOOL_ARRAY));
        params.push((&self.blocks, Type::BOOL_ARRAY));
        params
    }
}

/// An error that the database can keep: without NUL, which its text cannot hold, and not too long.
fn fit(error: &str) -> Cow<'_, str> {
    if error.contains('\0') {
        return Cow::Owned(error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect());
    }
    let end = error
        .char_indices()
        .nth(LONGEST_ERROR)
        .map_or(error.len(), |(at, _)| at);
    Cow::Borrowed(&error[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_cut_at_a_character_and_loses_its_nuls() {
        assert_eq!(fit("a\0b"), "ab");
        assert_eq!(fit(&"é".repeat(3000)).chars().count(), LONGEST_ERROR);
        assert_eq!(fit("short"), "short");
    }

    #[test]
    fn every_delivered_row_has_its_lane() {
        let delivered = Delivered {
            lanes: vec![3, 9],
            epochs: vec![1, 1],
            counts: vec![2, 1],
            seqs: vec![1, 2, 3],
            spots: Vec::new(),
        };
        let places = delivered.places();
        assert_eq!((places.lanes, places.seqs), (vec![3, 3, 9], vec![1, 2, 3]));
    }
}
