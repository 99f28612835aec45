//! Cargo calls from inside cargo.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// The root of the workspace.
pub(crate) fn root() -> Result<PathBuf> {
    // Cargo says at run time which checkout it runs for; clones that share a target folder share this binary's path.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = package.parent().context("xtask is not inside a workspace")?;
    root.canonicalize()
        .with_context(|| format!("{} is gone: run `cargo xtask` inside a checkout", root.display()))
}

/// Where compiled code goes: the user's choice, or a folder that outlives the clone.
///
/// A fresh clone then finds its dependencies already compiled.
pub(crate) fn target() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(chosen) => Ok(root()?.join(chosen)),
        None => Ok(cache()?.join("target")),
    }
}

/// Where the tools are that a machine did not have: `bin` inside is on the path of every nested cargo.
pub(crate) fn tools() -> Result<PathBuf> {
    Ok(cache()?.join("tools"))
}

/// Where the drivers of other languages are that tests use.
pub(crate) fn languages() -> Result<PathBuf> {
    Ok(cache()?.join("languages"))
}

/// A cargo command at the root of the workspace.
pub(crate) fn cargo() -> Result<Command> {
    let mut command = Command::new("cargo");
    prepare(&mut command)?;
    command.current_dir(root()?);
    Ok(command)
}

/// Gives `command` the environment of a plain shell, plus the target folder and the tools.
pub(crate) fn prepare(command: &mut Command) -> Result<()> {
    // `cargo run` exports these about xtask itself. Build scripts of some dependencies watch them, so leaving them in
    // would rebuild those dependencies each time one alternates between `cargo` and `cargo xtask`.
    for (name, _) in env::vars_os() {
        let about_xtask = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || matches!(name, "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH" | "CARGO")
        });
        if about_xtask {
            command.env_remove(name);
        }
    }
    // Last on the path: the machine's own tools win.
    let mut path: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    path.push(tools()?.join("bin"));
    command
        .env("PATH", env::join_paths(path)?)
        .env("CARGO_TARGET_DIR", target()?);
    // A clone is compiled once: what would make its second build quicker only fills the disk.
    if env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    Ok(())
}

fn cache() -> Result<PathBuf> {
    env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .map(|folder| folder.join("sendoff"))
        .context("there is no cache folder: set HOME or XDG_CACHE_HOME")
}
