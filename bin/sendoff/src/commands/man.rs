//! `sendoff man`: manual pages.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use sendoff::{Error, ErrorKind, Result};

use crate::cli::Cli;
use crate::exit::{Done, Exit};
use crate::session::Session;

/// Print the manual page, or write one page per command into a folder
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write the manual pages to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: Args, session: &Session) -> Done {
    let mut command = Cli::command();
    command.build();
    match args.out {
        None => session.output.print(&page(&command)?)?,
        Some(folder) => {
            std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, error))?;
            let written = write_all(&command, "sendoff", &folder)?;
            session.note(&format!("wrote {written} pages to {}", folder.display()));
        }
    }
    Ok(Exit::Ok)
}

fn page(command: &Command) -> Result<String> {
    let mut text = Vec::new();
    Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Error::new(ErrorKind::Backend, "cannot create the manual page").because(error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes the pages of a command and its subcommands, and returns their number.
fn write_all(command: &Command, name: &str, folder: &Path) -> Result<usize> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).map_err(|error| cannot_write(&path, error))?;
    let mut written = 1;
    for child in command
        .get_subcommands()
        .filter(|child| !child.is_hide_set() && child.get_name() != "help")
    {
        written += write_all(child, &format!("{name}-{}", child.get_name()), folder)?;
    }
    Ok(written)
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("cannot write {}", path.display()))
        .because(error.to_string())
        .next_step("choose another folder with --out")
        .with_source(error)
}
