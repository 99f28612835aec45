//! The settings of the sink.

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use reqwest::header::{HeaderName, HeaderValue};
use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{BodyTemplate, Format, Secret, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

use crate::encode::is_ours;
use crate::endpoint::Target;
use crate::{Endpoint, HeaderTemplate};

/// Settings of the HTTP sink: the endpoint, the request, and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The URL of the endpoint. Fields of the message in braces can give every message its own URL.
    pub url: Endpoint,
    /// The HTTP method: `post` unless set, or `put`.
    #[serde(default)]
    pub method: Method,
    /// The format of the body; `raw` unless set.
    #[serde(default)]
    pub format: Format,
    /// The attribute `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "defaults::source")]
    pub source: String,
    /// A template for the body, instead of a format: see [`BodyTemplate`]. It is never printed, because it may hold a
    /// token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Secret>,
    /// The content type of a body made from `body`; `application/json` unless set. It decides how fields are escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers of every request, for example `authorization`. A value can have fields of the message. These headers
    /// replace headers of the message with the same name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderTemplate>,
    /// The largest body, in bytes; no limit unless set. Messages with a larger body are not sent and become dead
    /// letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_message_bytes: Option<usize>,
    /// The largest size of all headers, in bytes. Messages with larger headers are not sent and become dead letters;
    /// 65536 unless set. An endpoint may close a connection with other messages on it when it gets too many.
    #[serde(default = "max_header_bytes")]
    pub max_header_bytes: usize,
    /// Whether a login or a signature may be used with a `url` whose host comes from the message; `false` unless set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub send_credentials_to_any_host: bool,
    /// Secrets to sign requests with, as `whsec_…` or base64, 24 to 64 bytes. With several secrets, every request has a
    /// signature by each, so that a secret can be rotated without a gap. Without secrets, requests are not signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// How long connecting may take, including DNS and TLS; 4 s unless set.
    #[serde(default = "connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long the answer may take after connecting; 15 s unless set. On a reused connection the time for connecting
    /// is added, so that a request takes at most both together.
    #[serde(default = "request_timeout", with = "duration")]
    pub request_timeout: Duration,
    /// The largest number of concurrent requests to one host; 16 unless set.
    #[serde(default = "requests_per_host")]
    pub requests_per_host: usize,
    /// The largest number of concurrent requests to all hosts; 64 unless set.
    #[serde(default = "requests")]
    pub requests: usize,
    /// Private networks that the sink may connect to, for example `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<IpNet>,
    /// The CAs to trust and the client certificate, for `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
}

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// The method `POST`.
    #[default]
    Post,
    /// The method `PUT`.
    Put,
}

impl HttpConfig {
    /// The settings for this endpoint; all other settings have their defaults.
    pub fn new(url: Endpoint) -> Self {
        Self {
            url,
            method: Method::default(),
            format: Format::default(),
            source: defaults::source(),
            body: None,
            content_type: None,
            headers: BTreeMap::new(),
            max_message_bytes: None,
            max_header_bytes: max_header_bytes(),
            send_credentials_to_any_host: false,
            secrets: Vec::new(),
            connect_timeout: connect_timeout(),
            request_timeout: request_timeout(),
            requests_per_host: requests_per_host(),
            requests: requests(),
            allow_private: Vec::new(),
            tls: None,
        }
    }

