//! `sendoff demo`: a small shop, its outbox in SQLite, two relays, and a proof at the end.

mod handlers;
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

/// How long the demo lasts where nobody can press Ctrl-C.
const UNATTENDED: Duration = Duration::from_secs(10);
/// When the first relay is killed, and how long after that the next one.
const FIRST_KILL: Duration = Duration::from_secs(3);
const NEXT_KILL: Duration = Duration::from_secs(7);
/// How long the relays may take for what is left when the shop closes: retries, and the lanes of a killed relay.
const SETTLE: Duration = Duration::from_secs(10);

/// See it work in a minute: a small shop with its outbox in SQLite, flaky handlers, killed relays, and a proof
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop after so many seconds [default: on Ctrl-C; 10 without a terminal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Orders a second
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Keep the database in this file, to look at it afterwards
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

/// Runs the demo. Ends with failure if a promise was broken.
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
        let paint = session.output.paint();
        session
            .output
            .print(&format!("{}{}", proof.told(paint), next_steps(&args, paint)))?;
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
    /// Arrivals at moments of the last second or so.
    marks: Vec<(Instant, usize)>,
    rate: f64,
    backlog: Backlog,
    looked: Option<Instant>,
}

impl Show<'_> {
    /// Lets the shop trade until the time is up or somebody stops it, and the relays finish what is left.
    async fn trade(
        &mut self,
        mut shop: Shop,
        mut relays: Relays,
        rate: u32,
        limit: Option<Duration>,
        stop: CancellationToken,
    ) -> Result<Shop> {
        let closing = CancellationToken::new();
        // Whatever ends this function also ends the shop's thread.
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
            self.tick("the shop is closed, the relays finish").await?;
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

/// Every message that the outbox's tables hold.
async fn stored(store: &Store) -> Result<Vec<(Uuid, Status)>> {
    let mut found = Vec::new();
    loop {
        let page = store.operate.list(&Filter::default(), 1000, found.len()).await?;
        // The demo alone writes here, and its ids are UUIDs; one that cannot be read would be a phantom.
        found.extend(
            page.messages
                .iter()
                .map(|message| (message.id.unwrap_or(Uuid::nil()), message.status)),
        );
        if !page.more {
            return Ok(found);
        }
    }
}

fn next_steps(args: &Args, paint: crate::output::Paint) -> String {
    let mut text = String::new();
    if let Some(path) = &args.keep {
        let database = format!("--database sqlite:{}", path.display());
        text += &format!("\n{}\n", paint.bold("Look at what is left"));
        text += &format!("  sendoff ls {database}\n  sendoff dead ls {database}\n");
    }
    text += &format!("\n{}\n", paint.bold("Next, with your own database"));
    for (command, words) in [
        ("sendoff init", "writes a commented sendoff.toml"),
        ("sendoff migrate", "creates the outbox's tables"),
        ("sendoff emit hello --payload '{}'", "emits a message"),
        ("sendoff relay", "delivers"),
    ] {
        text += &format!("  {command:<34} {}\n", paint.dim(words));
    }
    text
}

fn unused(path: &Path) -> Result<PathBuf> {
    match path.try_exists() {
        Ok(false) => Ok(path.to_owned()),
        Ok(true) => Err(
            Error::new(ErrorKind::Invalid, format!("{} is there already", path.display()))
                .because("the proof would count what an earlier run left in it")
                .next_step("name a file that does not exist yet"),
        ),
        Err(error) => Err(
            Error::new(ErrorKind::Invalid, format!("{} cannot be used", path.display()))
                .because(error.to_string())
                .next_step("name a file in a folder that you may write to")
                .with_source(error),
        ),
    }
}

fn no_folder(error: io::Error) -> Error {
    Error::new(ErrorKind::Backend, "no temporary folder can be made")
        .because(error.to_string())
        .next_step("set TMPDIR to a folder that you may write to")
        .with_source(error)
}

fn shop_failed(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Backend, "the shop ended badly")
        .because(error.to_string())
        .next_step("this is a defect of Sendoff: please report it")
        .with_source(error)
}

fn broken() -> Error {
    Error::new(ErrorKind::Backend, "the proof does not hold")
        .because("what arrived is not what was committed, see above")
        .next_step("this is a defect of Sendoff: please report it, with the file of a run with --keep")
}
