//! Reading messages for delivery.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use rustc_hash::FxHashMap;

use super::{Lane, LaneGrant, Outgoing, RowId, RowRef, Table};
use crate::Result;

/// A relay's request for its next read.
#[derive(Debug)]
pub struct ReadRequest {
    /// About how many rows to read.
    pub limit: usize,
    /// The most bytes of contents to read, as [`Outgoing::bytes`] counts them. A row is added while the rows before it
    /// have fewer bytes, so that at most the last row exceeds the limit. A [`Budget`] counts them.
    pub bytes: usize,
    /// Rows whose settlement was committed since the last read, so they are no longer in their table.
    pub settled: Vec<RowRef>,
    /// Rows that were read before, are still in their table, and are to be read again.
    pub forgotten: Vec<RowRef>,
    /// Sinks that are down, paused or busy: the reader returns no rows of the waiting table for them.
    pub skip_sinks: Vec<String>,
    /// Whether to read the waiting table.
    pub due: bool,
    /// Whether to read the ready table.
    pub ready: bool,
}

/// A request that reads neither table, without a limit of bytes.
impl Default for ReadRequest {
    fn default() -> Self {
        Self {
            limit: 0,
            bytes: usize::MAX,
            settled: Vec::new(),
            forgotten: Vec::new(),
            skip_sinks: Vec::new(),
            due: false,
            ready: false,
        }
    }
}

/// The number of bytes that a read may still return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(usize);

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Whether the budget is used up, so that no further row may be added.
    pub fn is_spent(self) -> bool {
        self.0 == 0
    }

    /// The remaining bytes.
    pub fn left(self) -> usize {
        self.0
    }

    /// Subtracts bytes from the budget.
    pub fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// A row that was read.
#[derive(Debug)]
pub enum Row {
    /// A message to deliver.
    Message(Arc<Outgoing>),
    /// A message whose `expires_at` has passed by the database's clock.
    Expired(Arc<Outgoing>),
    /// A row that is not a valid message; another program may have written it.
    Unreadable {
        /// The invalid row.
        row_ref: RowRef,
        /// Why the row is invalid, without its contents.
        why: String,
    },
}

impl Row {
    /// The row ref of the row.
    pub fn row_ref(&self) -> &RowRef {
        match self {
            Self::Message(outgoing) | Self::Expired(outgoing) => &outgoing.row_ref,
            Self::Unreadable { row_ref, .. } => row_ref,
        }
    }

    /// The size of the row's contents in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(outgoing) | Self::Expired(outgoing) => outgoing.bytes(),
            Self::Unreadable { why, .. } => why.len(),
        }
    }
}

/// The result of a read.
#[derive(Debug, Default)]
pub struct Page {
    /// The rows that were read. Rows of the ready table are in the order of `seq` within a lane; rows of the waiting
    /// table are in the order of their due times.
    pub rows: Vec<Row>,
    /// Whether there are more rows to read immediately.
    pub more: bool,
    /// Whether the history of the database has changed since the previous read. Then there are no rows: earlier rows
    /// belong to the old history, so the relay drops them and leases its lanes again.
    pub history_changed: bool,
}

/// Reads the lanes of one relay. It remembers how far it has read, so each relay has its own.
///
/// # Duties
/// - Every committed row of a lane it was [given](Reader::gained) is returned eventually, however late its transaction
///   commits.
/// - A row is returned once, until it is in [`ReadRequest::forgotten`].
/// - Rows of one key come in commit order: once a row was returned, no later read returns one of the same key whose
///   transaction had committed before the first one's began.
/// - No transaction stays open after [`read`](Reader::read) returns.
/// - A read takes at most [`ReadRequest::bytes`] plus one row from the database, whatever is in the rows. Large rows of
///   other lanes never starve a lane.
#[async_trait]
pub trait Reader: Send {
    /// Starts to read these lanes, each from its first row.
    fn gained(&mut self, grants: &[LaneGrant]);

