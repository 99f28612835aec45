//! What operators do with an outbox: look at messages, and bring dead letters back.
//!
//! [`Operator`] is the one service behind the command line, the API and the page. It checks what is asked, asks the
//! store, and answers with views that serialise to the same JSON everywhere.
#![forbid(unsafe_code)]

mod filter;
mod items;
mod operator;
mod steer;
mod view;
mod written;

pub use filter::{FILTER_NAMES, parse_filter};
pub use items::{ItemAct, ItemOperator};
pub use operator::{MOST_ROWS, Operator};
pub use steer::Progress;
pub use view::{
    AuditView, CleanView, ItemListView, ItemView, KeyView, LaneView, LegView, ListView, MessageView, PauseView,
    ReapView, RetryView, SummaryView, TriedView,
};
pub use written::WrittenFilter;
