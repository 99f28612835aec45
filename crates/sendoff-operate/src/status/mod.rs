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

/// Figures that are older than this are stale.
const STALE_SECONDS: f64 = 15.0;

impl Operator {
    /// Whether messages flow: a verdict, and what it is based on. It costs little whatever the size of the outbox.
    ///
    /// # Errors
    /// Errors of the store; [`sendoff::ErrorKind::Unsupported`] if it gives no overview.
    pub async fn status(&self) -> Result<StatusView> {
        Ok(StatusView::of(&self.store.overview().await?))
    }
}
