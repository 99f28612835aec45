//! The outbox as an application holds it.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use uuid::Uuid;

use super::statement::{Table, Texts, columns, json_rows, values};
use super::validate::validate;
use super::{Dialect, Names, OutboxTx, Param, Statement};
use crate::error::said_by;
use crate::message::Schedule;
use crate::{BoxError, Error, ErrorKind, Message, OnDuplicate, Result, Waker};

/// How many bytes of payload one statement of MySQL takes at most. They are written in hexadecimal, next to everything
/// else of the messages, and have to stay below the smallest usual `max_allowed_packet`, 16 MiB.
const MYSQL_BATCH_BYTES: usize = 2 << 20;

/// What emitting a message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emitted {
    /// It will be delivered once the transaction commits.
    Stored {
        /// Its id.
        id: Uuid,
    },
    /// Nothing was stored: its idempotency key was used within the deduplication window.
    Duplicate {
        /// The id of the message that used it.
        first: Uuid,
    },
}

impl Emitted {
    /// The id under which the message is, or was, delivered.
    pub fn id(self) -> Uuid {
        match self {
            Self::Stored { id } => id,
            Self::Duplicate { first } => first,
        }
    }

    /// Whether it was already there.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// Runs after a message's row was written, inside the caller's transaction. Its error reaches the caller, who then
/// decides about the transaction.
pub type CreatedHook = dyn Fn(&Message) -> Result<(), BoxError> + Send + Sync;

/// Emits messages into the outbox's tables. Cheap to clone; one a database.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    names: Names,
    postgres: Texts,
    sqlite: Texts,
    mysql: Texts,
    max_payload_bytes: usize,
    created: Vec<Box<CreatedHook>>,
    waker: Waker,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("names", &self.0.names)
            .finish_non_exhaustive()
    }
}

impl Outbox {
    /// The outbox with the default table names.
    pub fn new() -> Self {
        Self::default()
    }

    /// An outbox with other names, limits or hooks.
    pub fn builder() -> OutboxBuilder {
        OutboxBuilder::default()
    }

    /// Where its tables are.
    pub fn names(&self) -> &Names {
        &self.0.names
    }

    /// The bell of this outbox: hand it to a relay in the same process.
    pub fn waker(&self) -> &Waker {
        &self.0.waker
    }

    /// Wakes the relay. Call it after the commit; leaving it out costs latency, never a message.
    pub fn wake(&self) {
        self.0.waker.wake();
    }

