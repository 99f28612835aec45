//! The suite on the store in memory.

use async_trait::async_trait;
use sendoff::Result;

use super::{Capabilities, Database, Setup, StoreHarness, Subject};
use crate::MemoryStore;

/// Makes stores in memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryHarness;

#[async_trait]
impl StoreHarness for MemoryHarness {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sql: false,
            migrations: false,
            concurrent_transactions: true,
            jobs: false,
            figures: true,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Subject> {
        let mut builder = MemoryStore::builder();
        if setup.keep_delivered {
            builder = builder.keep_delivered();
        }
        if let Some(retention) = setup.dead_retention {
            builder = builder.dead_retention(retention);
        }
        if let Some(window) = setup.dedup_window {
            builder = builder.dedup_window(window);
        }
        Memory(builder.build()).open().await
    }
}

struct Memory(MemoryStore);

#[async_trait]
impl Database for Memory {
    async fn open(&self) -> Result<Subject> {
        Ok(Subject::new(self.0.clone(), Self(self.0.clone())))
    }

    async fn set_back(&self) -> Result<()> {
        self.0.set_back();
        Ok(())
    }
}
