//! The harness of both databases, and the tests of both: they differ in the type of the connection.

macro_rules! implement_harness {
    ($connection:ident on $dialect:ident at $url:expr, $texts:expr) => {
        use std::error::Error as StdError;

        use diesel_async::{AsyncConnection, SimpleAsyncConnection, TransactionManager, $connection};
        use sendoff::emit::Dialect;
        use sendoff::{BoxError, Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
        use sendoff_testkit::Log;
        use sendoff_testkit::emit_suite::{EmitHarness, message};

        type Manager = <$connection as AsyncConnection>::TransactionManager;

        impl EmitHarness for Harness {
            /// Started and ended by the manager that `connection.transaction(…)` uses: the suite's cases need more than
            /// a closure.
            type Tx = $connection;

            const DIALECT: Dialect = Dialect::$dialect;

            async fn begin(&self) -> Self::Tx {
                let mut connection = connect().await;
                Manager::begin_transaction(&mut connection).await.unwrap();
                connection
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

            async fn commit_by(&self, outbox: &Outbox, mut tx: Self::Tx) {
                let committed = outbox.wake_after(Manager::commit_transaction(&mut tx)).await;
                committed.unwrap();
            }

            async fn rollback(&self, mut tx: Self::Tx) {
                Manager::rollback_transaction(&mut tx).await.unwrap();
            }

            async fn execute(&self, sql: &str) {
                connect().await.batch_execute(sql).await.unwrap();
            }

            async fn texts(&self, sql: &str) -> Vec<String> {
                $texts(sql, connect().await).await
            }

            fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
                matches!(
                    error.downcast_ref(),
                    Some(diesel::result::Error::DatabaseError(..))
                )
            }
        }

        async fn connect() -> $connection {
            $connection::establish(&$url).await.unwrap()
        }

        async fn emitted(harness: &Harness) -> usize {
            let topics = harness.sql("SELECT topic FROM outbox_message");
            harness.texts(&topics).await.len()
        }

        #[tokio::test]
        async fn an_error_of_the_closure_takes_the_message_back_and_wakes_nobody() {
            let harness = fresh().await;
            let outbox = harness.outbox();
            let mut connection = connect().await;
            let outcome = connection.transaction(async |tx| {
                let _ = outbox.emit(tx, message("a")).await?;
                Err::<(), BoxError>("the order cannot be placed".into())
            });
            outbox.wake_after(outcome).await.unwrap_err();
            assert!(futures::FutureExt::now_or_never(outbox.waker().woken()).is_none());
            assert_eq!(emitted(&harness).await, 0);
        }

        #[tokio::test]
        async fn emitting_outside_a_transaction_warns() {
            let harness = fresh().await;
            let outbox = harness.outbox();
            let mut connection = connect().await;
            let (warnings, _guard) = Log::collect(tracing::Level::WARN);

            let _ = outbox.emit(&mut connection, message("a")).await.unwrap();
            let warned = warnings.take();
            assert!(
                warned.contains("WARN") && warned.contains("sendoff::emit: a message is emitted outside a transaction"),
                "{warned}"
            );
            assert!(warned.contains("connection.transaction("), "{warned}");

            let emit = connection.transaction(async |tx| Ok::<_, BoxError>(outbox.emit(tx, message("a")).await?));
            let _ = outbox.wake_after(emit).await.unwrap();
            assert_eq!(warnings.take(), "");
            assert!(futures::FutureExt::now_or_never(outbox.waker().woken()).is_some());
            assert_eq!(emitted(&harness).await, 2);
        }
    };
}
pub(crate) use implement_harness;
