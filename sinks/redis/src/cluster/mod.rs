//! A cluster: each command goes to the node that has its key.
//!
//! The driver has connections to clusters, too. They are not used, because one switch of theirs makes them follow slots that
//! move and also send a command again whose answer was lost, which may be a second copy that nobody knows of; and because all
//! their nodes wait while one of them is mended. Here nodes are links of their own, and only what surely was not carried out
//! is sent on.

mod node;
mod places;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use redis::{Cmd, RedisResult, ServerError, Value};
use sendoff_wire::Refusal;
use tokio::time::{sleep, timeout};

use self::node::Node;
pub(crate) use self::places::Address;
use self::places::Places;
use crate::dial::Dialer;
use crate::error::{self, Lack};

/// How often a command goes where it is sent to, and how long it waits before it does the first time; twice as long each time
/// after that. Nodes need a moment to agree.
const TURNS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(5);

/// After so many calls in a row that no node has answered the cluster is looked for anew, by its settings.
const UNHEARD: u32 = 2;

pub(crate) struct Cluster {
    /// Of the node that the settings name.
    dialer: Dialer,
    places: Mutex<Places>,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// Something has shown that places may have changed.
    stale: AtomicBool,
    /// How many calls in a row no node has answered.
    unheard: AtomicU32,
}

/// A command without an answer.
struct Open {
    /// Its place among those of the call.
    at: usize,
    command: Cmd,
    route: Route,
}

/// Where to send a command.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Route {
    /// To the node that has its key, as far as we know.
    ByKey,
    /// To this one, which was told to have it.
    To(Address),
    /// To this one, which is about to get it.
    Asking(Address),
}

/// What a node said, or why it could not be asked.
type Answer = Result<RedisResult<Value>, Refusal>;

impl Cluster {
    /// Finds out which node has which slots.
    pub(crate) async fn find(dialer: &Dialer) -> Result<Self, Refusal> {
        let address = dialer.address();
        let link = dialer.server().await?;
        let places = Places::ask(&link, &address).await?;
        let node = Node::new(dialer.clone(), Some(link));
        Ok(Self {
            dialer: dialer.clone(),
            places: Mutex::new(places),
            nodes: Mutex::new(HashMap::from([(address, Arc::new(node))])),
            stale: AtomicBool::new(false),
            unheard: AtomicU32::new(0),
        })
    }

