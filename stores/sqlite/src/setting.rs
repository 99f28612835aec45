//! Settings in the tables, for producers in every language.

use rusqlite::{Connection, OptionalExtension, params};
use sendoff::Result;

use crate::lease::write;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn write_retention(&self) -> Result<bool> {
        let retention = self.config.settings.in_tables();
        if retention.is_empty() {
            return Ok(false);
        }
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let mut written = false;
            for (name, value) in retention {
                let mut setting = tx.prepare_cached(sql.setting.first())?;
                let found: Option<String> = setting.query_row([name], |row| row.get(0)).optional()?;
                if found.as_ref() != Some(&value) {
                    tx.prepare_cached(sql.write_setting.first())?
                        .execute(params![name, value])?;
                    written = true;
                }
            }
            tx.commit()?;
            Ok(written)
        };
        let what = "the retention settings could not be written";
        self.operate.call(what, work).await
    }
}
