//! Answers as printed and served: the JSON is the same everywhere.

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
