//! `sendoff demo`: a small shop, its outbox in SQLite, two relays, and a proof at the end.

mod fit;
mod handlers;
mod next;
mod proof;
mod record;
mod relays;
mod screen;
mod shop;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sendoff::store::{Backlog, Filter, Status};
use sendoff::{Error, ErrorKind, Outbox, Result, Uuid};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::exit::{Done, Exit};
use crate::session::Session;
use crate::signals;
use crate::store::Store;
use proof::Proof;
use record::Record;
use relays::Relays;
use screen::{Moment, Screen};
use shop::Shop;

/// How long the demo lasts without a terminal, where Ctrl-C is not available.
const UNATTENDED: Duration = Duration::from_secs(10);
/// When the first relay is killed, and the time between kills.
const FIRST_KILL: Duration = Duration::from_secs(3);
const NEXT_KILL: Duration = Duration::from_secs(7);
/// How long the relays may work after the shop closes: on retries, and on the lanes of a killed relay.
const SETTLE: Duration = Duration::from_secs(10);

/// Run a demo: a shop with its outbox in SQLite, failing handlers, killed relays, and a final check for lost messages
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop after this many seconds [default: stop on Ctrl-C; without a terminal, after 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Number of orders per second
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Write the database to this file, and keep it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

/// Runs the demo. Fails if the proof does not hold.
pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let folder = tempfile::tempdir().map_err(no_folder)?;
    let path = match &args.keep {
        Some(path) => unused(path)?,
        None => folder.path().join("shop.db"),
    };
    let store = Store::sqlite(&path)?;
    store.migrate.migrate().await?;

    let stop = signals::stop_token()?;
    let (record, outbox) = (Record::default(), Outbox::new());
    let shop = Shop::open(&path, outbox.clone(), record.clone())?;
    let sink = Arc::new(handlers::handlers(&record)?);
    let relays = Relays::start(store.relay.clone(), sink, record.clone(), outbox.waker().clone())?;

    let attended = io::stdout().is_terminal() && io::stderr().is_terminal();
    let limit = args
        .seconds
        .map(Duration::from_secs)
        .or((!attended).then_some(UNATTENDED));
    let mut show = Show {
        screen: Screen::new(session.stderr, session.is_quiet()),
        store: &store,
        record: record.clone(),
        began: Instant::now(),
        marks: Vec::new(),
        rate: 0.0,
        backlog: Backlog::default(),
        looked: None,
    };
    let shop = show.trade(shop, relays, args.rate, limit, stop).await?;
    show.screen.close();

    let rows = shop.orders()?;
    let stored = stored(&store).await?;
    let proof = Proof::of(&record.notes(), &stored, rows);
    if session.output.json {
        session.output.json(&proof)?;
    } else {
        let (paint, columns) = (session.output.paint(), fit::columns(session.output.is_terminal()));
        session
            .output
            .print(&(proof.told(paint, columns) + &next::steps(args.keep.as_deref(), paint, columns)))?;
    }
    if !proof.holds() {
        return Err(broken().into());
    }
    Ok(Exit::Ok)
}

/// The demo while it runs.
struct Show<'a> {
    screen: Screen,
    store: &'a Store,
    record: Record,
    began: Instant,
    /// Numbers of arrivals during about the last second.
    marks: Vec<(Instant, usize)>,
    rate: f64,
    backlog: Backlog,
    looked: Option<Instant>,
}

impl Show<'_> {
    /// Runs the shop until the time is up or `stop` is cancelled, then lets the relays finish.
    async fn trade(
        &mut self,
        mut shop: Shop,
        mut relays: Relays,
        rate: u32,
        limit: Option<Duration>,
        stop: CancellationToken,
    ) -> Result<Shop> {
        let closing = CancellationToken::new();
        // Every return from this function also ends the shop's thread.
        let _guard = closing.clone().drop_guard();
        let closes = closing.clone();
        let mut trading = tokio::task::spawn_blocking(move || shop.trade(rate, &closes).map(|()| shop));

        let mut ticks = interval(Duration::from_millis(100));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut next_kill = FIRST_KILL;
        let shop = loop {
            tokio::select! {
                _ = ticks.tick() => self.tick("press Ctrl-C for the proof").await?,
                () = stop.cancelled() => closing.cancel(),
                ended = &mut trading => break ended.map_err(shop_failed)??,
            }
            if limit.is_some_and(|limit| self.began.elapsed() >= limit) {
                closing.cancel();
            }
            if self.began.elapsed() >= next_kill && !closing.is_cancelled() {
                relays.kill_one()?;
                next_kill += NEXT_KILL;
            }
            if closing.is_cancelled() {
                break (&mut trading).await.map_err(shop_failed)??;
            }
        };

        let closed = Instant::now();
        loop {
            ticks.tick().await;
            self.looked = None;
            self.tick("the shop is closed, the relays are finishing").await?;
            let left = self.backlog.ready + self.backlog.due + self.backlog.waiting;
            if left == 0 || closed.elapsed() >= SETTLE {
                break;
            }
        }
        relays.stop().await?;
        Ok(shop)
    }

    async fn tick(&mut self, phase: &'static str) -> Result<()> {
        let now = Instant::now();
        if self.looked.is_none_or(|last| now - last >= Duration::from_millis(400)) {
            self.backlog = self.store.relay.backlog().await?;
            self.looked = Some(now);
        }
        let notes = self.record.notes();
        self.marks.push((now, notes.arrived.len()));
        self.marks.retain(|(at, _)| now - *at <= Duration::from_millis(1500));
        if let (Some((from, before)), Some((until, after))) = (self.marks.first(), self.marks.last())
            && until > from
        {
            self.rate = (after - before) as f64 / (*until - *from).as_secs_f64();
        }
        self.screen.show(&Moment {
            elapsed: self.began.elapsed(),
            notes: &notes,
            backlog: self.backlog,
            rate: self.rate,
            phase,
        });
        Ok(())
    }
}

/// All messages in the outbox's tables.
async fn stored(store: &Store) -> Result<Vec<(Uuid, Status)>> {
    let page = store.operate.list(&Filter::default(), usize::MAX - 1).await?;
    // Only the demo writes here, and its ids are UUIDs; an unreadable id counts as a phantom.
    let found = page.messages.iter();
    Ok(found
        .map(|message| (message.id.unwrap_or(Uuid::nil()), message.status))
        .collect())
}

fn unused(path: &Path) -> Result<PathBuf> {
    match path.try_exists() {
        Ok(false) => Ok(path.to_owned()),
        Ok(true) => Err(
            Error::new(ErrorKind::Invalid, format!("{} already exists", path.display()))
                .because("the proof would count messages of an earlier run")
                .next_step("choose a file that does not exist yet"),
        ),
        Err(error) => Err(Error::new(ErrorKind::Invalid, format!("cannot use {}", path.display()))
            .because(error.to_string())
            .next_step("choose a file in a writable folder")
            .with_source(error)),
    }
}

fn no_folder(error: io::Error) -> Error {
    Error::new(ErrorKind::Backend, "cannot create a temporary folder")
        .because(error.to_string())
        .next_step("set TMPDIR to a writable folder")
        .with_source(error)
}

fn shop_failed(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Backend, "the shop crashed")
        .because(error.to_string())
        .next_step("please report this as a bug")
        .with_source(error)
}

fn broken() -> Error {
    Error::new(ErrorKind::Backend, "the final check of the demo failed")
        .because("the messages that arrived differ from those that were committed; see the lines above")
        .next_step("please report this as a bug, with the database file of a run with --keep")
}
