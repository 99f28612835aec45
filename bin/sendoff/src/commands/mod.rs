//! The subcommands, a file each.

pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod celery_dead;
pub(crate) mod celery_relay;
mod celery_watch;
pub(crate) mod cleanup;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod confirm;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod emit;
pub(crate) mod hasten;
pub(crate) mod init;
pub(crate) mod items;
pub(crate) mod keys;
pub(crate) mod lanes;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod pause;
pub(crate) mod reap;
pub(crate) mod relay;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod stats;
