//! Encrypted connections, to a server with a certificate for `localhost`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use sendoff::store::{EmitStore, MigrateStore, OperateStore, RelayStore};
use sendoff::{Error, ErrorKind};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use tempfile::TempDir;

use crate::scratch::{message, postgres_url, server};

/// The account of the servers: PostgreSQL refuses to run as root.
const ACCOUNT: &str = "postgres";

/// A private server that takes encrypted connections only. Its database `template1` is only for who has a
/// certificate.
struct TlsServer {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl TlsServer {
    fn start() -> Self {
        let bin = PathBuf::from(server("SENDOFF_TEST_PG_BIN"));
        let folder = tempfile::tempdir_in(server("SENDOFF_TEST_SCRATCH")).unwrap();
        let home = folder.path();
        let authority = authority();
        write(home, "ca.pem", &authority.pem());
        write(home, "stranger.pem", &self::authority().pem());
        certificate(home, "server", &["localhost"], "localhost", &authority);
        certificate(home, "client", &[], "postgres", &authority);
        give(home);
        let data = home.join("data");
        let made = as_account(&bin.join("initdb"))
            .args(["--username=postgres", "--auth=trust", "--no-sync", "--pgdata"])
            .arg(&data)
            .current_dir(home)
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let rules = "hostssl template1 all 127.0.0.1/32 cert\nhostssl all postgres 127.0.0.1/32 trust\n";
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        give(&data);
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let setting = |name: &str, file: &str| format!("{name}={}", home.join(file).display());
        let child = as_account(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args([
                "-p",
                &port.to_string(),
                "-k",
                "",
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "fsync=off",
                "-c",
                "ssl=on",
            ])
            .args([
                "-c",
                &setting("ssl_cert_file", "server.pem"),
                "-c",
                &setting("ssl_key_file", "server.key"),
            ])
            .args(["-c", &setting("ssl_ca_file", "ca.pem")])
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
        let store = server.store("localhost", "sslmode=require");
        for _ in 0..600 {
            match store.check_schema().await {
                Err(error) if error.is_temporary() => tokio::time::sleep(Duration::from_millis(50)).await,
                Ok(()) => return server,
                Err(error) if error.kind() == ErrorKind::SchemaMissing => return server,
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

    fn url(&self, database: &str, host: &str, options: &str) -> String {
        format!("postgres://postgres@{host}:{}/{database}?{options}", self.port)
    }

    fn store(&self, host: &str, options: &str) -> PostgresStore {
        PostgresStore::new(PostgresConfig::new(self.url("postgres", host, options))).unwrap()
    }

    /// Whether it lets us in: the schema is missing, but somebody had to answer that.
    async fn answers(&self, host: &str, options: &str) -> Result<(), Error> {
        answers(&self.store(host, options)).await
    }
}

async fn answers(store: &PostgresStore) -> Result<(), Error> {
    match store.check_schema().await {
        Err(error) if error.kind() == ErrorKind::SchemaMissing => Ok(()),
        other => other,
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // The fast way to stop it, for all its processes.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.child.wait();
    }
}

fn as_account(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=INT");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
    }
    command.arg(program);
    command
}

fn give(folder: &Path) {
    if rustix::process::geteuid().is_root() {
        let owner = format!("{ACCOUNT}:");
        assert!(
            Command::new("chown")
                .args(["-R", &owner])
                .arg(folder)
                .status()
                .unwrap()
                .success()
        );
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(folder: &Path, file: &str, hosts: &[&str], name: &str, by: &CertifiedIssuer<'static, KeyPair>) {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    write(folder, &format!("{file}.pem"), &certificate.pem());
    write(folder, &format!("{file}.key"), &key.serialize_pem());
}

#[tokio::test]
async fn each_sslmode_checks_what_it_says() {
    let server = TlsServer::started().await;
    let (ours, strange) = (server.file("ca.pem"), server.file("stranger.pem"));
    for (host, options) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={ours}")),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ours}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={ours}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "connect_timeout=5".to_owned()),
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
        ("localhost", format!("sslmode=verify-ca&sslrootcert={strange}")),
        ("localhost", format!("sslmode=require&sslrootcert={strange}")),
    ] {
        let error = server.answers(host, &options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{host} {options}: {error}");
        let text = error.to_string();
        assert!(
            text.contains("certificate") && text.contains("sslrootcert"),
            "{host} {options}: {text}"
        );
    }
    // The server takes no connection that is not encrypted, so those above were.
    let error = server.answers("127.0.0.1", "sslmode=disable").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[tokio::test]
async fn everything_works_over_an_encrypted_connection_and_so_do_wake_ups() {
    let server = TlsServer::started().await;
    let options = format!("sslmode=verify-full&sslrootcert={}", server.file("ca.pem"));
    let store = server.store("localhost", &options);
    store.migrate().await.unwrap();
    let mut signals = store.listen().await.unwrap().expect("a direct connection can listen");
    let mut tx = store.begin().await.unwrap();
    tx.emit(&[message("a")]).await.unwrap();
    tx.commit().await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), signals.woken())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(store.summary().await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_ours() {
    let server = TlsServer::started().await;
    let trusted = format!("sslmode=verify-full&sslrootcert={}", server.file("ca.pem"));
    let with = |options: &str| PostgresStore::new(PostgresConfig::new(server.url("template1", "localhost", options)));
    let options = format!(
        "{trusted}&sslcert={}&sslkey={}",
        server.file("client.pem"),
        server.file("client.key")
    );
    answers(&with(&options).unwrap()).await.unwrap();
    let error = answers(&with(&trusted).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = with(&format!("{trusted}&sslcert={}", server.file("client.pem"))).unwrap_err();
    assert!(error.to_string().contains("sslkey"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let with =
        |mode: &str| PostgresStore::new(PostgresConfig::new(format!("{}?sslmode={mode}", postgres_url()))).unwrap();
    for mode in ["disable", "prefer"] {
        answers(&with(mode))
            .await
            .unwrap_or_else(|error| panic!("{mode}: {error}"));
    }
    let error = with("require").check_schema().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("sslmode=disable"), "{error}");
}
