//! Calls hooks of the application. Errors and panics in a hook do not stop the relay.

mod beside;
mod list;

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::DeadReason;
use sendoff::{BoxError, Outgoing};

pub use beside::AsyncHooks;
pub(crate) use list::HookList;
pub use list::{HookCounts, HookFailures};

/// The result of a hook. An error is logged and counted; it has no other effect.
pub type HookResult = Result<(), BoxError>;

/// A delivery that became a dead letter.
#[derive(Debug, Clone)]
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

/// Notifies the application of results. The relay calls hooks on its own task, one after the other: return quickly, and
/// do longer work elsewhere or with [`AsyncHooks`]. An error or a panic is logged and counted, and the relay continues.
///
/// Hooks are called at least once, like sinks: when a relay dies or loses a lane before it has written a result,
/// another relay works on the message again and calls its hooks again.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use sendoff::Outgoing;
/// use sendoff_relay::{HookResult, Hooks};
///
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl Hooks for Count {
///     fn sent(&self, _: &Arc<Outgoing>, _: &str) -> HookResult {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// }
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// Called after a sink confirmed a delivery.
    ///
    /// # Errors
    /// The error is logged and counted.
    fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        let _ = (outgoing, sink);
        Ok(())
    }

    /// Called after attempt number `attempts` failed; the next attempt follows after `delay`. Not called after the last
    /// attempt, which makes the delivery dead.
    ///
    /// # Errors
    /// The error is logged and counted.
    fn failed(&self, outgoing: &Arc<Outgoing>, sink: &str, attempts: u32, error: &str, delay: Duration) -> HookResult {
        let _ = (outgoing, sink, attempts, error, delay);
        Ok(())
    }

    /// Called when a delivery becomes a dead letter, before the dead letter is written.
    ///
    /// # Errors
    /// The error is logged and counted.
    fn dead_lettered(&self, outgoing: &Arc<Outgoing>, sink: &str, reason: DeadReason, error: &str) -> HookResult {
        let _ = (outgoing, sink, reason, error);
        Ok(())
    }

    /// Called after dead letters were written together, with at least one. Use this to send one alert instead of
    /// thousands.
    ///
    /// # Errors
    /// The error is logged and counted.
    fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let _ = dead;
        Ok(())
    }
}
