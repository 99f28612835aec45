//! A cluster: each command goes to the node of its key.
//!
//! The driver also has cluster connections. They are not used for two reasons: the setting that follows moved slots
//! also sends a command again after its answer was lost, which may create an unnoticed second copy; and all nodes wait
//! while one of them is reconnected. Here every node has its own link, and a command is redirected only if it surely
//! was not executed.

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
use self::places::Positions;
use crate::connect::Connector;
use crate::error::{self, Lack};

/// How often a command follows a redirection, and the first pause before it does; every further pause is twice as long.
/// Nodes need a moment to agree.
const TURNS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(5);

/// After this many calls in a row without an answer from any node, the cluster is looked up again from the settings.
const UNHEARD: u32 = 2;

pub(crate) struct Cluster {
    /// For the node in the settings.
    connector: Connector,
    places: Mutex<Positions>,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// Whether slots may have moved.
    stale: AtomicBool,
    /// How many calls in a row had no answer from any node.
    unheard: AtomicU32,
}

/// A command without an answer.
struct Open {
    /// Its index in the call.
    at: usize,
    command: Cmd,
    route: Route,
}

/// Where to send a command.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Route {
    /// To the node that, as far as is known, has its key.
    ByKey,
    /// To this node, which has the slot according to MOVED.
    To(Address),
    /// To this node, which is importing the slot according to ASK.
    Asking(Address),
}

/// The answer of a node, or why it could not be reached.
type Answer = Result<RedisResult<Value>, Refusal>;

impl Cluster {
    /// Connects, and asks which node has which slots.
    pub(crate) async fn find(connector: &Connector) -> Result<Self, Refusal> {
        let address = connector.address();
        let link = connector.server().await?;
        let places = Positions::ask(&link, &address).await?;
        let node = Node::new(connector.clone(), Some(link));
        Ok(Self {
            connector: connector.clone(),
            places: Mutex::new(places),
            nodes: Mutex::new(HashMap::from([(address, Arc::new(node))])),
            stale: AtomicBool::new(false),
            unheard: AtomicU32::new(0),
        })
    }

    /// Sends all commands together, and returns the answer of each.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if self.stale.swap(false, Ordering::Relaxed) {
            // If this misses a moved slot, a redirection will show it.
            let _ = timeout(self.connector.patience(), self.look_again()).await;
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
            // In their original order: commands for one node share a pipeline.
            again.sort_unstable_by_key(|each| each.at);
            open = again;
            sleep(PAUSE * 2_u32.pow(turn)).await;
        }
        self.note(heard);
        answers
    }

    /// Sends each command to its node, all nodes at the same time. Also returns which node answered.
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

    /// The next route of a command, if its answer is a redirection. Notes what else the answer shows.
    fn follow(&self, command: &Cmd, from: &Address, answer: &Answer) -> Option<Route> {
        let refusal = match answer {
            Ok(Ok(Value::ServerError(refusal))) => refusal,
            Ok(Ok(_)) => return None,
            // Another node may have taken over.
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

    /// Asks the nodes, until one answers, which node has which slots now.
    async fn look_again(&self) {
        let mut known: Vec<(Address, Arc<Node>)> = self.known();
        // Nodes with an open link answer soonest.
        known.sort_by_key(|(_, node)| !node.is_linked());
        for (address, node) in known {
            let Ok(link) = node.link().await else { continue };
            if let Ok(places) = Positions::ask(&link, &address).await {
                lock(&self.nodes).retain(|address, _| places.have(address) || *address == self.connector.address());
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
        // Any node can redirect the command.
        owner.unwrap_or_else(|| {
            let linked = self.known().into_iter().find(|(_, node)| node.is_linked());
            linked.map_or_else(|| self.connector.address(), |(address, _)| address)
        })
    }

    fn node(&self, address: &Address) -> Arc<Node> {
        let mut nodes = lock(&self.nodes);
        let node = nodes
            .entry(address.clone())
            .or_insert_with(|| Arc::new(Node::new(self.connector.at(address), None)));
        Arc::clone(node)
    }

    /// Pings the nodes until one answers.
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

    /// Closes all its connections, even if they are in use.
    pub(crate) fn end(&self) {
        self.unheard.store(UNHEARD, Ordering::Relaxed);
        for (_, node) in self.known() {
            node.end();
        }
    }
}

/// The value of an answer, or what its lack means for the message.
fn judged(answer: Answer) -> Result<Value, Lack> {
    match answer {
        Ok(answer) => error::judged(answer, true),
        Err(refusal) => Err(Lack::Settled(refusal.outcome())),
    }
}

/// The address in a MOVED or an ASK: `3999 127.0.0.1:6381`.
fn told(refusal: &ServerError, from: &Address) -> Option<Address> {
    let (_slot, address) = refusal.details()?.split_once(' ')?;
    Address::parse(address.trim(), from)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
