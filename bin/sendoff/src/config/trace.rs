//! `[trace]`: where spans go.

use std::collections::BTreeMap;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::Secret;
use serde::{Deserialize, Serialize};

/// Export of spans by OTLP. OpenTelemetry's own variables apply to what is not set here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TraceConfig {
    /// The collector. Without this and `OTEL_EXPORTER_OTLP_ENDPOINT`, tracing is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<TraceProtocol>,
    /// The share of messages without a trace for which the relay starts one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sample: Option<f64>,
    /// The name of the relay in traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_name: Option<String>,
    /// Headers of every request to the collector, such as a token.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Secret>,
}

/// The protocols of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TraceProtocol {
    /// Protobuf over HTTP.
    #[serde(rename = "http/protobuf")]
    Http,
    /// gRPC, with the feature `otlp-grpc`.
    #[serde(rename = "grpc")]
    Grpc,
}

impl TraceProtocol {
    /// The error of a program without the feature `otlp-grpc`.
    #[cfg(not(feature = "otlp-grpc"))]
    pub(crate) fn no_grpc() -> Error {
        Error::new(ErrorKind::Unsupported, "traces cannot be sent by gRPC")
            .because("this program was built without gRPC")
            .next_step("use http/protobuf, usually with port 4318, or build the program with --features otlp-grpc")
    }
}

impl TraceConfig {
    /// Checks the settings. An error comes with the name of its setting.
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
                    "endpoint in [trace] is not a valid URL of a collector",
                    "it does not start with http:// or https://",
                    "write it like http://localhost:4318",
                );
            };
            if authority.is_empty() || authority.contains('@') {
                return fault(
                    "endpoint",
                    "endpoint in [trace] is not a valid URL of a collector",
                    "it has no host, or contains a password, which would be visible",
                    "write it like http://localhost:4318, and put a password into headers",
                );
            }
        }
        #[cfg(not(feature = "otlp-grpc"))]
        if self.protocol == Some(TraceProtocol::Grpc) {
            return Err(("protocol", TraceProtocol::no_grpc()));
        }
        if self.sample.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return fault(
                "sample",
                "sample in [trace] is out of range",
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
                "a header name consists of letters, digits, - and _",
                "correct the name",
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
            "sample = 0.0\nprotocol = 'http/protobuf'",
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
    fn grpc_is_refused_unless_it_was_built_in() {
        let refused = (!cfg!(feature = "otlp-grpc")).then_some("protocol");
        assert_eq!(fault("protocol = 'grpc'"), refused);
    }

    #[test]
    fn a_header_is_never_shown() {
        let config: TraceConfig = toml::from_str("headers = { authorization = 'hunter2' }").unwrap();
        assert!(!format!("{config:?} {}", toml::to_string(&config).unwrap()).contains("hunter2"));
    }
}
