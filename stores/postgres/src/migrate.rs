//! Migrate: the steps of the schema, and the ledger of the applied steps.

use async_trait::async_trait;
use sendoff::store::{MigrateStore, Migration, MigrationState, Step};
use sendoff::{Error, ErrorKind, Result};
use tokio_postgres::types::Type;

use crate::decode::column;
use crate::pipeline::Param;
use crate::pool::PooledConnection;
use crate::store::{Inner, PostgresStore};

const WHAT: &str = "the schema could not be migrated";

const STEPS: &[Step] = &[Step {
    version: 1,
    name: "outbox",
    sql: concat!(
        include_str!("../migrations/0001_outbox.sql"),
        include_str!("../migrations/0001_jobs.sql")
    ),
}];

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

/// A table that each step creates: where it is there and the ledger does not know, somebody ran the text by hand.
const PROOFS: &[&str] = &["outbox_message"];

#[async_trait]
impl MigrateStore for PostgresStore {
    fn migrations(&self) -> Vec<Migration> {
        STEPS.iter().map(|step| step.migration(&self.0.config.names)).collect()
    }

    async fn before_migrations(&self) -> Result<String> {
        let connection = self.0.operate_pool.get().await?;
        connection.begin(WHAT, &[]).await?;
        let mut script = self.0.missing_schema(&connection).await?.unwrap_or_default();
        if !self.0.exists(&connection, "outbox_migration").await? {
            script += &format!("{};\n", self.0.texts.ledger_create.trim_end());
        }
        connection.commit(WHAT, &[]).await?;
        connection.give_back();
        Ok(script)
    }

    async fn migration_state(&self) -> Result<MigrationState> {
        let connection = self.0.operate_pool.get().await?;
        connection.begin(WHAT, &[]).await?;
        let mut applied = 0;
        if self.0.exists(&connection, "outbox_migration").await? {
            applied = self
                .0
                .ledger(&connection)
                .await?
                .last()
                .map_or(0, |(version, _)| *version);
        }
        for (step, proof) in STEPS.iter().zip(PROOFS) {
            if step.version > applied && self.0.exists(&connection, proof).await? {
                applied = step.version;
            }
        }
        if applied == Step::needed(STEPS) {
            self.0.refuse_other_numbers(&connection).await?;
        }
        connection.commit(WHAT, &[]).await?;
        connection.give_back();
        Ok(MigrationState {
            applied,
            needed: Step::needed(STEPS),
        })
    }

    /// All steps are one transaction: other programs see the old tables or the new ones. The lock makes those that
    /// migrate at the same time wait for each other; it goes with the transaction, so a pooler does no harm.
    async fn migrate(&self) -> Result<Vec<Migration>> {
        let connection = self.0.operate_pool.get().await?;
        connection.begin(WHAT, &[]).await?;
        self.0.lock_migrations(&connection, WHAT).await?;
        if let Some(create) = self.0.missing_schema(&connection).await? {
            connection.script(WHAT, &create).await?;
        }
        self.0.refuse_shared_schema(&connection).await?;
        connection.script(WHAT, &self.0.texts.ledger_create).await?;
        let ledger = self.0.ledger(&connection).await?;
        Step::check(STEPS, &ledger)?;
        let mut applied = Vec::new();
        for (step, proof) in STEPS
            .iter()
            .zip(PROOFS)
            .filter(|(step, _)| ledger.iter().all(|(version, _)| *version != step.version))
        {
            let migration = step.migration(&self.0.config.names);
            let is_there = self.0.exists(&connection, proof).await?;
            if !is_there {
                connection.script(WHAT, &migration.sql).await?;
            }
            connection.script(WHAT, &migration.note).await?;
            if !is_there {
                applied.push(migration);
            }
        }
        connection.commit(WHAT, &[]).await?;
        connection.give_back();
        self.write_retention().await?;
        Ok(applied)
    }

    async fn write_retention(&self) -> Result<bool> {
        self.0.write_retention().await
    }
}

