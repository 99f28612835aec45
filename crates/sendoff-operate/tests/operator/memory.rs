//! A store in memory, for the service.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    Command, Direction, EndedAt, Filter, ListTable, Looked, LookedEnded, OperateStore, Status, Stored, Summary,
};
use sendoff::{Result, Uuid};

/// Fits by status, topic and id, which is what these tests ask for.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) rows: Mutex<Vec<Stored>>,
    pub(crate) retries: Mutex<Vec<(Filter, String)>>,
}

fn fits(filter: &Filter, row: &Stored) -> bool {
    filter.status.is_none_or(|status| row.status == status)
        && filter.topic.as_ref().is_none_or(|topic| row.topic == *topic)
        && (filter.ids.is_empty() || row.id.is_some_and(|id| filter.ids.contains(&id)))
}

#[async_trait]
impl OperateStore for Memory {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let rows = self.rows.lock().unwrap();
        let numbers = rows.iter().filter(|row| table.has(row)).map(|row| row.seq);
        Ok(match direction {
            Direction::NewestFirst => numbers.filter(|seq| *seq <= from).max(),
            Direction::OldestFirst => numbers.filter(|seq| *seq >= from).min(),
        })
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        let rows = self.rows.lock().unwrap();
        let rows = rows.iter().filter(|row| table.has(row)).cloned();
        Ok(Looked::among(rows, &numbers, |row| filter.fits(row), direction, limit))
    }

    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        most: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        let rows = self.rows.lock().unwrap();
        let rows = rows.iter().filter(|row| table.has(row)).cloned();
        Ok(LookedEnded::among(
            rows,
            from,
            |row| filter.fits(row),
            direction,
            most,
            limit,
        ))
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let rows = self.rows.lock().unwrap();
        Ok(rows.iter().filter(|row| row.id == Some(id)).cloned().collect())
    }

    async fn summary(&self) -> Result<Summary> {
        Ok(Summary {
            ready: 1,
            waiting: 2,
            failed: 1,
            dead: 3,
            delivered: 4,
            oldest_ready: Some(Duration::from_millis(1500)),
            oldest_pending: Some(Duration::from_secs(3)),
        })
    }

    async fn now(&self) -> Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH)
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        assert_eq!(
            until,
            Some(SystemTime::UNIX_EPOCH),
            "what dies from now on is left alone"
        );
        self.retries
            .lock()
            .unwrap()
            .push((filter.clone(), command.who().to_owned()));
        let mut retried = 0;
        for row in self.rows.lock().unwrap().iter_mut() {
            if row.status == Status::Dead && fits(filter, row) && retried < limit as u64 {
                (row.status, row.attempts) = (Status::Pending, 0);
                retried += 1;
            }
        }
        Ok(retried)
    }
}
