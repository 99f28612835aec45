//! Steps of a plan as statements take them: one JSON array a row, texts in hexadecimal.

use sendoff::store::{DeathStep, KeepStep, Place, PlannedKeys, WaitStep};
use serde_json::{Value, json};

use crate::decode::{hex, id_hex, micros};

pub(super) type Rows = Vec<Value>;

/// Lane, seq, leg, id.
pub(super) fn places(places: &[&Place]) -> Rows {
    places
        .iter()
        .map(|place| place_of(place, place.leg.as_deref().unwrap_or_default()).into())
        .collect()
}

/// Lane, seq, the leg it waits for, id.
pub(super) fn held<'a, 'b: 'a>(steps: impl Iterator<Item = &'a WaitStep<'b>>) -> Rows {
    steps.map(|step| place_of(step.place, step.leg).into()).collect()
}

/// Lane, seq, leg, id, the leg that was confirmed.
pub(super) fn copies(steps: &[KeepStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| with(step.place, [hex(step.leg).into()]))
        .collect()
}

/// The same of whole rows: ready ones have no leg, waiting ones their own.
pub(super) fn whole_copies(places: &[&Place]) -> Rows {
    let copy = |place: &&Place| with(place, [hex(place.leg.as_deref().unwrap_or_default()).into()]);
    places.iter().map(copy).collect()
}

/// Lane, seq, the leg it had, id, the leg it waits for, state, delay, whether charged, error.
pub(super) fn waits(steps: &[WaitStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| {
            let rest = [
                hex(step.leg).into(),
                step.state_word().into(),
                micros(step.delay).into(),
                i32::from(step.charged).into(),
                step.error.as_deref().map(hex).into(),
            ];
            with(step.place, rest)
        })
        .collect()
}

/// Lane, seq, the leg it had, id, the leg it dies at, reason, error, whether charged, whether it blocks.
pub(super) fn deaths(steps: &[DeathStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| {
            let rest = [
                hex(step.leg).into(),
                step.reason.as_str().into(),
                hex(&step.error).into(),
                i32::from(step.charged).into(),
                i32::from(step.blocks).into(),
            ];
            with(step.place, rest)
        })
        .collect()
}

/// Lane, key, leg, seq.
pub(super) fn keys(keys: &PlannedKeys<'_>) -> Rows {
    keys.iter()
        .map(|((lane, key, leg), seq)| json!([lane, hex(key), hex(leg), seq]))
        .collect()
}

fn place_of(place: &Place, leg: &str) -> Vec<Value> {
    vec![
        place.lane.into(),
        place.seq.into(),
        hex(leg).into(),
        id_hex(&place.id).into(),
    ]
}

fn with<const N: usize>(place: &Place, rest: [Value; N]) -> Value {
    let mut row = place_of(place, place.leg.as_deref().unwrap_or_default());
    row.extend(rest);
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::{Room, RowId};

    #[test]
    fn a_row_is_named_by_the_id_as_its_table_has_it() {
        let place = Place {
            room: Room::Waiting,
            lane: 3,
            seq: 7,
            id: RowId::from_text(b"Seven "),
            leg: Some("a".into()),
            spot: 0,
        };
        assert_eq!(places(&[&place]), [json!([3, 7, "61", "536576656E20"])]);
        let kept = KeepStep {
            place: &place,
            leg: "b",
        };
        assert_eq!(copies(&[kept]), [json!([3, 7, "61", "536576656E20", "62"])]);
        assert_eq!(whole_copies(&[&place]), [json!([3, 7, "61", "536576656E20", "61"])]);
    }
}
