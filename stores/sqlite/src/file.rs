//! Identifies the file at a path. A backup that is moved to the path is another file with the same name.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// What tells a file from one that takes its place: its device, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

/// What is at a path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// A file; `None` on a system that does not number its files, and does not let go of one that is open.
    File(Option<FileId>),
    /// Nothing.
    Nothing,
    /// It cannot be told at the moment.
    Unknown,
}

impl At {
    pub(crate) fn path(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(found) => Self::File(FileId::of(&found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Nothing,
            Err(_) => Self::Unknown,
        }
    }
}

impl FileId {
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
    fn of(found: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
        })
    }

    #[cfg(not(unix))]
    fn of(_: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Its number, as lists of locks have it.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.number)
    }
}
