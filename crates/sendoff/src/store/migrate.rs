//! Room: migrate.

use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// One step of the schema, as plain SQL with the configured names put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1.
    pub version: u32,
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub sql: String,
    /// The statement that writes it into the ledger.
    pub note: String,
}

/// How the tables stand against what this program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationState {
    /// The newest version that was applied; 0 when there is no table yet.
    pub applied: u32,
    /// The version that this program needs.
    pub needed: u32,
}

/// Creates and updates the tables. The ledger of what was applied is a table of the outbox's own.
#[async_trait]
pub trait MigrateStore: Send + Sync {
    /// All steps, in order.
    fn migrations(&self) -> Vec<Migration>;

    /// What has to run before the first of the missing steps, as plain SQL: the schema and the ledger, unless they are there.
    ///
    /// # Errors
    /// What the database says.
    async fn before_migrations(&self) -> Result<String> {
        Ok(String::new())
    }

    /// How the tables stand.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unreachable`] and what else the database says; missing tables are no error.
    async fn migration_state(&self) -> Result<MigrationState>;

    /// Applies the steps that are missing and returns them, and [writes the windows](MigrateStore::write_windows). Safe to
    /// run twice, and by several programs at once.
    ///
    /// # Errors
    /// [`crate::ErrorKind::SchemaTooNew`] when the tables are newer than this program; nothing is changed then.
    async fn migrate(&self) -> Result<Vec<Migration>>;

    /// Writes the windows of the store's config, where it has them, into the settings in the tables: producers in every
    /// language go by those. Returns whether they were others; nothing is written otherwise.
    ///
    /// # Errors
    /// What the database says.
    async fn write_windows(&self) -> Result<bool> {
        Ok(false)
    }

    /// Fails unless the tables are exactly what this program needs.
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
                "the outbox's tables are not there",
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
                "install a newer Sendoff",
            )
        };
        Err(crate::Error::new(kind, what)
            .because(format!("they are at version {applied} and this program needs {needed}"))
            .next_step(next))
    }
}

/// Names and values of the settings that say how long idempotency keys and notes of consumers are remembered, as the tables
/// keep them: in whole seconds, and one at least.
pub fn window_settings(dedup: Option<Duration>, inbox: Option<Duration>) -> Vec<(&'static str, String)> {
    let windows = [("dedup_window_seconds", dedup), ("inbox_window_seconds", inbox)];
    let value = |window: Duration| window.as_secs().max(1).to_string();
    windows
        .into_iter()
        .filter_map(|(name, window)| Some((name, value(window?))))
        .collect()
}
