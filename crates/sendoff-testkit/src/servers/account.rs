//! The account of servers that refuse to run as root.

use std::path::Path;
use std::process::Command;

/// Created by Debian's postgresql-common, so it exists wherever the servers do.
const ACCOUNT: &str = "postgres";

/// A command that runs `program` without root's rights.
pub(super) fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"])
        .arg(program);
    command
}

/// The same with these variables in the environment of the program alone: `libfaketime` must not be loaded before the account
/// changes, because it makes files that belong to whoever loads it.
pub(super) fn command_with(variables: &[(String, String)], program: &Path) -> Command {
    let mut command = self::command(Path::new("env"));
    let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
    command.args(variables).arg(program);
    command
}

/// Gives a folder, with what is in it, to the account.
pub(super) fn give(folder: &Path) {
    if is_root() {
        let mut chown = Command::new("chown");
        run(chown.arg("-R").arg(format!("{ACCOUNT}:")).arg(folder));
    }
}

/// Runs a command to its end and returns what it printed.
///
/// # Panics
/// When it fails, with what it said.
pub(super) fn run(command: &mut Command) -> String {
    match try_run(command) {
        Ok(printed) => printed,
        Err(said) => panic!("{said}"),
    }
}

/// The same, or what it said when it failed.
pub(super) fn try_run(command: &mut Command) -> Result<String, String> {
    let name = format!("{:?}", command.get_program());
    let output = match command.stdin(std::process::Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Err(format!("{name} cannot be run: {error}")),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let args: Vec<_> = command.get_args().collect();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    Err(format!("{name} {args:?} ended with {}: {out}{err}", output.status))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
