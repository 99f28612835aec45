//! One table of a list, read step by step.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use sendoff::Result;
use sendoff::store::{Direction, EndedAt, ListTable, Stored};

use super::pager::Pager;
use super::seek::{SLACK, Seek};
use super::{ListBy, ListOrder};

/// How many rows the first step looks at, at least.
const FIRST_STEP: i64 = 256;
/// How many at most.
const LARGEST_STEP: i64 = 1 << 21;
/// A step that takes less time makes the next one larger; one that takes more makes it smaller.
const SHORT: Duration = Duration::from_millis(12);
const LONG: Duration = Duration::from_millis(60);
/// How many rows more than wanted a step returns: deliveries of the last message.
const SPARE: usize = 64;

/// A place in a list; it grows in the direction of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) i64, pub(crate) i64);

impl Key {
    /// The place of a row; `None` when it is not in a list of this order.
    pub(crate) fn of(row: &Stored, order: ListOrder) -> Option<Self> {
        match order.by {
            ListBy::Created => Some(Self::of_number(row.seq, order)),
            ListBy::Ended => Some(Self::of_end(row.ended_at?, row.seq, order)),
        }
    }

    fn of_number(seq: i64, order: ListOrder) -> Self {
        Self(0, sign(order) * seq)
    }

    pub(crate) fn of_end(at: SystemTime, seq: i64, order: ListOrder) -> Self {
        let micros = at
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros();
        Self(
            sign(order) * i64::try_from(micros).unwrap_or(i64::MAX),
            sign(order) * seq,
        )
    }

    fn number(self, order: ListOrder) -> i64 {
        sign(order).saturating_mul(self.1)
    }

    fn end(self, order: ListOrder) -> EndedAt {
        let micros = u64::try_from(sign(order).saturating_mul(self.0)).unwrap_or_default();
        EndedAt {
            at: SystemTime::UNIX_EPOCH + Duration::from_micros(micros),
            seq: self.number(order),
        }
    }

    /// The first place after it.
    fn next(self) -> Self {
        Self(self.0, self.1.saturating_add(1))
    }
}

fn sign(order: ListOrder) -> i64 {
    if order.oldest_first { 1 } else { -1 }
}

pub(super) fn direction(order: ListOrder) -> Direction {
    if order.oldest_first {
        Direction::OldestFirst
    } else {
        Direction::NewestFirst
    }
}

/// The rows of one table.
pub(super) struct Stream {
    table: ListTable,
    /// The first place that was not looked at; `None` at the end of the table.
    pub(super) at: Option<Key>,
    /// Rows that match, before `at`.
    pub(super) rows: VecDeque<(Key, Stored)>,
    /// The time of the last row that was looked at.
    pub(super) reached: Option<SystemTime>,
    step: i64,
    is_new: bool,
}

impl Stream {
    pub(super) fn new(table: ListTable, at: Key, limit: usize) -> Self {
        let wanted = i64::try_from(limit).unwrap_or(FIRST_STEP).saturating_mul(2);
        Self {
            table,
            at: Some(at),
            rows: VecDeque::new(),
            reached: None,
            step: wanted.clamp(FIRST_STEP, LARGEST_STEP),
            is_new: true,
        }
    }

    /// Looks at the next rows. Returns how many there were.
    pub(super) async fn advance(&mut self, pager: &Pager<'_>, wanted: usize) -> Result<u64> {
        let began = Instant::now();
        let most = wanted.saturating_add(SPARE);
        let rows = match pager.order.by {
            ListBy::Created => self.advance_by_number(pager, most).await?,
            ListBy::Ended => self.advance_by_end(pager, most).await?,
        };
        match began.elapsed() {
            short if short < SHORT => self.step = self.step.saturating_mul(4).min(LARGEST_STEP),
            long if long > LONG => self.step = (self.step / 2).max(FIRST_STEP),
            _ => {}
        }
        Ok(rows)
    }

