//! Which node has which slots.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use redis::cluster_routing::Slot;
use redis::{Arg, Cmd, Value};
use sendoff_wire::Refusal;

use crate::error;
use crate::link::Link;

/// The address of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

impl Address {
    /// Parses `host:port`, as nodes write it. Without a host it is the host of the node that sent it.
    pub(super) fn parse(text: &str, from: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self {
            host: host_of(host.trim_matches(['[', ']']), from)?,
            port: port.parse().ok()?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn host_of(host: &str, from: &Address) -> Option<Arc<str>> {
    match host {
        "" => Some(Arc::clone(&from.host)),
        // The node does not know its own address yet.
        "?" => None,
        host => Some(host.into()),
    }
}

/// The node of each slot.
#[derive(Debug, Default)]
pub(super) struct Positions {
    by_slot: HashMap<Slot, Address>,
}

impl Positions {
    /// Asks a node.
    pub(super) async fn ask(link: &Link, from: &Address) -> Result<Self, Refusal> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        match link.send(vec![command]).await.pop() {
            Some(Ok(Value::ServerError(refusal))) => Err(error::no_cluster(&from.to_string(), &refusal)),
            Some(Err(lost)) => Err(error::unwelcome(&from.to_string(), &lost)),
            Some(Ok(told)) => Ok(Self::parse(&told, from)),
            None => Ok(Self::default()),
        }
    }

    /// Parses ranges: the first slot, the last slot, the node that has them, and its replicas. Invalid entries are
    /// skipped: commands for an unknown slot go to any node.
    fn parse(told: &Value, from: &Address) -> Self {
        let mut places = Self::default();
        let ranges = if let Value::Array(ranges) = told {
            ranges.as_slice()
        } else {
            &[]
        };
        for range in ranges {
            let Value::Array(range) = range else { continue };
            if let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = range.as_slice()
                && let Some(address) = address(primary, from)
            {
                let slots = (*first..=*last).filter_map(|slot| Slot::new(u16::try_from(slot).ok()?));
                places.by_slot.extend(slots.map(|slot| (slot, address.clone())));
            }
        }
        places
    }

    /// The node for the key of a command. The key is the first argument.
    pub(super) fn of(&self, command: &Cmd) -> Option<Address> {
        self.by_slot.get(&slot(command)?).cloned()
    }

    /// Notes that the slot of a command has moved.
    pub(super) fn put(&mut self, command: &Cmd, address: Address) {
        if let Some(slot) = slot(command) {
            self.by_slot.insert(slot, address);
        }
    }

    /// Whether a node has slots.
    pub(super) fn have(&self, address: &Address) -> bool {
        self.by_slot.values().any(|each| each == address)
    }
}

fn slot(command: &Cmd) -> Option<Slot> {
    match command.args_iter().nth(1)? {
        Arg::Simple(key) => Some(Slot::for_key(key)),
        _ => None,
    }
}

/// Host, port, id, and more.
fn address(node: &[Value], from: &Address) -> Option<Address> {
    let [host, Value::Int(port), ..] = node else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) => host_of(std::str::from_utf8(host).ok()?, from)?,
        Value::Nil => Arc::clone(&from.host),
        _ => return None,
    };
    Some(Address {
        host,
        port: u16::try_from(*port).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from() -> Address {
        Address {
            host: "first.example".into(),
            port: 7000,
        }
    }

    fn text(address: Option<Address>) -> Option<String> {
        address.map(|address| address.to_string())
    }

    #[test]
    fn a_node_may_be_told_by_name_by_number_or_by_its_port_alone() {
        for (told, meant) in [
            ("10.0.0.2:7001", Some("10.0.0.2:7001")),
            ("[fe80::1]:7001", Some("fe80::1:7001")),
            ("node.example:7001", Some("node.example:7001")),
            (":7001", Some("first.example:7001")),
            ("?:7001", None),
            ("10.0.0.2", None),
            ("10.0.0.2:port", None),
            ("10.0.0.2:70010", None),
        ] {
            assert_eq!(text(Address::parse(told, &from())).as_deref(), meant, "{told}");
        }
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn name(host: &str) -> Value {
        Value::BulkString(host.as_bytes().to_vec())
    }

    #[test]
    fn slots_have_the_nodes_that_were_told_whatever_else_is_in_the_answer() {
        let range = |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let told = Value::Array(vec![
            range(0, 8191, node(name("10.0.0.1"), 7001)),
            Value::Int(3),
            range(5, 6, Value::Nil),
            range(8192, 16_382, node(Value::Nil, 7002)),
            range(16_383, 99_999_999, node(name("?"), 7003)),
            range(-5, -1, node(name("10.0.0.9"), 7009)),
        ]);
        let places = Positions::parse(&told, &from());
        assert_eq!(places.by_slot.len(), 16_383);
        let of = |key: &str| text(places.of(redis::cmd("XADD").arg(key)));
        // The cluster specification gives the slots of these keys.
        assert_eq!(of("123456789").as_deref(), Some("first.example:7002"));
        assert_eq!(of("foo").as_deref(), Some("first.example:7002"));
        assert_eq!(of("bar").as_deref(), Some("10.0.0.1:7001"));
        assert_eq!(of("{bar}.and.more"), of("bar"));
        assert!(!places.have(&from()) && places.of(&redis::cmd("PING")).is_none());
        assert!(Positions::parse(&Value::Nil, &from()).by_slot.is_empty());
    }

    #[test]
    fn what_has_moved_is_noted() {
        let mut places = Positions::default();
        let command = redis::cmd("XADD").arg("bar").take();
        places.put(&command, from());
        assert_eq!(places.of(&command), Some(from()));
        assert!(places.have(&from()));
    }
}
