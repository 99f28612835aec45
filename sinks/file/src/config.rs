//! The settings of the sink.

use std::path::PathBuf;

use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Which file, and how it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// The file. Its folder has to exist. It is created for its owner to write and its group to read.
    pub path: PathBuf,
    /// Whether a batch counts as delivered only when it is on the disk; `true` unless set. Without it a power failure may
    /// lose the last messages.
    #[serde(default = "yes")]
    pub fsync: bool,
    /// Begin a new file when this one has so many bytes; not set: never. A file may be larger by one batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_bytes: Option<u64>,
    /// How many older files to keep; 10 unless set.
    #[serde(default = "ten")]
    pub keep: u32,
}

impl FileConfig {
    /// The defaults for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            fsync: yes(),
            rotate_bytes: None,
            keep: ten(),
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with what is allowed.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        if self.path.file_name().is_none() {
            return invalid(
                "the path of the file sink names no file",
                "write it like /var/lib/app/events.jsonl",
            );
        }
        if self.rotate_bytes == Some(0) {
            return invalid(
                "rotate_bytes of the file sink is 0",
                "use for example 104857600, or leave it out to keep one file",
            );
        }
        if self.keep == 0 {
            return invalid(
                "keep of the file sink is 0, so that rotation would delete what was just delivered",
                "use 1 or more",
            );
        }
        Ok(())
    }
}

fn yes() -> bool {
    true
}

fn ten() -> u32 {
    10
}
