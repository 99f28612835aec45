//! Lists: their tables, their order and their results.

use std::time::SystemTime;

use super::{Status, Stored};

/// A table that lists read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListTable {
    /// The table of ready messages.
    Ready,
    /// The table of scheduled, retry, blocked and deferred deliveries.
    Waiting,
    /// The table of dead letters.
    Dead,
    /// The table of delivered messages that are kept.
    Delivered,
}

impl ListTable {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Waiting, Self::Dead, Self::Delivered];

    /// The tables that have rows with this status.
    pub fn of(status: Option<Status>) -> &'static [Self] {
        match status {
            None => &Self::ALL,
            // A released message that was never tried is pending, too. On MySQL a scheduled message is in the table of
            // ready messages until a relay moves it.
            Some(Status::Pending | Status::Scheduled) => &[Self::Ready, Self::Waiting],
            Some(Status::Retry | Status::Blocked | Status::Deferred) => &[Self::Waiting],
            Some(Status::Dead) => &[Self::Dead],
            Some(Status::Delivered) => &[Self::Delivered],
        }
    }

    /// The index of the table in an array with one entry per table.
    pub fn index(self) -> usize {
        match self {
            Self::Ready => 0,
            Self::Waiting => 1,
            Self::Dead => 2,
            Self::Delivered => 3,
        }
    }

    /// Whether a row with this status and detail belongs to this table.
    pub fn has(self, stored: &Stored) -> bool {
        self == match stored.status {
            Status::Dead => Self::Dead,
            Status::Delivered => Self::Delivered,
            // Only waiting rows have a detail among these.
            _ if stored.detail.is_some() => Self::Waiting,
            _ => Self::Ready,
        }
    }
}

/// The direction of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the highest number, or the latest end, downwards.
    NewestFirst,
    /// From the lowest number, or the earliest end, upwards.
    OldestFirst,
}

impl Direction {
    /// The index of the direction in an array with one entry per direction.
    pub fn index(self) -> usize {
        match self {
            Self::NewestFirst => 0,
            Self::OldestFirst => 1,
        }
    }
}

/// A position in the order by time of end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedAt {
    /// When the message was delivered or died.
    pub at: SystemTime,
    /// The message's number.
    pub seq: i64,
}

/// A part of a list, in order.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The messages of this part.
    pub messages: Vec<Stored>,
    /// Whether the list continues after these messages.
    pub more: bool,
}

/// The result of reading the rows in a range of numbers.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// The rows that match, in order.
    pub messages: Vec<Stored>,
    /// How many rows were read, matching or not.
    pub rows: u64,
    /// When the oldest row that was read was created.
    pub oldest: Option<SystemTime>,
    /// When the newest row that was read was created.
    pub newest: Option<SystemTime>,
}

/// The result of reading rows in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub struct LookedEnded {
    /// The rows that match, in order.
    pub messages: Vec<Stored>,
    /// How many rows were read. Fewer than asked for means the end of the table.
    pub rows: u64,
    /// The position of the last row that was read.
    pub last: Option<EndedAt>,
}

/// The sort key of a row in a list.
pub(super) fn list_order(stored: &Stored) -> impl Ord + '_ {
    (stored.seq, stored.lane, &stored.sink, stored.id, stored.ended_at)
}

impl Looked {
    /// The result for a store that has all rows in memory.
    pub fn among(
        rows: impl IntoIterator<Item = Stored>,
        numbers: &std::ops::RangeInclusive<i64>,
        fits: impl Fn(&Stored) -> bool,
        direction: Direction,
        limit: usize,
    ) -> Self {
        let mut found: Vec<Stored> = rows.into_iter().filter(|row| numbers.contains(&row.seq)).collect();
        let created = || found.iter().map(|row| row.created_at);
        let (rows, oldest, newest) = (found.len() as u64, created().min(), created().max());
        found.retain(|row| fits(row));
        found.sort_by(|one, other| list_order(one).cmp(&list_order(other)));
        if direction == Direction::NewestFirst {
            found.sort_by_key(|row| std::cmp::Reverse(row.seq));
        }
        found.truncate(limit);
        Self {
            messages: found,
            rows,
            oldest,
            newest,
        }
    }
}

impl LookedEnded {
    /// The result for a store that has all rows in memory.
    pub fn among(
        rows: impl IntoIterator<Item = Stored>,
        from: Option<EndedAt>,
        fits: impl Fn(&Stored) -> bool,
        direction: Direction,
        most: usize,
        limit: usize,
    ) -> Self {
        let mut found: Vec<(EndedAt, Stored)> = rows
            .into_iter()
            .filter_map(|row| {
                let ended = EndedAt {
                    at: row.ended_at?,
                    seq: row.seq,
                };
                Some((ended, row))
            })
            .collect();
        found.sort_by(|(_, one), (_, other)| list_order(one).cmp(&list_order(other)));
        match direction {
            Direction::NewestFirst => found.sort_by_key(|(ended, _)| std::cmp::Reverse(*ended)),
            Direction::OldestFirst => found.sort_by_key(|(ended, _)| *ended),
        }
        found.retain(|(ended, _)| match direction {
            Direction::NewestFirst => from.is_none_or(|from| *ended <= from),
            Direction::OldestFirst => from.is_none_or(|from| *ended >= from),
        });
        found.truncate(most);
        Self {
            rows: found.len() as u64,
            last: found.last().map(|(ended, _)| *ended),
            messages: found.into_iter().map(|(_, row)| row).filter(fits).take(limit).collect(),
        }
    }
}
