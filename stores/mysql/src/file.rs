//! Moves rows that a trigger could not put into the right table. Relays do this when they read such a row.

use mysql_async::params;
use sendoff::{ErrorKind, Result};

use crate::conflict::transact;
use crate::decode::{lane, number};
use crate::pool::PooledConnection;
use crate::store::{FIRST_SIDE_LANE, Inner};

const WHAT: &str = "scheduled messages could not be moved to the waiting table";

impl Inner {
    /// Moves messages that are to come later to the waiting table, and deletes those that were written before. Another
    /// relay may be at it: then this one passes over what that one has locked.
    ///
    /// What goes wrong is said and tried again by the next read: the other messages go on.
    pub(crate) async fn file(&self) {
        self.file_once().await;
    }

    /// The same until there are none left, for whoever has to find all of them.
    pub(crate) async fn file_all(&self) {
        while self.file_once().await > 0 {}
    }

    async fn file_once(&self) -> usize {
        let filed: Result<usize> =
            async { transact!(self.operate_pool, WHAT, connection => self.file_some(&mut connection).await) }.await;
        filed.unwrap_or_else(|error| {
            // In an outage everything fails, and the relay tells.
            if error.kind() == ErrorKind::Unreachable {
                tracing::debug!(event = "schedule_failed", %error, "cannot move scheduled messages to outbox_waiting; will retry");
                return 0;
            }
            tracing::warn!(event = "schedule_failed", %error, "cannot move scheduled messages to outbox_waiting; will retry");
            0
        })
    }

    async fn file_some(&self, connection: &mut PooledConnection) -> Result<usize> {
        let sql = &self.texts.read_ready;
        let found = connection.rows(WHAT, sql.at(3), ()).await?;
        for row in &found {
            let is_later = lane(WHAT, row, 0)? == FIRST_SIDE_LANE;
            let statement = if is_later { sql.at(4) } else { sql.at(5) };
            let values = params! { "seq" => number(WHAT, row, 1)? };
            connection.rows(WHAT, statement, values).await?;
        }
        Ok(found.len())
    }
}
