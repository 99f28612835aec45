//! Publishing: one request per message, as many at the same time as the limits allow.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::future::join_all;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use rustls::ClientConfig;
use sendoff::sink::Limits;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result, Sink};
use sendoff_wire::{Fate, Parts};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::answer::{self, Answer, Shared};
use crate::encode::Encoder;
use crate::endpoint::{Target, origin};
use crate::error;
use crate::gates::{Gates, Pass, Stopped};
use crate::gone::Gone;
use crate::guard::Guard;
use crate::reach::reach;
use crate::retry_after::retry_after;
use crate::sign::Signer;
use crate::{HeaderTemplate, HttpConfig, Method};

/// How much of an answer's body is read, and for how long, so that its connection can be reused. The content is
/// ignored.
const MOST_OF_ANSWER: usize = 64 * 1024;
const LONGEST_ANSWER: Duration = Duration::from_secs(1);
/// A host that has answered other requests within this time is not the one that is down.
const JUST_NOW: Duration = Duration::from_secs(30);
/// A login with which a message was accepted within this time is not refused. The time is short, so that messages are
/// charged at most once or twice when a login expires.
const STILL_VALID: Duration = Duration::from_secs(10);

/// Publishes messages as HTTP requests.
pub struct HttpSink {
    config: HttpConfig,
    target: Target,
    shared: Shared,
    encoder: Encoder,
    signer: Signer,
    guard: Guard,
    gates: Gates,
    gone: Gone,
    tls: Arc<ClientConfig>,
    /// Dropping it closes its connections; `None` after `close`.
    client: RwLock<Option<Client>>,
}

