//! The protocol of the tables, on every database.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

mod claiming;
mod operating;
mod relaying;
mod scratch;
mod settling;

/// Makes a test for each database out of a function that takes scratch tables.
#[macro_export]
macro_rules! on_every_database {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                super::$name($crate::scratch::Scratch::postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_mysql() {
                super::$name($crate::scratch::Scratch::mysql().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$name($crate::scratch::Scratch::sqlite().await).await;
            }
        })*
    };
}
