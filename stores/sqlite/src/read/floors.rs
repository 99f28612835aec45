//! How far each lane has been read.
//!
//! Why a floor without any lag is safe: SQLite has one writer at a time. A transaction that inserts gets numbers above
//! `sqlite_sequence`, which it changes itself and which commits and rolls back with it, so transactions commit in the
//! order of their numbers. Whoever has read the head H in some snapshot sees every row up to H in that and in all later
//! snapshots, and whatever commits later is above H. So nothing can appear below a floor, with one exception: a person who
//! inserts rows with numbers of their own. For these there is the sweep. A file that was restored has another history: then
//! all lanes are read from their beginning.

use std::ops::Range;

use sendoff::store::Lane;

use crate::store::LANES;

/// Lanes of one kind, which are read by one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// By key or id.
    Normal,
    /// Without a key, with a priority above 0.
    Urgent,
    /// Without a key, with a priority below 0.
    Idle,
}

impl Class {
    pub(super) fn lanes(self) -> Range<Lane> {
        match self {
            Self::Normal => 0..64,
            Self::Urgent => 64..72,
            Self::Idle => 72..80,
        }
    }
}

/// A stretch of the table that some lanes of a class have not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    class: Class,
    /// Read above this.
    pub(super) floor: i64,
    /// And up to this.
    pub(super) ceiling: i64,
    /// A bit for each of its lanes, counted from the first one of the class.
    pub(super) mask: i64,
}

/// How many rows of a page each lane has got, and how many it may get. One lane with a long backlog would fill page after
/// page otherwise, while other keys wait behind it.
#[derive(Debug)]
pub(super) struct Shares {
    taken: [usize; LANES as usize],
    most: usize,
}

impl Shares {
    /// At most so many rows a lane.
    pub(super) fn of(most: usize) -> Self {
        Self {
            taken: [0; LANES as usize],
            most: most.max(1),
        }
    }

    /// As many as there are.
    pub(super) fn unlimited() -> Self {
        Self::of(usize::MAX)
    }

    /// Counts a row. Returns whether the lane has its share now.
    pub(super) fn take(&mut self, lane: Lane) -> bool {
        if let Some(taken) = self.taken.get_mut(usize::from(lane)) {
            *taken += 1;
        }
        self.is_full(lane)
    }

    fn is_full(&self, lane: Lane) -> bool {
        self.taken
            .get(usize::from(lane))
            .is_some_and(|taken| *taken >= self.most)
    }
}

/// Below every row, also below those that a person numbered from below 0.
const BEGINNING: i64 = i64::MIN;

/// The floors of all lanes that are read.
#[derive(Debug)]
pub(super) struct Floors([Option<i64>; LANES as usize]);

impl Default for Floors {
    fn default() -> Self {
        Self([None; LANES as usize])
    }
}

impl Floors {
    /// A lane is read from its beginning.
    pub(super) fn gain(&mut self, lane: Lane) {
        self.set(lane, Some(BEGINNING));
    }

    /// A lane is not read any more.
    pub(super) fn lose(&mut self, lane: Lane) {
        self.set(lane, None);
    }

    /// All lanes are read from their beginning.
    pub(super) fn start_over(&mut self) {
        for floor in self.0.iter_mut().flatten() {
            *floor = BEGINNING;
        }
    }

    /// A row is to be read again.
    pub(super) fn lower(&mut self, lane: Lane, seq: i64) {
        if let Some(floor) = self.of(lane) {
            self.set(lane, Some(floor.min(seq.saturating_sub(1))));
        }
    }

    /// How far a lane was read; `None` when it is not read.
    pub(super) fn of(&self, lane: Lane) -> Option<i64> {
        self.0.get(usize::from(lane)).copied().flatten()
    }

    /// How far the lane was read that is furthest.
    pub(super) fn highest(&self) -> i64 {
        self.0.iter().flatten().copied().max().unwrap_or_default()
    }

    /// What the lanes of a class that are furthest behind have to read: up to the floor of those next behind, which they
    /// join then, or up to the head. `None` when all are there. Lanes that had their share are left out.
    pub(super) fn furthest_behind(&self, class: Class, head: i64, shares: &Shares) -> Option<Span> {
        let lanes = || class.lanes().filter(|lane| !shares.is_full(*lane));
        let floors = || lanes().filter_map(|lane| self.of(lane));
        let floor = floors().min().filter(|floor| *floor < head)?;
        let ceiling = floors()
            .filter(|other| *other > floor)
            .min()
            .map_or(head, |next| next.min(head));
        let behind = lanes().filter(|lane| self.of(*lane) == Some(floor));
        let mask = behind.fold(0, |mask, lane| mask | 1_i64 << (lane - class.lanes().start));
        Some(Span {
            class,
            floor,
            ceiling,
            mask,
        })
    }

