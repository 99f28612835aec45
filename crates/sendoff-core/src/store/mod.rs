//! The traits that a store implements, and their types.
//!
//! | part | trait | who calls it |
//! |---|---|---|
//! | emit | [`EmitStore`] | the CLI, tests: emits in its own transaction |
//! | relay | [`RelayStore`], [`Reader`] | the relay |
//! | work | [`WorkStore`] | the application's own workers |
//! | operate | [`OperateStore`] | the CLI, the API and the admin page |
//! | migrate | [`MigrateStore`] | the CLI |
//!
//! A message, or each delivery of a message with several sinks, is in exactly one table at a time: *ready*, *waiting*,
//! *dead* or *delivered*. It always moves in one transaction.

mod act;
mod emit;
mod figures;
mod filter;
mod health;
mod history;
mod job;
mod lease;
mod ledger;
mod list;
mod list_texts;
mod migrate;
mod operate;
mod outgoing;
mod overview;
mod read;
mod relay;
mod routes;
mod row_id;
mod settings;
mod settle;
mod settle_plan;
mod status;
mod stored;
mod texts;
mod work;

pub use act::{Action, CleanCount, Cleaned, Command, Reaped, RetriedBatch, RetryOptions};
pub use emit::{EmitStore, EmitTransaction};
pub use figures::{Figures, Rates, RelayFigures, SinkFigures};
pub use filter::{Filter, PayloadPath};
pub use health::{LaneHead, StoreHealth, Stray};
pub use history::History;
pub use job::{Claim, Job, JobCounts, JobState, StoredJob};
pub use lease::{Heartbeat, LaneGrant, LiveRelay, OwnerId, Quarantined, RelayCard};
pub use ledger::Step;
pub use list::{Direction, EndedAt, ListTable, Listing, Looked, LookedEnded};
pub use list_texts::{ListSources, ListTexts};
pub use migrate::{MigrateStore, Migration, MigrationState};
pub use operate::{AuditView, KeyView, LaneView, OperateStore, Pausable, PauseView, Retention};
pub use outgoing::{Lane, Outgoing, RowRef, Table};
pub use overview::{Group, Overview, RelayStatus};
pub use read::{Budget, InFlight, Page, ReadRequest, Reader, Row};
pub use relay::{Backlog, RelayStore, WakeListener};
pub use routes::Routes;
pub use row_id::RowId;
pub use settings::StoreSettings;
pub use settle::{BlockedKey, DeadReason, DeliverySettlement, RetryState, SettleReport, Settlement, Verdict};
pub use settle_plan::{DeathStep, KeepStep, PlannedKeys, SettlePlan, TOPIC_IS_PAUSED, WaitStep};
pub use status::Status;
pub use stored::{LISTED_BYTES, SHOWN_BYTES, SHOWN_HEADERS, Stored, Summary};
pub use texts::Text;
pub use work::{CLAIM_BYTES, WorkStore, check_worker, error_text, lease_lost, with_sizes};
