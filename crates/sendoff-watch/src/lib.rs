//! Watching a relay: metrics for Prometheus and DogStatsD, probes, a stall detector, and systemd's watchdog.
//!
//! [`Watch`] holds all parts; each relay is a [`Subject`]. An application with its own server uses [`Watch::render`] and
//! [`Watch::readiness`].
//!
//! | file | what it does |
//! |---|---|
//! | `family` | every metric, with its name, labels and help text |
//! | `figures`, `series`, `histogram` | the counted values; a relay adds to them once per batch |
//! | `clock` | converts the relay's instants to the database's time |
//! | `subject` | one watched relay |
//! | `watch` | starts and holds all parts |
//! | `look` | checks the store and the sinks periodically |
//! | `health`, `stall` | whether the relay is alive and ready |
//! | `render`, `serve` | Prometheus' text format, and the HTTP server for it and for the probes |
//! | `statsd` | the same metrics for DogStatsD |
//! | `liveness`, `systemd` | the liveness file, and notifications for systemd |
//!
//! This crate only observes: it never changes what a relay does.
#![forbid(unsafe_code)]

mod clock;
mod family;
mod figures;
mod health;
mod histogram;
mod liveness;
mod look;
mod render;
mod series;
mod serve;
mod stall;
mod statsd;
mod subject;
mod systemd;
mod watch;

pub use family::{FAMILIES, Family, Kind};
pub use health::{Obstacle, Readiness};
pub use statsd::{StatsdConfig, StatsdTarget};
pub use subject::{Subject, Surroundings};
pub use systemd::Systemd;
pub use watch::{Watch, WatchConfig, Watching};
