//! Room: migrate. The steps of the schema, and the ledger of those that were applied.

use mysql_async::params;
use sendoff::store::{Migration, MigrationState};
use sendoff::{Error, ErrorKind, Result};

use crate::decode::{number, text};
use crate::pool::Lent;
use crate::store::Inner;

const WHAT: &str = "the schema could not be migrated";

/// How long to wait for another program that migrates, in seconds.
const PATIENCE: u32 = 300;

/// One step of the schema. MySQL commits every statement of it by itself, so each can be run again: a step that was cut
/// off is finished by the next one who migrates.
struct Step {
    version: u32,
    name: &'static str,
    sql: &'static str,
    /// What this step creates last: where it is there and the ledger does not know, somebody ran the whole text by hand.
    creates: &'static str,
}

const STEPS: &[Step] = &[
    Step {
        version: 1,
        name: "outbox",
        sql: include_str!("../migrations/0001_outbox.sql"),
        creates: "all",
    },
    Step {
        version: 2,
        name: "items",
        sql: include_str!("../migrations/0002_items.sql"),
        creates: "item_count",
    },
];

/// The version that this program needs.
const NEEDED: u32 = 2;

impl Inner {
    pub(crate) fn migrations(&self) -> Vec<Migration> {
        STEPS.iter().map(|step| self.rendered(step)).collect()
    }

    pub(crate) async fn migration_state(&self) -> Result<MigrationState> {
        let mut lent = self.operate_pool.begin(WHAT).await?;
        let mut applied = 0;
        if self.exists(&mut lent, "migration").await? {
            applied = self.ledger(&mut lent).await?.last().map_or(0, |(version, _)| *version);
        }
        for step in STEPS {
            if step.version > applied && self.exists(&mut lent, step.creates).await? {
                applied = step.version;
            }
        }
        lent.commit(WHAT).await?;
        lent.give_back();
        Ok(MigrationState {
            applied,
            needed: NEEDED,
        })
    }

    /// The lock makes those that migrate at the same time wait for each other. It is the connection's own and goes with
    /// it: after an error the connection is dropped.
    pub(crate) async fn migrate(&self) -> Result<Vec<Migration>> {
        let mut lent = self.operate_pool.begin(WHAT).await?;
        let lock = format!("sendoff {}", checksum(&self.config.names.to_string()));
        let values = params! { "lock" => &lock, "patience" => PATIENCE };
        let locked = lent.rows(WHAT, "SELECT GET_LOCK(:lock, :patience)", values).await?;
        if locked.first().map_or(Ok(0), |row| number(WHAT, row, 0))? != 1 {
            return Err(Error::new(ErrorKind::Busy, WHAT)
                .because(format!("another program has been migrating for {PATIENCE} s"))
                .next_step("look at what it does, and try again"));
        }
        if let Some(create) = self.missing_schema(&mut lent).await? {
            lent.script(WHAT, &create).await?;
        }
        lent.script(WHAT, self.texts.ledger_create.first()).await?;
        let ledger = self.ledger(&mut lent).await?;
        check_ledger(&ledger)?;
        let mut applied = Vec::new();
        for step in STEPS
            .iter()
            .filter(|step| ledger.iter().all(|(version, _)| *version != step.version))
        {
            let migration = self.rendered(step);
            let is_there = self.exists(&mut lent, step.creates).await?;
            if !is_there {
                lent.script(WHAT, &migration.sql).await?;
            }
            lent.script(WHAT, &migration.note).await?;
            if !is_there {
                applied.push(migration);
            }
        }
        lent.commit(WHAT).await?;
        lent.rows(WHAT, "SELECT RELEASE_LOCK(:lock)", params! { "lock" => lock })
            .await?;
        lent.give_back();
        self.write_windows().await?;
        Ok(applied)
    }

