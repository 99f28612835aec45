//! The roles, as SQL that the owner of the tables runs.

use sendoff::Result;
use sendoff::emit::Names;

use crate::store::Inner;
use crate::texts::whole;

const WHAT: &str = "the roles could not be created";

impl Inner {
    /// In one transaction, behind the lock of migrations: rights that two give at the same time are an error to the server.
    pub(crate) async fn create_roles(&self) -> Result<()> {
        let connection = self.operate_pool.get().await?;
        connection.begin(WHAT, &[]).await?;
        self.lock_migrations(&connection, WHAT).await?;
        connection.script(WHAT, &roles_sql(&self.config.names)).await?;
        connection.commit(WHAT, &[]).await?;
        connection.give_back();
        Ok(())
    }
}

/// The script with the names put in. Roles have no schema: they are called by the prefix alone.
pub(crate) fn roles_sql(names: &Names) -> String {
    let mut script = names.render(&whole(include_str!("../roles.sql")));
    for role in ["emitter", "consumer", "worker", "relay_role", "operator", "viewer"] {
        script = script.replace(&format!("{{{role}}}"), &format!("{}{role}", names.prefix()));
    }
    script.replace("{schema}", names.schema().unwrap_or_default())
}
