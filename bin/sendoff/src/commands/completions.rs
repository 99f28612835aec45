//! `sendoff completions`: shell completion scripts.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Done, Exit};
use crate::session::Session;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "For bash: sendoff completions bash > /etc/bash_completion.d/sendoff")]
pub(crate) struct Args {
    /// Shell to print the script for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: Args, session: &Session) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sendoff", &mut script);
    session.output.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