    /// Sends all commands at once and returns each one's answer.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if self.stale.swap(false, Ordering::Relaxed) {
            // What it does not find out is found out by commands that are sent on.
            let _ = timeout(self.dialer.patience(), self.look_again()).await;
        }
        let mut answers = vec![Err(Lack::Settled(error::strange())); commands.len()];
        let mut heard = commands.is_empty();
        let mut open: Vec<Open> = commands
            .into_iter()
            .enumerate()
            .map(|(at, command)| Open {
                at,
                command,
                route: Route::ByKey,
            })
            .collect();
        for turn in 0..=TURNS {
            let mut again = Vec::new();
            for (mut each, from, answer) in self.send_once(open).await {
                heard |= matches!(answer, Ok(Ok(_)));
                match self.follow(&each.command, &from, &answer) {
                    Some(route) if turn < TURNS => {
                        each.route = route;
                        again.push(each);
                    }
                    _ => answers[each.at] = judged(answer),
                }
            }
            if again.is_empty() {
                break;
            }
            // In the order in which they came: those of a node share one pipeline.
            again.sort_unstable_by_key(|each| each.at);
            open = again;
            sleep(PAUSE * 2_u32.pow(turn)).await;
        }
        self.note(heard);
        answers
    }

    /// Sends each where it is to go, all nodes at the same time. Tells who has answered, too.
    async fn send_once(&self, open: Vec<Open>) -> Vec<(Open, Address, Answer)> {
        let mut groups: HashMap<(Address, bool), Vec<Open>> = HashMap::new();
        for each in open {
            let target = match &each.route {
                Route::ByKey => (self.owner(&each.command), false),
                Route::To(address) => (address.clone(), false),
                Route::Asking(address) => (address.clone(), true),
            };
            groups.entry(target).or_default().push(each);
        }
        let sending = groups.into_iter().map(|((address, asking), group)| async move {
            let answers = self.send_to(&address, asking, &group).await;
            let told = move |(each, answer)| (each, address.clone(), answer);
            group.into_iter().zip(answers).map(told).collect::<Vec<_>>()
        });
        join_all(sending).await.into_iter().flatten().collect()
    }

    async fn send_to(&self, address: &Address, asking: bool, group: &[Open]) -> Vec<Answer> {
        let link = match self.node(address).link().await {
            Ok(link) => link,
            Err(refusal) => return vec![Err(refusal); group.len()],
        };
        let mut commands = Vec::with_capacity(group.len() * 2);
        for each in group {
            if asking {
                commands.push(redis::cmd("ASKING"));
            }
            commands.push(each.command.clone());
        }
        let answers = link.send(commands).await;
        let (first, step) = if asking { (1, 2) } else { (0, 1) };
        answers.into_iter().skip(first).step_by(step).map(Ok).collect()
    }

    /// Where a command has to go on to, if its answer says so; and what else the answer teaches.
    fn follow(&self, command: &Cmd, from: &Address, answer: &Answer) -> Option<Route> {
        let refusal = match answer {
            Ok(Ok(Value::ServerError(refusal))) => refusal,
            Ok(Ok(_)) => return None,
            // Another node may have taken its place.
            Ok(Err(_)) | Err(_) => {
                self.stale.store(true, Ordering::Relaxed);
                return None;
            }
        };
        match refusal.code() {
            "MOVED" => {
                self.stale.store(true, Ordering::Relaxed);
                let address = told(refusal, from)?;
                lock(&self.places).put(command, address.clone());
                Some(Route::To(address))
            }
            "ASK" => told(refusal, from).map(Route::Asking),
            "TRYAGAIN" => Some(Route::ByKey),
            "READONLY" | "CLUSTERDOWN" => {
                self.stale.store(true, Ordering::Relaxed);
                None
            }
            _ => None,
        }
    }

    fn note(&self, heard: bool) {
        let unheard = if heard {
            0
        } else {
            self.unheard.load(Ordering::Relaxed).saturating_add(1)
        };
        self.unheard.store(unheard, Ordering::Relaxed);
    }

    /// Asks the nodes, until one tells, which of them has which slots now.
    async fn look_again(&self) {
        let mut known: Vec<(Address, Arc<Node>)> = self.known();
        // Those that have answered lately do so at once.
        known.sort_by_key(|(_, node)| !node.is_linked());
        for (address, node) in known {
            let Ok(link) = node.link().await else { continue };
            if let Ok(places) = Places::ask(&link, &address).await {
                lock(&self.nodes).retain(|address, _| places.have(address) || *address == self.dialer.address());
                *lock(&self.places) = places;
                return;
            }
        }
    }

    fn known(&self) -> Vec<(Address, Arc<Node>)> {
        let nodes = lock(&self.nodes);
        nodes
            .iter()
            .map(|(address, node)| (address.clone(), Arc::clone(node)))
            .collect()
    }

    fn owner(&self, command: &Cmd) -> Address {
        let owner = lock(&self.places).of(command);
        // Any of them knows better.
        owner.unwrap_or_else(|| {
            let linked = self.known().into_iter().find(|(_, node)| node.is_linked());
            linked.map_or_else(|| self.dialer.address(), |(address, _)| address)
        })
    }

    fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = lock(&self.nodes);
        let node = nodes
            .entry(address.clone())
            .or_insert_with(|| Arc::new(Node::new(self.dialer.at(address), None)));
        Arc::clone(node)
    }

    /// Asks the nodes for anything, until one answers.
    pub(crate) async fn ping(&self) -> RedisResult<Value> {
        let mut answer = Ok(Value::Nil);
        for (_, node) in self.known() {
            let Ok(link) = node.link().await else { continue };
            answer = link.ping().await;
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.unheard.load(Ordering::Relaxed) < UNHEARD
    }

    /// Ends all its connections, whoever still uses them.
    pub(crate) fn end(&self) {
        self.unheard.store(UNHEARD, Ordering::Relaxed);
        for (_, node) in self.known() {
            node.end();
        }
    }
}

/// What an answer means for a message that hangs on it.
fn judged(answer: Answer) -> Result<Value, Lack> {
    match answer {
        Ok(answer) => error::judged(answer, true),
        Err(refusal) => Err(Lack::Settled(refusal.outcome())),
    }
}

/// Where a MOVED or an ASK leads to: `3999 127.0.0.1:6381`.
fn told(refusal: &ServerError, from: &Address) -> Option<Address> {
    let (_slot, address) = refusal.details()?.split_once(' ')?;
    Address::parse(address.trim(), from)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
