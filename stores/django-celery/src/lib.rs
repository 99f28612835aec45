//! The tables of `django-celery-outbox`, and a relay for them.
//!
//! A Django application with [django-celery-outbox](https://pypi.org/project/django-celery-outbox/) 0.4 writes its
//! Celery tasks to `celery_outbox`, in its own transactions. [`DjangoRelay`] sends them to the broker, instead of the
//! package's own relay or next to it: both relays claim rows with the same stamps, so neither sends rows that the other
//! has in flight.
//!
//! These tables have no lanes. A row is eligible if it was never tried, if its `retry_after` has passed, or if the
//! relay that claimed it has not settled it within the stale timeout. A claim writes `updated_at`. This relay also
//! clears `retry_after`. The Python relay does not, so an `updated_at` later than a `retry_after` in the past means
//! that the Python relay has the row in flight.
//!
//! | step | where |
//! |---|---|
//! | claim | [`DjangoOutbox::claim`], SQL in `sql/` |
//! | read a row as a task | [`Row::delivery`] |
//! | publish | [`DjangoRelay`], to any [`sendoff::Sink`] for Celery tasks |
//! | settle: sent, failed, deferred, held, dead, released | [`Settlement`], [`DjangoOutbox::settle`] |
//! | retry, purge, count | [`DjangoOutbox`] |
#![forbid(unsafe_code)]

mod claim;
mod config;
mod error;
mod instant;
mod mysql;
mod options;
mod outbox;
mod postgres;
mod purge;
mod relay;
mod row;
mod settlement;
mod sqlite;
mod stats;
mod table;

pub use claim::{Claim, Stamp};
pub use config::{Database, DjangoConfig};
pub use outbox::DjangoOutbox;
pub use purge::Purge;
pub use relay::{Beat, DjangoRelay, Monitor, Report, Settings, Settled};
pub use row::Row;
pub use settlement::{Dead, Later, Settlement};
pub use stats::Stats;
