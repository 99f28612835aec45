//! Relays in a world that goes wrong, in an order that follows from a number.
//!
//! A [`Plan`] follows from a seed: how many relays there are, what is emitted and when, and what goes wrong. Relays run as
//! they are, on a [`MemoryStore`] at the other end of a wire and with sinks at the end of another, in tokio's paused time.
//! Every call may be late, be refused, lose its answer or never be answered; processes are killed, stand still, or are told
//! to stop; the database is replaced by a standby that lags, and its clock is set; operators act in the middle of it.
//!
//! [`Rule`]s are checked all the time, and once all faults have ended. The same seed is the same simulation, call by call:
//! all chance comes from it, and nothing depends on how quick the machine is. It has to run on a runtime of its own, with
//! one thread and with paused time.
//!
//! | file | what it does |
//! |---|---|
//! | `plan`, `message` | decide what is to happen |
//! | `director`, `operator` | let it happen |
//! | `process` | runs a relay, and kills it |
//! | `store`, `wire`, `sink` | stand between a relay and the world |
//! | `ledger` | knows what is true of every message |
//! | `rules`, `ending` | judge |

mod director;
mod ending;
mod ledger;
mod message;
mod operator;
mod plan;
mod process;
mod rules;
mod sink;
mod store;
mod verdict;
mod wire;
mod world;

use std::time::{Duration, UNIX_EPOCH};

pub use message::{Draft, Temper};
pub use plan::{Operation, Plan, Step};
pub use verdict::{Report, Rule, Violation};

use crate::MemoryStore;
use director::Director;
use message::{SINKS, SOMEWHERE, routes};
use world::{Patterns, World};

/// How many lanes there are: few, so that messages meet in them, and relays have to share.
const LANES: (u16, u16) = (5, 1);

/// Runs simulations, one after the other.
#[derive(Clone)]
pub struct Simulator(Patterns);

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator").finish_non_exhaustive()
    }
}

impl Simulator {
    /// One that can run any of them.
    ///
    /// # Errors
    /// None that a user could mend.
    pub fn new() -> sendoff::Result<Self> {
        let parsed = |(pattern, sinks): (String, _)| Ok((pattern.parse()?, sinks));
        Ok(Self(Patterns {
            routes: routes().map(parsed).collect::<sendoff::Result<_>>()?,
            somewhere: SOMEWHERE.parse()?,
            skip: "skip.*".parse()?,
            park: "park.*".parse()?,
        }))
    }

    /// Runs a plan; `logged` keeps everything that happens.
    pub async fn run(&self, plan: Plan, logged: bool) -> Report {
        let store = MemoryStore::builder()
            .lanes(LANES.0, LANES.1)
            .began(UNIX_EPOCH + Duration::from_secs(1_700_000_000))
            .build();
        let world = World::new(plan, store, self.0.clone(), logged);
        let mut director = Director::new(world.clone());
        let played = async {
            director.play().await?;
            director.end().await
        };
        if let Err(error) = played.await {
            world.broken(Rule::Survives, format!("the simulation itself failed: {error}"));
        }
        let took = world.ms();
        let log = world.take_log();
        let state = world.state();
        Report {
            plan: world.plan.clone(),
            violation: state.violation.clone(),
            log,
            messages: state.ledger.notes.iter().filter(|note| note.is_due()).count(),
            publications: state.publications,
            took,
        }
    }
}
