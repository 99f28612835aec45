//! HTTP requests to a collector.

use std::fmt;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::TlsConfig;
use tokio::runtime::Handle;

/// Sends requests on the program's runtime. The exporter calls it from its own thread, which has no runtime.
pub(super) struct Client {
    client: reqwest::Client,
    runtime: Handle,
}

impl Client {
    pub(super) fn new() -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(TlsConfig::default().client()?)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sendoff/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Invalid, "cannot send traces")
                    .because(error.to_string())
                    .next_step("check the CA certificates of this machine")
                    .with_source(error)
            })?;
        Ok(Self {
            client,
            runtime: Handle::current(),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let send = async move {
            let answer = client.execute(request.try_into()?).await?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                *headers = answer.headers().clone();
            }
            Ok::<_, HttpError>(response.body(answer.bytes().await?)?)
        };
        self.runtime.spawn(send).await?
    }
}
