//! The settings of the sink.

use std::path::PathBuf;

use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Settings of the file sink: the file, and its rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// The path of the file. Its folder must exist. The sink creates the file with write access for the owner and read
    /// access for the group.
    pub path: PathBuf,
    /// Whether a batch counts as delivered only after it is synchronised to the disk; `true` unless set. With `false`,
    /// a power failure may lose the last messages.
    #[serde(default = "yes")]
    pub fsync: bool,
    /// The size in bytes at which the sink starts a new file; never unless set. A file may be larger by one batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_bytes: Option<u64>,
    /// The number of older files to keep; 10 unless set.
    #[serde(default = "ten")]
    pub keep: u32,
}

impl FileConfig {
    /// The settings for this file; all other settings have their defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            fsync: yes(),
            rotate_bytes: None,
            keep: ten(),
        }
    }

    /// Checks the settings of the file sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        if self.path.file_name().is_none() {
            return invalid(
                "`path` of the file sink has no file name",
                "use a path like /var/lib/app/events.jsonl",
            );
        }
        if self.rotate_bytes == Some(0) {
            return invalid(
                "`rotate_bytes` of the file sink is 0",
                "use, for example, 104857600, or remove the setting to write only one file",
            );
        }
        if self.keep == 0 {
            return invalid(
                "`keep` of the file sink is 0: rotation would delete messages that were just delivered",
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