    /// Writes one message in the caller's transaction: one statement, and no broker is touched.
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`] when the message cannot be stored as it is; nothing was sent to the database.
    /// - [`ErrorKind::Duplicate`] for a duplicate, if the message [asks for it](Message::on_duplicate).
    /// - [`ErrorKind::Hook`] when a `created` hook failed: the row is written, the caller decides about the transaction.
    /// - [`ErrorKind::Backend`] with the driver's error as its source.
    pub async fn emit<A, Tx: OutboxTx<A>>(&self, mut tx: Tx, message: impl Into<Message>) -> Result<Emitted> {
        let message = message.into();
        let mut emitted = self.emit_all(&mut tx, std::slice::from_ref(&message)).await?;
        emitted.pop().ok_or_else(|| answer_is_short(&message))
    }

    /// Writes many messages in the caller's transaction: on PostgreSQL one statement, whatever their number; on MySQL one
    /// for messages without idempotency key or schedule, as long as they fit into a packet.
    ///
    /// # Errors
    /// As [`Outbox::emit`]. A duplicate that is to fail does so after the others were written.
    pub async fn emit_many<A, Tx: OutboxTx<A>, M: Into<Message>>(
        &self,
        mut tx: Tx,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Emitted>> {
        let messages: Vec<Message> = messages.into_iter().map(Into::into).collect();
        self.emit_all(&mut tx, &messages).await
    }

    /// [`Outbox::emit`] for drivers that block, such as rusqlite.
    ///
    /// # Errors
    /// As [`Outbox::emit`], and [`ErrorKind::Unsupported`] for a driver that does not block.
    pub fn emit_blocking<A, Tx: OutboxTx<A>>(&self, tx: Tx, message: impl Into<Message>) -> Result<Emitted> {
        self.emit(tx, message)
            .now_or_never()
            .unwrap_or_else(|| Err(driver_is_async()))
    }

    /// [`Outbox::emit_many`] for drivers that block, such as rusqlite.
    ///
    /// # Errors
    /// As [`Outbox::emit_many`], and [`ErrorKind::Unsupported`] for a driver that does not block.
    pub fn emit_many_blocking<A, Tx: OutboxTx<A>, M: Into<Message>>(
        &self,
        tx: Tx,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Emitted>> {
        self.emit_many(tx, messages)
            .now_or_never()
            .unwrap_or_else(|| Err(driver_is_async()))
    }

    async fn emit_all<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<Vec<Emitted>> {
        for message in messages {
            validate(message, self.0.max_payload_bytes)?;
        }
        let holders = match tx.dialect() {
            Dialect::Postgres => self.emit_postgres(tx, messages).await?,
            Dialect::Sqlite => self.emit_sqlite(tx, messages).await?,
            Dialect::Mysql => self.emit_mysql(tx, messages).await?,
        };
        let mut emitted = Vec::with_capacity(messages.len());
        for (message, holder) in messages.iter().zip(holders) {
            if holder == message.id {
                self.run_created_hooks(message)?;
                emitted.push(Emitted::Stored { id: holder });
            } else if message.on_duplicate == OnDuplicate::Fail {
                return Err(duplicate(message, holder));
            } else {
                emitted.push(Emitted::Duplicate { first: holder });
            }
        }
        Ok(emitted)
    }

    /// The ids under which the messages are known, in order.
    async fn emit_postgres<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<Vec<Uuid>> {
        let texts = &self.0.postgres;
        let own_ids = || messages.iter().map(|message| message.id).collect();
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        if messages.iter().any(|message| message.idempotency_key.is_some()) {
            let holders = run(tx, &texts.emit_once, columns(messages), true).await?;
            return if holders.len() == messages.len() {
                Ok(holders)
            } else {
                Err(answer_is_short(&messages[0]))
            };
        }
        match messages {
            [message] => run(tx, &texts.emit, values(message).into(), false).await?,
            many => run(tx, &texts.emit_many, columns(many), false).await?,
        };
        Ok(own_ids())
    }

    /// As [`Self::emit_postgres`]. SQLite is in this process: a second statement is no round trip, and the transaction
    /// holds the write lock, so taking the key and emitting cannot be torn apart.
    async fn emit_sqlite<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<Vec<Uuid>> {
        let texts = &self.0.sqlite;
        if messages.len() > 1 && messages.iter().all(|message| message.idempotency_key.is_none()) {
            let rows = Param::Text(Some(json_rows(messages).into()));
            run(tx, &texts.emit_many, vec![rows], false).await?;
            return Ok(messages.iter().map(|message| message.id).collect());
        }
        let mut holders = Vec::with_capacity(messages.len());
        for message in messages {
            let mut holder = message.id;
            if let Some(key) = &message.idempotency_key {
                let text = |text: &'_ str| Param::Text(Some(text.to_owned().into()));
                let take = vec![Param::Uuid(message.id), text(&message.topic), text(key)];
                let taken = run(tx, &texts.emit_once, take, true).await?;
                holder = *taken.first().ok_or_else(|| answer_is_short(message))?;
            }
            if holder == message.id {
                run(tx, &texts.emit, values(message).into(), false).await?;
            }
            holders.push(holder);
        }
        Ok(holders)
    }

    /// As [`Self::emit_postgres`]. A message with an idempotency key or a schedule takes a statement of its own, which is a
    /// call of a procedure: MySQL has no statement that both writes and returns rows.
    async fn emit_mysql<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<Vec<Uuid>> {
        let texts = &self.0.mysql;
        let mut holders = Vec::with_capacity(messages.len());
        let mut rest = messages;
        while let Some(message) = rest.first() {
            let many = plain_batch(rest).max(1);
            if !is_plain(message) {
                let mut params: Vec<Param<'_>> = values(message).into();
                params[..3].rotate_left(1);
                params.push(Param::Int(Some(i64::from(is_delayed(message)))));
                let holder = run(tx, &texts.emit_once, params, true).await?;
                holders.push(*holder.first().ok_or_else(|| answer_is_short(message))?);
            } else if many == 1 {
                run(tx, &texts.emit, values(message).into(), false).await?;
                holders.push(message.id);
            } else {
                let rows = Param::Text(Some(json_rows(&rest[..many]).into()));
                run(tx, &texts.emit_many, vec![rows], false).await?;
                holders.extend(rest[..many].iter().map(|message| message.id));
            }
            rest = &rest[many..];
        }
        Ok(holders)
    }

    fn run_created_hooks(&self, message: &Message) -> Result<()> {
        for hook in &self.0.created {
            hook(message).map_err(|error| {
                Error::new(
                    ErrorKind::Hook,
                    format!("a created hook refused the message {}", message.id),
                )
                .because(error.to_string())
                .next_step("the row is written: roll the transaction back unless it should be sent all the same")
                .with_source(error)
            })?;
        }
        Ok(())
    }
}

/// Whether the message is written by nothing but an INSERT.
fn is_plain(message: &Message) -> bool {
    message.idempotency_key.is_none() && message.available.is_none()
}

/// Whether the message comes so long after the statement. The statement takes a moment, too.
fn is_delayed(message: &Message) -> bool {
    matches!(message.available, Some(Schedule::In(delay)) if !delay.is_zero())
}

/// How many of the first messages go into one statement of MySQL.
fn plain_batch(messages: &[Message]) -> usize {
    let mut bytes = 0;
    let fits = |message: &&Message| {
        bytes += message.payload.len();
        is_plain(message) && bytes <= MYSQL_BATCH_BYTES
    };
    messages.iter().take_while(fits).count()
}

async fn run<A, Tx: OutboxTx<A>>(
    tx: &mut Tx,
    sql: &str,
    params: Vec<Param<'_>>,
    returns_ids: bool,
) -> Result<Vec<Uuid>> {
    tx.run(&Statement::new(sql, params, returns_ids))
        .await
        .map_err(|error| {
            Error::new(ErrorKind::Backend, "the message could not be written to the outbox")
                .because(said_by(&*error))
                .next_step(
                    "roll back; if its table is missing run `sendoff migrate`, if it is denied grant the emit role",
                )
                .with_source(error)
        })
}

fn duplicate(message: &Message, first: Uuid) -> Error {
    let key = message.idempotency_key.as_deref().unwrap_or_default();
    Error::new(
        ErrorKind::Duplicate,
        format!(
            "{:?} with the idempotency key {key:?} was already emitted",
            message.topic
        ),
    )
    .because(format!("message {first} holds the key"))
    .next_step("nothing was stored; treat it as done, or use another key")
}

fn answer_is_short(message: &Message) -> Error {
    Error::new(
        ErrorKind::Backend,
        format!("the database did not say what became of message {}", message.id),
    )
    .because("a row of the answer is missing")
    .next_step("roll back and emit again; check that the outbox's functions and tables are of one version")
}

fn driver_is_async() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "a blocking emit was called on an asynchronous driver",
    )
    .next_step("use emit(…).await")
}

/// Sets up an [`Outbox`].
#[must_use]
pub struct OutboxBuilder {
    names: Names,
    table: Table,
    max_payload_bytes: usize,
    created: Vec<Box<CreatedHook>>,
    waker: Waker,
}

impl Default for OutboxBuilder {
    fn default() -> Self {
        Self {
            names: Names::default(),
            table: Table::Message,
            max_payload_bytes: 1 << 20,
            created: Vec::new(),
            waker: Waker::new(),
        }
    }
}

impl OutboxBuilder {
    /// Other table names than `outbox_…`.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Emits work items instead of messages: no relay delivers them, the application's own workers
    /// [claim](crate::store::WorkStore) them. Everything else stays as it is, idempotency keys and schedules included.
    pub fn items(mut self) -> Self {
        self.table = Table::Item;
        self
    }

    /// The largest payload that is accepted; 1 MiB unless set, which is what most brokers take.
    pub fn max_payload_bytes(mut self, limit: usize) -> Self {
        self.max_payload_bytes = limit;
        self
    }

    /// Adds a hook that runs after a message's row was written.
    pub fn on_created(mut self, hook: impl Fn(&Message) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        self.created.push(Box::new(hook));
        self
    }

    /// Shares a bell with a relay in the same process.
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self
    }

    /// The outbox.
    pub fn build(self) -> Outbox {
        Outbox(Arc::new(Inner {
            postgres: Texts::postgres(&self.names, self.table),
            sqlite: Texts::sqlite(&self.names, self.table),
            mysql: Texts::mysql(&self.names, self.table),
            names: self.names,
            max_payload_bytes: self.max_payload_bytes,
            created: self.created,
            waker: self.waker,
        }))
    }
}
