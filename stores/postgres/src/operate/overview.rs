//! The overview of the outbox, and the figures that relays write for it.

use std::time::Duration;

use sendoff::store::{Figures, Group, JobCounts, Overview, OwnerId, RelayStatus, Status};
use sendoff::{ErrorKind, Result};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::only;
use crate::decode::{column, count};
use crate::error::odd_answer;
use crate::pipeline::{Param, Statement};
use crate::store::{Inner, LANES};

const WHAT: &str = "the status of the outbox could not be read";

impl Inner {
    /// A crash of the server may cost a second of figures: a commit that waits for the disk would cost every relay more.
    pub(crate) async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        let (sinks, texts): (Vec<String>, Vec<String>) = figures.rows().into_iter().unzip();
        let params: [Param<'_>; 3] = [
            (&owner.0, Type::UUID),
            (&sinks, Type::TEXT_ARRAY),
            (&texts, Type::TEXT_ARRAY),
        ];
        let quick = Statement {
            sql: "SET LOCAL synchronous_commit = off",
            params: Vec::new(),
        };
        let written = Statement {
            sql: &self.texts.write_figures,
            params: params.to_vec(),
        };
        let connection = self.operate_pool.get().await?;
        connection
            .run_all("the figures of the relay could not be written", &[quick, written])
            .await?;
        connection.give_back();
        Ok(())
    }

    pub(crate) async fn overview(&self) -> Result<Overview> {
        let health = self.health().await?;
        let pauses = self.pauses().await?;
        let (bound, per_lane) = (i64::from(Overview::SAMPLE), i64::from(Overview::READY_PER_LANE));
        let texts = &self.texts;
        let limited = |sql| Statement {
            sql,
            params: vec![(&bound as _, Type::INT8)],
        };
        let plain = |sql| Statement {
            sql,
            params: Vec::new(),
        };
        let statements = [
            plain(&texts.relay_figures),
            plain(&texts.free_lanes),
            Statement {
                sql: &texts.sample_ready,
                params: vec![(&per_lane as _, Type::INT8)],
            },
            limited(&texts.sample_waiting),
            limited(&texts.sample_dead),
            limited(&texts.sample_keys),
        ];
        let connection = self.operate_pool.get().await?;
        let found = connection.run_all(WHAT, &statements).await?;
        connection.give_back();
        let [relays, lanes, ready, waiting, dead, keys] = &found[..] else {
            return Err(odd_answer(WHAT, "an answer is missing"));
        };
        let reason = |row| Ok((column(WHAT, row, 0)?, count(column(WHAT, row, 1)?)));
        Ok(Overview {
            health,
            relays: relay_statuses(relays)?,
            lanes: LANES.into(),
            free_lanes: lanes
                .iter()
                .map(|row| column::<i16>(WHAT, row, 0).map(i64::from))
                .collect::<Result<_>>()?,
            ready: ready.iter().map(ready_group).collect::<Result<_>>()?,
            waiting: waiting.iter().map(waiting_group).collect::<Result<_>>()?,
            dead: dead.iter().map(reason).collect::<Result<_>>()?,
            blocked_keys: column::<i64>(WHAT, only(WHAT, keys)?, 0).map(count)?,
            pauses,
            jobs: self.sample_jobs(bound).await?,
        })
    }

    /// A role that may not see jobs still sees the messages.
    async fn sample_jobs(&self, bound: i64) -> Result<Option<JobCounts>> {
        let params: [Param<'_>; 1] = [(&bound, Type::INT8)];
        let rows = match self.operate_pool.run(WHAT, &self.texts.sample_jobs, &params).await {
            Err(error) if error.kind() == ErrorKind::Denied => return Ok(None),
            rows => rows?,
        };
        let mut jobs = JobCounts::default();
        for row in &rows {
            jobs.set(column(WHAT, row, 0)?, count(column(WHAT, row, 1)?));
        }
        Ok(Some(jobs))
    }
}

fn relay_statuses(rows: &[Row]) -> Result<Vec<RelayStatus>> {
    let mut relays: Vec<RelayStatus> = Vec::new();
    for row in rows {
        let owner = OwnerId(column(WHAT, row, 0)?);
        if relays.last().is_none_or(|relay| relay.owner != owner) {
            relays.push(RelayStatus {
                owner,
                name: column(WHAT, row, 1)?,
                version: column(WHAT, row, 2)?,
                config: column(WHAT, row, 3)?,
                routes: column(WHAT, row, 4)?,
                beat_at: column(WHAT, row, 5)?,
                alive: column(WHAT, row, 6)?,
                lanes: count(column(WHAT, row, 7)?),
                figures: None,
                sinks: Vec::new(),
            });
        }
        if let (Some(sink), Some(relay)) = (column::<Option<String>>(WHAT, row, 8)?, relays.last_mut()) {
            relay.add_figures(sink, column(WHAT, row, 9)?, column(WHAT, row, 10)?);
        }
    }
    Ok(relays)
}

fn ready_group(row: &Row) -> Result<Group> {
    Ok(Group {
        topic: column(WHAT, row, 0)?,
        sink: String::new(),
        status: Status::Pending,
        count: count(column(WHAT, row, 1)?),
        oldest: Duration::from_micros(count(column(WHAT, row, 2)?)),
    })
}

fn waiting_group(row: &Row) -> Result<Group> {
    let name = column::<&str>(WHAT, row, 2)?;
    Ok(Group {
        topic: column(WHAT, row, 0)?,
        sink: column(WHAT, row, 1)?,
        status: Status::named(name).ok_or_else(|| odd_answer(WHAT, format!("unknown status {name:?}")))?,
        count: count(column(WHAT, row, 3)?),
        oldest: Duration::from_micros(count(column(WHAT, row, 4)?)),
    })
}
