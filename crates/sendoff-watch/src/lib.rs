//! Watching a relay: metrics for Prometheus and DogStatsD, probes, a stall detector, and systemd's watchdog.
//!
//! [`Watch`] puts everything together, each relay being a [`Subject`]; an application that has a server of its own takes [`Watch::render`] and
//! [`Watch::readiness`] instead.
//!
//! | file | what it does |
//! |---|---|
//! | `family` | every metric there is, with its name, labels and meaning |
//! | `figures`, `series`, `histogram` | what was counted so far; a relay adds to it by the batch |
//! | `clock` | turns moments of the relay into times of the database |
//! | `look` | asks the store how it is, and the sinks whether they can be reached |
//! | `health`, `stall` | whether the relay is alive and ready |
//! | `render`, `serve` | Prometheus' text, and the HTTP server for it and for the probes |
//! | `statsd` | the same figures for DogStatsD |
//! | `liveness`, `systemd` | signs of life for those who look at files, and for systemd |
//!
//! Nothing in here decides what a relay does.
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
