//! Ids as parameters of statements.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sendoff::store::RowId;

/// The id of a row as the value of a parameter: exactly the text that the table has, which need not be UTF-8.
pub(crate) struct Id<'a>(pub(crate) &'a RowId);

impl ToSql for Id<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            RowId::Uuid(uuid) => ToSqlOutput::Owned(Value::Text(uuid.to_string())),
            RowId::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        })
    }
}

/// The id out of a column.
pub(crate) fn read(value: ValueRef<'_>) -> RowId {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => RowId::from_text(bytes),
        // The tables take text only.
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => RowId::from_text(b""),
    }
}
