//! The tables as Django's migrations create them.

use anyhow::{Context, Result};
use tokio_postgres::Client;

use crate::subject::{connect, url};

const SCHEMA: &str = "bench_celery";
const DDL: &str = include_str!("../../../stores/django-celery/tests/fixtures/postgres.sql");

/// How many tasks are drained.
pub(super) const BACKLOG: i64 = 20_000;

/// `celery_outbox`, in a separate schema.
pub(super) struct Table {
    client: Client,
    /// The URL for a relay.
    pub(super) url: String,
}

impl Table {
    pub(super) async fn create() -> Result<Self> {
        let (client, url) = (connect().await?, url()?);
        let ddl = DDL.replace("public.", "");
        let sql = format!(
            "DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path TO {SCHEMA}; {ddl}"
        );
        client.batch_execute(&sql).await?;
        let mark = if url.contains('?') { '&' } else { '?' };
        Ok(Self {
            client,
            url: format!("{url}{mark}options=-csearch_path%3D{SCHEMA}"),
        })
    }

    /// Inserts the backlog as an application would have written it.
    pub(super) async fn fill(&self) -> Result<()> {
        let sql = format!(
            "TRUNCATE celery_outbox;
             INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version,
                sentry_trace_id, sentry_baggage)
             SELECT now(), 0, gen_random_uuid()::text, 'shop.tasks.charge', jsonb_build_array(n, 'EUR'),
                jsonb_build_object('customer', md5(n::text), 'note', repeat('x', 100)), '{{\"ignore_result\": false}}', 1,
                md5(n::text), ''
             FROM generate_series(1, {BACKLOG}) AS n;"
        );
        self.client.batch_execute(&sql).await?;
        self.client.batch_execute("VACUUM (ANALYZE) celery_outbox").await?;
        self.client.batch_execute("CHECKPOINT").await?;
        Ok(())
    }

    /// The first and the last id of the backlog.
    pub(super) async fn ends(&self) -> Result<(i64, i64)> {
        let sql = "SELECT min(id), max(id) FROM celery_outbox";
        let row = self.client.query_one(sql, &[]).await?;
        Ok((row.get(0), row.get(1)))
    }

    /// Whether this task is left: cheap enough to call repeatedly.
    pub(super) async fn has(&self, id: i64) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT FROM celery_outbox WHERE id = $1)";
        Ok(self.client.query_one(sql, &[&id]).await?.get(0))
    }

    /// How many tasks are left.
    pub(super) async fn left(&self) -> Result<i64> {
        Ok(self
            .client
            .query_one("SELECT count(*) FROM celery_outbox", &[])
            .await?
            .get(0))
    }

    /// The database as a Django setting.
    pub(super) fn for_django(&self) -> Result<String> {
        let config: tokio_postgres::Config = url()?.parse()?;
        let host = match config.get_hosts().first().context("the PostgreSQL URL has no host")? {
            tokio_postgres::config::Host::Tcp(host) => host.clone(),
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        };
        let database = serde_json::json!({
            "ENGINE": "django.db.backends.postgresql",
            "NAME": config.get_dbname(), "USER": config.get_user(), "HOST": host, "PORT": config.get_ports().first(),
            "PASSWORD": config.get_password().map(|password| String::from_utf8_lossy(password).into_owned()),
            "OPTIONS": {"options": format!("-c search_path={SCHEMA}")},
        });
        Ok(database.to_string())
    }
}
