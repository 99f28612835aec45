//! Migrations of the schema.

use async_trait::async_trait;

use crate::Result;

/// One migration, as SQL with the configured table names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The number of the migration, from 1.
    pub version: u32,
    /// The name of the migration.
    pub name: &'static str,
    /// The SQL of the migration.
    pub sql: String,
    /// The SQL statement that records the migration in the migration table.
    pub note: String,
}

/// The version of the tables, and the version that this program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationState {
    /// The newest applied version; 0 when there are no tables.
    pub applied: u32,
    /// The version that this program needs.
    pub needed: u32,
}

/// Creates and updates the tables. The outbox records applied migrations in its own table.
#[async_trait]
pub trait MigrateStore: Send + Sync {
    /// All migrations of this program, in order.
    fn migrations(&self) -> Vec<Migration>;

    /// The SQL to run before the first missing migration: creates the schema and the migration table, if they do not
    /// exist.
    ///
    /// # Errors
    /// What the database says.
    async fn before_migrations(&self) -> Result<String> {
        Ok(String::new())
    }

    /// The version of the tables.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unreachable`], or another error of the database; missing tables are not an error.
    async fn migration_state(&self) -> Result<MigrationState>;

    /// Applies the missing migrations and returns them, and [writes the retention](MigrateStore::write_retention). Safe
    /// to repeat, and to run concurrently.
    ///
    /// # Errors
    /// [`crate::ErrorKind::SchemaTooNew`] when the tables are newer than this program; then nothing is changed.
    async fn migrate(&self) -> Result<Vec<Migration>>;

    /// Writes the configured deduplication window and inbox retention into the settings in the tables, which producers
    /// in every language use. Returns whether the values changed; if not, nothing is written.
    ///
    /// # Errors
    /// What the database says.
    async fn write_retention(&self) -> Result<bool> {
        Ok(false)
    }

    /// Fails unless the tables have exactly the version that this program needs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::SchemaMissing`], [`crate::ErrorKind::SchemaTooOld`], [`crate::ErrorKind::SchemaTooNew`],
    /// each with its next step.
    async fn check_schema(&self) -> Result<()> {
        let MigrationState { applied, needed } = self.migration_state().await?;
        if applied == needed {
            return Ok(());
        }
        let (kind, what, next) = if applied == 0 {
            (
                crate::ErrorKind::SchemaMissing,
                "the outbox's tables do not exist",
                "run `sendoff migrate`",
            )
        } else if applied < needed {
            (
                crate::ErrorKind::SchemaTooOld,
                "the outbox's tables are too old",
                "run `sendoff migrate`",
            )
        } else {
            (
                crate::ErrorKind::SchemaTooNew,
                "the outbox's tables are too new",
                "install a newer version of sendoff",
            )
        };
        Err(crate::Error::new(kind, what)
            .because(format!(
                "the tables are at version {applied} and this program needs version {needed}"
            ))
            .next_step(next))
    }
}
