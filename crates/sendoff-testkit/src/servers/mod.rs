//! Private brokers and databases for tests: started in milliseconds (RabbitMQ and databases: seconds), killed, paused and
//! started again at will.
//!
//! Each instance has a port and a folder of its own, keeps its data over a restart on the same port, and is gone when it
//! is dropped, when the test panics, and even when the test's process is killed.
//!
//! ```no_run
//! # async fn example() {
//! use sendoff_testkit::servers::Redis;
//!
//! let mut redis = Redis::start().await;
//! let url = redis.url();
//! redis.kill();            // like a power failure of the broker
//! redis.restart().await;   // the same port, the same data
//! # }
//! ```
//!
//! `cargo xtask test` and `cargo xtask servers` install the programs and name them in `SENDOFF_TEST_*` variables; a server
//! that is missing fails the test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that has no server fails"
)]

mod account;
mod certificates;
mod family;
mod kafka;
mod mariadb;
mod mosquitto;
mod nats;
mod options;
mod port;
mod postgres;
mod process;
mod program;
mod rabbitmq;
mod redis;
mod redis_cluster;
mod server;

pub use certificates::{Authority, Certificate};
pub use kafka::Kafka;
pub use mariadb::MariaDb;
pub use mosquitto::Mosquitto;
pub use nats::Nats;
pub use options::Options;
pub use postgres::Postgres;
pub use rabbitmq::{RabbitMq, SharedRabbitMq};
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use server::Server;
