//! Sends notifications: commits of this process wake relays in other processes.

use std::time::Duration;

use sendoff::Waker;
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::listen::channel;
use crate::pipeline::Param;

/// Signals within this time are one. It bounds what the database has to do, however many commits there are.
const DEBOUNCE: Duration = Duration::from_millis(2);
/// The pause after a signal could not be sent.
const PAUSE: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// Sends a `NOTIFY` for every signal of the wake source, in its own transaction after the commit, for relays in
    /// other processes. It runs until it is dropped; spawn it in a service that emits and has no relay.
    ///
    /// ```no_run
    /// # fn start(store: sendoff_store_postgres::PostgresStore, outbox: sendoff::Outbox) {
    /// tokio::spawn(async move { store.notify_on_wake(outbox.waker()).await });
    /// // and each transaction ends with: outbox.commit(tx).await?;
    /// # }
    /// ```
    ///
    /// A signal that is lost costs latency, never a message: relays still poll.
    pub async fn notify_on_wake(&self, waker: &Waker) {
        let channel = channel(self.names());
        loop {
            waker.woken().await;
            tokio::time::sleep(DEBOUNCE).await;
            if let Err(error) = self.notify(&channel).await {
                tracing::debug!(event = "notify_failed", %error, "cannot notify relays; they find the messages when they poll");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn notify(&self, channel: &str) -> sendoff::Result<()> {
        let what = "relays could not be woken";
        let params: [Param<'_>; 1] = [(&channel, Type::TEXT)];
        self.0.emit_pool.run(what, "SELECT pg_notify($1, '')", &params).await?;
        Ok(())
    }
}
