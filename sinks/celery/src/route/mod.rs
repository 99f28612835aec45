//! Where a task goes, decided as Celery does: what the task says, then the first of `task_routes` that fits (names before
//! patterns, patterns in their order), then the default queue.

mod delayed;
mod destination;
mod glob;
mod queue;
mod router;

pub use delayed::{DELAYED_DELIVERY_EXCHANGE, Delayed, LONGEST_DELAY};
pub use destination::Destination;
pub use queue::Queue;
pub use router::{Route, Router, Wanted};
