//! An OTLP collector, over HTTP and gRPC, that also passes all other requests to a test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;
use tokio::net::TcpListener;

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;
type Handler = dyn Fn(&str, &HeaderMap) -> Answer + Send + Sync;

/// A span that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Collected {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) links: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) authorization: Option<String>,
    attributes: Vec<(String, String)>,
}

impl Collected {
    pub(crate) fn is(&self, name: &str, service: &str) -> bool {
        self.name == name && self.service == service
    }

    #[track_caller]
    pub(crate) fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name} in {self:#?}")).1
    }
}

/// The collector.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    spans: Arc<Mutex<Vec<Collected>>>,
}

pub(crate) fn answer(status: u16) -> Answer {
    Response::builder()
        .status(status)
        .body(Full::default().boxed())
        .unwrap()
}

impl Collector {
    pub(crate) async fn start(others: impl Fn(&str, &HeaderMap) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let spans: Arc<Mutex<Vec<Collected>>> = Arc::default();
        let (known, others): (_, Arc<Handler>) = (spans.clone(), Arc::new(others));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (known, others) = (known.clone(), others.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (known, others) = (known.clone(), others.clone());
                    async move { Ok::<_, Infallible>(serve(request, &known, &others).await) }
                });
                let builder = Builder::new(TokioExecutor::new());
                tokio::spawn(async move { builder.serve_connection(TokioIo::new(stream), service).await });
            }
        });
        Self { address, spans }
    }

    pub(crate) fn spans(&self) -> Vec<Collected> {
        self.spans.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.spans.lock().unwrap().clear();
    }
}

async fn serve(request: Request<Incoming>, spans: &Mutex<Vec<Collected>>, others: &Arc<Handler>) -> Answer {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let authorization = parts.headers.get("authorization");
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    match parts.uri.path() {
        "/v1/traces" => {
            assert_eq!(parts.headers["content-type"], "application/x-protobuf");
            note(&body, authorization, spans);
            answer(200)
        }
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => {
            // A message of gRPC: whether it is compressed, its length, itself.
            assert_eq!(body[0], 0);
            note(&body[5..], authorization, spans);
            let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
            let empty = Full::from(Bytes::from_static(&[0; 5]));
            let body = empty.with_trailers(async move { Some(Ok(trailers)) });
            let response = Response::builder().header("content-type", "application/grpc");
            response.body(body.boxed()).unwrap()
        }
        path => others(path, &parts.headers),
    }
}

fn note(body: &[u8], authorization: Option<String>, spans: &Mutex<Vec<Collected>>) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for of_service in request.resource_spans {
        let resource = pairs(&of_service.resource.unwrap().attributes);
        let service = resource.into_iter().find(|(name, _)| name == "service.name").unwrap().1;
        for span in of_service.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            spans.lock().unwrap().push(Collected {
                service: service.clone(),
                name: span.name,
                trace: span.trace_id,
                id: span.span_id,
                parent: span.parent_span_id,
                links: span
                    .links
                    .into_iter()
                    .map(|link| (link.trace_id, link.span_id))
                    .collect(),
                authorization: authorization.clone(),
                attributes: pairs(&span.attributes),
            });
        }
    }
}

fn pairs(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .iter()
        .map(|pair| (pair.key.clone(), text(&pair.value)))
        .collect()
}
