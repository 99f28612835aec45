//! Binds the values of a statement with sea-orm.

use sea_orm::Value;
use sea_orm::sea_query::ArrayType;
use sendoff::emit::{Dialect, Param};
use sendoff::{Error, ErrorKind, Result};

use crate::array;

/// The values in order.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an array on MySQL or SQLite.
pub(crate) fn values(dialect: Dialect, params: &[Param<'_>]) -> Result<Vec<Value>> {
    match dialect {
        Dialect::Postgres => Ok(params.iter().map(postgres).collect()),
        _ => params.iter().map(plain).collect(),
    }
}

/// How an array is bound must never depend on its content: the driver prepares a statement with the types of its first
/// values and keeps it.
fn postgres(param: &Param<'_>) -> Value {
    match param {
        Param::Uuid(id) => Value::Uuid(Some(*id)),
        Param::Text(text) => Value::String(text.as_deref().map(str::to_owned)),
        Param::Bytes(bytes) => Value::Bytes(Some(bytes.to_vec())),
        Param::Int(int) => Value::BigInt(*int),
        Param::Uuids(ids) => array_of(ArrayType::Uuid, ids.iter().map(|id| Value::Uuid(Some(*id)))),
        Param::Blobs(blobs) => array_of(
            ArrayType::Bytes,
            blobs.iter().map(|blob| Value::Bytes(Some(blob.to_vec()))),
        ),
        // sea-orm panics on an array with a NULL; as text it uses the statement's own cast.
        Param::Texts(texts) => Value::String(Some(array::literal(texts.iter().map(Option::as_deref)))),
        Param::Ints(ints) => {
            let ints: Vec<Option<String>> = ints.iter().map(|int| int.map(|int| int.to_string())).collect();
            Value::String(Some(array::literal(ints.iter().map(Option::as_deref))))
        }
    }
}

/// For databases without arrays and without a type for UUIDs.
fn plain(param: &Param<'_>) -> Result<Value> {
    match param {
        Param::Uuid(id) => Ok(Value::String(Some(id.to_string()))),
        Param::Text(_) | Param::Bytes(_) | Param::Int(_) => Ok(postgres(param)),
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => {
            Err(Error::new(ErrorKind::Unsupported, "this database cannot bind arrays")
                .because("the statement is for another database")
                .next_step("use the same version of every sendoff crate"))
        }
    }
}

fn array_of(kind: ArrayType, values: impl Iterator<Item = Value>) -> Value {
    Value::Array(kind, Some(Box::new(values.collect())))
}
