//! The program as people and scripts use it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "../sandbox/mod.rs"]
mod sandbox;

mod celery;
mod config;
mod demo;
mod deploy;
mod docs;
mod failures;
mod jobs;
#[cfg(feature = "kafka")]
mod kafka;
mod messages;
mod migrate;
mod output;
mod relay;
mod roles;
mod sink;
mod status;
mod steering;
mod terminal;
#[cfg(unix)]
mod watch;

/// Makes a test for each database out of a function that takes a sandbox.
#[macro_export]
macro_rules! on_every_database {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn on_sqlite() {
                super::$name($crate::sandbox::Sandbox::sqlite());
            }

            #[test]
            fn on_postgres() {
                super::$name($crate::sandbox::Sandbox::postgres());
            }

            #[test]
            fn on_mysql() {
                super::$name($crate::sandbox::Sandbox::mysql());
            }
        })*
    };
}
