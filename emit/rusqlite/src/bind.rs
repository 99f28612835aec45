//! Binds Sendoff's values with rusqlite.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sendoff::emit::Param;
use sendoff::{Error, ErrorKind, Result};

/// The values of a statement, in order. Text and bytes are borrowed.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an array: statements of this dialect have none.
pub(crate) fn values<'a>(params: &'a [Param<'_>]) -> Result<Vec<ToSqlOutput<'a>>> {
    params.iter().map(value).collect()
}

fn value<'a>(param: &'a Param<'_>) -> Result<ToSqlOutput<'a>> {
    Ok(match param {
        Param::Uuid(id) => ToSqlOutput::Owned(Value::Text(id.to_string())),
        Param::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Param::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Param::Int(Some(number)) => ToSqlOutput::Owned(Value::Integer(*number)),
        Param::Text(None) | Param::Int(None) => ToSqlOutput::Owned(Value::Null),
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => return Err(no_arrays()),
    })
}

fn no_arrays() -> Error {
    Error::new(ErrorKind::Unsupported, "SQLite cannot bind arrays")
        .because("the statement is for another database")
        .next_step("use the same version of every sendoff crate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_refused_and_not_written_as_null() {
        assert_eq!(
            values(&[Param::Ints(vec![Some(1)])]).unwrap_err().kind(),
            ErrorKind::Unsupported
        );
    }
}