impl Inner {
    /// Until the transaction ends.
    pub(crate) async fn lock_migrations(&self, connection: &PooledConnection, what: &str) -> Result<()> {
        let lock = format!("sendoff migrate {}", self.config.names);
        let params: [Param<'_>; 1] = [(&lock, Type::TEXT)];
        connection
            .run_next(what, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &params)
            .await?;
        Ok(())
    }

    /// What creates the configured schema, unless it is there: that needs a right which an owner of tables may not have.
    async fn missing_schema(&self, connection: &PooledConnection) -> Result<Option<String>> {
        let Some(schema) = self.config.names.schema() else {
            return Ok(None);
        };
        let params: [Param<'_>; 1] = [(&schema, Type::TEXT)];
        let rows = connection
            .run_next(WHAT, "SELECT to_regnamespace($1) IS NULL", &params)
            .await?;
        let is_missing = rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false));
        Ok(is_missing.then(|| format!("CREATE SCHEMA {schema};\n")))
    }

    /// Readers rely on it that numbers are handed out in order, by the trigger.
    async fn refuse_other_numbers(&self, connection: &PooledConnection) -> Result<()> {
        let table = self.config.names.render("outbox_message");
        let sequence = self.config.names.render("outbox_message_seq_seq");
        let params: [Param<'_>; 2] = [(&table, Type::TEXT), (&sequence, Type::TEXT)];
        let rows = connection.run_next(WHAT, NUMBERS, &params).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (cache, enabled) = (column::<i64>(WHAT, row, 0)?, column::<bool>(WHAT, row, 1)?);
        let wrong = |why: &str, remedy: String| {
            Error::new(ErrorKind::Invalid, "the outbox's tables were changed")
                .because(why)
                .next_step(remedy)
        };
        if cache > 1 {
            let why = format!("{sequence} has CACHE {cache} instead of 1, so messages may be skipped");
            return Err(wrong(&why, format!("`ALTER SEQUENCE {sequence} CACHE 1;`")));
        }
        if !enabled {
            let why = format!("a trigger of {table} is disabled, so messages get no lane, no limits and no schedule");
            return Err(wrong(&why, format!("`ALTER TABLE {table} ENABLE TRIGGER USER;`")));
        }
        Ok(())
    }

    /// Whoever may create functions and operators beside the tables could put some in front of the server's own, for every
    /// role that has this schema in its search path.
    async fn refuse_shared_schema(&self, connection: &PooledConnection) -> Result<()> {
        let schema = self.config.names.schema();
        let params: [Param<'_>; 1] = [(&schema, Type::TEXT)];
        let rows = connection.run_next(WHAT, WHO_CREATES, &params).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (schema, who) = (column::<String>(WHAT, row, 0)?, column::<String>(WHAT, row, 1)?);
        Err(Error::new(ErrorKind::Invalid, WHAT)
            .because(format!("other roles may create objects in the schema {schema}: {who}"))
            .next_step(format!(
                "`REVOKE CREATE ON SCHEMA {schema} FROM {who};`, or use a separate schema for the outbox: \
                 `schema = \"outbox\"` under [database]"
            )))
    }

    async fn exists(&self, connection: &PooledConnection, table: &str) -> Result<bool> {
        let table = self.config.names.render(table);
        let params: [Param<'_>; 1] = [(&table, Type::TEXT)];
        let rows = connection
            .run_next(WHAT, "SELECT to_regclass($1) IS NOT NULL", &params)
            .await?;
        rows.first().map_or(Ok(false), |row| column(WHAT, row, 0))
    }

    async fn ledger(&self, connection: &PooledConnection) -> Result<Vec<(u32, String)>> {
        let rows = connection.run_next(WHAT, &self.texts.ledger_read, &[]).await?;
        rows.iter()
            .map(|row| Ok((column::<i32>(WHAT, row, 0)?.unsigned_abs(), column(WHAT, row, 1)?)))
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
}
