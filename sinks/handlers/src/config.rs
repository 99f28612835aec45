//! Registration of handlers, and their limits.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Outgoing, Pattern, Result};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::handler::{Handler, Raw, Typed};
use crate::{Context, HandlerError, Handlers};

/// Builds [`Handlers`].
#[must_use]
pub struct HandlersBuilder {
    registered: Vec<(String, Arc<dyn Handler>)>,
    concurrency: usize,
    timeout: Duration,
}

impl Default for HandlersBuilder {
    fn default() -> Self {
        Self {
            registered: Vec::new(),
            concurrency: 64,
            timeout: Duration::from_secs(30),
        }
    }
}

impl HandlersBuilder {
    /// Registers a handler for messages whose topic matches `pattern` (a [`Pattern`]) and no earlier pattern. The
    /// handler gets the payload decoded from JSON.
    pub fn on<T, F, Fut>(self, pattern: &str, handler: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        self.register(pattern, Arc::new(Typed::new(handler)))
    }

    /// Registers a handler that gets the message with its raw payload, of any content type. It handles messages whose
    /// topic matches `pattern` and no earlier pattern.
    pub fn on_raw<F, Fut>(self, pattern: &str, handler: F) -> Self
    where
        F: Fn(Arc<Outgoing>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        self.register(pattern, Arc::new(Raw(handler)))
    }

    fn register(mut self, pattern: &str, handler: Arc<dyn Handler>) -> Self {
        self.registered.push((pattern.to_owned(), handler));
        self
    }

    /// Sets how many messages are handled at the same time; 64 unless set.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit;
        self
    }

    /// Sets how long a handler may take for a message before it is cancelled; 30 seconds unless set. A handler is
    /// cancelled only at an await: one that blocks its thread is not cancelled.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Builds the sink from the registered handlers.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid pattern, a pattern that is registered twice, no handler at all, or a limit
    /// of 0.
    pub fn build(self) -> Result<Handlers> {
        let invalid = |what: String, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        if self.registered.is_empty() {
            return invalid(
                "the handlers sink has no handler".into(),
                "register a handler with on or on_raw",
            );
        }
        if self.concurrency == 0 || self.concurrency > Semaphore::MAX_PERMITS {
            return invalid(
                format!("`concurrency` of the handlers sink cannot be {}", self.concurrency),
                "use 1 or more, for example 64",
            );
        }
        if self.timeout.is_zero() {
            return invalid(
                "`timeout` of the handlers sink is 0".into(),
                "use, for example, 30 seconds",
            );
        }
        let mut registered: Vec<(Pattern, Arc<dyn Handler>)> = Vec::with_capacity(self.registered.len());
        for (text, handler) in self.registered {
            let pattern: Pattern = text.parse()?;
            if registered.iter().any(|(earlier, _)| *earlier == pattern) {
                return invalid(
                    format!("two handlers are registered for {text:?}, and the second would never be called"),
                    "remove one, or make its pattern more specific and register it first",
                );
            }
            registered.push((pattern, handler));
        }
        Ok(Handlers::new(registered, self.concurrency, self.timeout))
    }
}
