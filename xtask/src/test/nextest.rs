//! The tests of all crates, run by nextest.

use std::ffi::OsString;

use anyhow::{Result, bail};

use super::report::Outcome;
use super::{WITH_ALL_FEATURES, coloured, counts};
use crate::servers::Servers;
use crate::{child, nested};

/// Installs nextest into the cache when the machine has none.
pub(crate) fn install_missing() -> Result<()> {
    if child::run_quietly(nested::cargo()?.args(["nextest", "--version"])).is_ok() {
        return Ok(());
    }
    let tools = nested::tools()?;
    eprintln!("cargo-nextest was not found: building it once into {}", tools.display());
    let mut install = nested::cargo()?;
    install.args(["install", "cargo-nextest", "--locked"]);
    // Without what it needs to update itself, which is much of its build.
    install.args(["--no-default-features", "--features", "default-no-update"]);
    install.arg("--root").arg(&tools);
    if !child::run(&mut install)?.success() {
        bail!("cargo-nextest could not be installed (see above): install it yourself, see https://nexte.st");
    }
    Ok(())
}

/// Runs the tests that `filter` selects, or all of them.
pub(crate) fn run(filter: Option<&str>, extra: &[OsString], servers: &Servers) -> Result<Outcome> {
    let mut command = nested::cargo()?;
    coloured(command.args(["nextest", "run", "--workspace"]).args(WITH_ALL_FEATURES));
    if let Some(filter) = filter {
        command.args(["--filterset", filter]);
    }
    let (status, lines) = child::run_and_read(command.args(extra).envs(servers.variables()))?;
    Ok(Outcome {
        counts: counts::of_nextest(&lines),
        ..Outcome::of(status)
    })
}
