//! The store conformance suite on PostgreSQL, directly and through PgBouncer: a schema of its own for every case.

use std::process::ExitCode;

use async_trait::async_trait;
use sendoff::emit::Names;
use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_testkit::store_suite::{
    Capabilities, Database, Setup, StoreHarness, Subject, harness_failed as failed, run,
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const DIRECT: &str = "SENDOFF_TEST_POSTGRES_URL";
const PGBOUNCER: &str = "SENDOFF_TEST_PGBOUNCER_URL";

fn main() -> ExitCode {
    run([("direct", Postgres(DIRECT)), ("pgbouncer", Postgres(PGBOUNCER))])
}

/// The variable that says where the server is.
struct Postgres(&'static str);

#[async_trait]
impl StoreHarness for Postgres {
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
        let names = Names::new(Some(&name), Names::PREFIX)?;
        let config = PostgresConfig::new(url(self.0)?)
            .names(names)
            .listen(self.0 == DIRECT)
            .settings(setup.settings());
        let schema = Schema { name, config };
        schema.run_script(&format!("CREATE SCHEMA {}", schema.name)).await?;
        let subject = schema.open().await?;
        if setup.migrated {
            subject.migrate.migrate().await?;
        }
        Ok(subject)
    }
}

fn url(variable: &str) -> Result<String> {
    std::env::var(variable).map_err(|missing| {
        Error::new(ErrorKind::Unreachable, format!("{variable} is not set"))
            .next_step("run the tests with `cargo xtask test`")
            .with_source(missing)
    })
}

#[derive(Clone)]
struct Schema {
    name: String,
    config: PostgresConfig,
}

impl Schema {
    /// A connection of the harness's own: what it does is no business of a pooler.
    async fn connect(&self) -> Result<Client> {
        let (client, connection) = tokio_postgres::connect(&url(DIRECT)?, NoTls).await.map_err(failed)?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn query(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>> {
        let sql = self.config.names.render(sql);
        self.connect().await?.simple_query(&sql).await.map_err(failed)
    }
}

#[async_trait]
impl Database for Schema {
    async fn open(&self) -> Result<Subject> {
        Ok(Subject::with_jobs(
            PostgresStore::new(self.config.clone())?,
            self.clone(),
        ))
    }

    async fn set_back(&self) -> Result<()> {
        self.execute("TRUNCATE outbox_message RESTART IDENTITY").await?;
        Ok(())
    }

    async fn execute(&self, sql: &str) -> Result<u64> {
        let changed = self.query(sql).await?.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(rows),
            _ => None,
        });
        Ok(changed.sum())
    }

    async fn run_script(&self, sql: &str) -> Result<()> {
        self.connect().await?.batch_execute(sql).await.map_err(failed)
    }

    async fn fetch(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let rows = self.query(sql).await?.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
            _ => None,
        });
        Ok(rows.collect())
    }

    fn vandalism(&self) -> Vec<(&'static str, &'static str)> {
        vec![(
            "headers that are a truth value",
            "UPDATE outbox_message SET headers = 'true' WHERE topic = 'vandalised'",
        )]
    }

    async fn discard(&self) {
        let dropped = self.run_script(&format!("DROP SCHEMA {} CASCADE", self.name)).await;
        drop(dropped);
    }
}
