//! The HTTP server: `/metrics`, `/live`, `/ready`, `/startup`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::render;
use crate::watch::Watch;

/// How many may ask at the same time.
const CONNECTIONS: usize = 64;
/// How long a question may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers until it is dropped.
pub(crate) async fn serve(watch: Watch, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(event = "watch_failed", %error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let watch = watch.clone();
        connections.spawn(async move {
            let answered = service_fn(move |request| {
                let response = answer(&watch, &request);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .keep_alive(true)
                .serve_connection(TokioIo::new(stream), answered);
            // Whoever hangs up early has had enough.
            let _ = connection.await;
            drop(permit);
        });
    }
}

fn answer(watch: &Watch, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        response
            .headers_mut()
            .insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => with_type(StatusCode::OK, render::CONTENT_TYPE, watch.render()),
        "/live" => probe(
            watch.is_alive(),
            "alive",
            "the relay has given no sign of life for long",
        ),
        "/startup" => probe(watch.has_started(), "started", "the relay has not begun to work"),
        "/ready" => {
            let readiness = watch.readiness();
            let body = format!("{}\n", readiness.to_json());
            with_type(status(readiness.is_ready()), "application/json", body)
        }
        "/" => text(StatusCode::OK, "/metrics\n/live\n/ready\n/startup\n".to_owned()),
        _ => text(
            StatusCode::NOT_FOUND,
            "there is /metrics, /live, /ready and /startup\n".to_owned(),
        ),
    }
}

fn probe(good: bool, yes: &str, no: &str) -> Response<Full<Bytes>> {
    text(status(good), format!("{}\n", if good { yes } else { no }))
}

fn status(good: bool) -> StatusCode {
    if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-store"));
    response
}
