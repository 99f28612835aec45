//! Settings in the tables, where producers in every language find them.

use rusqlite::{Connection, OptionalExtension, params};
use sendoff::Result;
use sendoff::store::window_settings;

use crate::lease::write;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn write_windows(&self) -> Result<bool> {
        let windows = window_settings(self.config.dedup_window, self.config.inbox_window);
        if windows.is_empty() {
            return Ok(false);
        }
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let mut written = false;
            for (name, value) in windows {
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
        let what = "the windows could not be written into the settings";
        self.operate.call(what, work).await
    }
}
