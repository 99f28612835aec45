//! Results for operators: the same JSON on the command line, in the API and on the admin page.

mod delivery;
mod failure;
mod job;
mod list;
mod message;
mod retry;
mod steering;
mod summary;

pub use delivery::{DeliveryView, TriedView};
pub use failure::FailureView;
pub use job::JobView;
pub use list::PageView;
pub use message::MessageView;
pub use retry::RetryView;
pub use steering::{AuditView, CleanView, KeyView, LaneView, PauseView, ReapView};
pub use summary::SummaryView;
