//! The `created` hook.

use futures::future::BoxFuture;

use crate::{BoxError, Error, ErrorKind, Message, Result};

/// A hook that runs after a message's row was written, inside the caller's transaction. The caller gets the hook's
/// error and decides whether to roll back.
pub type CreatedHook = dyn Fn(&Message) -> Result<(), BoxError> + Send + Sync;

/// An asynchronous [`CreatedHook`].
pub type AsyncCreatedHook = dyn for<'a> Fn(&'a Message) -> BoxFuture<'a, Result<(), BoxError>> + Send + Sync;

/// A registered hook.
pub(super) enum Created {
    Sync(Box<CreatedHook>),
    Async(Box<AsyncCreatedHook>),
}

impl Created {
    pub(super) async fn run(&self, message: &Message) -> Result<()> {
        let done = match self {
            Self::Sync(hook) => hook(message),
            Self::Async(hook) => hook(message).await,
        };
        done.map_err(|error| {
            Error::new(
                ErrorKind::Hook,
                format!("a created hook rejected the message {}", message.id),
            )
            .because(error.to_string())
            .next_step("roll the transaction back; if you commit it, the message is sent, because its row is written")
            .with_source(error)
        })
    }
}
