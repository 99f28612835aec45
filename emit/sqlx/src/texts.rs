//! Databases without types for ids and arrays: ids are texts.

/// The adapter of such a database.
macro_rules! adapter_with_texts {
    ($(#[$doc:meta])* $adapter:ident, $database:ident, $dialect:ident, $arguments:ty) => {
        use sendoff::emit::{CommitTx, Dialect, OutboxTx, Param, Statement};
        use sendoff::{BoxError, Error, ErrorKind, Uuid};
        use sqlx::{Arguments, AssertSqlSafe, $database, Row, Transaction};

        $(#[$doc])*
        #[derive(Debug)]
        pub enum $adapter {}

        impl OutboxTx<$adapter> for &mut Transaction<'_, $database> {
            fn dialect(&self) -> Dialect {
                Dialect::$dialect
            }

            async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
                let query = sqlx::query_with(AssertSqlSafe(statement.sql()), arguments(statement.params())?);
                if !statement.returns_ids() {
                    query.execute(&mut ***self).await?;
                    return Ok(Vec::new());
                }
                let rows = query.fetch_all(&mut ***self).await?;
                rows.iter().map(|row| Ok(row.try_get::<&str, _>(0)?.parse()?)).collect()
            }
        }

        impl CommitTx<$adapter> for Transaction<'_, $database> {
            type Error = sqlx::Error;

            async fn commit(self) -> sqlx::Result<()> {
                Transaction::commit(self).await
            }
        }

        fn arguments(params: &[Param<'_>]) -> Result<$arguments, BoxError> {
            let mut arguments = <$arguments>::default();
            for param in params {
                match param {
                    Param::Uuid(id) => arguments.add(id.to_string()),
                    Param::Text(text) => arguments.add(text.as_deref()),
                    Param::Bytes(bytes) => arguments.add(*bytes),
                    Param::Int(int) => arguments.add(*int),
                    Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Err(no_arrays().into()),
                }?;
            }
            Ok(arguments)
        }

        fn no_arrays() -> Error {
            let what = concat!(stringify!($database), " cannot bind arrays");
            Error::new(ErrorKind::Unsupported, what)
                .because("the statement is for another database")
                .next_step("use the same version of every sendoff crate")
        }
    };
}
pub(crate) use adapter_with_texts;
