//! Two webhooks that hold every request until they are released, and then answer according to the message's topic.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The names of the sinks, which are the paths of the webhooks.
pub(crate) const SINKS: [&str; 2] = ["first", "second"];

/// What the webhooks do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It waits.
    Closed,
    /// It is answered according to its topic.
    Open,
    /// It is answered with this.
    All(u16),
}

/// The webhooks.
pub(crate) struct Endpoint {
    address: SocketAddr,
    gate: watch::Sender<Gate>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Sinks and ids of messages that have arrived, answered or not.
    seen: HashSet<(String, String)>,
    /// Sinks, ids and statuses, in the order of the answers.
    answered: Vec<(String, String, u16)>,
}

impl Endpoint {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (gate, state) = (watch::Sender::new(Gate::Closed), Arc::<Mutex<State>>::default());
        let (opened, noted) = (gate.clone(), state.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (opened, noted) = (opened.clone(), noted.clone());
                let service = service_fn(move |request| {
                    let (gate, noted) = (opened.subscribe(), noted.clone());
                    async move { Ok::<_, Infallible>(serve(request, gate, &noted).await) }
                });
                let builder = Builder::new(TokioExecutor::new());
                tokio::spawn(async move { builder.serve_connection(TokioIo::new(stream), service).await });
            }
        });
        Self { address, gate, state }
    }

    /// The sinks and a route of everything to both.
    pub(crate) fn toml(&self) -> String {
        let sink = |name: &str| {
            format!(
                "[[sink]]\nname = {name:?}\ntype = \"http\"\nurl = \"http://{}/{name}\"\n\
                 allow_private = [\"127.0.0.0/8\"]\nrequest_timeout = \"60s\"\ntimeout = \"90s\"\n\
                 requests = 256\nrequests_per_host = 256\n",
                self.address
            )
        };
        let sinks: String = SINKS.iter().map(|name| sink(name)).collect();
        format!("{sinks}[[route]]\nmatch = \"*\"\nto = {SINKS:?}\n")
    }

    pub(crate) fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    /// How many messages have arrived, counted once per webhook.
    pub(crate) fn seen(&self) -> usize {
        self.state.lock().unwrap().seen.len()
    }

    /// Whether the sink has answered a message with 2xx.
    pub(crate) fn has_taken(&self, sink: &str, id: &str) -> bool {
        let state = self.state.lock().unwrap();
        let is_it = |(to, of, status): &&(String, String, u16)| to == sink && of == id && *status == 200;
        state.answered.iter().any(|answer| is_it(&answer))
    }

    /// The ids that a sink has answered with 2xx, in the order of the first answers.
    pub(crate) fn taken(&self, sink: &str) -> Vec<String> {
        let mut known = HashSet::new();
        let state = self.state.lock().unwrap();
        let taken = state.answered.iter();
        let taken = taken.filter(|(to, id, status)| to == sink && *status == 200 && known.insert(id.clone()));
        taken.map(|(_, id, _)| id.clone()).collect()
    }
}

async fn serve(
    request: Request<Incoming>,
    mut gate: watch::Receiver<Gate>,
    state: &Mutex<State>,
) -> Response<Empty<Bytes>> {
    let (parts, body) = request.into_parts();
    // The relay may vanish in the middle.
    let _ = body.collect().await;
    let header = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
    let (sink, id) = (parts.uri.path()[1..].to_owned(), header("webhook-id"));
    state.lock().unwrap().seen.insert((sink.clone(), id.clone()));
    let opened = gate.wait_for(|gate| *gate != Gate::Closed).await;
    let status = match opened.map(|gate| *gate) {
        Ok(Gate::All(status)) => status,
        _ => answer_to(&header("sendoff-topic"), &sink),
    };
    state.lock().unwrap().answered.push((sink, id, status));
    Response::builder().status(status).body(Empty::new()).unwrap()
}

/// The first may reject, permanently or temporarily, what the second accepts.
pub(crate) fn answer_to(topic: &str, sink: &str) -> u16 {
    match topic {
        "order.refused" if sink == SINKS[0] => 400,
        "order.busy" if sink == SINKS[0] => 500,
        _ => 200,
    }
}
