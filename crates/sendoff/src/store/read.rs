//! Reading what is to be delivered.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use rustc_hash::FxHashMap;

use super::{Delivery, Lane, LaneGrant, Place, Room, RowId};
use crate::Result;

/// What a relay wants from its next read.
#[derive(Debug)]
pub struct ReadRequest {
    /// About how many rows.
    pub limit: usize,
    /// How many bytes of contents, as [`Delivery::bytes`] counts them: a row is added as long as those before it have fewer. So
    /// it is never exceeded by more than the last row. A [`Budget`] counts.
    pub bytes: usize,
    /// Places whose settlement has committed since the last read: their rows are gone.
    pub settled: Vec<Place>,
    /// Places that were read, are still in their table, and are to be read again: forget that they were read.
    pub forgotten: Vec<Place>,
    /// Sinks for which nothing is to be read from the waiting table, because they are down, paused or busy.
    pub skip_legs: Vec<String>,
    /// Whether to look at the waiting table, too.
    pub due: bool,
    /// Whether to look at the ready table.
    pub ready: bool,
}

/// No rows, of neither table, and no limit of bytes.
impl Default for ReadRequest {
    fn default() -> Self {
        Self {
            limit: 0,
            bytes: usize::MAX,
            settled: Vec::new(),
            forgotten: Vec::new(),
            skip_legs: Vec::new(),
            due: false,
            ready: false,
        }
    }
}

/// What is left of the bytes that a read may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(usize);

impl Budget {
    /// So many.
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Whether no further row may be added.
    pub fn is_spent(self) -> bool {
        self.0 == 0
    }

    /// How much is left.
    pub fn left(self) -> usize {
        self.0
    }

    /// Takes so many off.
    pub fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// A row that was read.
#[derive(Debug)]
pub enum Row {
    /// A message to deliver.
    Message(Arc<Delivery>),
    /// A message whose `expires_at` has passed by the database's clock.
    Expired(Arc<Delivery>),
    /// A row that is no message, as another program may have written it.
    Unreadable {
        /// Where it is.
        place: Place,
        /// What is wrong with it, without its contents.
        why: String,
    },
}

impl Row {
    /// Where it is.
    pub fn place(&self) -> &Place {
        match self {
            Self::Message(delivery) | Self::Expired(delivery) => &delivery.place,
            Self::Unreadable { place, .. } => place,
        }
    }

    /// How many bytes its contents have in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(delivery) | Self::Expired(delivery) => delivery.bytes(),
            Self::Unreadable { why, .. } => why.len(),
        }
    }
}

/// What a read found.
#[derive(Debug, Default)]
pub struct Page {
    /// The rows: of the ready table in the order of `seq` within a lane, of the waiting table in the order they fell due.
    pub rows: Vec<Row>,
    /// Whether there is more to read at once.
    pub more: bool,
    /// Whether the database has another history than at the read before. Then there are no rows: what was read before is
    /// of the other one, so the relay puts it down and leases its lanes anew.
    pub history_changed: bool,
}

/// Reads the lanes of one relay. It remembers how far it has read, so there is one a relay.
///
/// # Duties
/// - Every committed row of a lane it was [given](Reader::gained) is returned eventually, however late its transaction
///   commits.
/// - A row is returned once, until its place comes back in [`ReadRequest::forgotten`].
/// - Rows of one key come in commit order: once a row was returned, no later read returns one of the same key whose
///   transaction had committed before the first one's began.
/// - No transaction stays open after [`read`](Reader::read) returns.
/// - No more than [`ReadRequest::bytes`] and one row leave the database for a read, whatever is in the rows; and no lane is kept
///   waiting for ever because the rows of others are large.
#[async_trait]
pub trait Reader: Send {
    /// These lanes are read from now on, from their beginning.
    fn gained(&mut self, grants: &[LaneGrant]);

    /// These lanes are not read any more.
    fn lost(&mut self, lanes: &[Lane]);

    /// Reads on.
    ///
    /// # Errors
    /// What the database says. The reader stays usable; nothing was returned, so nothing is lost.
    async fn read(&mut self, request: ReadRequest) -> Result<Page>;
}

/// The places that a [`Reader`] has returned and that are still in their tables.
///
/// For writers of stores: [`InHand::begin`] at the start of a read, then [`InHand::take`] for every row found.
/// A settlement that commits while a read is under way may have left its row in that read's snapshot, so its place is
/// dropped from here only at the beginning of the next read.
#[derive(Debug, Default)]
pub struct InHand {
    /// Nearly all are ready: their numbers, lane by lane, and whose they are.
    ready: FxHashMap<Lane, FxHashMap<i64, RowId>>,
    waiting: HashSet<Place>,
}

impl InHand {
    /// Takes note of what was settled and forgotten since the last read.
    pub fn begin(&mut self, request: &ReadRequest) {
        for place in request.settled.iter().chain(&request.forgotten) {
            match place.room {
                Room::Ready => {
                    if let Some(lane) = self.ready.get_mut(&place.lane)
                        && lane.get(&place.seq) == Some(&place.id)
                    {
                        lane.remove(&place.seq);
                    }
                }
                Room::Waiting => {
                    self.waiting.remove(place);
                }
            }
        }
    }

    /// Whether this place is new: then it is in hand from now on and is to be returned. Another message under the same
    /// number is new.
    pub fn take(&mut self, place: &Place) -> bool {
        match place.room {
            Room::Ready => {
                let before = self
                    .ready
                    .entry(place.lane)
                    .or_default()
                    .insert(place.seq, place.id.clone());
                before.as_ref() != Some(&place.id)
            }
            Room::Waiting => !self.waiting.contains(place) && self.waiting.insert(place.clone()),
        }
    }

    /// Whether this place is in hand.
    pub fn contains(&self, place: &Place) -> bool {
        match place.room {
            Room::Ready => self.ready.get(&place.lane).and_then(|lane| lane.get(&place.seq)) == Some(&place.id),
            Room::Waiting => self.waiting.contains(place),
        }
    }

    /// Drops a lane.
    pub fn drop_lane(&mut self, lane: Lane) {
        self.ready.remove(&lane);
        self.waiting.retain(|place| place.lane != lane);
    }

    /// How many places are in hand.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.ready.values().map(FxHashMap::len).sum::<usize>()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_place_is_taken_once_until_it_is_settled_or_forgotten() {
        let place = |seq| Place {
            room: Room::Ready,
            lane: 1,
            seq,
            id: Uuid::from_u128(7).into(),
            leg: None,
            spot: 0,
        };
        let mut hand = InHand::default();
        assert!(hand.take(&place(1)) && !hand.take(&place(1)));
        hand.begin(&ReadRequest {
            forgotten: vec![place(1)],
            ..ReadRequest::default()
        });
        assert!(hand.take(&place(1)));
        let other = Place {
            id: Uuid::from_u128(8).into(),
            ..place(1)
        };
        assert!(
            hand.take(&other) && !hand.take(&other),
            "another message has the number"
        );
        hand.begin(&ReadRequest {
            settled: vec![place(1)],
            ..ReadRequest::default()
        });
        assert!(!hand.take(&other), "what was settled is not this one");
        hand.drop_lane(1);
        assert!(hand.is_empty());
    }
}
