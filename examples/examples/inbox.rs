//! The other end: a consumer that handles a message once, though it crashes in the middle and gets it three times.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior};
use sendoff::store::MigrateStore;
use sendoff::{Inbox, Once, Uuid};
use sendoff_rusqlite as _;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};

/// The note and the effect are one transaction: both are committed, or neither.
async fn charge(connection: &mut Connection, inbox: &Inbox, id: Uuid, crash: bool) -> Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if inbox.once(&tx, id, "billing").await? == Once::Seen {
        println!("{id}: charged before");
        return Ok(());
    }
    tx.execute("INSERT INTO charges VALUES (?1)", [id.to_string()])?;
    if crash {
        // As if the power went: the transaction is never committed.
        anyhow::bail!("the power is gone");
    }
    tx.commit()?;
    println!("{id}: charged");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("billing.db");
    // What `sendoff migrate` does, once a deployment, in the consumer's own database.
    SqliteStore::open(SqliteConfig::new(&file))?.migrate().await?;
    let mut connection = Connection::open(&file)?;
    connection.execute_batch("CREATE TABLE charges (id TEXT)")?;

    let inbox = Inbox::new();
    // Every copy of a message carries the same id. A broker sends it again until it is acknowledged.
    let id = Uuid::now_v7();
    for crash in [true, false, false] {
        if let Err(error) = charge(&mut connection, &inbox, id, crash).await {
            println!("{id}: {error}");
        }
    }
    let charges: i64 = connection.query_row("SELECT count(*) FROM charges", [], |row| row.get(0))?;
    assert_eq!(charges, 1);
    Ok(())
}
