//! The address of a broker, printed without its password.

use std::fmt;

use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::Secret;

/// The URL of a broker. It prints without secrets: a password as `***`, and a user without a password as `***`, too,
/// because it may be a token. It is better to keep secrets out of the URL, as a [`Secret`].
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`]. The error does not quote the text, which may hold a password.
    pub fn parse(text: &str) -> Result<Self> {
        let unreadable = |why: String| {
            Error::new(ErrorKind::Invalid, "the URL cannot be parsed")
                .because(why)
                .next_step("use a URL like scheme://host:port/path")
        };
        match Url::parse(text) {
            // A text without a host may be a password in the wrong setting, so it is rejected and not quoted.
            Ok(url) if !url.has_host() && url.scheme() != "unix" => Err(unreadable("it has no host".to_owned())),
            Ok(url) => Ok(Self(url)),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Checks the scheme.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed schemes.
    pub fn with_scheme(&self, allowed: &[&str]) -> Result<&Self> {
        if allowed.contains(&self.0.scheme()) {
            return Ok(self);
        }
        let what = format!("the URL starts with {}://", self.0.scheme());
        Err(Error::new(ErrorKind::Invalid, what).next_step(format!("use {}://", allowed.join(":// or "))))
    }

    /// The URL with its password. Pass it only to the driver.
    pub fn reveal(&self) -> &Url {
        &self.0
    }

    /// The URL with the given password in it. Pass it only to the driver.
    ///
    /// # Errors
    /// As [`Secret::reveal`].
    pub fn with_password(&self, password: Option<&Secret>) -> Result<Url> {
        let mut url = self.0.clone();
        if let Some(password) = password {
            // This fails only for a URL without a host, and such a URL has no broker.
            let _ = url.set_password(Some(&password.reveal()?));
        }
        Ok(url)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        if shown.password().is_some() {
            let _ = shown.set_password(Some("***"));
        } else if !shown.username().is_empty() {
            let _ = shown.set_username("***");
        }
        // Parameters of a URL may hold passwords.
        if shown.query().is_some() {
            shown.set_query(Some("***"));
        }
        f.write_str(shown.as_str())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_password() {
        let address = Address::parse("amqp://me:hunter2@host:5672/vhost?token=hunter2").unwrap();
        for shown in [
            address.to_string(),
            format!("{address:?}"),
            serde_json::to_string(&address).unwrap(),
        ] {
            assert!(
                !shown.contains("hunter2") && shown.contains("amqp://me:***@host:5672/vhost"),
                "{shown}"
            );
        }
        for (token, shown) in [
            ("nats://hunter2@host:4222", "nats://***@host:4222"),
            ("https://hunter2@host/a", "https://***@host/a"),
            ("redis://hunter2:@host", "redis://***@host"),
        ] {
            assert_eq!(Address::parse(token).unwrap().to_string(), shown);
        }
        assert_eq!(address.reveal().password(), Some("hunter2"));
        let url = address.with_password(Some(&"other".into())).unwrap();
        assert_eq!(url.password(), Some("other"));
    }

    #[test]
    fn an_address_of_another_kind_is_refused_without_being_shown() {
        let address = Address::parse("http://me:hunter2@host/").unwrap();
        let error = address.with_scheme(&["amqp", "amqps"]).unwrap_err().to_string();
        assert!(
            error.contains("amqp:// or amqps://") && !error.contains("hunter2"),
            "{error}"
        );
        let error = Address::parse("me:hunter2@host:port").map(|_| ()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
