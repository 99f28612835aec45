//! SQLite.

crate::texts::adapter_with_texts! {
    /// Marks the adapter for `&mut sqlx::Transaction<'_, Sqlite>`. The compiler infers it.
    SqlxSqlite, Sqlite, Sqlite, sqlx::sqlite::SqliteArguments
}
