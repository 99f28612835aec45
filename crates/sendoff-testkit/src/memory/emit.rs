//! Part: emit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::emit::{Dialect, OutboxTx, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Error, ErrorKind, Message, Result, Uuid};

use super::clock::Micros;
use super::content::{Content, contents};
use super::dedup::Take;
use super::tables::{UNROUTED, WaitState, Waiting};
use super::{MemoryStore, Verb};

/// How long a transaction waits for another that took the same idempotency key. Two that wait for each other would
/// never end without it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

static NEXT_TRANSACTION: AtomicU64 = AtomicU64::new(1);

/// The marker of this adapter; always inferred.
#[derive(Debug)]
pub struct MemoryAdapter;

/// An open transaction. Its rows have their numbers already and are seen by nobody until it commits; dropping it rolls
/// it back.
#[derive(Debug)]
pub struct MemoryTransaction {
    store: MemoryStore,
    number: u64,
    began: Micros,
    rows: Vec<(i64, Arc<Content>)>,
    open: bool,
}

impl MemoryStore {
    /// Begins a transaction to emit in with [`sendoff::Outbox::emit`].
    ///
    /// # Errors
    /// The faults that were ordered.
    pub async fn transaction(&self) -> Result<MemoryTransaction> {
        self.faults().before(Verb::Begin).await?;
        Ok(MemoryTransaction {
            store: self.clone(),
            number: NEXT_TRANSACTION.fetch_add(1, Ordering::Relaxed),
            began: self.shared.clock.now(),
            rows: Vec::new(),
            open: true,
        })
    }
}

impl MemoryStore {
    /// Commits a small message of each of these topics.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn emit_topics(&self, topics: &[&str]) -> Result<()> {
        let mut tx = self.begin().await?;
        let message = |topic: &&str| Message::bytes(*topic, "text/plain", "x");
        tx.emit(&topics.iter().map(message).collect::<Vec<_>>()).await?;
        tx.commit().await
    }
}

#[async_trait]
impl EmitStore for MemoryStore {
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>> {
        Ok(Box::new(self.transaction().await?))
    }
}

#[async_trait]
impl EmitTransaction for MemoryTransaction {
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>> {
        let outbox = self.store.outbox().clone();
        outbox.emit_many(self, messages.to_vec()).await.map(Into::into)
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        let store = self.store.clone();
        store.faults().before(Verb::Commit).await?;
        self.end(true);
        store.faults().after(Verb::Commit)
    }

    async fn rollback(mut self: Box<Self>) -> Result<()> {
        self.end(false);
        Ok(())
    }
}

impl MemoryTransaction {
    fn end(&mut self, commit: bool) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let now = self.store.shared.clock.now();
        let mut tables = self.store.tables();
        tables.dedup.end(self.number, commit, now);
        for (seq, content) in self.rows.drain(..).filter(|_| commit) {
            let lane = content.lane(self.store.shared.lanes);
            match content.available_at {
                Some(at) if at > self.began => {
                    let row = Waiting {
                        content,
                        attempts: 0,
                        state: WaitState::Scheduled,
                        due_at: Some(at),
                        last_error: None,
                        history: Vec::new(),
                    };
                    tables.waiting.insert((lane, seq, UNROUTED.into(), row.content.id), row);
                }
                Some(_) | None => {
                    tables.ready.insert((lane, seq), content);
                }
            }
        }
        drop(tables);
        self.store.shared.ended.notify_waiters();
    }

    /// The id that holds the idempotency key of a message; `None` when it may be written.
    async fn take_key(&self, content: &Content) -> Result<Option<Uuid>> {
        let Some(key) = &content.idempotency_key else {
            return Ok(None);
        };
        let once = (content.topic.clone(), key.clone());
        let taking = async {
            loop {
                // Armed before the look, so that an end in between is not missed.
                let ended = self.store.shared.ended.notified();
                let now = self.store.shared.clock.now();
                let take = self.store.tables().dedup.take(&once, content.id, self.number, now);
                match take {
                    Take::Taken => return None,
                    Take::Holder(holder) => return Some(holder),
                    Take::Wait => ended.await,
                }
            }
        };
        tokio::time::timeout(LOCK_TIMEOUT, taking).await.map_err(|elapsed| {
            Error::new(ErrorKind::Busy, "another transaction holds the idempotency key")
                .because("it is still open")
                .next_step("roll back and emit again")
                .with_source(elapsed)
        })
    }

    fn write(&mut self, content: Content) {
        let mut tables = self.store.tables();
        let seq = tables.next_seq;
        tables.next_seq += 1;
        drop(tables);
        self.rows.push((seq, Arc::new(content)));
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl OutboxTx<MemoryAdapter> for &mut MemoryTransaction {
    /// Its statements take their values as plain columns, which is all that is looked at here.
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        self.store.faults().before(Verb::Emit).await?;
        let mut ids = Vec::new();
        for content in contents(statement.params(), self.began)? {
            let holder = self.take_key(&content).await?;
            ids.push(holder.unwrap_or(content.id));
            if holder.is_none() {
                self.write(content);
            }
        }
        Ok(if statement.returns_ids() { ids } else { Vec::new() })
    }
}