    /// Stops reading these lanes.
    fn lost(&mut self, lanes: &[Lane]);

    /// Reads the next rows.
    ///
    /// # Errors
    /// Errors of the database. The reader stays usable; nothing was returned, so nothing is lost.
    async fn read(&mut self, request: ReadRequest) -> Result<Page>;
}

/// The rows that a [`Reader`] has returned and that are still in their tables.
///
/// For writers of stores: [`InFlight::begin`] at the start of a read, then [`InFlight::take`] for every row found. A
/// settlement that commits during a read may have left its row in that read's snapshot, so the row is dropped from here
/// only at the start of the next read.
#[derive(Debug, Default)]
pub struct InFlight {
    /// The ids of ready rows, by lane and number. Nearly all rows are ready.
    ready: FxHashMap<Lane, FxHashMap<i64, RowId>>,
    waiting: HashSet<RowRef>,
}

impl InFlight {
    /// Drops rows that were settled or forgotten since the last read.
    pub fn begin(&mut self, request: &ReadRequest) {
        for row_ref in request.settled.iter().chain(&request.forgotten) {
            match row_ref.table {
                Table::Ready => {
                    if let Some(lane) = self.ready.get_mut(&row_ref.lane)
                        && lane.get(&row_ref.seq) == Some(&row_ref.id)
                    {
                        lane.remove(&row_ref.seq);
                    }
                }
                Table::Waiting => {
                    self.waiting.remove(row_ref);
                }
            }
        }
    }

    /// Whether this row is new. A new row is in flight from now on, and the read returns it. A row with the same number
    /// and another id is new.
    pub fn take(&mut self, row_ref: &RowRef) -> bool {
        match row_ref.table {
            Table::Ready => {
                let before = self
                    .ready
                    .entry(row_ref.lane)
                    .or_default()
                    .insert(row_ref.seq, row_ref.id.clone());
                before.as_ref() != Some(&row_ref.id)
            }
            Table::Waiting => !self.waiting.contains(row_ref) && self.waiting.insert(row_ref.clone()),
        }
    }

    /// Whether this row is in flight.
    pub fn contains(&self, row_ref: &RowRef) -> bool {
        match row_ref.table {
            Table::Ready => self.ready.get(&row_ref.lane).and_then(|lane| lane.get(&row_ref.seq)) == Some(&row_ref.id),
            Table::Waiting => self.waiting.contains(row_ref),
        }
    }

    /// Removes a lane and its rows.
    pub fn drop_lane(&mut self, lane: Lane) {
        self.ready.remove(&lane);
        self.waiting.retain(|row_ref| row_ref.lane != lane);
    }

    /// The number of rows in flight.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.ready.values().map(FxHashMap::len).sum::<usize>()
    }

    /// Whether no row is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_row_ref_is_taken_once_until_it_is_settled_or_forgotten() {
        let row_ref = |seq| RowRef {
            table: Table::Ready,
            lane: 1,
            seq,
            id: Uuid::from_u128(7).into(),
            sink: None,
            locator: 0,
        };
        let mut hand = InFlight::default();
        assert!(hand.take(&row_ref(1)) && !hand.take(&row_ref(1)));
        hand.begin(&ReadRequest {
            forgotten: vec![row_ref(1)],
            ..ReadRequest::default()
        });
        assert!(hand.take(&row_ref(1)));
        let other = RowRef {
            id: Uuid::from_u128(8).into(),
            ..row_ref(1)
        };
        assert!(
            hand.take(&other) && !hand.take(&other),
            "another message has the number"
        );
        hand.begin(&ReadRequest {
            settled: vec![row_ref(1)],
            ..ReadRequest::default()
        });
        assert!(!hand.take(&other), "what was settled is not this one");
        hand.drop_lane(1);
        assert!(hand.is_empty());
    }
}
