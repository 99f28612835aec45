//! Settings in the tables, for producers in every language.

use sendoff::Result;
use tokio_postgres::types::Type;

use crate::decode::column;
use crate::pipeline::Param;
use crate::store::Inner;

const WHAT: &str = "the retention settings could not be written";

impl Inner {
    /// Only what is another is written, so a role that may not write can still relay.
    pub(crate) async fn write_retention(&self) -> Result<bool> {
        let mut written = false;
        for (name, value) in self.config.settings.in_tables() {
            let params: [Param<'_>; 2] = [(&name, Type::TEXT), (&value, Type::TEXT)];
            let found = self.operate_pool.run(WHAT, &self.texts.setting, &params[..1]).await?;
            let is_there = |row| Ok(column::<&str>(WHAT, row, 0)? == value);
            if !found.first().map_or(Ok(false), is_there)? {
                self.operate_pool.run(WHAT, &self.texts.write_setting, &params).await?;
                written = true;
            }
        }
        Ok(written)
    }
}
