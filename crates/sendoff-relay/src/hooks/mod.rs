//! Calls the application after results. Errors and panics there do not stop the relay.

mod list;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::DeadReason;
use sendoff::{BoxError, Outgoing};

pub(crate) use list::HookList;
pub use list::{HookCounts, HookFailures};
pub(crate) use queue::Call;

/// The result of a hook. An error is logged and counted; it has no other effect.
pub type HookResult = Result<(), BoxError>;

/// A delivery that became a dead letter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The dead message.
    pub outgoing: Arc<Outgoing>,
    /// The sink; empty when the message could not be routed.
    pub sink: Arc<str>,
    /// The reason, as a code.
    pub reason: DeadReason,
    /// The reason, as text for people.
    pub error: String,
}

/// Notifies the application of results: for alerts, and for tables of its own. It may be slow.
///
/// Each value has its own task beside the relay, which makes the calls one after the other, in order. Up to 10 000 calls
/// can be queued; further ones are dropped and counted, so that slow hooks do not delay deliveries. A stopping relay waits
/// up to 5 s for queued calls. An error or a panic is logged and counted, and the next call is made. Where every call has
/// to be made, however many there are, use an [`Observer`](crate::Observer).
///
/// Hooks are called at least once, like sinks: when a relay dies or loses a lane before it has written a result,
/// another relay works on the message again and calls its hooks again.
///
/// ```
/// use async_trait::async_trait;
/// use sendoff_relay::{DeadLetter, HookResult, Hooks};
///
/// struct Pager;
///
/// #[async_trait]
/// impl Hooks for Pager {
///     async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
///         page_on_call(&format!("{} messages are dead", dead.len())).await?;
///         Ok(())
///     }
/// }
/// # async fn page_on_call(_: &str) -> Result<(), std::io::Error> { Ok(()) }
/// ```
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// Called after a sink confirmed a delivery.
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        let _ = (outgoing, sink);
        Ok(())
    }

    /// Called after attempt number `attempts` failed; the next attempt follows after `delay`. Not called after the last
    /// attempt, which makes the delivery dead.
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn failed(
        &self,
        outgoing: &Arc<Outgoing>,
        sink: &str,
        attempts: u32,
        error: &str,
        delay: Duration,
    ) -> HookResult {
        let _ = (outgoing, sink, attempts, error, delay);
        Ok(())
    }

    /// A delivery becomes a dead letter. It may not be written yet.
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn dead_lettered(&self, outgoing: &Arc<Outgoing>, sink: &str, reason: DeadReason, error: &str) -> HookResult {
        let _ = (outgoing, sink, reason, error);
        Ok(())
    }

    /// Called after dead letters were written together, with at least one. Use this to send one alert instead of
    /// thousands.
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let _ = dead;
        Ok(())
    }
}
