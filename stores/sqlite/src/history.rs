//! The history of the database file.

use rusqlite::Connection;
use sendoff::store::History;

use crate::connect::Opened;
use crate::file::FileId;
use crate::sql::Sql;

/// As the connection sees it. A backup that was moved to the path is another file, which the connection has opened anew; one
/// that was written into the file by SQLite's own means counts up its schema version, as a change of its tables does.
pub(crate) fn history(connection: &Connection, sql: &Sql, file: Option<FileId>) -> rusqlite::Result<History> {
    let number = |text: &str| {
        connection
            .prepare_cached(text)?
            .query_row([], |row| row.get::<_, i64>(0))
    };
    let schema = number(sql.history.first())?;
    Ok(History {
        server: match file {
            Some(file) => format!("file {file}, schema {schema}"),
            None => format!("schema {schema}"),
        },
        head: number(sql.read_ready.first())?,
    })
}

impl Opened {
    pub(crate) fn history(&self, sql: &Sql) -> rusqlite::Result<History> {
        history(self, sql, self.file)
    }
}
