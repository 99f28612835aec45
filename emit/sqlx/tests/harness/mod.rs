//! The harness of every database: they differ in how a transaction begins.

macro_rules! implement_harness {
    ($database:ident on $dialect:ident, $begin:expr, $connect:expr) => {
        use std::error::Error as StdError;

        use sendoff::emit::Dialect;
        use sendoff::{Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
        use sendoff_testkit::emit_suite::EmitHarness;

        impl EmitHarness for Harness {
            type Tx = sqlx::Transaction<'static, sqlx::$database>;

            const DIALECT: Dialect = Dialect::$dialect;

            async fn begin(&self) -> Self::Tx {
                $begin(self).await
            }

            async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
                outbox.emit(tx, message).await
            }

            async fn emit_many(
                &self,
                outbox: &Outbox,
                tx: &mut Self::Tx,
                messages: Vec<Message>,
            ) -> Result<EmittedMany> {
                outbox.emit_many(tx, messages).await
            }

            async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once> {
                inbox.once(tx, id, consumer).await
            }

            async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx) {
                outbox.commit(tx).await.unwrap();
            }

            async fn rollback(&self, tx: Self::Tx) {
                tx.rollback().await.unwrap();
            }

            async fn execute(&self, sql: &str) {
                let mut connection = $connect(self).await;
                let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
                sql.execute(&mut connection).await.unwrap();
            }

            async fn texts(&self, sql: &str) -> Vec<String> {
                let mut connection = $connect(self).await;
                let sql = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
                sql.fetch_all(&mut connection).await.unwrap()
            }

            fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
                matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
            }
        }
    };
}
pub(crate) use implement_harness;