    /// Checks the settings of the HTTP sink, as far as that is possible without reading a secret.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: String, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        self.url.validate()?;
        let is_zero = [
            ("connect_timeout", self.connect_timeout.is_zero()),
            ("request_timeout", self.request_timeout.is_zero()),
            ("requests_per_host", self.requests_per_host == 0),
            ("requests", self.requests == 0),
            ("max_message_bytes", self.max_message_bytes == Some(0)),
            ("max_header_bytes", self.max_header_bytes == 0),
        ];
        if let Some((name, _)) = is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return invalid(
                format!("{name} of the HTTP sink is 0"),
                "use a larger value, or remove the setting",
            );
        }
        if self.source.is_empty() {
            return invalid(
                "`source` of the HTTP sink is empty".to_owned(),
                "set `source` to a name like /shop/orders, or remove the setting",
            );
        }
        self.validate_body()?;
        self.validate_hosts()?;
        for name in self.headers.keys() {
            match HeaderName::try_from(name) {
                Err(_) => {
                    let what = format!("the header name {name:?} of the HTTP sink is invalid");
                    return invalid(what, "use letters, digits and -, for example x-api-key");
                }
                Ok(name) if name == reqwest::header::CONTENT_TYPE => {
                    let what = format!("the header {name} is set by the HTTP sink itself");
                    return invalid(what, "remove the header; use `content_type` to set the type of `body`");
                }
                Ok(name) if is_ours(&name) => {
                    let what = format!("the header {name} is set by the HTTP sink itself");
                    return invalid(what, "remove it");
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// A login of the sink must not be sent to a host that a message names.
    fn validate_hosts(&self) -> Result<()> {
        match self.url.target_here()? {
            Some(target) => self.check_credentials(&target),
            None => Ok(()),
        }
    }

    /// The same check, once the URL is known.
    pub(crate) fn check_credentials(&self, target: &Target) -> Result<()> {
        if target.origin.is_some() || self.send_credentials_to_any_host {
            return Ok(());
        }
        let Some(credential) = self.credential(target) else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::Invalid,
            format!("url and {credential} of the HTTP sink cannot be used together"),
        )
        .because(format!(
            "the host of url comes from the message, so {credential} would be sent to any host that a message names"
        ))
        .next_step(format!(
            "write the host into url, remove {credential}, or build it from fields of the message; set \
             send_credentials_to_any_host = true only if every application that emits messages may know it"
        )))
    }

    /// The setting that identifies the sink to the endpoint, if it is the same for all messages.
    fn credential(&self, target: &Target) -> Option<String> {
        let is_login = |(name, value): &(&String, &crate::HeaderTemplate)| value.is_credential(name);
        if let Some((name, _)) = self.headers.iter().find(is_login) {
            return Some(format!("headers.{}", name.to_lowercase()));
        }
        if !self.secrets.is_empty() {
            return Some("secrets".to_owned());
        }
        target.has_login().then(|| "the login in it".to_owned())
    }

    fn validate_body(&self) -> Result<()> {
        let invalid =
            |what: &str, why: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).because(why).next_step(next));
        let Some(body) = &self.body else {
            return match &self.content_type {
                None => Ok(()),
                Some(_) => invalid(
                    "`content_type` of the HTTP sink is set without body",
                    "without body, a request has the content type of the message or of the format",
                    "add body, or remove content_type",
                ),
            };
        };
        if self.format != Format::Raw {
            return invalid(
                "`body` and `format` of the HTTP sink are both set",
                "both define the body of a request",
                "remove one of the two",
            );
        }
        if HeaderValue::try_from(self.content_type()).is_err() || self.content_type().is_empty() {
            return invalid(
                "`content_type` of the HTTP sink is invalid",
                "it is not a valid HTTP header value",
                "use a value like application/json",
            );
        }
        match body {
            Secret::Value(text) => BodyTemplate::new(text, self.content_type()).map(|_| ()),
            Secret::Env { .. } | Secret::File { .. } => Ok(()),
        }
    }

    /// The content type of `body`.
    pub(crate) fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or("application/json")
    }
}

fn max_header_bytes() -> usize {
    64 * 1024
}

fn connect_timeout() -> Duration {
    Duration::from_secs(4)
}

fn request_timeout() -> Duration {
    Duration::from_secs(15)
}

fn requests_per_host() -> usize {
    16
}

fn requests() -> usize {
    64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HttpConfig, String> {
        let config: HttpConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        config.validate().map(|()| config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_is_enough() {
        let config = read("url = 'https://example.com/hook'").unwrap();
        assert_eq!(
            config,
            HttpConfig::new(Endpoint::parse("https://example.com/hook").unwrap())
        );
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        for (rest, word) in [
            ("requests = 0", "requests"),
            ("request_timeout = '0s'", "request_timeout"),
            ("source = ''", "source"),
            ("headers = { 'a b' = 'x' }", "a b"),
            ("headers = { Host = 'x' }", "host"),
            ("headers = { webhook-id = 'x' }", "webhook-id"),
            ("headers = { content-type = 'x' }", "content_type"),
            ("headers = { x-tenant = '{header:}' }", "{header:tenant}"),
            ("body = '{\"a\": \"{tpoic}\"}'", "header:NAME"),
            ("body = '{\"a\": }'", "JSON"),
            ("body = '{}'\nformat = 'envelope'", "both set"),
            ("body = '{}'\ncontent_type = ''", "content_type"),
            ("content_type = 'text/plain'", "add body"),
            ("max_message_bytes = 0", "max_message_bytes"),
            ("allow_private = ['10.0.0.0/40']", "allow_private"),
            ("method = 'get'", "method"),
            ("tiemout = 1", "tiemout"),
        ] {
            let error = read(&format!("url = 'https://example.com/'\n{rest}")).unwrap_err();
            assert!(error.contains(word), "{word} in {error}");
        }
    }

    #[test]
    fn what_it_prints_holds_no_secret() {
        let text = "url = 'https://me:hunter2@example.com/hook?token=hunter2'\nsecrets = ['hunter2']\n\
                    body = '{\"token\": \"hunter2\"}'\n\
                    headers = { authorization = 'Bearer hunter2', x-tenant = 'hunter2{header:tenant}' }";
        let config: HttpConfig = toml::from_str(text).unwrap();
        let shown = format!("{config:?}{}", toml::to_string(&config).unwrap());
        assert!(
            !shown.contains("hunter2") && shown.contains("example.com/hook"),
            "{shown}"
        );
    }
}
