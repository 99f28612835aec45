//! The consumer: it handles a message once, although it gets the message three times and is killed the first time.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Inbox, Once, Uuid};
use tokio_postgres::{Client, NoTls};

/// The inbox record and the effect are one transaction: both are committed, or neither.
async fn charge(client: &mut Client, id: Uuid, is_slow: bool) -> Result<()> {
    let tx = client.transaction().await?;
    if Inbox::new().once(&tx, id, "billing").await? == Once::Seen {
        println!("{id}: already charged");
        return Ok(());
    }
    tx.execute("INSERT INTO charges VALUES ($1)", &[&id.to_string()])
        .await?;
    if is_slow {
        println!("{id}: charged, but not committed");
        std::future::pending::<()>().await;
    }
    tx.commit().await?;
    println!("{id}: charged");
    Ok(())
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Starts another process that handles the message, and kills it before it commits.
fn killed_consumer(url: &str, id: Uuid) -> Result<()> {
    let mut consumer = Command::new(std::env::current_exe()?)
        .args([url, &id.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = consumer.stdout.take().context("the consumer has no output")?;
    let line = BufReader::new(output)
        .lines()
        .next()
        .context("the consumer printed nothing")??;
    println!("{line}");
    consumer.kill()?;
    println!("{id}: killed ({})", consumer.wait()?);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    if let [url, id] = std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        return charge(&mut connect(url).await?, id.parse()?, true).await;
    }
    let url = sendoff_examples::empty_schema("inbox").await?;
    // `sendoff migrate` does this once per deployment, in the consumer's own database.
    PostgresStore::new(PostgresConfig::new(&url))?.migrate().await?;
    let mut client = connect(&url).await?;
    client.batch_execute("CREATE TABLE charges (id text)").await?;

    // Every copy of a message has the same id. A broker sends it again until it is acknowledged.
    let id = Uuid::now_v7();
    killed_consumer(&url, id)?;
    charge(&mut client, id, false).await?;
    charge(&mut client, id, false).await?;
    let charges: i64 = client.query_one("SELECT count(*) FROM charges", &[]).await?.get(0);
    assert_eq!(charges, 1);
    Ok(())
}
