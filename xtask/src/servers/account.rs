//! The account that the private servers run under: servers refuse to run as root.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::child;

/// Created by Debian's postgresql-common, so it exists wherever the servers do.
const ACCOUNT: &str = "postgres";

/// A command that runs `program` without root's rights and that dies with this process.
///
/// The kernel delivers the death signal even when this process is killed and no guard can run, so that a killed run
/// leaves no server behind.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=INT");
    if is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
    }
    command.arg(program);
    command
}

/// Gives a folder to the account that the servers run under.
pub(crate) fn give(folder: &Path) -> Result<()> {
    if is_root() {
        child::run_quietly(Command::new("chown").arg("-R").arg(format!("{ACCOUNT}:")).arg(folder))?;
    }
    Ok(())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
