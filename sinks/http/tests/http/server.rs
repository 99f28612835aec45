//! A server that records requests and answers as a test says.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

pub(crate) type Answer = Response<Full<Bytes>>;
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Handler = Arc<dyn Fn(Seen) -> Answering + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

pub(crate) fn answer(status: u16) -> Answer {
    let mut answer = Response::new(Full::from("a body that the sink ignores"));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

impl Server {
    /// Answers all requests with one status.
    pub(crate) async fn status(status: u16) -> Self {
        Self::answering(move |_| answer(status)).await
    }

    pub(crate) async fn answering(handler: impl Fn(Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(None, move |seen| {
            let answer = handler(seen);
            async move { answer }
        })
        .await
    }

    pub(crate) async fn start<F>(tls: Option<TlsAcceptor>, handler: impl Fn(Seen) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::on("127.0.0.1:0".parse().unwrap(), tls, handler).await
    }

    /// The same at a given address. Dropping it closes all its connections.
    pub(crate) async fn on<F>(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        handler: impl Fn(Seen) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let handler: Handler = Arc::new(move |seen| Box::pin(handler(seen)));
        let (all, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let (all, handler, tls) = (Arc::clone(&all), Arc::clone(&handler), tls.clone());
                serving.spawn(async move {
                    match tls {
                        // A client that refuses the certificate ends the handshake.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, all, handler).await;
                            }
                        }
                        None => serve(stream, all, handler).await,
                    }
                });
            }
        });
        Self {
            address,
            seen,
            connections,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Server {
    /// Stops it, and returns when its port is free.
    #[allow(dead_code, reason = "only the conformance suite stops a server")]
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    all: Arc<Mutex<Vec<Seen>>>,
    handler: Handler,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (all, handler) = (Arc::clone(&all), Arc::clone(&handler));
        async move {
            let (head, body) = request.into_parts();
            // A connection that was cut has nothing to answer to.
            let Ok(body) = body.collect().await else {
                return Ok(answer(400));
            };
            let seen = Seen {
                method: head.method,
                uri: head.uri,
                version: head.version,
                headers: head.headers,
                body: body.to_bytes(),
            };
            all.lock().unwrap().push(seen.clone());
            Ok::<_, Infallible>(handler(seen).await)
        }
    });
    // A client may close its connection at any time.
    let _ = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
