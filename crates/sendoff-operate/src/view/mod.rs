//! Answers, as they are printed and served: the field names and their JSON are the same everywhere.

mod item;
mod leg;
mod list;
mod message;
mod retry;
mod steering;
mod summary;

pub use item::{ItemListView, ItemView};
pub use leg::{LegView, TriedView};
pub use list::ListView;
pub use message::MessageView;
pub use retry::RetryView;
pub use steering::{AuditView, CleanView, KeyView, LaneView, PauseView, ReapView};
pub use summary::SummaryView;
