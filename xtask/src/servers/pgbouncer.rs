//! A private PgBouncer in transaction pooling mode: the pooler that breaks session state.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rustix::process::Signal;

use super::instance::Instance;
use super::postgres::{self, Postgres};
use super::{account, port};
use crate::packages;

/// A running PgBouncer in front of a [`Postgres`].
pub(crate) struct PgBouncer {
    port: u16,
    _instance: Instance,
}

impl PgBouncer {
    /// Starts the pooler and waits until a query comes back through it.
    pub(crate) fn start(scratch: &Path, behind: &Postgres) -> Result<Self> {
        let pgbouncer = packages::PGBOUNCER.file()?;
        let home = scratch.join("pgbouncer");
        fs::create_dir(&home)?;
        let port = port::free()?;
        let users = home.join("users.txt");
        let config = home.join("pgbouncer.ini");
        fs::write(&users, "\"postgres\" \"\"\n")?;
        fs::write(&config, configuration(port, behind.port, &users))?;
        account::give(&home)?;

        let mut command = account::command(&pgbouncer);
        command.arg(&config).current_dir(&home);
        // SIGTERM, not SIGINT: the latter waits for clients that a failed test may have left inside a transaction.
        let mut instance = Instance::start("PgBouncer", &mut command, Signal::TERM, scratch.join("pgbouncer.log"))?;
        instance.wait_until(|| postgres::answers(&behind.bin, &postgres::url(port)))?;
        Ok(Self {
            port,
            _instance: instance,
        })
    }

    /// Where to connect.
    pub(crate) fn url(&self) -> String {
        postgres::url(self.port)
    }
}

fn configuration(port: u16, server_port: u16, users: &Path) -> String {
    // Tests create databases and roles of their own: `*` reaches every database, auth_user finds every role.
    // Idle server connections go soon, because a test that drops its database must not wait for them.
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={server_port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = {users}\n\
         auth_user = postgres\n\
         admin_users = postgres\n\
         pool_mode = transaction\n\
         default_pool_size = 20\n\
         max_client_conn = 1000\n\
         server_idle_timeout = 10\n\
         ignore_startup_parameters = extra_float_digits,options,search_path,statement_timeout,lock_timeout,\
         idle_in_transaction_session_timeout\n",
        users = users.display(),
    )
}