    async fn advance_by_number(&mut self, pager: &Pager<'_>, most: usize) -> Result<u64> {
        let (order, direction) = (pager.order, direction(pager.order));
        let Some(at) = self.at else { return Ok(0) };
        let next = pager.store.next_number(self.table, at.number(order), direction).await?;
        let Some(mut first) = next else {
            self.at = None;
            return Ok(0);
        };
        if std::mem::take(&mut self.is_new) {
            let seek = Seek {
                store: pager.store,
                table: self.table,
            };
            first = seek.from(first, pager.filter, direction).await?;
        }
        let last = first.saturating_add(sign(order).saturating_mul(self.step - 1)).max(0);
        let numbers = first.min(last)..=first.max(last);
        let looked = pager
            .store
            .look(self.table, pager.filter, numbers, direction, most)
            .await?;
        self.at = (last > 0 && last < i64::MAX).then(|| Key::of_number(last, order).next());
        self.reached = match direction {
            Direction::NewestFirst => looked.oldest,
            Direction::OldestFirst => looked.newest,
        };
        // The order of numbers is nearly that of creation: rows that were created much too early or late end the list.
        let is_past = match direction {
            Direction::NewestFirst => pager
                .filter
                .created_from
                .zip(looked.newest)
                .is_some_and(|(from, newest)| newest.checked_add(SLACK).is_some_and(|newest| newest < from)),
            Direction::OldestFirst => pager
                .filter
                .created_until
                .zip(looked.oldest)
                .is_some_and(|(until, oldest)| oldest.checked_sub(SLACK).is_some_and(|oldest| oldest >= until)),
        };
        if is_past {
            self.at = None;
        }
        self.take(looked.messages, most, order);
        Ok(looked.rows)
    }

    async fn advance_by_end(&mut self, pager: &Pager<'_>, most: usize) -> Result<u64> {
        let (order, direction) = (pager.order, direction(pager.order));
        let Some(at) = self.at else { return Ok(0) };
        let step = usize::try_from(self.step).unwrap_or(usize::MAX);
        let looked = pager
            .store
            .look_ended(self.table, pager.filter, Some(at.end(order)), direction, step, most)
            .await?;
        let last = looked.last.map(|last| (last.at, Key::of_end(last.at, last.seq, order)));
        self.reached = last.map(|(reached, _)| reached);
        // The last place may have more rows than were looked at.
        let is_full = looked.rows >= step as u64;
        self.at = last
            .filter(|_| is_full)
            .map(|(_, key)| if key == at { key.next() } else { key });
        if let Some(cut) = self.at {
            let rows = looked.messages.into_iter();
            let rows: Vec<Stored> = rows
                .filter(|row| Key::of(row, order).is_some_and(|key| key < cut))
                .collect();
            self.take(rows, most, order);
        } else {
            self.take(looked.messages, most, order);
        }
        let is_past = last.is_some_and(|(reached, _)| match direction {
            Direction::NewestFirst => pager.filter.died_from.is_some_and(|from| reached < from),
            Direction::OldestFirst => pager.filter.died_until.is_some_and(|until| reached >= until),
        });
        if is_past {
            self.at = None;
        }
        Ok(looked.rows)
    }

    /// Takes rows. Those of the last place are left to the next step if there may be more of them.
    fn take(&mut self, messages: Vec<Stored>, most: usize, order: ListOrder) {
        let is_cut = messages.len() >= most;
        let rows = messages
            .into_iter()
            .filter_map(|row| Some((Key::of(&row, order)?, row)));
        self.rows.extend(rows);
        if !is_cut {
            return;
        }
        let Some(last) = self.rows.back().map(|(key, _)| *key) else {
            return;
        };
        if self.rows.front().is_some_and(|(key, _)| *key == last) {
            self.at = Some(last.next());
            return;
        }
        self.rows.retain(|(key, _)| *key != last);
        self.at = Some(last);
    }
}
