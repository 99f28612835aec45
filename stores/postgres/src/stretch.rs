//! Stretches: reads the backlogs of many lanes together.
//!
//! In the table, the rows of all lanes are in the order of their numbers. If the reader reads lane by lane, every row
//! is on another page, and every page is read once for each lane. So while the lanes have backlogs of one kind, the
//! reader reads all their rows up to some number, and each page once.
//!
//! A lane with a much larger backlog than the others would delay them in this mode. In that case, every lane gets its
//! share again.

use crate::decode::smallint;
use crate::lanes::{ALL, Found, Lanes, NORMAL, rank};

/// What follows the columns of `read_ready.sql`: $1 lanes, $2 the number it starts at (not included), $3 the last one, $4
/// whether to take a transaction id, $5 how many rows at most.
pub(crate) const FROM: &str = "FROM (
    SELECT o.*, o.ctid FROM outbox_message AS o WHERE o.lane = ANY ($1) AND o.seq > $2 AND o.seq <= $3 LIMIT $5
) AS m";

/// The planner may think that the table is small: it must neither be scanned as a whole, nor row by row.
pub(crate) const PAGE_BY_PAGE: &str = "SELECT set_config('enable_bitmapscan', 'on', true), \
    set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true), \
    set_config('jit', 'off', true)";

/// How many times its share a lane may have.
const UNEVEN: usize = 4;

/// All rows of some lanes whose number is above `after` and not above `upto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) lanes: Vec<i16>,
    pub(crate) after: i64,
    pub(crate) upto: i64,
    /// How many rows are in flight and will be found again.
    pub(crate) again: usize,
    /// As many rows are too many: some may be missing, and which ones is not known.
    pub(crate) limit: i64,
}

impl Stretch {
    /// Whether so many rows may not be all of them.
    pub(crate) fn overflows(&self, rows: usize) -> bool {
        i64::try_from(rows).is_ok_and(|rows| rows >= self.limit)
    }
}

/// How many rows there are for each number: all lanes of all relays share the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Density(f64);

impl Density {
    fn of(rows: usize, numbers: i64) -> Self {
        Self((rows.max(1) as f64 / numbers.max(1) as f64).clamp(1e-9, 1.0))
    }

    /// How many numbers have about so many rows.
    fn numbers(self, rows: usize) -> i64 {
        (rows.max(1) as f64 / self.0) as i64
    }

    /// A stretch without any may be followed by one that is full.
    fn learn(self, rows: usize, numbers: i64) -> Self {
        let seen = Self::of(rows, numbers);
        Self(seen.0.clamp(self.0 / 2.0, self.0 * 2.0))
    }
}

impl Lanes {
    /// The next stretch, if one is to be read.
    pub(crate) fn next_stretch(&self, floor: i64, limit: usize) -> Option<Stretch> {
        let density = self.density?;
        let cursors = || self.normal().map(|(_, state)| state.cursor);
        let (after, furthest) = (cursors().min()?, cursors().max()?);
        let numbers = density.numbers(limit);
        // Below the floor somebody may still commit, and a lane that was gained begins far behind the others.
        if furthest > floor || furthest.saturating_sub(after) / 4 > numbers {
            return None;
        }
        let again: usize = self
            .normal()
            .map(|(_, state)| state.in_flight.range(after.saturating_add(1)..).count())
            .sum();
        Some(Stretch {
            lanes: self.normal().map(|(lane, _)| smallint(lane)).collect(),
            after,
            upto: after.saturating_add(numbers).max(furthest),
            again,
            limit: i64::try_from(limit * 2 + again).unwrap_or(i64::MAX),
        })
    }

    /// All rows of a stretch came. Tells whether there is more behind it.
    pub(crate) fn finish_stretch(&mut self, stretch: &Stretch, found: &Found, head: i64) -> bool {
        let more = stretch.upto < head;
        let cursor = if more { stretch.upto } else { ALL };
        for (_, state) in self.normal_mut() {
            state.cursor = cursor;
        }
        let (lanes, rows, most) = self.share_out(found);
        let density = self.density.filter(|_| more && is_even(lanes, rows, most));
        self.density = density.map(|density| density.learn(rows, stretch.upto - stretch.after));
        more
    }

    /// Whether lanes that were read one by one can be read together from now on.
    pub(crate) fn try_stretches(&mut self, found: &Found) {
        self.density = self.density_in(found);
    }

    fn density_in(&self, found: &Found) -> Option<Density> {
        let all_full = self.normal().all(|(_, state)| state.cursor != ALL);
        let (lanes, rows, _) = self.share_out(found);
        if !all_full || lanes == 0 || rows == 0 {
            return None;
        }
        let of_lanes = || {
            found
                .iter()
                .filter(|(lane, _)| rank(**lane) == NORMAL)
                .map(|(_, of)| of)
        };
        let first = of_lanes().map(|of| of.first).min()?;
        let (least, most) = (of_lanes().map(|of| of.last).min()?, of_lanes().map(|of| of.last).max()?);
        // As many rows of each: what differs is how far they reach.
        let even = most - first <= (least - first).saturating_mul(UNEVEN as i64);
        even.then(|| Density::of(rows, i64::midpoint(least, most) - first))
    }

    /// How many lanes, how many rows they have, and how many the one with the most.
    fn share_out(&self, found: &Found) -> (usize, usize, usize) {
        let rows = |lane| found.get(&lane).map_or(0, |of| of.rows);
        self.normal().fold((0, 0, 0), |(lanes, sum, most), (lane, _)| {
            (lanes + 1, sum + rows(lane), most.max(rows(lane)))
        })
    }
}

fn is_even(lanes: usize, rows: usize, most: usize) -> bool {
    // A handful says nothing.
    rows < 4 * lanes || (most * lanes <= UNEVEN * rows && (lanes < 2 || most * 4 <= rows * 3))
}
