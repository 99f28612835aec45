//! Opens connections.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use sendoff::{Error, ErrorKind, Result};

use crate::SqliteConfig;
use crate::busy::wait_for_locks;
use crate::error::explain;
use crate::file::{At, FileId};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Writes nothing.
    Read,
    /// Commits that survive a power cut.
    Write,
    /// As `Write`, for transactions of the application: one may stay open between two calls.
    Emit,
    /// Commits that a power cut may undo: the disk is not waited for, while the write lock is held by nobody else.
    /// Right for settling, because a settlement that is lost only sends messages twice.
    Settle,
    /// As `Write`, and creates the file.
    Migrate,
}

/// A connection, and the file that it has open.
#[derive(Debug)]
pub(crate) struct Opened {
    connection: Connection,
    pub(crate) file: Option<FileId>,
}

impl Deref for Opened {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// How to open connections to the file.
#[derive(Debug, Clone)]
pub(crate) struct Connect {
    path: PathBuf,
    busy_timeout: Duration,
    purpose: Purpose,
}

impl Connect {
    pub(crate) fn new(config: &SqliteConfig, purpose: Purpose) -> Self {
        Self {
            path: config.path.clone(),
            busy_timeout: config.busy_timeout,
            purpose,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that a connection is open, and to the file that is at the path now: whatever is written to one that was moved
    /// away is lost, and what is written to the one in its place would never be seen.
    pub(crate) fn ensure<'a>(&self, open: &'a mut Option<Opened>) -> Result<&'a mut Opened> {
        if let Some(opened) = open {
            match At::path(&self.path) {
                At::File(file) if file == opened.file => {}
                At::Unknown => {}
                At::Nothing => return Err(self.is_gone()),
                At::File(_) => {
                    let is_cut_off = !opened.is_autocommit();
                    *open = None;
                    tracing::debug!(
                        event = "file_replaced",
                        "database file was replaced; opening the new file"
                    );
                    if is_cut_off {
                        return Err(self.is_replaced("during a transaction"));
                    }
                }
            }
        }
        match open {
            Some(opened) => Ok(opened),
            none => Ok(none.insert(self.open()?)),
        }
    }

    /// Whether the connection is as the next job needs it: only the application may leave a transaction open.
    pub(crate) fn is_tidy(&self, opened: &Opened) -> bool {
        self.purpose == Purpose::Emit || opened.is_autocommit()
    }

    /// Opens one.
    pub(crate) fn open(&self) -> Result<Opened> {
        let before = At::path(&self.path);
        let connection = self.connect()?;
        match (before, At::path(&self.path)) {
            (At::File(before), At::File(after)) if before != after => {
                Err(self.is_replaced("while it was being opened"))
            }
            (_, At::File(file)) => Ok(Opened { connection, file }),
            (_, At::Nothing) => Err(self.is_gone()),
            (_, At::Unknown) => Ok(Opened { connection, file: None }),
        }
    }

    fn is_replaced(&self, when: &str) -> Error {
        Error::new(ErrorKind::Unreachable, "the database file was replaced")
            .because(format!("{} was replaced by another file {when}", self.path.display()))
            .next_step("try again: the store will open the new file")
    }

    fn is_gone(&self) -> Error {
        Error::new(ErrorKind::Unreachable, "the database file was removed")
            .because(format!("{} no longer exists", self.path.display()))
            .next_step("restore the file as docs/stores/sqlite.md describes")
    }

    fn connect(&self) -> Result<Connection> {
        // A connection is used by one thread at a time, so SQLite need not lock it.
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.purpose == Purpose::Migrate {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        } else if !self.path.exists() {
            return Err(Error::new(ErrorKind::SchemaMissing, "the database file does not exist")
                .because(format!("{} does not exist", self.path.display()))
                .next_step("check the path, or run `sendoff migrate` to create it"));
        }
        Connection::open_with_flags(&self.path, flags)
            .and_then(|connection| self.set_up(&connection).map(|()| connection))
            .map_err(|error| explain(&format!("the database {} cannot be opened", self.path.display()), error))
    }

    fn set_up(&self, connection: &Connection) -> rusqlite::Result<()> {
        wait_for_locks(connection, self.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(64);
        match self.purpose {
            Purpose::Read => return connection.pragma_update(None, "query_only", true),
            Purpose::Write | Purpose::Emit | Purpose::Migrate => {
                connection.pragma_update(None, "synchronous", "FULL")?;
            }
            Purpose::Settle => connection.pragma_update(None, "synchronous", "NORMAL")?,
        }
        // Readers and the writer do not wait for each other in this mode, which the file keeps. It is asked first,
        // because setting it takes a lock even where it is set. Where a file system cannot do it everything stays
        // correct, and is slower.
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != "wal" {
            let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
            if mode != "wal" {
                tracing::warn!(event = "wal_refused", %mode, "database cannot use a write-ahead log, so reads and writes block each other");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_migrating_creates_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.db");
        let config = SqliteConfig::new(&path);
        let error = Connect::new(&config, Purpose::Write).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMissing);
        assert!(!path.exists());
        Connect::new(&config, Purpose::Migrate).open().unwrap();
        assert!(path.exists());
    }

    #[test]
    fn commits_of_the_application_are_durable_and_settlements_need_not_be() {
        let folder = tempfile::tempdir().unwrap();
        let config = SqliteConfig::new(folder.path().join("a.db"));
        for (purpose, synchronous) in [
            (Purpose::Migrate, 2),
            (Purpose::Write, 2),
            (Purpose::Emit, 2),
            (Purpose::Settle, 1),
        ] {
            let connection = Connect::new(&config, purpose).open().unwrap();
            let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            assert_eq!(pragma("synchronous").unwrap(), synchronous, "{purpose:?}");
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.db");
        std::fs::write(
            &path,
            "this is a text and no database, however long it may be ".repeat(40),
        )
        .unwrap();
        let error = Connect::new(&SqliteConfig::new(&path), Purpose::Write)
            .open()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("text.db"), "{error}");
    }
}
