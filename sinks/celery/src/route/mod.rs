//! Routes tasks as Celery does: by the task's own options, then by the first match of `task_routes` (names before
//! patterns, patterns in their order), then to the default queue.

mod delayed;
mod destination;
mod glob;
mod queue;
mod router;

pub use delayed::{DELAYED_DELIVERY_EXCHANGE, Delayed, LONGEST_DELAY};
pub use destination::Destination;
pub use queue::Queue;
pub use router::{Route, Router, Wanted};
