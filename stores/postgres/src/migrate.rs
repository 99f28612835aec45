//! Room: migrate. The steps of the schema, and the ledger of those that were applied.

use sendoff::store::{Migration, MigrationState};
use sendoff::{Error, ErrorKind, Result};
use tokio_postgres::types::Type;

use crate::decode::column;
use crate::pipeline::Param;
use crate::pool::Lent;
use crate::store::Inner;

const WHAT: &str = "the schema could not be migrated";

/// One step of the schema.
struct Step {
    version: u32,
    name: &'static str,
    sql: &'static str,
    /// A table that this step creates: where it is there and the ledger does not know, somebody ran the text by hand.
    creates: &'static str,
}

const STEPS: &[Step] = &[
    Step {
        version: 1,
        name: "outbox",
        sql: include_str!("../migrations/0001_outbox.sql"),
        creates: "outbox_message",
    },
    Step {
        version: 2,
        name: "items",
        sql: include_str!("../migrations/0002_items.sql"),
        creates: "outbox_item",
    },
];

/// $1 the schema, or NULL for the one that is used. Who may create in it, besides its owner, this role and superusers.
const WHO_CREATES: &str = "SELECT quote_ident(n.nspname), string_agg(coalesce(quote_ident(r.rolname), 'PUBLIC'), ', ')
    FROM pg_namespace AS n CROSS JOIN aclexplode(n.nspacl) AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee
    WHERE n.nspname = coalesce($1, current_schema()) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
        AND r.rolname IS DISTINCT FROM current_user AND r.rolsuper IS NOT TRUE
    GROUP BY n.nspname";

/// $1 the table, $2 its sequence. How many numbers a session takes at once, and whether the triggers are on.
const NUMBERS: &str = "SELECT
        (SELECT seqcache FROM pg_sequence WHERE seqrelid = to_regclass($2)),
        (SELECT bool_and(tgenabled IN ('O', 'A')) FROM pg_trigger WHERE tgrelid = to_regclass($1) AND NOT tgisinternal)
    WHERE to_regclass($2) IS NOT NULL";

/// The version that this program needs.
const NEEDED: u32 = 2;

impl Inner {
    pub(crate) fn migrations(&self) -> Vec<Migration> {
        STEPS.iter().map(|step| self.rendered(step)).collect()
    }

    pub(crate) async fn migration_state(&self) -> Result<MigrationState> {
        let lent = self.operate_pool.lend().await?;
        lent.begin(WHAT, &[]).await?;
        let mut applied = 0;
        if self.exists(&lent, "outbox_migration").await? {
            applied = self.ledger(&lent).await?.last().map_or(0, |(version, _)| *version);
        }
        for step in STEPS {
            if step.version > applied && self.exists(&lent, step.creates).await? {
                applied = step.version;
            }
        }
        if applied == NEEDED {
            self.refuse_other_numbers(&lent).await?;
        }
        lent.commit(WHAT, &[]).await?;
        lent.give_back();
        Ok(MigrationState {
            applied,
            needed: NEEDED,
        })
    }

    /// All steps are one transaction: other programs see the old tables or the new ones. The lock makes those that
    /// migrate at the same time wait for each other; it goes with the transaction, so a pooler does no harm.
    pub(crate) async fn migrate(&self) -> Result<Vec<Migration>> {
        let lent = self.operate_pool.lend().await?;
        lent.begin(WHAT, &[]).await?;
        let lock = format!("sendoff migrate {}", self.config.names);
        let params: [Param<'_>; 1] = [(&lock, Type::TEXT)];
        lent.go_on(WHAT, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &params)
            .await?;
        if let Some(create) = self.missing_schema(&lent).await? {
            lent.script(WHAT, &create).await?;
        }
        self.refuse_shared_schema(&lent).await?;
        lent.script(WHAT, &self.texts.ledger_create).await?;
        let ledger = self.ledger(&lent).await?;
        check_ledger(&ledger)?;
        let mut applied = Vec::new();
        for step in STEPS
            .iter()
            .filter(|step| ledger.iter().all(|(version, _)| *version != step.version))
        {
            let migration = self.rendered(step);
            let is_there = self.exists(&lent, step.creates).await?;
            if !is_there {
                lent.script(WHAT, &migration.sql).await?;
            }
            lent.script(WHAT, &migration.note).await?;
            if !is_there {
                applied.push(migration);
            }
        }
        lent.commit(WHAT, &[]).await?;
        lent.give_back();
        self.write_windows().await?;
        Ok(applied)
    }

    pub(crate) async fn before_migrations(&self) -> Result<String> {
        let lent = self.operate_pool.lend().await?;
        lent.begin(WHAT, &[]).await?;
        let mut script = self.missing_schema(&lent).await?.unwrap_or_default();
        if !self.exists(&lent, "outbox_migration").await? {
            script += &format!("{};\n", self.texts.ledger_create.trim_end());
        }
        lent.commit(WHAT, &[]).await?;
        lent.give_back();
        Ok(script)
    }

    /// What creates the configured schema, unless it is there: that needs a right which an owner of tables may not have.
    async fn missing_schema(&self, lent: &Lent) -> Result<Option<String>> {
        let Some(schema) = self.config.names.schema() else {
            return Ok(None);
        };
        let params: [Param<'_>; 1] = [(&schema, Type::TEXT)];
        let rows = lent.go_on(WHAT, "SELECT to_regnamespace($1) IS NULL", &params).await?;
        let is_missing = rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false));
        Ok(is_missing.then(|| format!("CREATE SCHEMA {schema};\n")))
    }

