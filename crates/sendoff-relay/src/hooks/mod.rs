//! Calls into the application, which may do anything but stop the relay.

mod beside;
mod list;

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::DeadReason;
use sendoff::{BoxError, Delivery};

pub use beside::AsyncHooks;
pub(crate) use list::HookList;
pub use list::{HookCounts, HookFailures};

/// What a hook returns. An error is logged and counted, and changes nothing else.
pub type HookResult = Result<(), BoxError>;

/// A message that went to the dead letters.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The message.
    pub delivery: Arc<Delivery>,
    /// The sink; empty when the message could not be routed.
    pub leg: Arc<str>,
    /// Why, in one word.
    pub reason: DeadReason,
    /// Why, in words.
    pub error: String,
}

/// What an application may want to know. Called on the relay's own task, one after the other: be quick, and hand longer
/// work on, or use [`AsyncHooks`]. An error or a panic is logged and counted, and the relay goes on.
///
/// Hooks are told at least once, like sinks: when a relay dies or loses a lane before it has written down what it decided,
/// another one decides again and tells again.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use sendoff::Delivery;
/// use sendoff_relay::{HookResult, Hooks};
///
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl Hooks for Count {
///     fn sent(&self, _: &Arc<Delivery>, _: &str) -> HookResult {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// }
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// A sink confirmed a message.
    ///
    /// # Errors
    /// Whatever is to be in the log.
    fn sent(&self, delivery: &Arc<Delivery>, leg: &str) -> HookResult {
        let _ = (delivery, leg);
        Ok(())
    }

    /// An attempt failed, the `attempts`-th; the next one is after `delay`. The last one, after which the message is dead,
    /// is not told here.
    ///
    /// # Errors
    /// Whatever is to be in the log.
    fn failed(&self, delivery: &Arc<Delivery>, leg: &str, attempts: u32, error: &str, delay: Duration) -> HookResult {
        let _ = (delivery, leg, attempts, error, delay);
        Ok(())
    }

    /// A message goes to the dead letters. It is about to be written there.
    ///
    /// # Errors
    /// Whatever is to be in the log.
    fn dead_lettered(&self, delivery: &Arc<Delivery>, leg: &str, reason: DeadReason, error: &str) -> HookResult {
        let _ = (delivery, leg, reason, error);
        Ok(())
    }

    /// These messages are in the dead letters: all that were written there at once, at least one. A place for one alert
    /// instead of thousands.
    ///
    /// # Errors
    /// Whatever is to be in the log.
    fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let _ = dead;
        Ok(())
    }
}
