//! One handler, typed or raw.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::{Outcome, Outgoing};
use serde::de::DeserializeOwned;

use crate::decode::decode;
use crate::{Context, HandlerError};

/// The function that the sink calls for a message.
#[async_trait]
pub(crate) trait Handler: Send + Sync {
    async fn handle(&self, outgoing: Arc<Outgoing>) -> Outcome;
}

/// A function that takes the decoded payload.
pub(crate) struct Typed<F, T> {
    function: F,
    payload: std::marker::PhantomData<fn() -> T>,
}

impl<F, T> Typed<F, T> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            payload: std::marker::PhantomData,
        }
    }
}

#[async_trait]
impl<F, T, Fut> Handler for Typed<F, T>
where
    F: Fn(T, Context) -> Fut + Send + Sync,
    T: DeserializeOwned + Send,
    Fut: Future<Output = Result<(), HandlerError>> + Send,
{
    async fn handle(&self, outgoing: Arc<Outgoing>) -> Outcome {
        match decode(&outgoing) {
            Ok(payload) => outcome((self.function)(payload, Context::new(outgoing)).await),
            Err(reason) => Outcome::Permanent(reason),
        }
    }
}

/// A function that takes the message as it is.
pub(crate) struct Raw<F>(pub(crate) F);

#[async_trait]
impl<F, Fut> Handler for Raw<F>
where
    F: Fn(Arc<Outgoing>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), HandlerError>> + Send,
{
    async fn handle(&self, outgoing: Arc<Outgoing>) -> Outcome {
        outcome((self.0)(outgoing).await)
    }
}

fn outcome(result: Result<(), HandlerError>) -> Outcome {
    result.map_or_else(HandlerError::into_outcome, |()| Outcome::Delivered)
}
