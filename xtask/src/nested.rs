//! Cargo calls from inside cargo.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// The folder where things outlive a clone: compiled dependencies and tools.
pub(crate) fn cache() -> Result<PathBuf> {
    env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .map(|folder| folder.join("sendoff"))
        .context("there is no cache folder: set HOME or XDG_CACHE_HOME")
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap_or_else(|_| PathBuf::from("."))
}

/// Makes `command` see the environment it would see without `cargo xtask` around it.
pub(crate) fn prepare(command: &mut Command) -> Result<()> {
    // `cargo run` exports these about xtask itself. Build scripts of some dependencies watch them, so leaving them in
    // would rebuild those dependencies each time one alternates between `cargo` and `cargo xtask`.
    for (name, _) in env::vars_os() {
        let about_xtask = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || matches!(name, "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH" | "CARGO")
        });
        if about_xtask {
            command.env_remove(name);
        }
    }
    // A fresh clone finds its dependencies already compiled.
    if env::var_os("CARGO_TARGET_DIR").is_none() {
        command.env("CARGO_TARGET_DIR", cache()?.join("target"));
    }
    Ok(())
}

/// A cargo command at the root of the workspace.
pub(crate) fn cargo() -> Result<Command> {
    let mut command = Command::new("cargo");
    prepare(&mut command)?;
    command.current_dir(root());
    Ok(command)
}
