//! The servers of a cluster: one URL or a list.

use std::fmt;

use sendoff::Result;
use sendoff_wire::Address;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One server, or several servers of one cluster: `"nats://host:4222"` or a list. The sink tries them in random order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Servers(Vec<Address>);

impl Servers {
    /// A list with one server.
    ///
    /// # Errors
    /// When the URL cannot be parsed.
    pub fn one(url: &str) -> Result<Self> {
        Ok(Self(vec![Address::parse(url)?]))
    }

    /// All servers of the list.
    pub fn iter(&self) -> impl Iterator<Item = &Address> {
        self.0.iter()
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list has no server.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Servers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlOrList)
    }
}

struct UrlOrList;

impl<'de> Visitor<'de> for UrlOrList {
    type Value = Servers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL like nats://host:4222, or a list of URLs")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Servers, E> {
        Servers::one(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Servers, A::Error> {
        let mut servers = Vec::new();
        while let Some(server) = list.next_element::<Address>()? {
            servers.push(server);
        }
        if servers.is_empty() {
            return Err(A::Error::custom(
                "the list of URLs is empty; add a server like nats://host:4222",
            ));
        }
        Ok(Servers(servers))
    }
}
