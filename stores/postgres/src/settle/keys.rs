//! Keys whose followers have to be looked at.

use std::collections::BTreeMap;

use sendoff::store::Lane;
use tokio_postgres::types::Type;

use crate::decode::smallint;
use crate::pipeline::Param;

/// Keys by lane and leg, each once, with the lowest `seq` that it was named with.
#[derive(Debug, Default)]
pub(super) struct Keys<'a>(BTreeMap<(Lane, &'a str, &'a str), i64>);

/// The same, one array a column.
#[derive(Debug, Default)]
pub(super) struct KeyColumns<'a> {
    lanes: Vec<i16>,
    keys: Vec<&'a str>,
    legs: Vec<&'a str>,
    seqs: Vec<i64>,
}

impl<'a> Keys<'a> {
    pub(super) fn push(&mut self, lane: Lane, key: &'a str, leg: &'a str, seq: i64) {
        let lowest = self.0.entry((lane, key, leg)).or_insert(seq);
        *lowest = seq.min(*lowest);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn columns(&self) -> KeyColumns<'a> {
        let mut columns = KeyColumns::default();
        for ((lane, key, leg), seq) in &self.0 {
            columns.lanes.push(smallint(*lane));
            columns.keys.push(key);
            columns.legs.push(leg);
            columns.seqs.push(*seq);
        }
        columns
    }
}

impl KeyColumns<'_> {
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
