//! What a store may lack, and how it says so.

use std::time::Duration;

use sendoff::store::Figures;
use sendoff::{ErrorKind, Message};
use tokio::time::timeout;

use super::Capabilities;
use super::scene::Scene;

/// Something that a case needs and not every store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Sql,
    Migrations,
    ConcurrentTransactions,
    Jobs,
    JobsAndSql,
    Figures,
    FiguresAndSql,
    FiguresAndJobs,
}

impl Need {
    pub(super) fn is_met_by(self, capabilities: Capabilities) -> bool {
        match self {
            Self::Sql => capabilities.sql,
            Self::Migrations => capabilities.migrations && capabilities.sql,
            Self::ConcurrentTransactions => capabilities.concurrent_transactions,
            Self::Jobs => capabilities.jobs,
            Self::JobsAndSql => capabilities.jobs && capabilities.sql,
            Self::Figures => capabilities.figures,
            Self::FiguresAndSql => capabilities.figures && capabilities.sql,
            Self::FiguresAndJobs => capabilities.figures && capabilities.jobs,
        }
    }

    /// Fails when the store has it after all: then it has to declare it, and is held to it.
    pub(super) async fn is_answered_unsupported(self, scene: Scene) {
        match self {
            Self::Sql => {
                let scripts = scene.subject.migrate.migrations();
                assert!(scripts.is_empty(), "the store has SQL of its own");
                let answer = scene.subject.database.execute("SELECT 1").await;
                assert_eq!(answer.expect_err("SQL was run").kind(), ErrorKind::Unsupported);
            }
            Self::Migrations => {
                let state = scene.subject.migrate.migration_state().await;
                assert_eq!(state.expect_err("there is a schema").kind(), ErrorKind::Unsupported);
                let migrated = scene.subject.migrate.migrate().await;
                assert_eq!(migrated.expect_err("it migrated").kind(), ErrorKind::Unsupported);
            }
            Self::ConcurrentTransactions => one_transaction_at_a_time(scene).await,
            Self::Figures | Self::FiguresAndSql | Self::FiguresAndJobs if scene.capabilities.figures => {}
            Self::Figures | Self::FiguresAndSql | Self::FiguresAndJobs => {
                let overview = scene.subject.operate.overview().await;
                assert_eq!(overview.expect_err("an overview").kind(), ErrorKind::Unsupported);
                let relay = scene.idle_relay().await.expect("a relay");
                let written = scene
                    .subject
                    .relay
                    .write_figures(relay.owner, &Figures::default())
                    .await;
                assert_eq!(written.expect_err("figures").kind(), ErrorKind::Unsupported);
            }
            Self::Jobs | Self::JobsAndSql => assert!(scene.subject.work.is_none(), "there are jobs"),
        }
    }
}

/// The second of two transactions waits or is told to come again, and loses nothing.
async fn one_transaction_at_a_time(scene: Scene) {
    let emit = scene.subject.emit.clone();
    let mut first = emit.begin().await.unwrap();
    first.emit(&[Message::json("t", "first").unwrap()]).await.unwrap();
    let second = timeout(Duration::from_millis(300), async {
        let mut second = emit.begin().await?;
        second.emit(&[Message::json("t", "second").unwrap()]).await?;
        second.commit().await
    });
    match second.await {
        Err(_) => {}
        Ok(Err(error)) => assert!(error.is_temporary(), "{error}"),
        Ok(Ok(())) => panic!("two transactions wrote at the same time, which the harness declares impossible"),
    }
    first.commit().await.unwrap();
    scene.emit([Message::json("t", "third").unwrap()]).await.unwrap();
    let mut relay = scene.relay().await.unwrap();
    relay.read_rows(2).await;
}