    /// Readers rely on it that numbers are handed out in order, by the trigger.
    async fn refuse_other_numbers(&self, lent: &Lent) -> Result<()> {
        let table = self.config.names.render("outbox_message");
        let sequence = self.config.names.render("outbox_message_seq_seq");
        let params: [Param<'_>; 2] = [(&table, Type::TEXT), (&sequence, Type::TEXT)];
        let rows = lent.go_on(WHAT, NUMBERS, &params).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (cache, enabled) = (column::<i64>(WHAT, row, 0)?, column::<bool>(WHAT, row, 1)?);
        let wrong = |why: &str, remedy: String| {
            Error::new(ErrorKind::Invalid, "the outbox's tables were changed")
                .because(why)
                .next_step(remedy)
        };
        if cache > 1 {
            let why = format!("{sequence} hands out {cache} numbers at once, so messages may be passed over");
            return Err(wrong(&why, format!("`ALTER SEQUENCE {sequence} CACHE 1;`")));
        }
        if !enabled {
            let why = format!("a trigger of {table} is disabled, so messages have no lane, no limits and no schedule");
            return Err(wrong(&why, format!("`ALTER TABLE {table} ENABLE TRIGGER USER;`")));
        }
        Ok(())
    }

    /// Whoever may create functions and operators beside the tables could put some in front of the server's own, for every
    /// role that has this schema in its search path.
    async fn refuse_shared_schema(&self, lent: &Lent) -> Result<()> {
        let schema = self.config.names.schema();
        let params: [Param<'_>; 1] = [(&schema, Type::TEXT)];
        let rows = lent.go_on(WHAT, WHO_CREATES, &params).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (schema, who) = (column::<String>(WHAT, row, 0)?, column::<String>(WHAT, row, 1)?);
        Err(Error::new(ErrorKind::Invalid, WHAT)
            .because(format!("others may create objects in the schema {schema}: {who}"))
            .next_step(format!(
                "`REVOKE CREATE ON SCHEMA {schema} FROM {who};`, or give the outbox a schema of its own: \
                 `schema = \"outbox\"` under [database]"
            )))
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

    async fn exists(&self, lent: &Lent, table: &str) -> Result<bool> {
        let table = self.config.names.render(table);
        let params: [Param<'_>; 1] = [(&table, Type::TEXT)];
        let rows = lent.go_on(WHAT, "SELECT to_regclass($1) IS NOT NULL", &params).await?;
        rows.first().map_or(Ok(false), |row| column(WHAT, row, 0))
    }

    async fn ledger(&self, lent: &Lent) -> Result<Vec<(u32, String)>> {
        let rows = lent.go_on(WHAT, &self.texts.ledger_read, &[]).await?;
        rows.iter()
            .map(|row| Ok((column::<i32>(WHAT, row, 0)?.unsigned_abs(), column(WHAT, row, 1)?)))
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
fn checksum(sql: &str) -> String {
    let hash = sql.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
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
    fn a_changed_step_and_a_newer_ledger_are_refused() {
        let good = vec![(1, checksum(STEPS[0].sql))];
        assert!(check_ledger(&good).is_ok());
        let changed = check_ledger(&[(1, "0".repeat(16))]).unwrap_err();
        assert!(changed.to_string().contains("another text"), "{changed}");
        let newer = check_ledger(&[good[0].clone(), (NEEDED + 1, String::new())]).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::SchemaTooNew);
    }
}
