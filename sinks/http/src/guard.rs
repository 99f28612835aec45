//! Blocks private addresses: a URL from a message must not lead into the relay's own network.
//!
//! The check applies to the resolved addresses that the client connects to. So a name that resolves to a public address
//! for a check and to a private one for the connection gains nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// IPv4 networks that are not public: IANA's special-purpose registry, multicast, and the internal networks of clouds.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // Azure's channel to its hosts: a public address that answers from inside.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// The public part of IPv6: only this network is assigned.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Exceptions in it that are not public: protocol assignments with Teredo, documentation, and 6to4.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Resolves a name.
type LookUp = dyn Fn(String, u16) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Decides which addresses are allowed, and resolves names.
#[derive(Clone)]
pub(crate) struct Guard {
    allowed: Arc<[IpNet]>,
    names: Arc<LookUp>,
}

/// No address of a host is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    host: String,
    address: IpAddr,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        write!(
            f,
            "{host} resolves to {address}, which is not a public address (if this is intended, add its network to \
             `allow_private` of the sink)"
        )
    }
}

impl std::error::Error for Refused {}

impl Guard {
    /// With the system's resolver.
    pub(crate) fn new(allowed: &[IpNet]) -> Self {
        let system = |host: String, port| {
            let found = async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) };
            found.boxed()
        };
        Self::with_names(allowed, Arc::new(system))
    }

    pub(crate) fn with_names(allowed: &[IpNet], names: Arc<LookUp>) -> Self {
        Self {
            allowed: allowed.into(),
            names,
        }
    }

    /// Checks a URL whose host is an IP address: it is not resolved, so nothing else would check it.
    pub(crate) fn check_literal(&self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        if self.allows(address) {
            return Ok(());
        }
        Err(Refused {
            host: address.to_string(),
            address,
        })
    }

    /// The allowed addresses of a host.
    ///
    /// # Errors
    /// [`Refused`] when the host has addresses, but none that is allowed; otherwise the error of the resolver.
    pub(crate) async fn look_up(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let found = (self.names)(host.to_owned(), port).await?;
        let allowed: Vec<SocketAddr> = found.iter().copied().filter(|at| self.allows(at.ip())).collect();
        match found.first() {
            Some(first) if allowed.is_empty() => Err(std::io::Error::other(Refused {
                host: host.to_owned(),
                address: first.ip(),
            })),
            Some(_) => Ok(allowed),
            None => Err(std::io::Error::new(
                std::io::ErrorKind::NotFound,
                "the name has no address",
            )),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        let seen = embedded(address);
        is_public(seen)
            || self
                .allowed
                .iter()
                .any(|net| net.contains(&address) || net.contains(&seen))
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = guard.look_up(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The real target of an address: IPv4 within IPv6, as mapped by the system (`::ffff:a.b.c.d`) or translated by
/// the network (NAT64, `64:ff9b::a.b.c.d`).
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into(),
        _ => address,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|(net, len)| in_v4(v4, *net, *len)),
        IpAddr::V6(v6) => {
            in_v6(v6, PUBLIC_V6.0, PUBLIC_V6.1) && !NOT_PUBLIC_V6.iter().any(|(net, len)| in_v6(v6, *net, *len))
        }
    }
}

fn in_v4(address: Ipv4Addr, net: Ipv4Addr, len: u8) -> bool {
    Ipv4Net::new(net, len).is_ok_and(|net| net.contains(&address))
}

fn in_v6(address: Ipv6Addr, net: Ipv6Addr, len: u8) -> bool {
    Ipv6Net::new(net, len).is_ok_and(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allowed: &[&str]) -> Guard {
        Guard::new(&allowed.iter().map(|net| net.parse().unwrap()).collect::<Vec<_>>())
    }

    fn allows(guard: &Guard, address: &str) -> bool {
        guard.allows(address.parse().unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!allows(&guard(&[]), address), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_called() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
        ] {
            assert!(allows(&guard(&[]), address), "{address}");
        }
    }

    #[test]
    fn networks_that_are_allowed_are_called_and_no_others() {
        let guard = guard(&["10.1.0.0/16", "::1/128"]);
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "::1"] {
            assert!(allows(&guard, address), "{address}");
        }
        for address in ["10.2.0.1", "127.0.0.1", "169.254.169.254", "::2"] {
            assert!(!allows(&guard, address), "{address}");
        }
    }

    #[test]
    fn an_address_in_the_url_is_checked_however_it_is_written() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let url = Url::parse(url).unwrap();
            assert!(guard(&[]).check_literal(&url).is_err(), "{url}");
        }
        assert_eq!(
            guard(&[]).check_literal(&Url::parse("http://1.1.1.1/").unwrap()),
            Ok(())
        );
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused() {
        let error = guard(&[]).look_up("localhost", 80).await.unwrap_err();
        assert!(error.get_ref().unwrap().is::<Refused>(), "{error}");
        assert!(error.to_string().contains("allow_private"), "{error}");
        let found = guard(&["127.0.0.0/8"]).look_up("localhost", 80).await.unwrap();
        assert!(
            found.iter().all(|at| at.ip() == IpAddr::from([127, 0, 0, 1])) && !found.is_empty(),
            "{found:?}"
        );
    }
}
