//! Room: migrate. Creates and updates the tables.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use rusqlite::Connection;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, Migration, MigrationState};
use sendoff::{Error, ErrorKind, Result};

use crate::SqliteStore;
use crate::connect::{Connect, Purpose};
use crate::lease::write;
use crate::sql::Sql;
use crate::worker::Worker;

/// Every step: its number, its name, its text before the names are put in.
const STEPS: &[(u32, &str, &str)] = &[
    (1, "outbox", include_str!("../migrations/0001_outbox.sql")),
    (2, "items", include_str!("../migrations/0002_items.sql")),
];

/// The newest step.
fn needed() -> u32 {
    STEPS.iter().map(|(version, ..)| *version).max().unwrap_or_default()
}

#[async_trait]
impl MigrateStore for SqliteStore {
    fn migrations(&self) -> Vec<Migration> {
        let names = &self.0.config.names;
        STEPS.iter().map(|step| migration(names, step)).collect()
    }

    async fn before_migrations(&self) -> Result<String> {
        let (sql, names) = (self.0.sql.clone(), self.0.config.names.clone());
        let ledger = names.table("migration");
        let work = move |connection: &mut Connection| Ledger::read(connection, &sql, &names);
        let what = "the ledger of migrations could not be read";
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
            .call("the ledger of migrations could not be read", work)
            .await
        {
            Ok(ledger) => ledger.applied(&self.0.config.names),
            // There is no file yet.
            Err(error) if error.kind() == ErrorKind::SchemaMissing => 0,
            Err(error) => return Err(error),
        };
        Ok(MigrationState {
            applied,
            needed: needed(),
        })
    }

    async fn migrate(&self) -> Result<Vec<Migration>> {
        let (sql, names) = (self.0.sql.clone(), self.0.config.names.clone());
        let worker = Worker::start("migrate", Connect::new(&self.0.config, Purpose::Migrate))?;
        let work = move |connection: &mut Connection| migrate(connection, &sql, &names);
        let applied = worker.call("the outbox's tables could not be created", work).await??;
        self.0.write_windows().await?;
        Ok(applied)
    }

    async fn write_windows(&self) -> Result<bool> {
        self.0.write_windows().await
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
    for step in STEPS.iter().filter(|(version, ..)| !ledger.steps.contains_key(version)) {
        let migration = migration(names, step);
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

fn migration(names: &Names, (version, name, sql): &(u32, &'static str, &str)) -> Migration {
    let (table, checksum) = (names.table("migration"), checksum(sql));
    Migration {
        version: *version,
        name,
        sql: names.render(sql),
        note: format!("INSERT INTO {table} (version, name, checksum) VALUES ({version}, '{name}', '{checksum}');"),
    }
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
        let is_there = |step: &&(u32, &'static str, &str)| self.presence(&migration(names, step)) == Presence::All;
        let found = STEPS.iter().filter(is_there).map(|(version, ..)| *version);
        found.chain(self.steps.keys().copied()).max().unwrap_or_default()
    }

    fn check(&self) -> Result<()> {
        let newest = self.steps.keys().copied().max().unwrap_or_default();
        if newest > needed() {
            return Err(Error::new(ErrorKind::SchemaTooNew, "the outbox's tables are too new")
                .because(format!(
                    "they are at version {newest} and this program knows {}",
                    needed()
                ))
                .next_step("install a newer Sendoff"));
        }
        for (version, name, sql) in STEPS {
            if self.steps.get(version).is_some_and(|noted| *noted != checksum(sql)) {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the migration {version} ({name}) has changed"),
                )
                .because("its text is not the one that was applied to this database")
                .next_step("use the release of Sendoff that created the tables, and update from there"));
            }
        }
        Ok(())
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

/// A fingerprint of a step's text, to notice a change, whatever a checkout did to its line ends (FNV-1a).
fn checksum(sql: &str) -> String {
    let bytes = sql.bytes().filter(|byte| *byte != b'\r');
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn half_there(migration: &Migration, missing: &str) -> Error {
    let Migration { version, name, .. } = migration;
    Error::new(
        ErrorKind::Invalid,
        format!("the migration {version} ({name}) is only half there"),
    )
    .because(format!(
        "somebody began to apply it with another tool; missing are {missing}"
    ))
    .next_step("finish it with that tool, or drop what it created, and run `sendoff migrate` again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_creates_is_found_by_its_name() {
        let names = Names::new(None, "shop_").unwrap();
        let step = migration(&names, &STEPS[0]);
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
    fn line_ends_do_not_change_a_checksum_and_letters_do() {
        assert_eq!(checksum("a\nb"), checksum("a\r\nb"));
        assert_ne!(checksum("a\nb"), checksum("a\nc"));
    }

    #[test]
    fn steps_are_numbered_from_one_without_a_gap() {
        for (step, number) in STEPS.iter().zip(1..) {
            assert_eq!(step.0, number);
        }
    }
}
