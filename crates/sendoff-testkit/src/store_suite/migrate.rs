//! The schema: created, kept, and never touched when it is another program's.

use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::MigrationState;

use super::Setup;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, plain};

const EMPTY: Setup = Setup {
    migrated: false,
    ..Setup::PLAIN
};

const WINDOWS: Setup = Setup {
    dedup_window: Some(Duration::from_secs(90)),
    inbox_retention: Some(Duration::from_secs(120)),
    job_max_attempts: Some(3),
    ..Setup::PLAIN
};

cases![
    missing_tables_are_created needs Migrations with EMPTY,
    missing_tables_are_explained needs Migrations with EMPTY,
    migrating_twice_changes_nothing needs Migrations,
    windows_that_are_configured_are_in_the_tables needs Migrations with WINDOWS,
    windows_that_are_not_configured_are_left_alone needs Migrations,
    programs_may_migrate_at_once needs Migrations with EMPTY,
    tables_that_are_too_new_are_left_alone needs Migrations,
    the_steps_are_plain_sql_for_other_tools needs Migrations with EMPTY,
    steps_that_were_noted_by_hand_are_known needs Migrations with EMPTY,
    a_step_that_was_changed_is_noticed needs Migrations,
];

async fn missing_tables_are_created(scene: Scene) -> CaseResult {
    let migrate = &scene.subject.migrate;
    let MigrationState { applied, needed } = migrate.migration_state().await?;
    assert!(applied == 0 && needed > 0);
    let steps = migrate.migrate().await?;
    assert_eq!(steps, migrate.migrations());
    assert_eq!(
        migrate.migration_state().await?,
        MigrationState {
            applied: needed,
            needed
        }
    );
    migrate.check_schema().await?;
    scene.emit([plain("t")]).await?;
    assert_eq!(scene.relay().await?.read_messages(1).await.len(), 1);
    Ok(())
}

async fn missing_tables_are_explained(scene: Scene) -> CaseResult {
    let check = scene
        .subject
        .migrate
        .check_schema()
        .await
        .expect_err("there are no tables");
    let emit = scene.emit([plain("t")]).await.expect_err("there are no tables");
    let relay = scene.idle_relay().await.err().expect("there are no tables");
    let list = scene.subject.operate.summary().await.expect_err("there are no tables");
    for error in [check, relay, list] {
        assert_eq!(error.kind(), ErrorKind::SchemaMissing, "{error}");
        assert!(error.to_string().contains("sendoff migrate"), "{error}");
        assert!(!error.is_temporary());
    }
    assert!(!emit.is_temporary(), "{emit}");
    Ok(())
}

async fn migrating_twice_changes_nothing(scene: Scene) -> CaseResult {
    scene.emit([plain("t")]).await?;
    for _ in 0..2 {
        assert!(scene.second().await?.subject.migrate.migrate().await?.is_empty());
    }
    assert_eq!(scene.subject.relay.backlog().await?.ready, 1);
    Ok(())
}

async fn retention(scene: &Scene) -> sendoff::Result<Vec<Option<String>>> {
    let sql = "SELECT value FROM outbox_setting WHERE name IN ('dedup_window_seconds', 'inbox_retention_seconds', 'job_max_attempts') ORDER BY name";
    let rows = scene.subject.database.fetch(sql).await?;
    Ok(rows.into_iter().map(|mut row| row.remove(0)).collect())
}

async fn windows_that_are_configured_are_in_the_tables(scene: Scene) -> CaseResult {
    let configured = [Some("90".to_owned()), Some("120".to_owned()), Some("3".to_owned())];
    assert_eq!(retention(&scene).await?, configured);
    let migrate = &scene.subject.migrate;
    assert!(!migrate.write_retention().await?, "they are there");
    let database = &scene.subject.database;
    database.execute("UPDATE outbox_setting SET value = '7'").await?;
    assert!(migrate.write_retention().await?);
    assert_eq!(retention(&scene).await?, configured);
    database.execute("UPDATE outbox_setting SET value = '7'").await?;
    migrate.migrate().await?;
    assert_eq!(retention(&scene).await?, configured);
    Ok(())
}

async fn windows_that_are_not_configured_are_left_alone(scene: Scene) -> CaseResult {
    let database = &scene.subject.database;
    database.execute("UPDATE outbox_setting SET value = '7'").await?;
    assert!(!scene.subject.migrate.write_retention().await?);
    scene.subject.migrate.migrate().await?;
    assert_eq!(retention(&scene).await?, vec![Some("7".to_owned()); 3]);
    Ok(())
}

