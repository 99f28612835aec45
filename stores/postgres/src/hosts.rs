//! The servers of a URL with several hosts. Each one is tried in turn, with its own share of the time.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// One set of the driver's settings for each host, in the order of the URL. The driver tries hosts one after the other under one
/// limit of time: a first one that accepts and says nothing would use all of it up.
pub(crate) fn one_by_one(all: &Config) -> Vec<Config> {
    let count = all.get_hosts().len().max(all.get_hostaddrs().len());
    if count < 2 {
        return vec![all.clone()];
    }
    (0..count).map(|at| only(all, at)).collect()
}

/// `host:port/database` of settings for one host, for errors. Without user and password.
pub(crate) fn address(one: &Config) -> String {
    let host = match one.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => one.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let port = one.get_ports().first().copied().unwrap_or(5432);
    // Without a name, the server takes the user's.
    let database = one.get_dbname().or_else(|| one.get_user()).unwrap_or_default();
    format!("{host}:{port}/{database}")
}

fn only(all: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(at) {
        Some(Host::Tcp(host)) => {
            one.host(host);
        }
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            one.host_path(path);
        }
        None => {}
    }
    if let Some(address) = all.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    // One port stands for all hosts.
    if let Some(port) = all.get_ports().get(at).or_else(|| all.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = all.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_all_settings_and_its_own_port() {
        let all: Config = "postgres://me:secret@a:1,b:2/shop?target_session_attrs=read-write&application_name=x"
            .parse()
            .unwrap();
        let hosts = one_by_one(&all);
        assert_eq!(hosts.len(), 2);
        for (host, (name, port)) in hosts.iter().zip([("a", 1), ("b", 2)]) {
            assert_eq!(host.get_hosts(), [Host::Tcp(name.to_owned())]);
            assert_eq!(host.get_ports(), [port]);
            assert_eq!((host.get_user(), host.get_dbname()), (Some("me"), Some("shop")));
            assert_eq!(host.get_password(), Some("secret".as_bytes()));
            assert_eq!(host.get_application_name(), Some("x"));
            assert_eq!(host.get_target_session_attrs(), all.get_target_session_attrs());
        }
        let single: Config = "postgres://a:1/shop".parse().unwrap();
        assert_eq!(one_by_one(&single), [single]);
    }
}
