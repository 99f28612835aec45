//! The status: whether messages flow, in one sentence and then in detail.
//!
//! | file | what it does |
//! |---|---|
//! | `view` | the answer, as printed and served |
//! | `count` | counts that may be estimates |
//! | `build` | makes the answer from an overview of the store |
//! | `sinks` | merges what relays know about sinks with what waits for them |
//! | `verdict` | the rules: what is wrong, and how bad it is |
//! | `words` | ages and numbers for people |

mod build;
mod count;
mod sinks;
mod verdict;
mod view;
mod words;

use sendoff::Result;

use crate::Operator;
pub use count::SampledCount;
pub use view::{
    BacklogView, DeadView, LanesView, Level, ReasonView, RelayView, SinkStateView, SinkView, StatusView, StuckView,
    TopicView,
};
pub use words::{age_in_words, grouped, rate_in_words};

/// Figures older than this many seconds are stale.
const STALE_SECONDS: f64 = 15.0;

impl Operator {
    /// The status of the outbox: a verdict on whether messages flow, and the numbers behind it. It is cheap whatever
    /// the size of the outbox.
    ///
    /// # Errors
    /// Errors of the store; [`sendoff::ErrorKind::Unsupported`] if it gives no overview.
    pub async fn status(&self) -> Result<StatusView> {
        Ok(StatusView::of(&self.store.overview().await?))
    }
}
