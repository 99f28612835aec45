//! One page of a list: the tables, merged.

use std::time::{Duration, Instant, SystemTime};

use sendoff::Result;
use sendoff::store::{Filter, ListTable, OperateStore, Stored};

use super::stream::{Key, Stream};
use super::{ListBy, ListOrder};

/// How much a page looks at, at most. It stops at the first bound that it meets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Rows.
    pub(crate) rows: u64,
    /// How long.
    pub(crate) time: Duration,
}

/// Reads pages of one list.
pub(crate) struct Pager<'a> {
    pub(crate) store: &'a dyn OperateStore,
    pub(crate) filter: &'a Filter,
    pub(crate) order: ListOrder,
}

/// A page.
#[derive(Debug)]
pub(crate) struct Paged {
    pub(crate) rows: Vec<Stored>,
    /// Where the next page starts.
    pub(crate) next: Option<Key>,
    /// How many rows were looked at.
    pub(crate) scanned: u64,
    /// The time of the last row that was looked at, if the list goes on after it.
    pub(crate) reached: Option<SystemTime>,
}

impl Pager<'_> {
    pub(crate) async fn page(
        &self,
        tables: &[ListTable],
        from: Option<Key>,
        limit: usize,
        bounds: Bounds,
    ) -> Result<Paged> {
        let began = Instant::now();
        let start = self.start().max(from.unwrap_or(Key(i64::MIN, i64::MIN)));
        let mut streams: Vec<Stream> = tables.iter().map(|table| Stream::new(*table, start, limit)).collect();
        let mut found: Vec<(Key, Stored)> = Vec::new();
        let mut scanned = 0;
        loop {
            // All deliveries of a message are on the same page.
            let mut last = found.last().filter(|_| found.len() > limit).map(|(key, _)| *key);
            while let Some(row) = first_of(&mut streams, last) {
                found.push(row);
                last = found.last().filter(|_| found.len() > limit).map(|(key, _)| *key);
            }
            let behind = streams.iter_mut().filter(|stream| stream.at.is_some());
            let Some(behind) = behind.min_by_key(|stream| stream.at) else {
                break;
            };
            if found.len() > limit || scanned >= bounds.rows || began.elapsed() >= bounds.time {
                break;
            }
            scanned += behind.advance(self, limit + 1 - found.len()).await?;
        }
        let reached = match streams
            .iter()
            .filter(|stream| stream.at.is_some())
            .min_by_key(|stream| stream.at)
        {
            Some(stream) => stream.reached,
            None => None,
        };
        let rest = streams
            .iter()
            .flat_map(|stream| stream.at.into_iter().chain(stream.rows.front().map(|(key, _)| *key)))
            .min();
        Ok(Paged::cut(found, rest, limit, scanned, reached))
    }

    /// The first place that can match.
    fn start(&self) -> Key {
        let ended = |at: Option<SystemTime>, seq| at.map(|at| Key::of_end(at, seq, self.order));
        let bound = match (self.order.by, self.order.oldest_first) {
            (ListBy::Created, _) => None,
            (ListBy::Ended, true) => ended(self.filter.died_from, i64::MIN + 1),
            (ListBy::Ended, false) => ended(self.filter.died_until, i64::MAX),
        };
        bound.unwrap_or(match (self.order.by, self.order.oldest_first) {
            (ListBy::Created, true) => Key(0, 0),
            (ListBy::Created, false) => Key(0, -i64::MAX),
            (ListBy::Ended, true) => Key(0, -i64::MAX),
            // Later than every time that a database knows.
            (ListBy::Ended, false) => Key(-253_402_300_799_000_000, -i64::MAX),
        })
    }
}

/// The next row of all tables, unless a table may have rows before it, or at the same place, that were not looked at.
/// `only`: only a row at this place.
fn first_of(streams: &mut [Stream], only: Option<Key>) -> Option<(Key, Stored)> {
    let first = streams
        .iter()
        .filter_map(|stream| stream.rows.front().map(|(key, _)| *key))
        .min()?;
    if streams.iter().any(|stream| stream.at.is_some_and(|at| at <= first)) || only.is_some_and(|only| only != first) {
        return None;
    }
    let stream = streams
        .iter_mut()
        .find(|stream| stream.rows.front().is_some_and(|(key, _)| *key == first))?;
    stream.rows.pop_front()
}

impl Paged {
    /// The first rows. A page ends before a message whose deliveries do not all fit, unless it is the only one.
    pub(super) fn cut(
        mut rows: Vec<(Key, Stored)>,
        rest: Option<Key>,
        limit: usize,
        scanned: u64,
        reached: Option<SystemTime>,
    ) -> Self {
        let mut next = rest;
        let mut is_cut = false;
        if let Some((first, _)) = rows.get(limit) {
            let mut end = limit;
            let key = *first;
            while end > 0 && rows[end - 1].0 == key {
                end -= 1;
            }
            if end == 0 {
                end = rows.iter().position(|(other, _)| *other != key).unwrap_or(rows.len());
            }
            next = rows.get(end).map(|(key, _)| *key).or(rest);
            is_cut = next.is_some();
            rows.truncate(end);
        }
        let last = rows.last().map(|(_, row)| row.created_at);
        Self {
            reached: if is_cut { last } else { reached }.filter(|_| next.is_some()),
            next,
            scanned,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }
}
