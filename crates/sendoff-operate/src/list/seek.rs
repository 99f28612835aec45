//! Where a list with a time of creation starts: numbers are given in the order of creation, so the place is found by halving.

use std::time::{Duration, SystemTime};

use sendoff::Result;
use sendoff::store::{Direction, Filter, ListTable, OperateStore};

/// How far the order of numbers and that of creation may differ: a message is created when its transaction begins, and gets its
/// number later.
pub(super) const SLACK: Duration = Duration::from_secs(3600);

/// As many numbers are looked at in any case.
const NEAR: i64 = 1000;

/// Finds the start of a list in a table.
pub(super) struct Seek<'a> {
    pub(super) store: &'a dyn OperateStore,
    pub(super) table: ListTable,
}

impl Seek<'_> {
    /// The number to start with; `first` is the first number of the table in this direction.
    pub(super) async fn from(&self, first: i64, filter: &Filter, direction: Direction) -> Result<i64> {
        match direction {
            Direction::NewestFirst => match filter.created_until.and_then(|until| until.checked_add(SLACK)) {
                Some(until) => self.newest_before(first, until).await,
                None => Ok(first),
            },
            Direction::OldestFirst => match filter.created_from.and_then(|from| from.checked_sub(SLACK)) {
                Some(from) => self.oldest_from(first, from).await,
                None => Ok(first),
            },
        }
    }

    async fn newest_before(&self, mut high: i64, until: SystemTime) -> Result<i64> {
        let mut low = 0;
        if self.created(high).await?.is_none_or(|created| created < until) {
            return Ok(high);
        }
        while high - low > NEAR {
            let middle = low + (high - low) / 2;
            match self
                .store
                .next_number(self.table, middle, Direction::NewestFirst)
                .await?
            {
                Some(number) if self.created(number).await?.is_some_and(|created| created >= until) => high = number,
                _ => low = middle,
            }
        }
        Ok(high)
    }

    async fn oldest_from(&self, mut low: i64, from: SystemTime) -> Result<i64> {
        if self.created(low).await?.is_none_or(|created| created >= from) {
            return Ok(low);
        }
        let last = self
            .store
            .next_number(self.table, i64::MAX, Direction::NewestFirst)
            .await?;
        let mut high = last.unwrap_or(low);
        while high - low > NEAR {
            let middle = low + (high - low) / 2;
            match self
                .store
                .next_number(self.table, middle, Direction::OldestFirst)
                .await?
            {
                Some(number) if self.created(number).await?.is_some_and(|created| created < from) => low = number,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    async fn created(&self, number: i64) -> Result<Option<SystemTime>> {
        let all = Filter::default();
        let looked = self
            .store
            .look(self.table, &all, number..=number, Direction::NewestFirst, 0)
            .await?;
        Ok(looked.oldest)
    }
}