    pub(crate) async fn before_migrations(&self) -> Result<String> {
        let mut lent = self.operate_pool.begin(WHAT).await?;
        let mut script = self.missing_schema(&mut lent).await?.unwrap_or_default();
        if !self.exists(&mut lent, "migration").await? {
            script += &format!("{};\n", self.texts.ledger_create.first());
        }
        lent.commit(WHAT).await?;
        lent.give_back();
        Ok(script)
    }

    /// What creates the configured schema, unless it is there: that needs a right which an owner of tables may not have.
    async fn missing_schema(&self, lent: &mut Lent) -> Result<Option<String>> {
        let Some(schema) = self.config.names.schema() else {
            return Ok(None);
        };
        let sql = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = :schema";
        let rows = lent.rows(WHAT, sql, params! { "schema" => schema }).await?;
        let is_missing = rows.first().map_or(Ok(0), |row| number(WHAT, row, 0))? == 0;
        Ok(is_missing.then(|| format!("CREATE DATABASE IF NOT EXISTS {schema};\n")))
    }

    fn rendered(&self, step: &Step) -> Migration {
        let (table, checksum) = (self.config.names.render("outbox_migration"), checksum(step.sql));
        let Step { version, name, .. } = step;
        Migration {
            version: *version,
            name,
            sql: self.config.names.render(step.sql),
            note: format!("INSERT INTO {table} (version, name, checksum) VALUES ({version}, '{name}', '{checksum}');"),
        }
    }

    async fn exists(&self, lent: &mut Lent, table: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM information_schema.tables \
            WHERE table_schema = coalesce(:schema, DATABASE()) AND table_name = :name";
        let names = &self.config.names;
        let name = format!("{}{table}", names.prefix());
        let rows = lent
            .rows(WHAT, sql, params! { "schema" => names.schema(), "name" => name })
            .await?;
        Ok(rows.first().map_or(Ok(0), |row| number(WHAT, row, 0))? > 0)
    }

    async fn ledger(&self, lent: &mut Lent) -> Result<Vec<(u32, String)>> {
        let rows = lent.rows(WHAT, self.texts.ledger_read.first(), ()).await?;
        rows.iter()
            .map(|row| {
                let version = u32::try_from(number(WHAT, row, 0)?).unwrap_or(u32::MAX);
                Ok((version, text(WHAT, row, 1)?))
            })
            .collect()
    }
}

fn check_ledger(ledger: &[(u32, String)]) -> Result<()> {
    for (version, written) in ledger {
        let Some(step) = STEPS.iter().find(|step| step.version == *version) else {
            return Err(Error::new(ErrorKind::SchemaTooNew, "the outbox's tables are too new")
                .because(format!("they are at version {version} and this program knows {NEEDED}"))
                .next_step("install a newer Sendoff; nothing was changed"));
        };
        if *written != checksum(step.sql) {
            return Err(Error::new(ErrorKind::Invalid, WHAT)
                .because(format!(
                    "step {version} ({}) was applied with another text than this program's",
                    step.name
                ))
                .next_step(
                    "use the release that created the tables, or compare them with `sendoff migrate --dry-run`",
                ));
        }
    }
    Ok(())
}

/// FNV-1a: it tells a changed text, and nobody tries to fool it.
fn checksum(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps_and_the_last_is_needed() {
        let versions: Vec<u32> = STEPS.iter().map(|step| step.version).collect();
        assert_eq!(versions, (1..=NEEDED).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_step_creates_last_proves_it() {
        for step in STEPS {
            let last = step.sql.rfind("CREATE ").map(|at| &step.sql[at..]).unwrap();
            assert!(last.contains(&format!("outbox_{}", step.creates)), "{}", step.name);
        }
    }

    #[test]
    fn a_changed_step_and_a_newer_ledger_are_refused() {
        let good = vec![(1, checksum(STEPS[0].sql))];
        assert!(check_ledger(&good).is_ok());
        let changed = check_ledger(&[(1, "0".repeat(16))]).unwrap_err();
        assert!(changed.to_string().contains("another text"), "{changed}");
        let newer = check_ledger(&[good[0].clone(), (NEEDED + 1, String::new())]).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::SchemaTooNew);
    }
}