    /// The lanes of a span were read up to `seq`.
    pub(super) fn reached(&mut self, span: &Span, seq: i64) {
        for (bit, lane) in span.class.lanes().enumerate() {
            if span.mask >> bit & 1 == 1 {
                self.set(lane, Some(seq));
            }
        }
    }

    /// A bit for each lane that is read: those below 64, and those from 64.
    pub(super) fn masks(&self) -> (i64, i64) {
        let mask = |lanes: Range<Lane>| {
            let bits = lanes.enumerate().filter(|(_, lane)| self.of(*lane).is_some());
            bits.fold(0, |mask, (bit, _)| mask | 1_i64 << bit)
        };
        (mask(0..64), mask(64..LANES))
    }

    fn set(&mut self, lane: Lane, floor: Option<i64>) {
        if let Some(slot) = self.0.get_mut(usize::from(lane)) {
            *slot = floor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_were_gained_later_catch_up_and_join_the_others() {
        let mut floors = Floors::default();
        floors.gain(3);
        let span = floors
            .furthest_behind(Class::Normal, 100, &Shares::unlimited())
            .unwrap();
        assert_eq!((span.floor, span.ceiling, span.mask), (BEGINNING, 100, 1 << 3));
        floors.reached(&span, 100);
        floors.gain(63);
        let span = floors
            .furthest_behind(Class::Normal, 150, &Shares::unlimited())
            .unwrap();
        assert_eq!((span.floor, span.ceiling, span.mask), (BEGINNING, 100, i64::MIN));
        floors.reached(&span, 100);
        let span = floors
            .furthest_behind(Class::Normal, 150, &Shares::unlimited())
            .unwrap();
        assert_eq!((span.floor, span.ceiling, span.mask), (100, 150, i64::MIN | 1 << 3));
        floors.reached(&span, 150);
        assert_eq!(floors.furthest_behind(Class::Normal, 150, &Shares::unlimited()), None);
    }

    #[test]
    fn a_forgotten_row_lowers_the_floor_of_its_lane_alone() {
        let mut floors = Floors::default();
        floors.gain(1);
        floors.gain(2);
        let span = floors.furthest_behind(Class::Normal, 50, &Shares::unlimited()).unwrap();
        floors.reached(&span, 50);
        floors.lower(2, 7);
        floors.lower(9, 7);
        assert_eq!((floors.of(1), floors.of(2), floors.of(9)), (Some(50), Some(6), None));
        assert_eq!(floors.highest(), 50);
    }

    #[test]
    fn classes_are_read_apart_and_lanes_have_their_bits() {
        let mut floors = Floors::default();
        floors.gain(64);
        floors.gain(79);
        assert_eq!(floors.furthest_behind(Class::Normal, 5, &Shares::unlimited()), None);
        assert_eq!(
            floors
                .furthest_behind(Class::Urgent, 5, &Shares::unlimited())
                .unwrap()
                .mask,
            1
        );
        assert_eq!(
            floors
                .furthest_behind(Class::Idle, 5, &Shares::unlimited())
                .unwrap()
                .mask,
            1 << 7
        );
        assert_eq!(floors.masks(), (0, 1 | 1 << 15));
        floors.lose(64);
        assert_eq!(floors.furthest_behind(Class::Urgent, 5, &Shares::unlimited()), None);
    }

    #[test]
    fn a_lane_that_had_its_share_stays_behind_while_the_others_go_on() {
        let mut floors = Floors::default();
        floors.gain(1);
        floors.gain(2);
        let mut shares = Shares::of(2);
        assert!(!shares.take(1) && shares.take(1));
        let span = floors.furthest_behind(Class::Normal, 50, &shares).unwrap();
        assert_eq!(span.mask, 1 << 2);
        floors.reached(&span, 50);
        assert_eq!(floors.furthest_behind(Class::Normal, 50, &shares), None);
        let span = floors.furthest_behind(Class::Normal, 50, &Shares::unlimited()).unwrap();
        assert_eq!((span.mask, span.ceiling), (1 << 1, 50));
    }
}
