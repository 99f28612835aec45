//! The steps of a plan as parameters of statements: one JSON array per row, texts in hexadecimal.

use sendoff::store::{DeathStep, KeepStep, PlannedKeys, RowRef, WaitStep};
use serde_json::{Value, json};

use crate::decode::{hex, id_hex, micros};

pub(super) type Rows = Vec<Value>;

/// Lane, seq, delivery, id.
pub(super) fn row_refs(row_refs: &[&RowRef]) -> Rows {
    row_refs
        .iter()
        .map(|row_ref| row_ref_of(row_ref, row_ref.sink.as_deref().unwrap_or_default()).into())
        .collect()
}

/// Lane, seq, the delivery it waits for, id.
pub(super) fn held<'a, 'b: 'a>(steps: impl Iterator<Item = &'a WaitStep<'b>>) -> Rows {
    steps.map(|step| row_ref_of(step.row_ref, step.sink).into()).collect()
}

/// Lane, seq, delivery, id, the sinks that confirmed it as a JSON array.
pub(super) fn copies(steps: &[KeepStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| with(step.row_ref, [hex(&step.sinks_json()).into()]))
        .collect()
}

/// Lane, seq, the delivery it had, id, the delivery it waits for, state, delay, whether charged, error, the attempts it had.
pub(super) fn waits(steps: &[WaitStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| {
            let rest = [
                hex(step.sink).into(),
                step.state_word().into(),
                micros(step.delay).into(),
                i32::from(step.charged).into(),
                step.error.as_deref().map(hex).into(),
                step.attempts.into(),
            ];
            with(step.row_ref, rest)
        })
        .collect()
}

/// Lane, seq, the delivery it had, id, the delivery it dies at, reason, error, whether charged, whether it blocks.
pub(super) fn deaths(steps: &[DeathStep<'_>]) -> Rows {
    steps
        .iter()
        .map(|step| {
            let rest = [
                hex(step.sink).into(),
                step.reason.as_str().into(),
                hex(&step.error).into(),
                i32::from(step.charged).into(),
                i32::from(step.blocks).into(),
            ];
            with(step.row_ref, rest)
        })
        .collect()
}

/// Lane, key, delivery, seq.
pub(super) fn keys(keys: &PlannedKeys<'_>) -> Rows {
    keys.iter()
        .map(|((lane, key, sink), seq)| json!([lane, hex(key), hex(sink), seq]))
        .collect()
}

fn row_ref_of(row_ref: &RowRef, sink: &str) -> Vec<Value> {
    vec![
        row_ref.lane.into(),
        row_ref.seq.into(),
        hex(sink).into(),
        id_hex(&row_ref.id).into(),
    ]
}

fn with<const N: usize>(row_ref: &RowRef, rest: [Value; N]) -> Value {
    let mut row = row_ref_of(row_ref, row_ref.sink.as_deref().unwrap_or_default());
    row.extend(rest);
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::{RowId, Table};

    #[test]
    fn a_row_is_named_by_the_id_as_its_table_has_it() {
        let row_ref = RowRef {
            table: Table::Waiting,
            lane: 3,
            seq: 7,
            id: RowId::from_text(b"Seven "),
            sink: Some("a".into()),
            locator: 0,
        };
        assert_eq!(row_refs(&[&row_ref]), [json!([3, 7, "61", "536576656E20"])]);
        let kept = KeepStep {
            row_ref: &row_ref,
            sinks: vec!["b"],
        };
        assert_eq!(copies(&[kept]), [json!([3, 7, "61", "536576656E20", "5B2262225D"])]);
    }
}
