//! The overview of the outbox, and the figures that relays write for it.

use std::time::Duration;

use mysql_async::{Row, params};
use sendoff::store::{Figures, Group, JobCounts, Overview, OwnerId, RelayStatus, Status};
use sendoff::{ErrorKind, Result};

use super::only;
use crate::conflict::transact;
use crate::decode::{count, lossy_or_null, number, text, text_or_null, time_or_null, to_time};
use crate::error::odd_answer;
use crate::pool::PooledConnection;
use crate::store::{Inner, LANES};

const WHAT: &str = "the status of the outbox could not be read";

impl Inner {
    pub(crate) async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        let (what, rows) = ("the figures of the relay could not be written", figures.rows());
        transact!(self.operate_pool, what, connection => self.write_rows(&mut connection, what, owner, &rows).await)
    }

    async fn write_rows(
        &self,
        connection: &mut PooledConnection,
        what: &str,
        owner: OwnerId,
        rows: &[(String, String)],
    ) -> Result<()> {
        for (sink, figures) in rows {
            let values = params! { "owner" => owner.to_string(), "sink" => sink, "figures" => figures };
            connection
                .change(what, self.texts.write_figures.first(), values)
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn overview(&self) -> Result<Overview> {
        let health = self.health().await?;
        let pauses = self.pauses().await?;
        let texts = &self.texts;
        let relays = self.operate_pool.rows(WHAT, texts.relay_figures.first(), ()).await?;
        let lanes = self.operate_pool.rows(WHAT, texts.free_lanes.first(), ()).await?;
        let few = Overview::READY_PER_LANE * u32::from(LANES);
        let ready = self.sample(texts.sample_ready.first(), few).await?;
        let waiting = self.sample(texts.sample_waiting.first(), Overview::SAMPLE).await?;
        let dead = self.sample(texts.sample_dead.first(), Overview::SAMPLE).await?;
        let keys = self.sample(texts.sample_keys.first(), Overview::SAMPLE).await?;
        let reason = |row| Ok((text(WHAT, row, 0)?, count(number(WHAT, row, 1)?)));
        Ok(Overview {
            health,
            relays: relay_statuses(&relays)?,
            lanes: LANES.into(),
            free_lanes: lanes.iter().map(|row| number(WHAT, row, 0)).collect::<Result<_>>()?,
            ready: ready.iter().map(ready_group).collect::<Result<_>>()?,
            waiting: waiting.iter().map(waiting_group).collect::<Result<_>>()?,
            dead: dead.iter().map(reason).collect::<Result<_>>()?,
            blocked_keys: count(number(WHAT, only(WHAT, &keys)?, 0)?),
            pauses,
            jobs: self.sample_jobs().await?,
        })
    }

    async fn sample(&self, sql: &str, bound: u32) -> Result<Vec<Row>> {
        self.operate_pool.rows(WHAT, sql, params! { "bound" => bound }).await
    }

    /// A user who may not see jobs still sees the messages.
    async fn sample_jobs(&self) -> Result<Option<JobCounts>> {
        let rows = match self.sample(self.texts.sample_jobs.first(), Overview::SAMPLE).await {
            Err(error) if error.kind() == ErrorKind::Denied => return Ok(None),
            rows => rows?,
        };
        let mut jobs = JobCounts::default();
        for row in &rows {
            jobs.set(&text(WHAT, row, 0)?, count(number(WHAT, row, 1)?));
        }
        Ok(Some(jobs))
    }
}

fn relay_statuses(rows: &[Row]) -> Result<Vec<RelayStatus>> {
    let mut relays: Vec<RelayStatus> = Vec::new();
    for row in rows {
        // A row whose owner is no UUID is no relay's.
        let Ok(owner) = text(WHAT, row, 0)?.parse().map(OwnerId) else {
            continue;
        };
        if relays.last().is_none_or(|relay| relay.owner != owner) {
            relays.push(RelayStatus {
                owner,
                name: lossy_or_null(row, 1).unwrap_or_default(),
                version: lossy_or_null(row, 2).unwrap_or_default(),
                config: lossy_or_null(row, 3).unwrap_or_default(),
                routes: lossy_or_null(row, 4).unwrap_or_default(),
                beat_at: to_time(number(WHAT, row, 5)?),
                alive: number(WHAT, row, 6)? != 0,
                lanes: count(number(WHAT, row, 7)?),
                figures: None,
                sinks: Vec::new(),
            });
        }
        let written = text_or_null(WHAT, row, 8)?.zip(time_or_null(WHAT, row, 9)?);
        if let (Some((sink, written_at)), Some(relay)) = (written, relays.last_mut()) {
            relay.add_figures(sink, written_at, &lossy_or_null(row, 10).unwrap_or_default());
        }
    }
    Ok(relays)
}

fn ready_group(row: &Row) -> Result<Group> {
    Ok(Group {
        topic: lossy_or_null(row, 0).unwrap_or_default(),
        sink: String::new(),
        status: Status::Pending,
        count: count(number(WHAT, row, 1)?),
        oldest: Duration::from_micros(count(number(WHAT, row, 2)?)),
    })
}

fn waiting_group(row: &Row) -> Result<Group> {
    let name = text(WHAT, row, 2)?;
    Ok(Group {
        topic: lossy_or_null(row, 0).unwrap_or_default(),
        sink: lossy_or_null(row, 1).unwrap_or_default(),
        status: Status::named(&name).ok_or_else(|| odd_answer(WHAT, format!("unknown status {name:?}")))?,
        count: count(number(WHAT, row, 3)?),
        oldest: Duration::from_micros(count(number(WHAT, row, 4)?)),
    })
}
