//! `MigrateStore`. Redis has no schema, so it returns `Unsupported`.

use async_trait::async_trait;
use sendoff::store::{MigrateStore, Migration, MigrationState};
use sendoff::{Error, ErrorKind, Result};

use crate::RedisStore;

#[async_trait]
impl MigrateStore for RedisStore {
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
    Error::new(ErrorKind::Unsupported, "a store on Redis has no schema").next_step("use the store without migrating")
}
