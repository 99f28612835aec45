//! `[trace]`: where spans go.

use std::collections::BTreeMap;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::Secret;
use serde::{Deserialize, Serialize};

/// Where spans go, by OTLP. What is not set here comes from OpenTelemetry's own variables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TraceConfig {
    /// The collector. With neither this nor `OTEL_EXPORTER_OTLP_ENDPOINT` there are no traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    /// How to talk to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<TraceProtocol>,
    /// The share of messages that came without a trace for which one is begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sample: Option<f64>,
    /// What the relay is called in traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_name: Option<String>,
    /// What every request to the collector has, such as a token.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Secret>,
}

/// The protocols of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TraceProtocol {
    /// Protobuf in requests of HTTP.
    #[serde(rename = "http/protobuf")]
    Http,
    /// gRPC.
    #[serde(rename = "grpc")]
    Grpc,
}

impl TraceConfig {
    /// Whether it can work; with an error the setting that cannot.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let fault = |key, what: &str, why: &str, next: &str| {
            let error = Error::new(ErrorKind::Invalid, what).because(why).next_step(next);
            Err((key, error))
        };
        if let Some(endpoint) = &self.endpoint {
            let authority = ["http://", "https://"]
                .iter()
                .find_map(|scheme| endpoint.strip_prefix(scheme));
            let Some(authority) = authority.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default()) else {
                return fault(
                    "endpoint",
                    "endpoint in [trace] is no address of a collector",
                    "it does not begin with http:// or https://",
                    "write it like http://localhost:4318",
                );
            };
            if authority.is_empty() || authority.contains('@') {
                return fault(
                    "endpoint",
                    "endpoint in [trace] is no address of a collector",
                    "it has no host, or a password that would be seen",
                    "write it like http://localhost:4318, and a password into headers",
                );
            }
        }
        if self.sample.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return fault(
                "sample",
                "sample in [trace] is no share",
                "it is not between 0 and 1",
                "use 0.01 for one message in a hundred",
            );
        }
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_letter);
        if let Some(name) = self.headers.keys().find(|name| !is_name(name)) {
            return fault(
                "headers",
                &format!("the header {name:?} in [trace] cannot be sent"),
                "names are letters, digits, - and _",
                "correct it",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<&'static str> {
        let config: TraceConfig = toml::from_str(text).unwrap();
        config.validate().err().map(|(key, _)| key)
    }

    #[test]
    fn what_cannot_work_is_named() {
        for good in [
            "",
            "endpoint = 'http://localhost:4318'",
            "endpoint = 'https://otel.shop.example/v1/traces'",
            "sample = 0.0\nprotocol = 'grpc'",
            "headers = { authorization = { env = 'TOKEN' }, x_tenant = 'a' }",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for (bad, key) in [
            ("endpoint = 'localhost:4317'", "endpoint"),
            ("endpoint = 'http:///v1'", "endpoint"),
            ("endpoint = 'https://me:hunter2@otel.shop.example'", "endpoint"),
            ("sample = 1.01", "sample"),
            ("sample = nan", "sample"),
            ("headers = { 'a b' = 'x' }", "headers"),
        ] {
            assert_eq!(fault(bad), Some(key), "{bad}");
        }
    }

    #[test]
    fn a_header_is_never_shown() {
        let config: TraceConfig = toml::from_str("headers = { authorization = 'hunter2' }").unwrap();
        assert!(!format!("{config:?} {}", toml::to_string(&config).unwrap()).contains("hunter2"));
    }
}