impl HttpSink {
    /// Creates the sink, and reads its secrets and certificates. The first request connects.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: HttpConfig) -> Result<Self> {
        let guard = Guard::new(&config.allow_private);
        Self::guarded(config, guard)
    }

    fn guarded(config: HttpConfig, guard: Guard) -> Result<Self> {
        config.validate()?;
        let target = config.url.open()?;
        config.check_credentials(&target)?;
        let mut tls = config.tls.clone().unwrap_or_default().client()?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = client(&config, &guard, tls.clone())?;
        Ok(Self {
            shared: shared(&config, &target),
            encoder: Encoder::new(&config)?,
            signer: Signer::new(&config.secrets)?,
            gates: Gates::new(config.requests_per_host, config.requests),
            gone: Gone::default(),
            tls: Arc::new(tls),
            client: RwLock::new(Some(client)),
            target,
            guard,
            config,
        })
    }

    async fn send(&self, client: &Client, outgoing: &Outgoing) -> Fate {
        let url = match self.target.url(outgoing) {
            Ok(url) => url,
            Err(why) => return Fate::Settled(Outcome::Permanent(why.into())),
        };
        if let Err(refused) = self.guard.check_literal(&url) {
            return Fate::Settled(error::refusal(&refused, self.shared));
        }
        let encoded = match self.encoder.encode(outgoing) {
            Ok(encoded) => encoded,
            Err(outcome) => return Fate::Settled(outcome),
        };
        let origin = origin(&url);
        let pass = match self.gates.pass(&origin, self.longest_wait()).await {
            Ok(pass) => pass,
            Err(Stopped::Setback(outcome)) => return Fate::Settled(outcome),
            Err(Stopped::Crowded) => return Fate::Settled(self.crowded(&origin)),
        };
        if self.gone.contains(&url) {
            return Fate::Settled(answer::gone(&origin, self.shared));
        }
        let (mut headers, body) = (encoded.headers, encoded.body);
        self.sign(outgoing, &body, &mut headers);
        let (size, sent) = (body.len(), Instant::now());
        let method = match self.config.method {
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
        };
        let request = client
            .request(method, url.clone())
            .headers(headers)
            .body(body)
            .timeout(self.longest_request());
        let outcome = match request.send().await {
            Ok(response) => self.judge(&url, &origin, size, response, &pass).await,
            Err(error) => {
                let outcome = self.unanswered(&error, &origin, sent, &pass);
                // With HTTP/2 other messages were on the same connection, and one of them may have caused its end.
                if url.scheme() == "https" && !pass.speaks_http1() && error::is_of_the_connection(&error) {
                    return Fate::Broken(outcome);
                }
                outcome
            }
        };
        if matches!(outcome, Outcome::SinkDown(_)) {
            pass.note_setback(&outcome);
        }
        Fate::Settled(outcome)
    }

    async fn judge(&self, url: &Url, origin: &str, size: usize, response: Response, pass: &Pass) -> Outcome {
        let status = response.status();
        if status == reqwest::StatusCode::GONE && self.gone.note(url) {
            tracing::warn!(
                event = "endpoint_gone",
                endpoint = origin,
                "endpoint answered 410 Gone: no more messages are sent to it until the relay restarts"
            );
        }
        pass.note_version(response.version());
        if !answer::is_outage(status) {
            pass.note_answer();
        }
        let answer = Answer {
            status,
            origin,
            size,
            asked: retry_after(response.headers(), SystemTime::now()),
            serves_others: pass.answered_within(JUST_NOW),
            takes_others: pass.accepted_within(STILL_VALID),
        };
        if status.is_success() {
            pass.note_accepted();
        }
        // A body that breaks off does not change the meaning of the status.
        let _ = timeout(LONGEST_ANSWER, drain(response)).await;
        answer::outcome(answer, self.shared)
    }

    fn unanswered(&self, error: &reqwest::Error, origin: &str, sent: Instant, pass: &Pass) -> Outcome {
        let outcome = error::outcome(error, origin, self.shared, self.longest_request());
        if error.is_connect() {
            pass.note_setback(&outcome);
        } else if error.is_timeout() && pass.note_silence(sent) {
            let why = format!("no answer within {:?}", self.longest_request());
            pass.note_setback(&error::too_slow(origin, &why, self.shared));
        }
        outcome
    }

    /// Adds the headers of Standard Webhooks. The timestamp is the time of sending, so that a receiver can refuse a
    /// replayed request.
    fn sign(&self, outgoing: &Outgoing, body: &[u8], headers: &mut HeaderMap) {
        let id = outgoing.id.to_string();
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let timestamp = now.as_secs().to_string();
        let signature = self.signer.sign(&id, &timestamp, body);
        for (name, value) in [
            ("webhook-id", Some(id)),
            ("webhook-timestamp", Some(timestamp)),
            ("webhook-signature", signature),
        ] {
            // Digits, hex and base64 are always valid in a header.
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                headers.insert(name, value);
            }
        }
    }

    fn longest_request(&self) -> Duration {
        self.config.connect_timeout + self.config.request_timeout
    }

    /// How long a message waits for a permit. Twice the time of one request, because the first requests may all use up
    /// theirs.
    fn longest_wait(&self) -> Duration {
        2 * self.longest_request()
    }

    fn crowded(&self, origin: &str) -> Outcome {
        let why = format!(
            "the limit of concurrent requests was reached for {:?}",
            self.longest_wait()
        );
        error::too_slow(origin, &why, self.shared)
    }

    fn client(&self) -> Option<Client> {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn drain(mut response: Response) {
    let mut left = MOST_OF_ANSWER;
    while let Ok(Some(chunk)) = response.chunk().await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

fn client(config: &HttpConfig, guard: &Guard, tls: ClientConfig) -> Result<Client> {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(guard.clone()))
        // A proxy from the environment would resolve names itself, past the guard.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("sendoff/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(config.connect_timeout)
        .pool_max_idle_per_host(config.requests_per_host)
        .pool_idle_timeout(Duration::from_secs(30))
        .build()
        .map_err(|error| {
            Error::new(ErrorKind::Invalid, "the client of the HTTP sink cannot be created")
                .because(error.to_string())
                .next_step("check `tls` of the HTTP sink")
                .with_source(error)
        })
}

/// Which parts are the same for all messages.
fn shared(config: &HttpConfig, target: &Target) -> Shared {
    let url = target.fixed.is_some();
    let in_url = |url: &Url| !url.username().is_empty() || url.password().is_some();
    let has_login =
        !config.headers.is_empty() || !config.secrets.is_empty() || target.origin.as_ref().is_some_and(in_url);
    // If messages bring their own logins, one of them can be wrong while the others are right.
    let mut named = config.headers.iter();
    let is_own = match named.find(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        Some((_, value)) => value.has_fields(),
        None => config.headers.values().any(HeaderTemplate::has_fields),
    };
    Shared {
        origin: target.origin.is_some(),
        url,
        login: target.origin.is_some() && !is_own && (url || has_login),
    }
}

#[async_trait]
impl Sink for HttpSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let Some(client) = self.client() else {
            return vec![Outcome::SinkDown("the HTTP sink is closed: the relay is stopping".into()); batch.len()];
        };
        let mut parts = Parts::new(batch.len());
        while let Some(part) = parts.next() {
            // Separate connections, which no other batch uses.
            let fresh = parts
                .broke()
                .then(|| self::client(&self.config, &self.guard, (*self.tls).clone()).ok());
            let client = fresh.flatten().unwrap_or_else(|| client.clone());
            let fates = join_all(part.iter().map(|place| self.send(&client, &batch[*place]))).await;
            parts.settle(&part, fates);
        }
        parts.into_outcomes()
    }

    /// Small batches, because a batch is settled only after its last message.
    fn limits(&self) -> Limits {
        let one = self.longest_request() + LONGEST_ANSWER;
        Limits {
            batch: Some(2 * self.config.requests.max(self.config.requests_per_host)),
            timeout: Some(self.longest_wait() + one + Duration::from_secs(5)),
        }
    }

    /// Connects, and checks the certificate. It sends no request, because an endpoint might act on it.
    async fn check(&self) -> Result<()> {
        match &self.target.origin {
            Some(url) => reach(url, &self.guard, Arc::clone(&self.tls), self.config.connect_timeout).await,
            None => Ok(()),
        }
    }

    async fn close(&self) {
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
