//! What operators do with an outbox: look at messages, and bring dead letters back.
//!
//! [`Operator`] is the one service behind the command line, the API and the page. It checks what is asked, asks the
//! store, and answers with views that serialise to the same JSON everywhere.
#![forbid(unsafe_code)]

mod filter;
mod operator;
mod steer;
mod view;

pub use filter::{FILTER_NAMES, parse_filter};
pub use operator::{MOST_ROWS, Operator};
pub use steer::Progress;
pub use view::{
    AuditView, CleanView, KeyView, LaneView, LegView, ListView, MessageView, PauseView, RetryView, SummaryView,
    TriedView,
};
