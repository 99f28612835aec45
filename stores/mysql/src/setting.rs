//! Settings in the tables, for producers in every language.

use mysql_async::params;
use sendoff::Result;

use crate::conflict::transact;
use crate::decode::text;
use crate::store::Inner;

const WHAT: &str = "the retention settings could not be written";

impl Inner {
    /// Only what is another is written, so an account that may not write can still relay.
    pub(crate) async fn write_retention(&self) -> Result<bool> {
        let mut written = false;
        for (name, value) in self.config.settings.in_tables() {
            let sql = self.texts.setting.first();
            let found = self.operate_pool.rows(WHAT, sql, params! { "name" => name }).await?;
            if found.first().map(|row| text(WHAT, row, 0)).transpose()?.as_ref() != Some(&value) {
                let sql = self.texts.write_setting.first();
                transact!(self.operate_pool, WHAT, connection => {
                    connection.change(WHAT, sql, params! { "name" => name, "value" => &value }).await
                })?;
                written = true;
            }
        }
        Ok(written)
    }
}
