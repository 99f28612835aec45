//! `sendoff config`: the effective configuration.

use sendoff_relay::Relay;
use serde_json::json;

use crate::exit::{Done, Exit};
use crate::session::Session;
use crate::source::Source;
use crate::store::Store;

/// Show or check the configuration
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum Command {
    /// Print the effective configuration (file, environment, --database, defaults), without passwords
    Show,
    /// Check the configuration, without contacting the database or the sinks
    Check,
}

pub(crate) fn run(args: Args, session: &Session) -> Done {
    let config = session.config()?;
    match args.command {
        Command::Show if session.output.json => session.output.json(&config)?,
        Command::Show => session.output.print(&config.to_toml()?)?,
        Command::Check => {
            let source = session.global.source.as_deref();
            if config.sources.is_empty() && source.is_none() {
                let store = Store::open(&config.database)?;
                config.apply(Relay::builder(store.relay))?.build()?;
            } else {
                Source::open_all(&config, source)?;
            }
            if session.output.json {
                session.output.json(&json!({"ok": true}))?;
            } else {
                session.output.line("the configuration is valid")?;
            }
        }
    }
    Ok(Exit::Ok)
}
