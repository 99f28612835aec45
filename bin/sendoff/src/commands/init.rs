//! `sendoff init`: writes a configuration to start from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use sendoff::{Error, ErrorKind, Result};
use serde_json::json;

use crate::config::Config;
use crate::exit::{Done, Exit};
use crate::session::{CONFIG_FILE, Session};

/// Write a commented sendoff.toml to start from
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: Args, session: &Session) -> Done {
    let path = session.global.config.as_deref().unwrap_or(Path::new(CONFIG_FILE));
    write(path, args.force)?;
    if session.output.json {
        session.output.json(&json!({"written": path}))?;
    } else {
        session.output.line(&format!("wrote {}", path.display()))?;
        session.note("set url in its [database] section, then run `sendoff migrate` and `sendoff relay`");
    }
    Ok(Exit::Ok)
}

fn write(path: &Path, force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options.open(path).and_then(|mut file| {
        file.write_all(Config::example().as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| {
        let what = format!("cannot write {}", path.display());
        if error.kind() == io::ErrorKind::AlreadyExists {
            return Error::new(ErrorKind::Invalid, what)
                .because("the file already exists")
                .next_step("choose another file with --config FILE, or overwrite the file with --force");
        }
        Error::new(ErrorKind::Invalid, what)
            .because(error.to_string())
            .next_step("choose a file in a writable folder with --config FILE")
            .with_source(error)
    })
}
