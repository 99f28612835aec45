//! MySQL and MariaDB.

crate::texts::adapter_with_texts! {
    /// Marks the adapter for `&mut sqlx::Transaction<'_, MySql>`. The compiler infers it.
    SqlxMysql, MySql, Mysql, sqlx::mysql::MySqlArguments
}
