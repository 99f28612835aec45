//! The configuration file.

use std::io;
use std::path::Path;

use sendoff::{Error, ErrorKind, Result};

/// Read if no file is given and this one exists.
const DEFAULT: &str = "sendoff.toml";

/// The text of a configuration file, with its name for errors.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    pub(super) name: String,
    pub(super) text: String,
}

impl ConfigFile {
    /// The file at `path`; without a path, `sendoff.toml` in the current folder, or an empty file if there is none.
    pub(super) fn read(path: Option<&Path>) -> Result<Self> {
        let named = path.unwrap_or(Path::new(DEFAULT));
        let name = named.display().to_string();
        let error = match std::fs::read(named) {
            Ok(bytes) => {
                return match String::from_utf8(bytes) {
                    Ok(text) => Ok(Self { name, text }),
                    Err(error) => Err(Error::new(ErrorKind::Invalid, format!("{name} is not UTF-8 text"))
                        .because(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))
                        .next_step("save the file as UTF-8")),
                };
            }
            Err(error) if path.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => error,
        };
        let (kind, next) = match error.kind() {
            io::ErrorKind::NotFound => (ErrorKind::Invalid, "check the path, or create one with `sendoff init`"),
            io::ErrorKind::PermissionDenied => (ErrorKind::Denied, "give the program's user read access"),
            _ => (ErrorKind::Invalid, "check the path"),
        };
        Err(Error::new(kind, format!("cannot read the configuration file {name}"))
            .because(error.to_string())
            .next_step(next)
            .with_source(error))
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}
