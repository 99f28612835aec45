//! The HTTP server: `/metrics`, `/live`, `/ready`, `/startup`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::render;
use crate::watch::Watch;

/// How many connections may be open. A further one replaces the one that has been idle for longest, so that open connections
/// cannot block the probes.
const CONNECTIONS: usize = 64;
/// How long a connection stays open after its last request. The client has to read the answer in this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many clients may read the metrics at the same time: that answer is the only long one.
const READERS: usize = 4;
/// How much of an answer is written at a time.
const PIECE: usize = 64 << 10;

/// Serves requests until it is dropped.
pub(crate) async fn serve(watch: Watch, listener: TcpListener) {
    let readers = Arc::new(Semaphore::new(READERS));
    let mut tasks = JoinSet::new();
    let mut open: Vec<Open> = Vec::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(event = "watch_failed", %error, "cannot accept a connection to the metrics and probes");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        open.retain(|open| !open.task.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(at) = (0..open.len()).min_by_key(|at| *open[*at].until.borrow())
        {
            open.swap_remove(at).task.abort();
        }
        let (sender, until) = watch::channel(Instant::now() + PATIENCE);
        let task = tasks.spawn(attend(stream, watch.clone(), readers.clone(), sender));
        open.push(Open { task, until });
    }
}

/// A connection.
struct Open {
    task: AbortHandle,
    until: watch::Receiver<Instant>,
}

/// Serves one connection until it has been idle for too long.
async fn attend(stream: TcpStream, watch: Watch, readers: Arc<Semaphore>, until: watch::Sender<Instant>) {
    let mut expiry = until.subscribe();
    let answered = service_fn(move |request| {
        until.send_replace(Instant::now() + PATIENCE);
        let response = answer(&watch, &readers, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    // No separate timeout for headers: the idle timeout ends the connection in any case.
    let connection = http1::Builder::new()
        .keep_alive(true)
        .serve_connection(TokioIo::new(stream), answered);
    let expired = async move {
        loop {
            let until = *expiry.borrow_and_update();
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    };
    tokio::select! {
        // A client may close early.
        _ = connection => {}
        () = expired => {}
    }
}

fn answer(watch: &Watch, readers: &Arc<Semaphore>, request: &Request<Incoming>) -> Response<Answer> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => match readers.clone().try_acquire_owned() {
            Ok(reader) => {
                let mut response = with_type(StatusCode::OK, render::CONTENT_TYPE, watch.render());
                response.body_mut().reader = Some(reader);
                response
            }
            Err(_) => text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{READERS} clients are reading the metrics; try again\n"),
            ),
        },
        "/live" => probe(watch.is_alive(), "alive", "the relay's loop hangs"),
        "/startup" => probe(watch.has_started(), "started", "the relay has not started to work"),
        "/ready" => {
            let readiness = watch.readiness();
            let body = format!("{}\n", readiness.to_json());
            with_type(status(readiness.is_ready()), "application/json", body)
        }
        "/" => text(StatusCode::OK, "/metrics\n/live\n/ready\n/startup\n".to_owned()),
        _ => text(
            StatusCode::NOT_FOUND,
            "not found; use /metrics, /live, /ready or /startup\n".to_owned(),
        ),
    }
}

/// The body of an answer, written in pieces as the client reads it.
struct Answer {
    left: Bytes,
    /// Released when the body has been read.
    reader: Option<OwnedSemaphorePermit>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

fn probe(good: bool, yes: &str, no: &str) -> Response<Answer> {
    text(status(good), format!("{}\n", if good { yes } else { no }))
}

fn status(good: bool) -> StatusCode {
    if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn text(status: StatusCode, body: String) -> Response<Answer> {
    with_type(status, "text/plain; charset=utf-8", body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: String) -> Response<Answer> {
    let mut response = Response::new(Answer {
        left: Bytes::from(body),
        reader: None,
    });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
