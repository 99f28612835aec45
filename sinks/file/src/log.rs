//! Appends a batch: completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;

use sendoff::Outgoing;
use sendoff::envelope::Envelope;

use crate::FileConfig;
use crate::error::Failure;
use crate::hold::{Hold, Open};

/// The bytes per write, so that a batch of large payloads is not in memory a second time.
const CHUNK: usize = 256 * 1024;

/// The file, which stays open between batches.
pub(crate) struct Log {
    hold: Hold,
    open: Option<Open>,
}

impl Log {
    pub(crate) fn new(mut config: FileConfig) -> Self {
        // Rotation must move the file, not a link to it.
        if fs::metadata(&config.path).is_ok_and(|target| target.is_file()) {
            config.path = fs::canonicalize(&config.path).unwrap_or(config.path);
        }
        Self {
            hold: Hold::new(config),
            open: None,
        }
    }

    /// Appends the lines of a batch. After an error none of them is in the file, except if truncating fails, too: then
    /// some stay, and will be there twice.
    pub(crate) fn append(&mut self, batch: &[Arc<Outgoing>]) -> Result<(), Failure> {
        // After an error the file stays closed, so that the next batch checks everything again.
        let mut open = self.hold.take(self.open.take())?;
        let start = open.len;
        let written = write(&open.file, batch).and_then(|written| {
            if self.hold.config.fsync && open.is_regular {
                open.file.sync_data()?;
            }
            Ok(written)
        });
        match written {
            Ok(written) => {
                open.len = start + written;
                if open.file.unlock().is_ok() {
                    self.open = Some(open);
                }
                Ok(())
            }
            Err(error) => {
                if open.is_regular {
                    // If this fails, too, the next batch removes only the broken line.
                    let _ = open.file.set_len(start);
                }
                Err(Failure::on("writing to", &self.hold.config.path)(error))
            }
        }
    }

    /// Opens the file as a batch would.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.hold.take(self.open.take()).map(drop)
    }

    pub(crate) fn close(&mut self) {
        self.open = None;
    }
}

fn write(mut file: &File, batch: &[Arc<Outgoing>]) -> io::Result<u64> {
    let mut written = 0;
    let mut chunk = Vec::with_capacity(CHUNK);
    for outgoing in batch {
        Envelope::of(outgoing).write_line(&mut chunk)?;
        if chunk.len() >= CHUNK {
            file.write_all(&chunk)?;
            written += chunk.len() as u64;
            chunk.clear();
        }
    }
    file.write_all(&chunk)?;
    Ok(written + chunk.len() as u64)
}
