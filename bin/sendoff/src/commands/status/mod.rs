//! `sendoff status`: whether messages flow.

mod layout;
mod lines;
mod screen;

use std::time::Duration;

use sendoff::Error;
use sendoff_operate::{Level, Operator, StatusView};
use serde_json::json;
use tokio::time::MissedTickBehavior;

use crate::exit::{Done, Exit, Failure};
use crate::session::Session;
use crate::signals;
use layout::Line;
use screen::{Resizes, Screen};

/// Show whether messages are being delivered, then rates, backlog, sinks, topics and relays
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 ok, 7 warning, 8 critical. With --watch, 0 when it is interrupted.")]
pub(crate) struct Args {
    /// Show the status again and again: redraw on a terminal, otherwise print a block each time
    #[arg(long, short)]
    watch: bool,
    /// Seconds between two updates with --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval, requires = "watch")]
    interval: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("it has to be from 0.1 to 3600".to_owned())
    }
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let operator = session.operator().await?;
    if args.watch {
        return watch(&operator, session, Duration::from_secs_f64(args.interval)).await;
    }
    let view = operator.status().await?;
    if session.output.json {
        session.output.json(&view)?;
    } else {
        let (columns, _) = screen::size(session.output.is_terminal());
        let lines = lines::of(&view, columns);
        session.output.print(&block(&lines, session))?;
    }
    Ok(match view.level {
        Level::Ok => Exit::Ok,
        Level::Warning => Exit::Warning,
        Level::Critical => Exit::Critical,
    })
}

fn block(lines: &[Line], session: &Session) -> String {
    let paint = session.output.paint();
    lines.iter().map(|line| line.painted(paint) + "\n").collect()
}

/// What a look found. A database that cannot be reached for a moment does not end the watch.
enum Look {
    Seen(Box<StatusView>),
    Missed(Error),
}

impl Look {
    fn lines(&self, columns: usize) -> Vec<Line> {
        match self {
            Self::Seen(view) => lines::of(view, columns),
            Self::Missed(error) => lines::missed(error, columns),
        }
    }
}

async fn watch(operator: &Operator, session: &Session, interval: Duration) -> Done {
    let stop = signals::stop_token()?;
    let mut resizes = Resizes::new();
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen: Option<Screen> = None;
    let mut last: Option<Look> = None;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Exit::Ok),
            () = resizes.next(), if screen.is_some() => {}
            _ = ticks.tick() => {
                let seen = tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(Exit::Ok),
                    seen = operator.status() => seen,
                };
                last = Some(match seen {
                    Ok(view) => Look::Seen(Box::new(view)),
                    // The first look fails like every other command.
                    Err(error) if error.is_temporary() && last.is_some() => Look::Missed(error),
                    Err(error) => return Err(error.into()),
                });
                if let Some(look) = last.as_ref().filter(|_| !is_drawn(session)) {
                    print(look, session)?;
                }
            }
        }
        if let Some(look) = last.as_ref().filter(|_| is_drawn(session)) {
            let screen = screen.get_or_insert_with(Screen::open);
            let (columns, rows) = screen::size(true);
            screen.draw(&look.lines(columns), columns, rows, session.output.paint())?;
        }
    }
}

fn is_drawn(session: &Session) -> bool {
    session.output.is_terminal() && !session.output.json
}

/// Off a terminal: one line of JSON, or a block and an empty line.
fn print(look: &Look, session: &Session) -> Result<(), Failure> {
    match look {
        Look::Seen(view) if session.output.json => session.output.json(view)?,
        Look::Missed(error) if session.output.json => {
            session
                .output
                .json(&json!({"level": "unknown", "verdict": error.to_string()}))?;
        }
        Look::Seen(_) | Look::Missed(_) => {
            let (columns, _) = screen::size(false);
            session.output.print(&(block(&look.lines(columns), session) + "\n"))?;
        }
    }
    Ok(())
}
