//! Migrate: the steps of the schema, and the ledger of the applied steps.

use async_trait::async_trait;
use mysql_async::params;
use sendoff::store::{MigrateStore, Migration, MigrationState, Step};
use sendoff::{Error, ErrorKind, Result};

use crate::decode::{number, text};
use crate::pool::PooledConnection;
use crate::store::{Inner, MysqlStore};

const WHAT: &str = "the schema could not be migrated";

/// How long to wait for another program that migrates, in seconds.
const PATIENCE: u32 = 300;

/// MySQL commits every statement of a step by itself, so each can be run again: a step that was cut off is finished by the
/// next one who migrates.
const STEPS: &[Step] = &[Step {
    version: 1,
    name: "outbox",
    sql: concat!(
        include_str!("../migrations/0001_outbox.sql"),
        include_str!("../migrations/0001_jobs.sql")
    ),
}];

/// What each step creates last: where it is there and the ledger does not know, somebody ran the text by hand.
const PROOFS: &[&str] = &["job_count"];

#[async_trait]
impl MigrateStore for MysqlStore {
    fn migrations(&self) -> Vec<Migration> {
        STEPS.iter().map(|step| step.migration(&self.0.config.names)).collect()
    }

    async fn before_migrations(&self) -> Result<String> {
        let mut connection = self.0.operate_pool.begin(WHAT).await?;
        let mut script = self.0.missing_schema(&mut connection).await?.unwrap_or_default();
        if !self.0.exists(&mut connection, "migration").await? {
            script += &format!("{};\n", self.0.texts.ledger_create.first());
        }
        connection.commit(WHAT).await?;
        connection.give_back();
        Ok(script)
    }

    async fn migration_state(&self) -> Result<MigrationState> {
        let mut connection = self.0.operate_pool.begin(WHAT).await?;
        let mut applied = 0;
        if self.0.exists(&mut connection, "migration").await? {
            applied = self
                .0
                .ledger(&mut connection)
                .await?
                .last()
                .map_or(0, |(version, _)| *version);
        }
        for (step, proof) in STEPS.iter().zip(PROOFS) {
            if step.version > applied && self.0.exists(&mut connection, proof).await? {
                applied = step.version;
            }
        }
        connection.commit(WHAT).await?;
        connection.give_back();
        Ok(MigrationState {
            applied,
            needed: Step::needed(STEPS),
        })
    }

    /// The lock makes those that migrate at the same time wait for each other. It is the connection's own and goes with
    /// it: after an error the connection is dropped.
    async fn migrate(&self) -> Result<Vec<Migration>> {
        let mut connection = self.0.operate_pool.begin(WHAT).await?;
        let lock = format!("sendoff {}", Step::checksum(&self.0.config.names.to_string()));
        let values = params! { "lock" => &lock, "patience" => PATIENCE };
        let locked = connection
            .rows(WHAT, "SELECT GET_LOCK(:lock, :patience)", values)
            .await?;
        if locked.first().map_or(Ok(0), |row| number(WHAT, row, 0))? != 1 {
            return Err(Error::new(ErrorKind::Busy, WHAT)
                .because(format!("another program has held the migration lock for {PATIENCE} s"))
                .next_step("wait until the other program ends, or stop it, then try again"));
        }
        if let Some(create) = self.0.missing_schema(&mut connection).await? {
            connection.script(WHAT, &create).await?;
        }
        connection.script(WHAT, self.0.texts.ledger_create.first()).await?;
        let ledger = self.0.ledger(&mut connection).await?;
        Step::check(STEPS, &ledger)?;
        let mut applied = Vec::new();
        for (step, proof) in STEPS
            .iter()
            .zip(PROOFS)
            .filter(|(step, _)| ledger.iter().all(|(version, _)| *version != step.version))
        {
            let migration = step.migration(&self.0.config.names);
            let is_there = self.0.exists(&mut connection, proof).await?;
            if !is_there {
                connection.script(WHAT, &migration.sql).await?;
            }
            connection.script(WHAT, &migration.note).await?;
            if !is_there {
                applied.push(migration);
            }
        }
        connection.commit(WHAT).await?;
        connection
            .rows(WHAT, "SELECT RELEASE_LOCK(:lock)", params! { "lock" => lock })
            .await?;
        connection.give_back();
        self.write_retention().await?;
        Ok(applied)
    }

    async fn write_retention(&self) -> Result<bool> {
        self.0.write_retention().await
    }
}

impl Inner {
    /// What creates the configured schema, unless it is there: that needs a right which an owner of tables may not have.
    async fn missing_schema(&self, connection: &mut PooledConnection) -> Result<Option<String>> {
        let Some(schema) = self.config.names.schema() else {
            return Ok(None);
        };
        let sql = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = :schema";
        let rows = connection.rows(WHAT, sql, params! { "schema" => schema }).await?;
        let is_missing = rows.first().map_or(Ok(0), |row| number(WHAT, row, 0))? == 0;
        Ok(is_missing.then(|| format!("CREATE DATABASE IF NOT EXISTS {schema};\n")))
    }

    async fn exists(&self, connection: &mut PooledConnection, table: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM information_schema.tables \
            WHERE table_schema = coalesce(:schema, DATABASE()) AND table_name = :name";
        let names = &self.config.names;
        let name = format!("{}{table}", names.prefix());
        let rows = connection
            .rows(WHAT, sql, params! { "schema" => names.schema(), "name" => name })
            .await?;
        Ok(rows.first().map_or(Ok(0), |row| number(WHAT, row, 0))? > 0)
    }

    async fn ledger(&self, connection: &mut PooledConnection) -> Result<Vec<(u32, String)>> {
        let rows = connection.rows(WHAT, self.texts.ledger_read.first(), ()).await?;
        rows.iter()
            .map(|row| {
                let version = u32::try_from(number(WHAT, row, 0)?).unwrap_or(u32::MAX);
                Ok((version, text(WHAT, row, 1)?))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_and_proved() {
        assert!(Step::are_numbered(STEPS));
        assert_eq!(STEPS.len(), PROOFS.len());
    }

    #[test]
    fn what_a_step_creates_last_proves_it() {
        for (step, proof) in STEPS.iter().zip(PROOFS) {
            let last = step.sql.rfind("CREATE ").map(|at| &step.sql[at..]).unwrap();
            assert!(last.contains(&format!("outbox_{proof}")), "{}", step.name);
        }
    }
}
