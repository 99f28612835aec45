//! Settles ready rows that every sink confirmed, which is the case for nearly all messages.
//!
//! These rows are close to each other, so one pass over the table deletes many of them, by their numbers. Before, in
//! the same transaction, a pass over the same pages checks that the numbers still belong to the same messages. If one
//! does not, the rows are deleted one by one.

use rusqlite::{CachedStatement, Row, params};
use sendoff::store::{RowId, RowRef};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::Settling;
use super::run::{Run, runs};

impl Settling<'_> {
    pub(super) fn delivered(&self, delivered: &Delivered<'_>) -> rusqlite::Result<()> {
        for row_ref in &delivered.others {
            self.remove_ready(row_ref)?;
        }
        let (mut rest, mut ids) = (&delivered.usual[..], &delivered.ids[..]);
        for run in &delivered.runs {
            let (rows, behind) = rest.split_at(run.rows);
            let (expected, behind_them) = ids.split_at(run.rows * ID_WIDTH);
            (rest, ids) = (behind, behind_them);
            if self.are_there(run, expected)? {
                self.delete(run)?;
            } else {
                rows.iter().try_for_each(|(_, _, row_ref)| self.remove_ready(row_ref))?;
            }
        }
        Ok(())
    }

    /// Whether all rows of a run are there, with their ids. All of them are one value: to fetch each would take twice as long,
    /// and so would a comparison by the statement that deletes them, a function call a row.
    fn are_there(&self, run: &Run, expected: &[u8]) -> rusqlite::Result<bool> {
        let is_it = |row: &Row<'_>| Ok(row.get_ref(0)?.as_bytes_or_null()? == Some(without_end(expected)));
        match run.mask {
            None => self.prepared(0)?.query_row(params![run.first, run.last], is_it),
            Some(mask) => self.prepared(2)?.query_row(params![run.first, run.last, mask], is_it),
        }
    }

    fn delete(&self, run: &Run) -> rusqlite::Result<usize> {
        match run.mask {
            None => self.prepared(1)?.execute(params![run.first, run.last]),
            Some(mask) => self.prepared(3)?.execute(params![run.first, run.last, mask]),
        }
    }

    fn prepared(&self, index: usize) -> rusqlite::Result<CachedStatement<'_>> {
        self.tx.prepare_cached(self.sql.settle_delivered.at(index))
    }
}

/// How much room an id takes among [`Delivered::ids`].
const ID_WIDTH: usize = Hyphenated::LENGTH + 1;

/// The ids without the comma behind the last one.
fn without_end(ids: &[u8]) -> &[u8] {
    ids.strip_suffix(b",").unwrap_or(ids)
}

/// A row whose id is a UUID, written as usual.
type Usual<'a> = (i64, Uuid, &'a RowRef);

/// Rows that every sink confirmed, as they are deleted.
pub(super) struct Delivered<'a> {
    /// Those with ids that are written as usual, in the order of their numbers, each number once.
    usual: Vec<Usual<'a>>,
    /// The same by their numbers.
    runs: Vec<Run>,
    /// Their ids as they are written, a comma behind each.
    ids: Vec<u8>,
    others: Vec<&'a RowRef>,
}

impl<'a> Delivered<'a> {
    pub(super) fn of(row_refs: &[&'a RowRef]) -> Self {
        let (usual, others) = sorted(row_refs);
        let runs = runs(usual.iter().map(|(seq, ..)| *seq));
        let mut ids = Vec::with_capacity(usual.len() * ID_WIDTH);
        for (_, id, _) in &usual {
            ids.extend_from_slice(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
            ids.push(b',');
        }
        Self {
            usual,
            runs,
            ids,
            others,
        }
    }
}

fn sorted<'a>(row_refs: &[&'a RowRef]) -> (Vec<Usual<'a>>, Vec<&'a RowRef>) {
    let (mut usual, mut others) = (Vec::with_capacity(row_refs.len()), Vec::new());
    for row_ref in row_refs {
        match &row_ref.id {
            RowId::Uuid(id) => usual.push((row_ref.seq, *id, *row_ref)),
            RowId::Text(_) => others.push(*row_ref),
        }
    }
    usual.sort_unstable_by_key(|(seq, ..)| *seq);
    usual.dedup_by(|(seq, _, row_ref), (before, ..)| {
        let is_repeated = seq == before;
        if is_repeated {
            others.push(*row_ref);
        }
        is_repeated
    });
    (usual, others)
}
