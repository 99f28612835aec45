//! Part: migrate. Memory has no schema, and says so.

use async_trait::async_trait;
use sendoff::store::{MigrateStore, Migration, MigrationState};
use sendoff::{Error, ErrorKind, Result};

use super::MemoryStore;

#[async_trait]
impl MigrateStore for MemoryStore {
    fn migrations(&self) -> Vec<Migration> {
        Vec::new()
    }

    async fn migration_state(&self) -> Result<MigrationState> {
        Err(no_schema())
    }

    async fn migrate(&self) -> Result<Vec<Migration>> {
        Err(no_schema())
    }
}

fn no_schema() -> Error {
    Error::new(ErrorKind::Unsupported, "a store in memory has no schema").next_step("use it as it is")
}
