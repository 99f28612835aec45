//! The actions of operators on an outbox, and their rules: list messages, retry dead letters, and others.
//!
//! [`Operator`] is the one service behind the command line, the API and the admin page. It checks requests, calls the
//! store, and answers with views that serialise to the same JSON everywhere.
#![forbid(unsafe_code)]

mod failures;
mod filter;
mod fingerprint;
mod jobs;
mod list;
mod names;
mod operator;
mod selected;
mod status;
mod steer;
mod view;
mod written;

pub use failures::FailureGroup;
pub use filter::{FILTER_NAMES, parse_filter};
pub use fingerprint::error_fingerprint;
pub use jobs::{JobAct, JobListRequest, JobOperator};
pub use list::{ListBy, ListOrder, ListRequest, MOST_COUNTED, MOST_ROWS};
pub use names::KnownNames;
pub use operator::Operator;
pub use selected::Selected;
pub use status::{
    BacklogView, DeadView, LanesView, Level, ReasonView, RelayView, SampledCount, SinkStateView, SinkView, StatusView,
    StuckView, TopicView, age_in_words, grouped, rate_in_words,
};
pub use steer::Progress;
pub use view::{
    AuditView, CleanView, DeliveryView, FailureView, JobView, KeyView, LaneView, MessageView, PageView, PauseView,
    ReapView, RetryView, SummaryView, TriedView,
};
pub use written::WrittenFilter;
