//! Encrypted connections, to a server with a certificate for `localhost`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use sendoff::store::{EmitStore, MigrateStore, OperateStore};
use sendoff::{Error, ErrorKind};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use tempfile::TempDir;

use crate::scratch::{message, url};

/// The account of the servers: they refuse to run as root.
const ACCOUNT: &str = "postgres";

/// The accounts of the server: one for anybody, one for who has a certificate.
const SETUP: &str = "CREATE DATABASE sendoff;\n\
    CREATE USER sendoff@'127.0.0.1' IDENTIFIED BY 'open sesame';\n\
    GRANT ALL ON *.* TO sendoff@'127.0.0.1' WITH GRANT OPTION;\n\
    CREATE USER certified@'127.0.0.1' IDENTIFIED BY 'open sesame' REQUIRE X509;\n\
    GRANT ALL ON *.* TO certified@'127.0.0.1';\n";

/// A private server that takes encrypted connections only.
struct TlsServer {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl TlsServer {
    fn start() -> Self {
        let scratch = std::env::var_os("SENDOFF_TEST_SCRATCH")
            .expect("SENDOFF_TEST_SCRATCH is not set: run the tests with `cargo xtask test`");
        let folder = tempfile::tempdir_in(scratch).unwrap();
        let home = folder.path();
        let authority = authority();
        let (server, server_key) = certificate("localhost", &authority);
        let (client, client_key) = certificate("client", &authority);
        for (name, text) in [
            ("setup.sql", SETUP),
            ("ca.pem", &authority.pem()),
            ("stranger.pem", &self::authority().pem()),
            ("server.pem", &server),
            ("server.key", &server_key),
            ("client.pem", &client),
            ("client.key", &client_key),
        ] {
            std::fs::write(home.join(name), text).unwrap();
        }
        // A server that starts removes all temporary tables from its folder, those of another one as well.
        std::fs::create_dir(home.join("temporary")).unwrap();
        give(home);
        let named = |option: &str, file: &str| format!("--{option}={}", home.join(file).display());
        let made = as_account("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(named("datadir", "data"))
            .env("TMPDIR", home.join("temporary"))
            .current_dir(home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(
            made.unwrap().success(),
            "run the tests with `cargo xtask test`, which installs MariaDB"
        );
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = as_account("mariadbd")
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--skip-log-bin",
                "--innodb-flush-log-at-trx-commit=0",
                "--require-secure-transport=ON",
                &format!("--port={port}"),
            ])
            .args([
                named("datadir", "data"),
                named("socket", "socket"),
                named("pid-file", "pid"),
                named("tmpdir", "temporary"),
            ])
            .args([named("init-file", "setup.sql"), named("ssl-ca", "ca.pem")])
            .args([named("ssl-cert", "server.pem"), named("ssl-key", "server.key")])
            .current_dir(home)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(home.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { child, port, folder }
    }

    /// Waits until it takes connections.
    async fn started() -> Self {
        let server = Self::start();
        for _ in 0..1200 {
            match server.answers("localhost", "sslmode=require").await {
                Ok(()) => return server,
                // Until the accounts are made it denies everybody.
                Err(error) if error.is_temporary() || error.kind() == ErrorKind::Denied => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}: {}", server.log()),
            }
        }
        panic!("it does not start: {}", server.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn store(&self, user: &str, host: &str, options: &str) -> Result<MysqlStore, Error> {
        let url = format!("mysql://{user}:open%20sesame@{host}:{}/sendoff?{options}", self.port);
        MysqlStore::new(MysqlConfig::new(url))
    }

    async fn answers(&self, host: &str, options: &str) -> Result<(), Error> {
        answers(&self.store("sendoff", host, options)?).await
    }
}

/// Whether it lets us in: the schema is missing, but somebody had to answer that.
async fn answers(store: &MysqlStore) -> Result<(), Error> {
    match store.check_schema().await {
        Err(error) if error.kind() == ErrorKind::SchemaMissing => Ok(()),
        other => other,
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn as_account(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
    }
    command.arg(program);
    // Debian keeps servers where only root's path leads.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin"));
    command
}

fn give(folder: &Path) {
    if rustix::process::geteuid().is_root() {
        let owner = format!("{ACCOUNT}:");
        let given = Command::new("chown").args(["-R", &owner]).arg(folder).status();
        assert!(given.unwrap().success());
    }
}

/// With a name of its own: OpenSSL takes a certificate whose name is its authority's for one that vouches for itself.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for this host, and its key, as PEM.
fn certificate(host: &str, by: &CertifiedIssuer<'static, KeyPair>) -> (String, String) {
    let mut params = CertificateParams::new([host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, host);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap().pem(), key.serialize_pem())
}

#[tokio::test]
async fn each_sslmode_checks_what_it_says() {
    let server = TlsServer::started().await;
    let (ours, strange) = (server.file("ca.pem"), server.file("stranger.pem"));
    for (host, options) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={ours}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "tcp_nodelay=true".to_owned()),
    ] {
        server
            .answers(host, &options)
            .await
            .unwrap_or_else(|error| panic!("{host} {options}: {error}"));
    }
    for (host, options) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ours}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={strange}")),
        ("localhost", "sslmode=verify-full".to_owned()),
    ] {
        let error = server.answers(host, &options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{host} {options}: {error}");
        let text = error.to_string();
        assert!(
            text.contains("certificate") && text.contains("sslrootcert"),
            "{host} {options}: {text}"
        );
    }
    // An authority without the host's name cannot be checked, and is not said to be.
    for options in [
        format!("sslmode=verify-ca&sslrootcert={ours}"),
        format!("sslmode=require&sslrootcert={ours}"),
    ] {
        let error = server.answers("127.0.0.1", &options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{options}: {error}");
        assert!(error.to_string().contains("verify-full"), "{options}: {error}");
    }
    // The server takes no connection that is not encrypted, so those above were.
    let error = server.answers("127.0.0.1", "sslmode=disable").await.unwrap_err();
    assert!(!error.is_temporary(), "{error}");
}

#[tokio::test]
async fn everything_works_over_an_encrypted_connection_and_a_server_that_wants_a_certificate_gets_ours() {
    let server = TlsServer::started().await;
    let trusted = format!("sslmode=verify-full&sslrootcert={}", server.file("ca.pem"));
    let store = server.store("sendoff", "localhost", &trusted).unwrap();
    store.migrate().await.unwrap();
    let mut tx = store.begin().await.unwrap();
    tx.emit(&[message("a")]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store.summary().await.unwrap().ready, 1);

    let (cert, key) = (server.file("client.pem"), server.file("client.key"));
    let certified = server.store(
        "certified",
        "localhost",
        &format!("{trusted}&sslcert={cert}&sslkey={key}"),
    );
    certified.unwrap().check_schema().await.unwrap();
    let bare = server.store("certified", "localhost", &trusted).unwrap();
    let error = bare.check_schema().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let with = |mode: &str| MysqlStore::new(MysqlConfig::new(format!("{}?sslmode={mode}", url()))).unwrap();
    for mode in ["disable", "prefer"] {
        with(mode)
            .summary()
            .await
            .map(drop)
            .or_else(missing)
            .unwrap_or_else(|error| panic!("{mode}: {error}"));
    }
    let error = with("require").summary().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("sslmode=disable"), "{error}");
}

/// A database without tables has let us in.
fn missing(error: Error) -> Result<(), Error> {
    match error.kind() {
        ErrorKind::SchemaMissing => Ok(()),
        _ => Err(error),
    }
}
