//! For consumers: handles a message once, even if it arrives several times.

use uuid::Uuid;

use crate::emit::{Dialect, Names, OutboxTx, Param, Statement};
use crate::error::said_by;
use crate::{Error, ErrorKind, Result};

/// Whether a message is new to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a message that was already handled must not be handled again"]
pub enum Once {
    /// The message is new: handle it now, in the same transaction.
    First,
    /// The message was already handled: commit or roll back, and acknowledge the message.
    Seen,
}

/// Records handled messages in the consumer's own database and transaction.
///
/// Delivery is at least once: after a crash a message may arrive again, with the same id. A consumer that writes its
/// effect in the same transaction as this record has that effect exactly once: both are committed, or neither.
///
/// ```
/// # use sendoff::{Inbox, Once, Result, Uuid, emit::OutboxTx};
/// # async fn on_message<A, Tx: OutboxTx<A>>(tx: Tx, message_id: Uuid) -> Result<()> {
/// let inbox = Inbox::new();
/// if inbox.once(tx, message_id, "billing").await? == Once::First {
///     // write the effect here, in the same transaction
/// }
/// // commit, then acknowledge the message
/// # Ok(())
/// # }
/// ```
///
/// Records are kept for 30 days unless configured; a copy that arrives later counts as new.
#[derive(Debug, Clone)]
pub struct Inbox {
    postgres: String,
    sqlite: String,
    mysql: String,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::with_names(&Names::default())
    }
}

impl Inbox {
    /// The inbox with the default table names.
    pub fn new() -> Self {
        Self::default()
    }

    /// An inbox with other table names than `outbox_…`.
    pub fn with_names(names: &Names) -> Self {
        Self {
            postgres: names.render(include_str!("../sql/postgres/inbox_once.sql")),
            sqlite: names.render(include_str!("../sql/sqlite/inbox_once.sql")),
            mysql: names.render(include_str!("../sql/mysql/inbox_once.sql")),
        }
    }

    /// Records that `consumer` handles the message `id` in this transaction. Each consumer of a database has its own
    /// name. If two transactions handle one message at the same time, the second waits for the first.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an empty or too long consumer name; [`ErrorKind::Backend`] with the driver's error.
    pub async fn once<A, Tx: OutboxTx<A>>(&self, mut tx: Tx, id: Uuid, consumer: &str) -> Result<Once> {
        if consumer.is_empty() || consumer.len() > 255 || consumer.contains('\0') {
            return Err(Error::new(ErrorKind::Invalid, "the consumer's name is invalid")
                .because("the name is empty, longer than 255 bytes, or contains a NUL character")
                .next_step("use the name of the service, such as billing"));
        }
        let sql = match tx.dialect() {
            Dialect::Postgres => &self.postgres,
            Dialect::Sqlite => &self.sqlite,
            Dialect::Mysql => &self.mysql,
        };
        let params = vec![Param::Uuid(id), Param::Text(Some(consumer.into()))];
        let noted = tx.run(&Statement::new(sql, params, true)).await.map_err(|error| {
            Error::new(ErrorKind::Backend, format!("cannot record message {id} in the inbox"))
                .because(said_by(&*error))
                .next_step("roll back; if the table is missing, run `sendoff migrate` on the consumer's database")
                .with_source(error)
        })?;
        Ok(if noted.is_empty() { Once::Seen } else { Once::First })
    }
}
