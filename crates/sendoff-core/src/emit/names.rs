//! The names of the outbox's tables, and SQL with these names.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// A SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// PostgreSQL 13 or newer.
    Postgres,
    /// SQLite 3.41 or newer.
    Sqlite,
    /// MySQL 8.0.16 or newer, MariaDB 10.6 or newer.
    Mysql,
}

/// The names of the outbox's tables: an optional schema, and a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Names {
    schema: Option<String>,
    prefix: String,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            schema: None,
            prefix: Self::PREFIX.to_owned(),
        }
    }
}

impl Names {
    /// The default prefix.
    pub const PREFIX: &'static str = "outbox_";

    /// Tables in `schema` (`None`: the connection's search path decides) whose names start with `prefix`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] unless both are lower-case identifiers of at most 30 characters.
    pub fn new(schema: Option<&str>, prefix: &str) -> Result<Self> {
        if let Some(schema) = schema {
            check_identifier("schema", schema)?;
        }
        check_identifier("table prefix", prefix)?;
        Ok(Self {
            schema: schema.map(str::to_owned),
            prefix: prefix.to_owned(),
        })
    }

    /// The schema of the tables, if one is set.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The prefix of the table names.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Replaces the names in a SQL text that uses `outbox_`.
    ///
    /// Every word that starts with `outbox_` gets the schema and the prefix. Inside a longer word (`ix_outbox_…`, the
    /// names of indexes and triggers, which cannot be qualified) or after a dot, it only gets the prefix.
    pub fn render(&self, sql: &str) -> String {
        if *self == Self::default() {
            return sql.to_owned();
        }
        let mut rendered = String::with_capacity(sql.len() + 64);
        let mut rest = sql;
        while let Some(at) = rest.find(Self::PREFIX) {
            let inside_word = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
            rendered.push_str(&rest[..at]);
            if let (false, Some(schema)) = (inside_word, &self.schema) {
                rendered.push_str(schema);
                rendered.push('.');
            }
            rendered.push_str(&self.prefix);
            rest = &rest[at + Self::PREFIX.len()..];
        }
        rendered.push_str(rest);
        rendered
    }

    /// The full name of a table in SQL.
    pub fn table(&self, table: &str) -> String {
        self.render(&format!("outbox_{table}"))
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table("*"))
    }
}

fn check_identifier(what: &str, text: &str) -> Result<()> {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    if starts && text.len() <= 30 && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
        return Ok(());
    }
    Err(
        Error::new(ErrorKind::Invalid, format!("the {what} {text:?} is invalid"))
            .because("the name is used unquoted in SQL")
            .next_step("use 1 to 30 lower-case letters, digits and underscores, not starting with a digit"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_into_sql() {
        let names = Names::new(Some("shop"), "ob_").unwrap();
        let sql = "CREATE INDEX ix_outbox_message_id ON outbox_message (id)";
        assert_eq!(
            names.render(sql),
            "CREATE INDEX ix_ob_message_id ON shop.ob_message (id)"
        );
        assert_eq!(Names::default().render(sql), sql);
    }

    #[test]
    fn names_that_need_quoting_are_refused() {
        for bad in ["", "Shop", "1a", "a-b", "a;drop", "a\"b", &"a".repeat(31)] {
            assert!(Names::new(None, bad).is_err(), "{bad}");
        }
    }
}
