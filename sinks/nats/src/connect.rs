//! Connecting and logging in.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::{ConnectOptions, ServerAddr};
use rustls::{ClientConfig, RootCertStore};
use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Connect, Refusal};
use tokio::sync::watch;

use crate::acks::Dispatcher;
use crate::link::{Link, News};
use crate::{NatsConfig, error, lookup};

/// More than the acknowledgements that all batches wait for: the client would drop any beyond this number.
const ACKS: usize = 1 << 20;

/// How many messages the client queues before the sender must wait: as many as all batches under way have, or each
/// would be woken for every message.
const COMMANDS: usize = 16_384;

pub(crate) struct Connector(pub(crate) Arc<NatsConfig>);

impl Connect for Connector {
    type Connection = Link;

    async fn connect(&self) -> Result<Link, Refusal> {
        let config = &self.0;
        let (sender, news) = watch::channel(News::default());
        let sender = Arc::new(sender);
        let options = options(config)?.event_callback(move |event| {
            let sender = Arc::clone(&sender);
            async move { sender.send_modify(|news| news.learn(&event)) }
        });
        let addresses = addresses(config)?;
        let connecting = Box::pin(options.connect(addresses));
        let client = connecting
            .await
            .map_err(|error| error::connect(&error, &self.address()))?;
        let context = ContextBuilder::new();
        let context = match (&config.domain, &config.api_prefix) {
            (Some(domain), _) => context.domain(domain).timeout(lookup::PATIENCE),
            (None, Some(prefix)) => context.api_prefix(prefix).timeout(lookup::PATIENCE),
            (None, None) => context.timeout(lookup::PATIENCE),
        };
        let jetstream = context.build(client.clone());
        let dispatcher = Dispatcher::open(&client)
            .await
            .map_err(|error| error::no_dispatcher(&error, &self.address()))?;
        Ok(Link {
            client,
            jetstream,
            dispatcher,
            news,
            silent: AtomicBool::new(false),
        })
    }

    fn address(&self) -> String {
        let servers: Vec<String> = self.0.url.iter().map(ToString::to_string).collect();
        servers.join(", ")
    }

    fn is_usable(&self, link: &Link) -> bool {
        link.is_usable()
    }
}

fn options(config: &NatsConfig) -> Result<ConnectOptions> {
    let servers = config.url.len();
    let each = config.connect_timeout / u32::try_from(servers).unwrap_or(1);
    let wants_tls = config.tls.is_some() || config.url.iter().any(|server| server.reveal().scheme() == "tls");
    let mut options = ConnectOptions::new()
        .name("sendoff")
        .connection_timeout(each)
        .require_tls(wants_tls)
        .tls_client_config(tls(config, wants_tls)?)
        .client_capacity(COMMANDS)
        .subscription_capacity(ACKS)
        // Servers may announce IP addresses, which their certificates do not name.
        .ignore_discovered_servers()
        // Try each server once for the first connection. A broken connection tries as often, then its tasks end.
        .max_reconnects(servers)
        .reconnect_delay_callback(|_| Duration::ZERO);
    if config.tls_first {
        options = options.tls_first();
    }
    if let Some(prefix) = &config.inbox_prefix {
        options = options.custom_inbox_prefix(prefix);
    }
    log_in(config, options)
}

fn tls(config: &NatsConfig, wants_tls: bool) -> Result<ClientConfig> {
    let given = config.tls.clone().unwrap_or_default().client();
    if wants_tls || given.is_ok() {
        return given;
    }
    // TLS is not required, and the system has no CA certificates. If the server requires TLS, it is not trusted.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    match builder {
        Ok(builder) => Ok(builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()),
        Err(_) => given,
    }
}

fn log_in(config: &NatsConfig, options: ConnectOptions) -> Result<ConnectOptions> {
    if let Some(file) = &config.creds_file {
        let unusable = |why: String| {
            Error::new(
                ErrorKind::Invalid,
                format!("the NATS sink cannot use `creds_file` {}", file.display()),
            )
            .because(why)
            .next_step("set `creds_file` to a file from `nsc generate creds` that the relay's user can read")
        };
        let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        // The client's error may quote the file.
        return options
            .credentials(&text)
            .map_err(|error| unusable(error.kind().to_string()));
    }
    if let Some(seed) = &config.nkey {
        return Ok(options.nkey(seed.reveal()?));
    }
    if let Some(token) = &config.token {
        return Ok(options.token(token.reveal()?));
    }
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        return Ok(options.user_and_password(user.clone(), password.reveal()?));
    }
    let mut urls = config.url.iter().map(Address::reveal);
    let Some(url) = urls.find(|url| !url.username().is_empty()) else {
        return Ok(options);
    };
    let user = plain(url.username())?;
    Ok(match url.password() {
        Some(password) => options.user_and_password(user, plain(password)?),
        // As in other clients, a user without a password is a token.
        None => options.token(user),
    })
}

/// Percent-decodes a part of a URL.
fn plain(text: &str) -> Result<String> {
    // Parsing a form value decodes it; `+` must stay `+`.
    let escaped = format!("v={}", text.replace('+', "%2B"));
    let value = url::form_urlencoded::parse(escaped.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).ok_or_else(|| {
        Error::new(ErrorKind::Invalid, "the user in url of the NATS sink cannot be decoded")
            .next_step("use the settings user and password instead")
    })
}

/// The servers without secrets, because the client logs them.
fn addresses(config: &NatsConfig) -> Result<Vec<ServerAddr>> {
    let bare = |server: &Address| {
        let mut url = server.reveal().clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        ServerAddr::from_url(url).map_err(|error| {
            Error::new(ErrorKind::Invalid, "`url` of the NATS sink is invalid")
                .because(error.to_string())
                .next_step("use a URL like nats://host:4222")
        })
    };
    config.url.iter().map(bare).collect()
}

/// Checks the settings without connecting.
pub(crate) fn check(config: &NatsConfig) -> Result<()> {
    addresses(config)?;
    if let Some(tls) = &config.tls {
        tls.client()?;
    }
    Ok(())
}
