//! Tables that nobody has used yet.

use std::path::PathBuf;

use sendoff::emit::{Dialect, Names};
use sendoff::{Inbox, Outbox, Uuid};
use tempfile::TempDir;

/// Where the tables of a test are: in a schema or a database of their own, on SQLite in a file of their own.
#[derive(Debug)]
pub struct Tables {
    names: Names,
    folder: Option<TempDir>,
    dialect: Dialect,
}

impl Tables {
    pub(super) fn new(dialect: Dialect) -> Self {
        if dialect == Dialect::Sqlite {
            return Self {
                names: Names::new(None, "shop_outbox_").expect("a valid name"),
                folder: Some(tempfile::tempdir().expect("a temporary folder")),
                dialect,
            };
        }
        let random = Uuid::new_v4().simple().to_string();
        Self {
            names: Names::new(Some(&format!("t_{}", &random[..20])), Names::PREFIX).expect("a valid name"),
            folder: None,
            dialect,
        }
    }

    /// The statements that create them.
    pub(super) fn create_sql(&self, schema: &str) -> String {
        let create = match (self.dialect, self.names.schema()) {
            (Dialect::Postgres, Some(name)) => format!("CREATE SCHEMA {name};"),
            (Dialect::Mysql, Some(name)) => format!("CREATE DATABASE {name};"),
            _ => String::new(),
        };
        create + &self.sql(schema)
    }

    /// Their names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// SQL about them: `outbox_` stands for their schema and prefix.
    pub fn sql(&self, sql: &str) -> String {
        self.names.render(sql)
    }

    /// An outbox for them.
    pub fn outbox(&self) -> Outbox {
        Outbox::builder().names(self.names.clone()).build()
    }

    /// An inbox for them.
    pub fn inbox(&self) -> Inbox {
        Inbox::with_names(&self.names)
    }

    /// The database file. Only SQLite has one.
    pub fn file(&self) -> PathBuf {
        self.folder
            .as_ref()
            .expect("a database in a file")
            .path()
            .join("shop.db")
    }
}
