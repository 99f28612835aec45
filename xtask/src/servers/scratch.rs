//! The folder that one run of the private servers lives in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The folder of one run: the servers' data and logs, and a part that tests may write to under any account.
pub(super) struct Scratch {
    folder: Option<TempDir>,
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Creates the folder; with `keep` it stays unless [`Scratch::discard`] is called.
    pub(super) fn create(keep: bool) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("sendoff-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir()
            .context("could not create a scratch folder in the system's temporary folder")?;
        let path = folder.path().to_owned();
        let scratch = Self {
            folder: Some(folder),
            path,
            keep,
        };
        fs::create_dir(scratch.for_tests())?;
        // Set after creation, because the umask takes the group's and the others' bits away.
        fs::set_permissions(scratch.for_tests(), Permissions::from_mode(0o1777))?;
        fs::set_permissions(&scratch.path, Permissions::from_mode(0o755))?;
        Ok(scratch)
    }

    /// The part that belongs to the tests.
    pub(super) fn for_tests(&self) -> PathBuf {
        self.path.join("tests")
    }

    /// The part of one attempt to start a server.
    pub(super) fn attempt(&self, number: u32) -> Result<PathBuf> {
        let folder = self.path.join(format!("attempt-{number}"));
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Removes the folder at the end in any case.
    pub(super) fn discard(&mut self) {
        self.keep = false;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take().filter(|_| self.keep) {
            eprintln!("the servers' data and logs are kept in {}", folder.keep().display());
        }
    }
}
