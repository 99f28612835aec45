//! The harness of every database: they differ in where they are.

macro_rules! implement_harness {
    ($backend:ident on $dialect:ident, $url:expr) => {
        use std::error::Error as StdError;

        use sendoff::emit::Dialect;
        use sendoff::{Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
        use sendoff_testkit::emit_suite::EmitHarness;

        use sea_orm::{
            ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
            SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
        };

        impl EmitHarness for Harness {
            type Tx = DatabaseTransaction;

            const DIALECT: Dialect = Dialect::$dialect;

            async fn begin(&self) -> Self::Tx {
                let options = TransactionOptions {
                    sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                    ..TransactionOptions::default()
                };
                connect(self).await.begin_with_options(options).await.unwrap()
            }

            async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
                outbox.emit(&*tx, message).await
            }

            async fn emit_many(
                &self,
                outbox: &Outbox,
                tx: &mut Self::Tx,
                messages: Vec<Message>,
            ) -> Result<EmittedMany> {
                outbox.emit_many(&*tx, messages).await
            }

            async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once> {
                inbox.once(&*tx, id, consumer).await
            }

            async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx) {
                outbox.commit(tx).await.unwrap();
            }

            async fn rollback(&self, tx: Self::Tx) {
                tx.rollback().await.unwrap();
            }

            async fn execute(&self, sql: &str) {
                connect(self).await.execute_unprepared(sql).await.unwrap();
            }

            async fn texts(&self, sql: &str) -> Vec<String> {
                let query = Statement::from_string(DbBackend::$backend, sql);
                let rows = connect(self).await.query_all_raw(query).await.unwrap();
                rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
            }

            fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
                matches!(error.downcast_ref(), Some(DbErr::Exec(_) | DbErr::Query(_)))
            }
        }

        async fn connect(harness: &Harness) -> DatabaseConnection {
            let url: String = $url(harness);
            let options = ConnectOptions::new(url).max_connections(1).to_owned();
            Database::connect(options).await.unwrap()
        }
    };
}
pub(crate) use implement_harness;
