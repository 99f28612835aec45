//! The outbox of an application.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use tracing::Instrument;
use uuid::Uuid;

use super::created::Created;
use super::emitted::duplicate;
use super::statement::{Texts, columns, json_rows};
use super::validate::validate;
use super::{Dialect, Emitted, EmittedMany, Names, OutboxBuilder, OutboxTx, Param, Statement};
use crate::columns::values;
use crate::context::{Context, add_captured};
use crate::error::said_by;
use crate::message::Schedule;
use crate::{Error, ErrorKind, Headers, Message, Result, Waker};

/// The most payload bytes per statement on MySQL. They are written in hexadecimal, with the other fields of the
/// messages, and must stay below the smallest common `max_allowed_packet`, 16 MiB.
const MYSQL_BATCH_BYTES: usize = 2 << 20;

/// Emits messages into the outbox's tables. Cheap to clone; use one per database.
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
    /// An outbox with the default table names.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder, for an outbox with other names, limits or hooks.
    pub fn builder() -> OutboxBuilder {
        OutboxBuilder::default()
    }

    /// The names of the outbox's tables.
    pub fn names(&self) -> &Names {
        &self.0.names
    }

    /// The wake source of this outbox. A relay in the same process can use it.
    pub fn waker(&self) -> &Waker {
        &self.0.waker
    }

    /// Wakes the relay. [`Outbox::commit`] does it after the commit; without it, messages are delivered later, never
    /// lost.
    pub fn wake(&self) {
        self.0.waker.wake();
    }

    /// Writes one message in the caller's transaction, with one statement and without contacting a broker.
    ///
    /// Runs in the `tracing` span `emit` of the target `sendoff::emit`.
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`] when the message is invalid; nothing was sent to the database.
    /// - [`ErrorKind::Duplicate`] for a duplicate whose idempotency key is derived (every [`Event`](crate::Event)
    ///   without a key of its own), or that [asks for it](Message::on_duplicate). Nothing was stored. The database
    ///   reported no error, so the transaction is still usable, on PostgreSQL too.
    /// - [`ErrorKind::Hook`] when a `created` hook failed: the row is written, the caller decides about the
    ///   transaction.
    /// - [`ErrorKind::Backend`] with the driver's error as its source.
    pub async fn emit<A, Tx: OutboxTx<A>>(&self, mut tx: Tx, message: impl Into<Message>) -> Result<Emitted> {
        let mut message = message.into();
        let span = tracing::info_span!(
            target: "sendoff::emit", "emit", otel.kind = "producer", messaging.operation.name = "emit",
            messaging.message.id = %message.id, messaging.destination.name = message.topic,
        );
        span.in_scope(|| self.capture(std::slice::from_mut(&mut message)));
        let emit = self.emit_all(&mut tx, std::slice::from_ref(&message));
        let emitted = emit.instrument(span).await?;
        emitted.into_only().ok_or_else(|| answer_is_short(&message))
    }

    /// Writes many messages in the caller's transaction. On PostgreSQL this is one statement, whatever their number; on
    /// MySQL it is one statement for messages without an idempotency key or a schedule, as far as they fit into a
    /// packet.
    ///
    /// # Errors
    /// As [`Outbox::emit`]. After [`ErrorKind::Duplicate`] all messages that are no duplicates are written, and their
    /// `created` hooks have run; [`Duplicates`](super::Duplicates) has the result of each message. Commit to send them,
    /// or roll back. After [`ErrorKind::Invalid`] no message is written. After any other error, roll back.
    pub async fn emit_many<A, Tx: OutboxTx<A>, M: Into<Message>>(
        &self,
        mut tx: Tx,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<EmittedMany> {
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
    ) -> Result<EmittedMany> {
        self.emit_many(tx, messages)
            .now_or_never()
            .unwrap_or_else(|| Err(driver_is_async()))
    }

    /// The message with the context headers that an emit would add. For messages that the outbox does not emit itself.
    #[must_use]
    pub fn with_context(&self, message: impl Into<Message>) -> Message {
        let mut message = message.into();
        self.capture(std::slice::from_mut(&mut message));
        message
    }

    /// Adds the caller's context, captured once for all messages of the call.
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

    async fn emit_all<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<EmittedMany> {
        for message in messages {
            validate(message, self.0.max_payload_bytes)?;
        }
        let holders = match tx.dialect() {
            Dialect::Postgres => self.emit_postgres(tx, messages).await?,
            Dialect::Sqlite => self.emit_sqlite(tx, messages).await?,
            Dialect::Mysql => self.emit_mysql(tx, messages).await?,
        };
        let mut emitted = Vec::with_capacity(messages.len());
        let mut failing = None;
        // A duplicate fails after the hooks of all stored messages: the caller may commit these.
        for (message, holder) in messages.iter().zip(holders) {
            if holder == message.id {
                for hook in &self.0.created {
                    hook.run(message).await?;
                }
                emitted.push(Emitted::Stored { id: holder });
                continue;
            }
            if message.fails_as_duplicate() {
                failing.get_or_insert((message, holder));
            }
            emitted.push(Emitted::Duplicate { first: holder });
        }
        let emitted = EmittedMany::new(emitted);
        match failing {
            Some((message, first)) => Err(duplicate(message, first, emitted)),
            None => Ok(emitted),
        }
    }

    /// Emits on PostgreSQL. Returns an id for each message, in order: its own id, or for a duplicate the id of the
    /// first message.
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
            [message] => run(tx, &texts.emit, values(message), false).await?,
            many => run(tx, &texts.emit_many, columns(many), false).await?,
        };
        Ok(own_ids())
    }

    /// Emits on SQLite, and returns ids as [`Self::emit_postgres`]. SQLite runs in this process, so a second statement
    /// costs no round trip. The transaction holds the write lock, so no other writer comes between taking the key and
    /// emitting.
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
                run(tx, &texts.emit, values(message), false).await?;
            }
            holders.push(holder);
        }
        Ok(holders)
    }

    /// Emits on MySQL, and returns ids as [`Self::emit_postgres`]. A message with an idempotency key or a schedule
    /// needs its own statement, a procedure call: MySQL has no statement that both writes and returns rows.
    async fn emit_mysql<A, Tx: OutboxTx<A>>(&self, tx: &mut Tx, messages: &[Message]) -> Result<Vec<Uuid>> {
        let texts = &self.0.mysql;
        let mut holders = Vec::with_capacity(messages.len());
        let mut rest = messages;
        while let Some(message) = rest.first() {
            let many = plain_batch(rest).max(1);
            if !is_plain(message) {
                let mut params = values(message);
                params[..3].rotate_left(1);
                params.push(Param::Int(Some(i64::from(is_delayed(message)))));
                let holder = run(tx, &texts.emit_once, params, true).await?;
                holders.push(*holder.first().ok_or_else(|| answer_is_short(message))?);
            } else if many == 1 {
                run(tx, &texts.emit, values(message), false).await?;
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

/// Whether a plain INSERT can write the message.
fn is_plain(message: &Message) -> bool {
    message.idempotency_key.is_none() && message.available.is_none()
}

/// Whether the message has a delay. A delay counts from the statement.
fn is_delayed(message: &Message) -> bool {
    matches!(message.available, Some(Schedule::In(delay)) if !delay.is_zero())
}

/// How many of the first messages fit into one statement of MySQL.
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
            Error::new(ErrorKind::Backend, "cannot write the message to the outbox")
                .because(said_by(&*error))
                .next_step("roll back; if the table is missing, run `sendoff migrate`; if access is denied, grant the emit role")
                .with_source(error)
        })
}

fn answer_is_short(message: &Message) -> Error {
    Error::new(
        ErrorKind::Backend,
        format!("the database did not confirm message {}", message.id),
    )
    .because("the answer of the database has too few rows")
    .next_step("roll back and emit again; if it happens again, check the tables with `sendoff migrate status`")
}

fn driver_is_async() -> Error {
    Error::new(ErrorKind::Unsupported, "a blocking emit cannot wait")
        .because("the driver, or a hook registered with `on_created_async`, is asynchronous")
        .next_step("roll back, and call `emit(…).await` instead")
}
