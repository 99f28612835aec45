//! Tables of their own for every test, as django-celery-outbox 0.4.3 makes them.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};
use sendoff::Uuid;
use sendoff_store_django_celery::{Database, DjangoConfig, DjangoOutbox};
use tempfile::TempDir;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// After which time claimed rows are anybody's, in tests.
pub(crate) const STALE: Duration = Duration::from_secs(300);

pub(crate) struct Scratch {
    pub(crate) outbox: DjangoOutbox,
    pub(crate) database: Database,
    _folder: TempDir,
}

fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run the tests with `cargo xtask test`"))
}

fn new_name() -> String {
    format!("dj_{}", &Uuid::new_v4().simple().to_string()[..12])
}

impl Scratch {
    pub(crate) async fn postgres() -> Self {
        let (url, schema) = (server("SENDOFF_TEST_POSTGRES_URL"), new_name());
        let mark = if url.contains('?') { '&' } else { '?' };
        let scratch = Self::on(Database::Postgres(format!(
            "{url}{mark}options=-csearch_path%3D{schema}"
        )));
        scratch.run(&format!("CREATE SCHEMA {schema}")).await;
        scratch
            .run(&include_str!("../fixtures/postgres.sql").replace("public.", ""))
            .await;
        scratch
    }

    pub(crate) async fn mysql() -> Self {
        let (url, name) = (server("SENDOFF_TEST_MYSQL_URL"), new_name());
        connect(&url)
            .await
            .query_drop(format!("CREATE DATABASE {name}"))
            .await
            .unwrap();
        let (front, query) = url
            .split_once('?')
            .map_or((url.as_str(), String::new()), |(front, query)| {
                (front, format!("?{query}"))
            });
        let front = match front.split_once("://").unwrap().1.split_once('/') {
            Some((_, database)) => front.strip_suffix(database).unwrap().to_owned(),
            None => format!("{front}/"),
        };
        let scratch = Self::on(Database::Mysql(format!("{front}{name}{query}")));
        scratch.run(include_str!("../fixtures/mysql.sql")).await;
        scratch
    }

    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.sqlite3");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(include_str!("../fixtures/sqlite.sql"))
            .unwrap();
        Self {
            _folder: folder,
            ..Self::on(Database::Sqlite(path))
        }
    }

    fn on(database: Database) -> Self {
        Self {
            outbox: DjangoOutbox::new(&DjangoConfig::new(database.clone())).unwrap(),
            database,
            _folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Runs SQL.
    pub(crate) async fn run(&self, sql: &str) {
        self.values(sql).await;
    }

    /// The first column of every row, as text; `-` is NULL.
    pub(crate) async fn values(&self, sql: &str) -> Vec<String> {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        match &self.database {
            Database::Postgres(url) => {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
                tokio::spawn(connection);
                let answer = client.simple_query(sql).await;
                let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                let row = |message| match message {
                    SimpleQueryMessage::Row(row) => Some(or_none(row.get(0).map(str::to_owned))),
                    _ => None,
                };
                answer.into_iter().filter_map(row).collect()
            }
            Database::Mysql(url) => {
                let mut conn = connect(url).await;
                let mut result = conn
                    .query_iter(sql)
                    .await
                    .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                let rows: Vec<mysql_async::Row> = result.collect().await.unwrap();
                // A script has several answers; none of those after the first is asked for.
                while !result.is_empty() {
                    let _: Vec<mysql_async::Row> = result.collect().await.unwrap();
                }
                rows.into_iter().map(|mut row| or_none(row.take(0).unwrap())).collect()
            }
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.busy_timeout(Duration::from_secs(20)).unwrap();
                let mut statement = connection
                    .prepare(sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                let text = |row: &rusqlite::Row<'_>| {
                    Ok(match row.get::<_, rusqlite::types::Value>(0)? {
                        rusqlite::types::Value::Null => "-".to_owned(),
                        rusqlite::types::Value::Integer(number) => number.to_string(),
                        rusqlite::types::Value::Real(number) => number.to_string(),
                        rusqlite::types::Value::Text(text) => text,
                        rusqlite::types::Value::Blob(_) => panic!("a blob"),
                    })
                };
                let rows = statement.query_map([], text).unwrap();
                rows.collect::<rusqlite::Result<_>>().unwrap()
            }
        }
    }

    /// The first column of the first row.
    pub(crate) async fn value(&self, sql: &str) -> String {
        self.values(sql)
            .await
            .into_iter()
            .next()
            .unwrap_or_else(|| "none".to_owned())
    }

    /// SQL for a stamp so many seconds from now, as Django's `Now()` writes it.
    pub(crate) fn stamp(&self, seconds: i64) -> String {
        match &self.database {
            Database::Postgres(_) => format!("(now() + interval '{seconds} seconds')"),
            Database::Mysql(_) => format!("(NOW(6) + INTERVAL {seconds} SECOND)"),
            Database::Sqlite(_) => format!("strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds} seconds')"),
        }
    }

    /// SQL for a point in time so many seconds from now, as Python writes it.
    pub(crate) fn moment(&self, seconds: i64) -> String {
        match &self.database {
            Database::Mysql(_) => format!("(UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND)"),
            _ => self.stamp(seconds),
        }
    }

    /// SQL for the whole seconds from now to the time in a column.
    pub(crate) fn seconds_to(&self, column: &str) -> String {
        match &self.database {
            Database::Postgres(_) => format!("round(extract(epoch FROM {column} - now()))::bigint"),
            Database::Mysql(_) => format!("ROUND(TIMESTAMPDIFF(MICROSECOND, NOW(6), {column}) / 1000000)"),
            Database::Sqlite(_) => {
                format!("CAST(round((julianday({column}) - julianday('now')) * 86400) AS INTEGER)")
            }
        }
    }

    /// Adds a row with these stamps, and returns its id.
    pub(crate) async fn add(&self, updated_at: &str, retry_after: &str, retries: u16, schema_version: u16) -> i64 {
        let (task_id, created_at) = (Uuid::new_v4(), self.moment(-60));
        self.run(&format!(
            "INSERT INTO celery_outbox (created_at, updated_at, retry_after, retries, task_id, task_name, args, kwargs,
                options, schema_version, sentry_trace_id, sentry_baggage, structlog_context, redacted_args, redacted_kwargs)
             VALUES ({created_at}, {updated_at}, {retry_after}, {retries}, '{task_id}', 'shop.add', '[1, 2.50]',
                '{{\"k\": \"\u{e4}\"}}', '{{\"queue\": \"mail\"}}', {schema_version}, 'trace', 'bag', '{{\"u\": 1}}',
                '[1]', '{{}}')"
        ))
        .await;
        self.value(&format!("SELECT id FROM celery_outbox WHERE task_id = '{task_id}'"))
            .await
            .parse()
            .unwrap()
    }

    /// Adds rows that were never tried.
    pub(crate) async fn add_fresh(&self, count: usize) -> Vec<i64> {
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(self.add("NULL", "NULL", 0, 1).await);
        }
        ids
    }

    /// Adds many at once.
    pub(crate) async fn add_many(&self, count: usize) {
        let created_at = self.moment(0);
        let row =
            |number: usize| format!("({created_at}, 0, 'task-{number}', 'shop.add', '[{number}]', '{{}}', '{{}}', 1)");
        let rows: Vec<String> = (0..count).map(row).collect();
        self.run(&format!(
            "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version)
             VALUES {}",
            rows.join(",")
        ))
        .await;
    }

    /// As if the delay of every row that waits were over.
    pub(crate) async fn make_due(&self) {
        let (then, since) = (self.stamp(-2), self.stamp(-1));
        self.run(&format!(
            "UPDATE celery_outbox SET updated_at = {then}, retry_after = {since} WHERE retry_after IS NOT NULL"
        ))
        .await;
    }

    /// What the Python relay would claim now, by its own filter.
    pub(crate) fn pythons_filter(&self) -> String {
        let (now, stale) = (self.stamp(0), self.stamp(-300));
        format!("(updated_at IS NULL OR retry_after <= {now} OR (updated_at <= {stale} AND retry_after IS NULL))")
    }

    pub(crate) async fn claimed(&self) -> Vec<i64> {
        let claim = self.outbox.claim(100, STALE).await.unwrap();
        claim.rows.iter().map(|row| row.id).collect()
    }

    pub(crate) async fn count(&self, table: &str) -> String {
        self.value(&format!("SELECT COUNT(*) FROM {table}")).await
    }
}

async fn connect(url: &str) -> Conn {
    let opts = OptsBuilder::from_opts(Opts::from_url(url).unwrap()).prefer_socket(false);
    Conn::new(opts).await.unwrap()
}
