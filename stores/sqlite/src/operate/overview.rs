//! The overview of the outbox, and the figures that relays write for it.

use std::time::Duration;

use rusqlite::{Connection, Row, params};
use sendoff::Result;
use sendoff::store::{Figures, Group, JobCounts, Overview, OwnerId, RelayStatus, Status, Text};

use super::look::count;
use crate::clock::to_time;
use crate::lease::write;
use crate::sql::Sql;
use crate::store::{Inner, LANES};

impl Inner {
    pub(crate) async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        let (sql, rows) = (self.sql.clone(), figures.rows());
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            for (sink, figures) in &rows {
                let values = params![owner.to_string(), sink, figures];
                tx.prepare_cached(sql.write_figures.first())?.execute(values)?;
            }
            tx.commit()
        };
        // Where settlements are written, which does not wait for the disk: lost figures are written again in a second, and
        // a sync under the write lock would keep all settlements waiting.
        self.settle
            .call("the figures of the relay could not be written", work)
            .await
    }

    pub(super) async fn overview(&self) -> Result<Overview> {
        let health = self.health().await?;
        let pauses = self.pauses().await?;
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let few = Overview::READY_PER_LANE * u32::from(LANES);
            let reason = |row: &Row<'_>| Ok((row.get(0)?, count(row, 1)?));
            let mut jobs = JobCounts::default();
            for (state, number) in sampled(connection, &sql.sample_jobs, Overview::SAMPLE, |row| {
                Ok((row.get::<_, String>(0)?, count(row, 1)?))
            })? {
                jobs.set(&state, number);
            }
            let keys = sampled(connection, &sql.sample_keys, Overview::SAMPLE, |row| count(row, 0))?;
            Ok(Overview {
                health,
                relays: relay_statuses(connection, &sql)?,
                lanes: LANES.into(),
                free_lanes: connection
                    .prepare_cached(sql.free_lanes.first())?
                    .query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?,
                ready: sampled(connection, &sql.sample_ready, few, ready_group)?,
                waiting: sampled(connection, &sql.sample_waiting, Overview::SAMPLE, waiting_group)?,
                dead: sampled(connection, &sql.sample_dead, Overview::SAMPLE, reason)?,
                blocked_keys: keys.into_iter().sum(),
                pauses,
                jobs: Some(jobs),
            })
        };
        self.operate
            .call("the status of the outbox could not be read", work)
            .await
    }
}

fn sampled<T>(
    connection: &Connection,
    text: &Text,
    bound: u32,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection
        .prepare_cached(text.first())?
        .query_map([bound], read)?
        .collect()
}

fn relay_statuses(connection: &Connection, sql: &Sql) -> rusqlite::Result<Vec<RelayStatus>> {
    let mut statement = connection.prepare_cached(sql.relay_figures.first())?;
    let mut rows = statement.query([])?;
    let mut relays: Vec<RelayStatus> = Vec::new();
    while let Some(row) = rows.next()? {
        // A row whose owner is no UUID is no relay's.
        let Ok(owner) = row.get::<_, String>(0)?.parse().map(OwnerId) else {
            continue;
        };
        if relays.last().is_none_or(|relay| relay.owner != owner) {
            relays.push(RelayStatus {
                owner,
                name: row.get(1)?,
                version: row.get(2)?,
                config: row.get(3)?,
                routes: row.get(4)?,
                beat_at: to_time(row.get(5)?),
                alive: row.get(6)?,
                lanes: count(row, 7)?,
                figures: None,
                sinks: Vec::new(),
            });
        }
        if let (Some(sink), Some(relay)) = (row.get::<_, Option<String>>(8)?, relays.last_mut()) {
            relay.add_figures(sink, to_time(row.get(9)?), &row.get::<_, String>(10)?);
        }
    }
    Ok(relays)
}

fn ready_group(row: &Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group {
        topic: row.get(0)?,
        sink: String::new(),
        status: Status::Pending,
        count: count(row, 1)?,
        oldest: age(row, 2)?,
    })
}

fn waiting_group(row: &Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group {
        topic: row.get(0)?,
        sink: row.get(1)?,
        // The statement knows no other names.
        status: Status::named(&row.get::<_, String>(2)?).unwrap_or(Status::Pending),
        count: count(row, 3)?,
        oldest: age(row, 4)?,
    })
}

fn age(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    count(row, column).map(Duration::from_micros)
}
