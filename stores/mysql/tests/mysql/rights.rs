//! Users who may do one thing only, as the documentation grants it; and the documentation's own SQL.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use sendoff::store::{RelayStore, WorkStore};

use crate::scratch::{LEASE, Scratch, connect, url};

const DOCUMENTATION: &str = include_str!("../../../../docs/stores/mysql.md");

/// A user of its own, with these rights; what stands for `shop.` is the test's database.
async fn user(scratch: &Scratch, grants: &[&str]) -> Conn {
    let schema = scratch.names.schema().unwrap();
    let mut root = connect().await;
    let host: Option<String> = root
        .query_first("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', -1)")
        .await
        .unwrap();
    let account = format!("'{schema}_{}'@'{}'", grants.len(), host.unwrap());
    root.query_drop(format!("CREATE USER {account} IDENTIFIED BY 'secret'"))
        .await
        .unwrap();
    for grant in grants {
        let grant = grant.replace("shop.", &format!("{schema}."));
        root.query_drop(format!("{grant} TO {account}")).await.unwrap();
    }
    let opts = OptsBuilder::from_opts(Opts::from_url(&url()).unwrap())
        .prefer_socket(false)
        .user(Some(format!("{schema}_{}", grants.len())))
        .pass(Some("secret"))
        .db_name(Some(schema));
    Conn::new(opts).await.unwrap()
}

#[tokio::test]
async fn a_producer_needs_insert_on_one_table_or_execute_on_one_procedure() {
    let scratch = Scratch::new().await;
    let insert = "INSERT INTO outbox_message (topic, payload, idempotency_key) VALUES ('t', 'x', 'k')";
    let mut inserts = user(&scratch, &["GRANT INSERT ON shop.outbox_message"]).await;
    inserts.query_drop(insert).await.unwrap();
    inserts.query_drop(insert).await.unwrap_err();
    inserts.query_drop("SELECT * FROM outbox_message").await.unwrap_err();
    let execute = [
        "GRANT EXECUTE ON PROCEDURE shop.outbox_emit",
        "GRANT EXECUTE ON PROCEDURE shop.outbox_inbox_once",
    ];
    let mut calls = user(&scratch, &execute).await;
    let later = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR";
    let nulls = "NULL, NULL, NULL, NULL, NULL, NULL, NULL";
    let call = format!("CALL outbox_emit('t', 'x', {nulls}, 'another', {later}, NULL, NULL, NULL)");
    let id: Option<String> = calls.query_first(call).await.unwrap();
    assert!(id.is_some());
    let once = format!("CALL outbox_inbox_once('{}', 'billing')", id.unwrap());
    assert!(calls.query_first::<String, _>(once.as_str()).await.unwrap().is_some());
    assert!(calls.query_first::<String, _>(once.as_str()).await.unwrap().is_none());
    calls.query_drop(insert).await.unwrap_err();
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!((backlog.ready, backlog.waiting), (1, 1));
}

#[tokio::test]
async fn a_producer_of_jobs_needs_insert_on_one_table_or_execute_on_one_procedure() {
    let scratch = Scratch::new().await;
    let mut inserts = user(&scratch, &["GRANT INSERT ON shop.outbox_job"]).await;
    let insert = "INSERT INTO outbox_job (topic, payload) VALUES ('t', 'x')";
    inserts.query_drop(insert).await.unwrap();
    inserts.query_drop("SELECT * FROM outbox_job").await.unwrap_err();
    let execute = ["GRANT EXECUTE ON PROCEDURE shop.outbox_emit_job", "GRANT USAGE ON *.*"];
    let mut calls = user(&scratch, &execute).await;
    // The parameters of outbox_emit, fourteen of them.
    let nulls = "NULL, NULL, NULL, 'key', NULL, NULL, NULL";
    let call = format!("CALL outbox_emit_job('t', 'x', {nulls}, 'once', NULL, NULL, 7, 3)");
    let first: Option<String> = calls.query_first(call.as_str()).await.unwrap();
    assert!(first.is_some());
    let second: Option<String> = calls.query_first(call.as_str()).await.unwrap();
    assert_eq!(second, first, "the second one names the first");
    calls.query_drop(insert).await.unwrap_err();
    let jobs = scratch.store.claim_batch("w", 10, LEASE).await.unwrap();
    assert_eq!(jobs.len(), 2);
    let called = jobs.iter().find(|job| Some(job.id.to_string()) == first).unwrap();
    assert_eq!(
        (called.key.as_deref(), called.priority, called.max_attempts),
        (Some("key"), 7, 3)
    );
}

#[tokio::test]
async fn the_sql_of_the_documentation_works_as_it_stands() {
    let scratch = Scratch::new().await;
    let mut conn = connect().await;
    let schema = scratch.names.schema().unwrap();
    conn.query_drop(format!(
        "USE {schema}; CREATE TABLE orders (id INT, total DECIMAL(10, 2))"
    ))
    .await
    .unwrap();
    let blocks: Vec<&str> = DOCUMENTATION
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        conn.query_drop(block).await.unwrap();
    }
    assert_eq!(scratch.store.backlog().await.unwrap().ready, 2);
}
