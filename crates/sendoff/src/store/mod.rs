//! Where messages are kept: the traits that a store implements, one a room, and what they speak about.
//!
//! | room | trait | who calls it |
//! |---|---|---|
//! | emit | [`EmitStore`] | the CLI, tests: a transaction of the store's own |
//! | relay | [`RelayStore`], [`Reader`] | the relay |
//! | work | [`WorkStore`] | pull workers of the application |
//! | operate | [`OperateStore`] | the CLI, the API and the page |
//! | migrate | [`MigrateStore`] | the CLI |
//!
//! A message is in exactly one table at a time (a leg of a message that goes to several sinks: in one each):
//! *ready*, *waiting*, *dead* or *delivered*. Moving it is always one transaction.

mod act;
mod delivery;
mod emit;
mod history;
mod item;
mod lease;
mod migrate;
mod operate;
mod read;
mod relay;
mod routes;
mod row_id;
mod settle;
mod settle_plan;
mod vitals;
mod work;

pub use act::{Action, CleanCount, Cleaned, Command, Hasten, Hastened, Reaped};
pub use delivery::{Delivery, Lane, Place, Room};
pub use emit::{EmitStore, EmitTransaction};
pub use history::History;
pub use item::{Claim, Item, ItemCounts, ItemState, StoredItem};
pub use lease::{Heartbeat, LaneGrant, LiveRelay, OwnerId, RelayCard, Suspect};
pub use migrate::{MigrateStore, Migration, MigrationState, window_settings};
pub use operate::{
    AuditView, Filter, KeyView, LISTED_BYTES, LaneView, Listing, OperateStore, Pausable, PauseView, SHOWN_BYTES,
    Status, Stored, Summary, Windows,
};
pub use read::{Budget, InHand, Page, ReadRequest, Reader, Row};
pub use relay::{Backlog, RelayStore, WakeSource};
pub use routes::Routes;
pub use row_id::RowId;
pub use settle::{BlockedKey, DeadReason, LegSettlement, RetryState, SettleReport, Settlement, Verdict};
pub use settle_plan::{DeathStep, KeepStep, PlannedKeys, SettlePlan, WaitStep};
pub use vitals::{LaneHead, Vitals};
pub use work::{CLAIM_BYTES, WorkStore, check_worker, error_text, lease_lost};
