//! The store conformance suite on MySQL or MariaDB: a database of its own for every case.

use std::process::ExitCode;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};
use sendoff::emit::Names;
use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_testkit::store_suite::{
    Capabilities, Database, Setup, StoreHarness, Subject, harness_failed as failed, run,
};

const VARIABLE: &str = "SENDOFF_TEST_MYSQL_URL";

fn main() -> ExitCode {
    run([("mysql", Mysql)])
}

struct Mysql;

#[async_trait]
impl StoreHarness for Mysql {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sql: true,
            migrations: true,
            concurrent_transactions: true,
            jobs: true,
            figures: true,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Subject> {
        let name = format!("c_{}", &Uuid::new_v4().simple().to_string()[..20]);
        let config = MysqlConfig::new(url()?)
            .names(Names::new(Some(&name), Names::PREFIX)?)
            .settings(setup.settings());
        let schema = Schema { name, config };
        schema.run_script(&format!("CREATE DATABASE {}", schema.name)).await?;
        let subject = schema.open().await?;
        if setup.migrated {
            subject.migrate.migrate().await?;
        }
        Ok(subject)
    }
}

fn url() -> Result<String> {
    std::env::var(VARIABLE).map_err(|missing| {
        Error::new(ErrorKind::Unreachable, format!("{VARIABLE} is not set"))
            .next_step("run the tests with `cargo xtask test`")
            .with_source(missing)
    })
}

#[derive(Clone)]
struct Schema {
    name: String,
    config: MysqlConfig,
}

impl Schema {
    async fn connect(&self) -> Result<Conn> {
        let opts = OptsBuilder::from_opts(Opts::from_url(&url()?).map_err(failed)?);
        Conn::new(opts.prefer_socket(false)).await.map_err(failed)
    }

    /// The suite's SQL in this dialect.
    fn dialect(&self, sql: &str) -> String {
        let sql = sql.replace(" AS text)", " AS CHAR)").replace("\"key\"", "`key`");
        self.config.names.render(&sql)
    }
}

#[async_trait]
impl Database for Schema {
    async fn open(&self) -> Result<Subject> {
        Ok(Subject::with_jobs(MysqlStore::new(self.config.clone())?, self.clone()))
    }

    async fn execute(&self, sql: &str) -> Result<u64> {
        let mut conn = self.connect().await?;
        conn.query_drop(self.dialect(sql)).await.map_err(failed)?;
        let changed = conn.affected_rows();
        conn.disconnect().await.map_err(failed)?;
        Ok(changed)
    }

    async fn run_script(&self, sql: &str) -> Result<()> {
        let mut conn = self.connect().await?;
        conn.query_drop(sql).await.map_err(failed)?;
        conn.disconnect().await.map_err(failed)
    }

    async fn fetch(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let mut conn = self.connect().await?;
        let rows: Vec<Row> = conn.query(self.dialect(sql)).await.map_err(failed)?;
        conn.disconnect().await.map_err(failed)?;
        let text = |value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(true)),
        };
        Ok(rows
            .into_iter()
            .map(|row| row.unwrap().into_iter().map(text).collect())
            .collect())
    }

    async fn set_back(&self) -> Result<()> {
        self.execute("TRUNCATE TABLE outbox_message").await.map(drop)
    }

    fn vandalism(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            (
                "an id that is none",
                "UPDATE outbox_message SET id = 'seven' WHERE topic = 'vandalised'",
            ),
            (
                "headers that are a truth value",
                "UPDATE outbox_message SET headers = 'true' WHERE topic = 'vandalised'",
            ),
        ]
    }

    async fn discard(&self) {
        let dropped = self.run_script(&format!("DROP DATABASE {}", self.name)).await;
        drop(dropped);
    }
}
