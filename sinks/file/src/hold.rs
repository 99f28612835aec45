//! Opens and locks the file for one batch: one process at a time.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use crate::FileConfig;
use crate::error::Failure;
use crate::repair::repair;
use crate::rotate::{rotate, sync_folder};

/// How long to wait for another process that writes to the file.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How often the file may be moved away while it is being opened. Two relays that rotate may do it to each other; on a
/// file system that changes a file's identity at every access it happens forever.
const MOST_TRIES: u32 = 100;

/// The file, opened by this process.
pub(crate) struct Open {
    pub(crate) file: File,
    /// Its length when this process last unlocked it; all its lines were complete then.
    pub(crate) len: u64,
    /// Whether it can be truncated, synchronised and rotated; a device cannot.
    pub(crate) is_regular: bool,
}

pub(crate) struct Hold {
    pub(crate) config: FileConfig,
    lock_wait: Duration,
}

impl Hold {
    pub(crate) fn new(config: FileConfig) -> Self {
        Self {
            config,
            lock_wait: LOCK_WAIT,
        }
    }

    /// The file at the path, locked, with complete lines only, and not full yet. `before` is the file that this process
    /// had open; closing or unlocking it releases the lock.
    pub(crate) fn take(&self, mut before: Option<Open>) -> Result<Open, Failure> {
        let path = &self.config.path;
        for _ in 0..MOST_TRIES {
            let (file, known_len) = match before.take() {
                Some(open) => (open.file, Some(open.len)),
                None => (self.open()?, None),
            };
            self.lock(&file).map_err(Failure::on("locking", path))?;
            let metadata = file.metadata().map_err(Failure::on("reading", path))?;
            match fs::metadata(path) {
                Ok(at_path) if is_same(&metadata, &at_path) => {}
                // It was moved or deleted, perhaps by a rotation of another relay while this one waited for the lock.
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Failure::on("reading", path)(error)),
            }
            let is_regular = metadata.is_file();
            let mut len = metadata.len();
            if is_regular && known_len != Some(len) {
                len = repair(&file, len).map_err(Failure::on("repairing", path))?;
            }
            if is_regular && self.config.rotate_bytes.is_some_and(|most| len >= most) {
                rotate(path, self.config.keep).map_err(Failure::on("rotating", path))?;
                continue;
            }
            return Ok(Open { file, len, is_regular });
        }
        let why = io::Error::new(
            io::ErrorKind::WouldBlock,
            "it was moved away repeatedly while it was opened",
        );
        Err(Failure::on("opening", path)(why))
    }

    fn open(&self) -> Result<File, Failure> {
        let path = &self.config.path;
        let opening = || Failure::on("opening", path);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(opening()(io::ErrorKind::IsADirectory.into())),
            // Opening a named pipe would wait for its reader.
            Ok(metadata) if !metadata.is_file() && !is_device(&metadata) => {
                return Err(opening()(io::ErrorKind::InvalidInput.into()));
            }
            Ok(_) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
        let file = options.open(path).map_err(opening())?;
        if self.config.fsync {
            // Not only for a new file: the process that created it may have ended before this step.
            sync_folder(path).map_err(Failure::on("synchronising the folder of", path))?;
        }
        Ok(file)
    }

    fn lock(&self, file: &File) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if begin.elapsed() < self.lock_wait => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let why = format!("another process has held its lock for {:?}", self.lock_wait);
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

// On other systems an open file cannot be moved or deleted.
#[cfg(not(unix))]
fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_device(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_another_process_keeps_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut hold = Hold::new(FileConfig::new(folder.path().join("log")));
        hold.lock_wait = Duration::from_millis(20);
        let first = hold.take(None).unwrap_or_else(|_| panic!("the lock is free"));
        let error = sendoff::Error::from(hold.take(None).err().unwrap());
        assert_eq!(error.kind(), sendoff::ErrorKind::Busy);
        assert!(error.to_string().contains("another process"), "{error}");
        drop(first);
        assert!(hold.take(None).is_ok());
    }
}
