//! `sendoff migrate`: creates and updates the outbox's tables.

use sendoff::store::{Migration, MigrationState};
use sendoff::{Error, ErrorKind};
use serde_json::json;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;
use crate::store::Store;

/// Create or update the outbox's tables; safe to repeat and to run concurrently
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Print the SQL that would run; change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum Command {
    /// Show the version of the tables; exit code 4 unless it is the version that this program needs
    Status,
    /// Print SQL that creates PostgreSQL roles for emitting, relaying, operating and reading
    Roles {
        /// Run the SQL, as the owner of the tables with the right to create roles; safe to repeat
        #[arg(long)]
        apply: bool,
    },
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let store = session.store()?;
    match args.command {
        Some(Command::Status) => status(&store, session).await,
        Some(Command::Roles { apply }) => roles(&store, apply, session).await,
        None if args.dry_run => dry_run(&store, session).await,
        None => migrate(&store, session).await,
    }
}

async fn migrate(store: &Store, session: &Session) -> Done {
    let applied = store.migrate.migrate().await?;
    let version = store.migrate.migration_state().await?.applied;
    if session.output.json {
        let applied: Vec<_> = applied.iter().map(named).collect();
        session.output.json(&json!({"applied": applied, "version": version}))?;
        return Ok(Exit::Ok);
    }
    for step in &applied {
        session
            .output
            .line(&format!("applied {:04} {}", step.version, step.name))?;
    }
    if applied.is_empty() {
        session
            .output
            .line(&format!("nothing to do: the tables are at version {version}"))?;
    }
    Ok(Exit::Ok)
}

async fn dry_run(store: &Store, session: &Session) -> Done {
    let MigrationState { applied, needed } = store.migrate.migration_state().await?;
    if applied > needed {
        store.migrate.check_schema().await?;
    }
    let steps = store.migrate.migrations();
    let missing: Vec<&Migration> = steps.iter().filter(|step| step.version > applied).collect();
    let before = if missing.is_empty() {
        String::new()
    } else {
        store.migrate.before_migrations().await?
    };
    if session.output.json {
        let steps: Vec<_> = missing
            .iter()
            .map(|step| json!({"version": step.version, "name": step.name, "sql": step.sql, "note": step.note}))
            .collect();
        session.output.json(&json!({"before": before, "would_apply": steps}))?;
        return Ok(Exit::Ok);
    }
    if !before.is_empty() {
        session
            .output
            .line(&format!("-- before the steps\n{}", before.trim_end()))?;
    }
    for step in &missing {
        session.output.line(&format!(
            "\n-- {:04} {}\n{}\n{}",
            step.version,
            step.name,
            step.sql.trim_end(),
            step.note
        ))?;
    }
    if missing.is_empty() {
        session.note(&format!("nothing to do: the tables are at version {applied}"));
    }
    Ok(Exit::Ok)
}

async fn status(store: &Store, session: &Session) -> Done {
    let MigrationState { applied, needed } = store.migrate.migration_state().await?;
    let state = match applied {
        0 => "missing",
        _ if applied < needed => "too old",
        _ if applied > needed => "too new",
        _ => "current",
    };
    let steps = store.migrate.migrations();
    if session.output.json {
        let steps: Vec<_> = steps
            .iter()
            .map(|step| json!({"version": step.version, "name": step.name, "applied": step.version <= applied}))
            .collect();
        session
            .output
            .json(&json!({"state": state, "applied": applied, "needed": needed, "migrations": steps}))?;
    } else {
        let rows = steps.iter().map(|step| {
            let (word, tone) = if step.version <= applied {
                ("applied", Tone::Good)
            } else {
                ("missing", Tone::Warning)
            };
            vec![
                Field::from(format!("{:04}", step.version)),
                Field::from(step.name),
                Field::toned(word, tone),
            ]
        });
        session.output.table(&["version", "name", "state"], rows.collect())?;
    }
    store.migrate.check_schema().await?;
    Ok(Exit::Ok)
}

async fn roles(store: &Store, apply: bool, session: &Session) -> Done {
    let Some(roles) = &store.roles else {
        return Err(
            Error::new(ErrorKind::Unsupported, "there is no role script for this database")
                .because("the role script is for PostgreSQL; SQLite has no users")
                .next_step(
                    "on SQLite, restrict access to the file; on MySQL, grant the privileges in docs/stores/mysql.md",
                )
                .into(),
        );
    };
    let sql = roles.roles_sql();
    if apply {
        roles.create_roles().await?;
    }
    match (session.output.json, apply) {
        (true, _) => session.output.json(&json!({"sql": sql, "applied": apply}))?,
        (false, true) => session.output.line("roles created and granted")?,
        (false, false) => session.output.line(sql.trim_end())?,
    }
    Ok(Exit::Ok)
}

fn named(step: &Migration) -> serde_json::Value {
    json!({"version": step.version, "name": step.name})
}
