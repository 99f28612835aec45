//! The subcommands, a file each.

pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod emit;
pub(crate) mod init;
pub(crate) mod ls;
pub(crate) mod migrate;
pub(crate) mod relay;
pub(crate) mod show;
