//! Commit, and wake the relay.

use std::future::Future;

use futures::FutureExt;

use super::{CommitTx, Outbox};
use crate::{Error, ErrorKind, Result};

impl Outbox {
    /// Commits the transaction, and then wakes the relay: one in this process that has the [waker](Outbox::waker), or
    /// others through the store that listens to it. Without a wake-up, messages are delivered later, never lost.
    ///
    /// ```
    /// # use sendoff::{Outbox, emit::CommitTx};
    /// # async fn place_order<A, Tx: CommitTx<A>>(outbox: Outbox, tx: Tx) -> Result<(), Tx::Error> {
    /// // after outbox.emit(&mut tx, …)
    /// outbox.commit(tx).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The driver's own error, unchanged. The relay is not woken then.
    pub async fn commit<A, Tx: CommitTx<A>>(&self, tx: Tx) -> std::result::Result<(), Tx::Error> {
        self.wake_after(tx.commit()).await
    }

    /// [`Outbox::commit`] for drivers that block, such as rusqlite.
    ///
    /// # Errors
    /// The driver's own error as the source of [`ErrorKind::Backend`], and [`ErrorKind::Unsupported`] for a driver that
    /// does not block; the transaction is then rolled back.
    pub fn commit_blocking<A, Tx>(&self, tx: Tx) -> Result<()>
    where
        Tx: CommitTx<A>,
        Tx::Error: std::error::Error + Send + Sync + 'static,
    {
        match self.commit(tx).now_or_never() {
            Some(committed) => committed.map_err(|error| {
                Error::new(ErrorKind::Backend, "cannot commit")
                    .because(error.to_string())
                    .next_step("start the transaction again")
                    .with_source(error)
            }),
            None => Err(Error::new(ErrorKind::Unsupported, "a blocking commit cannot wait")
                .because("the driver is asynchronous")
                .next_step("use commit(tx).await")),
        }
    }

    /// Wakes the relay after any other way to commit, such as a closure that the driver runs in a transaction. An error
    /// wakes nobody.
    ///
    /// ```
    /// # use sendoff::{BoxError, Outbox};
    /// # async fn transaction() -> Result<u32, BoxError> { Ok(42) }
    /// # async fn place_order(outbox: Outbox) -> Result<(), BoxError> {
    /// let order = outbox.wake_after(transaction()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the future, unchanged.
    pub async fn wake_after<T, E>(
        &self,
        committed: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        let committed = committed.await?;
        self.wake();
        Ok(committed)
    }
}
