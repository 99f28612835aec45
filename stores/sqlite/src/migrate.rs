//! Migrate: creates and updates the tables.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use rusqlite::Connection;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, Migration, MigrationState, Step};
use sendoff::{Error, ErrorKind, Result};

use crate::SqliteStore;
use crate::connect::{Connect, Purpose};
use crate::lease::write;
use crate::sql::Sql;
use crate::worker::Worker;

const STEPS: &[Step] = &[Step {
    version: 1,
    name: "outbox",
    sql: concat!(
        include_str!("../migrations/0001_outbox.sql"),
        include_str!("../migrations/0001_jobs.sql")
    ),
}];

#[async_trait]
impl MigrateStore for SqliteStore {
    fn migrations(&self) -> Vec<Migration> {
        let names = &self.0.config.names;
        STEPS.iter().map(|step| step.migration(names)).collect()
    }

    async fn before_migrations(&self) -> Result<String> {
        let (sql, names) = (self.0.sql.clone(), self.0.config.names.clone());
        let ledger = names.table("migration");
        let work = move |connection: &mut Connection| Ledger::read(connection, &sql, &names);
        let what = "the applied migrations could not be read";
        let is_there = match self.0.operate.call(what, work).await {
            Ok(found) => found.objects.contains(&ledger),
            // There is no file yet.
            Err(error) if error.kind() == ErrorKind::SchemaMissing => false,
            Err(error) => return Err(error),
        };
        Ok(match is_there {
            true => String::new(),
            false => format!("{};\n", self.0.sql.ledger_create.first()),
        })
    }

    async fn migration_state(&self) -> Result<MigrationState> {
        let (sql, names) = (self.0.sql.clone(), self.0.config.names.clone());
        let work = move |connection: &mut Connection| Ledger::read(connection, &sql, &names);
        let applied = match self
            .0
            .operate
            .call("the applied migrations could not be read", work)
            .await
        {
            Ok(ledger) => ledger.applied(&self.0.config.names),
            // There is no file yet.
            Err(error) if error.kind() == ErrorKind::SchemaMissing => 0,
            Err(error) => return Err(error),
        };
        Ok(MigrationState {
            applied,
            needed: Step::needed(STEPS),
        })
    }

    async fn migrate(&self) -> Result<Vec<Migration>> {
        let (sql, names) = (self.0.sql.clone(), self.0.config.names.clone());
        let worker = Worker::start("migrate", Connect::new(&self.0.config, Purpose::Migrate))?;
        let work = move |connection: &mut Connection| migrate(connection, &sql, &names);
        let applied = worker.call("the outbox's tables could not be created", work).await??;
        self.0.write_retention().await?;
        Ok(applied)
    }

    async fn write_retention(&self) -> Result<bool> {
        self.0.write_retention().await
    }
}

/// Applies what is missing. The write lock, taken before the ledger is read, makes programs that do this at the same
/// time wait for each other.
fn migrate(connection: &mut Connection, sql: &Sql, names: &Names) -> rusqlite::Result<Result<Vec<Migration>>> {
    let tx = write(connection)?;
    let ledger = Ledger::read(&tx, sql, names)?;
    if let Err(error) = ledger.check() {
        return Ok(Err(error));
    }
    tx.execute_batch(sql.ledger_create.first())?;
    let mut applied = Vec::new();
    for step in STEPS.iter().filter(|step| !ledger.steps.contains_key(&step.version)) {
        let migration = step.migration(names);
        match ledger.presence(&migration) {
            Presence::None => tx.execute_batch(&migration.sql)?,
            // Somebody ran its text with a tool of their own: it only has to be noted.
            Presence::All => {}
            Presence::Some(missing) => return Ok(Err(half_there(&migration, &missing))),
        }
        tx.execute_batch(&migration.note)?;
        if ledger.presence(&migration) == Presence::None {
            applied.push(migration);
        }
    }
    tx.commit()?;
    Ok(Ok(applied))
}

/// What was applied, and what is there.
struct Ledger {
    steps: BTreeMap<u32, String>,
    objects: BTreeSet<String>,
}

/// How much of a step is there.
#[derive(Debug, PartialEq, Eq)]
enum Presence {
    None,
    All,
    /// And this is missing.
    Some(String),
}

impl Ledger {
    fn read(connection: &Connection, sql: &Sql, names: &Names) -> rusqlite::Result<Self> {
        let mut objects = connection.prepare(sql.ledger_read.at(1))?;
        let objects: BTreeSet<String> = objects
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut steps = BTreeMap::new();
        if objects.contains(&names.table("migration")) {
            let mut statement = connection.prepare(sql.ledger_read.at(0))?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            steps = rows.collect::<rusqlite::Result<_>>()?;
        }
        Ok(Self { steps, objects })
    }

    /// The newest step that is there, whether or not Sendoff itself has applied it.
    fn applied(&self, names: &Names) -> u32 {
        let is_there = |step: &&Step| self.presence(&step.migration(names)) == Presence::All;
        let found = STEPS.iter().filter(is_there).map(|step| step.version);
        found.chain(self.steps.keys().copied()).max().unwrap_or_default()
    }

    fn check(&self) -> Result<()> {
        let ledger = self.steps.iter().map(|(version, noted)| (*version, noted.clone()));
        Step::check(STEPS, &ledger.collect::<Vec<_>>())
    }

    fn presence(&self, migration: &Migration) -> Presence {
        let created = created(&migration.sql);
        let missing: Vec<&str> = created
            .iter()
            .copied()
            .filter(|name| !self.objects.contains(*name))
            .collect();
        if missing.len() == created.len() {
            Presence::None
        } else if missing.is_empty() {
            Presence::All
        } else {
            Presence::Some(missing.join(", "))
        }
    }
}

/// What a step creates: the names behind CREATE at the beginning of a line.
fn created(sql: &str) -> Vec<&str> {
    let kinds = ["CREATE TABLE ", "CREATE INDEX ", "CREATE TRIGGER ", "CREATE VIEW "];
    let names = sql
        .lines()
        .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)));
    names.filter_map(|rest| rest.split([' ', '(']).next()).collect()
}

fn half_there(migration: &Migration, missing: &str) -> Error {
    let Migration { version, name, .. } = migration;
    Error::new(
        ErrorKind::Invalid,
        format!("migration {version} ({name}) is incomplete"),
    )
    .because(format!(
        "the migration was partly applied with another tool; missing: {missing}"
    ))
    .next_step(
        "finish the migration with that tool, or drop the objects that it created, then run `sendoff migrate` again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_creates_is_found_by_its_name() {
        let names = Names::new(None, "shop_").unwrap();
        let step = STEPS[0].migration(&names);
        let created = created(&step.sql);
        for name in [
            "shop_message",
            "ix_shop_message_urgent",
            "tr_shop_after_insert",
            "shop_all",
            "shop_setting",
        ] {
            assert!(created.contains(&name), "{name} in {created:?}");
        }
    }

    #[test]
    fn steps_are_numbered_from_one_without_a_gap() {
        assert!(Step::are_numbered(STEPS));
    }
}
