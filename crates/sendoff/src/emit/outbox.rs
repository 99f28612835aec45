//! The outbox as an application holds it.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use tracing::Instrument;
use uuid::Uuid;

use super::created::Created;
use super::statement::{Texts, columns, json_rows, values};
use super::validate::validate;
use super::{Dialect, Names, OutboxBuilder, OutboxTx, Param, Statement};
use crate::context::{Context, add_captured};
use crate::error::said_by;
use crate::message::Schedule;
use crate::{Error, ErrorKind, Headers, Message, OnDuplicate, Result, Waker};

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

/// Emits messages into the outbox's tables. Cheap to clone; one a database.
#[derive(Clone)]
pub struct Outbox(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) names: Names,
    pub(super) postgres: Texts,
    pub(super) sqlite: Texts,
    pub(super) mysql: Texts,
    pub(super) max_payload_bytes: usize,
    pub(super) contexts: Vec<Box<dyn Context>>,
    pub(super) created: Vec<Created>,
    pub(super) waker: Waker,
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
    /// Runs in a `tracing` span of its own, `emit` of the target `sendoff::emit`.
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`] when the message cannot be stored as it is; nothing was sent to the database.
    /// - [`ErrorKind::Duplicate`] for a duplicate, if the message [asks for it](Message::on_duplicate).
    /// - [`ErrorKind::Hook`] when a `created` hook failed: the row is written, the caller decides about the transaction.
    /// - [`ErrorKind::Backend`] with the driver's error as its source.
    pub async fn emit<A, Tx: OutboxTx<A>>(&self, mut tx: Tx, message: impl Into<Message>) -> Result<Emitted> {
        let mut message = message.into();
        let span = tracing::info_span!(
            target: "sendoff::emit", "emit", otel.kind = "producer", messaging.operation.name = "emit",
            messaging.message.id = %message.id, messaging.destination.name = message.topic,
        );
        span.in_scope(|| self.capture(std::slice::from_mut(&mut message)));
        let emit = self.emit_all(&mut tx, std::slice::from_ref(&message));
        let mut emitted = emit.instrument(span).await?;
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
        let mut messages: Vec<Message> = messages.into_iter().map(Into::into).collect();
        let span = tracing::info_span!(
            target: "sendoff::emit", "emit", otel.kind = "producer", messaging.operation.name = "emit",
            messaging.batch.message_count = messages.len(),
        );
        span.in_scope(|| self.capture(&mut messages));
        self.emit_all(&mut tx, &messages).instrument(span).await
    }

    /// [`Outbox::emit`] for drivers that block, such as rusqlite.
    ///
    /// # Errors
    /// As [`Outbox::emit`], and [`ErrorKind::Unsupported`] for a driver or a hook that does not block.
    pub fn emit_blocking<A, Tx: OutboxTx<A>>(&self, tx: Tx, message: impl Into<Message>) -> Result<Emitted> {
        self.emit(tx, message)
            .now_or_never()
            .unwrap_or_else(|| Err(driver_is_async()))
    }

    /// [`Outbox::emit_many`] for drivers that block, such as rusqlite.
    ///
    /// # Errors
    /// As [`Outbox::emit_many`], and [`ErrorKind::Unsupported`] for a driver or a hook that does not block.
    pub fn emit_many_blocking<A, Tx: OutboxTx<A>, M: Into<Message>>(
        &self,
        tx: Tx,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Emitted>> {
        self.emit_many(tx, messages)
            .now_or_never()
            .unwrap_or_else(|| Err(driver_is_async()))
    }

    /// The message with the headers that emitting it would add: where the caller is. For what is sent past the outbox.
    #[must_use]
    pub fn with_context(&self, message: impl Into<Message>) -> Message {
        let mut message = message.into();
        self.capture(std::slice::from_mut(&mut message));
        message
    }

    /// Adds where the caller is, once for all messages of the call.
    fn capture(&self, messages: &mut [Message]) {
        if self.0.contexts.is_empty() || messages.is_empty() {
            return;
        }
        let mut captured = Headers::new();
        for context in &self.0.contexts {
            context.capture(&mut captured);
        }
        for message in messages {
            add_captured(&mut message.headers, &captured);
        }
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
                for hook in &self.0.created {
                    hook.run(message).await?;
                }
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
    Error::new(ErrorKind::Unsupported, "a blocking emit would have had to wait")
        .because("its driver, or a created hook, is asynchronous")
        .next_step("roll back, and use emit(…).await")
}