async fn programs_may_migrate_at_once(scene: Scene) -> CaseResult {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let program = scene.second().await?;
        tasks.spawn(async move {
            let applied = program.subject.migrate.migrate().await?;
            program.subject.migrate.check_schema().await?;
            Ok::<_, sendoff::Error>(applied.len())
        });
    }
    let mut applied = 0;
    for program in tasks.join_all().await {
        applied += program?;
    }
    assert_eq!(
        applied,
        scene.subject.migrate.migrations().len(),
        "each step was applied once"
    );
    scene.emit([plain("t")]).await?;
    Ok(())
}

async fn tables_that_are_too_new_are_left_alone(scene: Scene) -> CaseResult {
    let future = "INSERT INTO outbox_migration (version, name, applied_at, checksum) \
        SELECT 99, 'from the future', applied_at, checksum FROM outbox_migration WHERE version = 1";
    scene.subject.database.execute(future).await?;
    let migrate = scene.second().await?.subject.migrate;
    assert_eq!(migrate.migration_state().await?.applied, 99);
    for error in [migrate.migrate().await.err(), migrate.check_schema().await.err()] {
        assert_eq!(error.expect("it is too new").kind(), ErrorKind::SchemaTooNew);
    }
    let rows = scene
        .subject
        .database
        .fetch("SELECT CAST(count(*) AS text) FROM outbox_migration")
        .await?;
    assert_eq!(rows[0][0], Some((migrate.migrations().len() + 1).to_string()));
    Ok(())
}

async fn the_steps_are_plain_sql_for_other_tools(scene: Scene) -> CaseResult {
    // A user runs them with a tool of their own, which knows nothing of our ledger.
    for step in scene.subject.migrate.migrations() {
        assert!(!step.name.is_empty() && step.version > 0);
        scene.subject.database.run_script(&step.sql).await?;
    }
    scene.emit([plain("t")]).await?;
    let migrate = scene.second().await?.subject.migrate;
    migrate.migrate().await?;
    migrate.check_schema().await?;
    assert!(migrate.migrate().await?.is_empty());
    assert_eq!(
        scene.subject.relay.backlog().await?.ready,
        1,
        "what was there is still there"
    );
    Ok(())
}

async fn steps_that_were_noted_by_hand_are_known(scene: Scene) -> CaseResult {
    let (migrate, database) = (&scene.subject.migrate, &scene.subject.database);
    database.run_script(&migrate.before_migrations().await?).await?;
    for step in migrate.migrations() {
        database.run_script(&step.sql).await?;
        database.run_script(&step.note).await?;
    }
    let again = scene.second().await?.subject.migrate;
    assert_eq!(again.before_migrations().await?, "", "all of it is there");
    again.check_schema().await?;
    assert!(again.migrate().await?.is_empty());
    scene.emit([plain("t")]).await?;
    Ok(())
}

async fn a_step_that_was_changed_is_noticed(scene: Scene) -> CaseResult {
    let tamper = "UPDATE outbox_migration SET checksum = 'another' WHERE version = 1";
    scene.subject.database.execute(tamper).await?;
    let error = scene
        .second()
        .await?
        .subject
        .migrate
        .migrate()
        .await
        .expect_err("the ledger tells of another step");
    assert!(!error.is_temporary() && error.next().is_some(), "{error}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use sendoff::store::{MigrateStore, Migration};
    use sendoff::{Error, Result};

    use super::*;

    /// Tables of any version, for a program that needs version 5.
    struct At(u32);

    #[async_trait]
    impl MigrateStore for At {
        fn migrations(&self) -> Vec<Migration> {
            Vec::new()
        }

        async fn migration_state(&self) -> Result<MigrationState> {
            Ok(MigrationState {
                applied: self.0,
                needed: 5,
            })
        }

        async fn migrate(&self) -> Result<Vec<Migration>> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn tables_of_another_version_are_told_apart() {
        assert!(At(5).check_schema().await.is_ok());
        for (version, kind) in [
            (0, ErrorKind::SchemaMissing),
            (4, ErrorKind::SchemaTooOld),
            (6, ErrorKind::SchemaTooNew),
        ] {
            let checked = At(version).check_schema().await;
            assert_eq!(checked.as_ref().map_err(Error::kind), Err(kind));
        }
    }
}
