//! sea-orm: a model and its message.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use sea_orm::{ActiveModelTrait, ConnectionTrait, Database, IntoActiveModel, TransactionTrait};
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Message, Outbox};

mod order {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, DeriveEntityModel, serde::Serialize, serde::Deserialize)]
    #[sea_orm(table_name = "orders")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub(crate) id: i64,
        pub(crate) customer: String,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("sea_orm").await?;
    let db = Database::connect(&url).await?;
    db.execute_unprepared("CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL)")
        .await?;

    // `sendoff migrate` does this once per deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    // The order and its message are one transaction.
    let outbox = Outbox::new();
    let tx = db.begin().await?;
    let order = order::Model {
        id: 42,
        customer: "ada".to_owned(),
    };
    let order = order.into_active_model().insert(&tx).await?;
    let placed = Message::json("order.placed", &order)?.key(&order.customer);
    println!("message {}", outbox.emit(&tx, placed).await?.id());
    outbox.commit(tx).await?;

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
    let handlers = Handlers::builder()
        .on("order.*", |order: order::Model, context: Context| async move {
            println!("{}: {order:?}", context.topic());
            Ok(())
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("mails", Arc::new(handlers))
        .route("order.*".parse()?, ["mails"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (1, 1));
    Ok(())
}
